"""Where parameters and their gradients live once a step has been compiled: contiguous float64 buffers.

`bind` moves Values into a `ParameterStorage` and changes their class to one whose `_data` and `_grad` read
and write the buffers.  Nothing is copied and nothing can be out of date: the kernel and Python see the
same memory.  The classes have no slots of their own, which is what makes changing `__class__` legal; a
Value that was never compiled keeps plain slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..engine.state import zero_array
from ..engine.value import Value

#: Bytes of a cache line; vectors that straddle two lines are slower.
_LINE = 64


def aligned_zeros(n: int) -> Any:
    """`n` zeros in float64, at the start of a cache line."""
    block = zero_array(n + _LINE // 8)
    skip = -block.buffer_info()[0] % _LINE // 8
    return memoryview(block)[skip : skip + n]


class ParameterStorage:
    """Data and gradients of `n` parameters, side by side."""

    __slots__ = ("data", "grad")

    def __init__(self, n: int) -> None:
        self.data = aligned_zeros(n)
        self.grad = aligned_zeros(n)

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


def bind(values: Sequence[Value], places: Sequence[int], size: int) -> ParameterStorage:
    """Move Values that are bound to nothing yet into one new storage of `size` elements, each to its place."""
    storage = ParameterStorage(size)
    for place, value in zip(places, values):
        storage.data[place] = value.data
        storage.grad[place] = value.grad
    for place, value in zip(places, values):
        value._storage = storage
        value._index = place
        value.__class__ = bound_class(type(value))
    return storage
