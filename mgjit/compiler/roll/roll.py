"""Roll a flat trace back into nested loops.

The result is a forest over trace positions: a Fold covers `count` repetitions of `period` records, with a
body of records and further Folds; `lift/lift.py` turns it into statements.

1. Every record has a shape: its operation, the kinds of its operands (not for additions, whose chains start
   with any kind), and the backward passes that reach it.  The shapes of a sequence are a `str`, one
   character each, so that searching and comparing them runs at the speed of C.
2. Scan the sequence from left to right.  At an item, the next few items of the same shape propose periods;
   a period whose shapes repeat extends to a run.
3. Of the rotations of a run (the places where its iterations may start), take the one with the fewest
   operands that reach into the previous iteration.
4. Wiring decides how many iterations of the run are a loop (roll/wiring.py, alike_nests.py).  Most runs are wired
   like one that has been looked at, and make the same loop (roll/similar.py).
5. Fold: the loop becomes one item whose shape is (count, shapes of the body).  Short periods go first, and
   loops of many iterations before loops of few; repeat until nothing folds.  The shapes tell what the forest is.

Anything that does not fold stays as it is; correctness never depends on what was found.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from ...ir.opcodes import ADD, ADJOINT, NUMBER, TAKE, leaf_index
from ...ir.trace import Trace
from .alike_nests import AlikeNests
from .forest import Counts, Fold, Item
from .known_loops import FEWEST, KnownLoops, KnownSteps, known_loops, operand_kinds
from .repeats import Repeat, Repeats
from .runs import PossibleStarts, Rotations
from .similar import SimilarRuns
from .wiring import Wiring

#: A loop that was found: its first item, its period in items, and the number of iterations.
_Run = tuple[int, int, int]

#: How many of the next items of the same shape propose a period, and how many of those followed by equal shapes.
_CANDIDATES, _LONG_CANDIDATES = 4, 16
#: Long periods are proposed by so many equal shapes in a row instead of by one.
_ALIKE = 8
#: Loops of fewer iterations than 4 must cover at least this many records in an iteration.
_SHORT_LOOP_PERIOD = 8


def roll(trace: Trace, marks: Sequence[int] | None = None) -> list[Item]:
    """The forest of loops over the records of a trace.

    Args:
        trace: the flat trace.
        marks: for each record, an int that records must have in common to share a loop.
    """
    return Roller(trace, marks).run()


class FoldShape(NamedTuple):
    """What the shape of a loop stands for: see `Fold`; the body as shapes, and its number of records."""

    count: int  # type: ignore[assignment]  # shadows tuple.count
    body: str
    records: int
    counts: Counts | None = None
    grows: bool = False


class Roller:
    """Rolls one trace.

    Args:
        trace, marks: see `roll`.
        growing: loops that are known, from left to right, whose records are not searched for others.
        like: a record with the shape of another one, which may be a hole of one of these loops.
    """

    def __init__(
        self,
        trace: Trace,
        marks: Sequence[int] | None,
        growing: Sequence[Fold] = (),
        like: Callable[[int], int] = int,
    ) -> None:
        self.columns = [trace.a, trace.b] + ([trace.c] if trace.c is not None else [])
        self._repeats: Repeats | None = None
        self._found: dict[tuple[int, int], list[Repeat]] = {}  # by period and fewest iterations
        self._following: list[int] = []  # of each item
        self._no_loops: set[tuple[int, ...]] = set()  # runs in which no loop was found, and whose items are unchanged
        #: By period, end and fewest iterations, of long periods: how iterations may be cut, and where they may start.
        self._rotations: dict[tuple[int, int, int], Rotations] = {}
        self._possible: dict[tuple[int, int, int], PossibleStarts] = {}
        self._similar, self._nests = SimilarRuns(self.columns), AlikeNests(trace)
        self._wiring = Wiring(self.columns, KnownSteps(trace.blocks, trace.b))
        self._fold_shapes: dict[tuple[int, str, Counts | None, bool], str] = {}
        #: What the shapes of loops stand for.
        self.folds: dict[str, FoldShape] = {}
        self.next_shape = 1
        known = known_loops(trace, marks)
        self.starts: Sequence[int] = []
        shapes = _record_shapes(trace, marks, known, self._nests.forms() if trace.nests else None)
        self._take(known, shapes)
        if growing:
            neurons = (neuron * loops.block.neurons for loops, neuron in zip(known, shapes[1::2]))
            parts = [part for pair in zip(shapes[::2], neurons) for part in pair]
            self._take_growing(growing, "".join([*parts, shapes[-1]]), like)

    def _take(self, known: Sequence[KnownLoops], shapes: Sequence[str]) -> None:
        """Begin with the records outside of blocks, in between the loops of blocks.

        Args:
            shapes: of the records before each block, then of those of a neuron, in turn; at last of those at the end.
        """
        self.next_shape = ord(max(map(max, filter(None, shapes)), default="\0")) + 1
        parts: list[str] = []
        starts: list[int] = []
        done = 0
        for loops, before, neuron in zip(known, shapes[::2], shapes[1::2]):
            block, folded = loops.block, self._neuron(loops, neuron)
            starts += range(done, block.start)
            if loops.is_nest:
                parts += [before, self._fold_shape(block.neurons, folded)]
                starts.append(block.start)
            else:
                parts += [before, folded * block.neurons]
                starts += list(accumulate(map(self.records, parts[-1]), initial=block.start))[:-1]
            done = block.end
        self.shapes = "".join([*parts, shapes[-1]])
        last = range(done, len(self.columns[0]) + 1)
        self.starts = [*starts, *last] if known else last

    def _take_growing(self, growing: Sequence[Fold], records: str, like: Callable[[int], int]) -> None:
        """Put known loops in the place of their records.

        Args:
            records: the shapes of all records.
        """

        def shape(item: Item) -> str:
            if not isinstance(item, Fold):
                return records[like(item)]
            return self._fold_shape(item.count, "".join(map(shape, item.body)), item.counts, item.grows)

        parts: list[str] = []
        starts: list[int] = []
        done = 0
        for fold in growing:
            low, high = (bisect_left(self.starts, edge) for edge in (fold.start, fold.end))
            parts += [self.shapes[done:low], shape(fold)]
            starts += self.starts[done : low + 1]
            done = high
        self.shapes = "".join([*parts, self.shapes[done:]])
        self.starts = [*starts, *self.starts[done:]]

    def _neuron(self, loops: KnownLoops, shapes: str) -> str:
        """The shapes of the items of a neuron, whose records have the given ones."""
        parts = []
        first = 0
        for length in loops.stretches:
            end = first + 2 * length
            pair = shapes[first : first + 2]
            parts.append(self._fold_shape(length, pair) if length >= FEWEST else shapes[first:end])
            first = end
        return "".join([*parts, shapes[first:]])

    def run(self) -> list[Item]:
        """The forest."""
        for fewest in (4, 3, 2):
            while self._sweep(fewest):
                pass
        return [*map(self._item, self.shapes, self.starts)]

    def _sweep(self, fewest: int) -> bool:
        """Fold runs of at least `fewest` iterations, short periods first; returns whether anything was folded."""
        folded = False
        for longest in (1, 2, 4, _ALIKE):
            while self._fold_round(1, longest, fewest):
                folded = True
        shortest, longest = _ALIKE + 1, 2 * _ALIKE
        while not folded and shortest <= len(self.shapes) // fewest:
            # Folding long periods may make short ones possible, which then go first, in the next sweep.
            folded = self._fold_round(shortest, longest, fewest)
            shortest, longest = longest + 1, longest * (2 if longest < 64 else 4)
        return folded

    def _fold_round(self, shortest: int, longest: int, fewest: int) -> bool:
        """One scan for runs with a period of `shortest` to `longest` items; fold what is found."""
        find = self._short_runs(longest, fewest) if longest <= _ALIKE else self._long_runs(shortest, longest, fewest)
        found = list(find)
        if found:
            self._replace(found)
        return bool(found)

    def _short_runs(self, longest: int, fewest: int) -> Iterator[_Run]:
        """Loops of a period up to `longest`, from left to right."""
        shapes = self.shapes
        pending = [(period, deque(self._repeats_of(period, fewest))) for period in range(1, longest + 1)]
        k = 0
        while True:
            nearest = len(shapes)
            for _, repeats in pending:
                while repeats and repeats[0].last < k:
                    repeats.popleft()
                if repeats and repeats[0].first < nearest:
                    nearest = repeats[0].first
            if nearest == len(shapes):
                return
            k = max(k, nearest)
            for period, repeats in pending:
                if repeats and repeats[0].first <= k:
                    if shapes.count(shapes[k], k + 1, k + period + 1) > _CANDIDATES:
                        continue
                    run = self._loop_at(k, period, fewest, repeats[0].end)
                    if run is not None:
                        yield run
                        k = run[0] + run[1] * run[2] - 1
                        break
            k += 1

    def _repeats_of(self, period: int, fewest: int) -> list[Repeat]:
        key = period, fewest
        if key not in self._found:
            self._repeats = self._repeats or Repeats(self.shapes)
            self._found[key] = self._repeats.of(period, fewest)
        return self._found[key]

    def _long_runs(self, shortest: int, longest: int, fewest: int) -> Iterator[_Run]:
        """Loops of a period that is longer than `_ALIKE`, from left to right."""
        shapes = self.shapes
        self._following = following = self._following or _next_alike(shapes)
        ends: dict[int, int] = {}  # of the last run of each period
        k, last = 0, len(shapes) - fewest + 1
        while k < last:
            run = None
            tried = 0
            q = following[k]
            while 0 <= q <= k + longest and tried < _LONG_CANDIDATES:
                period = q - k
                if period >= shortest:
                    tried += 1
                    if q + period > ends.get(period, 0) and shapes[k:q] == shapes[q : q + period]:
                        ends[period] = self._run_end(k, period)
                    if q + period <= ends.get(period, 0):
                        run = self._loop_at(k, period, fewest, ends[period])
                        if run is not None:
                            break
                q = following[q]
            if run is None:
                k += 1
            else:
                yield run
                k = run[0] + run[1] * run[2]

    # ---- runs -----------------------------------------------------------------------------------

    def _loop_at(self, k: int, period: int, fewest: int, end: int) -> _Run | None:
        """The loop in the run of items `k .. end-1`, or None."""
        if (end - k) // period < fewest:
            return None
        starts = self.starts
        start, stop = starts[k], starts[end]
        flat_period = starts[k + period] - start
        if fewest < 4 and flat_period < _SHORT_LOOP_PERIOD:
            return None
        run = start, flat_period, period, stop, fewest
        if run in self._no_loops:
            return None
        similar = self._similar
        kind = fewest, self.shapes[k : k + period]
        is_known = period <= _ALIKE and not self._nests.are_in(start, start + flat_period)
        lengths = similar.lengths(kind, start, flat_period) if is_known else None
        known = similar.recall(lengths, start, stop, flat_period) if lengths else None
        if known is not None:
            found = (k + known[0], period, known[1]) if known[1] else None
        else:
            found = self._search(k, period, fewest, end)
            if lengths is not None and found is not None:
                records = starts[found[0]] - start + (found[2] + 2) * flat_period
                similar.note(lengths, start, stop, flat_period, records, (found[0] - k, found[2]))
            elif lengths is not None:
                similar.note(lengths, start, stop, flat_period, (fewest + 3) * flat_period, (0, 0))
        if found is None:
            self._no_loops.add(run)
        return found

    def _search(self, k: int, period: int, fewest: int, end: int) -> _Run | None:
        """The same, of a run of at least `fewest` iterations."""
        starts = self.starts
        flat_period = starts[k + period] - starts[k]
        key = period, end, fewest
        if key in self._possible and not self._possible[key].has_any(k, period):
            return None
        for rotation in self._rotations_of(key, k, flat_period):
            first = k + rotation
            possible = (end - first) // period
            count = self._wiring.alike(starts[first], flat_period, possible) if possible >= fewest else 0
            count = self._nests.alike(starts[first], flat_period, count)
            if count >= fewest:
                return self._without_strangers(first, period, count, possible, fewest)
        if period > _ALIKE and key not in self._possible:
            self._possible[key] = PossibleStarts(self.columns, starts, k, end, flat_period, fewest)
        return None

    def _rotations_of(self, key: tuple[int, int, int], k: int, flat_period: int) -> list[int]:
        period = key[0]
        if period == 1:
            return [0]
        rotations = self._rotations.get(key)
        if rotations is None:
            rotations = Rotations(self.columns, self.starts, period, flat_period)
            if period > _ALIKE:
                self._rotations[key] = rotations
        return rotations.best(k)

    def _without_strangers(self, first: int, period: int, count: int, possible: int, fewest: int) -> _Run:
        """The loop without a first or last iteration whose operands break the regular steps of the others.

        Such an iteration belongs to something else, such as the last addition of a sum before additions of vectors.
        """
        starts = self.starts
        flat_period = starts[first + period] - starts[first]
        if period > _ALIKE or count <= max(fewest, 4):
            return first, period, count
        if self._wiring.is_stranger(starts[first], flat_period, starts[first], flat_period):
            first += period
            count = self._wiring.alike(starts[first], flat_period, possible - 1)
        last = starts[first] + (count - 1) * flat_period
        if count > max(fewest, 4) and self._wiring.is_stranger(last, -flat_period, starts[first], flat_period):
            count -= 1
        return first, period, count

    def _run_end(self, k: int, period: int) -> int:
        """The greatest e with shapes[k : e - period] == shapes[k + period : e]."""
        shapes, size = self.shapes, len(self.shapes)
        low, step = k + 2 * period, period
        while low < size:
            high = min(size, low + step)
            if shapes[low - period : high - period] == shapes[low:high]:
                low, step = high, step * 2
                continue
            while high - low > 1:  # the first difference lies in low .. high
                middle = (low + high) // 2
                if shapes[low - period : middle - period] == shapes[low:middle]:
                    low = middle
                else:
                    high = middle
            break
        return low

    # ---- folding --------------------------------------------------------------------------------

    def _replace(self, found: list[_Run]) -> None:
        shapes, starts = self.shapes, self.starts
        new_shapes: list[str] = []
        new_starts: list[int] = []
        done = 0
        for first, period, count in found:
            new_shapes += (shapes[done:first], self._fold_shape(count, shapes[first : first + period]))
            new_starts += starts[done : first + 1]
            done = first + period * count
        new_shapes.append(shapes[done:])
        new_starts += starts[done:]
        self.shapes, self.starts = "".join(new_shapes), new_starts
        self._repeats, self._found, self._following = None, {}, []
        self._rotations, self._possible = {}, {}

    def _fold_shape(self, count: int, body: str, counts: Counts | None = None, grows: bool = False) -> str:
        key = count, body, counts, grows
        shape = self._fold_shapes.get(key)
        if shape is None:
            shape = self._fold_shapes[key] = chr(self.next_shape)
            self.folds[shape] = FoldShape(count, body, sum(map(self.records, body)), counts, grows)
            self.next_shape += 1
        return shape

    def records(self, shape: str) -> int:
        """How many records an item of a shape covers."""
        fold = self.folds.get(shape)
        return 1 if fold is None else fold.count * fold.records

    def _item(self, shape: str, start: int) -> Item:
        """The item of a shape that begins with the record `start`."""
        if shape not in self.folds:
            return start
        count, body, period, counts, grows = self.folds[shape]
        starts = accumulate(map(self.records, body), initial=start)
        return Fold(start, count, period, tuple(map(self._item, body, starts)), counts, grows)


def _next_alike(shapes: str) -> list[int]:
    """For each item, the next one that is followed by the same shapes; -1 if there is none."""
    following = [-1] * len(shapes)
    seen: dict[str, int] = {}
    for k in range(len(shapes) - _ALIKE, -1, -1):
        gram = shapes[k : k + _ALIKE]
        following[k] = seen.get(gram, -1)
        seen[gram] = k
    return following


def _record_shapes(
    trace: Trace, marks: Sequence[int] | None, known: Sequence[KnownLoops], nests: Sequence[int] | None
) -> list[str]:
    """One character for each record: equal characters may be the same statement of a loop.

    Args:
        nests: for each record, an int that nests must have in common, too.

    Returns:
        The characters of the records before each of the known loops, then of those of a neuron, in turn; at last those
        of the records at the end.
    """
    table = Shapes()

    def shapes(low: int, high: int) -> str:
        kinds = [operand_kinds(column[low:high]) for column in (trace.a, trace.b)]
        columns: list[Sequence[int]] = [trace.op[low:high], *kinds]
        columns.append(marks[low:high] if marks is not None else bytes(high - low))
        if trace.c is not None:
            columns.append(operand_kinds(trace.c[low:high]))
        if nests is not None:
            columns.append(nests[low:high])
        if trace.layouts:
            columns.append(memories_of_tables(trace, low, high))
        return "".join(map(table.__getitem__, zip(*columns)))

    found, done = [], 0
    for block in (loops.block for loops in known):
        found += [shapes(done, block.start), shapes(block.start, block.start + block.period)]
        done = block.end
    return [*found, shapes(done, len(trace))]


def memories_of_tables(trace: Trace, low: int, high: int) -> list[int]:
    """For each of these records the memory in which it looks something up: one statement has tables of one memory."""
    starts = sorted([*(start for start, _ in trace.states), *(base for base, _ in trace.bound_storages)])
    return [
        1 + bisect_right(starts, leaf_index(a)) if code & (NUMBER - 1) >= TAKE else 0
        for code, a in zip(trace.op[low:high], trace.a[low:high])
    ]


class Shapes(dict[tuple[int, ...], str]):
    """The character of each (operation, kinds of a and b, mark[, kind of c][, form of a nest][, memory of a table])."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, ...], str] = {}

    def __missing__(self, key: tuple[int, ...]) -> str:
        op, kind_a, kind_b, *rest = key
        merged = key
        if op in (ADD, ADD | NUMBER):  # a chain may start with any kind, but not with a gradient of a node
            merged = (op, int(kind_a == ADJOINT), int(kind_b == ADJOINT), *rest)
        shape = self[key] = self._numbers.setdefault(merged, chr(len(self._numbers) + 1))
        return shape
