"""Find loops whose iterations grow: those of a triangle, or of a batch of sequences of different lengths.

1. Roll the trace.  When nothing more folds, iterations that differ in the counts of their loops are still beside each
   other.  Forget the counts, and look for items that repeat: a run, of which some loop has other counts each time.
2. Cut the run where its counts stop growing by the same number.  Counts that follow no progression stay together.
3. Of the places where its iterations may start, take the one that the fewest operands reach across.
4. Add iterations before and behind that look as theirs would with other counts (roll/growth.py).
5. It is a loop if its operands are regular (roll/regular.py).
6. Pad the trace (roll/holes.py), where the loop is as regular as any other, and begin again: there may be growing
   loops around this one.

A trace of which nothing grows is rolled once, and only loops that are equal but for counts are looked at again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from ...base.cached import cached_property
from ...ir.trace import Trace
from . import kept
from .forest import Item, count_at
from .growth import Growth
from .holes import Grown, Padded, Placed, size_of, statements_of
from .reach import Reach
from .regular import Operands
from .roll import Roller

#: How many of the next loops that are equal but for counts propose a period.
_CANDIDATES = 8
#: How many iterations a growing loop has at least, and those of a progression among others.
_FEWEST, _FEWEST_IN_PROGRESSION = 3, 4
#: How many of the first iterations may be unlike the others.
_FIRST_ITERATIONS = 4
#: How many places where iterations may start are tried.
_ROTATIONS = 3
#: A loop takes the place of so many statements at least, in a progression or not; if not, of this share of all items...
_FEWEST_SAVED, _FEWEST_SAVED_IF_RAGGED, _SHARE = 8, 16, 64
#: ... and has at most so many holes and records for each record.
_MOST_HOLES, _MOST_HOLES_IF_RAGGED = 16, 8


class Rolled(NamedTuple):
    """A trace, perhaps padded, and the forest of its loops."""

    trace: Trace
    reach: Reach
    forest: list[Item]


def roll_growing(trace: Trace, reach: Reach, *, alike: bool = False) -> Rolled:
    """The forest of loops over the records of a trace, in which loops may grow.

    Args:
        alike: whether the forest of a trace of the same operations will do, if that is known.
    """
    known = kept.known(trace, reach, alike=alike)
    if known is not None:
        padded = Padded(trace, reach, known.placed)
        return Rolled(padded.trace, padded.reach, known.forest)
    padded = Padded(trace, reach)
    while True:
        roller = Roller(padded.trace, padded.reach.marks, padded.folds, padded.like)
        forest = roller.run()
        found = _Search(trace, padded, roller).found()
        if not found:
            kept.keep(trace, reach, padded.placed, forest)
            return Rolled(padded.trace, padded.reach, forest)
        earlier = [
            old for old in padded.placed if not any(old.start < new.end and new.start < old.end for new in found)
        ]
        padded = Padded(trace, reach, sorted([*earlier, *found], key=lambda placed: placed.start))


class _Place(NamedTuple):
    """A growing loop in the places `start .. end-1` of the padded trace."""

    start: int
    end: int
    tree: Grown


class _Candidate(NamedTuple):
    """The records `start .. end-1`, which may be a loop; `is_ragged` if its counts follow no progression."""

    start: int
    end: int
    tree: Grown
    is_ragged: bool

    def is_worthwhile(self, items: int) -> bool:
        """Whether it takes the place of enough statements, in a forest of so many items, and has not too many holes."""
        saved = (self.tree.count - 1) * statements_of(self.tree)
        records = self.end - self.start
        if self.is_ragged:
            enough = saved >= max(_FEWEST_SAVED_IF_RAGGED, items // _SHARE)
            return enough and size_of(self.tree) <= _MOST_HOLES_IF_RAGGED * records
        return saved >= _FEWEST_SAVED and size_of(self.tree) <= _MOST_HOLES * records


class _Search:
    """Looks for growing loops in a rolled trace.

    Args:
        trace: without holes.
        padded: what was rolled.
        roller: when nothing more folds.
    """

    def __init__(self, trace: Trace, padded: Padded, roller: Roller) -> None:
        self._trace, self._padded, self._roller = trace, padded, roller
        self._folds = roller.folds
        self._bodies: dict[str, str] = {}  # the shape of a loop without counts, by that of its body
        self._without_counts: dict[str, str] = {}
        self._promising: dict[str, bool] = {}
        self._texts: dict[str, str] = {}

    def found(self) -> list[Placed]:
        """Growing loops that were not known, from left to right."""
        if not self._is_promising(self._roller.shapes):
            return []
        record_at = self._padded.record_at
        places = self._in_sequence(self._roller.shapes, self._roller.starts)
        return [Placed(record_at(start), record_at(end), tree) for start, end, tree in places]

    # ---- 1: sequences of items --------------------------------------------------------------------

    def _is_promising(self, shapes: str) -> bool:
        """Whether there are loops that are equal but for counts beside each other, or in a loop."""
        found = self._promising.get(shapes)
        if found is None:
            seen: dict[str, str] = {}
            loops = [shape for shape in dict.fromkeys(shapes) if shape in self._folds]
            found = any(seen.setdefault(self._erased(shape), shape) != shape for shape in loops)
            found = found or any(
                self._is_promising(self._folds[shape].body) for shape in loops if not self._folds[shape].grows
            )
            self._promising[shapes] = found
        return found

    def _erased(self, shape: str) -> str:
        """A shape without counts."""
        found = self._without_counts.get(shape)
        if found is None:
            fold = self._folds.get(shape)
            if fold is None:
                found = shape
            else:
                body = "".join(map(self._erased, fold.body))
                found = self._bodies.setdefault(body, chr(self._roller.next_shape + len(self._bodies)))
            self._without_counts[shape] = found
        return found

    def _in_sequence(self, shapes: str, starts: Sequence[int]) -> list[_Place]:
        """The growing loops of a sequence of items, and of their first iterations, with those of the others."""
        inner: list[_Place] = []
        for shape, start in zip(shapes, starts):
            fold = self._folds.get(shape)
            if fold is None or fold.grows or not self._is_promising(fold.body):
                continue
            firsts = list(accumulate(map(self._roller.records, fold.body), initial=start))
            found = self._in_sequence(fold.body, firsts)
            for shift in range(0, fold.count * fold.records, fold.records):
                inner += [_Place(begin + shift, end + shift, tree) for begin, end, tree in found]
        places: list[_Place] = []
        done = 0
        failed: dict[int, int] = {}  # by period: up to which item there is no loop
        erased = "".join(map(self._erased, shapes))
        equal: dict[str, list[int]] = {}  # the loops that are equal but for counts
        for k, shape in enumerate(shapes):
            if shape in self._folds:
                equal.setdefault(erased[k], []).append(k)
        promising = [(k, n, loops) for loops in equal.values() if len(loops) > 1 for n, k in enumerate(loops)]
        for k, number, loops in sorted(promising):
            if k < done:
                continue
            for q in loops[number + 1 : number + 1 + _CANDIDATES]:
                period = q - k
                if shapes[q] == shapes[k] or any(q < end and period % one == 0 for one, end in failed.items()):
                    continue
                low, high = self._run_around(erased, k, period, done)
                lowest = starts[done]
                while high - low >= 2 * period:
                    place = self._place(shapes, starts, low, high, period, lowest)
                    if place is None:
                        break
                    if not any(place.start < other.end and other.start < place.end for other in inner):
                        places.append(place)
                    done = bisect_left(starts, place.end)
                    low, lowest = max(low, done), starts[done]
                if k < done:
                    break
                failed[period] = high
        return [*places, *inner]

    @staticmethod
    def _run_around(shapes: str, k: int, period: int, low: int) -> tuple[int, int]:
        """The most items around item `k` that repeat with a period, from `low` on."""
        first, end = k, k + period
        while first > low and shapes[first - 1] == shapes[first - 1 + period]:
            first -= 1
        while end < len(shapes) and shapes[end] == shapes[end - period]:
            end += 1
        return first, end

    # ---- 2 and 3: iterations ------------------------------------------------------------------------

    def _place(
        self, shapes: str, starts: Sequence[int], low: int, high: int, period: int, lowest: int
    ) -> _Place | None:
        """The growing loop at the beginning of a run of items; the first place that may belong to it is `lowest`."""
        padded = self._padded
        candidates: list[_Candidate] = []
        for rotation in self._rotations(starts, low, high, period):
            first = low + rotation
            count = (high - first) // period
            if count < 2:
                continue
            iterations = [shapes[k : k + period] for k in range(first, first + count * period, period)]
            growth = Growth(iterations, starts[first], self._folds, self._roller.records)
            if growth.grows:
                edges = [padded.record_at(start) for start in starts[first : first + count * period + 1 : period]]
                candidates += self._candidates(growth, edges, padded.record_at(lowest), padded.record_at(starts[-1]))
        operands = [Operands(self._trace, padded.places, *candidate) for candidate in candidates]
        for are_regular in (Operands.are_affine, Operands.are_alike):
            for candidate, found in zip(candidates, operands):
                if are_regular(found):
                    return _Place(padded.places[candidate.start], padded.places[candidate.end - 1] + 1, candidate.tree)
        return None

    def _rotations(self, starts: Sequence[int], low: int, high: int, period: int) -> list[int]:
        """Where iterations may start, in items; first the place that the fewest operands reach across."""
        middle = low + ((high - low) // period // 2 - 1) * period
        first, cut, last = starts[middle], starts[middle + period], starts[min(middle + 2 * period, high)]
        size = cut - first
        changes = [0] * (last - first + 1)
        for column in (self._padded.trace.a, self._padded.trace.b):
            for position, operand in enumerate(column[first:last], first):
                if position - size < operand and operand >= 0 and position > operand:
                    changes[max(operand + 1, first) - first] += 1
                    changes[position + 1 - first] -= 1
        counts = list(accumulate(changes))
        cost = [counts[starts[middle + k] - first] if k else counts[cut - first] for k in range(period)]
        return sorted(range(period), key=lambda k: (cost[k], k))[:_ROTATIONS]

    # ---- 4: iterations of other sizes -----------------------------------------------------------------

    def _candidates(self, growth: Growth, edges: Sequence[int], lowest: int, highest: int) -> Iterator[_Candidate]:
        """What may be a loop: these iterations, with those around them; or a part of them.

        Args:
            growth: the iterations.
            edges: their first records, and the record behind them.
            lowest, highest: the records that may belong to the loop.
        """
        record = self._padded.sources.__getitem__
        if growth.is_predictable:
            sizes, edges = self._extended(growth, edges, lowest, highest)
            parts = _stretches([(size,) for size in sizes])
        else:
            sizes, parts = None, [part for part in _stretches(growth.changes) if part[1] - part[0] + 1 == len(edges)]
        for first, end, is_ragged in parts:
            for begin in range(first, min(first + _FIRST_ITERATIONS if sizes else 1, end - _FEWEST + 1)):
                tree = growth.tree(sizes and sizes[begin:end], record)
                candidate = _Candidate(edges[begin], edges[end], tree, is_ragged)
                if candidate.is_worthwhile(len(self._roller.shapes)):
                    yield candidate

    def _extended(self, growth: Growth, edges: Sequence[int], lowest: int, highest: int) -> tuple[list[int], list[int]]:
        """The sizes and edges of iterations, and of those before and behind that may be among them."""
        sizes, found = list(growth.sizes), list(edges)
        while True:
            end = found[0]
            for size in [2 * sizes[0] - sizes[1], *growth.likely_sizes(self._flat, end, True)]:
                start = end - len(growth.shapes(size))
                if lowest <= start < end and self._are(growth.shapes(size), start, end):
                    break
            else:
                break
            sizes.insert(0, size)
            found.insert(0, start)
        while True:
            start = found[-1]
            for size in [2 * sizes[-1] - sizes[-2], *growth.likely_sizes(self._flat, start, False)]:
                end = start + len(growth.shapes(size))
                if start < end <= highest and self._are(growth.shapes(size), start, end):
                    break
            else:
                break
            sizes.append(size)
            found.append(end)
        return sizes, found

    def _are(self, shapes: str, start: int, end: int) -> bool:
        """Whether records have these shapes, and no growing loop that is known crosses their edges."""
        return self._flat.startswith(shapes, start) and not any(
            old.start < start < old.end or old.start < end < old.end for old in self._padded.placed
        )

    @cached_property
    def _flat(self) -> str:
        """The shapes of all records."""
        return "".join(map(self._text, self._roller.shapes))

    def _text(self, shape: str, iterations: tuple[int, ...] = ()) -> str:
        """The shapes of the records of an item, without holes."""
        fold = self._folds.get(shape)
        if fold is None:
            return shape
        if not iterations and shape in self._texts:
            return self._texts[shape]
        count = fold.count if fold.counts is None else count_at(fold.counts, iterations)
        if fold.grows:
            text = "".join(self._text(part, (*iterations, k)) for k in range(count) for part in fold.body)
        else:
            text = "".join(self._text(part, iterations) for part in fold.body) * count
        if not iterations:
            self._texts[shape] = text
        return text


def _stretches(changes: Sequence[tuple[int, ...]]) -> list[tuple[int, int, bool]]:
    """The progressions of iterations with these counts; or all of them together, if those are short.

    Returns:
        Of each the first iteration and the one behind it, and whether it is no progression.
    """
    steps = [tuple(b - a for a, b in zip(one, other)) for one, other in zip(changes, changes[1:])]
    found = []
    k = 0
    while k < len(changes):
        end = k + 1
        while end < len(changes) and steps[end - 1] == steps[k]:
            end += 1
        found.append((k, end, False))
        k = end
    if len(found) == 1 or len(changes) >= _FEWEST_IN_PROGRESSION * len(found):
        return [(k, end, False) for k, end, _ in found if end - k < 2 or any(steps[k])]
    return [(0, len(changes), True)]
