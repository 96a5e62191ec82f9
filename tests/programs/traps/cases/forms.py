"""Forms of a step."""

from __future__ import annotations

from tests.programs.traps.traps import Trap

CASES = [
    Trap(
        "a function",
        """\
@mgjit.compile
def step(x):
    return w * x
check(step(1.0), step(2.0))
""",
        "",
        "",
    ),
    Trap(
        "a lambda",
        """\
step = mgjit.compile(lambda x: w * x)
check(step(1.0), step(2.0))
""",
        "",
        "",
    ),
    Trap(
        "a nested function with enclosing variables",
        """\
def make(k):

    @mgjit.compile
    def step(x):
        return w * x * k
    return step
a = make(2.0)
b = make(3.0)
check(a(1.0), b(1.0), a(2.0))
""",
        "",
        "",
    ),
    Trap(
        "a functools.partial of a function",
        """\
def f(k, x):
    return w * x * k
step = mgjit.compile(functools.partial(f, 2.0))
check(step(1.0), step(2.0))
""",
        "",
        "",
    ),
    Trap(
        "an object with `__call__`",
        """\
class F:

    def __init__(s):
        s.k = 2.0

    def __call__(s, x):
        s.k *= 0.5
        return w * x * s.k
f = F()
step = mgjit.compile(f)
check(step(1.0), step(2.0), f.k)
""",
        "",
        "",
    ),
    Trap(
        "a method, decorated in the class",
        """\
class T:

    def __init__(s, k):
        s.k = k
        s.n = 0

    @mgjit.compile
    def step(s, x):
        s.n += 1
        return w * x * s.k
a = T(2.0)
b = T(3.0)
check(a.step(1.0), b.step(1.0), a.step(2.0), a.n, b.n)
""",
        "",
        "",
    ),
    Trap(
        "a bound method, decorated from outside",
        """\
class T:

    def __init__(s, k):
        s.k = k
        s.n = 0

    def step(s, x):
        s.n += 1
        return w * x * s.k
a = T(2.0)
step = mgjit.compile(a.step)
check(step(1.0), step(2.0), a.n)
""",
        "",
        "",
    ),
    Trap(
        "a static method",
        """\
class T:

    @staticmethod
    @mgjit.compile
    def step(x):
        return w * x
check(T.step(1.0), T().step(2.0))
""",
        "",
        "",
    ),
    Trap(
        "a class method",
        """\
class T:
    k = 2.0

    @classmethod
    def f(cls, x):
        return w * x * cls.k
step = mgjit.compile(T.f)
check(step(1.0))
T.k = 3.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "a method that calls `super()`",
        """\
class A:

    def step(s, x):
        return w * x

class B(A):

    @mgjit.compile
    def step(s, x):
        return super().step(x) * 2.0
check(B().step(1.0))
b = B()
check(b.step(2.0), b.step(3.0))
""",
        "",
        "",
    ),
    Trap(
        "a class with `__slots__`",
        """\
class P:
    __slots__ = ('data', 'grad')

    def __init__(s, d):
        s.data = d
        s.grad = 0.0
ps = [P(1.0 * k) for k in range(20)]

@mgjit.compile
def step(x):
    for p in ps:
        p.grad += x
        p.data -= 0.1 * p.grad
    return sum((p.data for p in ps))
check(step(1.0), step(2.0), [p.grad for p in ps])
""",
        "",
        "",
    ),
    Trap(
        "a property",
        """\
class T:

    def __init__(s):
        s._k = 2.0

    @property
    def k(s):
        return s._k * 2.0

    @k.setter
    def k(s, v):
        s._k = v
a = T()

@mgjit.compile
def step(x):
    a.k = a.k * 0.25
    return w * x * a.k
check(step(1.0), step(2.0), a.k)
a.k = 7.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "a custom descriptor",
        """\
class F:

    def __set_name__(s, o, n):
        s.n = '_' + n

    def __get__(s, o, t):
        return getattr(o, s.n)

    def __set__(s, o, v):
        setattr(o, s.n, v)

class T:
    k = F()

    def __init__(s):
        s.k = 2.0
a = T()

@mgjit.compile
def step(x):
    a.k = a.k * 0.5
    return w * x * a.k
check(step(1.0), step(2.0), a.k)
a.k = 7.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "a dataclass as an argument",
        """\
@dataclasses.dataclass
class B:
    x: float
    y: float

@mgjit.compile
def step(b):
    return w * b.x + b.y
check(step(B(1.0, 2.0)), step(B(3.0, 4.0)))
""",
        "",
        "",
    ),
    Trap(
        "a frozen dataclass as an argument",
        """\
@dataclasses.dataclass(frozen=True)
class B:
    x: float
    y: float

@mgjit.compile
def step(b):
    return w * b.x + b.y
check(step(B(1.0, 2.0)), step(B(3.0, 4.0)))
""",
        "",
        "",
    ),
    Trap(
        "a dataclass whose fields the step assigns",
        """\
@dataclasses.dataclass
class S:
    m: float = 0.0
    t: int = 0
s = S()

@mgjit.compile
def step(x):
    s.t += 1
    s.m = 0.9 * s.m + x
    return w * s.m
check(step(1.0), step(2.0), s.m, s.t)
""",
        "",
        "",
    ),
    Trap(
        "a named tuple as an argument",
        """\
class B(typing.NamedTuple):
    x: float
    y: float

@mgjit.compile
def step(b):
    return w * b.x + b.y
check(step(B(1.0, 2.0)), step(B(3.0, 4.0)))
""",
        "",
        "",
    ),
    Trap(
        "a named tuple of parameters",
        """\
class B(typing.NamedTuple):
    a: typing.Any
    b: typing.Any
P = B(Value(1.0), Value(2.0))

@mgjit.compile
def step(x):
    y = P.a * x + P.b
    y.backward()
    for p in P:
        p.data -= 0.1 * p.grad
    return y
check(step(1.0), step(2.0), P.a.data, P.b.grad)
""",
        "",
        "",
    ),
    Trap(
        "a result that is a dict, a named tuple, a dataclass",
        """\
B = collections.namedtuple('B', 'x y')

@mgjit.compile
def step(x):
    return {'a': w * x, 'b': B(x, 2.0)}
check(step(1.0)['a'], step(2.0)['b'].x)
""",
        "",
        "",
    ),
    Trap(
        "an enum that decides a branch",
        """\
class E(enum.Enum):
    A = 1
    B = 2

@mgjit.compile
def step(x, m):
    return w * x if m is E.A else w + x
check(step(3.0, E.A), step(3.0, E.B), step(4.0, E.A))
""",
        "",
        "",
    ),
    Trap(
        "`*args` and `**kwargs`",
        """\
@mgjit.compile
def step(*xs, **k):
    return sum((w * x for x in xs)) * k.get('r', 1.0)
check(step(1.0, 2.0), step(1.0), step(2.0, 3.0, r=2.0))
""",
        "",
        "",
    ),
    Trap(
        "keyword-only and positional-only parameters",
        """\
@mgjit.compile
def step(x, /, y, *, r=2.0):
    return w * x * y * r
check(step(1.0, 2.0), step(1.0, y=3.0), step(1.0, 2.0, r=4.0))
""",
        "",
        "",
    ),
    Trap(
        "a custom decorator below @mgjit.compile",
        """\
def twice(f):

    @functools.wraps(f)
    def g(*a):
        return f(*a) * 2.0
    return g

@mgjit.compile
@twice
def step(x):
    return w * x
check(step(1.0), step(2.0))
""",
        "",
        "",
    ),
    Trap(
        "a custom decorator above @mgjit.compile",
        """\
n = []

def counted(f):

    @functools.wraps(f)
    def g(*a):
        n.append(1)
        return f(*a)
    return g

@counted
@mgjit.compile
def step(x):
    return w * x
check(step(1.0), step(2.0), len(n))
""",
        "",
        "",
    ),
    Trap(
        "a step called by a step",
        """\
@mgjit.compile
def inner(x):
    return w * x

@mgjit.compile
def step(x):
    return inner(x) + inner(x + 1.0)
check(step(1.0), inner(2.0), step(3.0))
""",
        "",
        "",
    ),
    Trap(
        "a generator of batches, outside",
        """\
def batches():
    for k in range(4):
        yield [1.0 * k, 2.0 * k]

@mgjit.compile
def step(b):
    return sum((w * x for x in b))
for b in batches():
    check(step(b))
""",
        "",
        "",
    ),
    Trap(
        "a generator inside the step",
        """\
def parts(x):
    for k in range(3):
        yield (x * k)

@mgjit.compile
def step(x):
    return w * sum(parts(x))
check(step(1.0), step(2.0))
""",
        "",
        "",
    ),
    Trap(
        "comprehensions, with `:=`",
        """\
@mgjit.compile
def step(xs):
    return sum([y * y for x in xs if (y := (w * x)) is not None])
check(step([1.0, 2.0]), step([3.0, 4.0]))
""",
        "",
        "",
    ),
    Trap(
        "functools.reduce, itertools, operator, map and filter",
        """\
@mgjit.compile
def step(xs):
    a = functools.reduce(operator.add, map(lambda x: w * x, xs))
    b = list(itertools.accumulate(xs))
    c = sum((x * y for x, y in itertools.product(xs, xs)))
    return a + b[-1] + c + sum(itertools.chain(xs, filter(None.__class__.__ne__ and (lambda q: True), xs)))
check(step([1.0, 2.0]), step([3.0, 4.0]))
""",
        "",
        "",
    ),
    Trap(
        "recursion",
        """\
def f(x, n):
    return x if n == 0 else f(x * w.data, n - 1)

@mgjit.compile(static=('n',))
def step(x, n):
    return f(x, n)
check(step(1.0, 3), step(2.0, 4))
""",
        "",
        "",
    ),
    Trap(
        "an early return that a static argument decides",
        """\
@mgjit.compile
def step(x, fast):
    if fast:
        return w * x
    return w * x * x
check(step(3.0, True), step(3.0, False))
""",
        "",
        "",
    ),
    Trap(
        "code without source (`exec`, a console)",
        """\
space = {'w': w, 'mgjit': mgjit}
exec('def f(x): return w*x+x', space)
step = mgjit.compile(space['f'])
check(step(1.0), step(2.0))
""",
        "",
        "",
    ),
    Trap(
        "a conditional expression in code without source",
        """\
space = {'w': w, 'mgjit': mgjit}
exec('def f(x): return w*x if x>0 else w', space)
step = mgjit.compile(space['f'])
check(step(1.0), step(-2.0))
""",
    ),
    Trap(
        "a cell of a notebook that is run again",
        """\
import linecache
space = {'w': w, 'mgjit': mgjit, 'step': None}

def cell(text, n):
    name = f'<ipython-input-{n}>'
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, 'exec'), space)
cell('def helper(x): return x if x>0 else -x*2.\\n', 1)
cell('def f(x): return w*helper(x)\\n', 2)
step = mgjit.compile(space['f'])
check(step(-1.0), step(2.0))
cell('def helper(x): return x*5.\\n', 3)
check(step(-1.0), step(2.0))
""",
        "",
        "",
    ),
    Trap(
        "copy.deepcopy of a model with a compiled method",
        """\
