"""Runs batches of rows through the kernels of a step: forward and backward for each row, the update once.

1. Each kernel is looked at when it is first used: whether its gradient can be separated from its update, and whether
   it has the same parameters, results and update as the first one.  Then its parameters move into its memory, before
   any row is run.
2. `load` packs the rows of a call and draws their random numbers.  The generators are left as if this rank had run all
   rows of the batch, so that they are the same on all ranks.
3. `run` adds the sums of some of these rows to a block.  Rows of other lengths have kernels of their own.
4. `update` writes the mean, and runs the update of the kernel that has run a row last.  A rank without rows runs the
   first row of the job beforehand, and ignores what that gives: the update may use what the phases before it have left.
"""

from __future__ import annotations

import copy
import struct
from array import array
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from ..base import settings
from ..errors import ArgumentError, ColumnError, MgjitError, SeparationError, user_location
from ..memory.buffers import Moved
from ..runtime.kernel import Kernel
from ..step.inside import Inside
from ..tracing.call.columns import Columns
from ..tracing.call.results import averaged, constants
from ..tracing.call.rows import Rows, pack_rows
from .rows import part_of, row_inputs
from .sums import Part, RowSums, parts_of

#: A nan that no computation gives, by the size of a number: what a kernel does not overwrite it has not computed.
_UNTOUCHED = {8: struct.pack("<Q", 0x7FF8DEADBEEF5A5A), 4: struct.pack("<I", 0x7FC5DEAD)}
#: A trace and a build may take so many times as long as one run of the compiler may.
_BUILD_TIMES = 5


