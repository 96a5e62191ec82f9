"""The kernels of one structure of arguments that differ in what the step was told about numbers: its paths.

1. A kernel whose assumptions do not hold for a call undoes it, and says which one was the first (`missed`).  All that
   was asked before has the same answer, so the path of the call begins in the same way (`Exit`), and goes on in another
   one.  The kernels of such paths are tried, the one that has helped most often first.
2. If there is none, the call is plain Python.  Where the plain calls that have left at the same place have taken as
   long as a trace, as for any structure (first_calls/earnings.py), the next one is traced.
   A call in which a number is infinite or nan, as where plain Python raises an error, is made by plain Python.
3. There are at most `_MOST` paths for a structure.  Where those that have been traced hardly come again, as in a step
   that asks about each of many numbers, the step is plain Python for good.  So it is where paths are traced again and
   again, because another one puts new lists where they had found others; and where numbers are not finite in more than
   one call of `_CALLS_A_FAILURE`.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from ..engine.leaks import PlainCall
from ..memory.buffers import Moved
from ..runtime.detached import release
from ..runtime.kernel import Kernel
from ..tracing.call.lengths import lengths_of
from ..tracing.tracer.knowledge import Again
from .first_calls.earnings import Earnings, TooMany, Waiting

if TYPE_CHECKING:
    from ..compiler.build.options import StepOptions
    from ..runtime.stats import Stats
    from .awaited import Awaited
    from .factory import Maker
    from .first_calls.plain import PlainCalls
    from .members import Members

#: So many paths there are of one structure; and after so many traces they have to come again: at least such a part of
#: all calls has to be compiled.
_MOST, _FEW, _SHARE = 32, 8, 1 / 8
#: The same of paths that part at one place, such as where the step sorts numbers.
_MOST_WAYS = 3
#: So many times paths may be traced again; from then on once in so many compiled calls.
_MOST_AGAIN, _CALLS_AGAIN = 4, 64
#: So many calls may fail because a number is not finite; and from then on one in so many compiled calls.
_MOST_FAILURES, _CALLS_A_FAILURE = 8, 32
#: So many different answers are counted where calls leave a path.
_MOST_COUNTED = 16
#: So many calls that another kernel has left are the first ones of a kernel, which take longer.
FIRST_HELPS = 8
#: So many kernels are tried in a call.
_MOST_TRIED = 6


class Exit(NamedTuple):
    """Where calls leave the paths that there are.

    Attributes:
        structure: of the arguments.
        answers: what the step is told up to there.
        following: what it is told next; a tuple with what it is not told, where that is all that is known; None where
            an infinity or nan decides.
    """

    structure: Hashable
    answers: tuple[Any, ...]
    following: Any


class PathKey(NamedTuple):
    """The key of a kernel for a path; of one whose code is being built, without answers."""

    structure: Hashable
    answers: tuple[Any, ...] | None


class Paths:
    """The part of `Kernels` that knows paths."""

    if TYPE_CHECKING:
        plain: PlainCalls
        earnings: Earnings
        stats: Stats
        maker: Maker
        last: Kernel | None
        _kernels: dict[Hashable, Kernel]
        _awaited: Awaited
        _members: Members
        _options: StepOptions

        _fits: Callable[..., bool]
        _traced: Callable[..., Kernel]
        _make: Callable[..., Kernel]
        _collect: Callable[..., Any]
        _look_up: Callable[..., Kernel]
        _add: Callable[[Hashable, Kernel], None]
        forget: Callable[[Kernel], None]

    def _begin_paths(self) -> None:
        """Begin without any."""
        self._misses: dict[Hashable, int] = {}  # calls that a path was not for, by structure
        self._again: dict[Hashable, int] = {}  # paths that have been traced again, by structure
        self._failures: dict[Hashable, int] = {}  # calls in which a number was not finite, by structure
        self._met_paths: set[PathKey] = set()
        self._beside: dict[tuple[Kernel, int, float], list[Kernel]] = {}  # paths, by where calls leave another one
        self._made: Kernel | None = None  # for the path of the call under way

    def other_path(self, tried: Sequence[Kernel], arguments: Sequence[Any]) -> Kernel:
        """The kernel for a call that those tried before have undone, with its arguments in the frame.

        Raises:
            PlainCall: the call is to run as plain Python.
        """
        missed = tried[-1]
        if len(tried) == 1:
            self._made = None
        left = _exit_of(missed)
        _note_left(missed)
        missed.missed = 0
        self._note_miss(left.structure)
        if left.following is None:
            self._note_failure(left, missed.told[len(left.answers)].line)
        kernel = self._known_path(left, tried, arguments) or self._next_path(left, missed, tried, arguments)
        kernel.helped += 1
        self.last = kernel
        self._members.put(arguments, lengths_of(arguments), kernel)
        return kernel

    def beside(self, missed: Kernel) -> Kernel | None:
        """The likeliest kernel for a call that the quick path of another one has undone, before anything is looked at.

        Kernels that have undone it, too, have not forgotten that yet.
        """
        if missed.missed < 0 or missed.instead != missed.instead:
            return None
        place = missed, missed.missed, missed.instead
        found = self._beside.get(place)
        if found is None:
            left = _exit_of(missed)
            found = [k for k in self.paths_of(left.structure) if k is not missed and _begins_so(k, left)]
            self._beside[place] = found
        quick = (kernel for kernel in found if not kernel.missed and kernel.fast_calls)
        kernel = max(quick, key=lambda kernel: kernel.helped, default=None)
        if kernel is not None:
            kernel.helped += 1
            self.last = kernel
            _note_left(missed)
            self._note_miss(missed.plan.key)
        return kernel

    def _close(self, structure: Hashable, reason: str) -> NoReturn:
        kernels = self.paths_of(structure)
        for kernel in kernels:
            self.forget(kernel)
        if not self._kernels:  # whose memory would slow down plain calls
            for kernel in kernels:
                release(kernel.moved, self.maker.token)
        self.plain.close(structure, reason)
        raise PlainCall(reason)

    def describe_paths(self) -> list[str]:
        """For people: how many paths have kernels, and what the step was told where it asked for numbers."""
        kernels = [kernel for kernel in self._kernels.values() if kernel.told]
        if not kernels:
            return []
        left, helped = sum(self._misses.values()), sum(kernel.helped for kernel in kernels)
        lines = [
            f"asks for numbers on its way: {len(kernels)} paths have kernels; {left} times a call was left by one, "
            f"{helped} went to another one"
        ]
        for structure in dict.fromkeys(kernel.plan.key for kernel in kernels):
            lines += [f"  {line}" for line in tree_of(self.paths_of(structure))]
        return lines

    def paths_of(self, structure: Hashable) -> list[Kernel]:
        """The kernels for a structure that are for one path each."""
        return [kernel for kernel in self._kernels.values() if kernel.told and kernel.plan.key == structure]

    def _known_path(self, left: Exit, tried: Sequence[Kernel], arguments: Sequence[Any]) -> Kernel | None:
        if left.following is None or len(tried) >= _MOST_TRIED:
            return None
        for kernel in sorted(self.paths_of(left.structure), key=lambda kernel: -kernel.helped):
            if kernel in tried or kernel.missed or not _begins_so(kernel, left):
                continue
            if self._fits(kernel, arguments):
                return kernel
            self.forget(kernel)  # what it knows is not so any more
        return None

    def _next_path(self, left: Exit, missed: Kernel, tried: Sequence[Kernel], arguments: Sequence[Any]) -> Kernel:
        """The kernel of a path that has none.

        Raises:
            PlainCall: the call is to run as plain Python.
        """
        if left.following is None or self._made in tried or len(tried) >= _MOST_TRIED:
            raise _waiting(left)
        key = PathKey(left.structure, None)
        if key in self._awaited:
            self._collect(key, missed.plan, arguments, self._options.is_patient)
            kernel = self._known_path(left, tried, arguments)
            if kernel is None:
                raise _waiting(left)
            return kernel
        self.plain.require_trace(left)
        self._require_use(left, missed.told[len(left.answers)].line)
        if not self._options.is_patient:
            try:
                self.earnings.require(left, self.stats.calls)
            except Waiting:
                raise _waiting(left) from None
        reason = f"a number takes another path at {missed.told[len(left.answers)].line}"
        try:
            kernel = self._traced(
                left, lambda: self._make(missed.plan, arguments, reason, self._options.is_patient, key), reason
            )
        except Again:  # with which there is another structure
            kernel = self._look_up(arguments, lengths_of(arguments), reason, self._options.is_patient)
            if kernel in tried or not self._fits(kernel, arguments):
                raise _waiting(left) from None
            return kernel
        except Moved:
            raise _waiting(left) from None
        self._add_path(kernel)
        if not self._fits(kernel, arguments):
            raise _waiting(left)
        self._made = kernel
        return kernel

    def _require_use(self, left: Exit, line: str) -> None:
        """Return if another path may be of use.

        Args:
            line: where the call has left one.

        Raises:
            PlainCall: it may not.
        """
        paths, misses = self.paths_of(left.structure), self._misses[left.structure]
        told, length = list(map(answers_of, paths)), len(left.answers)
        ways = {answers[length] for answers in told if len(answers) > length and answers[:length] == left.answers}
        used = self.stats.calls - (self.stats.traces if self._options.is_patient else 0)  # by kernels that were there
        if (len(paths) >= _FEW or len(ways) >= _MOST_WAYS) and used < _SHARE * misses:
            if misses < _FEW:  # they may come again
                raise _waiting(left)
            self._close(
                left.structure,
                f"its numbers take another path in nearly every call ({paths[-1].told[-1].line}, and other lines), so "
                "that kernels, each of which is for one path, are of no use",
            )
        again = self._again.get(left.structure, 0)
        if again >= _MOST_AGAIN and self.stats.calls < _CALLS_AGAIN * again:
            self._close(
                left.structure,
                f"its numbers take several paths ({line}), each of which would be traced again when "
                "another one has put new lists or objects where it had found others. Assign the elements of lists",
            )
        if len(paths) >= _MOST:
            raise TooMany(left, len(paths))

    def _add_path(self, kernel: Kernel) -> None:
        """Put the kernel of a path among the others, and note whether it had been traced before."""
        key = path_key(kernel)
        self._again[key.structure] = self._again.get(key.structure, 0) + (key in self._met_paths)
        self._met_paths.add(key)
        self._add(key, kernel)

    def _note_failure(self, left: Exit, line: str) -> None:
        """Note a call in which a number, that was asked for at a line, is infinite or nan.

        Raises:
            PlainCall: there have been too many.
        """
        found = self._failures[left.structure] = self._failures.get(left.structure, 0) + 1
        if found > _MOST_FAILURES and self.stats.calls < _CALLS_A_FAILURE * found:
            reason = f"{line}: plain Python raises an error in many of its calls, or a number is infinite or nan there"
            self._close(left.structure, f"{reason}, so that compiled calls are of no use")

    def _note_miss(self, structure: Hashable) -> None:
        if structure not in self._misses:  # to ask what MGJIT_LOG says takes longer than a short call
            told = "a call has left the path of its kernel, for that of another one or for plain Python"
            self.stats.decide(f"miss: {told}")
        self._misses[structure] = self._misses.get(structure, 0) + 1


def _waiting(left: Exit) -> Waiting:
    return Waiting(left, "its numbers take a way through the code that too few calls have taken for compiling to pay")


def answers_of(kernel: Kernel) -> tuple[Any, ...]:
    """What the step was told."""
    return tuple(answer.content for answer in kernel.told)


def _begins_so(kernel: Kernel, left: Exit) -> bool:
    """Whether the path of a kernel may go on where a call has left another one."""
    answers, length = answers_of(kernel), len(left.answers)
    if len(answers) <= length or answers[:length] != left.answers:
        return False
    following = left.following
    return answers[length] not in following if type(following) is tuple else answers[length] == following


def path_key(kernel: Kernel) -> PathKey:
    """The key of a kernel beside others of its structure."""
    return PathKey(kernel.plan.key, answers_of(kernel))


def _exit_of(kernel: Kernel) -> Exit:
    """Where a call has left the path of a kernel."""
    answers, place, instead = answers_of(kernel), abs(kernel.missed) - 1, kernel.instead
    following = int(instead) if math.isfinite(instead) else (answers[place],)
    return Exit(kernel.plan.key, answers[:place], following if kernel.missed > 0 else None)


def _note_left(kernel: Kernel) -> None:
    """Count a call that has left the path of a kernel, by the place and what was so instead."""
    left = kernel.missed, kernel.instead
    if left in kernel.left or len(kernel.left) < _MOST_COUNTED:
        kernel.left[left] = kernel.left.get(left, 0) + 1


def tree_of(kernels: Sequence[Kernel], start: int = 0, parted: int = 0) -> list[str]:
    """For people: what the step was told from some answer on, which is the same before it, as a tree of paths.

    A line has the answers up to the next place where paths part, by the lines that asked.

    Args:
        kernels: of paths that are told the same up to `start`.
        parted: the place behind the one where they part from others.
    """
    first, end = kernels[0].told, start
    while all(end < len(kernel.told) and kernel.told[end] == first[end] for kernel in kernels):
        end += 1
    by_line = [(line, list(group)) for line, group in groupby(first[start:end], lambda answer: answer.line)]
    texts = [f"{os.path.basename(line)}: {', '.join(_in_words(a.content) for a in told)}" for line, told in by_line]
    ways = dict.fromkeys(kernel.told[end].content for kernel in kernels if end < len(kernel.told))
    if not ways:
        texts.append(f"kernel, {_calls(sum(kernel.helped for kernel in kernels))} from others")
    lines = ["; ".join(texts)] if texts else []
    for way in ways:
        same = [kernel for kernel in kernels if end < len(kernel.told) and kernel.told[end].content == way]
        lines += [f"  {line}" for line in tree_of(same, end, end + 1)]
    # Where calls have left all these paths for one that has no kernel.
    for (missed, instead), count in sorted(_sums(kernels).items(), key=lambda one: abs(one[0][0])):
        place = abs(missed) - 1
        known = {kernel.told[place].content for kernel in kernels if place < len(kernel.told)}
        if parted <= place < end + bool(ways) and (missed < 0 or instead not in known):
            why = "a number is infinite or nan" if missed < 0 else _in_words(instead)
            line = os.path.basename(first[place].line)
            lines.append(f"  question {place + 1}, {line}: {why}; no kernel, {_calls(count)}")
    return lines


def _sums(kernels: Sequence[Kernel]) -> Counter[tuple[int, float]]:
    """How many calls have left all these paths, by the place and what was so instead."""
    found = Counter[tuple[int, float]]()
    for kernel in kernels:
        for (missed, instead), count in kernel.left.items():
            found[missed, instead if math.isfinite(instead) else math.inf] += count
    return found


def _in_words(answer: Any) -> str:
    """An answer, or what was so instead."""
    if isinstance(answer, tuple):
        return "order " + " ".join(map(str, answer))
    return str(int(answer)) if math.isfinite(answer) else "something else"


def _calls(count: int) -> str:
    return f"{count} call{'' if count == 1 else 's'}"
