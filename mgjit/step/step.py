"""The compiled step, and what happens when it is called.

1. Once a kernel has been used a few times in a row, calls go to a function that was generated for it
   (runtime/fastcall.py).  What it cannot handle it passes on to `_call`.
2. The general path finds the kernel for the arguments, or makes one (kernels.py).
3. It runs the kernel in a transaction (runtime/kernel.py).  The foreign call itself cannot fail.  If an exception is
   raised before it, wherever that is, no parameter, gradient or state has changed; if it is raised after it, everything
   has.  `stats.calls` says which.
"""

from __future__ import annotations

import copy
import functools
import inspect
import sys
import threading
import warnings
from collections.abc import Hashable, Sequence
from time import thread_time
from types import CodeType
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from ..base import settings
from ..base.garbage import with_few_collections
from ..base.tracebacks import unseen, with_short_tracebacks
from ..compiler.build.options import StepOptions
from ..engine.leaks import PlainCall
from ..engine.progress import is_in_plain_call, is_tracing, tracing_threads
from ..errors import ArgumentError, PhaseError, RetraceWarning, UnsupportedError, user_location, user_stacklevel
from ..kernels.building.background import go_on
from ..kernels.factory import Maker
from ..kernels.first_calls.earnings import TooMany, Waiting
from ..kernels.first_calls.effort import LONG, counted
from ..kernels.first_calls.plain import as_part, differentiates
from ..kernels.first_calls.refusals import Refused, refusal
from ..kernels.kernels import Kernels
from ..kernels.paths import Exit
from ..kernels.registry import KERNELS
from ..memory.buffers import Moved
from ..runtime.detached import Detached, are_detached, attach_all, may_detach
from ..runtime.fastcall import fast_call, is_short, is_worth_it
from ..runtime.kernel import Kernel
from ..runtime.stats import Stats
from ..runtime.turn import Turn
from ..runtime.undo import Missed, fails
from ..runtime.vectorcall import add_sibling
from ..tensor.modes import computing_with, use_floats
from ..tracing.call.lengths import hold_objects
from ..tracing.call.plan import bind
from ..tracing.source.debugging import is_debugged
from ..tracing.tracer.tracer import require_traced_precision
from ..verification.documented import as_returned
from ..verification.trial import compare, warn_of_mismatch
from .between import LOOK
from .later import call_of, unbegun
from .leaving import Leaving, _alone
from .methods import Attributes, make_room, methods_in
from .units import Units

try:
    from typing import ParamSpec
except ImportError:  # before Python 3.10: as typing_extensions would, without needing it at run time
    from .._typing import ParamSpec  # type: ignore[assignment]

P = ParamSpec("P")
R = TypeVar("R")


