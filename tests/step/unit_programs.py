"""Steps over batches of sequences, with an autograd class of their own, at random."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

from bench.ragged import Node


class Program(NamedTuple):
    """A step, its parameters, and its batches.

    Attributes:
        seen: what else the step has changed.
        sample: the function that computes the loss of a sequence.
    """

    step: Callable[..., Any]
    parameters: list[Any]
    batches: list[list[list[int]]]
    seen: list[Any]
    sample: Callable[..., Any]

    def numbers(self) -> list[str]:
        """The bits of all parameters and gradients."""
        data = "value" if isinstance(self.parameters[0], Slot) else "data"
        return [float(number).hex() for p in self.parameters for number in (getattr(p, data), p.grad)]


LETTERS = 5


def program(seed: int, batches: int = 30) -> Program:
    """A recurrent network over batches of sequences of different lengths."""
    draw = random.Random(seed)
    width = draw.choice([1, 2, 3])
    parameters: list[Node] = []

    def matrix(rows: int, columns: int) -> list[list[Node]]:
        made = [[Node(draw.uniform(-1.0, 1.0)) for _ in range(columns)] for _ in range(rows)]
        parameters.extend(p for row in made for p in row)
        return made

    table, weights, out = matrix(LETTERS, width), matrix(width, 2 * width), matrix(LETTERS, width)
    style = draw.choice(["mean", "sum", "square", "backwards", "regularised", "looks", "one by one", "keyed", "shared"])
    times = draw.choice([1, 1, 1, 2])
    changes = draw.random() < 0.15
    longest = draw.choice([3, 5, 7])
    seen: list[Any] = []

    def loss_of(name: list[int], scale: float = 0.5) -> Any:
        h: list[Any] = [Node(0.0) for _ in range(width)]
        losses = []
        for letter, following in zip(name, name[1:]):
            x = table[letter] + h
            h = [sum(a * b for a, b in zip(row, x)).tanh() for row in weights]
            scores = [sum(a * b for a, b in zip(row, h)) for row in out]
            losses.append(scores[following] * scores[following] * scale)
        return sum(losses) * (1.0 / len(losses))

    def total(batch: list[list[int]]) -> Any:
        if style == "square":
            first = sum(loss_of(name) for name in batch)
            return first * first
        if style == "backwards":
            return sum([loss_of(name) for name in batch][::-1])
        if style == "regularised":
            terms = [loss_of(name) for name in batch]
            terms.insert(1, sum(p * p for p in parameters) * 0.01)
            return sum(terms)
        if style == "looks":
            return sum(loss_of(name, 0.25 if len(name) > 3 else 1.5) for name in batch)
        if style == "keyed":
            return sum(loss_of(name, scale=0.25) for name in batch[:1]) + sum(loss_of(name) for name in batch[1:])
        if style == "shared":
            terms = [loss_of(name) for name in batch]
            return sum(a * b for a, b in zip(terms, terms[1:])) + terms[0]
        return sum(loss_of(name) for name in batch) * (1.0 / len(batch) if style == "mean" else 1.0)

    def step(batch: list[list[int]], rate: float) -> float:
        if style == "one by one":
            value = 0.0
            for name in batch:
                loss = loss_of(name) * 0.5
                loss.backward()
                value += loss.data
        else:
            loss = total(batch)
            if changes:
                parameters[0].data = parameters[0].data * 1.5
            for _ in range(times):
                loss.backward()
            value = loss.data
        for p in parameters:
            p.data -= rate * p.grad
            p.grad = 0.0 if draw_nothing(batch) else p.grad * 0.5
        return value

    def draw_nothing(batch: list[list[int]]) -> bool:
        return len(batch[0]) % 2 == 0

    data = [
        [[draw.randrange(LETTERS) for _ in range(draw.randrange(2, longest + 2))] for _ in range(draw.choice([3, 4]))]
        for _ in range(batches)
    ]
    return Program(step, parameters, data, seen, loss_of)


class Slot:
    """A number in an autograd graph, with other names than `Node`'s."""

    def __init__(self, value: float, prev: tuple[Slot, ...] = (), local: tuple[float, ...] = ()) -> None:
        self.value, self.grad, self._prev, self._local = value, 0.0, prev, local

    def __add__(self, other: Any) -> Slot:
        other = other if isinstance(other, Slot) else Slot(other)
        return Slot(self.value + other.value, (self, other), (1.0, 1.0))

    def __mul__(self, other: Any) -> Slot:
        other = other if isinstance(other, Slot) else Slot(other)
        return Slot(self.value * other.value, (self, other), (other.value, self.value))

    __radd__, __rmul__ = __add__, __mul__

    def relu(self) -> Slot:
        return Slot(max(0.0, self.value), (self,), (1.0 if self.value > 0 else 0.0,))

    def backward(self) -> None:
        order: list[Slot] = []
        visited = set()

        def build(node: Slot) -> None:
            if node not in visited:
                visited.add(node)
                for operand in node._prev:
                    build(operand)
                order.append(node)

        build(self)
        self.grad = 1.0
        for node in reversed(order):
            for operand, local in zip(node._prev, node._local):
                operand.grad += local * node.grad


