"""Which structures of arguments have earned a trace, and a kernel.

Nobody knows how long a program is going to run.  A step shall never be much slower than the Python that it replaces:

1. The first structure of a step is traced when its plain calls are expected to take longer than a trace, if the
   program goes on for as long as it has been running, and for a hundred calls: mostly at the second call, so that what
   cannot be compiled is found early, but later where calls are short, or each has another structure.  How long they
   are is told by the lines that the first one executes, not by a clock, so that it is the same call in every run; only
   calls of which nothing is known are measured.  It is traced at
   its first call where that was repaid in an earlier process (`repaid.py`), and where the call would take long: with
   many numbers, or tensors.  PyPy has to translate the tracer first, and waits for five seconds of plain calls.
   A batch of sequences of different lengths is traced when its structure comes again, or after some calls: most come
   once, and a part of the step is compiled by itself (units/).
2. Another structure (such as the next length of a sequence) is traced when its plain calls have taken as long as a
   trace is expected to cost: as many times as long as one of them as the last one has.  When it has to be traced
   again, they have to take as long as all its traces together.  Where it is known how many calls are to come, and
   compiled calls have shown that kernels work, it is traced as soon as a trace is expected to save twice that, perhaps
   at its first call, and never where it would save less than it costs; one after the other until they share code.  How
   often a structure will come is told by how often it has come; where many have come once only, that tells less (Good,
   Biometrika 40, 1953).  All that is spent is a debt: traces, the first one as well, comparisons with plain Python, and
   what other processes do, where there is but one processor.  What compiled calls have saved so far repays it; half of
   that pays for further traces, so that the other half is gained (`part`).  What is left of the debt is at most a tenth
   of what all calls would have taken as plain Python (`share`), so the program is never much further behind than that.
   A structure that an earlier process has repaid may wait for less.
3. A kernel keeps the numbers of parameters in its own memory, which makes plain calls slower.  So a step gets its first
   kernel only when those that are there make a fair share of its calls; until then they wait (`are_worth_it`).
   A small share is fair where detaching the parameters takes a small part of a plain call.
4. To look for a kernel takes longer than a very short plain call.  So only some plain calls look for one (between.py).
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from time import thread_time

from ...engine.leaks import PlainCall

#: The part of the calls that have to have a kernel before the first kernel is used, at most.
_FAIR_SHARE = 0.25
#: Seconds that it takes to detach a parameter, and attach it again, generously.
SECONDS_TO_DETACH = 2e-6
#: The part of the time of plain calls that may be spent on further structures, besides what compiled calls have saved.
_SHARE_OF_PLAIN = 0.1
#: The part of what compiled calls have saved that may be spent on others; to keep memory for both takes time as well.
_PART_OF_SAVED = 0.5
#: The same of structures that are known to pay, for which all that was saved counts.
_SHARE_IF_SURE = 0.2
#: A look takes one part in so many of the time of plain calls that are shorter than so many seconds, and are at most so
#: many without one; and the seconds that such a call is taken for at least.
_PLAIN_PER_LOOK, _SHORT, _MOST_UNLOOKED, _LEAST = 50, 2e-3, 100_000, 1e-7
#: What a trace has to save, in traces, where it is known how many calls are to come.
_GAIN = 2.0
#: Nearly each call has another structure if such a part of so many calls that wait has one of its own.
_NEARLY, _SAMPLE = 0.75, 64
#: So many structures are kept account of.
_MOST_ACCOUNTS = 10_000
#: What better code costs, in traces; or, where it delays the program, in what the code that is there has cost.
_BETTER_CODE, _BETTER_THAN_QUICK = 2.0, 8.0
_IS_PYPY = sys.implementation.name == "pypy"
#: So many seconds of plain calls come before the first trace of a step: about as long as PyPy takes for it.
_BEFORE_FIRST = 5.0 if _IS_PYPY else 0.0
#: So many calls of ever new structures come before it, if the arguments are sequences of different lengths.
RAGGED_CALLS = 6
#: What the first trace costs: seconds, of which none have to be earned where there are none, and plain calls.
_FIRST_SECONDS, _FIRST_CALLS = 0.0 if _IS_PYPY else 0.1, 10
#: How many calls of a step are to come at least, as far as one knows.
_CALLS_TO_COME = 100


def unlooked(calls: int, looking: float, plain: float) -> int:
    """How many calls come without a look.

    Args:
        calls: plain ones so far. looking, plain: seconds of the last look, and of its plain call.
    """
    if plain > _SHORT:
        return 0
    worth_a_look = _PLAIN_PER_LOOK * looking / max(plain - seconds_of_clock(), _LEAST)
    return max(0, min(calls - 1, _MOST_UNLOOKED, int(worth_a_look)))


@functools.cache
def seconds_of_clock() -> float:
    """How long it takes to read the clock."""
    times = [thread_time() for _ in range(20)]
    return min(later - earlier for earlier, later in zip(times, times[1:]))


class Waiting(PlainCall):
    """This call runs as plain Python because its kernel is not there yet.

    Attributes:
        key: of the structure of the arguments. why: where no code is being built, in words.
    """

    def __init__(self, key: Hashable, why: str = "there have been too few calls like it for compiling to pay") -> None:
        super().__init__("its kernel is not built yet")
        self.key, self.why = key, why

    def add(self, difference: str) -> None:
        """Say in what the arguments differ from those of the last kernel, if there is one."""
        self.why += f": {difference}" if difference else ""


class TooMany(PlainCall):
    """This call runs as plain Python because its arguments have another structure than those of very many kernels.

    Attributes:
        key: of the structure of the arguments.
    """

    def __init__(self, key: Hashable, kernels: int) -> None:
        super().__init__(
            "its arguments have other lengths, texts or the like than those for which it has kernels, which are "
            f"{kernels} by now; limit= says how many there may be"
        )
        self.key = key


@dataclass
class _Account:
    """What has been spent on a structure of arguments, in seconds.

    Attributes:
        traces: how many there have been.
        seconds: what the last one has cost, with all that came after it.
        plain: plain calls since the last trace. plain_calls: how many there have been since.
        each: the mean of all its plain calls. all_calls: how many they are.
        calls: how many there have been, until the step has its first kernel.
        sample: the last sample that it was in.
    """

    traces: int = 0
    seconds: float = 0.0
    plain: float = 0.0
    plain_calls: int = 0
    each: float = 0.0
    all_calls: int = 0
    calls: int = 0
    sample: int = 0

    def is_single(self) -> bool:
        """Whether the structure has come once only."""
        return self.all_calls == 1 and not self.traces


class Earnings:
    """Decides which structures of arguments have earned a trace, by processor seconds: the machine may be busy.

    Attributes:
        budget: seconds that traces of further structures may take in any case, where it is known how long a program
            is going to run.
        all_calls: how many calls there are going to be, in that case.
        share: the part of what all calls would take as plain Python that may have been spent and not been saved, before
            a further structure is traced. part: of what was saved that counts.
        patience: how long plain calls of a structure have to take before it is traced, in traces.
        horizon: if that is less than 1: so many calls are expected to come in any case, and as many as there have been;
            the patience grows up to 1 with these.
        effort: seconds of a plain call on some usual machine, the same in every run (effort.py); None if unknown.
        is_choosing: whether a function is sought that may be compiled by itself (units/).
        begins_at_once: whether the first structure is traced at its first call.
        is_asked: whether somebody waits for the first trace, which therefore comes now, on PyPy as well.
        is_sampling: whether all calls look, to see how many structures there are.
        least: seconds that a plain call of any structure that was traced takes at least; 0.0 if that is not known.
    """

    def __init__(self) -> None:
        self.begins_at_once = self.is_asked = False
        self.budget, self.all_calls = 0.0, 0.0
        self.share, self.part, self.patience, self.horizon = _SHARE_OF_PLAIN, _PART_OF_SAVED, 1.0, 1.0
        self.is_choosing = False
        self.effort: float | None = None
        self._accounts: dict[Hashable, _Account] = {}
        self._traced: list[_Account] = []
        self._calls = 0  # of all accounts
        self._trace_seconds = 0.0  # of the last trace
        self._ratio = 0.0  # what a structure has cost, in plain calls of it
        self._least = math.inf
        self._spent = 0.0
        self._plain_calls, self._plain_seconds = 0, 0.0
        self._singles = 0  # how many structures have come once only
        self.is_sampling = False
        self._sample = 0  # how many samples there have been
        self._waits = self._new_waits = 0  # calls of the sample, and those of a structure that was new in it

    @property
    def has_begun(self) -> bool:
        """Whether there has been a trace."""
        return self._trace_seconds > 0.0

    def note_trace(self, key: Hashable, seconds: float) -> None:
        """Note that a structure has been traced."""
        account = self._account(key)
        self._spent += seconds
        self._singles -= account.is_single()
        if not account.traces:
            self._traced.append(account)
        account.traces, account.seconds, account.plain, account.plain_calls = account.traces + 1, seconds, 0.0, 0
        self._trace_seconds = seconds
        self._compare(account)

    @property
    def least(self) -> float:
        return 0.0 if self._least == math.inf else self._least

    def note_least(self, seconds: float) -> None:
        """Note what a plain call of a structure takes at least, as its trace tells."""
        self._least = min(self._least, seconds)

    def seconds_of(self, key: Hashable) -> float:
        """What the last trace of a structure has cost, with all that came after it."""
        return self._account(key).seconds

    def note_spent(self, key: Hashable, seconds: float) -> None:
        """Note what else has been spent because a structure was traced."""
        account = self._account(key)
        account.seconds += seconds
        self._spent += seconds
        self._compare(account)

    def may_look(self) -> bool:
        """Whether a trace that only looks whether a call can be traced costs little, as far as one knows."""
        return bool(self.effort) and self.may_trace()

    def may_trace(self) -> bool:
        """Whether a first trace may come by now."""
        return self.has_begun or self.is_asked or self._plain_seconds >= _BEFORE_FIRST

    def expect_trace(self, seconds: float) -> None:
        """Let no structure be traced before it has earned so many seconds, if none has been traced yet."""
        self._trace_seconds = self._trace_seconds or seconds

    def note_plain(self, key: Hashable, seconds: float, calls: int = 1) -> None:
        """Note a plain call, or as many of which nothing else is known."""
        account = self._account(key)
        self._singles -= account.is_single()
        account.plain, account.plain_calls = account.plain + calls * seconds, account.plain_calls + calls
        account.all_calls += calls
        account.each += (seconds - account.each) * calls / account.all_calls
        self._singles += account.is_single()
        self._plain_calls, self._plain_seconds = self._plain_calls + calls, self._plain_seconds + calls * seconds
        self._compare(account)

    def _account(self, key: Hashable) -> _Account:
        """That of a structure.  Where each call has another one, those that were never traced do not pile up."""
        if key not in self._accounts and len(self._accounts) >= _MOST_ACCOUNTS:
            self._accounts = {known: account for known, account in self._accounts.items() if account.traces}
        return self._accounts.setdefault(key, _Account())

    def _compare(self, account: _Account) -> None:
        """Note what a structure costs in plain calls."""
        if account.traces and account.each:
            self._ratio = account.seconds / account.each

    def plain_seconds(self) -> float:
        """How long a plain call takes."""
        return self._plain_seconds / max(1, self._plain_calls)

    def measured(self, key: Hashable) -> float:
        """How long a plain call of a structure has been measured to take; 0.0 if there has been none."""
        account = self._accounts.get(key)
        return 0.0 if account is None else account.each

    def are_repaid(self, compiled: int) -> bool:
        """Whether so many compiled calls have saved what all traces have cost."""
        return self._saved(compiled) > self._spent

    def _saved(self, compiled: int) -> float:
        """What so many compiled calls would have taken in plain Python.

        They had the structures that were traced, which may be the short ones, as often as before they were.
        """
        usual = self.plain_seconds()
        seconds = sum((account.each or usual) * (account.all_calls or 1) for account in self._traced)
        return compiled * seconds / max(1, sum(account.all_calls or 1 for account in self._traced))

    def better_code_pays(
        self, calls: int, kernels: int, seconds: float, trace_seconds: float, delay: float = 0.0
    ) -> bool:
        """Whether better code for a kernel is expected to save what it costs.

        Where it is not known how many calls are to come, that is taken for granted, if another processor builds it;
        otherwise as many are expected as there have been.

        Args:
            calls: how many have been compiled ones, by so many kernels.
            seconds: how long a call of the kernel takes. trace_seconds: how long its trace took.
            delay: how much later the program got on because of the code that is there.
        """
        if not self.all_calls:
            return calls * seconds >= _BETTER_THAN_QUICK * delay
        to_come = max(self.all_calls - self._plain_calls - calls, calls) / kernels
        return to_come * seconds >= _BETTER_CODE * trace_seconds

    def note_call(self, key: Hashable) -> None:
        """Note a call of a step that has no kernel."""
        self._account(key).calls += 1
        self._calls += 1

    def are_worth_it(self, keys: Iterable[Hashable], parameters: int = 0) -> bool:
        """Whether so many calls have had these structures that it is worth it to begin with their kernels.

        Args:
            keys: of the structures. parameters: how many plain calls would detach.
        """
        each, detaching = self.plain_seconds(), SECONDS_TO_DETACH * parameters
        fair = min(_FAIR_SHARE, detaching / (each + detaching)) if each > detaching else _FAIR_SHARE
        return sum(self._accounts[key].calls for key in keys) >= fair * self._calls

    def begin_sample(self) -> None:
        """A trace has shown which arguments shape it: look how many structures the next calls have."""
        self.is_sampling, self._waits, self._new_waits, self._sample = True, 0, 0, self._sample + 1

    def are_ever_new(self, key: Hashable) -> bool:
        """Note that a call of this structure waits; returns whether nearly each of the sample has another one."""
        account = self._account(key)
        if self.is_sampling:
            self._waits, self._new_waits = self._waits + 1, self._new_waits + (account.sample != self._sample)
            account.sample = self._sample
            self.is_sampling = self._waits < _SAMPLE
        return not self.is_sampling and self._new_waits > _NEARLY * _SAMPLE

    def require(
        self, key: Hashable, compiled: int, is_building: bool = False, is_ragged: bool = False, is_sure: bool = False
    ) -> None:
        """Return if a structure has earned a trace.

        Args:
            key: of the structure.
            compiled: how many calls have been compiled ones.
            is_building: whether code is being built, which this structure may share once it is there.
            is_ragged: whether its arguments contain sequences of different lengths.
            is_sure: whether a trace of it is known to pay.

        Raises:
            Waiting: it has not.
        """
        if not self.may_trace():
            raise Waiting(key)
        account = self._accounts.get(key, _Account())
        is_early = self.is_choosing or self._plain_calls <= RAGGED_CALLS
        if is_ragged and is_early and not self.has_begun and account.calls < 2:
            raise Waiting(key)
        is_sure = is_sure or self.begins_at_once
        if not (self.has_begun or is_sure or self._may_pay(account)):
            raise Waiting(key)
        seconds = self._expected(account)
        if not account.traces and self._spent + seconds > self._allowed(compiled, is_sure):
            raise Waiting(key)
        gain = self._gain(account, compiled)
        if gain >= _GAIN * seconds and not is_building:
            return
        patience = min(1.0, max(self.patience, (self._plain_calls + compiled) / self.horizon))
        has_waited = account.plain >= patience * seconds * max(1, account.traces) or (is_sure and not account.traces)
        if gain < seconds or not has_waited:
            raise Waiting(key)

    def _allowed(self, compiled: int, is_sure: bool) -> float:
        """What may have been spent with a trace that does not have to be."""
        if not self.has_begun:
            return math.inf
        saved, share, part = self._saved(compiled), self.share, self.part
        if is_sure:
            share, part = max(share, _SHARE_IF_SURE), 1.0
        return max(self.budget, share * (self._plain_seconds + saved)) + part * saved

    def _expected(self, account: _Account) -> float:
        """What it is going to cost to trace a structure."""
        if account.traces or not (self._ratio and account.each):
            return account.seconds or self._trace_seconds
        return self._ratio * account.each

    def _may_pay(self, account: _Account) -> bool:
        """Whether the plain calls of a structure that are to come are expected to take as long as a first trace."""
        if not (_FIRST_SECONDS and account.plain_calls):
            return not _FIRST_SECONDS
        each = account.each if self.effort is None else self.effort
        calls = max(_CALLS_TO_COME, self._plain_calls) * account.plain_calls / self._plain_calls
        return calls * each >= _FIRST_SECONDS + _FIRST_CALLS * each

    def calls_to_first(self, key: Hashable) -> float:
        """How many plain calls, of which this structure has its part, there are to be until it may be traced first."""
        account = self._accounts.get(key, _Account())
        if self.has_begun or not (self.effort and account.plain_calls):
            return math.inf
        calls = (_FIRST_SECONDS / self.effort + _FIRST_CALLS) * self._plain_calls / account.plain_calls
        return max(0, math.ceil(calls) - self._plain_calls)

    def _gain(self, account: _Account, compiled: int) -> float:
        """The seconds of plain calls that a structure which was never traced is expected to save; nan if unknown."""
        before, calls = account.all_calls, self._plain_calls + compiled + 1
        if account.traces or not compiled or calls > self.all_calls:
            return math.nan
        singles = self._singles + (before == 0) - (before == 1)
        to_come = (self.all_calls - calls) * (before + 1) / calls * (1.0 - singles / calls)
        return to_come * (account.each or self.plain_seconds())
