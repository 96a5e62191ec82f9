"""Where parameters and their gradients live once a step has been compiled: contiguous buffers
of one precision.

`bind` moves Values into a `ParameterStorage` and changes their class to one whose `_data` and `_grad` read
and write the buffers.  Nothing is copied and nothing can be out of date: the kernel and Python see the
same memory.  The classes have no slots of their own, which is what makes changing `__class__` legal; a
Value that was never compiled keeps plain slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..engine.precision import FLOAT64, Precision
from ..engine.state import zero_array
from ..engine.value import Value
from .live import Parameter

#: Bytes of a cache line; vectors that straddle two lines are slower.
_LINE = 64


def aligned_zeros(n: int, precision: Precision = FLOAT64) -> Any:
    """`n` zeros, at the start of a cache line."""
    block = zero_array(n + _LINE // precision.size, precision)
    skip = -block.buffer_info()[0] % _LINE // precision.size
    return memoryview(block)[skip : skip + n]


class ParameterStorage:
    """Data and gradients of `n` parameters, side by side.  What is written is rounded to the precision."""

    __slots__ = ("data", "grad", "precision")

    def __init__(self, n: int, precision: Precision = FLOAT64) -> None:
        self.precision = precision
        self.data = aligned_zeros(n, precision)
        self.grad = aligned_zeros(n, precision)

    def __len__(self) -> int:
        return len(self.data)


def _data(self: Any) -> float:
    return self._storage.data[self._index]  # type: ignore[no-any-return]


def _set_data(self: Any, number: float) -> None:
    self._storage.data[self._index] = number


def _grad(self: Any) -> float:
    return self._storage.grad[self._index]  # type: ignore[no-any-return]


def _set_grad(self: Any, number: float) -> None:
    self._storage.grad[self._index] = number


class BoundValue(Value):
    """A parameter whose data and gradient live in a ParameterStorage."""

    __slots__ = ()
    _data = property(_data, _set_data)
    _grad = property(_grad, _set_grad)


BoundValue.__name__ = BoundValue.__qualname__ = "Value"  # users see a Value, because it is one

#: The bound class of each class of Values (users may derive from Value).
bound_classes: dict[type, type] = {Value: BoundValue}


def bound_class(cls: type) -> type:
    """The class that instances of `cls` get when they are bound."""
    bound = bound_classes.get(cls)
    if bound is None:
        members = {"__slots__": (), "_data": property(_data, _set_data), "_grad": property(_grad, _set_grad)}
        bound = bound_classes[cls] = type(cls.__name__, (cls,), members)
    return bound


def bind(
    values: Sequence[Value | Parameter], places: Sequence[int], size: int, precision: Precision = FLOAT64
) -> ParameterStorage:
    """Move Values that are bound to nothing yet into one new storage of `size` elements, each to its place."""
    storage = ParameterStorage(size, precision)
    for place, value in zip(places, values):
        if not isinstance(value, Parameter):
            storage.data[place] = value.data
            storage.grad[place] = value.grad
    for place, value in zip(places, values):
        if isinstance(value, Parameter):
            value.move(storage, place)
            continue
        value._storage = storage
        value._index = place
        value.__class__ = bound_class(type(value))
    return storage
