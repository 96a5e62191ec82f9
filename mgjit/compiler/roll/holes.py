"""Pad a trace so that every iteration of a growing loop has as many records as the largest one.

    for i in range(3):          records      0   1 2   3 4 5
        for j in range(i + 1):  padded       0 . .   1 2 .   3 4 5
            ...

1. A growing loop is a tree like a Fold, in which loops know how often they are executed in each iteration of the
   growing loops around them.  Its box has room for the most iterations of each.
2. The records of the trace, in order, take the places of the box that are executed; what remains are holes.  So a place
   is affine in the loop variables, as it is in loops of constant counts.
3. A hole has the operation of the records that it could be one of, and no operands.

Holes are never executed: the passes see loops with bounds.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple, Union

from ...ir.opcodes import NO_OPERAND
from ...ir.trace import Trace
from .forest import Counts, Fold, Item, count_at
from .reach import Reach


class Grown(NamedTuple):
    """A growing loop, or a loop in one; see `Fold`.

    Attributes:
        body: loops, and records, each by a record of the trace like it.
        size: the number of records of the box of an iteration.
        is_solid: whether all of each iteration is executed.
    """

    count: int  # type: ignore[assignment]  # shadows tuple.count
    body: tuple[Tree, ...]
    size: int
    is_solid: bool
    counts: Counts | None = None
    grows: bool = False


Tree = Union[int, Grown]


class Placed(NamedTuple):
    """The records `start .. end-1` of a trace, which are a growing loop."""

    start: int
    end: int
    tree: Grown


def size_of(tree: Tree) -> int:
    """The number of records of a box."""
    return 1 if isinstance(tree, int) else tree.count * tree.size


def statements_of(tree: Tree) -> int:
    """The number of statements of a tree."""
    return 1 if isinstance(tree, int) else sum(map(statements_of, tree.body))


def grown(
    count: int, body: Sequence[Tree], counts: Counts | None = None, grows: bool = False
) -> Grown:  # what the constructor would need the rest for
    """A loop."""
    is_solid = all(isinstance(part, int) or (part.is_solid and part.counts is None) for part in body)
    return Grown(count, tuple(body), sum(map(size_of, body)), is_solid, counts, grows)


def offsets(tree: Tree) -> list[int]:
    """The places of the records in the box of a tree."""
    return [place for start, end in stretches(tree) for place in range(start, end)]


def records_of(tree: Tree) -> list[int]:
    """For every place of a box, a record like it."""
    if isinstance(tree, int):
        return [tree]
    return [record for part in tree.body for record in records_of(part)] * tree.count


class Padded:
    """A padded trace.

    Args:
        trace: it is not changed.
        reach: of the trace.
        placed: its growing loops, from left to right.

    Attributes:
        trace, reach: with holes.
        folds: the growing loops, in places of the padded trace.
        places: where each record is now, and where the trace ends.
        sources: for each place a record like it.
    """

    def __init__(self, trace: Trace, reach: Reach, placed: Sequence[Placed] = ()) -> None:
        self.trace, self.reach, self.placed = trace, reach, placed
        self.folds: list[Fold] = []
        self.places: Sequence[int] = range(len(trace) + 1)
        self.sources: Sequence[int] = range(len(trace))
        if placed:
            self._pad(placed)

    def like(self, place: int) -> int:
        """A place that is no hole, of a record like the one at a place."""
        return self.places[self.sources[place]]

    def record_at(self, place: int) -> int:
        """The first record at a place, or behind it."""
        return bisect_left(self.places, place)

    def _pad(self, placed: Sequence[Placed]) -> None:
        places, sources = list[int](), list[int]()
        done = 0
        for start, end, tree in placed:
            places += range(len(sources), len(sources) + start - done)
            sources += range(done, start)
            base = len(sources)
            places += [base + place for place in offsets(tree)]
            sources += records_of(tree)
            assert len(places) == end
            self.folds.append(as_fold(tree, base))
            done = end
        rest = len(self.places) - done
        places += range(len(sources), len(sources) + rest)
        sources += range(done, len(self.trace))
        self.places, self.sources = places, sources
        inside = [(start, end) for start, end, _ in placed]
        trace, reach = self.trace, self.reach
        op = array("i", map(trace.op.__getitem__, sources))
        sites = None if trace.sites is None else array("i", map(trace.sites.__getitem__, sources))
        marks = None if reach.marks is None else array("i", map(reach.marks.__getitem__, sources))
        self.trace, self.reach = moved(trace, reach, places, op, marks, inside, runs_of(places))
        self.trace.sites = sites


def moved(
    trace: Trace,
    reach: Reach,
    places: Sequence[int],
    op: array[int],
    marks: array[int] | None,
    growing: Sequence[tuple[int, int]],
    runs: Sequence[tuple[int, int]],
) -> tuple[Trace, Reach]:
    """A trace whose records are in other places, with holes in between.

    Args:
        trace, reach: of the records; they are not changed.
        places: where each record is to be, and where the trace ends.
        op, marks: of all places.
        growing: the records, from .. to, that are in growing loops, where blocks are blocks no longer.
        runs: the records, from .. to, that stay beside each other.
    """

    def column(operands: array[int]) -> array[int]:
        found = array("i", [NO_OPERAND]) * len(op)
        changed = array("i", [x if x < 0 else places[x] for x in operands])
        for start, end in runs:
            found[places[start] : places[start] + end - start] = changed[start:end]
        return found

    found = replace(
        trace,
        op=op,
        a=column(trace.a),
        b=column(trace.b),
        c=None if trace.c is None else column(trace.c),
        sites=None,
        adjoint_reads=[(places[record], places[at]) for record, at in trace.adjoint_reads],
        blocks=[
            block._replace(start=places[block.start])
            for block in trace.blocks
            if not any(block.start < end and start < block.end for start, end in growing)
        ],
    )
    return found, Reach([places[position] for position in reach.backwards], marks, reach.meanings)


def runs_of(places: Sequence[int]) -> list[tuple[int, int]]:
    """The runs (start, end) of records whose new places follow each other; the last place is where the trace ends."""
    cuts = [k for k, (one, other) in enumerate(zip(places, places[1:]), 1) if other - one != 1]
    edges = [0, *cuts, len(places) - 1]
    return [(start, end) for start, end in zip(edges, edges[1:]) if start < end]


def stretches(tree: Tree) -> list[tuple[int, int]]:
    """The places, from .. to, of the box of a tree that are executed, as far as they are beside each other."""
    found: list[tuple[int, int]] = []

    def note(start: int, end: int) -> None:
        if found and found[-1][1] == start:
            start = found.pop()[0]
        found.append((start, end))

    def of(tree: Tree, start: int, iterations: tuple[int, ...]) -> None:
        if isinstance(tree, int):
            note(start, start + 1)
            return
        count = tree.count if tree.counts is None else count_at(tree.counts, iterations)
        if tree.is_solid:
            if count * tree.size:
                note(start, start + count * tree.size)
            return
        for k in range(count):
            place = start + k * tree.size
            for part in tree.body:
                of(part, place, (*iterations, k) if tree.grows else iterations)
                place += size_of(part)

    of(tree, 0, ())
    return found


def as_fold(tree: Grown, start: int) -> Fold:
    """The loop whose box begins at a place."""
    return Fold(start, tree.count, tree.size, tuple(as_forest(tree, start)), tree.counts, tree.grows)


def as_forest(tree: Grown, start: int = 0) -> list[Item]:
    """The body of such a loop."""
    starts = accumulate(map(size_of, tree.body), initial=start)
    return [first if isinstance(part, int) else as_fold(part, first) for part, first in zip(tree.body, starts)]
