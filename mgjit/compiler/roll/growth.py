"""Iterations that are equal but for the counts of their loops: how the counts change, and what others would look like.

1. The iterations are put on top of each other: a tree of records and loops, and of each loop the counts of all
   iterations.
2. The size of an iteration is the count of a loop that changes.  Where all counts are affine in the size (and in the
   iterations of growing loops inside), the records of an iteration of any size are known.
3. So others are found before and behind: loops of few iterations, or of none, look like single records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from .forest import Counts, all_counts, sampled
from .holes import Grown, Tree, grown
from .iterations import separate
from .roll import FoldShape

#: The largest size that is tried where nothing tells which one it may be.
_SMALL = 32


@dataclass
class Part:
    """A record, or a loop, of all iterations.

    Attributes:
        shape: of a record; empty for a loop.
        record: a place of the padded trace.
        body: of a loop.
        counts: of a loop, for each iteration.
        grows: whether counts of loops inside depend on the iteration of this one.
        around: the growing loops around a loop, inside of the iteration.
        base, steps: the count in an iteration, as an affine function of its size and the iterations of `around`.
    """

    shape: str
    record: int
    body: list[Part] = field(default_factory=list)
    counts: list[Counts] = field(default_factory=list)
    grows: bool = False
    around: tuple[Part, ...] = ()
    base: int = 0
    steps: tuple[int, ...] = ()

    def count(self, *point: int) -> int:
        """The count for a size and iterations of the loops around."""
        return self.base + sum(step * i for step, i in zip(self.steps, point))


class _Unpredictable(Exception):
    """There is no iteration of this size."""


class Growth:
    """Iterations of a loop, whose shapes differ in counts only.

    Args:
        iterations: the shapes of the items of each.
        start: the first place of the first one.
        folds: what the shapes of loops stand for.
        records: the number of records of a shape.
    """

    def __init__(
        self, iterations: Sequence[str], start: int, folds: Mapping[str, FoldShape], records: Callable[[str], int]
    ) -> None:
        self._folds, self._records = folds, records
        self.parts = self._parts(iterations, start, ())
        loops = list(_loops(self.parts))
        changing = [loop for loop in loops if any(count != loop.counts[0] for count in loop.counts)]
        numbers = [loop.counts for loop in changing if all(isinstance(count, int) for count in loop.counts)]
        #: Of each iteration.
        self.sizes: list[int] = [*numbers[0]] if numbers else list(range(len(iterations)))  # type: ignore[list-item]
        #: The counts that change, for each iteration.
        self.changes = list(zip(*numbers)) if numbers else [(size,) for size in self.sizes]
        self.grows = bool(changing)
        self._shapes: dict[int, str] = {}
        self.is_predictable = all(map(self._fit, loops))

    def _parts(self, iterations: Sequence[str], start: int, around: tuple[Part, ...]) -> list[Part]:
        found = []
        starts = accumulate(map(self._records, iterations[0]), initial=start)
        for shapes, first in zip(zip(*iterations), starts):
            folds = [self._folds[shape] for shape in shapes if shape in self._folds]
            if not folds:
                found.append(Part(shapes[0], first))
                continue
            counts = [fold.count if fold.counts is None else fold.counts for fold in folds]
            part = Part("", first, [], counts, any(fold.grows for fold in folds), around)
            inner = (*around, part) if part.grows else around
            part.body = self._parts([fold.body for fold in folds], first, inner)
            found.append(part)
        return found

    def _fit(self, loop: Part) -> bool:
        """Find the affine function that gives the counts of a loop; returns whether there is one."""
        samples: dict[tuple[int, ...], int] = {}
        for size, counts in zip(self.sizes, loop.counts):
            for point, count in sampled(counts, len(loop.around)):
                if samples.setdefault((size, *point), count) != count:
                    return False
        if not samples:
            return False
        steps, rest = separate(list(samples), list(samples.values()))
        loop.steps = tuple(step or 0 for step in steps)
        loop.base = next(iter(rest.values()))
        return None not in steps

    def likely_sizes(self, records: str, place: int, is_end: bool) -> list[int]:
        """The sizes that an iteration may have which begins, or ends, at a place.

        That is told by how many iterations there are of the first (last) loop whose count changes, or up to two fewer:
        what follows on it may begin in the same way.  Where that loop is not a simple one, some small sizes are tried.

        Args:
            records: the shapes of all records.
        """
        parts, point = self.parts, (self.sizes[0],)
        while True:
            ordered = parts[::-1] if is_end else parts
            known = next((k for k, part in enumerate(ordered) if _depends_on_size([part])), 0)
            length = len(self._text(ordered[:known], point))
            place += -length if is_end else length
            loop = ordered[known]
            if loop.steps[0]:
                break
            if loop.grows:
                return self._small_sizes()
            parts = loop.body
        unit = self._text(loop.body, point)
        if loop.grows or not unit or _depends_on_size(loop.body):
            return self._small_sizes()
        count = 0
        while records.startswith(unit, place - len(unit) * is_end) and place >= len(unit) * is_end:
            count += 1
            place += -len(unit) if is_end else len(unit)
        fits = (divmod(k - loop.base, loop.steps[0]) for k in range(count, max(-1, count - 3), -1))
        return [size for size, rest in fits if not rest]

    def _small_sizes(self) -> list[int]:
        return list(range(min(_SMALL, 2 * max(self.sizes)), -1, -1))

    def shapes(self, size: int) -> str:
        """The shapes of the records of an iteration of this size; empty if there is none."""
        if size not in self._shapes:
            try:
                self._shapes[size] = self._text(self.parts, (size,))
            except _Unpredictable:
                self._shapes[size] = ""
        return self._shapes[size]

    def _text(self, parts: Sequence[Part], point: tuple[int, ...]) -> str:
        found = []
        for part in parts:
            if part.shape:
                found.append(part.shape)
                continue
            count = part.count(*point)
            if count < 0:
                raise _Unpredictable
            if part.grows:
                found += [self._text(part.body, (*point, k)) for k in range(count)]
            else:
                found.append(self._text(part.body, point) * count)
        return "".join(found)

    def tree(self, sizes: Sequence[int] | None, record: Callable[[int], int]) -> Grown:
        """The loop of iterations of these sizes, or of those that are given.

        Args:
            sizes: only if all counts are affine in them.
            record: the record of a place.
        """

        def tree(part: Part) -> Tree:
            if part.shape:
                return record(part.record)
            counts = part.counts if sizes is None else [_counts(part, size) for size in sizes]
            body = tuple(map(tree, part.body))
            if isinstance(counts[0], int) and all(count == counts[0] for count in counts):
                return grown(counts[0], body, None, part.grows)
            return grown(max(all_counts(tuple(counts))), body, tuple(counts), part.grows)

        count = len(self.sizes if sizes is None else sizes)
        return grown(count, tuple(map(tree, self.parts)), None, True)


def _loops(parts: Sequence[Part]) -> Iterator[Part]:
    for part in parts:
        if not part.shape:
            yield part
            yield from _loops(part.body)


def _depends_on_size(parts: Sequence[Part]) -> bool:
    """Whether counts change with the size of an iteration."""
    return any(loop.steps[0] != 0 for loop in _loops(parts))


def _counts(loop: Part, size: int) -> Counts:
    """The counts of a loop in an iteration of this size."""

    def counts(point: tuple[int, ...]) -> Counts:
        level = len(point) - 1
        if level == len(loop.around):
            return loop.count(*point)
        return tuple(counts((*point, k)) for k in range(loop.around[level].count(*point)))

    return counts((size,))
