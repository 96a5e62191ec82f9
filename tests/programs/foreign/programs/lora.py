"""LoRA: frozen weights as plain floats, low-rank matrices that learn, an Adam that skips what needs no gradient."""

import math
import random


class Parameter:
    __slots__ = ("data", "grad", "requires_grad", "_prev", "_op")

    def __init__(self, data, _prev=(), _op="", requires_grad=True):
        self.data = data
        self.grad = 0.0
        self.requires_grad = requires_grad
        self._prev = _prev
        self._op = _op

    def __add__(self, other):
        other = other if isinstance(other, Parameter) else Parameter(other, requires_grad=False)
        return Parameter(self.data + other.data, [self, other], "+")

    def __mul__(self, other):
        other = other if isinstance(other, Parameter) else Parameter(other, requires_grad=False)
        return Parameter(self.data * other.data, [self, other], "*")

    def __pow__(self, exponent):
        assert isinstance(exponent, (int, float))
        return Parameter(self.data**exponent, [self], f"**{exponent}")

    def tanh(self):
        return Parameter(math.tanh(self.data), [self], "tanh")

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self):
        return self * -1.0

    def __sub__(self, other):
        return self + (-other)

    def _propagate(self):
        """What each operation does with its gradient: one method that looks at the name of the operation."""
        if self._op == "+":
            a, b = self._prev
            a.grad += self.grad
            b.grad += self.grad
        elif self._op == "*":
            a, b = self._prev
            a.grad += b.data * self.grad
            b.grad += a.data * self.grad
        elif self._op == "tanh":
            self._prev[0].grad += (1.0 - self.data**2) * self.grad
        elif self._op.startswith("**"):
            exponent = float(self._op[2:])
            self._prev[0].grad += exponent * self._prev[0].data ** (exponent - 1) * self.grad

    def backward(self):
        topo, seen = [], set()

        def build(node):
            if node not in seen:
                seen.add(node)
                for parent in node._prev:
                    build(parent)
                topo.append(node)

        build(self)
        self.grad = 1.0
        for node in topo[::-1]:
            node._propagate()


class LoRALinear:
    def __init__(self, n_in, n_out, rank, rng, alpha=2.0):
        self.weight = [[rng.gauss(0.0, 0.5) for _ in range(n_in)] for _ in range(n_out)]  # frozen
        self.A = [[Parameter(rng.gauss(0.0, 0.1)) for _ in range(n_in)] for _ in range(rank)]
        self.B = [[Parameter(0.0) for _ in range(rank)] for _ in range(n_out)]
        self.scale = alpha / rank

    def forward(self, x):
        low = [sum(a * xi for a, xi in zip(row, x)) for row in self.A]
        out = []
        for frozen, b in zip(self.weight, self.B):
            base = sum(w * xi for w, xi in zip(frozen, x))
            out.append(sum(bi * li for bi, li in zip(b, low)) * self.scale + base)
        return out

    def trainable(self):
        yield from (p for row in self.A for p in row)
        yield from (p for row in self.B for p in row)


class Adam:
    def __init__(self, params, lr=1e-2, b1=0.9, b2=0.95, eps=1e-8, weight_decay=0.01):
        self.params = [p for p in params if p.requires_grad]
        self.lr, self.b1, self.b2, self.eps, self.wd = lr, b1, b2, eps, weight_decay
        self.m = [0.0 for _ in self.params]
        self.v = [0.0 for _ in self.params]
        self.t = 0

    def step(self):
        self.t += 1
        for i, p in enumerate(self.params):
            g = p.grad
            self.m[i] = self.b1 * self.m[i] + (1 - self.b1) * g
            self.v[i] = self.b2 * self.v[i] + (1 - self.b2) * g**2
            mhat = self.m[i] / (1 - self.b1**self.t)
            vhat = self.v[i] / (1 - self.b2**self.t)
            p.data -= self.lr * (mhat / (math.sqrt(vhat) + self.eps) + self.wd * p.data)

    def zero_grad(self):
        for p in self.params:
            p.grad = 0.0


class Trainer:
    def __init__(self, seed):
        rng = random.Random(seed)
        self.first = LoRALinear(4, 6, 2, rng)
        self.second = LoRALinear(6, 2, 2, rng)
        self.optimizer = Adam([*self.first.trainable(), *self.second.trainable()])
        self.best = math.inf

    def train_step(self, xs, ys):
        total = 0.0
        for x, y in zip(xs, ys):
            out = self.second.forward([h.tanh() for h in self.first.forward(x)])
            total = total + sum((o - t) ** 2 for o, t in zip(out, y))
        loss = total * (1.0 / len(xs))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.best = min(self.best, loss.data)
        return loss.data


def make():
    trainer = Trainer(2)
    rng = random.Random(4)
    calls = [
        (
            [[rng.uniform(-1, 1) for _ in range(4)] for _ in range(3)],
            [[rng.uniform(-1, 1) for _ in range(2)] for _ in range(3)],
        )
        for _ in range(5)
    ]

    def observe():
        optimizer = trainer.optimizer
        parameters = [(p.data, p.grad) for p in optimizer.params]
        return parameters, optimizer.m, optimizer.v, optimizer.t, trainer.best, trainer.first.weight

    return trainer.train_step, calls, observe
