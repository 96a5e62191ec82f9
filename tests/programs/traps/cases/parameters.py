"""Parameters that change between calls."""

from __future__ import annotations

from tests.programs.traps.traps import Trap

CASES = [
    Trap(
        "a parameter is replaced in a list",
        """\
P = [Value(1.0), Value(2.0)]

@mgjit.compile
def step(x):
    return P[0] * x + P[1]
check(step(1.0))
P[0] = Value(7.0)
check(step(1.0))
P[0].data = 9.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "a parameter of a user's own class is replaced in a list",
        """\
P = [Node(1.0), Node(2.0)]

@mgjit.compile
def step(x):
    return (P[0] * x + P[1]).data
check(step(1.0))
P[0] = Node(7.0)
check(step(1.0))
P[0].data = 9.0
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "one of many parameters is replaced, appended, deleted, moved",
        """\
P = [Node(1.0) for _ in range(40)]

@mgjit.compile
def step(x):
    s = P[0] * x
    for p in P:
        s = s + p * x
    s.backward()
    for p in P:
        p.data -= 0.1 * p.grad
        p.grad = 0.0
    return s.data
check(step(1.0))
P[0] = Node(7.0)
check(step(1.0))
P[0].data = 9.0
check(step(1.0))
P.append(Node(3.0))
check(step(1.0))
del P[4]
check(step(1.0))
P.reverse()
P[3] = Node(5.0)
check(step(1.0))
check(*[p.data for p in P])
""",
        "",
        "",
    ),
    Trap(
        "a parameter of mgjit.nn is replaced",
        """\
model = nn.Neuron(2)
model.w = [Value(0.5), Value(0.25)]

@mgjit.compile
def step(x):
    return model([x, x])
check(step(1.0))
model.w[0] = Value(10.0)
check(step(1.0))
model.b = Value(4.0)
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "a parameter is replaced in a dict",
        """\
P = {'a': Value(1.0)}
K = 'a'

@mgjit.compile
def step(x):
    return P[K] * x
check(step(1.0))
P['a'] = Value(3.0)
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "a parameter is replaced in an attribute",
        """\
P = types.SimpleNamespace(a=Value(1.0))

@mgjit.compile
def step(x):
    return P.a * x
check(step(1.0))
P.a = Value(3.0)
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "parameters are appended, reversed, removed",
        """\
P = [Value(1.0)]

@mgjit.compile
def step(x):
    return sum((p * x for p in P))
check(step(1.0))
P.append(Value(3.0))
check(step(1.0))
P.reverse()
check(step(1.0))
P.pop()
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "the first parameter is appended",
        """\
P = []

@mgjit.compile
def step(x):
    return sum((p * x for p in P), w)
check(step(1.0))
P.append(Value(3.0))
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "a layer is appended, replaced, changed",
        """\
class L:

    def __init__(s):
        s.w = [Value(1.0), Value(2.0)]

    def __call__(s, x):
        return s.w[0] * x + s.w[1]

class M:

    def __init__(s):
        s.layers = [L()]

    def __call__(s, x):
        for l in s.layers:
            x = l(x)
        return x
m = M()

@mgjit.compile
def step(x):
    return m(x)
check(step(1.0))
m.layers.append(L())
check(step(1.0))
m.layers[0] = L()
m.layers[0].w[0].data = 5.0
check(step(1.0))
m.layers[1].w[1] = Value(8.0)
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "a parameter is replaced in a list of lists",
        """\
P = [[Value(1.0)], [Value(2.0)]]

@mgjit.compile
def step(x):
    return P[0][0] * x + P[1][0]
check(step(1.0))
P[1][0] = Value(7.0)
check(step(1.0))
P[0] = [Value(8.0)]
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "a parameter is replaced in matrices in a dict",
        """\
P = {'wte': [[Node(1.0)], [Node(2.0)]]}

@mgjit.compile
def step(x):
    return (P['wte'][0][0] * x + P['wte'][1][0]).data
check(step(1.0))
P['wte'][1][0] = Node(7.0)
check(step(1.0))
P['wte'][0] = [Node(8.0)]
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "the same with computed keys",
        """\
P = {f'l{i}': [[Node(1.0)], [Node(2.0)]] for i in range(2)}

@mgjit.compile
def step(x):
    s = Node(0.0)
    for i in range(2):
        s = s + P[f'l{i}'][0][0] * x + P[f'l{i}'][1][0]
    return s.data
check(step(1.0))
P['l1'][1][0] = Node(7.0)
check(step(1.0))
P['l0'][0] = [Node(8.0)]
check(step(1.0))
P['l0'] = [[Node(9.0)], [Node(9.0)]]
check(step(1.0))
""",
        "",
        "",
    ),
    Trap(
        "Parameters in attributes of enum members",
        """\
class Kind(enum.Enum):
    W = 1
    B = 2
Kind.W.p, Kind.B.p = mgjit.Value(0.5), mgjit.Value(0.25)
@mgjit.compile
def step(x):
    loss = sum((kind.p * kind.p * x for kind in Kind), mgjit.Value(0.0))
    for kind in Kind:
        kind.p.grad = 0.0
    loss.backward()
    for kind in Kind:
        kind.p.data -= 0.1 * kind.p.grad
    return loss
for k in range(5):
    check(step(1.0), [kind.p.data for kind in Kind])
    if k == 2:
        Kind.W.p = mgjit.Value(2.0)
""",
    ),
    Trap(
        "A list of parameters that iterates in its own order",
        """\
class Params(list):
    skip = 0
    def __iter__(self):
        return (self[k] for k in range(len(self)) if k != self.skip)
ps = Params(mgjit.Value(0.25 * k) for k in range(4))
@mgjit.compile
def step(x):
    loss = sum((p * p * x for p in ps), mgjit.Value(0.0))
    for p in ps:
        p.grad = 0.0
    loss.backward()
    for p in ps:
        p.data -= 0.1 * p.grad
    return loss
for k in range(6):
    check(step(1.0), [p.data for p in list.copy(ps)])
    if k == 3:
        ps.skip = 2
""",
    ),
    Trap(
        "Nodes of a class derived from Value that has attributes",
        """\
class Weight(mgjit.Value):
    def __init__(self, data, name="w"):
        super().__init__(data)
        self.name = name
weight = Weight(0.5)
@mgjit.compile
def step(x):
    loss = Weight(0.25, "bias") + weight * x
    weight.grad = 0.0
    loss.backward()
    weight.data -= 0.1 * weight.grad
    return loss
for k in range(4):
    check(step(1.0 + k), weight.data, weight.grad)
""",
    ),
    Trap(
        "A moment that was made by `hasattr` is deleted",
        """\
class Node:
    def __init__(self, data):
        self.data = data
ps = [Node(0.5 + k) for k in range(20)]
@mgjit.compile
def step(x):
    for p in ps:
        if not hasattr(p, "m"):
            p.m = 0.0
        p.m = 0.9 * p.m + p.data * x
        p.data -= 0.01 * p.m
    return ps[0].data
for k in range(6):
    check(step(1.0 + k), [(p.data, p.m) for p in ps])
    if k == 3:
        for p in ps:
            del p.m
        check([hasattr(p, "m") for p in ps], [sorted(vars(p)) for p in ps])
""",
        "SideEffectWarning",
        "step runs as plain Python: the step changes Node.m besides ...",
    ),
]
