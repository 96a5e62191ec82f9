"""What kind of number something is: `float(x)`, `int(x)`, `round(x)`, `type(x)`, `isinstance(x, ...)` of traced ones.

A step that asks whether a number is an int or a float may be told something else in another call, which is noted.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from ...engine.leaks import PlainCall, is_traced, is_traced_number
from ...errors import user_location
from ...memory.live import original_class
from ...tensor.tensor import Tensor
from ..record.current import current_recorder
from ..record.traced_array import TracedArray
from ..surroundings.ownership import is_of_user


def to_float(*arguments: Any) -> Any:
    """`float(x)`."""
    number = _number_of("__float__", *arguments)
    if is_traced(number) and hasattr(number, "_as_float"):
        return number._as_float()
    return number if type(number) is float else float(*arguments)


def _number_of(conversion: str, *arguments: Any) -> Any:
    """What `float` or `int` is given; of a tensor its number, and of an object what its class converts it to."""
    if len(arguments) != 1:
        return None
    (thing,) = arguments
    if isinstance(thing, Tensor):
        return thing.item()
    method = getattr(type(thing), conversion, None)
    return method(thing) if isinstance(method, FunctionType) and is_of_user(type(thing)) else thing


def as_float(number: Any) -> Any:
    """A number of numpy's type float64 as the float that it is."""
    return number._as_float() if is_traced_number(number) and number.of_numpy else number


def to_integer(*arguments: Any, **options: Any) -> Any:
    """`int(x)`."""
    number = _number_of("__int__", *arguments)
    if is_traced(number) and hasattr(number, "_as_integer"):
        return number._as_integer()
    return number if type(number) is int and not options else int(*arguments, **options)


def rounded(number: Any, *digits: Any, **options: Any) -> Any:
    """`round(x)`."""
    if is_traced_number(number) and not options:
        return number.__round__(*digits)
    return round(number, *digits, **options)


def _note_type(thing: Any) -> None:
    """The step asks whether a number is an int or a float, which in another call it may not be."""
    recorder = current_recorder()
    if recorder is None or not is_traced_number(thing) or not hasattr(thing, "_leaf"):
        return
    if hasattr(type(thing), "_kind"):
        raise PlainCall(
            f"{user_location()}: it asks for the type of a number that is an int in some calls and a float in others"
        )
    recorder.note_type(thing._leaf)


def class_of(thing: Any) -> Any:
    """`x.__class__`."""
    _note_type(thing)
    return thing.__class__


def is_instance(thing: Any, kinds: Any) -> bool:
    """`isinstance(x, kinds)`."""
    if is_traced_number(thing) and issubclass(int, kinds) != issubclass(float, kinds):
        _note_type(thing)
    return isinstance(thing, kinds)


def type_of(thing: Any) -> Any:
    """`type(x)`."""
    _note_type(thing)
    if is_traced(thing) or type(thing) is TracedArray:
        return thing.__class__
    return original_class(type(thing))  # of parameters that live in a kernel's memory


def has_traced(argument: Any) -> bool:
    """Whether something is traced, or a list or tuple with traced numbers in it."""
    return is_traced(argument) or (type(argument) in (list, tuple) and any(map(is_traced, argument)))
