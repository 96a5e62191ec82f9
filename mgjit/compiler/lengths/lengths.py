"""The loops of traces that differ in the lengths of sequences: one tree for all, whose counts follow from a number.

A count is an affine function of that number, which is another one for each trace, and of the iterations of the growing
loops around.  Loops whose counts vary have room for those of the longest trace, so that all traces are padded alike
(roll/holes.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Union

from ..roll.forest import Counts
from ..roll.holes import Tree, grown


class Unlike(Exception):
    """A trace does not belong to a family; the text says why."""


class Count(NamedTuple):
    """A number of iterations: `base + given * number + sum of step * iteration` of the growing loops around."""

    base: int
    given: int
    steps: tuple[int, ...]

    @property
    def varies(self) -> bool:
        """Whether it is not always the same."""
        return self.given != 0 or any(self.steps)

    def at(self, number: int, point: Sequence[int]) -> int:
        """The count for a number in these iterations."""
        return self.base + self.given * number + sum(step * i for step, i in zip(self.steps, point))


class Shape(NamedTuple):
    """A loop of all members.

    Attributes:
        length: how often it is executed.
        body: loops, and numbers of statements.
        grows: whether counts of loops inside depend on the iteration of this one.
        room: how many iterations there is room for.
    """

    length: Count
    body: tuple[Part, ...]
    grows: bool
    room: int = 0


Part = Union[int, Shape]


def shapes_of(parts: Sequence[Part]) -> Iterator[Shape]:
    """All shapes, each before those in it."""
    for part in parts:
        if isinstance(part, Shape):
            yield part
            yield from shapes_of(part.body)


def counts_of(length: Count, around: Sequence[Shape], number: int, point: tuple[int, ...]) -> Counts:
    """The counts of a loop inside of growing loops."""
    if len(point) == len(around) or not any(length.steps[len(point) :]):
        return length.at(number, point)
    count = around[len(point)].length.at(number, point)
    return tuple(counts_of(length, around, number, (*point, k)) for k in range(count))


def tree_of(part: Part, number: int, around: tuple[Shape, ...]) -> Tree:
    """The loops of a member, with room for all others."""
    if isinstance(part, int):
        return part
    inner = (*around, part) if part.grows else around
    body = [tree_of(one, number, inner) for one in part.body]
    counts = counts_of(part.length, around, number, ()) if part.length.varies else None
    return grown(part.room, body, counts, part.grows)


def records_in(parts: Sequence[Part], number: int, point: tuple[int, ...]) -> int:
    """How many records there are."""
    total = 0
    for part in parts:
        if isinstance(part, int):
            total += 1
            continue
        count = part.length.at(number, point)
        if part.grows:
            total += sum(records_in(part.body, number, (*point, k)) for k in range(count))
        elif count > 0:
            total += count * records_in(part.body, number, point)
    return total
