"""Autograd engines that people write for a course"""

from __future__ import annotations

from tests.programs.people.people import Program

_CLOSURES = """
class Value:
    def __init__(self, data, prev=(), op=""):
        self.data, self.grad, self._prev, self._op, self._backward = data, 0.0, tuple(prev), op, lambda: None
    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other), "+")
        def back():
            self.grad += out.grad
            other.grad += out.grad
        out._backward = back
        return out
    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other), "*")
        def back():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad
        out._backward = back
        return out
    __radd__, __rmul__ = __add__, __mul__
    def __neg__(self): return self * -1.0
    def __sub__(self, other): return self + -other
    def __pow__(self, n):
        out = Value(self.data ** n, (self,), "**")
        def back(): self.grad += n * self.data ** (n - 1) * out.grad
        out._backward = back
        return out
    def relu(self):
        out = Value(self.data if self.data > 0 else 0.0, (self,), "relu")
        def back(): self.grad += (out.data > 0) * out.grad
        out._backward = back
        return out
    def tanh(self):
        out = Value(math.tanh(self.data), (self,), "tanh")
        def back(): self.grad += (1.0 - out.data ** 2) * out.grad
        out._backward = back
        return out
    def exp(self):
        out = Value(math.exp(self.data), (self,), "exp")
        def back(): self.grad += out.data * out.grad
        out._backward = back
        return out
    def log(self):
        out = Value(math.log(self.data), (self,), "log")
        def back(): self.grad += out.grad / self.data
        out._backward = back
        return out
    def backward(self):
        topo, seen = [], set()
        def build(v):
            if v not in seen:
                seen.add(v)
                for child in v._prev: build(child)
                topo.append(v)
        build(self)
        self.grad = 1.0
        for v in reversed(topo): v._backward()

rng = random.Random(5)
W = [[Value(rng.uniform(-1, 1)) for _ in range(3)] for _ in range(4)]
V = [[Value(rng.uniform(-1, 1)) for _ in range(4)] for _ in range(3)]
params = [p for row in W + V for p in row]
"""
_TUPLES = """
class Value:
    __slots__ = ("data", "grad", "_children", "_local_grads")
    def __init__(self, data, children=(), local_grads=()):
        self.data, self.grad, self._children, self._local_grads = data, 0, children, local_grads
    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data + other.data, (self, other), (1, 1))
    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data * other.data, (self, other), (other.data, self.data))
    __radd__, __rmul__ = __add__, __mul__
    def __neg__(self): return self * -1
    def __sub__(self, other): return self + -other
    def __pow__(self, n): return Value(self.data ** n, (self,), (n * self.data ** (n - 1),))
    def tanh(self): t = math.tanh(self.data); return Value(t, (self,), (1.0 - t * t,))
    def relu(self): return Value(max(0.0, self.data), (self,), (float(self.data > 0),))
    def exp(self): e = math.exp(self.data); return Value(e, (self,), (e,))
    def log(self): return Value(math.log(self.data), (self,), (1 / self.data,))
    def backward(self):
        topo, seen = [], set()
        def build(v):
            if v not in seen:
                seen.add(v)
                for child in v._children: build(child)
                topo.append(v)
        build(self)
        self.grad = 1
        for v in reversed(topo):
            for child, local in zip(v._children, v._local_grads):
                child.grad += local * v.grad

rng = random.Random(5)
W = [[Value(rng.uniform(-1, 1)) for _ in range(3)] for _ in range(4)]
V = [[Value(rng.uniform(-1, 1)) for _ in range(4)] for _ in range(3)]
params = [p for row in W + V for p in row]
"""
_MINITORCH = """
_var_count = 0

class Scalar:
    def __init__(self, v, parents=(), derivatives=(), name=None):
        global _var_count
        _var_count += 1
        self.unique_id = _var_count
        self.data = float(v)
        self.derivative = None
        self.parents, self.derivatives = parents, derivatives
        self.name = name if name is not None else {NAME}
    def __mul__(self, b):
        b = b if isinstance(b, Scalar) else Scalar(b)
        return Scalar(self.data * b.data, (self, b), (b.data, self.data))
    def __add__(self, b):
        b = b if isinstance(b, Scalar) else Scalar(b)
        return Scalar(self.data + b.data, (self, b), (1.0, 1.0))
    def accumulate(self, d):
        if self.derivative is None:
            self.derivative = 0.0
        self.derivative += d
    def backward(self, d=1.0):
        order, seen = [], set()
        def visit(v):
            if v.unique_id in seen: return
            seen.add(v.unique_id)
            for p in v.parents: visit(p)
            order.insert(0, v)
        visit(self)
        grads = {self.unique_id: d}
        for v in order:
            g = grads.pop(v.unique_id)
            if not v.parents:
                v.accumulate(g)
            for p, local in zip(v.parents, v.derivatives):
                grads[p.unique_id] = grads.get(p.unique_id, 0.0) + g * local

w = [Scalar(0.5), Scalar(-0.25)]

@mgjit.compile
def step(x, y):
    out = w[0] * x + w[1]
    loss = (out + -y) * (out + -y)
    for p in w: p.derivative = None
    loss.backward()
    for p in w: p.data -= 0.1 * p.derivative
    return loss.data

for k in range(8):
    check(step(k / 3, 1.0))
check([p.data for p in w])
"""
_TRAIN = """
@mgjit.compile
def step(x, target):
    h = [sum((w * a for w, a in zip(row, x)), Value(0.0)).{ACT}() for row in W]
    out = [sum((w * a for w, a in zip(row, h)), Value(0.0)) for row in V]
{LOSS}
    for p in params: p.grad = 0.0
    loss.backward()
{MORE}
    for p in params: p.data -= 0.05 * p.grad
    return loss.data

for k in range(10):
    check(step([k / 7, 1.0 - k / 9, 0.5], k % 3))
check([p.data for p in params])
"""


