"""Instrument the engine: while a step is traced, `Value` and `State` record operations instead of computing.

`recorded(recorder, types, work)` installs a recording in the engine (engine/hook.py) while `work()` runs.  Other
threads compute with Values as usual, because the engine checks which thread it runs in.
"""

from __future__ import annotations

import builtins
import sys
from threading import get_ident
from typing import Any, Callable, TypeVar

from ...base.interruption import with_cleanup
from ...engine import hook
from ...engine.leaks import leaked_class
from ...engine.state import State
from ...ir import opcodes as ops
from ...memory.live import set_class
from .blocks import Blocks
from .nests import TensorRecording
from .recorder import Recorder
from .uniform import UniformLoops
from .values import TracedTypes

T = TypeVar("T")


class Recording:
    """The functions that the engine calls while a trace is in progress.

    Attributes:
        thread: the thread that is traced.
        methods: the functions, by the name of the operation.
        blocks: appends whole layers.
        tensors: takes operations on tensors.
        uniform: appends whole loops over objects.
    """

    def __init__(self, recorder: Recorder, types: TracedTypes) -> None:
        self.thread = get_ident()
        self.blocks = Blocks(recorder, types)
        self.uniform = UniformLoops(recorder, types, self.blocks)
        self.tensors = TensorRecording(recorder, types)
        self.methods: dict[str, Callable[..., Any]] = {
            "layer": self.blocks.layer,
            "neuron": self.blocks.neuron,
            "zero_grad": self.blocks.zero_grad,
            **_arithmetic(types),
            **_memory(recorder, types),
            **_state(recorder, types),
        }


def recorded(recorder: Recorder, types: TracedTypes, work: Callable[[], T]) -> T:
    """Return `work()`, run while the engine records into `recorder` what this thread does."""
    original_sum = builtins.sum
    recording = Recording(recorder, types)

    def record() -> T:
        hook.recording = recording
        if sys.version_info >= (3, 12):
            builtins.sum = _compensated_sum(original_sum, types, get_ident())
        recording.blocks.begin(original_sum)
        return work()

    def stop() -> None:
        hook.recording = None
        builtins.sum = original_sum
        types.close()
        for value in recorder.local_values:
            kind: Any = type(value)
            set_class(value, leaked_class(kind))

    return with_cleanup(record, stop)


def _arithmetic(types: TracedTypes) -> dict[str, Callable[..., Any]]:
    """Operations whose receiver is a parameter, or another Value that is not itself traced."""
    methods: dict[str, Callable[..., Any]] = {}
    for name, code in (("add", ops.ADD), ("sub", ops.SUBTRACT), ("mul", ops.MULTIPLY)):
        methods[f"__{name}__"] = types.binary_on_value(code, False)
        methods[f"__r{name}__"] = types.binary_on_value(code, True)
    for name in ("__pow__", "__truediv__", "__rtruediv__", "__lt__", "__le__", "__gt__", "__ge__", "__neg__",
                 "__abs__", "relu", "exp", "log", "tanh", "sqrt", "maximum", "minimum", "_select",
                 "_copied", "_linked"):  # fmt: skip
        methods[name] = types.value.__dict__[name]
    methods["_lifted"] = types.value.__dict__["_lifted"].__func__
    return methods


def _store(recorder: Recorder) -> Callable[[int, int], None]:
    """As `Recorder.store`, for one recorder."""
    records, append_op, append_a, append_b = recorder.op, recorder.op.append, recorder.a.append, recorder.b.append
    last_store = recorder.last_store

    def store(target: int, operand: int) -> None:
        last_store[target] = len(records)
        append_op(ops.STORE)
        append_a(target)
        append_b(operand)

    return store


