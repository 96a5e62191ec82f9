"""Find loops whose iterations grow: those of a triangle, or of a batch of sequences of different lengths.

1. Roll the trace.  When nothing more folds, iterations that differ in the counts of their loops are still beside each
   other.  Forget the counts, and look for items that repeat: a run, of which some loop has other counts each time.
2. Cut the run where its counts stop growing by the same number.  Counts that follow no progression stay together.
3. Of the places where its iterations may start, take the one that the fewest operands reach across.
4. Add iterations before and behind that look as theirs would with other counts (passes/growth.py).
5. It is a loop if all operands are regular: affine, with a different first iteration perhaps.  What an iteration reads
   from memory, or from a sequence that has a length of its own, may begin anywhere; and what was computed before the
   loop may be anything, since it may be part of another loop that grows and has not been found yet.
6. Pad the trace (passes/holes.py), where the loop is as regular as any other, and begin again: there may be growing
   loops around this one.

A trace of which nothing grows is rolled once, and only loops that are equal but for counts are looked at again.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from ..ir.program import Loop
from ..record.opcodes import ADJOINT, BACKWARD, leaf_kind
from ..record.trace import Trace
from .columns import Dimension
from .forest import Item, count_at
from .growth import Growth, Unpredictable
from .holes import Grown, Padded, Placed, offsets, size_of
from .iterations import Bounded, Box, domain_of, separate
from .reach import Reach
from .roll import Roller

#: Whether growing loops are looked for.
ENABLED = False
#: How many of the next loops that are equal but for counts propose a period.
_CANDIDATES = 8
#: How many iterations a growing loop has at least, and those of a progression among others.
_FEWEST, _FEWEST_IN_PROGRESSION = 3, 4
#: How many places where iterations may start are tried.
_ROTATIONS = 3
#: A padded trace has at most so many records for each one.
_MOST_HOLES = 16


class Rolled(NamedTuple):
    """A trace, perhaps padded, and the forest of its loops."""

    trace: Trace
    reach: Reach
    forest: list[Item]


def roll_growing(trace: Trace, reach: Reach) -> Rolled:
    """The forest of loops over the records of a trace, in which loops may grow."""
    padded = Padded(trace, reach)
    while True:
        roller = Roller(padded.trace, padded.reach.marks, padded.folds)
        forest = roller.run()
        found = _Search(trace, padded, roller).found()
        if not found:
            return Rolled(padded.trace, padded.reach, forest)
        kept = [old for old in padded.placed if not any(old.start < new.end and new.start < old.end for new in found)]
        padded = Padded(trace, reach, sorted([*kept, *found], key=lambda placed: placed.start))


class _Place(NamedTuple):
    """A growing loop in the places `start .. end-1` of the padded trace."""

    start: int
    end: int
    tree: Grown


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
        erased = "".join(map(self._erased, shapes))
        loops = [k for k, shape in enumerate(shapes) if shape in self._folds]
        for number, k in enumerate(loops):
            if k < done:
                continue
            later = [q for q in loops[number + 1 :] if erased[q] == erased[k]][:_CANDIDATES]
            for q in later:
                if shapes[q] == shapes[k]:
                    continue
                low, high = self._run_around(erased, k, q - k, done)
                lowest = starts[done]
                while high - low >= 2 * (q - k):
                    place = self._place(shapes, starts, low, high, q - k, lowest)
                    if place is None:
                        break
                    if not any(place.start < other.end and other.start < place.end for other in inner):
                        places.append(place)
                    done = bisect_left(starts, place.end)
                    low, lowest = max(low, done), starts[done]
                if k < done:
                    break
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
        for rotation in self._rotations(starts, low, high, period):
            first = low + rotation
            count = (high - first) // period
            if count < 2:
                continue
            iterations = [shapes[k : k + period] for k in range(first, first + count * period, period)]
            growth = Growth(iterations, starts[first], self._folds, self._roller.records)
            if not growth.grows:
                continue
            count, step = _stretch(growth.changes)
            if count < len(iterations):
                growth = Growth(iterations[:count], starts[first], self._folds, self._roller.records)
            found = self._loop(growth, starts[first], starts[first + count * period], step, lowest, starts[-1])
            if found is not None:
                return found
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

    def _loop(
        self, growth: Growth, start: int, end: int, step: int | None, lowest: int, highest: int
    ) -> _Place | None:
        """The loop of iterations in these places, and those around them, if it is one.

        Args:
            growth: the iterations.
            start, end: their places.
            step: by which their sizes grow; None if there is no such number.
            lowest, highest: the places that may belong to the loop.
        """
        padded = self._padded
        first, last = padded.record_at(start), padded.record_at(end)
        before, behind = list[tuple[int, int]](), list[tuple[int, int]]()
        if growth.is_predictable:
            before = list(self._before(growth, first, step, padded.record_at(lowest)))
            behind = list(self._behind(growth, last, step, padded.record_at(highest)))
        tries = [(k, len(behind)) for k in range(len(before), -1, -1)]
        for b, f in dict.fromkeys([*tries, (0, 0)]):
            if b + f + len(growth.sizes) < _FEWEST:
                continue
            sizes = [size for size, _ in before[:b]][::-1], [size for size, _ in behind[:f]]
            tree = growth.tree(*sizes, padded.sources.__getitem__)
            low = before[b - 1][1] if b else first
            high = behind[f - 1][1] if f else last
            if size_of(tree) > _MOST_HOLES * (high - low):
                continue
            if _Regularity(self._trace, padded, low, high, tree, step is None).holds():
                return _Place(padded.places[low], padded.places[high - 1] + 1, tree)
        return None

    def _before(self, growth: Growth, end: int, step: int | None, lowest: int) -> Iterator[tuple[int, int]]:
        """The sizes of iterations that end with the record `end - 1`, and their first records, last ones first."""
        size = growth.sizes[0]
        while True:
            sizes = _all_sizes(growth.sizes) if step is None else [size - step]
            for size in sizes:
                text = self._text_of(growth, size)
                start = end - len(text)
                if text and start >= lowest and self._flat.startswith(text, start) and self._is_whole(start, end):
                    break
            else:
                return
            yield size, start
            end = start

    def _behind(self, growth: Growth, start: int, step: int | None, highest: int) -> Iterator[tuple[int, int]]:
        """The sizes of iterations that begin with the record `start`, and the records behind them."""
        size = growth.sizes[-1]
        while True:
            sizes = _all_sizes(growth.sizes) if step is None else [size + step]
            for size in sizes:
                text = self._text_of(growth, size)
                end = start + len(text)
                if text and end <= highest and self._flat.startswith(text, start) and self._is_whole(start, end):
                    break
            else:
                return
            yield size, end
            start = end

    @staticmethod
    def _text_of(growth: Growth, size: int) -> str:
        try:
            return growth.shapes(size)
        except Unpredictable:
            return ""

    def _is_whole(self, start: int, end: int) -> bool:
        """Whether no growing loop that is known crosses the edges of these records."""
        return not any(
            (old.start < start < old.end) or (old.start < end < old.end) for old in self._padded.placed
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


def _stretch(changes: Sequence[tuple[int, ...]]) -> tuple[int, int | None]:
    """How many iterations, whose counts are given, are a loop; and by how much they grow, None without a progression."""
    steps = [tuple(b - a for a, b in zip(one, other)) for one, other in zip(changes, changes[1:])]
    lengths: list[int] = []
    k = 0
    while k < len(changes):
        end = k + 1
        while end < len(changes) and steps[end - 1] == steps[k]:
            end += 1
        lengths.append(end - k)
        k = end
    if len(lengths) == 1 or len(changes) >= _FEWEST_IN_PROGRESSION * len(lengths):
        step = steps[0][0]
        return lengths[0], step or None
    return len(changes), None


def _all_sizes(sizes: Sequence[int]) -> Iterator[int]:
    """Sizes that an iteration might have, largest ones first."""
    return iter(range(2 * max(sizes), -1, -1))


# ---- 5: operands ------------------------------------------------------------------------------------


class _Regularity:
    """Whether the operands of a growing loop are regular.

    Args:
        trace: without holes.
        padded: what is known already.
        start, end: the records of the loop.
        tree: the loop.
        is_ragged: whether its counts follow no progression.
    """

    def __init__(self, trace: Trace, padded: Padded, start: int, end: int, tree: Grown, is_ragged: bool) -> None:
        self._trace, self._tree, self._is_ragged = trace, tree, is_ragged
        self._start, self._end, self._places = start, end, padded.places
        self._offsets = offsets(tree)
        self._has_right_size = len(self._offsets) == end - start

    def holds(self) -> bool:
        """Look at all operands."""
        trace, start, end = self._trace, self._start, self._end
        if not self._has_right_size or BACKWARD in trace.op[start:end]:
            return False
        columns = []
        for column in (trace.a, trace.b, trace.c):
            if column is not None:
                operands = column[start:end]
                if any(leaf_kind(operand) == ADJOINT for operand in set(operands) if operand < 0):
                    return False
                columns.append(self._padded(operands))
        dimension = Dimension(Loop(0, []), 0, self._tree.count, self._tree.size, None, True)
        return self._all_regular(self._tree, 0, (dimension,), columns)

    def _padded(self, operands: array[int]) -> array[int]:
        """Operands at the places of the box, with the places of what they refer to."""
        found = array("i", bytes(4 * size_of(self._tree)))
        start, places = self._start, self._places
        base = places[start]
        for offset, operand in zip(self._offsets, operands):
            if operand >= start:
                operand = base + self._offsets[operand - start]
            elif operand >= 0:
                operand = places[operand]
            found[offset] = operand
        return found

    def _all_regular(
        self, tree: Grown, base: int, dimensions: tuple[Dimension, ...], columns: Sequence[array[int]]
    ) -> bool:
        domain = domain_of(dimensions)
        for part in tree.body:
            if isinstance(part, Grown):
                inner = Dimension(Loop(0, []), 0, part.count, part.size, part.counts, part.grows)
                if not self._all_regular(part, base, (*dimensions, inner), columns):
                    return False
            elif not all(self._is_regular(column, base, domain) for column in columns):
                return False
            base += size_of(part)
        return True

    def _is_regular(self, column: array[int], base: int, domain: Box | Bounded) -> bool:
        if domain.is_empty() or domain.affine(column, base, frozenset()) is not None:
            return True
        dimensions = domain.dimensions
        for k, d in enumerate(dimensions):
            rest = domain_of([*dimensions[:k], d._replace(low=1), *dimensions[k + 1 :]])
            if rest.is_empty() or rest.affine(column, base, frozenset()) is not None:
                return True
        entries = [column[position] for position in domain.positions(base)]
        if min(entries) >= 0 and max(entries) < self._places[self._start]:
            return True
        if not self._is_ragged and max(entries) >= 0:
            return False
        steps, _ = separate(domain.points, entries)
        return None not in steps[1:]
