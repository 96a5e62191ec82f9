"""Where parameters and their gradients live once a step has been compiled: contiguous buffers
of one precision.

A Value moves into a `ParameterStorage` by changing its class to one whose `_data` and `_grad` read and write the
buffers.  Nothing is copied and nothing can be out of date: the kernel and Python see the same memory.  The
classes have no slots of their own, which is what makes changing `__class__` legal; a Value that was never compiled
keeps plain slots.

A `Move` is what the first run of a kernel moves, all at once:

1. `fill` copies the numbers into the new memory.  The kernel runs there, while Python still sees the old numbers.
2. `commit` lets Values and State show the new memory, in one call of C that no signal interrupts.

So a call that ends before it has run leaves nothing behind, not even the rounding to float32.  Of two kernels that
would move the same parameters, in two threads, the second finds them moved, and is made again.
"""

from __future__ import annotations

import functools
import operator
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

from ..engine.precision import FLOAT64, Precision
from ..engine.state import State, zero_array
from ..engine.value import Value
from ..interruption import new_lock
from ..passes.layout import ParameterLayout
from .live import Parameter

if TYPE_CHECKING:
    from ..record.recorder import Trace

_is_not = operator.is_not

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
    _is_bound = True
    _data = property(_data, _set_data)
    _grad = property(_grad, _set_grad)


BoundValue.__name__ = BoundValue.__qualname__ = "Value"  # users see a Value, because it is one

#: The bound class of each class of Values (users may derive from Value).
bound_classes: dict[type, type] = {Value: BoundValue}


def bound_class(cls: type) -> type:
    """The class that instances of `cls` get when they are bound."""
    bound = bound_classes.get(cls)
    if bound is None:
        members = {name: BoundValue.__dict__[name] for name in ("__slots__", "_is_bound", "_data", "_grad")}
        bound = bound_classes[cls] = type(cls.__name__, (cls,), members)
    return bound


def storage_of(value: Value) -> ParameterStorage | None:
    """Where a Value lives, or None for one that no kernel has moved."""
    return value._storage if value._is_bound else None


#: Held from `fill` to `commit`: one move at a time.
moving = new_lock()


class Moved(Exception):
    """Another kernel has moved some of these parameters or this state since this kernel was made."""


class Move:
    """Parameters and state that a kernel is going to move into its memory.

    Args:
        values: that are bound to nothing yet.
        places: of each of them in the storage.
        size: of the storage.
        states: that the kernel uses, moved or not.
    """

    def __init__(
        self,
        values: Sequence[Value | Parameter],
        places: Sequence[int],
        size: int,
        states: Sequence[State] = (),
        precision: Precision = FLOAT64,
    ) -> None:
        self.storage = ParameterStorage(size, precision)
        found = list(zip(values, places))
        self._objects = [(value, place) for value, place in found if isinstance(value, Parameter)]
        self._values = [value for value, _ in found if not isinstance(value, Parameter)]
        self._places = [place for value, place in found if not isinstance(value, Parameter)]
        self._precision = precision
        self._classes = [bound_class(type(value)) for value in self._values]
        self._moves = [move for thing, place in self._objects for move in thing.moves(self.storage, place)]
        self._states = states
        self._old_buffers = [state._buffer for state in states]
        #: Of each state, in the numbers of the kernel.
        self.state_buffers = [
            buffer if buffer.typecode == precision.format else zero_array(len(buffer), precision)
            for buffer in self._old_buffers
        ]

    @classmethod
    def of_trace(cls, trace: Trace, layout: ParameterLayout | None) -> Move:
        """What the first run of a trace has to move: the parameters that it has met first, and the state."""
        start = trace.new_parameters[0][0] if trace.new_parameters else 0
        places = [number - start for number, _ in trace.new_parameters]
        size = places[-1] + 1 if places else 0
        if layout is not None and places:
            places, size = layout.positions(places), layout.size
        values, states = [value for _, value in trace.new_parameters], [state for _, state in trace.states]
        return cls(values, places, size, states, trace.precision)

    def fill(self) -> None:
        """Copy the numbers.

        Raises:
            Moved: something of it lives elsewhere by now.
        """
        buffers = [state._buffer for state in self._states]
        if any(value._is_bound for value in self._values) or any(map(_is_not, buffers, self._old_buffers)):
            raise Moved
        if any(thing.has_moved() for thing, _ in self._objects):
            raise Moved
        data, grad = self.storage.data, self.storage.grad
        for place, value in zip(self._places, self._values):
            data[place] = value._data
            grad[place] = value._grad
        for thing, place in self._objects:
            thing.copy(self.storage, place)
        for old, new in zip(self._old_buffers, self.state_buffers):
            if old is not new:
                for index, number in enumerate(old):
                    new[index] = number

    def commit(self) -> None:
        """Let the Values and states show what is in the memory of the kernel; does nothing the second time."""
        _assign(
            [*self._values, *self._values, *self._states, *self._states, *self._values],
            [
                *repeat("_storage", len(self._values)),
                *repeat("_index", len(self._values)),
                *repeat("_buffer", len(self._states)),
                *repeat("_precision", len(self._states)),
                *repeat("__class__", len(self._values)),
            ],
            [
                *repeat(self.storage, len(self._values)),
                *self._places,
                *self.state_buffers,
                *repeat(self._precision, len(self._states)),
                *self._classes,
            ],
        )
        deque(map(functools.partial.__call__, self._moves), maxlen=0)


def _assign(things: Iterable[Any], names: Iterable[str], contents: Iterable[Any]) -> None:
    """Assign attributes, without a moment at which Python could do anything else."""
    deque(map(object.__setattr__, things, names, contents), maxlen=0)


def bind(
    values: Sequence[Value | Parameter], places: Sequence[int], size: int, precision: Precision = FLOAT64
) -> ParameterStorage:
    """Move Values and other objects that are bound to nothing yet into one new storage of `size` elements."""
    move = Move(values, places, size, (), precision)
    move.fill()
    move.commit()
    return move.storage
