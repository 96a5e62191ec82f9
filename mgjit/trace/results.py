"""The result of a traced call: a tree whose traced leaves are outputs of the kernel."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any, Callable

from ..engine.state import State
from ..engine.value import Value
from .leaks import is_traced, leaked, refuse_hidden
from .recorder import Recorder
from .traced import TracedTypes

#: Builds the user's result from the array of outputs.
ResultTree = Callable[[Any], Any]


class Result(float):
    """A result that was a Value in the step: a float, with `.data` for code that expects a Value."""

    __slots__ = ()

    @property
    def data(self) -> float:
        """The number itself."""
        return float(self)


def describe_result(returned: Any, recorder: Recorder, types: TracedTypes) -> ResultTree:
    """Record every traced leaf of `returned` as an output and return how to rebuild the tree."""
    if is_traced(returned) and not isinstance(returned, (types.value, types.number)):
        leaked()
    if isinstance(returned, Value):
        return _value_output(recorder.output(types.lift(returned)))
    if isinstance(returned, types.number):
        return _number_output(recorder.output(types.number_operand(returned)))
    if isinstance(returned, State):
        return _constant(returned)
    if type(returned) in (list, tuple):
        return _sequence(type(returned), [describe_result(x, recorder, types) for x in returned])
    if isinstance(returned, tuple) and hasattr(returned, "_fields"):
        make = type(returned)
        return _sequence(lambda items: make(*items), [describe_result(x, recorder, types) for x in returned])
    if isinstance(returned, list):
        return _sequence(list, [describe_result(x, recorder, types) for x in returned])
    if type(returned) is dict:
        return _mapping({key: describe_result(x, recorder, types) for key, x in returned.items()})
    if dataclasses.is_dataclass(returned) and not isinstance(returned, type):
        parts = {
            f.name: describe_result(getattr(returned, f.name), recorder, types) for f in dataclasses.fields(returned)
        }
        return _dataclass(copy.copy(returned), parts)
    refuse_hidden(returned)
    return _constant(returned)


def _value_output(index: int) -> ResultTree:
    return lambda outputs: Result(outputs[index])


def _number_output(index: int) -> ResultTree:
    return lambda outputs: outputs[index]


def _constant(returned: Any) -> ResultTree:
    return lambda outputs: returned


def _sequence(make: Callable[[Any], Any], parts: list[ResultTree]) -> ResultTree:
    return lambda outputs: make([part(outputs) for part in parts])


def _mapping(parts: dict[Any, ResultTree]) -> ResultTree:
    return lambda outputs: {key: part(outputs) for key, part in parts.items()}


def _dataclass(template: Any, parts: dict[str, ResultTree]) -> ResultTree:
    def build(outputs: Any) -> Any:
        made = copy.copy(template)
        for name, part in parts.items():
            object.__setattr__(made, name, part(outputs))
        return made

    return build
