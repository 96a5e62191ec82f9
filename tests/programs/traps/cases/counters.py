"""What the step itself changes: counters, lists, iterators."""

from __future__ import annotations

from tests.programs.traps.traps import Trap

CASES = [
    Trap(
        "None becomes number",
        """\
RATE = None

@mgjit.compile
def step(x):
    return w * x if RATE is None else w * x * RATE
check(step(3.0))
RATE = 2.0
check(step(3.0))
RATE = None
check(step(3.0))
""",
        "",
        "",
    ),
    Trap(
        "flag attribute toggled by the step",
        """\
T = types.SimpleNamespace(f=True)

@mgjit.compile
def step(x):
    T.f = not T.f
    return w * x if T.f else w + x
check(step(3.0))
check(step(3.0))
check(step(3.0))
""",
        "SideEffectWarning",
        "step runs as plain Python: the step changes SimpleNamespace.f besides ...",
    ),
    Trap(
        "counter global",
        """\
n = 0

@mgjit.compile
def step(x):
    global n
    n += 1
    return w * x * n
check(step(3.0), n)
check(step(3.0), n)
check(step(3.0), n)
""",
        "",
        "",
    ),
    Trap(
        "a counter that is only counted",
        """\
n = 0

@mgjit.compile
def step(x):
    global n
    n += 1
    return w * x
check(step(3.0), n)
check(step(3.0), n)
n = 10
check(step(3.0), n)
""",
        "",
        "",
    ),
    Trap(
        "`T.n += 1`, used as a number",
        """\
class T:
    n = 0

@mgjit.compile
def step(x):
    T.n += 1
    return w * x * T.n
check(step(3.0), T.n)
check(step(3.0), T.n)
check(step(3.0), T.n)
""",
        "",
        "",
    ),
    Trap(
        "`T.n += 1`, only counted",
        """\
class T:
    n = 0

@mgjit.compile
def step(x):
    T.n += 1
    return w * x
check(step(3.0), T.n)
check(step(3.0), T.n)
check(step(3.0), T.n)
""",
        "",
        "",
    ),
    Trap(
        "a float in an attribute of a class",
        """\
class T:
    n = 0.0

@mgjit.compile
def step(x):
    T.n = T.n * 0.9 + x
    return w * T.n
check(step(3.0), T.n)
check(step(3.0), T.n)
check(step(3.0), T.n)
""",
        "",
        "",
    ),
    Trap(
        "`T.n += 1` in `__init__`",
        """\
class T:
    n = 0

    def __init__(s, v):
        s.v = v
        T.n += 1

@mgjit.compile
def step(x):
    return w * T(x).v
check(step(3.0), T.n)
check(step(3.0), T.n)
check(step(3.0), T.n)
""",
        "",
        "",
    ),
    Trap(
        "`type(self).n += 1` in `__init__`",
        """\
class T:
    n = 0

    def __init__(s, v):
        s.v = v
        type(s).n += 1

@mgjit.compile
def step(x):
    return w * T(x).v
check(step(3.0), T.n)
check(step(3.0), T.n)
""",
        "",
        "",
    ),
    Trap(
        "`cls.n += 1` in a class method",
        """\
class T:
    n = 0

    @classmethod
    def inc(cls):
        cls.n += 1
        return cls.n

@mgjit.compile
def step(x):
    return w * x * T.inc()
check(step(3.0), T.n)
check(step(3.0), T.n)
""",
        "",
        "",
    ),
    Trap(
        "instance counter hides class",
        """\
class T:
    n = 0
a = T()

@mgjit.compile
def step(x):
    a.n += 1
    return w * x * a.n
check(step(3.0), a.n, T.n)
check(step(3.0), a.n, T.n)
check(step(3.0), a.n)
""",
        "",
        "",
    ),
    Trap(
        "a counter in an attribute of a function",
        """\
def f(x):
    f.n += 1
    return x * f.n
f.n = 0

@mgjit.compile
def step(x):
    return w * f(x)
check(step(3.0), f.n)
check(step(3.0), f.n)
check(step(3.0), f.n)
""",
        "",
        "",
    ),
    Trap(
        "counter dict",
        """\
T = {'n': 0}

@mgjit.compile
def step(x):
    T['n'] += 1
    return w * x * T['n']
check(step(3.0), T['n'])
check(step(3.0), T['n'])
""",
        "",
        "",
    ),
    Trap(
        "counter defaultdict",
        """\
T = collections.defaultdict(int)

@mgjit.compile
def step(x):
    T['n'] += 1
    return w * x * T['n']
check(step(3.0), T['n'])
check(step(3.0), T['n'])
""",
        "",
        "",
    ),
    Trap(
        "counter Counter",
        """\
T = collections.Counter()

@mgjit.compile
def step(x):
    T['n'] += 1
    return w * x
check(step(3.0), T['n'])
check(step(3.0), T['n'])
""",
        "",
        "",
    ),
    Trap(
        "counter list",
        """\
T = [0]

@mgjit.compile
def step(x):
    T[0] += 1
    return w * x * T[0]
check(step(3.0), T[0])
check(step(3.0), T[0])
check(step(3.0), T[0])
""",
        "",
        "",
    ),
    Trap(
        "counter array",
        """\
T = array.array('d', [0])

@mgjit.compile
def step(x):
    T[0] += 1
    return w * x * T[0]
check(step(3.0), T[0])
check(step(3.0), T[0])
check(step(3.0), T[0])
""",
        "SideEffectWarning",
        "step runs as plain Python: the step changes the variable T besides numbers ...",
    ),
    Trap(
        "a traced number assigned to an element of an array",
        """\
T = array.array('d', [0])

@mgjit.compile
def step(x):
    T[0] = x
    return w * x
check(step(3.0), T[0])
check(step(4.0), T[0])
""",
        "TraceError",
        "a number of the step is known only when the compiled step runs. Call a function ...",
    ),
    Trap(
        "deque state",
        """\
T = collections.deque([0.0, 0.0], maxlen=2)

@mgjit.compile
def step(x):
    T.append(x)
    return w * sum(T)
check(step(3.0))
check(step(4.0))
check(step(5.0))
""",
        "SideEffectWarning",
        "step runs as plain Python: the step changes the variable T[0], the variable ...",
    ),
    Trap(
        "set state",
        """\
T = set()

@mgjit.compile
def step(x):
    T.add(len(T))
    return w * len(T) * x
check(step(3.0))
check(step(4.0))
check(step(5.0))
""",
        "SideEffectWarning",
        "step runs as plain Python: the step changes the variable T besides numbers ...",
    ),
    Trap(
        "numbers popped from a list",
        """\
T = [1.0, 2.0, 3.0]

@mgjit.compile
def step(x):
    return w * x * T.pop()
check(step(1.0))
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "strings popped from a list",
        """\
T = ['a', 'b', 'a']

@mgjit.compile
def step(x):
    return w * x if T.pop() == 'a' else w + x
check(step(3.0))
check(step(3.0))
check(step(3.0))
""",
        "SideEffectWarning",
        "step runs as plain Python: the step changes the variable T besides numbers ...",
    ),
    Trap(
        "a Value is appended to a list",
        """\
T = []

@mgjit.compile
def step(x):
    y = w * x
    T.append(y)
    return y
check(step(3.0))
check(step(3.0))
""",
        "LeakError",
        "the step leaves a traced value in the variable T, and a compiled call has no such ...",
    ),
    Trap(
        "itertools.cycle",
        """\
T = itertools.cycle([1.0, 2.0])

@mgjit.compile
def step(x):
    return w * x * next(T)
check(step(3.0))
check(step(3.0))
check(step(3.0))
""",
        "TraceError",
        "the step takes the next element of the variable T, which existed before it. ...",
    ),
    Trap(
        "next(batches) generator",
        """\
T = (float(k) for k in range(9))

@mgjit.compile
def step(x):
    return w * x * next(T)
check(step(3.0))
check(step(3.0))
check(step(3.0))
""",
        "TraceError",
        "the step takes the next element of the variable T, which existed before it. ...",
    ),
    Trap(
        "a loop over an iterator from outside",
        """\
T = iter([1.0, 2.0, 3.0])

@mgjit.compile
def step(x):
    for v in T:
        return w * x * v
    return w
check(step(3.0))
check(step(3.0))
check(step(3.0))
check(step(3.0))
""",
        "TraceError",
        "the step takes the next element of the variable T, which existed before it. ...",
    ),
    Trap(
        "next() of an iterator in an attribute",
        """\
T = types.SimpleNamespace(it=iter([1.0, 2.0, 3.0]))

@mgjit.compile
def step(x):
    return w * x * next(T.it)
check(step(3.0))
check(step(3.0))
""",
        "TraceError",
        "the step takes the next element of SimpleNamespace.it, which existed before ...",
    ),
    Trap(
        "next() of an iterator in an enclosing function",
        """\
def make():
    it = iter([1.0, 2.0, 3.0])

    @mgjit.compile
    def step(x):
        return w * x * next(it)
    return step
step = make()
check(step(3.0))
check(step(3.0))
""",
        "TraceError",
        "the step takes the next element of the variable it, which existed before it. ...",
    ),
    Trap(
        "a custom iterator class",
        """\
class It:

    def __init__(s):
        s.i = 0

    def __iter__(s):
        return s

    def __next__(s):
        s.i += 1
        return float(s.i)
T = It()

@mgjit.compile
def step(x):
    return w * x * next(T)
check(step(3.0))
check(step(3.0))
check(step(3.0))
""",
        "",
        "",
    ),
    Trap(
        "a print of a constant",
        """\
@mgjit.compile
def step(x):
    print('here')
    return w * x
import io, contextlib
with contextlib.redirect_stdout(io.StringIO()):
    check(step(1.0), step(2.0))
""",
        "SideEffectWarning",
        "the step prints. That happens when it is traced, and not in compiled calls: ...",
    ),
    Trap(
        "a log record",
        """\
import logging
logger = logging.getLogger('situation')
logger.setLevel('INFO')
logger.propagate = False
logger.addHandler(logging.NullHandler())

@mgjit.compile
def step(x):
    logger.info('here')
    return w * x
check(step(1.0), step(2.0))
""",
        "SideEffectWarning",
        "the step logs something. That happens when it is traced, and not in compiled calls: ...",
    ),
    Trap(
        "a line is written to sys.stdout",
        """\
@mgjit.compile
def step(x):
    sys.stdout.write('here')
    return w * x
import sys, io, contextlib
with contextlib.redirect_stdout(io.StringIO()):
    check(step(1.0), step(2.0))
""",
        "SideEffectWarning",
        "the step writes to a file. That happens when it is traced, and not in compiled calls: ...",
    ),
    Trap(
        "a constant is appended to a log",
        """\
L = []

@mgjit.compile
def step(x):
    L.append('called')
    return w * x
check(step(1.0), step(2.0))
""",
        "",
        "",
    ),
    Trap(
        "numbers of itertools.count for nodes",
        """\
T = itertools.count()

@mgjit.compile
def step(x):
    n = next(T)
    return w * x
check(step(1.0), step(2.0))
""",
        "",
        "",
    ),
    Trap(
        "ids of nodes from a counter of the class",
        """\
class N:
    count = 0

    def __init__(s, d, c=()):
        s.data = d
        s.c = c
        N.count += 1
        s.id = N.count
p = N(2.0)

@mgjit.compile
def step(x):
    q = N(p.data * x, (p,))
    r = N(q.data + p.data, (q, p))
    order = sorted({r, q, p}, key=lambda n: n.id)
    p.data -= 0.1 * order[-1].data
    return order[-1].data + 10.0 * order[0].data
check(step(1.0), N.count, step(2.0), N.count)
N.count = 100
check(step(3.0), N.count)
""",
    ),
]
