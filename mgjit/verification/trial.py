"""Verify a kernel: make a call twice, as plain Python and by the kernel, and compare the numbers they leave.

This happens at the second call of a kernel, so that anything wrongly taken for a constant in the first has had a chance
to change, and once more at a random later call:

1. Take a snapshot of everything that the step can reach (snapshot.py), and let plain Python make the call.
2. Take another snapshot, and restore the first one.  Let the kernel make the same call, on the same memory and by the
   same path as any other call, from the same states of the generators.
3. Compare what both have left and returned (comparison.py).  If it is the same, the call is complete.  If not, restore
   what plain Python has left, and never use the kernel again.

An interruption leaves a whole call, or nothing.  Except for what plain Python prints, which cannot be undone, a
compared call has the same effects as any other.  So if plain Python raises an error that compiled arithmetic does not
have (a division by zero), or gives different numbers each time (operands in a set), the kernel's call counts.
"""

from __future__ import annotations

import dis
import os
import random
import sys
import threading
import warnings
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from ..base import settings
from ..base.garbage import without_garbage_collection
from ..base.interruption import with_cleanup
from ..compiler.build.options import StepOptions
from ..engine.precision import FLOAT64
from ..engine.progress import tracing_threads
from ..errors import MismatchWarning, user_stacklevel
from ..ir.opcodes import MAXIMUM, MINIMUM, NUMBER, SELECT
from ..ir.trace import Trace
from ..memory.buffers import Moved
from ..runtime.detached import Detached
from ..runtime.kernel import Kernel
from ..runtime.stats import Stats
from ..runtime.undo import Undone
from ..tracing.autograd.node_class import node_class
from .comparison import differences, first_difference
from .documented import Seen, as_returned
from .snapshot import Snapshot

#: After a passed trial, the next one is this many calls later: a random number between these.
_EARLIEST, _LATEST = 8, 1000
#: With "auto", steps are compared whose plain calls are estimated to take no longer.
_MOST_SECONDS = 1.0
#: A plain call takes at most twice as long as its trace (much less for other people's classes), and at most so many
#: seconds for each recorded operation.  The lower of the two is the better estimate.
_OF_TRACE, _OF_RECORD = 2.0, 2.5e-6
#: Seconds of a scalar operation of a tensor.
_IN_NESTS = 2e-9
#: The interpreters that the tests run on; on later ones there are more trials.
TESTED = (3, 13)
_MORE_TRIALS = 12
#: Exceptions that compiled code does not raise, because IEEE 754 has numbers for these cases, or it needs no stack.
_NOT_COMPILED = (ArithmeticError, ValueError, RecursionError, MemoryError)
#: If the order of additions may depend on the addresses of objects, plain Python is run this often to see whether it
#: agrees with itself.
_REPLAYS = 24
_REPLAY_SECONDS = 10.0


def is_tested() -> bool:
    """Whether mgjit is tested on this interpreter."""
    return sys.version_info[:2] <= TESTED


def trials_after_the_first() -> int:
    """How many calls of a kernel are compared after its second one."""
    return 1 if is_tested() else _MORE_TRIALS


def calls_until_next() -> int:
    """How many calls after a passed comparison the next one is."""
    return _EARLIEST + int.from_bytes(os.urandom(4), "little") % (_LATEST - _EARLIEST + 1)


@dataclass
class Trial:
    """Decides when a kernel is compared with plain Python.

    Attributes:
        with_gradients: whether gradients are compared.
        are_chosen: whether the step chooses between numbers: plain Python may then have an int where the compiled step
            has a float.
        left: how many calls ahead the next comparison is.
        later: how many comparisons follow that one.
        is_over: whether there are no more comparisons.
    """

    with_gradients: bool = True
    are_chosen: bool = False
    left: int = 1
    later: int = field(default_factory=trials_after_the_first)
    is_over: bool = False

    def is_due(self) -> bool:
        """Count a call; returns whether it is to be compared."""
        if self.is_over:
            return False
        self.left -= 1
        return self.left <= 0

    def counting(self, call: Callable[..., Any], general: Callable[..., Any]) -> Callable[..., Any]:
        """`call`, wrapped so that it counts, and passes the call that is to be compared to the general path."""

        def counted(*arguments: Any, **named: Any) -> Any:
            if self.left <= 0:
                return general(*arguments, **named)
            self.left -= 1
            return call(*arguments, **named)

        return counted

    def rows_ahead(self, has_run: bool, count: int) -> int:
        """How many rows at the beginning of a loop are to be separate calls, the last of which is compared.

        Args:
            has_run: whether the kernel has been called before. count: the number of rows.
        """
        self.left -= count
        if self.left > 0:
            return 0
        self.left = 1
        return min(1 if has_run else 2, count)

    def passed(self) -> None:
        """Choose the next call to compare, if there is to be one."""
        self.is_over = self.later <= 0
        self.later -= 1
        self.left = calls_until_next()


