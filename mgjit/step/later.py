"""Steps that begin later: methods of objects that live for a few calls, functions that are decorated again and again.

What a step has of its own - a signature, kernels, an account of its calls - takes hundreds of times as long to make as
a small call takes.  So a step whose code is known begins with less:

1. If none of the last steps of the same code has made enough calls to be worth a trace (lives.py), the next one makes
   as many calls as the longest of these with nothing but a count: its call is the function, which marks the thread, so
   that steps which are called in it are a part of it.
2. After these, while there are other threads, and when anything else of it is asked for, such as `.stats`, it becomes a
   step as all others (`CompiledStep.__getattr__`).
3. Where traces of the code have come to nothing, it never does by itself.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..base.tracebacks import Failed, failed
from ..engine.precision import FLOAT64
from ..engine.progress import is_in_plain_call, is_tracing, tracing_threads
from ..kernels.first_calls.lives import Unbegun, lives_of
from ..tensor.memory import Memory
from ..tracing.tracer.tracer import require_traced_precision
from ..verification.documented import as_returned

_threading: Any = threading

if TYPE_CHECKING:
    from ..compiler.build.options import StepOptions


def unbegun(function: Callable[..., Any], options: StepOptions) -> Unbegun | None:
    """How many calls a new step of this function may make before it begins; None if it is to begin at once."""
    if options.precision is not FLOAT64 or options.static or not options.lock or Memory.exists:
        return None
    lives = lives_of(function, options)
    if not lives.may_begin_later() or (options.is_patient and not options.goes_on):
        return None
    return lives.unbegun()


def call_of(step: Any, function: Callable[..., Any], life: Unbegun) -> Callable[..., Any]:
    """Makes the calls of a step that has not begun."""
    return functools.partial(_Call, step, function, life, threading.get_ident())


class _Call(Failed):
    """A call of a step that has not begun; see tracebacks.py."""

    __slots__ = ()

    def __new__(
        cls, step: Any, function: Callable[..., Any], life: Unbegun, thread: int, /, *args: Any, **kwargs: Any
    ) -> Any:
        active = _threading._active  # `active_count` takes as long as a short step
        try:
            if life.made >= life.most or len(active) != 1 or thread not in active or tracing_threads:
                return _general(step, function, args, kwargs)
            life.made += 1
            try:
                tracing_threads[-thread] = FLOAT64
                result = function(*args, **kwargs)
            finally:
                tracing_threads.pop(-thread, None)
        except BaseException as error:
            return failed(cls, error)
        return result if type(result) is float or result is None else as_returned(result)


def _general(step: Any, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """A call that is a part of another one, or with which the step begins."""
    if is_tracing():
        require_traced_precision(step.__name__, FLOAT64)
        return function(*args, **kwargs)
    if is_in_plain_call():
        return function(*args, **kwargs)
    step.begin()
    return step(*args, **kwargs)
