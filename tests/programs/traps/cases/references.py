"""Other ways to reach something."""

from __future__ import annotations

from tests.programs.traps.traps import Trap

CASES = [
    Trap(
        "ContextVar",
        """\
import contextvars
V = contextvars.ContextVar('V', default=1.0)

@mgjit.compile
def step(x):
    return w * x * V.get()
check(step(1.0))
V.set(2.0)
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "threading.local",
        """\
V = threading.local()
V.r = 1.0

@mgjit.compile
def step(x):
    return w * x * V.r
check(step(1.0))
V.r = 2.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "weakref",
        """\
class A:
    r = 1.0
a = A()
a.r = 1.0
V = weakref.ref(a)

@mgjit.compile
def step(x):
    return w * x * V().r
check(step(1.0))
a.r = 2.0
check(step(1.0))
""",
        "PlainWarning",
        "to what nothing else keeps, which may answer something else at each call ...",
    ),
    Trap(
        "WeakValueDictionary",
        """\
class A:
    r = 1.0
a = A()
a.r = 1.0
V = weakref.WeakValueDictionary(a=a)

@mgjit.compile
def step(x):
    return w * x * V['a'].r
check(step(1.0))
a.r = 2.0
check(step(1.0))
""",
        "PlainWarning",
        "the step uses a weakref.WeakValueDictionary, which may answer something else at each call ...",
    ),
    Trap(
        "MappingProxy",
        """\
D = {'a': 1.0}
V = types.MappingProxyType(D)

@mgjit.compile
def step(x):
    return w * x * V['a']
check(step(1.0))
D['a'] = 2.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "user list subclass",
        """\
class L(list):
    pass
V = L([1.0, 2.0])

@mgjit.compile
def step(x):
    return w * x * V[0]
check(step(1.0))
V[0] = 2.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "user dict subclass",
        """\
class L(dict):
    pass
V = L(a=1.0)
K = 'a'

@mgjit.compile
def step(x):
    return w * x * V[K]
check(step(1.0))
V['a'] = 2.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "dict view kept",
        """\
D = {'a': 1.0}
V = D.values()

@mgjit.compile
def step(x):
    return w * x * sum(V)
check(step(1.0))
D['a'] = 2.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "bound method kept",
        """\
class A:
    r = 1.0

    def f(s, x):
        return x * s.r
a = A()
a.r = 1.0
f = a.f

@mgjit.compile
def step(x):
    return w * f(x)
check(step(1.0))
a.r = 2.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "a bound `append` kept in a variable",
        """\
L = []
add = L.append

@mgjit.compile
def step(x):
    add(1)
    return w * x
check(step(1.0), step(2.0))
""",
        "",
        "",
    ),
    Trap(
        "a bound `__getitem__` kept in a variable",
        """\
L = [1.0]
g = L.__getitem__

@mgjit.compile
def step(x):
    return w * x * g(0)
check(step(1.0))
L[0] = 2.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "itemgetter",
        """\
L = [1.0]
g = operator.itemgetter(0)

@mgjit.compile
def step(x):
    return w * x * g(L)
check(step(1.0))
L[0] = 2.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "attrgetter",
        """\
L = types.SimpleNamespace(a=1.0)
g = operator.attrgetter('a')

@mgjit.compile
def step(x):
    return w * x * g(L)
check(step(1.0))
L.a = 2.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "enum",
        """\
class E(enum.Enum):
    A = 1.0
    B = 2.0
M = E.A

@mgjit.compile
def step(x):
    return w * x * M.value
check(step(1.0))
M = E.B
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "Fraction global",
        """\
import fractions
R = fractions.Fraction(1, 3)

@mgjit.compile
def step(x):
    return w * x * R
check(step(1.0))
R = fractions.Fraction(2, 3)
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "threading.local in several threads",
        """\
import threading
local = threading.local()
local.rate = 2.0
@mgjit.compile
def step(x):
    return (w * x * local.rate).data
found = []
def work(rate):
    local.rate = rate
    found.extend(step(1.0 + k) for k in range(3))
for rate in (3.0, 5.0):
    thread = threading.Thread(target=work, args=(rate,))
    thread.start()
    thread.join()
    check(step(1.0), found)
""",
    ),
    Trap(
        "A ContextVar that the step counts",
        """\
import contextvars
var = contextvars.ContextVar("n", default=0)
@mgjit.compile
def step(x):
    var.set(var.get() + 1)
    return w.data * x * var.get()
for k in range(4):
    check(step(1.0 + k), var.get())
""",
        "SideEffectWarning",
        "step runs as plain Python: the step changes the variable var besides ...",
    ),
]
