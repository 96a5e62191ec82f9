"""The forest of loops over the records of a trace: what rolling makes, and lifting takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Union

from ...ir.opcodes import operation_name
from ...ir.trace import Trace


class LiftError(Exception):
    """The forest cannot be expressed as a Program; the caller lifts the unrolled trace instead, which always works."""


#: How often a loop is executed: a number; or one for each iteration of the growing loops around it, outermost first,
#: with a number in place of numbers that are all the same.
Counts = Union[int, tuple["Counts", ...]]


@dataclass(frozen=True)
class Fold:
    """`count` iterations, each of `period` consecutive records from `start` on.

    Attributes:
        counts: where the number of iterations depends on growing loops around this one: how many there are; the other
            records, up to `count` iterations, are holes (roll/holes.py).
        grows: whether the counts of loops inside depend on the iteration of this one.
    """

    start: int
    count: int
    period: int
    body: tuple[Item, ...]
    counts: Counts | None = None
    grows: bool = False

    @property
    def end(self) -> int:
        """The position after the last record."""
        return self.start + self.count * self.period


#: A record position, or a loop.
Item = Union[int, Fold]


def count_at(counts: Counts, iterations: Sequence[int]) -> int:
    """How often a loop is executed in these iterations of the growing loops around it."""
    for iteration in iterations:
        if isinstance(counts, int):
            break
        counts = counts[iteration]
    assert isinstance(counts, int)
    return counts


def all_counts(counts: Counts) -> Iterator[int]:
    """Every number of iterations, in order."""
    if isinstance(counts, int):
        yield counts
    else:
        for part in counts:
            yield from all_counts(part)


def sampled(counts: Counts, depth: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Counts, by the iterations of so many growing loops; of those that do not matter, the first two."""
    if isinstance(counts, int):
        for point in product(range(2), repeat=depth):
            yield point, counts
        return
    for k, part in enumerate(counts):
        for point, count in sampled(part, depth - 1):
            yield (k, *point), count


def leaves(items: Sequence[Item]) -> Iterator[int]:
    """The records of a forest, each by its first iteration."""
    for item in items:
        if isinstance(item, int):
            yield item
        else:
            yield from leaves(item.body)


def print_forest(items: Sequence[Item], trace: Trace) -> str:
    """The loops of a forest, indented, with the operations of their bodies."""
    lines: list[str] = []
    stack: list[tuple[str, list[Item]]] = [("", list(reversed(items)))]
    while stack:
        indent, rest = stack[-1]
        if not rest:
            stack.pop()
            continue
        item = rest.pop()
        if isinstance(item, Fold):
            count = f"{item.count}" if item.counts is None else f"<= {item.count}: {_printed(item.counts)}"
            lines.append(f"{indent}for {count}:  # records {item.start} .. {item.end - 1}")
            stack.append((indent + "    ", list(reversed(item.body))))
        else:
            lines.append(f"{indent}{operation_name(trace.op[item])}")
    return "\n".join(lines)


def _printed(counts: Counts) -> str:
    return str(counts) if isinstance(counts, int) else f"[{' '.join(map(_printed, counts))}]"
