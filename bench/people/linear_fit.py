"""A line fitted by gradient descent, one point after another, and slope and intercept as plain variables."""
import random

random.seed(5)
xs = [random.uniform(0, 10) for _ in range(100)]
ys = [3.0 * x + 4.0 + random.gauss(0, 1) for x in xs]


def error(slope, intercept, x, y):
    return slope * x + intercept - y


def mse(slope, intercept):
    return sum(error(slope, intercept, x, y) ** 2 for x, y in zip(xs, ys)) / len(xs)


m, b = 0.0, 0.0
rate = 0.001
for epoch in range(120000):
    dm = 0.0
    db = 0.0
    n = len(xs)
    for x, y in zip(xs, ys):
        e = error(m, b, x, y)
        dm += 2 * e * x / n
        db += 2 * e / n
    m = m - rate * dm
    b = b - rate * db
    if epoch % 20000 == 0:
        print(f"epoch {epoch}: mse {mse(m, b):.6f}")
print(m, b)
