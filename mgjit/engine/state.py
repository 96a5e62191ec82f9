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

from . import hook
from .precision import FLOAT64, Precision, require_precision


class State:
    """A list of floats of fixed length; elements are read and assigned by integer index."""

    __slots__ = ("__weakref__", "_buffer", "_leaf", "_precision", "_trace")

    def __init__(self, values: Iterable[Any]) -> None:
        self._buffer = array("d", values)
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
        return self._buffer[index]

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
                raise ValueError(f"a State has a fixed length: {len(positions)} elements cannot become {len(values)}")
            for position, element in zip(positions, values):
                self[position] = element
        else:
            self._buffer[index] = value

    def _require(self, precision: Precision) -> None:
        """Raise a PrecisionError when kernels with numbers of another kind use this state."""
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
    """`n` floats of state, all 0.0, e.g. `m = mgjit.zeros(len(model.parameters()))`."""
    return State(zero_array(n))


def zero_array(n: int, precision: Precision = FLOAT64) -> array[float]:
    """A zeroed array of `n` elements."""
    return array(precision.format, bytes(precision.size * n))
