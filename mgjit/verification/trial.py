"""A call that is made twice: as plain Python, and by the kernel, which has to leave the same numbers.

When: at the second call of a kernel, so that what was wrongly taken for a constant in the first has had a chance to
change; and once more at a call that nobody can predict.  How:

1. Take what all that the step can reach holds (snapshot.py), and let plain Python make the call.
2. Take the contents again, and put back those of step 1.  Let the kernel make the same call, on the same memory and
   by the same way as any other, from the same states of the generators.
3. Compare what both have left and returned (comparison.py).  If it is the same, a call has been made as any other.  If
   not, put back what plain Python has left, and never use the kernel again.

An interruption leaves all of a call, or nothing.  What plain Python prints cannot be undone; of all else a call that is
compared does what a call does that is not.  So where plain Python raises an error that compiled arithmetic does not
know (a division by zero), or gives other numbers each time (where operands are in a set), the kernel's call counts.
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

from .. import settings
from ..autograd.node_class import node_class
from ..engine.precision import FLOAT64, Precision
from ..errors import MismatchWarning, user_stacklevel
from ..interruption import with_cleanup
from ..record.progress import tracing_threads
from ..runtime.buffers import Moved
from ..runtime.kernel import Kernel
from ..stats import Stats
from .comparison import differences, first_difference
from .detached import Detached
from .documented import as_documented, as_returned
from .snapshot import Snapshot

#: The call after a trial passed that is tried again lies between these.
_EARLIEST, _LATEST = 8, 1000
#: A trace takes 10 to 25 times as long as the plain call: with "auto", plain calls of up to about a second are made.
_TRACE_SECONDS = 15.0
#: The interpreters that the tests run on; on later ones there are more trials.
TESTED = (3, 13)
_MORE_TRIALS = 12
#: What compiled arithmetic does not raise, because IEEE 754 has numbers for it, or because it needs no stack.
_NOT_COMPILED = (ArithmeticError, ValueError, RecursionError, MemoryError)
#: Where the order of additions depends on where objects lie, plain Python is asked so often if it agrees with itself.
_REPLAYS = 24
_REPLAY_SECONDS = 10.0


def is_tested() -> bool:
    """Whether mgjit is tested on this interpreter."""
    return sys.version_info[:2] <= TESTED


def trials_after_the_first() -> int:
    """How many calls of a kernel are compared after its second one."""
    return 1 if is_tested() else _MORE_TRIALS


@dataclass
class Trial:
    """When a kernel is compared with plain Python.

    Attributes:
        with_gradients: whether gradients are compared.
        are_chosen: whether the step chooses between numbers: an int may then be one of them, and the compiled step has
            a float in any case.
        left: the call that is this many calls ahead is to be compared.
        later: how many are compared after that.
        is_over: whether none is any more.
    """

    with_gradients: bool = True
    are_chosen: bool = False
    left: int = 1
    later: int = field(default_factory=trials_after_the_first)
    is_over: bool = False

    def is_due(self) -> bool:
        """Count a call; whether it is one that is to be compared."""
        if self.is_over:
            return False
        self.left -= 1
        return self.left <= 0

    def counting(self, call: Callable[..., Any], general: Callable[..., Any]) -> Callable[..., Any]:
        """`call`, until it is the turn of a call that is to be compared, which goes the general way."""

        def counted(*arguments: Any, **named: Any) -> Any:
            if self.left <= 0:
                return general(*arguments, **named)
            self.left -= 1
            return call(*arguments, **named)

        return counted

    def rows_ahead(self, has_run: bool, count: int) -> int:
        """How many rows at the beginning of a loop are to be calls of their own, of which the last is compared.

        Args:
            has_run: whether the kernel has been called before. count: of rows.
        """
        self.left -= count
        if self.left > 0:
            return 0
        self.left = 1
        return min(1 if has_run else 2, count)

    def passed(self) -> None:
        """Choose the next call, if there is to be one."""
        self.is_over = self.later <= 0
        self.later -= 1
        self.left = _EARLIEST + int.from_bytes(os.urandom(4), "little") % (_LATEST - _EARLIEST + 1)


@dataclass
class Verdict:
    """What has become of a call.

    Attributes:
        result: what it returns.
        mismatch: why the kernel is not to be used again; empty when it has passed.
        was_compared: whether anything has been compared.
        error: what plain Python has raised, if the caller is to get that.
        parameters: what lives in the memory of kernels.
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
        kernel: for these arguments, with them in its frame.
        counter: one number, the calls that the step has made.
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
        self._seen = as_documented(kernel.plan, arguments)
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
        self._detached = Detached(self.parameters)
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
        return with_cleanup(self._work, self._settle)

    def _settle(self) -> None:
        self._all.restore(self._end)
        self._counter[0] = self._count + self._counted

    def _ends_with(self, contents: list[Any]) -> None:
        """The call has been made, and has left this."""
        self._end, self._counted = contents, 1

    def _work(self) -> Verdict:
        try:
            plain = self._plain()
        except Exception as error:
            return self._without_plain(error)
        after = self._all.read()
        self._all.restore(self._before)
        mismatch = ""
        try:
            compiled = self._compiled()
            now = self._all.read()
            found = next(differences(plain, compiled, self._are_chosen, "the result", is_result=True), None)
            found = found or first_difference(self._all.holders, after, now, self._are_chosen)
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
        """The result of the call in plain Python; other steps that it calls are plain as well."""
        me = threading.get_ident()

        def call() -> Any:
            tracing_threads[me] = self._kernel.plan.precision
            return self._detached.during(lambda: self._call(self._seen.arguments))

        result = with_cleanup(call, lambda: tracing_threads.pop(me, None))
        self._seen.write_back()
        return result

    def _compiled(self) -> Any:
        """The result of the call of the kernel."""
        kernel = self._kernel
        if kernel.needs_accepting:
            kernel.accept()
        kernel.perform("step", self._counter)
        return kernel.result(kernel.outputs, self._arguments)

    def _without_plain(self, error: Exception) -> Verdict:
        """After an exception in plain Python, which is undone."""
        self._all.restore(self._before)
        if not isinstance(error, _NOT_COMPILED) or _was_raised_by_hand(error):
            text = f"plain Python raises {type(error).__name__}: {error}"
            return Verdict(mismatch=f"{text}, and the compiled step does not", error=error)
        compiled = self._compiled()
        self._ends_with(self._all.read())
        return Verdict(compiled, was_compared=False)

    # ---- orders that depend on where objects lie ----------------------------------------------------

    def _is_undecided(self, after: list[Any]) -> bool:
        """Whether plain Python itself gives other numbers when it makes the call again.

        It may where classes keep operands in a set.  Their order depends on where the operands lie in memory, so other
        memory is used in between.
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
            if first_difference(self._all.holders, after, self._all.read(), self._are_chosen) is not None:
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
) -> Verdict:
    """Make a call of a kernel that is due to be compared; see `Comparison`."""
    trial = kernel.trial
    comparison = Comparison(function, call, kernel, arguments, stats.counter)
    verdict = comparison.run()
    verdict.parameters = comparison.parameters
    if verdict.was_compared:
        stats.compared_calls += 1
        trial.passed()
        if trial.is_over:
            kernel.trial = None
    return verdict


def reason_without_trial(verify: str, precision: Precision, mode: str, lock: bool, trace_seconds: float) -> str:
    """Why a kernel is not compared with plain Python; empty when it is.

    Args:
        verify, precision, mode, lock: options of the step.
        trace_seconds: how long its trace took.
    """
    chosen = settings.verify(verify)
    if chosen == "never":
        return 'verify="never"'
    if not lock:
        return "lock=False: other threads change the numbers meanwhile"
    if precision is not FLOAT64 or mode != "strict":
        return "plain Python has other numbers than a step with dtype='float32' or mode='fast'"
    if chosen == "auto" and trace_seconds > _TRACE_SECONDS:
        return f'a plain call takes too long, as the trace took {trace_seconds:.0f} s; verify="always" asks for it'
    return ""


def warn_of_mismatch(name: str, mismatch: str) -> None:
    """Say that a kernel is wrong."""
    warnings.warn(
        f"the kernel of {name} is wrong: {mismatch}. {name} runs as plain Python from now on. This is a defect of "
        "mgjit: please report it, with the step.",
        MismatchWarning,
        stacklevel=user_stacklevel(),
    )


def _was_raised_by_hand(error: BaseException) -> bool:
    """Whether an exception comes from a `raise` in Python, and not from arithmetic."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or trace.tb_lasti < 0:
        return False
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == dis.opmap["RAISE_VARARGS"]
