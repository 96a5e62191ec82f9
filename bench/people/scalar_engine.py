"""A micrograd clone, trained on two classes by a maximum margin loss over batches."""
import random


class Value:
    def __init__(self, data, _children=(), _op=''):
        self.data = data
        self.grad = 0
        self._backward = lambda: None
        self._prev = _children
        self._op = _op

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other), '+')

        def _backward():
            self.grad += out.grad
            other.grad += out.grad
        out._backward = _backward
        return out

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other), '*')

        def _backward():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad
        out._backward = _backward
        return out

    def relu(self):
        out = Value(0 if self.data < 0 else self.data, (self,), 'ReLU')

        def _backward():
            self.grad += (out.data > 0) * out.grad
        out._backward = _backward
        return out

    def backward(self):
        topo, visited = [], set()

        def build_topo(v):
            if v not in visited:
                visited.add(v)
                for child in v._prev:
                    build_topo(child)
                topo.append(v)
        build_topo(self)
        self.grad = 1
        for v in reversed(topo):
            v._backward()

    __radd__ = __add__
    __rmul__ = __mul__


class Neuron:
    def __init__(self, nin, nonlin=True):
        self.w = [Value(random.uniform(-1, 1)) for _ in range(nin)]
        self.b = Value(0)
        self.nonlin = nonlin

    def __call__(self, x):
        act = sum((wi * xi for wi, xi in zip(self.w, x)), self.b)
        return act.relu() if self.nonlin else act


random.seed(1337)
layers = [[Neuron(2) for _ in range(8)], [Neuron(8) for _ in range(8)], [Neuron(8, False)]]
parameters = [p for layer in layers for n in layer for p in n.w + [n.b]]
X = [[random.uniform(-1, 1), random.uniform(-1, 1)] for _ in range(40)]
y = [1 if a * a + b * b > 0.5 else -1 for a, b in X]
for k in range(200):
    ri = random.sample(range(len(X)), 16)
    Xb, yb = [X[i] for i in ri], [y[i] for i in ri]
    scores = []
    for x in Xb:
        for layer in layers:
            x = [n(x) for n in layer]
        scores.append(x[0])
    losses = [(score * -yi + 1).relu() for yi, score in zip(yb, scores)]
    data_loss = sum(losses) * (1.0 / len(losses))
    reg_loss = sum(p * p for p in parameters) * 1e-4
    total_loss = data_loss + reg_loss
    for p in parameters:
        p.grad = 0
    total_loss.backward()
    learning_rate = 1.0 - 0.9 * k / 200
    for p in parameters:
        p.data -= learning_rate * p.grad
    if k % 20 == 0:
        print(f"step {k} loss {total_loss.data}")
