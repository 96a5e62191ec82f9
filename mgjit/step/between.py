"""Plain calls between two looks: nearly the function itself.

To look whether a call is to be compiled - plan its arguments, ask for a kernel, read clocks - takes longer than a short
step.  So most calls that run as plain Python do not look:

1. A call that was plain is followed by others without a look: as many as there have been plain calls before, so that
   calls 1, 2, 4, 8, 16 look; but no more than take fifty times as long as a look, which thus costs at most 2 %, and is
   never far away (`unlooked` in earnings.py).  Calls of more than two milliseconds all look.  How long a short call
   takes is told by those that did not look, one after the other (`Between.seconds`): one that looks takes longer.
2. Those others go to a function that does what cannot be left out, and nothing else (`_SOURCE`).  It counts, and
   returns what a kernel would.  If there are other steps, it marks the thread, so that steps that are called in it are
   a part of it.  While there are other threads, calls take turns, as all others do (`in_turn`).
3. While a step has kernels, only calls whose arguments look like those of the plain call before go there; those of
   another type or length take the general path at once.
4. A step that is given up is the function itself, as far as calls are concerned (`given_up`).
"""

from __future__ import annotations

import contextlib
import functools
import math
import threading
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from textwrap import indent
from time import thread_time
from typing import Any

from ..base.ffi import PYPY
from ..base.tracebacks import Failed, failed, shortened
from ..engine.precision import Precision
from ..engine.progress import NO_THREAD, tracing_threads
from ..runtime.turn import Turn
from ..tracing.call.lengths import WITH_LENGTH
from ..verification.documented import as_returned

#: So many paths of a step are remembered.
_MOST_PATHS = 256

#: Made into code once for each combination; each test that is left out saves a tenth of a microsecond.
_SOURCE = """
def make(
    function, general, turn, threads, active, thread, precision, as_returned, left, known, before, kernels, reason
):
    given, me, unmark, lock, gate = left, -thread, threads.pop, turn.lock, turn.gate
    def call({cls}{named}*args, **kwargs):
        nonlocal left
        if len(active) != 1{own}:
            return in_turn({cls}{given}*args, **kwargs)
        if left <= 0 or (threads and (len(threads) > 1 or NO_THREAD not in threads)){test}:
            return {general}
        left -= 1  # by the only thread: nobody else counts meanwhile
        try:
{begin}
            result = {work}
            {end}
        except BaseException as error:
            {end}
            {fail}
        return result if type(result) is float or result is None else as_returned(result)
    def in_turn({cls}{named}*args, **kwargs):
        nonlocal left
        me = -get_ident()
        if (threads and (me in threads or -me in threads)){test}:
            return {general}
        with lock:
            taken = left > 0
            if taken:
                left -= 1
                closed = gate[0]
                try:
                    gate[0] = 1
                    if kernels is not None:
                        kernels.plain_since = reason
                    {mark}
                    result = {work}
                    {end}
                    gate[0] = closed or turn.has_long_calls
                except BaseException as error:
                    {end}
                    gate[0] = closed or turn.has_long_calls
                    {fail}
        if not taken:
            return {general}
        return result if type(result) is float or result is None else as_returned(result)
    def take():
        nonlocal left
        with lock:  # several threads may be here
            taken = left > 0
            left -= taken
        return taken
    def done():
        return given - left
    def set_left(calls):
        nonlocal left
        left = calls
    return {made}, take, done, set_left
"""


#: How it raises the user's exceptions; see tracebacks.py.
_AS_FUNCTION = {
    "cls": "", "general": "general({all}**kwargs)", "fail": "raise shortened(error)", "made": "call"
}  # fmt: skip
_AS_CLASS = {
    "cls": "cls, ",
    "general": "Failed.__new__(cls, general, {all}**kwargs)",
    "fail": "return failed(cls, error)",
    "made": 'type("Call", (Failed,), {"__new__": call, "__slots__": ()})',
}


