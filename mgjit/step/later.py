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

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..base.tracebacks import unseen
from ..engine.precision import FLOAT64
from ..engine.progress import is_in_plain_call, is_tracing, tracing_threads
from ..kernels.first_calls.lives import Unbegun, lives_of
from ..tensor.memory import Memory
from ..tracing.tracer.tracer import require_traced_precision
from ..verification.documented import as_returned

if TYPE_CHECKING:
    from ..compiler.build.options import StepOptions


def unbegun(function: Callable[..., Any], options: StepOptions) -> Unbegun | None:
    """How many calls a new step of this function may make before it begins; None if it is to begin at once."""
    if options.precision is not FLOAT64 or options.static or not options.lock or options.is_patient or Memory.exists:
        return None
    return lives_of(function).unbegun()


def call_of(step: Any, function: Callable[..., Any], life: Unbegun) -> Callable[..., Any]:
    """Makes the calls of a step that has not begun."""
    thread, unmark = threading.get_ident(), tracing_threads.pop
    active: Any = threading._active  # type: ignore[attr-defined]  # `active_count` takes as long as a short step
    me = -thread

    def call(*args: Any, **kwargs: Any) -> Any:
        if life.made >= life.most or len(active) != 1 or thread not in active or tracing_threads:
            return _general(step, function, args, kwargs)
        life.made += 1
        try:
            tracing_threads[me] = FLOAT64
            result = function(*args, **kwargs)
        finally:
            unmark(me, None)
        return result if type(result) is float or result is None else as_returned(result)

    return unseen(call)


def _general(step: Any, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """A call that is a part of another one, or with which the step begins."""
    if is_tracing():
        require_traced_precision(step.__name__, FLOAT64)
        return function(*args, **kwargs)
    if is_in_plain_call():
        return function(*args, **kwargs)
    step.begin()
    return step(*args, **kwargs)
