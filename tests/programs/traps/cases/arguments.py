"""Arguments that the step changes, returns, or also captures."""

from __future__ import annotations

from tests.programs.traps.traps import Trap

_ARRAY = "a = array.array('d', [1.0, 2.0, 3.0])\n"

CASES = [
    Trap(
        "elements of an array.array are assigned",
        _ARRAY
        + """\
@mgjit.compile
def step(a, x):
    a[0] += x
    a[2] = a[0] * 2
    return a[1] * x
for k in range(5):
    check(step(a, 0.5 + k), list(a))
""",
    ),
    Trap(
        "elements of a bytearray are assigned",
        """\
b = bytearray([1, 2, 250])
@mgjit.compile
def step(b, x):
    b[2] += 1
    return b[2] * x
for k in range(5):
    check(step(b, 0.5 + k), list(b))
""",
        "PlainWarning",
        "step runs as plain Python: ...",
    ),
    Trap(
        "the buffer that is assigned is captured as well",
        _ARRAY
        + """\
@mgjit.compile
def step(b, x):
    b[0] += x
    return a[0]
for k in range(5):
    check(step(array.array('d', [5.0]), 0.5 + k), list(a))
for k in range(5):
    check(step(a, 0.5 + k), list(a))
""",
        "PlainWarning",
        "step runs as plain Python: the step assigns elements of argument b, which it also reaches in another way",
    ),
    Trap(
        "a captured list that the step changes is also an argument",
        """\
rows = [[1.0, 2.0], [3.0, 4.0]]
@mgjit.compile
def step(row, x):
    rows[0][0] += x
    return row[0] * x
for k in range(9):
    check(step([[5.0, 6.0], rows[0], rows[1]][k % 3], 0.5), rows)
""",
    ),
    Trap(
        "one list is two arguments, one of which is changed",
        """\
a, b = [1.0, 2.0], [3.0, 4.0]
@mgjit.compile
def step(a, b, x):
    a[0] += x
    return b[0] * x
for pair in [(a, b), (a, a), (b, a), (b, b)] * 2:
    check(step(*pair, 0.5), a, b)
""",
    ),
    Trap(
        "an argument to which the step appends",
        """\
@mgjit.compile
def step(xs, x):
    xs.append(xs[-1] + x)
    return len(xs)
xs = [1.0]
for k in range(5):
    check(step(xs, 0.5 + k), xs)
""",
        "PlainWarning",
        "step runs as plain Python: ...",
    ),
    Trap(
        "a list that is returned is the argument",
        """\
@mgjit.compile
def step(xs, x):
    return xs, x * xs[0]
for k in range(5):
    xs = [1.0 + k, 2.0]
    check(step(xs, 0.5)[0] is xs, xs)
""",
    ),
    Trap(
        "static arguments that are equal, and not the same",
        """\
@mgjit.compile(static=("c",))
def step(c, x):
    return c, x * math.copysign(1.0, c)
for c in (0.0, -0.0, 0, 1, 1.0, True) * 2:
    check(step(c, 2.0))
""",
    ),
    Trap(
        "attributes of a dataclass that are no fields",
        """\
@dataclasses.dataclass
class Config:
    rate: float
    def __post_init__(self):
        self.inverse = 1 / self.rate
@mgjit.compile
def step(config, x):
    return config.inverse * x
for k in range(5):
    check(step(Config(1.0 + k), 0.5))
""",
    ),
    Trap(
        "an int inside of an argument as a length",
        """\
@mgjit.compile
def step(config, xs):
    return sum([xs[k] * config["rate"] for k in range(config["n"])])
for k in range(6):
    check(step({"n": 1 + k % 3, "rate": 0.5 * k}, [1.0, 2.0, 3.0]))
""",
    ),
    Trap(
        "nodes that are made for one call",
        """\
p = Node(2.0)
@mgjit.compile
def step(xs):
    y = xs[0] * p + xs[1]
    p.grad = 0.0
    y.backward()
    return y.data
for k in range(100):
    xs = [Node(0.5 + k), Node(1.0)]
    check(step(xs), [x.grad for x in xs], p.grad)
""",
    ),
]