class CompiledStep(Leaving[P, R]):
    """A compiled step; call it like the function that it was made from."""

    __name__: str
    __qualname__: str

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    else:
        # Python looks `__call__` up in the class. A slot lets each step have its own, which changes with its kernels.
        __slots__ = ("__call__", "__dict__", "__weakref__")

    def __init__(self, function: Callable[P, R], options: StepOptions) -> None:
        functools.update_wrapper(self, function)
        named = _named(function)
        self.__module__, self.__name__, self.__qualname__ = named.__module__, named.__name__, named.__qualname__
        self._name_attribute(self.__name__)
        self._of_classes: dict[Any, Any] = {}
        self._function = function
        self._options = options
        self._signature = inspect.signature(function)
        parameters = list(self._signature.parameters.values())
        unknown = options.static - {p.name for p in parameters}
        if unknown:
            raise ArgumentError(
                f"{user_location()}: static={sorted(unknown)} names no parameter of {self.__name__}{self._signature}."
            )
        plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self._arity = len(parameters) if all(p.kind in plain for p in parameters) else -1
        self._turn = Turn()
        self._clear()

    @classmethod
    def made_of(cls, function: Callable[P, R], options: StepOptions) -> CompiledStep[P, R]:
        """The step of a function, or method, that can be compiled."""
        life = unbegun(function, options) if cls in (CompiledStep, LaterStep) else None
        if life is None:
            return (CompiledStep if issubclass(cls, LaterStep) else cls)(function, options)
        step: Any = object.__new__(LaterStep)
        named = getattr(function, "__func__", function)
        step._function, step._options, step._life, step.__doc__ = function, options, life, named.__doc__
        step.__module__, step.__name__, step.__qualname__ = named.__module__, named.__name__, named.__qualname__
        step._name_attribute(named.__name__)
        setattr(step, "__call__", call_of(step, function, life))  # noqa: B010 - as below
        if not Leaving.are_unbegun or _alone:
            Leaving.are_unbegun = True
            step._let_others_mark()
        return step  # type: ignore[no-any-return]

    @property
    def __code__(self) -> CodeType:
        """The code of the function, at which a debugger stops: `break train_step`."""
        return inspect.unwrap(getattr(self._function, "__func__", self._function)).__code__  # type: ignore[no-any-return]

    def clear(self) -> None:
        """Forget all kernels and counts; parameters keep their values."""
        self._turn.run(self._clear)

    def _clear(self) -> None:
        earlier: Kernels | None = self.__dict__.get("_kernels")
        if earlier is not None:
            earlier.give_up()
        # In an order that is consistent wherever an exception interrupts it.
        self._outer = unseen(self._call)
        setattr(self, "__call__", self._outer)  # noqa: B010 - a method, as far as type checkers know
        self._phase = ""
        self._pending: Kernel | None = None
        self._calls_before = 0
        self._siblings: list[Any] = []  # the quick calls that were chosen, until one of them may be wrong
        self._chosen: Kernel | None = None
        self._kernels = self._new_kernels()
        self._units = Units(self._function, self._options)
        self._begin_to_look()
        self._note_step()

    def _new_kernels(self) -> Kernels:
        maker = Maker(self._function, self._signature, self._options, self.__qualname__, Stats())
        kernels = Kernels(maker, self.__name__)
        KERNELS.add(kernels)
        return kernels

    @property
    def stats(self) -> Stats:
        """What the step has done so far."""
        return self._kernels.stats

    # ---- calling --------------------------------------------------------------------------------

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        """The general path of a call."""
        # The environment is read until there is a kernel, not at every call, whose time that would double.
        if is_tracing():
            require_traced_precision(self.__name__, self._options.precision)
            return self._function(*args, **kwargs)
        if is_in_plain_call():
            return self._function(*args, **kwargs)
        result = self._without_look(args, kwargs)
        if result is not LOOK:
            return result
        if self._kernels.last is None and settings.disabled():
            self.stats.note_plain("MGJIT_DISABLE says so")
            return self._call_disabled(args, kwargs)
        if is_debugged():
            self.stats.note_plain("a debugger is at work")
            return self._call_debugged(args, kwargs)
        member = None if kwargs else self._kernels.member(args)
        if member is not None or (are_detached() and hold_objects((*args, *kwargs.values()))):
            attach_all()
        is_other = member is not self._chosen and not are_detached()
        if member is not None and member.fast_calls and is_other and not member.told:
            # The fast path calls `_call` again if the arguments are not quite what it was made for.
            return self._change_kernel(member, args)
        return self._turn.take(self._perform_or_call, args, kwargs)

    def _call_debugged(self, args: Any, kwargs: Any) -> Any:
        """A call in plain Python that a debugger follows, with few frames of this package on its stack.

        It is what `as_part` and `computing_with` do, but functions that are called here are seen by the debugger.
        """
        attach_all()
        me, floats = -threading.get_ident(), use_floats(self._options.precision)
        tracing_threads[me] = self._options.precision
        try:
            return as_returned(self._function(*args, **kwargs), of_values=False)
        finally:
            tracing_threads.pop(me, None)
            use_floats(floats)
            self._kernels.look_at_everything()

    def _perform_or_call(self, args: Any, kwargs: Any, missed: Kernel | None = None) -> Any:
        """Run the kernel for these arguments, or else the function itself, in a turn.

        Args:
            missed: a kernel that has undone this call.
        """
        started, calls = thread_time(), self.stats.calls
        try:
            return self._perform("step", args, kwargs, missed)
        except PlainCall as plain:
            reason = plain  # called below, where an exception of the user's has no context of ours
        except Exception as error:
            reason = self._refusal(error, calls)
        if self._chosen is not None and not self._kernels.has(self._chosen):  # closed by this call, which may raise
            self._forget_call()
        result = self._call_plain(reason, lambda: self._timed(args, kwargs))
        if type(getattr(reason, "key", None)) is not Exit or self._has_missed_too_much(started, self._plain_seconds):
            self._leave_out_looks(reason, args, kwargs, started)
        else:  # the next call may take a path that has a kernel
            self._kernels.note_calls(self._plain_seconds)
        return result

    def _refusal(self, error: Exception, calls: int) -> Refused:
        """The reason for a plain call that follows from an exception.

        Args:
            calls: how many compiled calls there had been before.

        Raises:
            Exception: the same one, if the call has been made, or must not be plain.
        """
        if not self._kernels.goes_on or self.stats.calls != calls:
            raise error
        return refusal(error, self._kernels.maker.location)

    def _plainly(self, args: Any, kwargs: Any) -> Any:
        return computing_with(self._options.precision, lambda: self._function(*args, **kwargs))

    def _perform(self, phase: str, args: Any, kwargs: Any, undone_by: Kernel | None = None) -> Any:
        """Run a phase of the kernel for these arguments, in a turn.

        Args:
            undone_by: the kernel that has undone this call.
        """
        self._phase = ""
        self._performed += 1
        is_step = phase == "step"
        kernels = self._kernels if is_step else self._kernels.separate
        missed = [] if undone_by is None else [undone_by]
        while True:
            given = args if not kwargs and len(args) == self._arity else self._bound(args, kwargs)
            if missed and missed[-1].missed:
                kernel = kernels.other_path(missed, given)
            else:
                kernel = kernels.fitting(given, patient=not is_step)
                missed.clear()
            if not is_step:
                self._require_forward(kernel)
            if is_step and kernel.upgrade is not None and kernels.upgrade(kernel):
                self._forget_call()
                continue
            if is_step and kernel.predecessor is None and is_worth_it(kernel):
                self._choose_call(kernel)  # before the call has any effect, because it may fail
            try:
                if kernel.trial is not None and kernel.move is None and kernel.trial.is_due():
                    kernel.guard.look_at_everything()
                    if kernel.guard.difference():
                        continue  # which is usually noticed later, and is no defect
                    if kernel.told and self._is_missed(kernel, given):
                        missed.append(kernel)
                        continue
                    if is_step:
                        return self._compare(kernel, args, kwargs)
                    if not self._compare_phases(kernels, kernel, self._bound(args, kwargs)):
                        continue
                if kernel.needs_accepting:
                    kernel.accept(given)
                kernel.perform(phase, self.stats.counter if is_step else None)
                self._note_mismatch(kernel)
                break
            except Missed:
                missed.append(kernel)
            except Moved:
                kernels.forget(kernel)
        if not is_step:
            self._note_forward(kernel)
        return kernel.result(kernel.outputs, given)

    @staticmethod
    def _is_missed(kernel: Kernel, given: Sequence[Any]) -> bool:
        """Whether a call, which is to be compared, is one for another path."""
        if kernel.needs_accepting:
            kernel.accept(given)
        return fails(kernel)

    def _note_mismatch(self, kernel: Kernel) -> None:
        """Warn if better code for a kernel is wrong, which goes on with the code that it had."""
        mismatch = self._kernels.mismatch(kernel)
        if mismatch:
            self._forget_call()
            warn_of_mismatch(f"the optimised code of {self.__name__}", mismatch, "runs as before")

    def _compare(self, kernel: Kernel, args: Any, kwargs: Any) -> Any:
        """A call that plain Python makes as well, to see whether the kernel leaves the same numbers.

        Raises:
            Moved: the kernel cannot be used any more; nothing was done.
        """
        started = thread_time()
        bound = self._bound(args, kwargs)
        verdict = with_few_collections(
            lambda: compare(self._function, self._kernels.maker.undecorated, kernel, bound, self.stats)
        )
        self._kernels.earnings.note_spent(kernel.plan.key, thread_time() - started)
        self._forget_call()  # the path of calls is another one now
        self._note_mismatch(kernel)
        if verdict.mismatch:
            self._kernels.distrust(kernel, verdict.mismatch, verdict.parameters)
            warn_of_mismatch(f"the kernel of {self.__name__}", verdict.mismatch, "runs as plain Python from now on")
        elif verdict.was_compared:
            self._kernels.maker.proofs.note(kernel.code)
        if verdict.error is not None:
            raise verdict.error
        return verdict.result

    def _forget_call(self) -> None:
        """Let the next call take the general path."""
        self._siblings.clear()
        self._chosen = None
        setattr(self, "__call__", self._outer)  # noqa: B010 - a method, as far as type checkers know

    def _choose_call(self, kernel: Kernel) -> Callable[..., Any]:
        """Make the fast path of a kernel the first thing that calls try; returns that path."""
        short = is_short(kernel, self._turn)
        if short not in kernel.fast_calls:
            kernel.fast_calls[short] = fast_call(
                self._function, kernel, kernel.guard, self._signature, self._outer, self._turn, self.stats.counter,
                tracing_threads, self._siblings, functools.partial(self._take_other_path, kernel),
            )  # fmt: skip
        call = kernel.fast_calls[short] or self._outer
        if kernel.trial is not None and call is not self._outer:
            call = kernel.trial.counting(call, self._outer)
        add_sibling(call, self._siblings)
        if kernel.upgrade is not None and call is not self._outer:
            call = kernel.upgrade.counting(call, self._outer)
        call = self._weighed(kernel, call)
        self._chosen = kernel
        setattr(self, "__call__", call)  # noqa: B010 - a method, as far as type checkers know
        return call

    def _call_plain(self, reason: PlainCall, call: Callable[[], Any]) -> Any:
        """A call in plain Python, which may change anything that kernels know."""
        try:
            return with_few_collections(lambda: self._called_plain(reason, call))
        finally:
            self._kernels.look_at_everything()

    def _called_plain(self, reason: PlainCall, call: Callable[[], Any]) -> Any:
        if isinstance(reason, Waiting):
            self.stats.waiting_calls += 1
            self.stats.note_plain(self._kernels.describe_wait(reason), is_waiting=True)
            return self._call_meanwhile(reason.key, call)
        if isinstance(reason, Refused):
            return self._call_refused(reason, call)
        self._kernels.plain.note_call(str(reason))
        if isinstance(reason, TooMany):
            return self._call_meanwhile(reason.key, call)
        return self._made_plain(reason, call)

    def _call_refused(self, refused: Refused, call: Callable[[], Any]) -> Any:
        """A call in plain Python, because it was refused, which is said unless plain Python raises something, too."""
        plain = self._kernels.plain
        if refused.is_certain:
            plain.note_refused(refused, is_made=False)
            return self._made_plain(refused, call)
        result = self._made_plain(refused, call)
        if refused.key is not None:
            plain.note_trace(refused.key, refused)
        plain.note_refused(refused, is_made=True)
        return result

    def _made_plain(self, reason: PlainCall, call: Callable[[], Any]) -> Any:
        plain = functools.partial(Detached(reason.parameters).during, call) if reason.parameters else call
        # A step that is never compiled may be all of a program, whose other steps then are compiled instead.
        return as_part(self._options.precision, plain) if differentiates(self._function) else as_returned(plain())

    def _call_meanwhile(self, key: Hashable, call: Callable[[], Any]) -> Any:
        """A call in plain Python, of a structure that has no kernel yet, while others have."""
        detached, earnings = self._kernels.detached(self._units.unit is None), self._kernels.earnings
        effort: float | None = None

        def note_effort(seconds: float) -> None:
            nonlocal effort
            earnings.effort, effort = seconds, seconds if seconds < LONG else None

        def performed() -> Any:
            def work() -> Any:
                return self._units.during(key, self._kernels, call)

            is_known = earnings.has_begun or earnings.effort is not None
            result = work() if is_known else counted(work, note_effort)
            self._kernels.note_returned()
            return result

        def work() -> Any:
            if self._units.unit is not None:  # its calls are quick, and give what they return a graph
                return as_returned(performed())
            return as_part(self._options.precision, performed)

        started = thread_time()
        try:
            if detached is None:
                return work()
            self._forget_call()
            if self._units.unit is not None:
                return detached.meanwhile(work)
            if may_detach():
                detached.until_attached()
            return work()
        finally:
            seconds = thread_time() - started
            earnings.note_plain(key, seconds if effort is None else min(seconds, effort), 1)
            go_on()

    @with_short_tracebacks
    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the code is there that is being built in the background for arguments met so far.

        Args:
            seconds: the longest time to wait.

        Returns:
            Whether nothing is being built any more.
        """
        return self._turn.run(self._wait, seconds)

    def _wait(self, seconds: float | None) -> bool:
        is_done = self._kernels.wait(seconds, self._units.unit is None) and self._units.wait(seconds)
        self._between.forget()
        self._forget_call()  # kernels may have other code now
        return is_done

    def _refuse_in_trace(self, phase: str) -> None:
        if is_tracing():
            raise PhaseError(
                f"{user_location()}: .{phase}() runs a kernel and cannot be part of the step that is being traced. "
                f"Call {self.__name__}(...) itself there: it becomes part of the trace."
            )

    def _with_kernel(self, phase: str, work: Callable[[], Any]) -> Any:
        """Do work that needs a kernel, as opposed to a plain call.

        Raises:
            UnsupportedError: with these arguments the step runs as plain Python.
        """
        try:
            return work()
        except PlainCall as plain:
            raise UnsupportedError(
                f"{user_location()}: .{phase}() needs a kernel, and with these arguments {self.__name__} runs as plain "
                f"Python: {plain}. Call {self.__name__}(...) itself."
            ) from None

    def _bound(self, args: Any, kwargs: Any) -> tuple[Any, ...]:
        bound = bind(self._signature, args, kwargs, self.__name__)
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    # ---- as a method, a copy, a pickle ------------------------------------------------------------------

    def __set_name__(self, owner: Any, name: str) -> None:
        self._name_attribute(name)

    def _name_attribute(self, name: str) -> None:
        self._attribute, self._usual_entry = name, f"{name} compiled"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        try:  # the usual case, at each call of a method
            own = instance.__dict__
            if type(own) is Attributes:
                usual = own.known[self]
                if usual._function.__self__ is instance:
                    return usual
            else:
                usual = own[self._usual_entry]
                if usual._function.__self__ is instance and usual._function.__func__ is self._function:
                    return usual
        except (AttributeError, KeyError, TypeError):
            pass
        own, entry = self._of_classes, instance
        if not issubclass(type(instance), type):  # which keeps its steps itself; a copy of it then has them, too
            own = methods_in(getattr(instance, "__dict__", _NOTHING))
            entry = self._entry(own)
        method: Any = own.get(entry)
        if method is not None and method._function.__self__ is instance:
            return self._known(method, instance)
        method = self.made_of(self._function.__get__(instance, owner), self._options)
        method._name_attribute(self._attribute)
        method._origin = self
        if own is _NOTHING:
            warnings.warn(
                f"{user_location()}: {self.__name__} is a method of a {type(instance).__name__}, which has no __dict__ "
                "to keep kernels in: every call traces it again. Add '__dict__' to its __slots__.",
                RetraceWarning,
                stacklevel=user_stacklevel(),
            )
            return method
        if is_tracing():  # which adds nothing to the user's objects
            return method
        with _KEEPING:
            own = own if own is self._of_classes else make_room(instance)
            kept: Any = own.get(entry)
            if kept is None or kept._function.__self__ is not instance:  # it is of the one that this is a copy of
                own[entry] = kept = method
        return self._known(kept, instance)

    def _known(self, method: Any, instance: Any) -> Any:
        """A method of an instance, which is found at once from now on."""
        own = getattr(instance, "__dict__", _NOTHING)
        if type(own) is Attributes:
            own.known[self] = method
        return method

    def _entry(self, own: dict[Any, Any]) -> str:
        """The name under which an instance keeps its step, which has a blank: no attribute has one.

        A method of this name in a base class, which this one may call by `super()`, is another step.
        """
        entry = self._usual_entry
        while entry in own and own[entry]._function.__func__ is not self._function:
            entry += "'"
        return entry

    def __copy__(self) -> CompiledStep[P, R]:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if inspect.isfunction(self._function):
            return self  # as for functions
        make, parts = self._parts()
        return make(*copy.deepcopy(parts, memo))

    def __reduce__(self) -> Any:
        found: Any = sys.modules.get(self.__module__)
        for name in self.__qualname__.split("."):
            found = getattr(found, name, None)
        return self.__qualname__ if found is self or found is None else self._parts()

    def _parts(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Constructor and arguments that recreate this step."""
        method: Any = self._function
        if inspect.ismethod(method):
            kind = method.__self__ if isinstance(method.__self__, type) else type(method.__self__)
            for found in (vars(base).get(self._attribute) for base in kind.__mro__):
                step = found.__func__ if isinstance(found, classmethod) else found
                if isinstance(step, CompiledStep) and step._function is method.__func__:
                    return _method_of, (step, method.__self__)
        return type(self), (self._function, self._options)

    def __repr__(self) -> str:
        return f"<compiled step {self.__qualname__}, {self._kernels.told()}>"


