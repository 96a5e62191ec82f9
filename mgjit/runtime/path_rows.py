"""Rows of `.loop` that take several paths through a step, in one foreign call.

1. All kernels for the paths of one structure get the same rows, which are packed at once, and outputs of their own.
2. C runs each row by the kernel of the row before.  If that says that an assumption does not hold, what it has written
   is put back, and the row goes to one whose answers begin as they have to (`mgjit_paths`, codegen/entries.py).
   Numbers that are copied from the user's objects go with it from the memory of one kernel to that of the other.
3. C stops in front of a row for which there is none: that one is a call of its own.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

from ..base import ffi
from ..base.interruption import with_cleanup
from ..engine.state import zero_array
from ..tracing.call.collected import as_it_is, collect_results
from ..tracing.call.rows import Rows
from ..tracing.copies.copies import Copied
from ..tracing.surroundings.places import Element, Place
from .kernel import Kernel
from .loop import CountingRunner, NativeRunner, in_chunks
from .turns import is_settled, may_loop
from .undo import written

#: So many kernels at most, each of which has a bit of a word.
_MOST = 60


class PathRows(CountingRunner):
    """Runs rows, as a Runner (loop.py); stops in front of a row that is for none of its kernels.

    Args:
        kernels: for paths of one structure; `usable` has chosen them.
        rows: checked.
    """

    def __init__(self, kernels: Sequence[Kernel], rows: Rows) -> None:
        self.kernels, self.count = kernels, rows.count
        self._others: list[Any] = []  # the results of rows that were calls of their own
        self._outputs = [zero_array(rows.count * len(k.outputs), k.plan.precision) for k in kernels]
        self._taken = array("q", bytes(8 * rows.count))
        self._budgets = array("q", [0] * len(kernels))
        most = max(len(kernel.told) for kernel in kernels)
        self._numbers = array("q", [0, 0, -1, len(kernels), most])
        functions, arguments, memories = (ffi.PointerBlock(len(kernels)) for _ in range(3))
        facts, places, pairs = array("q"), array("q"), list[tuple[Any, Any]]()
        self._copied = _Shared(kernels)
        for number, (kernel, outputs) in enumerate(zip(kernels, self._outputs)):
            library = kernel.code.library
            assert library is not None
            functions.set_function(number, library, "mgjit_loop")
            arguments.set_block(number, NativeRunner(library, kernel, rows, outputs, 1).both)
            slots = [] if kernel.code.asks_first else written(kernel.code)
            own = [kernel.buffers[k] for k in slots if len(kernel.buffers[k])]
            facts.extend([kernel.slot("output", 0), kernel.verdict, len(pairs), len(pairs) + len(own)])
            pairs += [(buffer, zero_array(len(buffer), kernel.plan.precision)) for buffer in own]
            facts.append(len(places) // 2)
            if kernel.copies is not None:
                memories.set(number, kernel.copies.numbers)
                places.extend(chain.from_iterable(self._copied.places[number]))
            facts.append(len(places) // 2)
        memory = ffi.PointerBlock(2 * len(pairs))
        for place, buffer in enumerate(chain.from_iterable(pairs)):
            memory.set(place, buffer)
        sizes = array("q", [len(buffer) for buffer, _ in pairs])
        all_ = ffi.PointerBlock(12)
        for place, block in enumerate((functions, arguments, memory), 1):
            all_.set_block(place, block)
        all_.set_block(9, memories)
        integers: dict[int, Any] = {0: self._numbers, 4: facts, 5: sizes, 7: self._taken, 10: places, 11: self._budgets}
        for place, buffer in {**integers, 6: _answers(kernels, most), 8: self._copied.numbers}.items():
            if len(buffer):
                all_.set(place, buffer)
        library = kernels[0].code.library
        assert library is not None
        self._call = library.bind("mgjit_paths", all_)

    def begin(self) -> None:
        """Copy what the kernels copy; each may run rows up to the one that is to be compared."""
        self._numbers[2] = -1
        for number, kernel in enumerate(self.kernels):
            is_far = kernel.trial is None or kernel.trial.is_over
            self._budgets[number] = self.count if is_far else max(0, kernel.trial.left - 1)
        self._copied.copy_in()

    def end(self, counts: Sequence[int]) -> None:
        """Copy back what those assign that have run rows.

        Args:
            counts: how many rows each had run before.
        """
        ran = [number for number, count in enumerate(self.counts()) if count > counts[number]]
        if ran:
            self._copied.copy_out(self._numbers[2], ran)

    def skip(self, result: Any) -> None:
        """Pass over a row that was a call of its own."""
        self._taken[self.done] = len(self.kernels)
        self._others.append(as_it_is(result))
        self._numbers[1] += 1

    def may_go_on(self) -> bool:
        """Whether the kernels may run more rows, after a call that was none of these."""
        return all(map(is_settled, self.kernels))

    def results(self) -> Iterator[Any]:
        """The result of each row that was run."""
        places, others = [0] * len(self.kernels), iter(self._others)
        for path in self._taken[: self.done]:
            if path == len(self.kernels):
                yield next(others)
                continue
            kernel, place = self.kernels[path], places[path]
            places[path] += len(kernel.outputs)
            yield kernel.result(self._outputs[path][place : places[path]])

    def columns(self) -> Any:
        """The same as columns; None where results differ in more than numbers."""
        counts, taken = self.counts(), self._taken[: self.done]
        columns = [
            kernel.result.columns(outputs[: count * len(kernel.outputs)], len(kernel.outputs), count) if count else None
            for kernel, outputs, count in zip(self.kernels, self._outputs, counts)
        ]
        columns.append(collect_results(self._others) if self._others else None)
        return _united(columns, lambda found: _in_turn(found, taken))

    def counts(self) -> list[int]:
        """How many rows each kernel has run."""
        taken = self._taken[: self.done]
        return [taken.count(path) for path in range(len(self.kernels))]


def usable(kernels: Sequence[Kernel], rows: Rows) -> list[Kernel]:
    """Those of these kernels that may run the next rows.

    Args:
        kernels: for the paths of one structure, the likeliest first. rows: packed by one of them.

    Raises:
        IndexRangeError: a run-time index of some row is out of range.
    """
    found: list[Kernel] = []
    for kernel in kernels:
        may_be = kernel.plan is rows.plan and is_settled(kernel)
        if not may_be or len(found) == _MOST or not are_apart([*found, kernel]):
            continue
        kernel.check_rows(rows)
        if kernel.stays_exact(rows) and may_loop(kernel, rows):
            found.append(kernel)
    return found


def run_path_rows(runner: PathRows, report: Callable[[int], Any], count: array[int]) -> None:
    """Run rows until one is for none of the kernels, or all have been run.

    Args:
        report, count: as for `run_rows`.
    """
    before, done, counts = count[0], runner.done, runner.counts()
    runner.begin()

    def work() -> None:
        for chunk in in_chunks(runner.kernels[0], runner, runner.count):
            report(chunk)

    def show() -> None:
        runner.end(counts)
        count[0] = before + runner.done - done

    with_cleanup(work, show)
    for kernel, earlier, now in zip(runner.kernels, counts, runner.counts()):
        kernel.helped += now - earlier
        if kernel.trial is not None and not kernel.trial.is_over:
            kernel.trial.left -= now - earlier


def joined(columns: Sequence[Any]) -> Any:
    """The columns of rows that follow each other, from those of parts of them; None where these differ."""
    return _united(columns, lambda found: array("d", chain.from_iterable(found)))


def _united(columns: Sequence[Any], unite: Callable[[Sequence[Any]], array[float]]) -> Any:
    """Columns of the same structure as one; those that are None have no rows.

    Args:
        unite: makes one array of several, some of which may be empty.
    """
    known = [column for column in columns if column is not None]
    kind = type(known[0]) if known else None
    if any(type(column) is not kind for column in known):
        return None
    if kind is array:
        return unite([() if column is None else column for column in columns])
    if kind not in (tuple, list) or len({len(column) for column in known}) != 1:
        return None
    parts = [_united([None if c is None else c[k] for c in columns], unite) for k in range(len(known[0]))]
    return None if any(part is None for part in parts) else kind(parts)


def _in_turn(found: Sequence[Sequence[float]], taken: array[int]) -> array[float]:
    """One number for each row, the next one of the sequence that it has taken."""
    following = [iter(numbers).__next__ for numbers in found]
    return array("d", [following[k]() for k in taken])


class _Shared:
    """Numbers that kernels copy from the user's objects, which go from one to the other with the rows.

    Attributes:
        numbers: all of them, as they were after the last kernel but the one at work.
        places: for each kernel, where each of its numbers lies in `numbers`, and where in its own memory.
    """

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        self._kernels = kernels
        starts: dict[Any, int] = {}
        self.places: list[list[tuple[int, int]]] = []
        size = 0
        for kernel in kernels:
            mine: list[tuple[int, int]] = []
            for part in _parts(kernel):
                start = starts.setdefault(_key(part.place), size)
                size = max(size, start + part.count)
                mine += zip(range(start, start + part.count), part.offsets)
            self.places.append(mine)
        self.numbers = zero_array(size, kernels[0].plan.precision)

    def copy_in(self) -> None:
        """Let all kernels look at what they copy, and copy it here."""
        for number, kernel in enumerate(self._kernels):
            kernel.copy_in()
            self._take(number)

    def copy_out(self, last: int, those: Sequence[int]) -> None:
        """Copy back what those kernels assign, the last of which is `last`."""
        self._take(last)
        for number in those:
            copies = self._kernels[number].copies
            if copies is not None:
                for there, own in self.places[number]:
                    copies.numbers[own] = self.numbers[there]
                copies.show()

    def _take(self, number: int) -> None:
        copies = self._kernels[number].copies
        for there, own in self.places[number] if copies is not None else ():
            self.numbers[there] = copies.numbers[own]  # type: ignore[union-attr]


def are_apart(kernels: Sequence[Kernel]) -> bool:
    """Whether kernels may take turns without Python: no number that one changes is another kind, or constant, to one.

    The last one is compared with the others.
    """
    last, others = kernels[-1], kernels[:-1]
    if any(part.replaced or part.mixed or part.given is not None for part in _parts(last)):
        return False
    if last.copies is not None and (last.copies.told.paths or last.copies.built.places or last.copies.told.kept):
        return False
    if not all(part.integers == part.given_integers for part in _parts(last) if part.assigned):
        return False
    return all(_get_on(one, other) for other in others for one, other in ((last, other), (other, last)))


def _get_on(one: Kernel, other: Kernel) -> bool:
    """Whether another kernel copies all that one assigns, or looks at none of it; and takes it for the same kind."""
    theirs = {_key(part.place): part for part in _parts(other)}
    for part in _parts(one):
        same = theirs.get(_key(part.place))
        if same is not None and _kinds(same) != _kinds(part):
            return False
        if same is None and part.assigned and other.guard.may_watch(part.place, part.size > 0):
            return False
    return True


def _kinds(part: Copied) -> Any:
    kinds = part.given_integers, part.numpy_floats
    return part.size, [{number - part.offset for number in kind} for kind in kinds]


def _parts(kernel: Kernel) -> Sequence[Copied]:
    return () if kernel.copies is None else kernel.copies.parts


def _key(place: Place) -> Any:
    """Equal for places that are one."""
    return (place.name, _key(place.holder)) if isinstance(place, Element) else place.key


def _answers(kernels: Sequence[Kernel], most: int) -> array[float]:
    """For each kernel what the step was told; what is no int as another number, as far as it differs."""
    others: dict[Any, float] = {}
    found = array("d")
    for kernel in kernels:
        contents = [answer.content for answer in kernel.told]
        numbers = [float(c) if isinstance(c, int) else others.setdefault(c, len(others) + 0.5) for c in contents]
        found.extend([*numbers, *[math.nan] * (most - len(numbers))])
    return found
