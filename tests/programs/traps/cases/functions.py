"""Functions, classes and modules that change between calls."""

from __future__ import annotations

from tests.programs.traps.traps import Trap

CASES = [
    Trap(
        "function redefined in list",
        """\
def f(x):
    return x * 2

def g(x):
    return x * 3
T = [f]

@mgjit.compile
def step(x):
    return w * T[0](x)
check(step(1.0))
T[0] = g
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "a function is replaced in a dict",
        """\
def f(x):
    return x * 2

def g(x):
    return x * 3
T = {'f': f}

@mgjit.compile
def step(x):
    return w * T['f'](x)
check(step(1.0))
T['f'] = g
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "a function is replaced in an attribute",
        """\
def f(x):
    return x * 2

def g(x):
    return x * 3
T = types.SimpleNamespace(f=f)

@mgjit.compile
def step(x):
    return w * T.f(x)
check(step(1.0))
T.f = g
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "helper of helper redefined",
        """\
def f(x):
    return x * 2

def h(x):
    return f(x)

@mgjit.compile
def step(x):
    return w * h(x)
check(step(1.0))

def f(x):
    return x * 3
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "a method is monkeypatched on its class",
        """\
class A:

    def f(s, x):
        return x * 2
a = A()

@mgjit.compile
def step(x):
    return w * a.f(x)
check(step(1.0))
A.f = lambda s, x: x * 3
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "an operator of the class of parameters is monkeypatched",
        """\
P = [Node(1.0)]

@mgjit.compile
def step(x):
    return (P[0] * x).data
check(step(1.0))
old = Node.__mul__
Node.__mul__ = lambda s, o: old(s, o) + s
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "a method is set on an instance",
        """\
class A:

    def f(s, x):
        return x * 2
a = A()

@mgjit.compile
def step(x):
    return w * a.f(x)
check(step(1.0))
a.f = lambda x: x * 3
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "an inherited method is monkeypatched",
        """\
class A:

    def f(s, x):
        return x * 2

class B(A):
    pass
a = B()

@mgjit.compile
def step(x):
    return w * a.f(x)
check(step(1.0))
A.f = lambda s, x: x * 3
check(step(1.0))
B.f = lambda s, x: x * 4
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "property replaced",
        """\
class A:
    r = property(lambda s: 2.0)
a = A()

@mgjit.compile
def step(x):
    return w * a.r * x
check(step(1.0))
A.r = property(lambda s: 3.0)
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "staticmethod replaced",
        """\
class A:

    @staticmethod
    def r():
        return 2.0
a = A()

@mgjit.compile
def step(x):
    return w * a.r() * x
check(step(1.0))
A.r = staticmethod(lambda: 3.0)
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "an inherited attribute of a class changes",
        """\
class A:
    r = 2.0

class B(A):
    pass
a = B()

@mgjit.compile
def step(x):
    return w * a.r * x
check(step(1.0))
A.r = 3.0
check(step(1.0))
B.r = 4.0
check(step(1.0))
a.r = 5.0
check(step(1.0))
del a.r
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "the same, read through the class",
        """\
class A:
    r = 2.0

class B(A):
    pass

@mgjit.compile
def step(x):
    return w * B.r * x
check(step(1.0))
A.r = 3.0
check(step(1.0))
B.r = 4.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "`__class__` is assigned",
        """\
class A:

    def f(s, x):
        return x * 2

class B:

    def f(s, x):
        return x * 3
a = A()

@mgjit.compile
def step(x):
    return w * a.f(x)
check(step(1.0))
a.__class__ = B
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "math.exp is monkeypatched",
        """\
@mgjit.compile
def step(x):
    return w * math.exp(x)
check(step(1.0))
old = math.exp
try:
    math.exp = lambda v: v * 7.0
    check(step(1.0))
finally:
    math.exp = old
""",
        "",
        "",
    ),
    Trap(
        "an imported function is rebound",
        """\
from math import exp

@mgjit.compile
def step(x):
    return w * exp(x)
check(step(1.0))
exp = lambda v: v * 7.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "a number in a module made at run time",
        """\
M = types.ModuleType('M')
M.rate = 2.0

@mgjit.compile
def step(x):
    return w * M.rate * x
check(step(1.0))
M.rate = 3.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "a number in an imported module",
        """\
import sys
M = types.ModuleType('Mx')
M.__file__ = __file__
M.rate = 2.0
sys.modules['Mx'] = M
import Mx

@mgjit.compile
def step(x):
    return w * Mx.rate * x
check(step(1.0))
M.rate = 3.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "a function in an imported module",
        """\
import sys
M = types.ModuleType('My')
M.__file__ = __file__
M.f = lambda x: x * 2.0
sys.modules['My'] = M
import My

@mgjit.compile
def step(x):
    return w * My.f(x)
check(step(1.0))
M.f = lambda x: x * 3.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "builtin shadowed",
        """\
@mgjit.compile
def step(x):
    return w * abs(x)
check(step(-1.0))

def abs(v):
    return v * 5
check(step(-1.0))
""",
        "",
        "",
    ),
    Trap(
        "a builtin is monkeypatched",
        """\
import builtins

@mgjit.compile
def step(x):
    return w * abs(x)
check(step(-1.0))
old = builtins.abs
try:
    builtins.abs = lambda v: v * 5
    check(step(-1.0))
finally:
    builtins.abs = old
""",
        "",
        "",
    ),
    Trap(
        "`__defaults__` are assigned",
        """\
def f(x, k=2.0):
    return x * k

@mgjit.compile
def step(x):
    return w * f(x)
check(step(1.0))
f.__defaults__ = (3.0,)
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "a keyword default is assigned",
        """\
def f(x, *, k=2.0):
    return x * k

@mgjit.compile
def step(x):
    return w * f(x)
check(step(1.0))
f.__kwdefaults__['k'] = 3.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "mutable default list of helper mutated",
        """\
L = [2.0]

def f(x, k=L):
    return x * k[0]
del L

@mgjit.compile
def step(x):
    return w * f(x)
check(step(1.0))
f.__defaults__[0][0] = 3.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "a mutable default to which the step appends",
        """\
@mgjit.compile
def step(x, k=[]):
    k.append(x)
    return w * sum(k)
check(step(1.0))
check(step(2.0))
""",
        "PlainWarning",
        "the step adds elements to argument k, or removes some",
    ),
    Trap(
        "`__code__` is assigned",
        """\
def f(x):
    return x * 2

def g(x):
    return x * 3

@mgjit.compile
def step(x):
    return w * f(x)
check(step(1.0))
f.__code__ = g.__code__
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "function attribute",
        """\
def f(x):
    return x * f.k
f.k = 2.0

@mgjit.compile
def step(x):
    return w * f(x)
check(step(1.0))
f.k = 3.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "step attribute",
        """\
@mgjit.compile
def step(x):
    return w * x * step.k
step.k = 2.0
check(step(1.0))
step.k = 3.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "keywords of a functools.partial change",
        """\
def f(x, k):
    return x * k
p = functools.partial(f, k=2.0)

@mgjit.compile
def step(x):
    return w * p(x)
check(step(1.0))
p.keywords['k'] = 3.0
check(step(1.0))
p = functools.partial(f, k=4.0)
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "a list in a functools.partial changes",
        """\
def f(k, x):
    return x * k[0]
L = [2.0]
p = functools.partial(f, L)

@mgjit.compile
def step(x):
    return w * p(x)
check(step(1.0))
L[0] = 3.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "a variable is deleted",
        """\
RATE = 2.0

@mgjit.compile
def step(x):
    return w * x * RATE
check(step(1.0))
del RATE
try:
    step(1.0)
except NameError:
    check('NameError')
RATE = 3.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "attribute deleted",
        """\
T = types.SimpleNamespace(rate=1.0)

@mgjit.compile
def step(x):
    return w * x * getattr(T, 'rate', 7.0)
check(step(1.0))
del T.rate
check(step(1.0))
T.rate = 2.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "an attribute that `hasattr` did not find",
        """\
T = types.SimpleNamespace()

@mgjit.compile
def step(x):
    return w * x if hasattr(T, 'rate') else w + x
check(step(3.0))
T.rate = 1
check(step(3.0))
""",
        "",
        "",
    ),
    Trap(
        "a variable that did not exist is assigned",
        """\
@mgjit.compile
def step(x):
    try:
        return w * x * LATER
    except NameError:
        return w + x
check(step(3.0))
LATER = 2.0
check(step(3.0))
""",
        "",
        "",
    ),
    Trap(
        "`__bases__` are assigned",
        """\
class A:
    def act(self, x):
        return x * 2.0
class B(A):
    def act(self, x):
        return x * 3.0
class C(A):
    pass
c = C()
@mgjit.compile
def step(x):
    return c.act(w * x)
check(step(1.0))
C.__bases__ = (B,)
check(step(1.0))
""",
    ),
    Trap(
        "A class is registered with an abstract base class",
        """\
import abc
class Base(abc.ABC):
    pass
class Own:
    pass
own = Own()
@mgjit.compile
def step(x):
    return w * x * (2.0 if isinstance(own, Base) else 3.0)
check(step(1.0))
Base.register(Own)
check(step(1.0))
""",
    ),
    Trap(
        "A module with `__getattr__` gets the name itself",
        """\
module = types.ModuleType("lazy")
exec("def __getattr__(name): return 2.0", vars(module))
@mgjit.compile
def step(x):
    return w * x * module.rate
check(step(1.0))
module.rate = 3.0
check(step(1.0))
""",
    ),
    Trap(
        "A module that the step imports is replaced",
        """\
import sys
def put(rate):
    sys.modules["rates"] = types.ModuleType("rates")
    sys.modules["rates"].rate = rate
put(2.0)
@mgjit.compile
def step(x):
    from rates import rate
    return w * x * rate
check(step(1.0))
put(3.0)
check(step(1.0))
""",
    ),
]
