"""What a step writes: found in a trace, for steps whose rows are to run side by side.

1. Trace the step.  It writes if a record assigns a parameter, a gradient or state, if it is a backward pass, or if the
   step changes its arguments.
2. If it does, trace it once more, and note the lines that records come from (tracer/sites.py).
3. Look for the object whose number is written first, and for the path that leads to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...engine.value import Value
from ...errors import SharedWriteError, user_location
from ...ir import opcodes as ops
from ...ir.sites import NOWHERE
from ...ir.trace import Trace
from ...memory.buffers import ParameterStorage, storage_of
from ...memory.live import Home, raw_attributes
from ...memory.parameter import Parameter
from ...runtime.kernel import Kernel
from ...tracing.tracer.knowledge import Again, HeapPlan
from ...tracing.tracer.sites import Sites
from ...tracing.tracer.tracer import TracedCall
from ..factory import Maker
from .worlds import Walk

_MEMORY = {ops.PARAMETER: "a parameter", ops.GRADIENT: "a gradient", ops.STATE: "state"}
_FIELDS = (".data", ".grad")


def refuse_writes(kernel: Kernel, maker: Maker, arguments: Sequence[Any], name: str) -> None:
    """Return if a step only reads; otherwise say what it writes, and where.

    Args:
        kernel: of the call. maker: of the step. arguments: of the call. name: of the step.

    Raises:
        SharedWriteError: it writes.
        PlainCall: it runs as plain Python with these arguments.
    """
    kernel.only_reads = kernel.only_reads or not any(True for _ in _writes(_traced(maker, arguments, None)))
    if kernel.only_reads:
        return
    sites = Sites()
    traced = _traced(maker, arguments, sites)
    what, record = next(_writes(traced))
    if record is not None:
        what = _name(traced, record, Walk([("", maker.function), *zip(maker.names, arguments)])) or what
    raise SharedWriteError(
        f"{user_location()}: .loop(threads=) runs rows side by side, which is for steps that only read. {name} writes "
        f"{what}{_place(traced.trace, record, sites)}. Leave threads= out, or make a step of the part that only reads, "
        "such as the prediction. Several models can be trained side by side: mgjit.ensemble(step, n)."
    )


def _place(trace: Trace, record: int | None, sites: Sites) -> str:
    site = NOWHERE if record is None or trace.sites is None else trace.sites[record]
    return "" if site == NOWHERE else f" ({sites.all[site].code.co_filename}:{sites.all[site].line})"


def _traced(maker: Maker, arguments: Sequence[Any], sites: Sites | None) -> TracedCall:
    while True:
        try:
            plan = maker.plan(arguments)
            slots = ParameterStorage(len(plan.values), plan.precision) if plan.values else None
            return maker._trace(plan, slots, sites)[0]
        except Again:
            continue


def _writes(traced: TracedCall) -> Iterator[tuple[str, int | None]]:
    """What is written, in words, and by which record."""
    trace = traced.trace
    has_parameters = bool(trace.new_parameters or trace.bound_storages)
    for record, code in enumerate(trace.op):
        if code >= ops.PUT:
            yield "elements of a table", record
        elif code == ops.BACKWARD and has_parameters:
            yield "gradients", record
        elif code == ops.STORE and ops.leaf_kind(trace.a[record]) in _MEMORY:
            yield _MEMORY[ops.leaf_kind(trace.a[record])], record
        elif code == ops.NEST and ops.leaf_kind(_target(trace, record)) in _MEMORY:
            yield "elements of a tensor", record
    if traced.writes:
        yield "elements of an argument", None


def _target(trace: Trace, record: int) -> int:
    """The leaf that a record writes."""
    if trace.op[record] == ops.NEST:
        return trace.nests[ops.leaf_index(trace.a[record])].target.leaf
    return trace.a[record]


def _name(traced: TracedCall, record: int, walk: Walk) -> str:
    """The path of the number that a record assigns; empty where there is none."""
    trace, target = traced.trace, _target(traced.trace, record)
    kind, index = ops.leaf_kind(target), ops.leaf_index(target)
    if trace.op[record] == ops.BACKWARD:
        return "the gradients of parameters"
    if kind == ops.STATE:
        return _name_of_state(trace, traced.heap, index, walk)
    field = int(kind == ops.GRADIENT)
    for number, thing in trace.new_parameters:
        if number == index and isinstance(thing, Parameter):
            return f"{walk.path(thing.owner)}.{thing.fields[field].name}"
        if number == index:
            return walk.path(thing) + _FIELDS[field]
    for start, storage in trace.bound_storages:
        if start <= index < start + len(storage):
            return _name_in_storage(storage, storage.places([index - start])[0], field, walk)
    return ""


def _name_in_storage(storage: ParameterStorage, place: int, field: int, walk: Walk) -> str:
    memory = (storage.data, storage.grad)[field]
    for thing in walk.objects:
        if isinstance(thing, Value):
            if storage_of(thing) is storage and thing._index == place:
                return walk.path(thing) + _FIELDS[field]
            continue
        for name, content in (raw_attributes(thing) or {}).items():
            if type(content) is Home and content.array is memory and content.index == place:
                return walk.path(thing) + f".{name}"
    return ""


def _name_of_state(trace: Trace, heap: HeapPlan, index: int, walk: Walk) -> str:
    for start, state in trace.states:
        if start <= index < start + len(state):
            if state is not heap.state:
                return f"{walk.path(state)}[{index - start}]"
            for copied in heap.copied:
                if copied.offset <= index - start < copied.offset + copied.count:
                    element = f"[{index - start - copied.offset}]" if copied.size else ""
                    return f"{copied.place.describe()}{element}"
    return ""