def looks_like(args: Any, kwargs: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """A cheap key of arguments, by position and by name: types, lengths, and what bools and texts say."""
    return tuple(map(_look, args)), tuple([(name, _look(content)) for name, content in kwargs.items()])


def _look(argument: Any) -> Any:
    kind = type(argument)
    if kind in WITH_LENGTH:
        return kind, len(argument), len(argument[0]) if len(argument) and type(argument[0]) in WITH_LENGTH else 0
    return argument if kind is str or kind is bool else kind


def _tests(looks: tuple[Hashable, ...]) -> Iterator[str]:
    """Conditions of positional arguments `a0`, `a1` ... that do not look like these."""
    for k, look in enumerate(looks):
        kind = look if isinstance(look, type) else type(look)
        if isinstance(look, tuple):
            yield f"type(a{k}) is not known[{k}][0] or len(a{k}) != known[{k}][1]"
            if look[2]:
                yield f"type(a{k}[0]) not in LENGTHY or len(a{k}[0]) != known[{k}][2]"
        elif kind is look:
            yield f"type(a{k}) is not known[{k}]"
        else:
            yield f"type(a{k}) is not {kind.__name__} or a{k} != known[{k}]"


@functools.lru_cache(maxsize=256)
def _maker(count: int, tests: tuple[str, ...] | None, marks: bool, prepares: bool) -> Callable[..., Any]:
    """What makes the functions of a path.

    Args:
        count: of arguments by position that are passed on one by one, which is quicker; others are passed on as well.
        tests: of these arguments, while there are kernels; None if all are taken.
        marks: whether the thread is marked.
        prepares: whether something comes before a call.
    """
    form = _AS_FUNCTION if PYPY else _AS_CLASS
    names = ", ".join(f"a{k}" for k in range(count))
    is_other = f"kwargs or args or a{count - 1} is NONE" if count else "kwargs or args"
    passed_on = f"*[a for a in ({names},) if a is not NONE], *args, " if count else "*args, "
    usual, other = f"function({names})", f"function({passed_on}**kwargs)"
    work = usual if tests is not None else f"{usual} if not ({is_other}) else {other}" if count else other
    begin = [] if tests is None else ["kernels.plain_since = reason"]
    begin += ["if not threads:", "    before()"] * prepares
    source = _SOURCE.format(
        cls=form["cls"],
        named="".join(f"a{k}=NONE, " for k in range(count)) + "/, " * bool(count or form["cls"]),
        given="".join(f"a{k}, " for k in range(count)),
        test="" if tests is None else " or ".join(("", is_other, *tests)),
        general=form["general"].format(all=passed_on),
        work=work,
        begin=indent("\n".join([*begin, "threads[me] = precision" if marks else "pass"]), 12 * " "),
        mark="threads[me] = precision" if marks else "pass",
        end="unmark(me, None)" if marks else "pass",
        own=" or thread not in active" if marks else "",
        fail=form["fail"],
        made=form["made"],
    )
    namespace: dict[str, Any] = {
        "NO_THREAD": NO_THREAD, "LENGTHY": WITH_LENGTH, "NONE": object(), "get_ident": threading.get_ident,
        "shortened": shortened, "failed": failed, "Failed": Failed,
    }  # fmt: skip
    exec(compile(source, __file__, "exec"), namespace)  # noqa: S102 - see `_SOURCE`
    return namespace["make"]  # type: ignore[no-any-return]


class _NoTurn:
    """Stands for a turn where there is none."""

    lock, gate, has_long_calls = contextlib.nullcontext(), [0], False


_NO_TURN = _NoTurn()
#: Stands for the result of a call that looks.
LOOK = object()


class Path:
    """So many plain calls without a look.

    Args:
        function: makes one. general: the path that looks, for calls that are not for this one.
        in_turn: makes a call where there may be other threads.
        calls: how many. count: of arguments by position that they mostly have.
        turn: of the step, while there are other threads; None if calls take none.
        looks: what the arguments look like, as of `looks_like`; None if all are taken.
        precision: with which the thread is marked; None if it is not.
        kernels, reason: of the step, and what they are told: why calls have been plain.
        before: comes before a call while parameters are not detached. returned: what is returned instead of a result.

    Attributes:
        call: takes the calls. done: how many it has taken.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        general: Callable[..., Any],
        in_turn: Callable[[Any, Any], Any],
        calls: int,
        count: int,
        turn: Turn | None,
        looks: Any,
        precision: Precision | None,
        kernels: Any = None,
        reason: tuple[str, bool] = ("", False),
        before: Callable[[], Any] | None = None,
        returned: Callable[[Any], Any] = as_returned,
    ) -> None:
        # Arguments that are passed by name are looked at by the general path.
        tests = None if looks is None else (*_tests(looks[0]), *["True"] * bool(looks[1]))
        make = _maker(count if looks is None else len(looks[0]), tests, precision is not None, before is not None)
        active = threading._active  # type: ignore[attr-defined]  # `active_count` takes as long as a short step
        self._in_turn, self._calls = in_turn, calls
        self.call, self._take, self.done, self._set_left = make(
            function, general, turn or _NO_TURN, tracing_threads, active, threading.get_ident(), precision, returned,
            calls, looks and looks[0], before, kernels, reason,
        )  # fmt: skip

    def slowly(self, args: Any, kwargs: Any) -> Any:
        """Make a call wherever it comes from; `LOOK` if it is time to look."""
        return self._in_turn(args, kwargs) if self._take() else LOOK

    def renew(self) -> None:
        """Let it take as many calls again."""
        self._set_left(self._calls)

    def close(self) -> None:
        """Let it take no more calls, such as those that wait for their turn."""
        self._set_left(0)


@dataclass
class _Open:
    """A path that is in use, which of the counts in `Stats` its calls belong to, and what is told how many they are.

    Attributes:
        since: when this thread opened it, by `thread_time`.
    """

    path: Path
    name: str
    note: Callable[[int], Any]
    thread: int = field(default_factory=threading.get_ident)
    since: float = field(default_factory=thread_time)

    def seconds(self) -> float:
        """What a call has taken at most, with all that came between calls; infinite if nothing is known."""
        done = self.path.done()
        return (thread_time() - self.since) / done if done and self.thread == threading.get_ident() else math.inf


class Between:
    """The paths of a step.

    Attributes:
        seconds: what a plain call takes at most, as the last path has shown.
    """

    def __init__(self) -> None:
        self.seconds = math.inf
        self._open: dict[Hashable, _Open] = {}
        self._calls: dict[Hashable, int] = {}

    def find(self, args: Any, kwargs: Any) -> tuple[Hashable, Path] | None:
        """The path for such arguments."""
        for looks in (None, looks_like(args, kwargs)) if self._open else ():
            found = self._open.get(looks)
            if found is not None:
                return looks, found.path
        return None

    def note(self, looks: Hashable) -> int:
        """Note a plain call that has looked; returns how many plain calls with such arguments there have been."""
        if len(self._calls) >= _MOST_PATHS and looks not in self._calls:
            self.forget()
            self._calls.clear()
        self._calls[looks] = calls = self._calls.get(looks, 0) + 1
        return calls

    def open(self, looks: Hashable, path: Path, name: str, note: Callable[[int], Any]) -> None:
        """Let calls take a path until it has come to its end; `Stats` counts them under this name."""
        self.close(looks)
        self._open[looks] = _Open(path, name, note)

    def close(self, looks: Hashable) -> None:
        """The next call with such arguments looks."""
        found = self._open.pop(looks, None)
        if found is not None:
            done, self.seconds = found.path.done(), found.seconds()
            self._calls[looks] = self._calls.get(looks, 0) + done
            found.path.close()
            found.note(done)

    def forget(self) -> None:
        """The next calls look."""
        for looks in list(self._open):
            self.close(looks)

    def under_way(self, name: str) -> int:
        """How many calls have been made on open paths that count under this name."""
        return sum(found.path.done() for found in self._open.values() if found.name == name)