class M:

    def __init__(s):
        s.p = Value(2.0)

    @mgjit.compile
    def step(s, x):
        y = s.p * x
        y.backward()
        s.p.data -= 0.1 * s.p.grad
        return y
a = M()
check(a.step(1.0))
b = copy.deepcopy(a)
check(b.step(1.0), b.step(2.0), a.p.data, b.p.data)
""",
        "",
        "",
    ),
    Trap(
        "pickling a model after calls",
        """\
P = Node(2.0)

@mgjit.compile
def step(x):
    y = P * x
    y.backward()
    P.data -= 0.1 * P.grad
    P.grad = 0.0
    return y.data
check(step(1.0))
q = pickle.loads(pickle.dumps(P))
check(q.data, P.data, step(2.0), q.data)
""",
        "",
        "",
    ),
    Trap(
        "threads that call one step",
        """\
r = []

@mgjit.compile
def step(x):
    return w * x
def call(k):
    y = step(1.0 * k)
    r.append(float(getattr(y, 'data', y)))
ts = [threading.Thread(target=call, args=(k,)) for k in range(4)]
[q.start() for q in ts]
[q.join() for q in ts]
check(sorted(r))
""",
        "",
        "",
    ),
    Trap(
        "try and except around code that fails before any arithmetic",
        """\
@mgjit.compile
def step(x):
    try:
        k = {}['a']
    except KeyError:
        k = 2.0
    return w * x * k
check(step(1.0), step(2.0))
""",
        "",
        "",
    ),
    Trap(
        "an exception raised by the step",
        """\
@mgjit.compile
def step(x, ok):
    w.data = w.data * 2.0
    if not ok:
        raise ValueError('mine')
    return w * x
check(step(1.0, True))
try:
    step(1.0, False)
except ValueError as e:
    check(str(e))
w.data = 8.0
check(step(1.0, True), w.data)
""",
        "",
        "",
    ),
]
