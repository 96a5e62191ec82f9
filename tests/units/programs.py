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
    parameters: list[Node]
    batches: list[list[list[int]]]
    seen: list[Any]
    sample: Callable[..., Any]

    def numbers(self) -> list[str]:
        """The bits of all parameters and gradients."""
        return [float(number).hex() for p in self.parameters for number in (p.data, p.grad)]


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
