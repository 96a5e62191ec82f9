"""Gravitation with hand-written derivatives: the n-body program that everybody knows, on dicts and lists."""

import math

PI = 3.14159265358979323
SOLAR_MASS = 4 * PI * PI
DAYS = 365.24

BODIES = {
    "sun": ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0], SOLAR_MASS),
    "jupiter": (
        [4.84143144246472090e00, -1.16032004402742839e00, -1.03622044471123109e-01],
        [1.66007664274403694e-03 * DAYS, 7.69901118419740425e-03 * DAYS, -6.90460016972063023e-05 * DAYS],
        9.54791938424326609e-04 * SOLAR_MASS,
    ),
    "saturn": (
        [8.34336671824457987e00, 4.12479856412430479e00, -4.03523417114321381e-01],
        [-2.76742510726411934e-03 * DAYS, 4.99852801234917238e-03 * DAYS, 2.30417297573763929e-05 * DAYS],
        2.85885980666130812e-04 * SOLAR_MASS,
    ),
    "uranus": (
        [1.28943695621391310e01, -1.51111514016986312e01, -2.23307578892655734e-01],
        [2.96460137564761618e-03 * DAYS, 2.37847173959480950e-03 * DAYS, -2.96589568540237556e-05 * DAYS],
        4.36624404335156298e-05 * SOLAR_MASS,
    ),
}
SYSTEM = list(BODIES.values())
PAIRS = [(a, b) for k, a in enumerate(SYSTEM) for b in SYSTEM[k + 1 :]]


def advance(dt, steps=6, bodies=SYSTEM, pairs=PAIRS):
    for _ in range(steps):
        for ([x1, y1, z1], v1, m1), ([x2, y2, z2], v2, m2) in pairs:
            dx, dy, dz = x1 - x2, y1 - y2, z1 - z2
            magnitude = dt * ((dx * dx + dy * dy + dz * dz) ** -1.5)
            b1m, b2m = m1 * magnitude, m2 * magnitude
            v1[0] -= dx * b2m
            v1[1] -= dy * b2m
            v1[2] -= dz * b2m
            v2[0] += dx * b1m
            v2[1] += dy * b1m
            v2[2] += dz * b1m
        for r, [vx, vy, vz], _ in bodies:
            r[0] += dt * vx
            r[1] += dt * vy
            r[2] += dt * vz
    return energy(bodies, pairs)


def energy(bodies, pairs, e=0.0):
    for ((x1, y1, z1), _, m1), ((x2, y2, z2), _, m2) in pairs:
        dx, dy, dz = x1 - x2, y1 - y2, z1 - z2
        e -= (m1 * m2) / math.sqrt(dx * dx + dy * dy + dz * dz)
    for _, [vx, vy, vz], m in bodies:
        e += m * (vx * vx + vy * vy + vz * vz) / 2.0
    return e


def make():
    return advance, [(0.01,), (0.02,), (-0.01,), (0.005,), (0.01,)], lambda: SYSTEM