def _memory(recorder: Recorder, types: TracedTypes) -> dict[str, Callable[..., Any]]:
    """Making Values, reading and assigning their data and gradients, backward passes."""

    def place(value: Any) -> int:
        ref: int = value._leaf if value._trace is recorder else types.lift(value)
        return ref

    def initialise(self: Any, data: Any) -> None:
        recorder.local(self, types.number_operand(data))

    def backward(self: Any) -> None:
        recorder.backward(types.lift(self))

    # The next four functions run for every parameter, which is why they repeat themselves and use local names.
    leaf_number, number_operand, store = types.leaf_number, types.number_operand, _store(recorder)
    step = recorder.gradient_leaf(0)

    def data(self: Any) -> Any:
        return leaf_number(self._leaf if self._trace is recorder else place(self))

    def set_data(self: Any, number: Any) -> None:
        target = self._leaf if self._trace is recorder else place(self)
        store(target, number_operand(number))

    def grad(self: Any) -> Any:
        return leaf_number((self._leaf if self._trace is recorder else place(self)) + step)

    def set_grad(self: Any, number: Any) -> None:
        target = (self._leaf if self._trace is recorder else place(self)) + step
        store(target, number_operand(number))

    return {
        "__init__": initialise,
        "backward": backward,
        "data": data,
        "data =": set_data,
        "grad": grad,
        "grad =": set_grad,
    }


def _state(recorder: Recorder, types: TracedTypes) -> dict[str, Callable[..., Any]]:
    """Reading and assigning elements of a State."""

    def element(state: State, index: Any) -> int:
        return recorder.state(state) - state._position(index)  # leaf codes count downwards

    def elements(state: State, index: Any) -> range:
        index._check_index(len(state))
        first = recorder.state(state)
        return range(first, first - len(state), -1)

    def get(self: State, index: Any) -> Any:
        if issubclass(type(index), types.integer):
            return types.number_at(recorder.take(elements(self, index), types.number_operand(index), False), False)
        return types.leaf_number(element(self, index))

    def set_(self: State, index: Any, number: Any) -> None:
        if issubclass(type(index), types.integer):
            recorder.put(elements(self, index), types.number_operand(index), types.number_operand(number))
        else:
            recorder.store(element(self, index), types.number_operand(number))

    return {"state": get, "state =": set_}


def _compensated_sum(original: Any, types: TracedTypes, me: int) -> Callable[..., Any]:
    """`sum` of floats as CPython has computed it since 3.12: Neumaier's compensated summation.

    Source: A. Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen", ZAMM 54
    (1974); CPython, Python/bltinmodule.c, cs_add.  Sums that contain Values are plain additions there, too.
    """
    from ...engine.functions import where

    def is_number(x: Any) -> bool:
        kind: Any = type(x)
        return kind in (float, int, bool) or (issubclass(kind, types.number) and not kind.of_numpy)

    def is_whole(x: Any) -> Any:
        """Whether x is an int, as a number that may be traced."""
        return types.mixed.code(x) != 0.0

    def finished(total: Any, compensation: Any) -> Any:
        if compensation is None:
            return total
        finite = compensation - compensation == 0.0
        return where(finite, where(compensation != 0.0, total + compensation, total), total)

    def traced_sum(iterable: Any, /, start: Any = 0) -> Any:
        if get_ident() != me:
            return original(iterable, start)
        # As CPython: exact while there are ints, compensated from the first float on, plain from anything else on.
        total, compensation, generic = start, None, not is_number(start)
        for x in iterable:
            if generic or not is_number(x):
                total, compensation, generic = finished(total, compensation) + x, None, True
                continue
            t = total + x
            is_plain = is_whole(total)
            if is_plain is not True:
                is_plain = is_whole(x) if is_plain is False else where(is_plain, True, is_whole(x))
            if is_plain is not True:
                c = 0.0 if compensation is None else compensation
                lost = c + where(abs(total) >= abs(x), (total - t) + x, (x - t) + total)
                compensation = lost if is_plain is False else where(is_plain, c, lost)
            total = t
        return finished(total, compensation)

    return traced_sum