def sampled(seed: int, batches: int = 26) -> Program:
    """A batch of samples of several lengths: bags, attention, pairs and branches, under several kinds of update."""
    draw = random.Random(seed)
    width, letters, longest = draw.choice([1, 2, 3]), draw.choice([3, 5, 8]), draw.choice([3, 5, 7])
    model = draw.choice(["bag", "attention", "branch", "pairs", "kept"])
    update = draw.choice(["mixed", "weighted", "momentum", "each", "product"])
    table, out = ([[Slot(draw.uniform(-1.0, 1.0)) for _ in range(width)] for _ in range(letters)] for _ in range(2))
    parameters = [p for row in table + out for p in row]
    velocities = [0.0] * len(parameters)
    met: set[int] = set()

    def dot(one: list[Any], other: list[Any]) -> Any:
        return sum(a * b for a, b in zip(one, other))

    def loss_of(name: list[int], scale: float = 1.0) -> Any:
        if model == "bag":
            return dot(out[name[0]], [sum(table[letter][k] for letter in name) for k in range(width)]).relu() * scale
        if model == "attention":
            scores = [[dot(out[a], table[b]).relu() for b in name[: k + 1]] for k, a in enumerate(name)]
            return sum(s * table[b][0] for row in scores for s, b in zip(row, name)) * scale
        if model == "branch":
            total = table[name[0]][0] * (out[name[-1]][0] if len(name) > 3 else 1.5)
            return sum((table[b][k % width] * (0.5 if k % 2 else 1.5) for k, b in enumerate(name)), total) * scale
        if model == "kept" and len(name) not in met:
            met.add(len(name))
        return sum(table[a][0] * out[b][-1] for k, a in enumerate(name) for b in name[: k + 1]) * scale

    def losses(batch: list[list[int]]) -> Any:
        if update == "mixed":
            return sum(map(loss_of, batch)) + sum(p * p for p in parameters) * 0.01 + loss_of(batch[0], 0.5)
        if update == "product":
            return loss_of(batch[0]) * loss_of(batch[-1]) + loss_of(batch[0])
        return sum(loss_of(name, 1.0 / len(name) if update == "weighted" else 1.0) for name in batch)

    def step(batch: list[list[int]], rate: float) -> float:
        value = 0.0
        for names in [[name] for name in batch] if update == "each" else [batch]:
            loss = losses(names)
            loss.backward()
            value += loss.value
            for k, p in enumerate(parameters):
                velocities[k] = (0.5 if update == "momentum" else 0.0) * velocities[k] + p.grad
                p.value -= rate * velocities[k]
                p.grad = 0 if len(batch[0]) % 2 else 0.0
        return value

    names = [
        [
            [draw.randrange(letters) for _ in range(draw.randrange(2, longest + 2))]
            for _ in range(draw.choice([2, 3, 4]))
        ]
        for _ in range(batches)
    ]
    return Program(step, parameters, names, [], loss_of)
