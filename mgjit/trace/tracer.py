"""Trace one call of a step.

1. Switch the garbage collector off (a trace only allocates) and take the trace lock.
2. Replace the arguments by traced ones and let `Value` and `State` record.
3. Run the user's function once; an exception of its own passes through, after everything is restored.
4. Find what the step has assigned in the user's objects (trace/heap.py), which are put back as they were.
5. Turn the result into a tree of output indices.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Callable

from ..collection import no_garbage_collection
from .capture import captured_functions
from .heap import Heap, HeapPlan
from .instrument import instrumented
from .randomness import no_randomness
from .recorder import Recorder, Trace
from .results import ResultTree, describe_result
from .signature import ArgumentPlan
from .traced import traced_types

#: One trace at a time in a process: the engine's classes are instrumented while it runs.
_trace_lock = threading.RLock()
#: The threads that are inside a trace.
tracing_threads: set[int] = set()


@dataclass
class TracedCall:
    """The trace of a call and how its outputs make up the result."""

    trace: Trace
    result: ResultTree
    heap: HeapPlan


def is_tracing() -> bool:
    """Whether this thread is inside a trace (a compiled step called there is recorded, not run)."""
    return bool(tracing_threads) and threading.get_ident() in tracing_threads


def trace_call(
    call: Callable[[Any], Any],
    plan: ArgumentPlan,
    slots: Any,
    heap: Heap | None = None,
    functions: Sequence[FunctionType] = (),
    location: str = "",
    reachable: Iterable[Any] = (),
) -> TracedCall:
    """Run `call(traced arguments)` once and return its trace.

    Args:
        call: takes the tuple of arguments.
        plan: the structure of the arguments.
        slots: storage for argument Values that are copied in and out, or None.
        heap: the numbers in the user's objects around the step.
        functions: what the step can call.
        location: `file:line` of the step, for messages.
        reachable: objects that the step captures, in which generators of random numbers are looked for.
    """
    recorder = Recorder(plan.precision)
    with _trace_lock, no_garbage_collection(), no_randomness(location, [*reachable, *plan.static_objects()]):
        if slots is not None:
            recorder.value_slots(plan.values, slots)
        types = traced_types(recorder)
        tracing_threads.add(threading.get_ident())
        try:
            with captured_functions(functions), instrumented(recorder, types):
                if heap is not None:
                    heap.enter(recorder, types)
                returned = call(plan.traced(types.input_number))
                known = heap.knows if heap is not None else lambda thing: False
                result = describe_result(returned, recorder, types, known)
                memory = HeapPlan() if heap is None else heap.settle()
        finally:
            if heap is not None:
                heap.restore()
            tracing_threads.discard(threading.get_ident())
    return TracedCall(recorder.finish(), result, memory)
