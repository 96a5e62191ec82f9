"""The course of one call of an ensemble: many members, each of which runs the same number of rows.

A call is a loop of one row.  It is run in rounds; after each of them, all members have run the same rows:

1. For each member, find the kernel that fits its arguments.  All rows are packed and checked before anything runs.
2. Members whose kernel has no work to do besides running its code are run in the pool (pool.py), each on its own memory
   (memory.py): a single row, or as many as take about a tenth of a second for all members.
3. Others are loaded into the user's objects, and run by the step itself, one after the other.  So is all that happens
   to a kernel now and then (traces, better code, comparisons with plain Python), and every row of a step that runs as
   plain Python.
4. A round is for all members or for none: what step 3 leaves is not taken over before all members have been run, and
   what step 2 does cannot fail.  In the end, the user's objects are what they were.
"""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Callable, Sequence
from math import ceil
from time import perf_counter
from typing import Any, NamedTuple

from ..base import settings
from ..base.interruption import with_cleanup
from ..engine.leaks import PlainCall
from ..engine.state import zero_array
from ..errors import ArgumentError, IndexRangeError, user_location
from ..kernels.first_calls.plain import as_part
from ..kernels.side_by_side import pool
from ..kernels.side_by_side.memory import Bound, Memory, Piece, Scratch
from ..kernels.side_by_side.worlds import Contents, World, objects_in
from ..memory.buffers import Moved
from ..runtime.kernel import Kernel
from ..step.inside import Inside
from ..tracing.call.collected import collect_results
from ..tracing.call.columns import Columns
from ..tracing.call.rows import Rows, pack_rows
from ..verification.comparison import first_difference
from ..verification.snapshot import Snapshot
from . import calls
from .each import Each
from .member import MemberState, Visit, changes, runs_anywhere
from .rehearsal import ROWS, member_difference

#: Seconds that a round should take.
_SECONDS_A_ROUND = 0.1
#: The first rows may be slower or faster than the others.
_FASTEST_GROWTH = 64
#: Loading a member takes at most this part of the time of the rows that it then runs as plain Python.
_SHARE_OF_LOADING = 0.1


class _Part(NamedTuple):
    """Some rows of a member: what its kernel has returned, or else the results themselves."""

    kernel: Kernel | None
    outputs: array[float]
    results: list[Any]


