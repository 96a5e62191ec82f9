"""Rows of different lengths in one foreign call: running the rows of `.loop` through several kernels in turn.

1. Each row is packed by the kernel for its lengths.  A stretch is as many rows as have kernels that need nothing of
   Python before or after each row.
2. The rows of one kernel in a stretch are a table, as all rows are where their lengths are equal (runtime/loop.py).
   Numbers that are copied from the user's objects lie in the memory of the first kernel, for all of them.
3. C runs the rows in their order, each by the `mgjit_loop` of its kernel, which moves on in its table.
4. Any other row is a call of its own: of lengths that have no kernel yet, or one that is to be compared.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any, Callable

from ..base import ffi
from ..base.interruption import with_cleanup
from ..engine.leaks import PlainCall
from ..engine.state import zero_array
from ..errors import MgjitError
from ..memory.buffers import Moved
from ..tracing.call.results import CompositeResult, ConstantResult, MixedResult, OutputResult, ResultTree
from ..tracing.call.rows import Rows
from ..tracing.copies.copies import Copied
from ..tracing.surroundings.places import Element, Place
from .kernel import Kernel, check_index
from .loop import CountingRunner, NativeRunner, in_chunks

_Row = Sequence[Any]


def run_in_turn(
    rows: Sequence[_Row],
    kernel_for: Callable[[_Row], Kernel | None],
    run: Callable[[_Row], Any],
    report: Callable[[int], Any],
    count: array[int],
) -> Iterator[Any]:
    """Run all rows; yields the result of each.

    Args:
        rows: the arguments of each.
        kernel_for: finds the kernel that fits arguments, which then are in its frame; None if there is none.
        run: makes a call for a row.
        report, count: as for `run_rows`.
    """
    start, is_possible = 0, True
    while start < len(rows):
        stretch = _Stretch(rows, start, kernel_for) if is_possible else None
        if stretch is not None and len(stretch) > 1:
            try:
                is_possible = stretch.has_started(report, count)
            except (Moved, PlainCall):  # before anything was run; a call of its own finds out what is to be done
                is_possible = False
            if is_possible:
                yield from stretch.results()
                start += len(stretch)
                continue
        yield run(rows[start])
        start += 1


class _Group:
    """The rows of one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.count = 0
        self._packed = kernel.frame.packed[:0]
        self._buffers: list[list[Any]] = [[] for _ in kernel.plan.buffers]

    def add(self) -> None:
        """Add the row that is in the frame of the kernel."""
        frame = self.kernel.frame
        self.count += 1
        self._packed.extend(frame.packed)
        for region, buffer in enumerate(frame.buffers):
            self._buffers[region].append(buffer)

    def rows(self) -> Rows:
        """All of them."""
        rows = Rows(self.kernel.plan, self.kernel.frame, self.count)
        rows.take(self._packed, self._buffers)
        return rows


class _Stretch:
    """As many rows as C can run in turn.

    Args:
        rows: all of them. start: the first one.
    """

    def __init__(self, rows: Sequence[_Row], start: int, kernel_for: Callable[[_Row], Kernel | None]) -> None:
        self._groups: list[_Group] = []
        self._order = array("q")  # the number of the group of each row
        self._rows, self._start = rows, start
        self._numbers: dict[Kernel, int] = {}
        self._copying: Kernel | None = None
        firsts: list[int] = []  # of each group
        for number in range(start, len(rows)):
            group = self._group(rows[number], kernel_for)
            if group is None:
                break
            if group == len(firsts):
                firsts.append(len(self._order))
            self._order.append(group)
        trials = [(first, group.kernel.trial, group.count) for first, group in zip(firsts, self._groups)]
        due = [
            first
            for first, trial, count in trials
            if trial is not None and not trial.is_over and trial.rows_ahead(True, count)
        ]
        if due:  # the first one is to be compared
            del self._order[min(due) :]

    def __len__(self) -> int:
        return len(self._order)

    def _group(self, row: _Row, kernel_for: Callable[[_Row], Kernel | None]) -> int | None:
        """The number of the group of a row; None if it is to be a call of its own."""
        try:
            kernel = kernel_for(row)
            if kernel is None:
                return None
            for check in kernel.checks:
                check_index(check, kernel.plan, kernel.frame)
        except (MgjitError, PlainCall):
            return None  # the call will raise it, or is plain Python
        number = self._numbers.get(kernel)
        if number is None:
            if not (kernel.verdict < 0 and is_settled(kernel) and self._shares_copies(kernel)):
                return None
            number = self._numbers[kernel] = len(self._groups)
            self._groups.append(_Group(kernel))
        self._groups[number].add()
        return number

    def _shares_copies(self, kernel: Kernel) -> bool:
        """Whether what a kernel copies may lie in the memory of the first one that copies something."""
        if kernel.copies is None or self._copying is None:
            self._copying = self._copying if kernel.copies is None else kernel
            return True
        mine, theirs = kernel.copies, self._copying.copies
        assert theirs is not None
        if mine.built.places or theirs.built.places:
            return False
        return len(mine.numbers) == len(theirs.numbers) and _are_same(mine.parts, theirs.parts)

    def has_started(self, report: Callable[[int], Any], count: array[int]) -> bool:
        """Run the rows; returns False, before anything is run, if ints may become too large.

        Raises:
            Moved, PlainCall: as for a call; nothing was run.
        """
        tables = [group.rows() for group in self._groups]
        if not all(may_loop(group.kernel, rows) for group, rows in zip(self._groups, tables)):
            return False
        if not all(
            group.kernel.are_exact(rows) and group.kernel.copies_stay_exact(len(self))
            for group, rows in zip(self._groups, tables)
        ):
            return False
        runner = _Turns(self._groups, tables, self._order, self._copying)
        self._outputs = runner.outputs
        first = self._groups[0].kernel
        before = count[0]
        if self._copying is not None:
            self._copying.copy_in()

        def work() -> None:
            for chunk in in_chunks(first, runner, len(self)):
                report(chunk)

        def show() -> None:
            if runner.done and self._copying is not None:
                self._keep(runner.done)
                self._copying.copy_out()
            count[0] = before + runner.done

        with_cleanup(work, show)
        return True

    def _keep(self, done: int) -> None:
        """Of so many rows, the last one that copies something out has given what is kept."""
        assert self._copying is not None
        assert self._copying.copies is not None
        copying = [group.kernel.copies is not None for group in self._groups]
        last = next((row for row in reversed(range(done)) if copying[self._order[row]]), None)
        if last is not None and self._copying.copies.told.paths:
            self._copying.copies.keep(self._rows[self._start + last])

    def results(self) -> Iterator[Any]:
        """The result of each row."""
        done = [0] * len(self._groups)
        for place, number in enumerate(self._order):
            kernel, k = self._groups[number].kernel, done[number]
            width = len(kernel.outputs)
            done[number] += 1
            yield kernel.result(self._outputs[number][k * width : (k + 1) * width], self._rows[self._start + place])


