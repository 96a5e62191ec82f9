"""Ints, floats and bools: types of numbers, and how large ints may be."""

from __future__ import annotations

from tests.traps.traps import Trap

CASES = [
    Trap(
        "counters that are returned, in containers and as keys",
        """\
n = 0
class C: k = 0
def mk():
    c = 3
    @mgjit.compile
    def step(x):
        nonlocal c
        c += 1
        return c, x * c
    return step
@mgjit.compile
def step(x):
    global n
    n += 1
    C.k += 2
    return n, [n, x], {n: x, "a": C.k}, (C.k, n + 1)
for i in range(5): check(step(1.0 + i))
s = mk()
for i in range(5): check(s(1.0 + i))
""",
    ),
    Trap(
        "a counter that is returned",
        """\
n = 0
@mgjit.compile
def step(x):
    global n
    n += 1
    return n
for i in range(5): check(step(1.0 + i))
""",
    ),
    Trap(
        "a counter in a set that is returned",
        """\
n = 0
@mgjit.compile
def step(x):
    global n
    n += 1
    return {n, n+5}, frozenset([n])
for i in range(5): check(step(1.0 + i))
""",
    ),
    Trap(
        "a float on one side of a choice and an int on the other",
        """\
@mgjit.compile
def step(x, n):
    a = max(x, 0); b = x if x > 1 else 0; c = 0 if x < 0 else x
    return (
        a, b, c, -a, -b, -c, abs(a), abs(n), n ** 2, a * 2, a * -3, a + 1, 1 - a, a * a, a / 2, a * x, a **
        2, 2 ** a, n ** 0, n ** 3, a > 0, +a, min(a, 1), max(a, b), min(n, x), [a, b], (x > 0) and n, (x >
        0) or x, x and n, n or x, abs(x > 0), -(x > 0), +(x>0), (x>0) + (x>1)
    )
for x in (2.0, -1.0, 0.0, -0.0, 1.5, 0.5):
    for n in (3, -2, 0, 1):
        check(step(x, n))
""",
    ),
    Trap(
        "sums of numbers that are ints or floats",
        """\
@mgjit.compile
def step(xs):
    ys = [max(x, 0) for x in xs]
    return sum(ys), sum(ys) * -1, sum([x if x > 0 else 0.0 for x in xs])
for x in ([1.0, 2.0, 1e100], [-1.0, -2.0, -4.0], [1e100, 1.0, -1e100], [0.1]*3, [0.1, -1.0, 0.2]): check(step(x))
check(step([-1.0, 0.1, 0.2]))
""",
    ),
    Trap(
        "a table of ints, floats and bools",
        """\
T = [1, 0.5, 2, True]
@mgjit.compile
def step(i): return T[i], T[i] * 2, -T[i]
for i in (0, 1, 2, 3): check(step(i))
""",
    ),
    Trap(
        "a captured list or dict that is returned",
        """\
w = [1.0, 2.0]
d = {"a": 1.0}
@mgjit.compile
def step(x):
    w[0] += x
    d["a"] += x
    return w, d, (w, x)
for i in range(4):
    r = step(1.0 + i); check(r, r[0] is w, r[1] is d, r[2][0] is w)
""",
    ),
    Trap(
        "powers with int exponents that are arguments",
        """\
@mgjit.compile
def step(n, x): return (-1) ** n * x, (-1) ** n, 2 ** n, n ** -1, n ** 0.5 if n > 0 else 0.0, n ** n, x ** n, n ** x
for n in (1, 2, 3): check(step(n, 2.0))
""",
    ),
    Trap(
        "an int and a float that change places",
        """\
class O: pass
o = O(); o.y = 2.5; g = 1
@mgjit.compile
def step(x):
    global g
    g, o.y = o.y, g
    return g * x, g, o.y
for i in range(8): check(step(1.0 + i), g, o.y)
g = 3; o.y = 4
for i in range(4): check(step(1.0 + i), g, o.y)
""",
    ),
    Trap(
        "ints and floats that change places in a list",
        """\
w = [1, 2.5, 3]
@mgjit.compile
def step(x):
    w[0], w[1], w[2] = w[1], w[2], w[0]
    return sum(w) * x, w[0]
for i in range(8): check(step(1.0 + i), list(w))
""",
    ),
    Trap(
        "limits that are ints, assigned",
        """\
class O: pass
o = O(); o.y = 0.5; o.best = 1e9
@mgjit.compile
def step(x):
    o.y = max(-1, min(1, o.y + x))
    o.best = min(o.best, x)
    return o.y
for i in (0.25, 0.25, 1.0, -0.5, -3.0, 0.5): check(step(i), o.y, o.best)
o.best = 7
for i in (0.25, 9.0, 1.0, -0.5, -3.0, 0.5): check(step(i), o.y, o.best)
o.best = 70; check(step(100.0), o.best); check(step(60.0), o.best)
o.best = 70; o.y = 1; check(step(100.0), o.best, o.y); check(step(60.0), o.best)
""",
    ),
    Trap(
        "limits that are ints, in a list",
        """\
w = [0.5, 0.25, 3.0]
@mgjit.compile
def step(x):
    for i in range(3): w[i] = max(-1, min(1, w[i] + x))
    return w[0] * x
for i in (0.25, 0.25, 1.0, -0.5, -3.0, 0.5): check(step(i), list(w))
""",
    ),
    Trap(
        "limits that are ints, in a long list",
        """\
w = [0.5, 0.25, 3.0] * 20
@mgjit.compile
def step(x):
    for i in range(60): w[i] = max(-1, min(1, w[i] + x))
    return w[0] * x
for i in (0.25, 0.25, 1.0, -0.5, -3.0, 0.5): check(step(i), list(w))
""",
    ),
    Trap(
        "a float that is set back to the int 0",
        """\
class O: pass
o = O(); o.t = 0.0
@mgjit.compile
def step(x):
    o.t += x
    return o.t
for i in range(4):
    o.t = 0
    check(step(1.0)); check(step(1.0))
""",
    ),
    Trap(
        "ints above 2**53 that are computed",
        """\
@mgjit.compile
def step(a, b): return a * b + 1, a - b, a * b * 0.5
for a, b in ((3, 4), (10**8, 10**8 + 1), (2**53, 1), (2**40, 2**20), (5, 6), (-10**9, 10**9 + 7)): check(step(a, b))
""",
        "BackendWarning",
        "step runs as plain Python: ints among the arguments are so large that ints above 2**53 ...",
    ),
    Trap(
        "an int that grows beyond 2**53",
        """\
n = 1
class O: pass
o = O(); o.t = 3; o.u = 0
@mgjit.compile
def step(x):
    global n
    n = n * 3 + 1
    o.t += 2
    o.u = o.t * o.t
    return n * x, n
for i in range(60): check(step(1.0 + i), n, o.t, o.u)
""",
        "BackendWarning",
        "step runs as plain Python: ...",
    ),
    Trap(
        "lists and arrays of large ints",
        """\
@mgjit.compile
def step(xs): return sum(xs), sum(x * x for x in xs), xs[0] * 2
for xs in ([1, 2, 3], [2**52, 2**52, 2**52], [2**30, 1, 1], [2**26, 1, 1]): check(step(xs))
for xs in ([1, 2, 3], [2**52, 2**52, 2**52], [2**30, 1, 1], [2**62, 1, 1]): check(step(array.array("q", xs)))
for xs in ([1, 2, 3], [255, 255, 255]): check(step(bytes(xs)))
""",
        "BackendWarning",
        "step runs as plain Python: ints among the arguments are so large that ints above 2**53 ...",
    ),
    Trap(
        "an int times a constant above 2**53",
        """\
@mgjit.compile
def step(n): return n * 2**60, n * 2**60 * 0.5
for n in (0, 1, 3): check(step(n))
""",
        "BackendWarning",
        "step runs as plain Python: ints among the arguments are so large that ints above 2**53 ...",
    ),
    Trap(
        "a captured int above 2**53",
        """\
n = 2**60 + 1
@mgjit.compile
def step(x): return n, n * x
for i in range(4): check(step(1.0 + i))
m = 2**60 + 1
@mgjit.compile
def step2(x):
    global m
    m += 1
    return m, m * x
for i in range(4): check(step2(1.0 + i), m)
""",
        "BackendWarning",
        "step2 runs as plain Python: the variable m is so large an int that ints above 2**53 may be ...",
    ),
]