class Course:
    """One call.

    Args:
        inside: the step.
        world, members: of the ensemble.
        tables: the arguments of each member.
        own: the names of those arguments that are not the same for all members.
        threads: how many there may be.
        note: is told after each round how many rows have been run so far.
    """

    def __init__(
        self,
        inside: Inside,
        world: World,
        members: Sequence[MemberState],
        tables: Sequence[Columns],
        own: frozenset[str],
        threads: int,
        note: Callable[[int], Any],
    ) -> None:
        self._inside, self._kernels, self._world = inside, inside.kernels, world
        self._members, self._tables, self._own, self._threads = members, tables, own, threads
        self._total, self._note = tables[0].length, note
        self._visit = Visit(world)
        self._parts: list[list[_Part]] = [[] for _ in members]
        self._packed: dict[int, tuple[Kernel, Rows] | None] = {}
        self._running: dict[int, Piece] = {}
        self._scratch: dict[int, Scratch] = {}
        self._plain_rows, self._last_rows = 1, 1

    def run(self, report: Callable[[int], Any]) -> None:
        """Run all rows."""

        def work() -> None:
            position = 0
            while position < self._total:
                self._find_kernels(position)
                count = self._round(position)
                position += count
                report(count)

        with_cleanup(work, self._visit.end)
        for number in list(self._running):
            self._stop(number)

    def calls(self) -> calls.Calls | None:
        """What can make the next call, if the code of one kernel has run on the memory of all members."""
        kernels = {id(parts[0].kernel): parts[0].kernel for parts in self._parts}
        kernel = next(iter(kernels.values()))
        if kernel is None or len(kernels) > 1 or any(parts[0].results for parts in self._parts):
            return None
        return calls.Calls(kernel, self._members, self._threads, self._is_usable)

    def _is_usable(self, kernel: Kernel, count: int) -> bool:
        return self._kernels.has(kernel) and is_settled(kernel, count)

    def result(self, number: int) -> Any:
        """What a member returns, if there is one row."""
        part = self._parts[number][0]
        if part.results:
            return part.results[0]
        assert part.kernel is not None
        return part.kernel.result(part.outputs, self._tables[number].row(0))

    def columns(self, number: int) -> Any:
        """What a member returns, as columns."""
        parts, table = self._parts[number], self._tables[number]
        first = parts[0].kernel
        if first is not None and all(part.kernel is first for part in parts):
            outputs = first.outputs[:0]
            for part in parts:
                outputs += part.outputs
            return first.result.columns(outputs, len(first.outputs), self._total)
        results: list[Any] = []
        for part in parts:
            width = 0 if part.kernel is None else len(part.kernel.outputs)
            if part.results or part.kernel is None:
                results += part.results
                continue
            for start in range(0, len(part.outputs), width):
                row = part.outputs[start : start + width]
                results.append(part.kernel.result(row, table.row(len(results))))
        return collect_results(results)

    # ---- 1: kernels -------------------------------------------------------------------------------------

    def _find_kernels(self, position: int) -> None:
        for member, table in zip(self._members, self._tables):
            if id(table) not in self._packed:
                self._packed[id(table)] = self._pack(member, table, position)

    def _pack(self, member: MemberState, table: Columns, position: int) -> tuple[Kernel, Rows] | None:
        """The kernel for the rows, and these rows; None if each of them is to be run by the step itself.

        Raises:
            IndexRangeError, ColumnError: a row is wrong; nothing has been done with any.
        """
        kernel = self._fitting(member, table.row(position))
        if kernel is None:
            return None
        try:
            rows = pack_rows(kernel.plan, kernel.frame, table)
            if rows.ragged:
                return None
            kernel.check_rows(rows)
        except PlainCall:
            return None
        is_usual = kernel.verdict < 0 and not rows.separate and kernel.are_exact(rows) and runs_anywhere(kernel)
        if not is_usual or kernel.is_changed_by_rows(table) or changes(kernel, table.row(position)):
            return None
        return kernel, rows

    def _fitting(self, member: MemberState, arguments: Sequence[Any]) -> Kernel | None:
        """A kernel for these arguments, which are in its frame then; None if the step runs as plain Python."""
        for kernel in self._kernels.all():
            if kernel.plan.pack(arguments, kernel.frame):
                if self._world.meets(kernel):
                    self._meet(arguments)
                return kernel
        self._meet(arguments)
        if self._is_disabled():
            return None
        self._visit.load(member)
        try:
            return self._kernels.patient(arguments)
        except PlainCall:
            return None

    def _is_disabled(self) -> bool:
        return settings.disabled() and self._kernels.last is None

    def _meet(self, arguments: Sequence[Any]) -> frozenset[str]:
        """Let objects among the arguments, such as a model, belong to what each member has of its own.

        Returns the names of all other arguments.
        """
        plan = self._kernels.maker.plan(arguments)
        found = {name: [*objects_in(node)] for name, node in zip(plan.names, plan.nodes)}
        for name, things in found.items():
            if any(type(thing) is Each for thing in things):
                raise ArgumentError(
                    f"{user_location()}: argument {name} contains an each(), which stands for a whole argument. "
                    f"Write mgjit.each([...]) with the {name} of each member."
                )
        for name in self._own:
            if found.get(name):
                raise ArgumentError(
                    f"{user_location()}: each({name}) holds a {type(found[name][0]).__name__}: it is for numbers and "
                    "data. Objects are copied for each member; give members different ones by init=, which assigns "
                    "numbers to those that the step knows."
                )
        if self._world.add(plan):
            self._visit.widen(self._members)
        return frozenset(name for name, things in found.items() if not things)

    # ---- 2, 3, 4: rounds --------------------------------------------------------------------------------

    def _round(self, position: int) -> int:
        """Run some rows of all members; returns how many."""
        kernels = {id(found[0]): found[0] for found in self._packed.values() if found is not None}
        count = min(self._total - position, self._rows_of_round(list(kernels.values())))
        most = 1 if kernels else count  # of a kernel that has something else to do
        settled: set[int] = set()
        ready: list[int] = []
        general: dict[int, Contents | Memory] = {}
        parts: dict[int, _Part] = {}
        undo: list[tuple[Snapshot, list[Any]]] = []
        try:
            for number in range(len(self._members)):
                if self._is_ready(number, position, count, settled):
                    ready.append(number)
                    continue
                count = min(count, most)
                part = parts[number] = self._generally(number, position, count, undo)
                general[number] = left = self._visit.left(self._members[number], part.kernel)
                if number == 0 and isinstance(left, Contents):
                    self._world.prototype = left
        except BaseException:
            for data, before in undo:
                data.restore(before)
            raise
        self._finish_round(position, count, ready, general)
        for number, part in parts.items():
            self._stop(number)
            self._parts[number].append(part)
        self._last_rows = count
        return count

    def _rows_of_round(self, kernels: Sequence[Kernel]) -> int:
        """How many rows all members run in a round."""
        if not kernels:
            return self._plain_rows
        seconds = max(map(calls.seconds_of, kernels)) * ceil(len(self._members) / self._threads)
        wanted = int(_SECONDS_A_ROUND / seconds) if seconds else 1
        return max(1, min(wanted, _FASTEST_GROWTH * self._last_rows))

    def _is_ready(self, number: int, position: int, count: int, settled: set[int]) -> bool:
        """Whether the kernel of a member has nothing to do but to run its code, on the member's memory.

        Args:
            settled: the kernels of which that is known for this round.
        """
        found = self._packed.get(id(self._tables[number]))
        if found is None:
            return False
        kernel, rows = found
        if id(kernel) not in settled:
            left = count * (len(self._members) - number)
            self._compare_rows(kernel, rows.after(position))
            if not self._is_usable(kernel, left):
                return False
            settled.add(id(kernel))
        member, running = self._members[number], self._running.get(number)
        is_running = running is not None and running.code is kernel.code and running.memory is member.memory
        if is_running and member.calls_left >= count:
            return True
        member.calls_left = 0 if is_running else member.calls_left
        memory = self._visit.memory(member, kernel)
        if memory is None or not self._is_right(number, kernel, rows.after(position), position):
            return False
        self._stop(number)
        code = kernel.code
        if id(code) not in self._scratch:
            self._scratch[id(code)] = Scratch(kernel, self._threads)
        rest = rows.after(position)
        outputs = zero_array(rest.count * len(kernel.outputs), kernel.plan.precision)
        self._running[number] = Piece(Bound(kernel, memory), rest, self._scratch[id(code)], outputs)
        return True

    def _compare_rows(self, kernel: Kernel, rows: Rows) -> None:
        """Compare what the code of a kernel for loops does with some rows, if that is due."""
        with contextlib.suppress(ArgumentError, IndexRangeError, Moved, PlainCall):  # the step itself finds out
            if kernel.loop_trial is not None and kernel.loop_trial.is_due and kernel.move is None:
                kernel.copy_in()
                kernel.loop_trial.allows(kernel, rows)

    def _is_right(self, number: int, kernel: Kernel, rows: Rows, position: int) -> bool:
        """Whether a kernel does in the memory of a member what the step itself does; compared now and then."""
        trial = kernel.loop_trial
        if trial is None:
            return True
        stats, code, counter = self._inside.stats, kernel.code, self._inside.stats.counter
        arguments = [self._tables[number].row(position + k) for k in range(min(rows.count, ROWS))]

        def run(row: Sequence[Any]) -> bool:
            plain_calls = stats.plain_calls
            self._one(row, number)
            return self._kernels.last is kernel and kernel.code is code and stats.plain_calls == plain_calls

        def difference() -> str:
            data = self._data(arguments)
            before, calls_before = data.read(), counter[0]

            def restore() -> None:
                data.restore(before)
                counter[0] = calls_before

            member = self._members[number]
            with contextlib.suppress(Exception):  # which the step raises again
                return with_cleanup(
                    lambda: member_difference(kernel, member, self._visit, rows, run, arguments), restore
                )
            return ""

        return bool(trial.judges_member(len(arguments), difference))

    def _stop(self, number: int) -> None:
        """Keep what a member has returned so far from its memory, because something else follows."""
        running = self._running.pop(number, None)
        if running is not None:
            outputs = running.outputs[: running.done * len(running.kernel.outputs)]
            self._parts[number].append(_Part(running.kernel, outputs, []))

    def _generally(self, number: int, position: int, count: int, undo: list[tuple[Snapshot, list[Any]]]) -> _Part:
        """Let the step itself run some rows of a member.

        Args:
            undo: gets arguments that are to be restored if something fails later.
        """
        table, kernels = self._tables[number], self._kernels
        rows = [table.row(position + k) for k in range(count)]
        data = self._data(rows)
        before = data.read()
        undo.append((data, before))
        started = perf_counter()
        self._visit.load(self._members[number])
        loaded = perf_counter()
        last, results, outputs = kernels.last, [], array("d")
        compiled: Kernel | None = None
        for row in rows:
            calls = kernels.stats.calls
            results.append(self._one(row, number))
            compiled = kernels.last if kernels.stats.calls == calls + 1 and count == 1 else None
        if compiled is not None:
            outputs = compiled.outputs[:]
        if len(self._members) > 1:
            self._refuse_changes(data, before)
        if kernels.last is not last:
            self._packed = {}
        elif not kernels.all():
            self._note_seconds(loaded - started, (perf_counter() - loaded) / count)
        return _Part(compiled, outputs, results)

    def _one(self, row: Sequence[Any], number: int) -> Any:
        """Let the step run a row of a member; an exception says of which."""
        try:
            if self._is_disabled():
                maker = self._kernels.maker
                return as_part(maker.options.precision, lambda: maker.undecorated(row))
            with contextlib.suppress(PlainCall):
                self._kernels.patient(row)
            return self._inside.run_row(row)
        except Exception as error:
            if hasattr(error, "add_note"):  # from Python 3.11 on
                error.add_note(f"In member {number} of the ensemble; this step has changed no member.")
            raise

    def _note_seconds(self, loading: float, row: float) -> None:
        """Let members run more rows at a time, if loading them takes a good part of the time."""
        self._plain_rows = max(1, min(_FASTEST_GROWTH * self._plain_rows, int(loading / row / _SHARE_OF_LOADING)))

    def _data(self, rows: Sequence[Sequence[Any]]) -> Snapshot:
        """The arguments of some rows that are data, and no objects of which each member has its own."""
        names = self._tables[0].names
        named = [(name, argument) for row in rows for name, argument in zip(names, row) if name in self._meet(row)]
        return Snapshot(named)

    def _refuse_changes(self, data: Snapshot, before: list[Any]) -> None:
        changed = first_difference(data.holders, before, data.read())
        if changed is None:
            return
        name = changed.place.split("[")[0]
        if name not in self._own:
            raise ArgumentError(
                f"{user_location()}: the step changes {changed.place}, which is the same for all members. Give each "
                f"member its own: mgjit.each([copy.deepcopy({name}) for _ in range({len(self._members)})])."
            )

    def _finish_round(
        self, position: int, count: int, ready: Sequence[int], general: dict[int, Contents | Memory]
    ) -> None:
        """Run the members that are ready, and take over what the others have left: all of it, whatever is raised."""
        running = [self._running[number] for number in ready]
        after = self._draw(ready, count)
        counted = self._inside.stats.counter[0] + count * len(ready)
        left = {number: self._members[number].calls_left - count for number in ready}
        for one, (numbers, _) in zip(running, after):
            one.advance(count, numbers)
        tasks = [one.run for one in running]

        def finish() -> None:
            for number, contents in general.items():
                self._members[number].become(contents)
            for task in tasks:
                task(0)
            for number, one, (_, states) in zip(ready, running, after):
                self._members[number].go_on(one.kernel, states, left[number])
            self._inside.stats.counter[0] = counted
            self._note(position + count)

        started = perf_counter()
        expected = count * sum(calls.seconds_of(one.kernel) for one in running)
        threads = min(self._threads, len(tasks)) if expected > calls.SECONDS_FOR_THREADS else 1
        with_cleanup(lambda: pool.run(tasks, threads), finish)
        for one in running if count > 1 else ():  # of a single row, Python takes most of the time
            one.kernel.seconds_a_row = max((perf_counter() - started) * threads / (count * len(running)), 1e-9)

    def _draw(self, ready: Sequence[int], count: int) -> list[tuple[array[float] | None, list[Any]]]:
        """What each member draws in its next rows, and the states of its generators after that."""
        plans = {id(one.kernel): one.kernel.draws for one in map(self._running.__getitem__, ready)}
        states = [(plan, plan.states()) for plan in plans.values() if plan is not None]

        def draw() -> list[tuple[array[float] | None, list[Any]]]:
            return [self._members[number].drawn(self._running[number].kernel, count) for number in ready]

        def restore() -> None:
            for plan, state in states:
                plan.restore(state)

        return with_cleanup(draw, restore)


def is_settled(kernel: Kernel, calls: int) -> bool:
    """Whether so many calls of a kernel are calls of its code and nothing else."""
    if kernel.move is not None or kernel.upgrade is not None or kernel.predecessor is not None:
        return False
    if kernel.loop_trial is not None and not kernel.loop_trial.passes(calls):
        return False
    return kernel.trial is None or not kernel.trial.rows_ahead(True, calls)
