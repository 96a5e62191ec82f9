"""Roll a flat trace back into nested loops.

The result is a forest over trace positions: a Fold covers `count` repetitions of `period` records, with a
body of records and further Folds; `passes/lift.py` turns it into statements.

1. Every record has a shape: its operation, the kinds of its operands (not for additions, whose chains start
   with any kind), and the backward passes that reach it.  The shapes of a sequence are a `str`, one
   character each, so that searching and comparing them runs at the speed of C.
2. Scan the sequence from left to right.  At an item, the next few items of the same shape propose periods;
   a period whose shapes repeat extends to a run.
3. Of the rotations of a run (the places where its iterations may start), take the one with the fewest
   operands that reach into the previous iteration.
4. Wiring decides how many iterations of the run are a loop.  For every operand, in every iteration from the
   second on: an operand inside the run is at the same relative place as in the iteration before, or (second
   iteration only) in the first iteration where the first iteration read something outside; an operand
   outside of the run was outside in the iteration before.  What lies outside may be arbitrary.
5. Fold: the loop becomes one item whose shape is (count, shapes of the body).  Short periods go first, and
   loops of many iterations before loops of few; repeat until nothing folds.

Anything that does not fold stays as it is; correctness never depends on what was found.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Union

from ..record.opcodes import ADD, ADJOINT, NUMBER, operation_name
from ..record.trace import Trace
from .known_loops import FEWEST, KnownLoops, KnownSteps, known_loops, operand_kinds
from .repeats import Repeat, Repeats
from .runs import PossibleStarts, Rotations


@dataclass(frozen=True)
class Fold:
    """`count` iterations, each of `period` consecutive records from `start` on."""

    start: int
    count: int
    period: int
    body: tuple[Item, ...]

    @property
    def end(self) -> int:
        """The position after the last record."""
        return self.start + self.count * self.period


#: A record position, or a loop.
Item = Union[int, Fold]

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
    return _Roller(trace, marks).run()


class _Roller:
    def __init__(self, trace: Trace, marks: Sequence[int] | None) -> None:
        self.columns = [trace.a, trace.b] + ([trace.c] if trace.c is not None else [])
        self.items: list[Item] = []
        self._repeats: Repeats | None = None
        self._found: dict[tuple[int, int], list[Repeat]] = {}  # by period and fewest iterations
        self._no_loops: set[tuple[int, ...]] = set()  # runs in which no loop was found, and whose items are unchanged
        #: By period, end and fewest iterations, of long periods: how iterations may be cut, and where they may start.
        self._rotations: dict[tuple[int, int, int], Rotations] = {}
        self._possible: dict[tuple[int, int, int], PossibleStarts] = {}
        self._fold_shapes: dict[object, str] = {}
        self._next_shape = 1
        self._known_steps = KnownSteps(trace.blocks, trace.b)
        known = known_loops(trace, marks)
        self.starts: list[int] = []
        self._take(known, _record_shapes(trace, marks, known))

    def _take(self, known: Sequence[KnownLoops], shapes: Sequence[str]) -> None:
        """Begin with the records outside of blocks, in between the loops of blocks.

        Args:
            shapes: of the records before each block, then of those of a neuron, in turn; at last of those at the end.
        """
        self._next_shape = ord(max(map(max, filter(None, shapes)), default="\0")) + 1
        parts = []
        done = 0
        for loops, before, neuron in zip(known, shapes[::2], shapes[1::2]):
            block = loops.block
            self.items += range(done, block.start)
            self.starts += range(done, block.start)
            items, inner = self._neuron(loops, block.start, neuron)
            if loops.is_nest:
                items = [Fold(block.start, block.neurons, block.period, tuple(items))]
                inner = self._fold_shape(block.neurons, inner)
            else:
                for start in range(block.start + block.period, block.end, block.period):
                    items += self._neuron(loops, start, neuron)[0]
                inner *= block.neurons
            self.items += items
            self.starts += [item.start if isinstance(item, Fold) else item for item in items]
            parts += [before, inner]
            done = block.end
        self.items += range(done, len(self.columns[0]))
        self.starts += range(done, len(self.columns[0]) + 1)
        self.shapes = "".join([*parts, shapes[-1]])

    def _neuron(self, loops: KnownLoops, start: int, shapes: str) -> tuple[list[Item], str]:
        """The items of a neuron, and their shapes."""
        items: list[Item] = []
        parts = []
        first = 0
        for length in loops.stretches:
            end = first + 2 * length
            if length >= FEWEST:
                items.append(Fold(start + first, length, 2, (start + first, start + first + 1)))
                parts.append(self._fold_shape(length, shapes[first : first + 2]))
            else:
                items += range(start + first, start + end)
                parts.append(shapes[first:end])
            first = end
        return [*items, *range(start + first, start + len(shapes))], "".join([*parts, shapes[first:]])

    def run(self) -> list[Item]:
        for fewest in (4, 3, 2):
            while self._sweep(fewest):
                pass
        return self.items

    def _sweep(self, fewest: int) -> bool:
        """Fold runs of at least `fewest` iterations, short periods first; returns whether anything was folded."""
        folded = False
        for longest in (1, 2, 4, _ALIKE):
            while self._fold_round(1, longest, fewest):
                folded = True
        shortest, longest = _ALIKE + 1, 2 * _ALIKE
        while not folded and shortest <= len(self.items) // fewest:
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
            for _, repeats in pending:
                while repeats and repeats[0].last < k:
                    repeats.popleft()
            pending = [(period, repeats) for period, repeats in pending if repeats]
            if not pending:
                return
            k = max(k, min(repeats[0].first for _, repeats in pending))
            for period, repeats in pending:
                if repeats[0].first <= k and shapes.count(shapes[k], k + 1, k + period + 1) <= _CANDIDATES:
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
        shapes, following = self.shapes, _next_alike(self.shapes)
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
        flat_period = starts[k + period] - starts[k]
        if fewest < 4 and flat_period < _SHORT_LOOP_PERIOD:
            return None
        run = starts[k], flat_period, period, starts[end], fewest
        if run in self._no_loops:
            return None
        key = period, end, fewest
        if key in self._possible and not self._possible[key].has_any(k, period):
            return None
        for rotation in self._rotations_of(key, k, flat_period):
            first = k + rotation
            possible = (end - first) // period
            count = self._wired(starts[first], flat_period, possible) if possible >= fewest else 0
            if count >= fewest:
                return self._without_strangers(first, period, count, possible, fewest)
        self._no_loops.add(run)
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
        if self._is_stranger(starts[first], flat_period, starts[first], flat_period):
            first += period
            count = self._wired(starts[first], flat_period, possible - 1)
        last = starts[first] + (count - 1) * flat_period
        if count > max(fewest, 4) and self._is_stranger(last, -flat_period, starts[first], flat_period):
            count -= 1
        return first, period, count

    def _is_stranger(self, at: int, step: int, start: int, period: int) -> bool:
        """Whether the iteration at `at` breaks the pattern of the three iterations that follow it by `step`."""
        stranger = False
        for column in self.columns:
            for position in range(at, at + period):
                a, b, c, d = [column[position + k * step] for k in range(4)]
                if b < start and c < start:  # these read from outside, not from the iteration before
                    if c - b != d - c:
                        return False
                    stranger |= b - a != c - b
        return stranger

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

    def _wired(self, start: int, period: int, count: int) -> int:
        """How many iterations from `start` on are wired alike."""
        limit = count
        for column, positions in self._to_compare(start, period, count):
            for position in positions:
                second = column[position + period]
                first = column[position]
                if second < start:
                    if first >= start:
                        return 1
                    if limit > 2:
                        limit = _outside(column, position, period, limit, start)
                elif second - first == period or (first < start and second < start + period):
                    if limit > 2:
                        limit = _progressing(column, position, period, limit)
                else:
                    return 1
        return limit

    def _to_compare(self, start: int, period: int, count: int) -> Iterator[tuple[array[int], Iterable[int]]]:
        """The operands that decide how iterations are wired: of blocks, the inputs of the first neuron."""
        blocks = self._known_steps.repeated(start, period, count)
        if not blocks:
            yield from ((column, range(start, start + period)) for column in self.columns)
            return
        edges = [start, *(edge for block in blocks for edge in (block.start, block.end)), start + period]
        gaps = [range(low, high) for low, high in zip(edges[::2], edges[1::2])]
        inputs = [range(block.start, block.start + 2 * block.inputs, 2) for block in blocks]
        for column in self.columns:
            yield column, chain(*gaps, *(inputs if column is self.columns[1] else ()))

    # ---- folding --------------------------------------------------------------------------------

    def _replace(self, found: list[_Run]) -> None:
        items, shapes, starts = self.items, self.shapes, self.starts
        new_items: list[Item] = []
        new_shapes: list[str] = []
        new_starts: list[int] = []
        done = 0
        for first, period, count in found:
            new_items += items[done:first]
            new_shapes.append(shapes[done:first])
            flat_period = starts[first + period] - starts[first]
            new_items.append(Fold(starts[first], count, flat_period, tuple(items[first : first + period])))
            new_shapes.append(self._fold_shape(count, shapes[first : first + period]))
            new_starts += starts[done : first + 1]
            done = first + period * count
        new_items += items[done:]
        new_shapes.append(shapes[done:])
        self.items, self.shapes = new_items, "".join(new_shapes)
        self._repeats, self._found = None, {}
        self._rotations, self._possible = {}, {}
        new_starts += starts[done:]
        self.starts = new_starts

    def _fold_shape(self, count: int, body: str) -> str:
        key = count, body
        shape = self._fold_shapes.get(key)
        if shape is None:
            shape = self._fold_shapes[key] = chr(self._next_shape)
            self._next_shape += 1
        return shape


def _next_alike(shapes: str) -> list[int]:
    """For each item, the next one that is followed by the same shapes; -1 if there is none."""
    following = [-1] * len(shapes)
    seen: dict[str, int] = {}
    for k in range(len(shapes) - _ALIKE, -1, -1):
        gram = shapes[k : k + _ALIKE]
        following[k] = seen.get(gram, -1)
        seen[gram] = k
    return following


def _outside(column: array[int], position: int, period: int, count: int, start: int) -> int:
    """How many iterations (of `count`) have their operand before `start`."""
    entries = column[position : position + count * period : period]
    if max(entries) < start:
        return count
    return next(t for t, operand in enumerate(entries) if operand >= start)


def _progressing(column: array[int], position: int, period: int, count: int) -> int:
    """How many iterations have their operand `period` behind that of the iteration before, from the second on."""
    entries = column[position + period : position + count * period : period]
    expected = array("i", range(entries[0], entries[0] + (count - 1) * period, period))
    if entries == expected:
        return count
    low, high = 1, count - 1  # entries[:low] agree, entries[:high] do not
    while high - low > 1:
        middle = (low + high) // 2
        if entries[low:middle] == expected[low:middle]:
            low = middle
        else:
            high = middle
    return low + 1


def _record_shapes(trace: Trace, marks: Sequence[int] | None, known: Sequence[KnownLoops]) -> list[str]:
    """One character for each record: equal characters may be the same statement of a loop.

    Returns:
        The characters of the records before each of the known loops, then of those of a neuron, in turn; at last those
        of the records at the end.
    """
    table = _Shapes()

    def shapes(low: int, high: int) -> str:
        kinds = [operand_kinds(column[low:high]) for column in (trace.a, trace.b)]
        columns: list[Sequence[int]] = [trace.op[low:high], *kinds]
        columns.append(marks[low:high] if marks is not None else bytes(high - low))
        if trace.c is not None:
            columns.append(operand_kinds(trace.c[low:high]))
        return "".join(map(table.__getitem__, zip(*columns)))

    found, done = [], 0
    for block in (loops.block for loops in known):
        found += [shapes(done, block.start), shapes(block.start, block.start + block.period)]
        done = block.end
    return [*found, shapes(done, len(trace))]


class _Shapes(dict[tuple[int, ...], str]):
    """The character of each (operation, kinds of a and b, mark[, kind of c])."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, ...], str] = {}

    def __missing__(self, key: tuple[int, ...]) -> str:
        op, kind_a, kind_b, *rest = key
        merged = key
        if op in (ADD, ADD | NUMBER):  # a chain may start with any kind, but not with a gradient of a node
            merged = (op, int(kind_a == ADJOINT), int(kind_b == ADJOINT), *rest)
        shape = self[key] = self._numbers.setdefault(merged, chr(len(self._numbers) + 1))
        return shape


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
            lines.append(f"{indent}for {item.count}:  # records {item.start} .. {item.end - 1}")
            stack.append((indent + "    ", list(reversed(item.body))))
        else:
            lines.append(f"{indent}{operation_name(trace.op[item])}")
    return "\n".join(lines)
