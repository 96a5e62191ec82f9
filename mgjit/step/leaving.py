"""What follows a plain call of a step: others without a look, or the end of looking.

1. After a call that has looked and was plain, others go to a path that does not (between.py), while it is known that a
   look would find the same: until a kernel may have been built, or a structure is to be traced again.
2. What these calls have taken counts for the structure, as if each had looked.
3. A step without a kernel whose arguments are traced no more is given up, after `_CALLS_TO_GIVE_UP` plain calls: its
   kernels' memory becomes ordinary attributes again, and its `__call__` is the function itself.  A step that has
   another step called in it, and differentiates what that returns, keeps the mark that makes it a part; one whose calls
   take long keeps the policy of garbage.py, which makes them quicker; and one that gets objects, such as models, looks
   at their classes (by_class.py).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from time import thread_time
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from ..base.garbage import with_few_collections
from ..base.lookup import classes_of
from ..engine.leaks import PlainCall
from ..engine.precision import FLOAT64
from ..kernels.first_calls.by_class import Classes, for_classes
from ..kernels.first_calls.earnings import SECONDS_TO_DETACH, TooMany, Waiting, unlooked
from ..kernels.first_calls.plain import as_part, differentiates
from ..runtime.detached import Detached, may_detach, release
from ..tensor.memory import Memory
from ..tensor.modes import computing_with
from ..verification.documented import as_returned
from .between import LOOK, Between, Path, looks_like
from .giving_up import GivingUp
from .looking import P, R

if TYPE_CHECKING:
    from ..runtime.kernel import Kernel
    from ..runtime.turn import Turn
    from .units import Units

#: A step is given up after so many plain calls, which are not counted from then on; small programs are counted exactly.
_CALLS_TO_GIVE_UP = 512
#: So many calls do not read whether mgjit is switched off.
_CALLS_DISABLED = 255
#: A plain call that takes so many seconds is worth the policy of garbage.py.
_WORTH_A_POLICY = 100e-6
#: All steps; and those whose calls do not mark their thread, because there are no others that could be called in them.
_steps: WeakSet[Leaving[Any, Any]] = WeakSet()
_alone: WeakSet[Leaving[Any, Any]] = WeakSet()


def _detaching(detached: Detached, compiled: Sequence[int], seconds: float) -> Callable[[], None]:
    """Makes parameters ordinary objects before a plain call, unless compiled calls and short plain ones take turns.

    Args:
        compiled: how many compiled calls there have been. seconds: what a plain call takes.
    """
    takes_long, last = seconds > SECONDS_TO_DETACH * len(detached), compiled[0]

    def before() -> None:
        nonlocal last
        if (takes_long or compiled[0] == last) and may_detach():
            detached.until_attached()
        last = compiled[0]

    return before


def _by_position(args: Any, kwargs: Any) -> int:
    """How many arguments are passed by position; 0 if others are passed by name."""
    return 0 if kwargs else len(args)


class Leaving(GivingUp[P, R]):
    """A step, as far as it leaves out what its plain calls do not need."""

    if TYPE_CHECKING:
        _function: Callable[..., Any]
        _turn: Turn
        _units: Units
        _outer: Callable[..., Any]
        _choose_call: Callable[..., Callable[..., Any]]
        _chosen: Kernel | None
        _is_leaving: bool
        _plainly: Callable[[Any, Any], Any]
    else:
        __slots__ = ()

    #: Whether there have been steps that begin later.
    are_unbegun = False

    def _begin_to_look(self) -> None:
        """Let all calls look, at first."""
        self._between = Between()
        self._begin_to_weigh()
        self.stats.look_between(self._between.under_way)
        self._plain_classes: set[Classes] = set()
        self._disabled: tuple[bool, Path] | None = None  # the path of calls that do not read MGJIT_DISABLE
        self._plain_seconds = 0.0  # of the last plain call that has looked
        self._returns_values = False

    def _note_step(self) -> None:
        """Note that there is this step: others that do not mark their threads do so from now on."""
        _steps.add(self)
        self._let_others_mark()

    def _let_others_mark(self) -> None:
        for step in list(_alone):
            if step is not self:
                _alone.discard(step)
                step._between.forget()
                step._forget_call()

    def _without_look(self, args: Any, kwargs: Any) -> Any:
        """What a call returns that need not look; `LOOK` if it has to."""
        found = self._between.find(args, kwargs)
        if found is None:
            return LOOK
        looks, path = found
        result = path.slowly(args, kwargs)
        if result is LOOK:
            self._between.close(looks)
        else:
            setattr(self, "__call__", path.call)  # noqa: B010 - as below
        return result

    def _again(self, marks: bool, reason: tuple[str, bool], args: Any, kwargs: Any) -> Any:
        """A plain call in a turn, while there may be other threads."""
        self._kernels.plain_since = reason
        plain = functools.partial(self._plainly, args, kwargs)
        work = functools.partial(as_part, self._options.precision, plain) if marks else lambda: as_returned(plain())
        return self._turn.take(with_few_collections, work)

    def _call_disabled(self, args: Any, kwargs: Any) -> Any:
        """A plain call while MGJIT_DISABLE is set; one call of 256 reads that variable anew."""
        precision = self._options.precision

        def plain(args: Any, kwargs: Any) -> Any:
            return as_part(precision, lambda: self._plainly(args, kwargs), of_values=False)

        result = plain(args, kwargs)
        calls, marks = min(self._between.note("disabled") - 1, _CALLS_DISABLED), self._marks(may_be_compiled=True)
        if calls == _CALLS_DISABLED and self._disabled is not None and self._disabled[0] == marks:
            self._disabled[1].renew()
        elif calls:
            returned = functools.partial(as_returned, of_values=False)
            path = Path(
                self._bare(), self._outer, plain, calls, _by_position(args, kwargs), None, None,
                precision if marks else None, returned=returned,
            )  # fmt: skip
            self._disabled = (marks, path) if calls == _CALLS_DISABLED else None
        else:
            return result
        self._open(self._disabled[1] if self._disabled is not None else path, None, marks, "", lambda done: None)
        return result

    def _open(self, path: Path, looks: Any, marks: bool, name: str, note: Callable[[int], Any]) -> None:
        """Let calls take a path; see `Between.open`."""
        if not marks:
            _alone.add(self)
        self._between.open(looks, path, name, note)
        setattr(self, "__call__", path.call)  # noqa: B010 - a method, as far as type checkers know

    def _timed(self, args: Any, kwargs: Any) -> Any:
        """What the function returns; notes how long it takes."""
        started = thread_time()
        result = self._plainly(args, kwargs)
        self._plain_seconds = thread_time() - started
        self._returns_values = self._returns_values or as_returned(result) is not result
        return result

    def _leave_out_looks(self, reason: PlainCall, args: Any, kwargs: Any, started: float) -> None:
        """After a plain call, let others leave out the look.

        Args:
            reason: why it was plain. started: when the look was begun, by `thread_time`.
        """
        kernels, plain = self._kernels, self._kernels.plain
        kernels.note_calls(self._plain_seconds)
        if self._units.unit is not None or kernels.earnings.is_sampling:
            return
        is_waiting, is_meanwhile = isinstance(reason, Waiting), isinstance(reason, (Waiting, TooMany))
        if not is_meanwhile and self.stats.plain_calls >= _CALLS_TO_GIVE_UP and kernels.are_in_vain():
            self._give_up_kernels(str(reason))
        left = (
            _CALLS_TO_GIVE_UP - self.stats.plain_calls if kernels.are_hopeless() and not is_meanwhile else sys.maxsize
        )
        if left <= 0:
            self._give_up(reason, args, kwargs)
            return
        looks = looks_like(args, kwargs) if kernels.all() else None
        structure = None if is_meanwhile else plain.current
        looking = thread_time() - started - self._plain_seconds
        calls = unlooked(self._between.note(looks), looking, min(self._plain_seconds, self._between.seconds))
        if not is_meanwhile:
            calls = min(calls, left - 1, plain.calls_without_trace(structure))
        elif isinstance(reason, Waiting):
            to_first = kernels.earnings.calls_to_first(reason.key)
            calls = int(min(calls, to_first)) if to_first > 0 else calls  # where it is due, and waits for other reasons
        if calls <= 0:
            return
        seconds, key = self._plain_seconds, getattr(reason, "key", None)

        name = "waiting_calls" if is_waiting else "plain_calls"

        def note(done: int) -> None:
            setattr(self.stats, name, getattr(self.stats, name) + done)
            if structure is not None:
                structure.calls += done
            if is_meanwhile:
                kernels.note_plain(key, seconds, done)

        detached = None if looks is None else kernels.detached(True, self._plain_seconds * calls)
        before = None if detached is None else _detaching(detached, self.stats.counter, seconds)

        reason_of_last = self.stats.noted.reason, self.stats.noted.is_waiting
        marks = self._marks(is_meanwhile)
        path = Path(
            self._bare(), self._outer, functools.partial(self._again, marks, reason_of_last), calls,
            _by_position(args, kwargs), self._turn, looks, self._options.precision if marks else None, kernels,
            reason_of_last, before,
        )  # fmt: skip
        self._open(path, looks, marks, name, note)

    def _marks(self, may_be_compiled: bool) -> bool:
        """Whether plain calls mark their thread, so that steps which are called in them are a part of them."""
        own = getattr(self, "_origin", self)
        others = Leaving.are_unbegun or any(step is not self and step is not own for step in list(_steps))
        return others and (may_be_compiled or differentiates(self._function))

    def _bare(self, for_good: bool = False) -> Callable[..., Any]:
        """The function, with what makes it quicker where it takes long, and refuses tensors as a kernel does.

        Args:
            for_good: whether there will be no kernel.
        """
        function, precision = self._function, self._options.precision
        if precision is not FLOAT64 or (Memory.exists and not for_good):
            inner = function
            function = lambda *args, **kwargs: computing_with(precision, lambda: inner(*args, **kwargs))  # noqa: E731
        if self._plain_seconds < _WORTH_A_POLICY:
            return function
        return lambda *args, **kwargs: with_few_collections(lambda: function(*args, **kwargs))

    def _give_up(self, reason: PlainCall, args: Any, kwargs: Any) -> None:
        """Let calls run the undecorated function; arguments of classes that were not seen yet are tried once more."""
        self.stats.decide(f"given up: {reason}")
        self._kernels.give_up()
        release(reason.parameters, self._kernels.maker.token)
        bare, precision = self._bare(for_good=True), self._options.precision
        call = bare
        if self._marks(may_be_compiled=False):
            again = functools.partial(self._again, True, (str(reason), False))
            count = _by_position(args, kwargs)
            call = Path(bare, self._outer, again, sys.maxsize, count, self._turn, None, precision).call
        elif self._returns_values:
            call = lambda *args, **kwargs: as_returned(bare(*args, **kwargs))  # noqa: E731
        if differentiates(self._function):
            _alone.add(self)
        self._between.forget()
        if not self._kernels.plain.is_given_up:
            self._plain_classes.add(classes_of(args))
            call = for_classes(self._plain_classes, call, self._outer)
        setattr(self, "__call__", call)  # noqa: B010 - as above
