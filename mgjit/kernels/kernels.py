"""The kernels of a step: finds the kernel that fits the arguments of a call, or makes one.

1. Try the kernel of the last call: it fits if the arguments have its structure and nothing captured has changed.
2. Otherwise try the kernel that was last used for arguments of these lengths.
3. Otherwise plan the arguments afresh, and look for a kernel of that structure.
4. Otherwise trace the call, build code for it, bind the parameters and state, and remember the kernel.

A kernel runs either whole steps or their phases.  The kernels that run phases, for `.forward` and what follows it, are
found and made in the same way, by a `Kernels` of their own (`separate`), when `.forward` is first called.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import chain
from time import perf_counter
from typing import Any, TypeVar

from ..base.lookup import classes_of
from ..engine.leaks import PlainCall
from ..engine.value import Value
from ..errors import ArgumentError, RetraceLimitError, RetraceWarning, user_location, user_stacklevel
from ..memory.buffers import Moved, storage_of
from ..runtime.detached import Detached, attach_numbers, may_detach, release
from ..runtime.kernel import Kernel
from ..tracing.call.lengths import are_ragged, lengths_of
from ..tracing.call.plan import ArgumentPlan
from ..tracing.call.whole_arrays import array_engine
from ..tracing.tracer.knowledge import Again
from .awaited import Awaited
from .building.background import prepare
from .factory import Maker, changed_by
from .first_calls.causes import Causes, told
from .first_calls.earnings import SECONDS_TO_DETACH, Earnings, TooMany, Waiting
from .first_calls.effort import may_be_refused, note_looked_at
from .first_calls.lives import Lives, lives_of
from .first_calls.pending import Pending
from .first_calls.plain import PlainCalls
from .first_calls.refusals import refusal
from .members import Members
from .paths import PathKey, Paths
from .registry import KERNELS
from .upgrades import Upgrades

T = TypeVar("T")

#: A step that was called this often, on average, for each structure of arguments (such as lengths of sequences) is
#: reusing its kernels, so that the number of structures is no reason for a warning.
_CALLS_OF_A_FAMILY = 4

#: Why a call is traced, where no difference from an earlier one is the reason.
_FIRST, _LOOK = "calls to come are expected to repay it", "to see whether the step can be compiled"
#: How many structures there may be where `limit=` does not say so.
_MOST_STRUCTURES = 64


class Kernels(Paths):
    """The kernels of a step.

    Args:
        maker: makes them.
        name: of the step.
        like: the kernels of the same step that these belong to; they differ in their options.

    Attributes:
        last: the kernel of the last call.
        stats: what has been traced, built and called.
        plain: which calls run as plain Python.
    """

    def __init__(self, maker: Maker, name: str, like: Kernels | None = None) -> None:
        self.maker, self._options = maker, maker.options
        self._name = name
        self.stats = maker.stats
        self.stats.noted.name = name
        self.stats.noted.kernel = self.describe_last
        self.last: Kernel | None = None
        self._members = Members()
        self._causes = Causes()
        self._kernels: dict[Hashable, Kernel] = {}
        self._begin_paths()
        self._slot_structures: set[Hashable] = set()
        self._has_warned = False
        self.plain: PlainCalls = PlainCalls(name, maker.stats) if like is None else like.plain
        self._separate: Kernels | None = None
        self.earnings = Earnings()
        self._lives = lives_of(maker.function, maker.options) if like is None else Lives()
        self._lives.begin(self.stats)
        if self._lives.are_hopeless():
            self.plain.give_up(self._lives.reason, not self._lives.are_slower())
        self._upgrades = Upgrades(maker, self.earnings)
        self._awaited = Awaited(maker, self.earnings, self.plain, self._upgrades, lambda: len(self._kernels), self._put)
        self._met: Sequence[Any] | None = None  # arguments of the last call, while none has been worth a trace
        self._unearned: dict[Hashable, tuple[Hashable, bool, str]] = {}  # structures without a trace, by lengths
        self._waiting: ArgumentPlan | None = None  # of the last call that had to wait for a trace
        self._ever_new = ""  # why nearly each call has another structure
        self._untraced: Sequence[Any] | None = None  # of the last one that has returned
        self._detached: tuple[list[Kernel], Detached] | None = None
        self.plain_since: tuple[str, bool] | None = None  # as of `Calls`
        self.stats.noted.plain_since = lambda: self.plain_since

    def __len__(self) -> int:
        return len(self._kernels) + (0 if self._separate is None else len(self._separate))

    def told(self) -> str:
        """How many there are, in words."""
        return f"{len(self)} kernel{'' if len(self) == 1 else 's'}"

    def all(self) -> list[Kernel]:
        """All kernels, but those that run phases; the one of the last call first."""
        return sorted(self._kernels.values(), key=lambda kernel: kernel is not self.last)

    @property
    def waiting(self) -> int:
        """How many traces wait for their code."""
        return len(self._awaited)

    @property
    def has_separate(self) -> bool:
        """Whether phases of this step have been run."""
        return self._separate is not None

    @property
    def separate(self) -> Kernels:
        """The kernels that run the phases of this step separately."""
        if self._separate is None:
            self._separate = Kernels(self.maker.separate(), self._name, self)
        return self._separate

    def member(self, arguments: Sequence[Any]) -> Kernel | None:
        """The kernel that was last used for arguments of these lengths."""
        return self._members.find(arguments)

    def known(self, arguments: Sequence[Any]) -> Kernel | None:
        """The kernel that fits these arguments, which are in its frame then; guards are not asked."""
        self.catch_up()
        likely = self.member(arguments)
        others = (kernel for kernel in self._kernels.values() if kernel is not likely)
        kernels = others if likely is None else chain([likely], others)
        return next((kernel for kernel in kernels if self._packs(kernel, arguments)), None)

    def fitting(self, arguments: Sequence[Any], patient: bool = False) -> Kernel:
        """The kernel for these arguments, with them in its frame.

        Parameters that are detached stay so until there may be one; but no argument may hold them.

        Args:
            arguments: of the call.
            patient: whether to wait for the code of the kernel, whatever the options say.

        Raises:
            PlainCall: the call is to run as plain Python.
        """
        self.catch_up()
        kernel = self.last
        reason = ""
        if kernel is not None and self._packs(kernel, arguments):
            attach_numbers()
            reason = kernel.guard.difference()
            if not reason:
                return kernel
        lengths = lengths_of(arguments)
        member = self._members.find(arguments, lengths)
        if member is not None and member is not kernel and self._fits(member, arguments):
            self.last = member
            return member
        if lengths in self._unearned and not (patient or self.earnings.is_sampling):
            self._require_known(*self._unearned.pop(lengths), lengths)
        if not patient:
            self.plain.require_gain()
        kernel = self._look_up(arguments, lengths, reason, patient)
        if not kernel.plan.pack(arguments, kernel.frame):
            raise ArgumentError(f"{user_location()}: the arguments changed while the step was traced.")
        self.last = kernel
        self._members.put(arguments, lengths, kernel)
        return kernel

    def _planned(self, arguments: Sequence[Any], shared: frozenset[str]) -> ArgumentPlan:
        """The plan for these arguments.

        Raises:
            Refused: there is none, and the call runs as plain Python.
        """
        kinds = ("arguments of", *map(type, arguments)) if self.goes_on else None
        self.plain.classes = classes_of(arguments)
        self.plain.require_plan(kinds)
        try:
            return self.maker.plan(arguments, shared)
        except Exception as error:
            if kinds is None:
                raise
            raise refusal(error, self.maker.location, kinds) from None

    def _require_known(self, key: Hashable, is_sure: bool, reason: str, lengths: Hashable) -> None:
        """Return if the structure that arguments of these lengths had before may have earned a trace by now.

        It need not be theirs, but to find theirs takes longer.

        Args:
            reason: what was another than in the last trace.

        Raises:
            Waiting: it has not.
        """
        try:
            self.earnings.require(key, self.stats.calls, len(self._awaited) > 0, is_sure=is_sure)
        except Waiting as waiting:
            waiting.add(reason)
            self._unearned[lengths] = key, is_sure, reason
            if not self._kernels:
                self.earnings.note_call(key)
            raise

    def _fits(self, kernel: Kernel, arguments: Sequence[Any]) -> bool:
        """Whether a kernel fits these arguments; if so, they are in its frame."""
        if not self._packs(kernel, arguments):
            return False
        attach_numbers()
        return not kernel.guard.difference()

    def _packs(self, kernel: Kernel, arguments: Any) -> bool:
        packed = kernel.plan.pack(arguments, kernel.frame)
        if packed and kernel.plan.shared(arguments, kernel.changed_now()):
            return False
        return packed and not (kernel.values is not None and self._is_captured(kernel.frame.values))

    def _look_up(self, arguments: Sequence[Any], lengths: Hashable, reason: str, patient: bool) -> Kernel:
        shared: frozenset[str] = frozenset()
        while True:
            try:
                return self._look_up_planned(arguments, lengths, shared, reason, patient)
            except Again:
                self.earnings.begin_sample()
            except _Shared as found:
                shared |= found.names

    def _look_up_planned(
        self, arguments: Sequence[Any], lengths: Hashable, shared: frozenset[str], reason: str, patient: bool
    ) -> Kernel:
        is_asked = patient or (self._options.is_patient and not self.goes_on)  # nobody wants a plain call
        patient = patient or self._options.is_patient
        plan = self._planned(arguments, shared)
        anonymous = plan.structure if self._kernels or self._slot_structures else None
        if anonymous in self._slot_structures:
            plan = self.maker.plan(arguments, shared, self._is_slot)
        elif any(k.plan.structure == anonymous and k.plan.key != plan.key for k in self._kernels.values()):
            # Other Values, or nodes of the user's classes: from now on they are copied in and out.
            self._slot_structures.add(anonymous)
            plan = self.maker.plan(arguments, shared, self._is_slot)
        if not (patient or self._kernels):
            self.earnings.note_call(plan.key)
        outdated = self._collect(plan.key, plan, arguments, patient)
        known, last = self._kernels.get(plan.key), self._last_plan()
        if known is not None:
            attach_numbers()
            _refuse_shared(plan, arguments, known.changed_now())
            reason = known.guard.difference()
            if not reason:
                return known
        elif last is not None:
            reason = last.first_difference(plan)
        elif self._options.code.separate:
            reason = "its phases are run separately"
        self.plain.require_trace(plan.key)
        structures = {key for key in (*self._kernels, *self._awaited) if type(key) is not PathKey}
        self._refuse_too_many(plan, len(structures) - (known is not None), reason)
        self._met = None if self.earnings.has_begun else arguments
        if known is None and not (is_asked or self._kernels or self.earnings.begins_at_once):
            self._lives.require(plan.key, self.stats, self.earnings.plain_seconds(), self._options.is_patient)
        if not patient:
            may_found = self._awaited.are_building() and not self.maker.kin.keys(self._options.code)
            is_ragged, is_sure = are_ragged(arguments), self.maker.expects_much_of(plan)
            if self.earnings.has_begun and known is None and not is_ragged and len(self._unearned) < _MOST_STRUCTURES:
                self._unearned[lengths] = plan.key, is_sure, reason
            try:
                self.earnings.require(plan.key, self.stats.calls, may_found, is_ragged, is_sure)
            except Waiting as waiting:
                waiting.add(reason)
                self._tell_of_ever_new(plan, is_ragged, waiting)
                if not is_ragged and self.earnings.may_look() and may_be_refused(self.maker.function):
                    note_looked_at(self.maker.function)
                    look = functools.partial(self.maker.look, plan)
                    self._traced(plan.key, lambda: self.maker.answering(plan.packed(arguments), look), _LOOK)
                raise
            self._unearned.pop(lengths, None)
        self._met = self._untraced = None
        self._refuse_too_often(plan, known, reason, outdated)
        attach_numbers()
        for kernel in {id(k): k for k in (known, self.last) if k is not None}.values():  # what changes is no constant
            self.maker.knowledge.variable.update(kernel.guard.changed_numbers())
        self._refuse_arrays(arguments, plan.key)
        kernel = self._traced(plan.key, lambda: self._make(plan, arguments, reason, patient), reason or _FIRST)
        self._add(plan.key, kernel)
        return kernel

    def _last_plan(self) -> ArgumentPlan | None:
        """Of the kernel that was used last, or, before there is one, of the trace that waits for its code."""
        if self.last is not None:
            return self.last.plan
        return self._awaited.pending()[-1].prepared.plan if self._awaited else None

    def _tell_of_ever_new(self, plan: ArgumentPlan, is_ragged: bool, waiting: Waiting) -> None:
        """Where nearly each call has another structure, so that none earns a trace, warn of it once."""
        if is_ragged:  # a part of the step is compiled (units/)
            return
        before, self._waiting = self._waiting, plan
        if self.earnings.are_ever_new(plan.key) and before is not None:
            self._ever_new = self._ever_new or told(before.first_difference(plan))
            waiting.why = self._ever_new
            self.plain.tell(self._ever_new)

    def _traced(self, key: Hashable, work: Callable[[], T], why: str) -> T:
        """`work()`, which traces a call of this structure, for a reason.

        Raises:
            Waiting: its code is being built.
            PlainCall: the call runs as plain Python, which is noted.
        """
        self.stats.decide(f"trace: {why}")
        try:
            return work()
        except Waiting:
            raise
        except PlainCall as plain:
            self._note_trace(key, plain)
            raise
        except (_Shared, Moved):
            raise
        except Exception as error:
            if not self.goes_on:
                raise
            refused = refusal(error, self.maker.location, key)
            if refused.is_certain:
                self._note_trace(key, refused)
            raise refused from None

    @property
    def goes_on(self) -> bool:
        """Whether calls that cannot be compiled are plain Python."""
        return self.maker.may_be_plain and not self._options.code.separate and self._options.goes_on

    def _note_trace(self, key: Hashable, plain: PlainCall, is_final: bool = False) -> None:
        """Note that calls with arguments of this structure run as plain Python, as a trace has shown."""
        self._lives.note_fruitless(str(plain))
        self.stats.decide(f"trace in vain: {plain}")
        self._unearned.clear()
        self.plain.note_trace(key, plain, is_final)

    def note_returned(self) -> None:
        """Note that a plain call with the arguments met last has raised nothing, so that it may be traced."""
        self._untraced = self._met

    def note_repaid(self) -> None:
        """Note for later processes which traces have been worth it."""
        if self._kernels and self.earnings.are_repaid(self.stats.calls):
            for kernel in self._kernels.values():
                self.maker.repaid.note(kernel.plan)

    def _add(self, key: Hashable, kernel: Kernel) -> None:
        """Put a kernel among the others, whose numbers it may change."""
        if key in self._kernels:
            for path in self.paths_of(key):  # which know what is not so any more, as this one did
                self.forget(path)
        if key in self._kernels:
            self.forget(self._kernels[key])
        self.look_at_everything()
        self._unearned.clear()
        self._kernels[key] = kernel
        self._beside.clear()
        self._lives.note_trace(self.earnings.seconds_of(key))

    def look_at_everything(self) -> None:
        """Let the next call of each kernel look at all that its guard watches: the step may have changed it."""
        for kernel in list(self._kernels.values()):
            kernel.guard.look_at_everything()

    def catch_up(self) -> None:
        """The same, if calls have been plain without a look."""
        if self.plain_since:
            self.plain_since = None
            self.look_at_everything()

    def note_calls(self, plain: float) -> None:
        """Note how many calls there have been, for steps that are made of the same function later.

        Args:
            plain: what the last plain call has taken, in seconds.
        """
        self._lives.note_calls(plain)

    def note_weighed(self, reason: str) -> None:
        """Note that compiled calls are quicker than plain ones, or why not; for steps of the same code as well."""
        self._lives.note_weighed(reason)

    def are_hopeless(self) -> bool:
        """Whether there is no kernel, nor will there be one."""
        return not (self._kernels or self._awaited) and self.plain.are_final()

    def are_in_vain(self) -> bool:
        """Whether there are kernels, which have been of no use, and calls are plain now."""
        is_used = self.stats.calls > _CALLS_OF_A_FAMILY * self.stats.traces
        return bool(self._kernels) and not (is_used or self._awaited) and self.plain.are_final()

    def note_plain(self, key: Hashable, seconds: float, calls: int = 1) -> None:
        """Note plain calls of a structure that has no kernel."""
        self.earnings.note_plain(key, seconds, calls)
        self._awaited.note_calls(calls - 1)

    def patient(self, arguments: Sequence[Any]) -> Kernel:
        """The kernel for these arguments, with its best code, which cannot come while rows are run.

        Raises:
            PlainCall: the call is to run as plain Python.
        """
        kernel = self.fitting(arguments, patient=True)
        self._upgrades.wait(kernel, len(self._kernels))
        return kernel

    def going_on(self, arguments: Sequence[Any]) -> Kernel | None:
        """The kernel of the last call, with its best code, if these arguments fit it; they are in its frame then."""
        self.catch_up()
        kernel = self.last
        if kernel is not None and kernel.upgrade is not None:
            self.upgrade(kernel)
        return kernel if kernel is not None and self.has(kernel) and self._fits(kernel, arguments) else None

    def has(self, kernel: Kernel) -> bool:
        """Whether a kernel is still in use."""
        return any(kernel is known for known in self._kernels.values())

    def forget(self, kernel: Kernel) -> None:
        """Stop using a kernel."""
        self._members.forget(kernel)
        self._beside.clear()
        self._kernels = {key: member for key, member in self._kernels.items() if member is not kernel}
        if self.last is kernel:
            self.last = None

    def detached(self, also_shared: bool, plain: float | None = None) -> Detached | None:
        """The parameters that are to be ordinary objects during plain calls; None if that does not make these quicker.

        Args:
            also_shared: those of other steps, too, where these make no quick calls meanwhile.
            plain: seconds that they may take, one after the other; by default, what one takes.
        """
        also_shared = also_shared and may_detach()  # other threads may add steps meanwhile
        kernels = [kernel for each in (KERNELS if also_shared else [self]) for kernel in list(each._kernels.values())]
        if kernels and (self._detached is None or self._detached[0] != kernels):
            things = _each_once(p for k in kernels for p in k.moved) if also_shared else self.attached()
            self._detached = kernels, Detached(things)
        found = self._detached[1] if kernels and self._detached else ()
        plain = self.earnings.plain_seconds() if plain is None else plain
        return found if found and plain > SECONDS_TO_DETACH * len(found) else None

    def attached(self) -> list[Any]:
        """The objects whose numbers live in the memory of these kernels."""
        kernels = self._kernels.values()
        own = (k for k in kernels if not any(storage.is_shared for storage in k.parameters))
        return _each_once(p for k in own for p in k.moved)

    def distrust(self, kernel: Kernel, reason: str, parameters: Sequence[Any]) -> None:
        """Run the step as plain Python with arguments of this structure, always: its kernel has computed wrongly."""
        self.maker.proofs.remove(kernel.code)
        self.forget(kernel)
        self._separate = None
        self.stats.mismatches.append(reason)
        self.plain.distrust(kernel.plan.key, reason, parameters)

    def mismatch(self, kernel: Kernel) -> str:
        """How better code for a kernel differs from the code before, if a call has been made by both by now."""
        has_run = kernel.predecessor is not None and kernel.predecessor.has_run
        mismatch = kernel.mismatch()
        if mismatch:
            self.stats.mismatches.append(mismatch)
        elif has_run:
            self.maker.proofs.note(kernel.code, like_before=True)
        return mismatch

    def _is_slot(self, value: Value) -> bool:
        """Whether an argument Value may be copied in and out: not when the step may reach it by another way."""
        return not self._is_captured([value])

    def _is_captured(self, values: Sequence[Value]) -> bool:
        """Whether one of the argument Values is a parameter of a kernel of this step."""
        storages = list(map(storage_of, values))
        return any(
            storage is not None and storage in k.parameters for storage in storages for k in self._kernels.values()
        )

    def _refuse_arrays(self, arguments: Sequence[Any], key: Hashable) -> None:
        reason = "" if self.stats.traces else array_engine(self.maker.function, arguments)
        if reason:
            plain = PlainCall(reason)
            self._note_trace(key, plain)
            raise plain

    def _refuse_too_often(
        self, plan: ArgumentPlan, known: Kernel | None, reason: str, outdated: tuple[str, bool] | None
    ) -> None:
        """Return if this is no trace after which there would be the next one, without an end.

        Args:
            outdated: of a trace whose code was not there yet when something had changed; see `Awaited.collect`.

        Raises:
            PlainCall: the call runs as plain Python, which is noted.
        """
        if not self.maker.may_be_plain or self._options.code.separate:
            return
        last = self._last_plan()
        if outdated is not None:
            reason, may_end = outdated
        elif known is None:
            if last is None:
                return
            is_of_containers = last.constant_difference(plan, self._options.static)
            if is_of_containers is None:
                return
            may_end = not is_of_containers
        else:
            may_end = not self.maker.knowledge.variable.issuperset(known.guard.changed_numbers())
        try:
            is_structure = known is None and outdated is None
            self._causes.require(reason, self.stats.calls, is_structure, may_end, outdated is not None)
        except PlainCall as plain:
            self._has_warned = True  # this says more
            self._note_trace(plan.key, plain, outdated is not None and self._causes.are_hopeless())
            if not self._kernels:  # what is built would be of as little use
                self._awaited.give_up()
            if known is not None:  # which does not fit, and would slow down plain calls
                release(known.moved, self.maker.token)
                self.forget(known)
            raise

    def _refuse_too_many(self, plan: ArgumentPlan, known: int, reason: str) -> None:
        limit = self._options.limit
        if known >= (limit or _MOST_STRUCTURES):
            # Phases need kernels, and so does what is frozen.
            if self.goes_on or (limit is None and self.maker.may_be_plain and not self._options.code.separate):
                raise TooMany(plan.key, known)
            raise RetraceLimitError(
                f"{user_location()}: {self._name} has been traced for {known} argument structures, the "
                f"limit. The first difference from the last call: {reason}. Make the arguments alike (pad them, "
                "pass numbers instead of strings or bools), or raise limit=."
            )
        stats = self.stats
        is_family = stats.calls >= _CALLS_OF_A_FAMILY * stats.traces  # whose members are used again and again
        if stats.traces >= self._options.warn_after and not self._has_warned and not is_family:
            self._has_warned = True
            warnings.warn(
                f"{self._name} is being traced for the {self.stats.traces + 1}th time; the first difference from "
                f"the last call: {reason}",
                RetraceWarning,
                stacklevel=user_stacklevel(),
            )

    def _make(
        self, plan: ArgumentPlan, arguments: Sequence[Any], reason: str, patient: bool, path: PathKey | None = None
    ) -> Kernel:
        """Trace the call, and make its kernel.

        Args:
            path: the key of one more path, while its code is built.

        Raises:
            Waiting: its code is being built.
        """
        if not patient:
            prepare()
        key = path or plan.key
        prepared = self.maker.answering(plan.packed(arguments), lambda: self.maker.prepared(plan, reason, patient))
        traced = prepared.traced
        self.earnings.note_trace(key, prepared.processor)
        _refuse_shared(plan, arguments, changed_by(plan, traced))
        inputs = plan.regions(traced.draws.size)
        kernel = None if patient else self._awaited.begin(key, prepared, inputs)
        kernel = kernel or self.maker.built(prepared, inputs)
        traced.effects.perform()
        return kernel

    def _collect(
        self, key: Hashable, plan: ArgumentPlan, arguments: Sequence[Any], patient: bool
    ) -> tuple[str, bool] | None:
        """If a kernel for these arguments is being built, put it among the others once its code is there.

        Returns, raises: as `Awaited.collect`.
        """

        def require_no_shared(pending: Pending) -> None:
            _refuse_shared(plan, arguments, changed_by(pending.prepared.plan, pending.prepared.traced))

        return self._awaited.collect(key, patient, require_no_shared)

    def _put(self, key: Hashable, kernel: Kernel) -> None:
        """Put a kernel that was awaited among the others."""
        if type(key) is PathKey:
            self._add_path(kernel)
        else:
            self._add(key, kernel)

    def upgrade(self, kernel: Kernel) -> bool:
        """Give a kernel better code, if that has been built; returns whether it has other code now."""
        return self._upgrades.take(kernel, len(self._kernels))

    def describe_wait(self, waiting: Waiting) -> str:
        """Why a call waits for its kernel."""
        return self._awaited.describe(waiting)

    def describe_last(self) -> tuple[str, str]:
        """The arguments of the kernel that was used last, and what its code is made by, in words."""
        kernel = self.last
        if kernel is None:
            return "arguments that are known no more", "code that is gone"
        made_by = kernel.code.facts.get("compiler") or "generated Python"
        return kernel.plan.outline(), f"quick code of {made_by}" if kernel.upgrade is not None else made_by

    def wait(self, seconds: float | None, may_trace: bool) -> bool:
        """Wait until all code is there that is being built, or so many seconds; returns whether it is."""
        end = None if seconds is None else perf_counter() + seconds
        arguments, self._untraced = self._untraced, None
        if may_trace and not self.earnings.has_begun:  # no call has been worth a trace, but now one is
            self.earnings.begins_at_once = self.earnings.is_asked = True
            if arguments is not None:
                with contextlib.suppress(PlainCall):
                    self.fitting(arguments)
        if not self._awaited.wait(end):
            return False
        for kernel in self._kernels.values():
            left = None if end is None else max(0.0, end - perf_counter())
            if not self._upgrades.wait(kernel, len(self._kernels), left):
                return False
        return True

    def give_up(self) -> None:
        """Give up all that is being built."""
        self._awaited.give_up()
        for kernel in self._kernels.values():
            if kernel.upgrade is not None and kernel.upgrade.job is not None:
                kernel.upgrade.job.cancel()


def _each_once(things: Iterable[Any]) -> list[Any]:
    return list({id(thing): thing for thing in things}.values())


class _Shared(Exception):
    """Containers among the arguments are also changed by another way: these arguments are to be known by identity."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__(names)
        self.names = names


def _refuse_shared(plan: ArgumentPlan, arguments: Sequence[Any], changed: frozenset[int]) -> None:
    """Contents of arguments may be inputs only if nothing that the step changes is among them.

    Raises:
        _Shared: it is not so.
    """
    names = plan.shared(arguments, changed)
    if names:
        raise _Shared(frozenset(names))