class _Turns(CountingRunner):
    """Runs rows of several kernels, as a Runner (runtime/loop.py)."""

    def __init__(
        self, groups: Sequence[_Group], tables: Sequence[Rows], order: array[int], copying: Kernel | None
    ) -> None:
        #: Of each kernel, for all its rows.
        self.outputs: list[array[float]] = []
        functions, arguments = ffi.PointerBlock(len(groups)), ffi.PointerBlock(len(groups))
        for number, (group, rows) in enumerate(zip(groups, tables)):
            kernel = group.kernel
            outputs = zero_array(group.count * len(kernel.outputs), kernel.plan.precision)
            library = kernel.code.library
            assert library is not None
            runner = NativeRunner(library, kernel, rows, outputs, 1)
            if kernel.copies is not None and copying is not None and copying.copies is not None:
                for region, buffer in enumerate(kernel.state_buffers):
                    if buffer is kernel.copies.numbers and len(buffer):
                        runner.block.set(kernel.slot("state", region), copying.copies.numbers)
            functions.set_function(number, library, "mgjit_loop")
            arguments.set_block(number, runner.both)
            self.outputs.append(outputs)
        self._numbers = array("q", [0, 0, *order])
        all_ = ffi.PointerBlock(3)
        all_.set(0, self._numbers)
        all_.set_block(1, functions)
        all_.set_block(2, arguments)
        library = groups[0].kernel.code.library
        assert library is not None
        self._call = library.bind("mgjit_turns", all_)


def is_settled(kernel: Kernel) -> bool:
    """Whether calls of a kernel need nothing of Python before or after them, but copies."""
    has_more = (
        kernel.move, kernel.predecessor, kernel.upgrade, kernel.draws, kernel.values, kernel.objects, kernel.writes
    )  # fmt: skip
    return (
        kernel.code.library is not None
        and not kernel.code.separate
        and all(one is None for one in has_more)
        and not kernel.guard.expired
        and not kernel.guard.difference()
        and _is_of_numbers(kernel.result)
    )


def may_loop(kernel: Kernel, rows: Rows) -> bool:
    """Whether the code of a kernel for loops may run these rows; this compares some, if that is due."""
    trial = kernel.loop_trial
    if trial is None or trial.passes(rows.count):
        return True
    kernel.copy_in()
    may_loop: bool = trial.allows(kernel, rows)
    trial.passes(rows.count)
    return may_loop


def _is_of_numbers(result: ResultTree) -> bool:
    """Whether a result is made from the outputs of its row alone."""
    if isinstance(result, CompositeResult):
        return all(map(_is_of_numbers, result.parts))
    if type(result) is ConstantResult:
        return isinstance(result.returned, (int, float, str, type(None)))
    return isinstance(result, (OutputResult, MixedResult))


def _are_same(mine: Sequence[Copied], theirs: Sequence[Copied]) -> bool:
    """Whether two kernels copy the same numbers in the same way."""
    return len(mine) == len(theirs) and all(
        _is_same_place(a.place, b.place)
        and all(getattr(a, name) == getattr(b, name) for name in vars(a) if name not in ("place", "allowed"))
        and {offset: check.allowed for offset, check in a.allowed.items()}
        == {offset: check.allowed for offset, check in b.allowed.items()}
        for a, b in zip(mine, theirs)
    )


def _is_same_place(one: Place, other: Place) -> bool:
    """Whether two places are one; of elements, whether they are in the list at the same place."""
    if type(one) is not type(other):
        return False
    if isinstance(one, Element):
        return one.name == other.name and _is_same_place(one.holder, other.holder)
    return one.key == other.key