def _train(kind: str, act: str, loss: str, more: str = "pass") -> str:
    indented = [text.replace("\n", "\n    ") for text in (loss, more)]
    code = _TRAIN.replace("{ACT}", act).replace("{LOSS}", f"    {indented[0]}").replace("{MORE}", f"    {indented[1]}")
    return kind + code


_SQUARES = "loss = sum(((o - float(k)) ** 2 for k, o in enumerate(out)), Value(0.0))"
_PICK = "e = [o.exp() for o in out]\nloss = -(e[target].log()) + sum(e, Value(0.0)).log()"
_HINGE = """\
loss = Value(0.0)
for k, o in enumerate(out):
    if k != target:
        loss = loss + (o - out[target] + 1.0).relu()"""
_ONE_HOT = "loss = sum(((o - (1.0 if k == target else 0.0)) ** 2 for k, o in enumerate(out)), Value(0.0))"
_CLIP = """\
norm = math.sqrt(sum(p.grad ** 2 for p in params))
if norm > 1.0:
    for p in params: p.grad = p.grad / norm"""
_PRINT = "if loss.data < 0.5:\n    notes.append(round(loss.data, 3))"
_STYLES = {"closures": _CLOSURES, "tuples": _TUPLES}

PROGRAMS = [
    *(Program(f"{name}, squares", _train(kind, "tanh", _SQUARES)) for name, kind in _STYLES.items()),
    *(Program(f"{name}, a label picks a node", _train(kind, "tanh", _PICK)) for name, kind in _STYLES.items()),
    *(Program(f"{name}, hinge with a label", _train(kind, "relu", _HINGE)) for name, kind in _STYLES.items()),
    *(Program(f"{name}, a one-hot label", _train(kind, "tanh", _ONE_HOT)) for name, kind in _STYLES.items()),
    *(Program(f"{name}, clipped by the norm", _train(kind, "tanh", _SQUARES, _CLIP)) for name, kind in _STYLES.items()),
    *(
        Program(f"{name}, notes where the loss is small", "notes = []\n" + _train(kind, "tanh", _SQUARES, _PRINT))
        for name, kind in _STYLES.items()
    ),
    Program("minitorch, with a name from a counter", _MINITORCH.replace("{NAME}", "str(self.unique_id)")),
    Program("minitorch, with a formatted name", _MINITORCH.replace("{NAME}", 'f"Scalar {self.unique_id}"')),
    Program("minitorch, without names", _MINITORCH.replace("{NAME}", "''")),
]
