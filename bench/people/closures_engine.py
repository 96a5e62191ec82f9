"""An engine of closures: log, a counter of the class, and the norm of the gradient clipped under `if`."""
import math
import random

random.seed(7)


class Node:
    count = 0

    def __init__(self, value, parents=()):
        self.value = value
        self.grad = 0.0
        self.parents = parents
        self.back = lambda: None
        Node.count += 1

    def __add__(self, other):
        out = Node(self.value + other.value, (self, other))

        def back():
            self.grad += out.grad
            other.grad += out.grad
        out.back = back
        return out

    def __mul__(self, other):
        out = Node(self.value * other.value, (self, other))

        def back():
            self.grad += other.value * out.grad
            other.grad += self.value * out.grad
        out.back = back
        return out

    def __truediv__(self, other):
        out = Node(self.value / other.value, (self, other))

        def back():
            self.grad += out.grad / other.value
            other.grad -= out.grad * self.value / other.value ** 2
        out.back = back
        return out

    def tanh(self):
        t = math.tanh(self.value)
        out = Node(t, (self,))

        def back():
            self.grad += (1 - t * t) * out.grad
        out.back = back
        return out

    def exp(self):
        out = Node(math.exp(self.value), (self,))

        def back():
            self.grad += out.value * out.grad
        out.back = back
        return out

    def log(self):
        out = Node(math.log(self.value), (self,))

        def back():
            self.grad += out.grad / self.value
        out.back = back
        return out

    def neg(self):
        return self * Node(-1.0)

    def backward(self):
        order, seen = [], set()

        def visit(node):
            if node not in seen:
                seen.add(node)
                for parent in node.parents:
                    visit(parent)
                order.append(node)
        visit(self)
        self.grad = 1.0
        for node in reversed(order):
            node.back()


def matrix(rows, columns):
    return [[Node(random.gauss(0, 0.4)) for _ in range(columns)] for _ in range(rows)]


def linear(m, x):
    out = []
    for row in m:
        total = row[0] * x[0]
        for w, v in zip(row[1:], x[1:]):
            total = total + w * v
        out.append(total)
    return out


w1, w2 = matrix(8, 4), matrix(3, 8)
params = [p for m in (w1, w2) for row in m for p in row]
data = []
for _ in range(100):
    x = [random.uniform(-1, 1) for _ in range(4)]
    data.append((x, 0 if x[0] > 0.2 else 1 if x[1] * x[2] > 0 else 2))
running = 0.0
for step in range(12000):
    x, target = data[step % len(data)]
    hidden = [h.tanh() for h in linear(w1, [Node(v) for v in x])]
    exps = [o.exp() for o in linear(w2, hidden)]
    total = exps[0] + exps[1] + exps[2]
    probs = [e / total for e in exps]
    loss = probs[target].log().neg()
    for p in params:
        p.grad = 0.0
    loss.backward()
    norm = math.sqrt(sum(p.grad ** 2 for p in params))
    if norm > 1.0:
        for p in params:
            p.grad /= norm
    for p in params:
        p.value -= 0.05 * p.grad
    running = 0.99 * running + 0.01 * loss.value
    if step % 2000 == 0:
        print(step, "loss", running, "nodes", Node.count)
print([p.value for p in params][:4])