class LaterStep(CompiledStep[P, R]):
    """A step that begins later; a class of its own, since `__getattr__` makes all attributes of a class slower."""

    if not TYPE_CHECKING:
        __slots__ = ()

        def __getattr__(self, name: str) -> Any:
            """What is asked for first."""
            self.begin()
            return getattr(self, name)

    def _parts(self) -> Any:
        self.begin()
        return self._parts()

    def begin(self) -> None:
        """Begin now."""
        with _KEEPING:
            life = self.__dict__.pop("_life", None)
            if life is not None:  # otherwise another thread has come first
                self.__class__ = CompiledStep  # type: ignore[assignment]
                attribute = self._attribute
                self.__init__(self._function, self._options)  # type: ignore[misc]
                self._name_attribute(attribute)
                self.stats.waiting_calls += life.made


#: Stands for the `__dict__` of an instance that has none.
_NOTHING: dict[str, Any] = {}
#: Held while a step is kept: of threads that ask at once, all get the same one.
_KEEPING = threading.RLock()


def _method_of(step: Any, instance: Any) -> Any:
    return step.__get__(instance, type(instance))


def _named(function: Any) -> Any:
    """The object that gives a step its name: the function itself, or what a partial or a callable object calls."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if hasattr(function, "__qualname__") else type(function)
