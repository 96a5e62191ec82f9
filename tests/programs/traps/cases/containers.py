"""Captured numbers and containers that change between calls."""

from __future__ import annotations

from tests.programs.traps.traps import Trap

CASES = [
    Trap(
        "global number",
        """\
RATE = 0.5

@mgjit.compile
def step(x):
    return w * x * RATE
check(step(1.0))
RATE = 2.0
check(step(1.0))
RATE = -0.0
check(step(1.0))
RATE = 3
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "an attribute of an attribute of an attribute",
        """\
class A:
    pass
a = A()
a.b = A()
a.b.c = A()
a.b.c.d = A()
a.b.c.d.e = A()
a.b.c.d.e.rate = 0.5

@mgjit.compile
def step(x):
    return w * x * a.b.c.d.e.rate
check(step(1.0))
a.b.c.d.e.rate = 2.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "list element",
        """\
T = [1.0, 2.0]

@mgjit.compile
def step(x):
    return w * x * T[1]
check(step(1.0))
T[1] = 5.0
check(step(1.0))
T[0] = 7.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "list of lists",
        """\
T = [[1.0, 2.0], [3.0, 4.0]]

@mgjit.compile
def step(x):
    return w * x * T[1][0]
check(step(1.0))
T[1][0] = 5.0
check(step(1.0))
T[1] = [9.0, 9.0]
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "list of lists of lists",
        """\
T = [[[1.0, 2.0]], [[3.0, 4.0]]]

@mgjit.compile
def step(x):
    return w * x * T[1][0][0]
check(step(1.0))
T[1][0][0] = 5.0
check(step(1.0))
T[1][0] = [9.0, 9.0]
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "lists of different lengths",
        """\
T = [[1.0, 2.0], [3.0]]

@mgjit.compile
def step(x):
    return w * x * T[1][0]
check(step(1.0))
T[1][0] = 5.0
check(step(1.0))
T[1].append(9.0)
check(step(1.0))
T.append([1.0])
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "mixed list",
        """\
T = [1.0, 'a', 2.0]

@mgjit.compile
def step(x):
    return w * x * T[2]
check(step(1.0))
T[2] = 5.0
check(step(1.0))
T[1] = 'b'
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "list with None",
        """\
T = [1.0, None, 2.0]

@mgjit.compile
def step(x):
    return w * x * T[2]
check(step(1.0))
T[2] = 5.0
check(step(1.0))
T[1] = 1.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "list of strings",
        """\
T = ['a']

@mgjit.compile
def step(x):
    return w * x * len(T)
check(step(1.0))
T.append('b')
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "an element of a list of strings that decides",
        """\
T = ['a']

@mgjit.compile
def step(x):
    return w * (x if T[0] == 'a' else 2 * x)
check(step(1.0))
T[0] = 'b'
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "list of bools",
        """\
T = [True, False]

@mgjit.compile
def step(x):
    return w * (x if T[0] else 2 * x)
check(step(1.0))
T[0] = False
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "empty list grows",
        """\
T = []

@mgjit.compile
def step(x):
    return w * x + sum(T)
check(step(1.0))
T.append(5.0)
check(step(1.0))
T.append(5.0)
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "list grows",
        """\
T = [1.0]

@mgjit.compile
def step(x):
    return w * x + sum(T)
check(step(1.0))
T.append(5.0)
check(step(1.0))
del T[0]
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "long list changes",
        """\
T = [1.0] * 2000

@mgjit.compile
def step(x):
    return w * x + sum(T)
check(step(1.0))
T[3] = 5.0
check(step(1.0))
T[:] = [2.0] * 2000
check(step(1.0))
T = [3.0] * 2000
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "long list grows",
        """\
T = [1.0] * 2000

@mgjit.compile
def step(x):
    return w * x + sum(T)
check(step(1.0))
T.append(5.0)
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "tuple replaced",
        """\
T = (1.0, 2.0)

@mgjit.compile
def step(x):
    return w * x * T[1]
check(step(1.0))
T = (1.0, 5.0)
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "tuple with list",
        """\
T = ([1.0], 2.0)

@mgjit.compile
def step(x):
    return w * x * T[0][0]
check(step(1.0))
T[0][0] = 5.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "an entry of a dict",
        """\
T = {'a': 1.0}

@mgjit.compile
def step(x):
    return w * x * T['a']
check(step(1.0))
T['a'] = 5.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "an entry of a dict under a computed key",
        """\
T = {'a': 1.0}
K = 'a'

@mgjit.compile
def step(x):
    return w * x * T[K]
check(step(1.0))
T['a'] = 5.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "a value of a dict that is iterated over",
        """\
T = {'a': 1.0}

@mgjit.compile
def step(x):
    return w * x * sum(T.values())
check(step(1.0))
T['a'] = 5.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "a dict gets a key, and loses one",
        """\
T = {'a': 1.0}

@mgjit.compile
def step(x):
    return w * x * sum(T.values())
check(step(1.0))
T['b'] = 5.0
check(step(1.0))
del T['a']
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "the length of a dict",
        """\
T = {'a': 1.0}

@mgjit.compile
def step(x):
    return w * x * len(T)
check(step(1.0))
T['b'] = 5.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "a key that `get` did not find",
        """\
T = {}

@mgjit.compile
def step(x):
    return w * x * T.get('b', 1.0)
check(step(1.0))
T['b'] = 5.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "dict of lists",
        """\
T = {'a': [1.0]}
K = 'a'

@mgjit.compile
def step(x):
    return w * x * T[K][0]
check(step(1.0))
T['a'][0] = 5.0
check(step(1.0))
T['a'] = [6.0]
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "dict tuple key",
        """\
T = {(1, 2): 1.0}

@mgjit.compile
def step(x):
    return w * x * T[1, 2]
check(step(1.0))
T[1, 2] = 5.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "defaultdict",
        """\
T = collections.defaultdict(float, a=1.0)
K = 'a'

@mgjit.compile
def step(x):
    return w * x * T[K]
check(step(1.0))
T['a'] = 5.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "OrderedDict",
        """\
T = collections.OrderedDict(a=1.0, b=2.0)

@mgjit.compile
def step(x):
    return w * x * sum((v * (i + 1) for i, v in enumerate(T.values())))
check(step(1.0))
T.move_to_end('a')
check(step(1.0))
T['a'] = 7.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "Counter",
        """\
T = collections.Counter('aab')

@mgjit.compile
def step(x):
    return w * x * T['a']
check(step(1.0))
T['a'] += 1
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "ChainMap",
        """\
A = {'a': 1.0}
T = collections.ChainMap(A)

@mgjit.compile
def step(x):
    return w * x * T['a']
check(step(1.0))
A['a'] = 5.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "deque",
        """\
T = collections.deque([1.0, 2.0])

@mgjit.compile
def step(x):
    return w * x * T[1]
check(step(1.0))
T[1] = 5.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "set",
        """\
T = {1.0, 2.0}

@mgjit.compile
def step(x):
    return w * x * sum(T)
check(step(1.0))
T.add(5.0)
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "an element of a set that decides",
        """\
T = {1, 2}

@mgjit.compile
def step(x):
    return w * x if 3 in T else w + x
check(step(1.0))
T.add(3)
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "array.array",
        """\
T = array.array('d', [1.0, 2.0])

@mgjit.compile
def step(x):
    return w * x * T[1]
check(step(1.0))
T[1] = 5.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "bytearray",
        """\
T = bytearray(b'ab')

@mgjit.compile
def step(x):
    return w * x * T[1]
check(step(1.0))
T[1] = 5
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "memoryview",
        """\
B = bytearray(b'ab')
T = memoryview(B)

@mgjit.compile
def step(x):
    return w * x * T[1]
check(step(1.0))
T[1] = 5
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "SimpleNamespace",
        """\
T = types.SimpleNamespace(rate=1.0)

@mgjit.compile
def step(x):
    return w * x * T.rate
check(step(1.0))
T.rate = 5.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "an attribute by a computed name",
        """\
T = types.SimpleNamespace(rate=1.0)
N = 'rate'

@mgjit.compile
def step(x):
    return w * x * getattr(T, N)
check(step(1.0))
T.rate = 5.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "vars()",
        """\
T = types.SimpleNamespace(rate=1.0)

@mgjit.compile
def step(x):
    return w * x * sum(vars(T).values())
check(step(1.0))
T.rate = 5.0
check(step(1.0))
T.b = 1.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "globals()",
        """\
RATE = 1.0

@mgjit.compile
def step(x):
    return w * x * globals()['RATE']
check(step(1.0))
RATE = 5.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "Two lists become one, and two again",
        """\
T = types.SimpleNamespace(m=[0.5, 1.0], v=[0.25, 2.0])
@mgjit.compile
def step(x):
    T.m[0] = T.m[0] * x
    T.v[1] = T.v[1] + T.m[0]
    return T.v[0] + T.m[1]
for k in range(9):
    check(step(1.5), T.m, T.v)
    if k in (2, 6):
        T.v = T.m
    elif k == 4:
        T.m = list(T.m)
""",
    ),
    Trap(
        "An object gets another `__dict__`",
        """\
class Options:
    def __init__(self):
        self.rate = 2.0
options = Options()
@mgjit.compile
def step(x):
    return w * x * options.rate
check(step(1.0))
saved = dict(options.__dict__)
options.rate = 3.0
check(step(1.0))
options.__dict__ = saved
check(step(1.0))
options.rate = 5.0
check(step(1.0))
""",
    ),
    Trap(
        "A variable under a computed name",
        """\
RATE_1, RATE_2 = 2.0, 3.0
@mgjit.compile
def step(x):
    return w * x * sum(globals()[f"RATE_{k}"] for k in (1, 2))
check(step(1.0))
RATE_2 = 5.0
check(step(1.0))
""",
    ),
    Trap(
        "a list in a closure that several functions share is replaced",
        """\
def make():
    velocity = [0.0] * 3
    def update(x):
        nonlocal velocity
        velocity = [0.5 * v + x for v in velocity]
        return sum(velocity)
    update.peek = lambda: velocity
    return update
update = make()
@mgjit.compile
def step(x):
    return update(x)
for i in range(5): check(step(0.1 * i), update.peek())
""",
    ),
    Trap(
        "A list of numbers gets another length, is None, and a list again",
        """\
T = types.SimpleNamespace(m=[0.5, 1.5])
@mgjit.compile
def step(x):
    if T.m is None:
        T.m = [1.0, 1.0]
    for k in range(len(T.m)):
        T.m[k] = T.m[k] * x
    return sum(T.m)
for k in range(8):
    check(step(2.0), T.m)
    if k == 2:
        T.m = [1.0, 2.0, 3.0]
    elif k == 4:
        T.m = None
""",
    ),
    Trap(
        "A number becomes something else that converts to one",
        """\
from fractions import Fraction
T = types.SimpleNamespace(m=0.5)
@mgjit.compile
def step(x):
    T.m = T.m * 2 + 1
    return T.m * x
for k in range(5):
    check(step(2.0), T.m)
    if k == 2:
        T.m = Fraction(1, 3)
""",
    ),
    Trap(
        "A number becomes a Value, and a number again",
        """\
T = types.SimpleNamespace(b=0.5)
@mgjit.compile
def step(x):
    loss = w * x + T.b
    w.grad = 0.0
    loss.backward()
    w.data -= 0.1 * w.grad
    return loss
for k in range(6):
    check(step(1.0), w.data)
    if k == 2:
        T.b = mgjit.Value(2.0)
    elif k == 4:
        T.b = 1
""",
    ),
]
