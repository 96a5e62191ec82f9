"""GRU with a dataclass for nodes, functions instead of methods, and Adam in lists."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import Callable, List, Optional


@dataclass(eq=False)
class Node:
    value: float
    gradient: float = 0.0
    inputs: List[Node] = field(default_factory=list)
    push: Optional[Callable[[], None]] = None


def add(a: Node, b: Node) -> Node:
    out = Node(a.value + b.value, inputs=[a, b])

    def push():
        a.gradient += out.gradient
        b.gradient += out.gradient

    out.push = push
    return out


def mul(a: Node, b: Node) -> Node:
    out = Node(a.value * b.value, inputs=[a, b])

    def push():
        a.gradient += b.value * out.gradient
        b.gradient += a.value * out.gradient

    out.push = push
    return out


def one_minus(a: Node) -> Node:
    out = Node(1.0 - a.value, inputs=[a])

    def push():
        a.gradient -= out.gradient

    out.push = push
    return out


def sigmoid(a: Node) -> Node:
    if_positive = 1.0 / (1.0 + math.exp(-abs(a.value)))
    out = Node(if_positive if a.value >= 0 else 1.0 - if_positive, inputs=[a])

    def push():
        a.gradient += out.value * (1.0 - out.value) * out.gradient

    out.push = push
    return out


def tanh(a: Node) -> Node:
    out = Node(math.tanh(a.value), inputs=[a])

    def push():
        a.gradient += (1.0 - out.value * out.value) * out.gradient

    out.push = push
    return out


def dot(weights: List[Node], inputs: List[Node]) -> Node:
    terms = [mul(w, x) for w, x in zip(weights, inputs)]
    result = terms[0]
    for term in terms[1:]:
        result = add(result, term)
    return result


def topological_order(root: Node) -> List[Node]:
    """Depth first, without recursion."""
    order, seen = [], set()
    stack = [(root, iter(root.inputs))]
    seen.add(id(root))
    while stack:
        node, children = stack[-1]
        for child in children:
            if id(child) not in seen:
                seen.add(id(child))
                stack.append((child, iter(child.inputs)))
                break
        else:
            order.append(node)
            stack.pop()
    return order


def backpropagate(root: Node) -> None:
    root.gradient = 1.0
    for node in reversed(topological_order(root)):
        if node.push:
            node.push()


@dataclass
class GRU:
    reset: List[List[Node]]
    update: List[List[Node]]
    candidate: List[List[Node]]
    out: List[Node]

    @classmethod
    def random(cls, inputs: int, hidden: int, rng: random.Random) -> GRU:
        def matrix():
            return [[Node(rng.gauss(0.0, 0.4)) for _ in range(inputs + hidden)] for _ in range(hidden)]

        return cls(matrix(), matrix(), matrix(), [Node(rng.gauss(0.0, 0.4)) for _ in range(hidden)])

    def parameters(self) -> List[Node]:
        return [w for matrix in (self.reset, self.update, self.candidate) for row in matrix for w in row] + self.out

    def forward(self, xs: List[List[float]]) -> Node:
        h = [Node(0.0) for _ in self.out]
        for x in xs:
            x = [Node(v) for v in x]
            r = [sigmoid(dot(row, x + h)) for row in self.reset]
            z = [sigmoid(dot(row, x + h)) for row in self.update]
            gated = [mul(rj, hj) for rj, hj in zip(r, h)]
            n = [tanh(dot(row, x + gated)) for row in self.candidate]
            h = [add(mul(one_minus(zj), nj), mul(zj, hj)) for zj, nj, hj in zip(z, n, h)]
        return dot(self.out, h)


@dataclass
class Adam:
    parameters: List[Node]
    learning_rate: float = 0.01
    betas: tuple = (0.9, 0.999)
    eps: float = 1e-8
    t: int = 0

    def __post_init__(self):
        self.m = [0.0] * len(self.parameters)
        self.v = [0.0] * len(self.parameters)

    def step(self) -> None:
        self.t += 1
        b1, b2 = self.betas
        for i, p in enumerate(self.parameters):
            self.m[i] = b1 * self.m[i] + (1 - b1) * p.gradient
            self.v[i] = b2 * self.v[i] + (1 - b2) * p.gradient * p.gradient
            m_hat = self.m[i] / (1 - b1**self.t)
            v_hat = self.v[i] / (1 - b2**self.t)
            p.value -= self.learning_rate * m_hat / (math.sqrt(v_hat) + self.eps)
            p.gradient = 0.0


def make():
    model = GRU.random(2, 3, random.Random(5))
    optimizer = Adam(model.parameters())

    def step(xs, target):
        prediction = model.forward(xs)
        error = add(prediction, Node(-target))
        loss = mul(error, error)
        backpropagate(loss)
        optimizer.step()
        return {"loss": loss.value, "prediction": prediction.value}

    rng = random.Random(6)
    calls = [([[rng.uniform(-1, 1) for _ in range(2)] for _ in range(4)], rng.uniform(-1, 1)) for _ in range(5)]

    def observe():
        return [(p.value, p.gradient) for p in model.parameters()], optimizer.m, optimizer.v, optimizer.t

    return step, calls, observe
