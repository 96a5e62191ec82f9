"""Mutable float state of a step that is not a parameter: moments of an optimiser, running means.

A `State` is a fixed-length list of floats in one contiguous buffer, which compiled steps read and write
in place.  It is never copied, so what Python sees is always current.  The first compiled step that uses it
decides whether the numbers are float64 or float32.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from threading import get_ident
from typing import Any

from ..errors import ArgumentError, ArgumentValueError, IndexRangeError, described, user_location
from . import hook
from .precision import FLOAT64, Precision, require_precision


class State:
    """A list of floats of fixed length; elements are read and assigned by integer index."""

    __slots__ = ("__weakref__", "_buffer", "_leaf", "_precision", "_trace")

    def __init__(self, values: Iterable[Any]) -> None:
        try:
            self._buffer: Any = array("d", values)  # or LaidOut, see memory/buffers.py
        except TypeError:
            raise ArgumentError(
                f"{user_location()}: a State is made of a list of numbers, not of the {described(values)}. "
                "Pass the .data of Values."
            ) from None
        self._precision: Precision | None = None
        self._trace: Any = None
        self._leaf = 0

    def __len__(self) -> int:
        return len(self._buffer)

    def __getitem__(self, index: Any) -> Any:
        if (
            (recording := hook.recording) is not None
            and recording.thread == get_ident()
            and not isinstance(index, slice)
        ):
            return recording.methods["state"](self, index)
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return self._buffer[self._position(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        if (
            (recording := hook.recording) is not None
            and recording.thread == get_ident()
            and not isinstance(index, slice)
        ):
            recording.methods["state ="](self, index, value)
        elif isinstance(index, slice):
            positions = range(*index.indices(len(self)))
            values = list(value)
            if len(values) != len(positions):
                raise ArgumentValueError(
                    f"{user_location()}: a State has a fixed length: {len(positions)} elements cannot become "
                    f"{len(values)}. Make a new one: mgjit.state(values)."
                )
            for position, element in zip(positions, values):
                self[position] = element
        else:
            position = self._position(index)
            try:
                self._buffer[position] = value
            except TypeError:
                raise ArgumentError(
                    f"{user_location()}: an element of a State is a number, not the {described(value)}."
                ) from None

    def _position(self, index: Any) -> int:
        """The non-negative index of an element."""
        size = len(self._buffer)
        if not hasattr(index, "__index__"):
            raise ArgumentError(f"{user_location()}: the index of a State is an int, not the {described(index)}.")
        position: int = index.__index__()
        if not -size <= position < size:
            raise IndexRangeError(f"{user_location()}: index {position} of a State of {size} elements.")
        return position % size

    @property
    def _layout(self) -> Any:
        """Where a kernel has put the elements in its memory; None for their natural order."""
        return getattr(self._buffer, "layout", None)

    @property
    def _is_new(self) -> bool:
        """Whether no kernel uses this state yet."""
        return self._precision is None

    def _require(self, precision: Precision) -> None:
        """Raise a PrecisionError if kernels of another precision already use this state."""
        if self._precision is not None:
            require_precision("a state", self._precision, precision)

    def __iter__(self) -> Iterator[Any]:
        for index in range(len(self)):
            yield self[index]

    def __repr__(self) -> str:
        return f"mgjit.state({list(self._buffer)})"

    def __reduce__(self) -> Any:
        return type(self), (list(self._buffer),)


def state(values: Iterable[Any]) -> State:
    """Mutable float state from initial values, e.g. `counts = mgjit.state([0.0, 1.0])`.

    Raises:
        TypeError: an element is not a number.
    """
    return State(values)


def zeros(n: int) -> State:
    """`n` floats of state, all 0.0, e.g. `m = mgjit.zeros(len(model.parameters()))`.

    Examples:
        >>> m = mgjit.zeros(3)
        >>> m[1] = 0.5
        >>> list(m)
        [0.0, 0.5, 0.0]
    """
    if not hasattr(n, "__index__") or n.__index__() < 0:
        raise ArgumentValueError(f"{user_location()}: zeros needs a number of elements, not the {described(n)}.")
    return State(zero_array(n.__index__()))


def zero_array(n: int, precision: Precision = FLOAT64) -> array[float]:
    """A zeroed array of `n` elements."""
    return array(precision.format, (0.0,)) * n  # written once, not copied from bytes
