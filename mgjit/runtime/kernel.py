"""Kernels: loaded machine code (or generated Python) together with the memory that it works on.

`Kernel` is one step's instance of a `Code`: the pointer block filled with this step's parameters, state and inputs.

A call changes things in a `transaction`: the code runs in one uninterruptible call, then parameters that have just
moved and Values among the arguments are switched over to its results.  An exception before the code has run leaves
nothing behind; one that comes later does not prevent the switch.  Generated Python can be interrupted; its memory is
then restored.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from itertools import chain, starmap
from time import perf_counter
from typing import Any, Callable

from ..base import ffi
from ..base.cached import cached_property
from ..base.interruption import with_cleanup
from ..compiler.build.code import Code
from ..engine.leaks import PlainCall
from ..engine.state import zero_array
from ..errors import IndexRangeError
from ..ir import opcodes as ops
from ..ir.trace import IndexCheck
from ..memory.buffers import LaidOut, Move, ParameterStorage, SharedScratch, moving
from ..memory.late import Late, late_gradients, use_gradients
from ..tracing.call.appended import LoggingResult
from ..tracing.call.columns import Columns
from ..tracing.call.node import Frame, flat_view
from ..tracing.call.objects import ObjectSlots
from ..tracing.call.plan import ArgumentPlan
from ..tracing.call.results import ResultTree
from ..tracing.call.rows import Rows, alike, are_shared
from ..tracing.call.written import Writes
from ..tracing.copies.copies import Copies
from ..tracing.draws.plan import DrawPlan
from ..tracing.record.answers import Answer
from ..tracing.record.integers import IntegerLimit
from ..tracing.surroundings.guard import Guard
from .pages import use_huge_pages
from .predecessor import Predecessor
from .undo import undoing

#: The functions of a whole step, and of one whose phases are run separately.
_WHOLE = ("step",)
_SEPARATE = ("forward", "backward", "update")

#: For `starmap`: one call without arguments.
_ONCE: tuple[tuple[()], ...] = ((),)


class Kernel:
    """Code bound to the memory of one step and one argument structure."""

    def __init__(
        self,
        code: Code,
        plan: ArgumentPlan,
        guard: Guard,
        parameters: Sequence[ParameterStorage],
        move: Move,
        outputs: int,
        checks: Sequence[IndexCheck],
        result: ResultTree,
        values: ParameterStorage | None,
        copies: Copies | None = None,
        draws: DrawPlan | None = None,
        writes: Writes | None = None,
        changed: frozenset[int] = frozenset(),
        integers: IntegerLimit | None = None,
        objects: ObjectSlots | None = None,
        scratch: SharedScratch | None = None,
    ) -> None:
        self.plan, self.result = plan, result
        self.frame: Frame = plan.frame()
        self.outputs = zero_array(outputs, plan.precision)
        self.values = values
        self.copies = copies
        self.checks = checks
        #: What is written into buffers among the arguments, or None.
        self.writes = writes or None
        #: Nodes of the user's classes among the arguments that are copied in and out, or None.
        self.objects = objects
        self._integers = IntegerLimit() if integers is None else integers
        #: The identities of the user's lists, dicts and objects in which it assigns numbers: no inputs may lie there.
        #: Those of lists in whose place the program may put others are in `changed_now`.
        self.changed = changed
        #: The plan of what each call draws, or None; `draw` makes these draws.
        self.draws = draws if draws is not None and draws.size else None
        drawn = [] if self.draws is None else [zero_array(self.draws.size, plan.precision)]
        self.draw: Callable[[], None] | None = None if self.draws is None else self.draws.filler(drawn[0])
        self.guard, self.parameters = guard, parameters
        #: What the first run moves; None afterwards.
        self.move: Move | None = move
        #: The objects whose numbers the first run moves.
        self.moved: Sequence[Any] = ()
        #: Whether a call has more to do than fill the frame.
        self.needs_accepting = bool(checks or plan.buffers or values is not None or objects or copies)
        self._drawn = drawn
        self._late: Late | None = None
        self._scratch = SharedScratch() if scratch is None else scratch
        #: Better code that is being built (pending.py), or None.
        self.upgrade: Any = None
        #: The code that the present one has replaced, until a call has been made by both; None otherwise.
        self.predecessor: Predecessor | None = None
        #: The call path of this kernel, or None where there is only the general one; by whether it is short.
        self.fast_calls: dict[bool, Callable[..., Any] | None] = {}
        #: Whether it is known to write nothing but its results (side_by_side/writes.py).
        self.only_reads = False
        #: How long a step takes in a loop, as far as it is known.
        self.seconds_a_row = 0.0
        #: The output that is not 0.0 where a call is to be undone (undo.py); -1 if none is.
        self.verdict = -1
        #: What the step was told about numbers, if the kernel is one for a path (kernels/paths.py); which of that was
        #: not so in the last call that was undone, as record/answers.py counts (0 after others), and what was so.
        self.told: Sequence[Answer] = ()
        self.missed, self.instead = 0, 0.0
        #: How often it was the one for a call that others had undone.
        self.helped = 0
        #: How many calls have left it, by `missed` and `instead`.
        self.left: dict[tuple[int, float], int] = {}
        #: When it is compared with plain Python (verification/trial.py); None when it is not, or not any more.
        self.trial: Any = None
        #: When the code of loops is compared with that of calls (verification/loops.py); None when it is not.
        self.loop_trial: Any = None
        #: What the phases of a step depend on, if they are run separately (record/separation.py).
        self.separation: Any = None
        #: Whether the forward phase, if they are, assigns parameters or numbers of the user's objects.
        self.forward_assigns = False
        self.state_buffers = move.state_buffers
        #: Where the numbers of each state lie in its memory, in their natural order.
        self.state_places: list[Sequence[int]] = [
            numbers.places if isinstance(numbers, LaidOut) else range(len(numbers)) for numbers in move.state_numbers
        ]
        self._install(code)

    @property
    def drawn(self) -> Sequence[float]:
        """The random numbers of the last call."""
        return self._drawn[0] if self._drawn else ()

    def replace(self, code: Code, compared: bool, with_gradients: bool = True) -> bool:
        """Go on with other code for the same trace; returns False where it needs another layout of the memory.

        This changes nothing in the memory that the program sees, and is done between two calls.

        Args:
            compared: whether the next call is made by both, and compared (runtime/predecessor.py).
            with_gradients: whether gradients count then.
        """
        if code.layouts != self.code.layouts:
            return False
        run = self.run["step"]
        before = Predecessor(self.code, run, self.buffers, self.put_buffer, self.places_in, with_gradients)
        self.predecessor = before if compared else None
        self.fast_calls = {}
        self._install(code)
        return True

    def places_in(self, buffer: Any) -> Sequence[int]:
        """The places of a buffer that hold numbers of the program's, and no padding."""
        for storage in self.parameters:
            if buffer is storage.data or buffer is storage.grad:
                return storage.places(range(len(storage)))
        for memory, places in zip(self.state_buffers, self.state_places):
            if buffer is memory:
                return places
        return range(len(buffer))

    def mismatch(self) -> str:
        """How the code differs from the one before, if a call has been compared; that one is taken again then."""
        predecessor = self.predecessor
        if predecessor is None or not predecessor.has_run:
            return ""
        self.predecessor = None
        if predecessor.mismatch:
            self.fast_calls = {}
            self._install(predecessor.code)
        return predecessor.mismatch

    def _install(self, code: Code) -> None:
        """Let the code work on the memory of this kernel."""
        self.code = code
        plan, parameters = self.plan, self.parameters
        for region in code.gradients:
            use_gradients(parameters[region], self)
        self._late = None
        # What gradients are computed from later stays there.
        scratch = SharedScratch() if code.may_be_late else self._scratch
        memory: dict[str, Any] = {
            "parameter": [storage.data for storage in parameters],
            "gradient": [storage.grad for storage in parameters],
            "state": self.state_buffers,
            "input": [self.frame.packed, *([None] * len(plan.buffers)), *self._drawn],
            "output": [self.outputs],
            "constant": [code.constants],
            "table": [code.tables],
            "given": [code.given],
            "scratch": [scratch.block(code.scratch_size, plan.precision)],
        }
        self._slots = {(slot.space, slot.region): number for number, slot in enumerate(code.slots)}
        self._buffers: list[Any] = [memory[slot.space][slot.region] for slot in code.slots]
        for buffer in self.buffers:
            use_huge_pages(buffer)
        self._buffer_slots = [self.slot("input", region) for region in range(1, len(plan.buffers) + 1)]
        if self.loop_trial is not None:
            self.loop_trial.begin()
        #: The shortest time that one call of the code has taken, and how many have been timed.
        self.seconds_a_call = math.inf
        self.timed_calls = 0
        #: Whether its calls could be made by C, and are not because the extension was not there.
        self.awaits_c = False
        if code.library is not None:
            self._start_native(code.library)
        else:
            self._start_python()

    @property
    def buffers(self) -> list[Any]:
        """The buffer of each slot of the pointer block."""
        self.settle()
        return self._buffers

    def settle(self) -> None:
        """Let no gradients be due that are late (memory/late.py)."""
        if self._late is not None:
            self._late.settle()

    def slot(self, space: str, region: int) -> int:
        """The number of the slot of a region of memory."""
        return self._slots[space, region]

    def states(self) -> list[Any]:
        """The memory of State, other than what is copied from the user's objects."""
        copied = None if self.copies is None else self.copies.numbers
        return [buffer for buffer in self.state_buffers if buffer is not copied]

    def pointer_block(self, more: int = 0) -> ffi.PointerBlock:
        """A new block of pointers to the kernel's memory, followed by `more` empty ones."""
        block = ffi.PointerBlock(len(self.buffers) + more)
        for number, buffer in enumerate(self.buffers):
            if buffer is not None and len(buffer):
                block.set(number, buffer)
        return block

    def call_block(
        self, gate: array[int], counter: array[int], outputs: array[float] | None = None
    ) -> ffi.PointerBlock:
        """A block for the entries that take their inputs as arguments (see codegen/entries.py).

        Args:
            outputs: for the outputs of these calls alone; without it, they are those of all calls.
        """
        if self._late is None:
            self._late = self._late_gradients()
        block = self._block_of_calls(self._late)
        if outputs:
            block.set(self.slot("output", 0), outputs)
        block.set(len(self.buffers), gate)
        block.set(len(self.buffers) + 1, counter)
        return block

    def _block_of_calls(self, late: Late | None) -> ffi.PointerBlock:
        block = self.pointer_block(more=3)
        if late is not None:
            block.set(len(self.buffers) + 2, late.words)
        return block

    def _late_gradients(self) -> Late | None:
        """What lets calls leave gradients until somebody looks at them; None where they are computed at once."""
        code, library = self.code, self.code.library
        if library is None or not code.may_be_late or self.verdict >= 0 or self.values or self.objects:
            return None
        late = late_gradients([self.parameters[region] for region in code.gradients], self)
        if late is not None:
            late.compute = library.bind("mgjit_gradients", self._block_of_calls(late))
        return late

    def _start_native(self, library: ffi.Library) -> None:
        block = self.pointer_block()
        self.put_buffer: Callable[[int, Any], None] = block.set
        names = _SEPARATE if self.code.separate else _WHOLE
        #: The functions of the code, by name.
        self.run: dict[str, Callable[[], Any]] = {name: library.bind(f"mgjit_{name}", block) for name in names}

    def _start_python(self) -> None:
        from ..compiler.codegen.python import load_python

        buffers = self.buffers
        buffers[self.slot("scratch", 0)] = [0.0] * self.code.scratch_size  # a list is faster than an array here

        def set_buffer(number: int, buffer: Any) -> None:
            buffers[number] = flat_view(buffer, self.code.slots[number].format)

        def bound(function: Callable[[Any], None]) -> Callable[[], None]:
            return lambda: function(buffers)

        self.put_buffer = set_buffer
        self.functions = {name: self._undone(run) for name, run in load_python(self.code.source).items()}
        names = _SEPARATE if self.code.separate else _WHOLE
        self.run = {name: bound(self.functions[name]) for name in names}

    def _undone(self, run: Callable[[Any], None]) -> Callable[[Any], None]:
        """A generated Python function, wrapped so that its writes are undone if it is interrupted."""
        written = [k for k, slot in enumerate(self.code.slots) if slot.space in ("parameter", "gradient", "state")]

        def run_or_undo(buffers: Any) -> None:
            views = [memoryview(buffers[k]).cast("B") for k in written if len(buffers[k])]
            saved = [(view, view.tobytes()) for view in views]

            def undo() -> None:
                for view, before in saved:
                    view[:] = before

            try:
                run(buffers)
            except BaseException:
                with_cleanup(undo, undo)
                raise

        return run_or_undo

    # ---- running -------------------------------------------------------------------------------------

    def perform(self, phase: str, count: array[int] | None = None) -> None:
        """Run a phase with the arguments that have been accepted, and count it."""
        self.settle()
        runs: list[Any] = []
        run = self.run[phase]
        before = count[0] if count else 0
        writes = self.writes if phase in ("update", "step") else None
        if phase == "forward":  # it does not set all of them
            self.outputs[:] = array(self.outputs.typecode, [math.nan]) * len(self.outputs)

        def work() -> None:
            if self.draw is not None and phase in ("forward", "step"):  # later phases use what forward has drawn
                self.draw()
            if self.predecessor is not None and phase == "step":
                self.predecessor.run_both(run, self.frame.buffers, runs, self.verdict)
                return
            started = perf_counter()
            runs.extend(starmap(run, _ONCE))  # runs it and records that, in one call into C
            if phase == "step":
                self.seconds_a_call = min(self.seconds_a_call, perf_counter() - started)
                self.timed_calls += 1

        def show() -> None:
            self.copy_out()
            if writes is not None:
                writes.show(self.frame, self.outputs)
            if count:
                count[0] = before + 1

        if self.verdict >= 0 and phase == "step":
            self.transaction(lambda: undoing(self, work, runs), runs.__len__, show)
        else:
            self.transaction(work, runs.__len__, show)

    def transaction(self, work: Callable[[], Any], has_run: Callable[[], int], show: Callable[[], None]) -> None:
        """Call `work()`, which runs the code, and then `show()` if the code has run: all of it, or nothing.

        Args:
            show: may be called more than once.

        Raises:
            Moved: this kernel was to move parameters or state that another one has moved in the meantime.
        """
        if self.move is None:
            with_cleanup(work, lambda: show() if has_run() else None)
            return
        move = self.move

        def show_moved() -> None:
            if has_run():
                move.commit()
                self.move = None
                show()

        with moving:
            move.fill()
            with_cleanup(work, show_moved)

    def accept(self, arguments: Sequence[Any] | None = None) -> None:
        """Accept the arguments in the frame: check indices, pass buffers, copy Values in.

        Args:
            arguments: what the caller gave; without, a copy is kept of what the step keeps of them.

        Raises:
            IndexRangeError: a run-time index is out of range; nothing has been written.
            PlainCall: a buffer cannot be written as it could be when the step was traced.
        """
        if self.writes is not None:
            self.writes.check(self.frame)
        for check in self.checks:
            check_index(check, self.plan, self.frame)
        for number, buffer in zip(self._buffer_slots, self.frame.buffers):
            self.put_buffer(number, buffer)
        self.copy_in(None if self.code.separate else self.frame.packed)
        if arguments is not None and self.copies is not None:
            self.copies.keep(arguments)

    def copy_in(self, packed: Sequence[float] | None = None) -> None:
        """Copy the Values among the arguments, and numbers of the user's objects, into the kernel's memory.

        Args:
            packed: the numbers of a call that is a whole step.
        """
        if self.copies is not None:
            self.copies.copy_in(packed)
        if self.objects is not None:
            self.objects.copy_in(self.frame)
        if self.values is not None:
            for index, value in enumerate(self.frame.values):
                self.values.data[index] = value.data
                self.values.grad[index] = value.grad

    def copy_out(self) -> None:
        """Copy them back."""
        if self.copies is not None:
            self.copies.show()
        if self.objects is not None:
            self.objects.copy_out(self.frame)
        if self.values is not None:
            for index, value in enumerate(self.frame.values):
                value.data = self.values.data[index]
                value.grad = self.values.grad[index]

    def changed_now(self) -> frozenset[int]:
        """The identities of everything in which it assigns numbers."""
        return self.changed if self.copies is None else self.changed.union(self.copies.lists())

    def changes(self, lists: set[int]) -> bool:
        """Whether it assigns to elements of one of some lists, which are no arguments, by their identities."""
        own = () if self.copies is None else self.copies.all_lists()
        return not (lists.isdisjoint(self.changed) and lists.isdisjoint(own))

    def is_changed_by_rows(self, columns: Columns) -> bool:
        """Whether what one row does may be seen by the next one, as an argument."""
        if self.writes is not None or self.objects is not None or isinstance(self.result, LoggingResult):
            return True
        return self.plan.has_containers and are_shared(self.plan, columns, self.changed_now())

    def check_rows(self, rows: Rows) -> None:
        """Check the run-time indices of all rows.

        Raises:
            IndexRangeError: one is out of range.
        """
        groups = self._alike_checks.items()
        doubtful = (
            checks for (region, allowed), checks in groups if not rows.are_allowed(region, len(checks), allowed)
        )
        for check in chain.from_iterable(doubtful):
            column, rounded = rows.input_column(check.input_index), self.plan.precision.rounded
            if not all(_is_in(rounded(number), check.allowed) for number in set(column)):  # mostly a few different ones
                row = next(k for k, number in enumerate(column) if not _is_in(rounded(number), check.allowed))
                raise _out_of_range(check, rounded(column[row]), f" in row {row}")

    @cached_property
    def _alike_checks(self) -> dict[tuple[int, range], list[IndexCheck]]:
        return alike(self.checks, self.plan)

    def stays_exact(self, rows: Rows) -> bool:
        """Whether no int of a loop becomes larger than it may be."""
        return self.are_exact(rows) and self.copies_stay_exact(rows.count)

    def are_exact(self, rows: Rows) -> bool:
        """Whether no int among the arguments is larger than it may be."""
        inputs = (ops.leaf_index(leaf) for leaf in self._integers.leaves if ops.leaf_kind(leaf) == ops.INPUT)
        return all(rows.are_exact(index, self._integers.limit) for index in inputs)

    def copies_stay_exact(self, calls: int) -> bool:
        """Whether no int of the user's objects becomes larger than it may be in so many calls."""
        return self.copies is None or self.copies.stay_exact(calls, self._integers)


def check_index(check: IndexCheck, plan: ArgumentPlan, frame: Frame) -> None:
    """Check one run-time index of a call.

    Raises:
        IndexRangeError: it is out of range. PlainCall: it is one that only plain Python looks for.
    """
    number = plan.number(check.input_index, frame)
    if not _is_in(number, check.allowed):
        raise _out_of_range(check, number)


def _is_in(number: float, allowed: range) -> bool:
    return allowed.start <= number < allowed.stop and number == int(number)


def _out_of_range(check: IndexCheck, number: float, where: str = "") -> IndexRangeError | PlainCall:
    if number == check.plain:
        return PlainCall(
            f"{check.location}: there is a label {check.plain}{where}, which a step looks for if it is told to: write "
            f"ignore_index={check.plain}"
        )
    what = "the index" if check.is_index else "the number that the index is computed from,"
    end = "" if check.is_index else ","
    allowed = f"in {check.start} .. {check.start + check.count - 1}" if check.count else "that is possible"
    negative = " Write a negative index, which Python counts from the end, as index % len(table)."
    return IndexRangeError(
        f"{check.location}: {what} {number:g}{where}{end} is not an integer {allowed}. Nothing was computed or written."
        f"{negative if check.count and number < check.start else ''}"
    )