@dataclass
class Verdict:
    """The outcome of a compared call.

    Attributes:
        result: the result of the call.
        mismatch: why the kernel must not be used again; empty if it has passed.
        was_compared: whether anything was compared.
        error: an exception of plain Python that the caller is to get, or None.
        parameters: the objects whose numbers live in the memory of kernels.
    """

    result: Any = None
    mismatch: str = ""
    was_compared: bool = True
    error: Exception | None = None
    parameters: Sequence[Any] = ()


class Comparison:
    """One call that is compared.

    Args:
        function: the step. call: runs it, undecorated, with a list of arguments.
        kernel: fits these arguments, which are in its frame.
        counter: one number: how many calls the step has made.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        call: Callable[[Sequence[Any]], Any],
        kernel: Kernel,
        arguments: Sequence[Any],
        counter: array[int],
    ) -> None:
        trial: Trial = kernel.trial
        self._are_chosen = trial.are_chosen
        self._kernel, self._counter, self._count = kernel, counter, counter[0]
        self._seen = Seen(kernel.plan, arguments)
        self._call, self._arguments = call, arguments
        names = list(zip(kernel.plan.names, arguments))
        drawn = [] if kernel.draws is None else kernel.draws.generators
        generators = [("random", thing) for thing in (random.seed.__self__, *drawn)]  # type: ignore[attr-defined]
        self._all = Snapshot([("", function), *names, *generators], trial.with_gradients)
        states = [buffer for slot, buffer in zip(kernel.code.slots, kernel.buffers) if slot.space == "state"]
        self._all.add_memory([*kernel.parameters, *states])
        if kernel.copies is not None:
            self._all.add_places(kernel.copies.places())
        self.parameters = self._all.parameters
        self._detached = Detached(self.parameters, with_types=False)
        self._before: list[Any] = []
        self._end: list[Any] = []
        self._counted = 0

    #: What lives in the memory of kernels.
    parameters: Sequence[Any]

    def run(self) -> Verdict:
        """Make the call.

        Raises:
            IndexRangeError, ArgumentError: the kernel refuses the arguments; nothing was done.
            Moved: the kernel cannot be used any more; nothing was done.
        """
        if self._kernel.needs_accepting:
            self._kernel.accept()
        self._before = self._end = self._all.read()
        return with_cleanup(self._work, self._finish)

    def _finish(self) -> None:
        self._all.restore(self._end)
        self._counter[0] = self._count + self._counted

    def _ends_with(self, contents: list[Any]) -> None:
        """Note that the call is complete, and has left these contents."""
        self._end, self._counted = contents, 1

    def _work(self) -> Verdict:
        try:
            plain = self._plain()
        except Exception as error:
            return self._without_plain(error)
        after = without_garbage_collection(self._all.read)
        self._all.restore(self._before)
        mismatch = ""
        try:
            compiled = self._compiled()
            now = without_garbage_collection(self._all.read)
            found = next(differences(plain, compiled, self._are_chosen, "the result", is_result=True), None)
            found = found or first_difference(self._all.holders, after, now, self._before, self._are_chosen)
            if found is None or self._is_undecided(after):
                self._ends_with(now)
                return Verdict(compiled)
            mismatch = str(found)
        except Moved:
            raise
        except Exception as error:
            mismatch = f"the compiled step raises {type(error).__name__}: {error}"
        self._ends_with(after)
        return Verdict(as_returned(plain), mismatch)

    def _plain(self) -> Any:
        """Make the call in plain Python, including any steps that it calls; returns the result."""
        me = threading.get_ident()

        def call() -> Any:
            tracing_threads[me] = self._kernel.plan.precision
            return self._detached.during(lambda: self._call(self._seen.arguments))

        result = with_cleanup(call, lambda: tracing_threads.pop(me, None))
        self._seen.write_back()
        told = None if self._kernel.copies is None else self._kernel.copies.told
        for place in () if told is None else (*(part.place for part in told.kept), *told.built.places):
            place.write(self._seen.as_given(place.read()))
        return self._seen.as_given(result)

    def _compiled(self) -> Any:
        """Make the call by the kernel; returns the result."""
        kernel = self._kernel
        if kernel.needs_accepting:
            kernel.accept(self._arguments)
        kernel.perform("step", self._counter)
        return kernel.result(kernel.outputs, self._arguments)

    def _without_plain(self, error: Exception) -> Verdict:
        """After an exception in plain Python, which is undone."""
        self._all.restore(self._before)
        if self._kernel.verdict >= 0:
            raise Undone
        if not isinstance(error, _NOT_COMPILED) or _was_raised_by_hand(error):
            text = f"plain Python raises {type(error).__name__}: {error}"
            return Verdict(mismatch=f"{text}, and the compiled step does not", error=error)
        compiled = self._compiled()
        self._ends_with(self._all.read())
        return Verdict(compiled, was_compared=False)

    # ---- orders that depend on where objects lie ----------------------------------------------------

    def _is_undecided(self, after: list[Any]) -> bool:
        """Whether plain Python gives different numbers when it makes the call again.

        This can happen if classes keep operands in a set, whose order depends on the addresses of the operands; so
        different memory is used in between.
        """
        known = [node_class(kind) for kind in self._all.classes]
        if all(node is None or node.is_ordered for node in known):
            return False
        ballast = []
        started = perf_counter()
        for number in range(_REPLAYS):
            ballast.append([bytes(16 * (k % 40)) for k in range(os.urandom(1)[0] * (number + 1))])
            self._all.restore(self._before)
            self._plain()
            if first_difference(self._all.holders, after, self._all.read()) is not None:
                return True
            if perf_counter() - started > _REPLAY_SECONDS:
                break
        return False


def compare(
    function: Callable[..., Any],
    call: Callable[[Sequence[Any]], Any],
    kernel: Kernel,
    arguments: Sequence[Any],
    stats: Stats,
    kind: type[Comparison] = Comparison,
) -> Verdict:
    """Make a call that is due to be compared; see `Comparison`, of this kind."""
    trial = kernel.trial
    comparison = without_garbage_collection(lambda: kind(function, call, kernel, arguments, stats.counter))
    verdict = comparison.run()
    verdict.parameters = comparison.parameters
    if verdict.was_compared:
        stats.compared_calls += 1
        trial.passed()
        if trial.is_over:
            kernel.trial = None
    return verdict


def plain_seconds(trace_seconds: float, records: int, in_blocks: int = 0, in_nests: int = 0) -> float:
    """An estimate of how long a plain call takes.

    Args:
        trace_seconds: how long its trace took. records: how many it has.
        in_blocks: how many of them are in blocks, whose traces take next to no time.
        in_nests: how many scalar operations its operations on tensors are.
    """
    others = min(_OF_TRACE * trace_seconds, _OF_RECORD * (records - in_blocks))
    return others + _OF_RECORD * in_blocks + _IN_NESTS * in_nests


def trial(options: StepOptions, trace: Trace, seconds: float) -> Trial | None:
    """When the kernel for a trace is to be compared with plain Python, which takes so long; None for never."""
    if reason_without_trial(options, seconds):
        return None
    choices = {SELECT, MAXIMUM, MINIMUM}
    return Trial(options.code.grads, not choices.isdisjoint(code & (NUMBER - 1) for code in set(trace.op)))


def reason_without_trial(options: StepOptions, seconds: float) -> str:
    """Why a kernel is not compared with plain Python, which takes so long; empty when it is."""
    chosen = settings.verify(options.verify)
    if chosen == "never":
        return 'verify="never"'
    if not options.lock:
        return "lock=False: other threads change the numbers meanwhile"
    if options.precision is not FLOAT64 or options.code.mode != "strict":
        return "plain Python has other numbers than a step with dtype='float32' or mode='fast'"
    if chosen == "auto" and seconds > _MOST_SECONDS:
        return f'a plain call may take {seconds:.1f} s; verify="always" asks for it'
    return ""


def warn_of_mismatch(what: str, mismatch: str, then: str) -> None:
    """Warn that a kernel, or better code for one, is wrong.

    Args:
        then: what the step does from now on.
    """
    warnings.warn(
        f"{what} is wrong: {mismatch}. The step {then}. This is a defect of mgjit: please report it, with the step.",
        MismatchWarning,
        stacklevel=user_stacklevel(),
    )


def _was_raised_by_hand(error: BaseException) -> bool:
    """Whether an exception comes from a `raise` statement rather than from arithmetic."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or trace.tb_lasti < 0:
        return False
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == dis.opmap["RAISE_VARARGS"]
