"""One row of the Mandelbrot set with a fixed number of iterations: how long each point stays inside."""

WIDTH, ITERATIONS = 24, 20


def row(cy, left, right):
    counts = []
    for px in range(WIDTH):
        cx = left + (right - left) * px / (WIDTH - 1)
        x = y = 0.0
        count = 0
        inside = True
        for _ in range(ITERATIONS):
            x, y = (x * x - y * y + cx, 2.0 * x * y + cy) if inside else (x, y)
            inside = inside and x * x + y * y <= 4.0
            count += 1 if inside else 0
        counts.append(count)
    return counts


def make():
    return row, [(-1.1 + 0.3 * k, -2.0, 0.6) for k in range(6)], lambda: None
