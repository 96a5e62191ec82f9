"""Arguments, and uses that need the value of a number."""

from __future__ import annotations

from tests.programs.traps.traps import Trap

CASES = [
    Trap(
        "lists of lengths 1 to 16",
        """\
s = [0.0]

@mgjit.compile
def step(xs):
    s[0] = 0.5 * s[0] + sum(xs)
    return w * s[0]
for n in [*range(1, 17), 3, 9]:
    check(step([1.0 * k for k in range(n)]), s[0])
""",
        "RetraceWarning",
        "step is being traced for the 11th time; the first difference from the last ...",
    ),
    Trap(
        "an int that only indexes or is compared",
        """\
T = [1.0, 2.0, 3.0]

@mgjit.compile
def step(i, x):
    return w * T[i] * (x if i < 1 else 2.0 * x)
for i in (0, 1, 2, 0):
    check(step(i, 1.0))
""",
        "",
        "",
    ),
    Trap(
        "an int passed to range()",
        """\
@mgjit.compile
def step(n, x):
    return sum((w * x for _ in range(n)))
for n in (1, 2, 3, 1):
    check(step(n, 1.0))
""",
        "",
        "",
    ),
    Trap(
        "the same list passed twice, and changed in place",
        """\
@mgjit.compile
def step(a, b):
    a[0] = a[0] + 1.0
    return w * b[0]
a = [1.0]
check(step(a, a), a)
check(step(a, a), a)
check(step(a, [5.0]), a)
""",
        "",
        "",
    ),
    Trap(
        "an int, a bool, a float in turn",
        """\
@mgjit.compile
def step(x):
    return w * x
for x in (1, True, 1.0, -0.0, 2 ** 53, -3):
    check(step(x))
""",
        "",
        "",
    ),
    Trap(
        "an int above 2**53",
        """\
@mgjit.compile
def step(x):
    return w * x
check(step(2 ** 53 + 1))
""",
        "ArgumentValueError",
        "argument x has the integer 9007199254740993, which float64 cannot hold exactly ...",
    ),
    Trap(
        "a nan as a key of a captured dict",
        """\
D = {math.nan: 1.0, 1: 2.0}

@mgjit.compile
def step(x):
    return w * x * sum(D.values())
check(step(1.0))
D[1] = 3.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "`is` of numbers",
        """\
@mgjit.compile
def step(x):
    y = x
    return w * x if y is x else w
check(step(1.0), step(2.0))
""",
        "",
        "",
    ),
    Trap(
        "`x in list` with a traced number",
        """\
@mgjit.compile
def step(x):
    return w * x if x in [1.0, 2.0] else w
check(step(1.0), step(5.0))
""",
    ),
    Trap(
        "sorted with a traced key",
        """\
@mgjit.compile
def step(xs):
    return w * sorted(xs, key=lambda v: -v)[0]
check(step([1.0, 2.0]), step([3.0, 1.0]))
""",
    ),
    Trap(
        "min with a traced key",
        """\
@mgjit.compile
def step(xs):
    return w * min(xs, key=lambda v: -v)
check(step([1.0, 2.0]), step([3.0, 1.0]))
""",
    ),
    Trap(
        "float('inf') as a first value",
        """\
@mgjit.compile
def step(xs):
    m = float('inf')
    for x in xs:
        m = min(m, x)
    return w * m
check(step([1.0, 2.0]), step([3.0, -1.0]))
""",
        "",
        "",
    ),
    Trap(
        "isinstance and type checks",
        """\
@mgjit.compile
def step(x):
    return w * x if isinstance(x, float) and type(x) is float else w
check(step(1.0), step(2.0))
""",
        "",
        "",
    ),
    Trap(
        "math.fsum, statistics.mean",
        """\
@mgjit.compile
def step(xs):
    return w * math.fsum(xs)
check(step([1.0, 2.0]))
""",
        "TraceError",
        "math.fsum of a traced number is not available; sum(xs) is, also undecorated, ...",
    ),
    Trap(
        "statistics.mean",
        """\
@mgjit.compile
def step(xs):
    return w * statistics.mean(xs)
check(step([1.0, 2.0]))
""",
        "PlainWarning",
        "step runs as plain Python: the step uses float.as_integer_ratio, which needs the number itself",
    ),
    Trap(
        "`if not p.grad`",
        """\
P = Node(2.0)

@mgjit.compile
def step(x):
    if not P.grad:
        P.grad = x
    return w * P.grad
check(step(1.0), step(2.0))
""",
    ),
    Trap(
        "a gradient that is set to None between calls",
        """\
P = [Node(1.0 * k) for k in range(20)]

@mgjit.compile
def step(x):
    for p in P:
        p.grad = x
        p.data -= 0.1 * p.grad
    return sum((p.data for p in P))
check(step(1.0))
for p in P:
    p.grad = None
check(step(1.0), [p.grad for p in P])
P[3].grad = None
check(P[3].grad, P[4].grad, step(2.0), P[3].grad)
""",
    ),
    Trap(
        "a gradient that is set to the int 0",
        """\
P = [Node(1.0 * k) for k in range(20)]

@mgjit.compile
def step(x):
    for p in P:
        p.data -= 0.1 * x
        p.grad = 0
    return sum((p.data for p in P))
check(step(1.0))
check(P[0].grad == 0)
""",
        "",
        "",
    ),
    Trap(
        "a captured attribute that the step deletes",
        """\
S = types.SimpleNamespace(a=1)

@mgjit.compile
def step(x):
    if hasattr(S, 'a'):
        del S.a
        return w * x
    return w + x
check(step(3.0), step(3.0))
""",
        "",
        "",
    ),
    Trap(
        "gc.collect and weakrefs inside the step",
        """\
@mgjit.compile
def step(x):
    gc.collect()
    y = w * x
    r = weakref.ref(w)
    return y * r()
check(step(1.0), step(2.0))
""",
        "PlainWarning",
        "the step uses gc.collect(), which may answer something else at each call ...",
    ),
    Trap(
        "float32 subnormal -0.0 and infinities",
        """\
@mgjit.compile
def step(x):
    return w * x - x * 0.0
for x in (0.0, -0.0, math.inf, -math.inf, 5e-324):
    check(step(x))
""",
        "",
        "",
    ),
]
