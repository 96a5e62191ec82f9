"""While a step is traced, `Value` and `State` themselves record what is done to them.

`instrumented(recorder, types)` replaces the methods and slots of the engine's classes for the duration of
one trace and restores them afterwards, so that untraced code pays nothing and the engine knows nothing
about tracing.  Other threads that compute with Values in the meantime reach the original methods: every
replacement first asks which thread it runs in.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any, Callable

from ..engine.state import State
from ..engine.value import Value
from ..errors import user_location
from ..runtime.buffers import bound_classes
from . import opcodes as ops
from .leaks import LeakedValue
from .recorder import Recorder
from .traced import TracedTypes

_MISSING = object()


@contextmanager
def instrumented(recorder: Recorder, types: TracedTypes) -> Iterator[None]:
    """Let the engine's classes record into `recorder` while the block runs, in this thread."""
    saved: list[tuple[Any, str, Any]] = []
    me = get_ident()

    def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        original = getattr(owner, name)
        saved.append((owner, name, owner.__dict__.get(name, _MISSING)))
        setattr(owner, name, make(original))

    try:
        _replace_value_methods(replace, recorder, types, me)
        for owner in (Value, *bound_classes.values()):
            for name in ("data", "grad"):
                saved.append((owner, name, owner.__dict__[name]))
                setattr(owner, name, _recording_property(owner.__dict__[name], name, recorder, types, me))
        _replace_state_methods(replace, recorder, types, me)
        if sys.version_info >= (3, 12):
            replace(builtins, "sum", lambda original: _compensated_sum(original, types, me))
        yield
    finally:
        for owner, name, original in reversed(saved):
            if original is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, original)
        types.close()
        for value in recorder.local_values:
            value.__class__ = LeakedValue


def _replace_value_methods(replace: Any, recorder: Recorder, types: TracedTypes, me: int) -> None:
    def here(traced: Callable[..., Any]) -> Callable[[Any], Any]:
        def make(original: Any) -> Any:
            def method(self: Any, *args: Any) -> Any:
                return traced(self, *args) if get_ident() == me else original(self, *args)

            return method

        return make

    for name in ("add", "sub", "mul"):
        code = {"add": ops.ADD, "sub": ops.SUBTRACT, "mul": ops.MULTIPLY}[name]
        replace(Value, f"__{name}__", here(types.binary_on_value(code, False)))
        replace(Value, f"__r{name}__", here(types.binary_on_value(code, True)))
    for name in ("__pow__", "__truediv__", "__rtruediv__", "__lt__", "__le__", "__gt__", "__ge__", "__neg__",
                 "__abs__", "relu", "exp", "log", "tanh", "sqrt", "maximum", "minimum", "_select",
                 "_copied"):  # fmt: skip
        replace(Value, name, here(types.value.__dict__[name]))
    replace(Value, "_lifted", lambda original: staticmethod(types.value.__dict__["_lifted"].__func__))

    def initialise(self: Any, data: Any) -> None:
        recorder.local(self, types.number_operand(data))

    def backward(self: Any) -> None:
        recorder.backward(types.lift(self))

    replace(Value, "__init__", here(initialise))
    replace(Value, "backward", here(backward))


def _recording_property(original: Any, name: str, recorder: Recorder, types: TracedTypes, me: int) -> property:
    read, write = original.__get__, original.__set__
    gradient = name == "grad"

    def operand(value: Any) -> int:
        ref: int = value._leaf if value._trace is recorder else types.lift(value)
        return recorder.gradient_leaf(ref) if gradient else ref

    def getter(self: Any) -> Any:
        return types.leaf_number(operand(self)) if get_ident() == me else read(self)

    def setter(self: Any, number: Any) -> None:
        if get_ident() == me:
            recorder.store(operand(self), types.number_operand(number))
        else:
            write(self, number)

    return property(getter, setter)


def _replace_state_methods(replace: Any, recorder: Recorder, types: TracedTypes, me: int) -> None:
    def element(state: State, index: Any) -> int:
        size = len(state)
        position: int = index.__index__()
        if not -size <= position < size:
            raise IndexError(f"{user_location()}: index {position} of a State of {size} elements")
        return recorder.state(state) - position % size  # leaf codes count downwards

    def make_get(original: Any) -> Any:
        def get(self: State, index: Any) -> Any:
            if get_ident() != me or isinstance(index, slice):
                return original(self, index)
            return types.leaf_number(element(self, index))

        return get

    def make_set(original: Any) -> Any:
        def set_(self: State, index: Any, number: Any) -> None:
            if get_ident() != me or isinstance(index, slice):
                original(self, index, number)
            else:
                recorder.store(element(self, index), types.number_operand(number))

        return set_

    replace(State, "__getitem__", make_get)
    replace(State, "__setitem__", make_set)


def _compensated_sum(original: Any, types: TracedTypes, me: int) -> Callable[..., Any]:
    """`sum` of floats as CPython has computed it since 3.12: Neumaier's compensated summation.

    Source: A. Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen", ZAMM 54
    (1974); CPython, Python/bltinmodule.c, cs_add.  Sums that contain Values are plain additions there, too.
    """
    from ..engine.functions import where

    def is_integer(x: Any) -> bool:
        return isinstance(x, (int, types.integer))

    def is_float(x: Any) -> bool:
        return type(x) is float or (isinstance(x, types.number) and not isinstance(x, types.integer))

    def finished(total: Any, compensation: Any) -> Any:
        if compensation is None:
            return total
        finite = compensation - compensation == 0.0
        return where(finite, where(compensation != 0.0, total + compensation, total), total)

    def traced_sum(iterable: Any, /, start: Any = 0) -> Any:
        if get_ident() != me:
            return original(iterable, start)
        items = list(iterable)
        if not any(isinstance(x, types.number) for x in (start, *items)):
            return original(items, start)
        # As CPython: exact while there are ints, compensated from the first float on, plain from anything else on.
        total, compensation = start, (0.0 if is_float(start) else None)
        generic = not (is_integer(start) or is_float(start))
        for x in items:
            if compensation is not None and is_float(x):
                t = total + x
                compensation = compensation + where(abs(total) >= abs(x), (total - t) + x, (x - t) + total)
                total = t
            elif compensation is not None and not is_integer(x):
                total, compensation, generic = finished(total, compensation) + x, None, True
            else:
                total = total + x
                if not generic and compensation is None and not is_integer(x):
                    compensation, generic = (0.0, False) if is_float(x) else (None, True)
        return finished(total, compensation)

    return traced_sum
