"""Random programs of steps that call each other, share what they train, and are also called alone.

`Program(seed).run(decorate)` makes one program anew, runs it, and returns all that it has seen: what each call has
returned, and every number that any step can change after it.  Undecorated, it is plain Python.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Decorate = Callable[[Any], Any]


class Node:
    """A scalar with a gradient, with attributes in a dict."""

    def __init__(self, data: float, parts: Any = ()) -> None:
        self.data, self.grad, self.parts = data, 0.0, parts

    def __add__(self, other: Any) -> Any:
        other = other if isinstance(other, Node) else type(self)(other)
        return type(self)(self.data + other.data, ((self, 1.0), (other, 1.0)))

    def __mul__(self, other: Any) -> Any:
        other = other if isinstance(other, Node) else type(self)(other)
        return type(self)(self.data * other.data, ((self, other.data), (other, self.data)))

    def backward(self) -> None:
        """Add to the gradients of all nodes below."""
        order: list[Any] = []
        seen: set[int] = set()

        def visit(node: Any) -> None:
            if id(node) not in seen:
                seen.add(id(node))
                for part, _ in node.parts:
                    visit(part)
                order.append(node)

        visit(self)
        self.grad = 1.0
        for node in reversed(order):
            for part, factor in node.parts:
                part.grad += factor * node.grad


class Slotted(Node):
    """With slots."""

    __slots__ = ("data", "grad", "parts")


class Bare:
    """As Node, of slots alone."""

    __slots__ = ("data", "grad", "parts")
    __init__, __add__, backward = Node.__init__, Node.__add__, Node.backward  # type: ignore[assignment]

    def __add__(self, other: Any) -> Any:  # type: ignore[no-redef]  # noqa: F811
        other = other if isinstance(other, Bare) else Bare(other)
        return Bare(self.data + other.data, ((self, 1.0), (other, 1.0)))

    def __mul__(self, other: Any) -> Any:
        other = other if isinstance(other, Bare) else Bare(other)
        return Bare(self.data * other.data, ((self, other.data), (other, self.data)))


class Box:
    """Numbers that steps keep."""

    def __init__(self) -> None:
        self.count, self.total, self.moments = 0, 0.5, [0.25, -0.0, 1.5]


class Program:
    """One program, which is the same for each seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def run(self, decorate: Decorate) -> list[Any]:
        """Run it; each step is decorated on its own."""
        choose = random.Random(self.seed)
        kind = choose.choice([Node, Slotted, Bare])
        nodes = [kind(0.25 + 0.125 * k) for k in range(choose.randint(1, 3))]
        box, noise = Box(), random.Random(5)
        steps: list[Any] = []
        for _ in range(3):
            lower = list(steps)
            for _ in range(choose.randint(1, 2)):
                own = self._work(choose, kind, nodes, box, noise) if not lower or choose.random() < 0.4 else None
                inner = choose.choices(lower, k=choose.randint(1, 3)) if lower else []
                steps.append(_step(own, inner, decorate, choose.random() < 0.4, choose.random() < 0.5))
        seen: list[Any] = []
        for _ in range(choose.randint(8, 16)):
            seen.append(self._call(choose, steps))
            seen.append([*((node.data, node.grad) for node in nodes), box.count, box.total, list(box.moments)])
            if choose.random() < 0.15:
                choose.choice(nodes).data = choose.choice([0.5, -1.25, 2.0])
            if choose.random() < 0.1:
                box.total = choose.choice([0.5, -0.0])
        return seen

    @staticmethod
    def _call(choose: random.Random, steps: list[Any]) -> Any:
        step, number = choose.choice(steps), choose.choice([0.5, -1.0, 0.25, 1.5])
        if choose.random() < 0.25:
            numbers = [number + 0.125 * k for k in range(choose.randint(1, 9))]
            if hasattr(step, "loop"):
                return [*map(float, step.loop(numbers))]
            return [*map(float, (step(number) for number in numbers))]
        return [step(number) for _ in range(choose.choice([1, 1, 2, 3]))]

    @staticmethod
    def _work(choose: random.Random, kind: Any, nodes: list[Any], box: Box, noise: Any) -> Callable[[float], float]:
        """What a step does itself."""
        mine = choose.sample(nodes, choose.randint(1, len(nodes)))
        counts, totals, keeps, draws, late = (choose.random() < 0.4 for _ in range(5))
        place, rate = choose.randrange(3), choose.choice([0.1, 0.05])

        def work(x: float) -> float:
            if counts:
                box.count += 1
            if draws:
                x = x + noise.random()
            loss = kind(0.0)
            for node in mine:
                loss = loss + node * x * node
            for node in mine:
                node.grad = 0.0
            loss.backward()
            for node in mine:
                node.data -= rate * node.grad
            if totals:
                box.total = box.total * 0.5 + loss.data
            if keeps:
                box.moments[place] = 0.5 * box.moments[place] + mine[0].grad
            return mine[0].data + box.total if late else loss.data

        return work


def _step(own: Any, inner: list[Any], decorate: Decorate, is_method: bool, chained: bool) -> Any:
    """A step that does its own work and calls others, decorated: a function, or a method."""

    def body(x: float) -> float:
        total = 0.0
        for step in inner:
            found = step(x if not chained else x + 0.125 * total)
            total = total + found
        return total if own is None else total + own(x)

    if not is_method:

        @decorate
        def step(x: float) -> float:
            return body(x)

        return step

    class Trainer:
        def __init__(self) -> None:
            self.calls = 0

        @decorate
        def step(self, x: float) -> float:
            self.calls += 1
            return body(x) + self.calls

    return Trainer().step
