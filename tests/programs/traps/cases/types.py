"""Ints, floats and bools: types of numbers, and how large ints may be."""

from __future__ import annotations

from tests.programs.traps.traps import Trap

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
        "lists of ints where an earlier call had floats, and the reverse",
        """\
@mgjit.compile
def step(xs, rows):
    return sum(xs), xs[0], [2 * x for x in rows[0]], xs, rows
for xs in ([0.5, 1.5], [1, 2], [3, 4], [0.25, 2.5], [5, 6]):
    for rows in ([[1.5], [2.5]], [[1], [2]]):
        check(step(xs, rows))
long = mgjit.compile(lambda xs: (sum(xs), -xs[7]))
for k in range(4): check(long([0.5] * 40), long([0] * 40), long([k] * 40))
""",
    ),
    Trap(
        "the result is an argument that mixes ints and floats",
        """\
step = mgjit.compile(lambda xs, d: (xs, {"a": [xs, d]}, d["b"]))
for k in range(5): check(step([0, k + 0.5], {"b": [k, -0.0]}))
""",
    ),
    Trap(
        "bools that take the place of ints and floats",
        """\
class O:
    pass
o = O()
o.p, o.q, g, h = 1.5, 2, 3, 0.25
L = [1, 0.5]
@mgjit.compile
def step(x, n):
    global g, h
    y = (+o.p) * x, n / (L[0] or 1)
    o.p = min(2.0, x, x < n)
    o.q, g = g, o.q
    g, h, L[1] = h, g > x, h < n
    return y, o.q, [g, h]
for x, n in ((0.5, 0), (-0.0, 5), (2.0, 1), (-1.5, 0), (0.0, 3)):
    check(step(x, n), o.p, o.q, g, h, L)
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
        "PlainWarning",
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
        "PlainWarning",
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
        "PlainWarning",
        "step runs as plain Python: ints among the arguments are so large that ints above 2**53 ...",
    ),
    Trap(
        "an int times a constant above 2**53",
        """\
@mgjit.compile
def step(n): return n * 2**60, n * 2**60 * 0.5
for n in (0, 1, 3): check(step(n))
""",
        "PlainWarning",
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
        "PlainWarning",
        "step2 runs as plain Python: the variable m is so large an int that ints above 2**53 may be ...",
    ),
    Trap(
        "`//`, `%` and divmod, of floats and of ints",
        """\
@mgjit.compile
def step(x, y): return x % y, x // y, divmod(x, y)
@mgjit.compile
def consts(x): return x % 3, x // 3, 7 % x, 7 // x, x % -2.5, x // 0.1, 7.5 % x, divmod(x, 2), divmod(9, x)
for x, y in itertools.product((5.5, -5.5, 7.0, -7.0, 0.3, -0.3, 1e17, 0.0, -0.0), (2.0, -2.0, 0.1, -0.1, 3.5, 1e-300)):
    check(step(x, y))
for x, y in itertools.product((5, -5, 7, -7, 0, 123456789012345, -12), (2, -2, 1, -1, 35)):
    check(step(x, y))
for x, y in itertools.product((5, -5, 7, 0), (2.0, -2.5)): check(step(x, y)); check(step(y, x or 1))
for x in (5.5, -5.5, 2.0, -7.0, 0.3): check(consts(x))
for x in (5, -5, 2, -7, 1): check(consts(x))
""",
    ),
    Trap(
        "a counter modulo a number",
        """\
class T: n = 0
@mgjit.compile
def step(x):
    T.n += 1
    return x * (T.n % 4), T.n // 3, T.n % 2 == 0, (0.5 if T.n % 3 == 0 else 1.0) * x
for i in range(15): check(step(1.0 + i), T.n)
""",
    ),
    Trap(
        "`math.sin` in a user's own class",
        """\
class V(Node):
    def sin(self):
        return V(math.sin(self.data), (self,), (math.cos(self.data),))
ws = [V(0.1 * i) for i in range(20)]
@mgjit.compile
def step(x):
    t = V(0.0)
    for w in ws: t = t + V(x) * V.sin(w)
    for w in ws: w.grad = 0.0
    t.backward()
    for w in ws: w.data -= 0.1 * w.grad
    return t.data
for i in range(6): check(step(1.0 + i), [(p.data, p.grad) for p in ws])
""",
    ),
    Trap(
        "`math.cos` of a counter",
        """\
class T: n = 0
@mgjit.compile
def step(x):
    T.n += 1
    lr = 0.5 * (1 + math.cos(math.pi * T.n / 100))
    w.data -= lr * x
    return w.data
for i in range(15): check(step(1.0 + i), T.n)
""",
    ),
    Trap(
        "`%` behind a test for zero",
        """\
@mgjit.compile
def step(x, y): return x % y if y else 0, x
check(step(3, 2), step(4, 0))
""",
    ),
    Trap(
        "random numbers that the step computes itself",
        """\
s = 1
@mgjit.compile
def step(x):
    global s
    s = (s * 75 + 74) % 65537
    return s / 65537 * x
for i in range(10): check(step(1.0 + i), s)
""",
    ),
    Trap(
        "rounding: int, round, floor, ceil and trunc of floats and of ints",
        """\
@mgjit.compile
def step(x, n):
    parts = int(x), round(x), math.floor(x), math.ceil(x), math.trunc(x), x.is_integer()
    return parts, [x - part for part in parts], int(n), round(n), round(n, 2), math.floor(n)
for x in (0.0, -0.0, 2.5, -2.5, 3.5, 0.5, -0.5, 1e17, 3.0, -3.7):
    check(step(x, 2))
""",
    ),
    Trap(
        "arithmetic with ints made of floats",
        """\
@mgjit.compile
def step(x):
    return int(x) + 1
check(step(2.5), step(1e17))
""",
        "PlainWarning",
        "step runs as plain Python: it computes ints above 2**53, which float64 does not hold",
    ),
    Trap(
        "the functions of `math`",
        """\
@mgjit.compile
def step(x, y, n):
    waves = math.sin(x), math.cos(x), math.tan(x), math.atan(x), math.atan2(x, y), math.sin(n)
    hyperbolic = math.sinh(x), math.cosh(x), math.tanh(x), math.asinh(x), math.atanh(x / 9.0), math.acosh(1.0 + x * x)
    others = math.expm1(x), math.log1p(x * x), math.log10(1.0 + x * x), math.asin(x / 9.0), math.acos(x / 9.0)
    signs = math.fmod(x, y), math.copysign(x, y), math.fabs(n), math.pow(n, 2), math.degrees(x), math.radians(x)
    return waves, hyperbolic, others, signs, math.isclose(x, y), math.isclose(x, y, rel_tol=0.5), math.log(x * x, 3)
for k in range(-8, 9):
    check(step(0.37 * k + 0.1, 2.5 - k, k))
""",
    ),
    Trap(
        "a function of `math` that Python computes in its own way",
        """\
@mgjit.compile
def step(x):
    return math.hypot(x, 2.0)
check(step(1.0))
""",
        "TraceError",
        "math.hypot of a traced number is not available; math.sqrt(x * x + y * y) is, also undecorated, ...",
    ),
]