class BatchRunner:
    """Runs batches through a step.

    Args:
        inside: the step for one row.
        busy: is told for how many seconds this rank may be busy with building code.
        size: of the job.

    Attributes:
        lead: the first kernel.
    """

    def __init__(self, inside: Inside, busy: Callable[[float], Any], size: int) -> None:
        self._inside, self._busy, self._size = inside, busy, size
        self._kernels = inside.phases
        self._sums: WeakKeyDictionary[Kernel, RowSums] = WeakKeyDictionary()
        self._parts: list[Part] | None = None
        #: The outputs that are the same in every row.
        self._same: WeakKeyDictionary[Kernel, frozenset[int]] = WeakKeyDictionary()
        self.lead: Kernel | None = None
        self._ran: tuple[Kernel, tuple[Any, ...]] | None = None
        self._columns: Columns | None = None
        self._rows: Rows | None = None
        self._draws: array[float] | None = None
        self._generators: tuple[Any, Any] | None = None

    # ---- 1: kernels ------------------------------------------------------------------------------------

    def kernel(self, arguments: tuple[Any, ...], columns: Columns) -> Kernel:
        """The kernel for a row, with the row in its frame.

        Raises:
            SeparationError: its gradient cannot be separated from its update.
            UnsupportedError: the step runs as plain Python with these arguments.
        """
        known = self._kernels.member(arguments)
        if known is not None and known.plan.pack(arguments, known.frame):
            return self._fitting(arguments, columns)
        self._busy(_BUILD_TIMES * settings.compile_seconds())
        try:
            return self._fitting(arguments, columns)
        finally:
            self._busy(0.0)

    def _fitting(self, arguments: tuple[Any, ...], columns: Columns) -> Kernel:
        while True:
            kernel = self._traced(arguments)
            if kernel in self._sums:
                return kernel
            try:
                self._adopt(kernel, columns)
                is_due = kernel.trial is not None and kernel.trial.is_due()
                if is_due and not self._inside.are_as_plain(kernel, arguments):
                    continue  # by which it is refused
                return kernel
            except Moved:
                self._kernels.forget(kernel)

    def _traced(self, arguments: tuple[Any, ...]) -> Kernel:
        try:
            return self._inside.fitting_phases("data_parallel", arguments)
        except TypeError as error:
            if isinstance(error, MgjitError):
                raise
            raise ArgumentError(
                f"{self._location()}: {error}. data_parallel takes a step for one row, and makes one for a batch of "
                f"it; {self._inside.name} was called with a row."
            ) from error

    def _adopt(self, kernel: Kernel, columns: Columns) -> None:
        """Look at a new kernel, and move its parameters into its memory."""
        reason = self._refused(kernel, columns)
        if not reason and self.lead is not None:
            reason = self._different(self.lead, kernel)
        if reason:
            raise SeparationError(
                f"{self._location()}: the gradient of {self._inside.name} cannot be separated from its update, which "
                f"is to be made once for a batch: {reason}."
            )
        parts = parts_of(kernel) if self._parts is None else self._parts
        sums = RowSums(kernel, parts)
        if kernel.move is not None:
            kernel.transaction(lambda: None, lambda: 1, lambda: None)
        kernel.accept()
        late = self._late_outputs(kernel, sums)
        self._sums[kernel], self._parts = sums, parts
        self._same[kernel] = self._same_outputs(kernel, columns) | (kernel.separation.late_outputs - late)
        if self.lead is None or self.lead not in self._kernels.all():
            self.lead = kernel

    def _same_outputs(self, kernel: Kernel, columns: Columns) -> frozenset[int]:
        """The outputs that depend on nothing that differs from row to row."""
        differing = row_inputs(kernel.plan, columns)

        def is_same(inputs: frozenset[int]) -> bool:
            return not any(k >= kernel.plan.input_size or any(k in places for places in differing) for k in inputs)

        return frozenset(k for k, inputs in kernel.separation.early_inputs.items() if is_same(inputs))

    def _location(self) -> str:
        code: Any = getattr(self._inside.function, "__code__", None)
        return user_location() if code is None else f"{code.co_filename}:{code.co_firstlineno}"

    def _refused(self, kernel: Kernel, columns: Columns) -> str:
        """Why the rows of a kernel cannot be separated; empty if they can."""
        separation, plan = kernel.separation, kernel.plan
        if separation.reason:
            return str(separation.reason)
        if kernel.writes is not None or kernel.objects is not None or kernel.values is not None:
            return "it writes into its arguments, or has Values among them. Pass numbers, and return what is computed"
        if kernel.guard.expired:
            return "it depends on something that changes from call to call, see step.stats.retraces"
        differing = row_inputs(plan, columns)
        for inputs, what in (
            (separation.update_inputs, "the update"),
            (separation.late_inputs, "what it returns last"),
        ):
            for number in sorted(inputs):
                if number >= plan.input_size:
                    return f"{what} depends on random numbers that it draws. Draw them outside, and pass them in"
                if any(number in places for places in differing):
                    name = plan.name_of_number(number) or "an array"
                    return (
                        f"{what} depends on {name}, which is another number in each row. Pass one number, not a list, "
                        "where it is the same for the whole batch; otherwise let the loss depend on it"
                    )
        return ""

    def _different(self, lead: Kernel, kernel: Kernel) -> str:
        """How the rows of a kernel differ from those of the first one in more than lengths; empty if they do not."""
        one, other = lead.plan, kernel.plan
        if not other.resembles(one) and not other.differs_in_lengths(one):
            raise ColumnError(
                f"{user_location()}: a row has another structure than the first one: {one.first_difference(other)}. "
                "Make the rows alike (lengths may differ)."
            )
        assert self._parts is not None
        mine = {(id(part.storage), part.start, part.length) for part in parts_of(kernel)}
        if mine != {(id(part.storage), part.start, part.length) for part in self._parts}:
            return "rows of different lengths set the gradients of different parameters. Set those of all to 0"
        if len(lead.outputs) != len(kernel.outputs):
            return "rows of different lengths return different numbers of numbers, which have no mean"
        if constants(lead.result) != constants(kernel.result):
            return (
                "what the step returns without computing it from numbers, such as a length, is another one for rows of "
                "another length. Pass it as an argument"
            )
        if lead.separation.update != kernel.separation.update:
            return "the update is another one for rows of another length"
        return ""

    def _late_outputs(self, kernel: Kernel, sums: RowSums) -> set[int]:
        """Run a row to see which outputs are not there after the backward phase."""
        if not len(kernel.outputs):
            return set()
        outputs = sums.memory()[-1][1].cast("B")
        size = kernel.outputs.itemsize
        mark = _UNTOUCHED[size]
        outputs[:] = mark * len(kernel.outputs)
        draws = None if kernel.draws is None else kernel.draws.memory(kernel.plan.precision)
        sums.add_rows(Rows(kernel.plan, kernel.frame, 1), sums.new(), draws)
        late = {k for k in range(len(kernel.outputs)) if bytes(outputs[k * size : k * size + size]) == mark}
        outputs[:] = bytes(len(outputs))
        if not late <= kernel.separation.late_outputs:
            raise SeparationError(
                f"{self._location()}: {self._inside.name} returns a number of a row that is computed only after its "
                "update. Compute it before backward()."
            )
        return late

    # ---- 2, 3: rows ------------------------------------------------------------------------------------

    def load(self, columns: Columns, first: int, last: int, count: int) -> None:
        """Pack the rows of this rank.

        Args:
            columns: the rows from `first` to `last` of the `count` rows of the batch.
        """
        self._ran = self._rows = self._draws = self._generators = None
        self._columns = columns
        if first == last:
            self._draw(self.lead, first, last, count)
            return
        kernel = self.kernel(columns.row(0), columns)
        rows = pack_rows(kernel.plan, kernel.frame, columns)
        if kernel.is_changed_by_rows(columns):
            raise SeparationError(f"{self._location()}: {self._inside.name} changes lists that are among its rows.")
        if not rows.separate and kernel.stays_exact(rows):
            kernel.check_rows(rows)
            kernel.accept()
            self._rows, self._ran = rows, (kernel, columns.row(0))
            self._draw(kernel, first, last, count)

    def _draw(self, kernel: Kernel | None, first: int, last: int, count: int) -> None:
        """Make the draws of all rows of the batch, and keep those of this rank's."""
        if kernel is None or kernel.draws is None:
            return
        self._generators = kernel.draws, kernel.draws.states()
        code = kernel.plan.precision.format
        kernel.draws.rows(first, code)
        self._draws = kernel.draws.rows(last - first, code)
        kernel.draws.rows(count - last, code)

    def restore_generators(self) -> None:
        """Take back what this call has drawn."""
        if self._generators is not None:
            self._generators[0].restore(self._generators[1])
            self._generators = None

    def new(self, more: int) -> array[float]:
        """A sum of no rows, with so many zeros behind it."""
        assert self.lead is not None
        return self._sums[self.lead].new(more)

    def run(self, low: int, high: int, sums: array[float]) -> None:
        """Add the sums of loaded rows, counted from the first one of this rank, to a block."""
        if self._rows is None:
            for number in range(low, high):
                self._run_one(number, sums)
        elif low < high:
            assert self._ran is not None
            rows = copy.copy(self._rows.after(low))
            rows.count = high - low
            draws = self._draws
            if draws is not None:
                width = len(draws) // self._rows.count
                draws = draws[low * width : high * width]
            self._sums[self._ran[0]].add_rows(rows, sums, draws)

    def _run_one(self, number: int, sums: array[float]) -> None:
        assert self._columns is not None
        columns = part_of(self._columns, number, number + 1)
        arguments = columns.row(0)
        kernel = self.kernel(arguments, columns)
        rows = pack_rows(kernel.plan, kernel.frame, columns)
        kernel.check_rows(rows)
        kernel.accept()
        draws = None
        if kernel.draws is not None:
            if self._size > 1:
                raise SeparationError(
                    f"{self._location()}: {self._inside.name} draws random numbers, and its rows differ in length: "
                    "what other ranks draw is then unknown. Draw outside, and pass the numbers in."
                )
            self._generators = self._generators or (kernel.draws, kernel.draws.states())
            draws = kernel.draws.rows(1, kernel.plan.precision.format)
        self._sums[kernel].add_rows(rows, sums, draws)
        self._ran = kernel, arguments

    def run_first(self, arguments: tuple[Any, ...], columns: Columns) -> None:
        """Run a row whose numbers do not count, where this rank has none."""
        kernel = self.kernel(arguments, columns)
        kernel.accept()
        draws = None if kernel.draws is None else kernel.draws.memory(kernel.plan.precision)
        self._sums[kernel].add_rows(Rows(kernel.plan, kernel.frame, 1), self.new(0), draws)
        self._ran = kernel, arguments

    def add(self, sums: array[float], others: array[float]) -> None:
        """Add other sums to sums."""
        assert self.lead is not None
        self._sums[self.lead].add(sums, others)

    # ---- 4: the update ---------------------------------------------------------------------------------

    def update_inputs(self) -> list[float]:
        """The numbers among the arguments that the update depends on."""
        assert self._ran is not None
        kernel, _ = self._ran
        return [kernel.frame.packed[k] for k in sorted(kernel.separation.update_inputs) if k < kernel.plan.packed_size]

    def update(self, sums: array[float], count: int) -> Any:
        """Write the mean of `count` rows, run the update, and return the result."""
        assert self._ran is not None
        kernel, arguments = self._ran
        kernel.plan.pack(arguments, kernel.frame)
        kernel.accept()
        self._sums[kernel].write_mean(sums, count)
        same = self._same[kernel]
        if same:
            of_last_row = self._sums[kernel].memory()[-1][1]
            for number in same:
                kernel.outputs[number] = of_last_row[number]
        kernel.perform("update", self._inside.stats.counter)
        return averaged(kernel.result, kernel.outputs, same | kernel.separation.late_outputs, arguments)

    @property
    def length(self) -> int:
        """How many numbers a sum has."""
        assert self.lead is not None
        return self._sums[self.lead].length
