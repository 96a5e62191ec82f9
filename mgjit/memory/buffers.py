"""The memory of parameters and gradients once a step has been compiled: contiguous buffers of one precision.

A Value moves into a `ParameterStorage` when its class is changed to one whose `_data` and `_grad` read and write the
buffers.  The kernel and Python then see the same memory, so nothing is copied and nothing can be out of date.  The
classes have no slots of their own, which makes changing `__class__` legal; a Value that was never compiled keeps plain
slots.

The first run of a kernel moves everything at once, by a `Move`:

1. `fill` copies the numbers into the new memory.  The kernel runs there, while Python still sees the old numbers.
2. `commit` switches Values and State over to the new memory, in one call into C that no signal interrupts.

So a call that ends before the kernel has run leaves nothing behind, not even the rounding to float32.  If two kernels
in two threads are to move the same parameters, the second finds them moved, and is made again.
"""

from __future__ import annotations

import functools
import math
from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain, compress, repeat
from operator import attrgetter, is_not, not_, setitem
from typing import TYPE_CHECKING, Any

from ..base import settings
from ..base.interruption import new_lock
from ..base.lookup import derived_unnoticed
from ..engine.precision import FLOAT64, Precision
from ..engine.state import State, zero_array
from ..engine.value import Value
from ..ir.parameters import NATURAL, Layouts, ParameterLayout
from .parameter import Parameter

if TYPE_CHECKING:
    from ..ir.trace import Trace

_data_of, _grad_of, _is_bound = attrgetter("_data"), attrgetter("_grad"), attrgetter("_is_bound")
_SET_STORAGE, _SET_INDEX = (Value.__dict__[name].__set__ for name in ("_storage", "_index"))
_SET_CLASS = object.__dict__["__class__"].__set__

#: Bytes per cache line; vectors that straddle two lines are slower.
_LINE = 64


def aligned_zeros(n: int, precision: Precision = FLOAT64) -> Any:
    """`n` zeros, at the start of a cache line."""
    block = zero_array(n + _LINE // precision.size, precision)
    skip = -block.buffer_info()[0] % _LINE // precision.size
    return memoryview(block)[skip : skip + n]


class SharedScratch:
    """Memory that nobody reads before it was written in the same call, for kernels that never run at the same time.

    Kernels for different lengths, called in turn, keep it in the processor's caches, where each would push out that of
    the others.
    """

    __slots__ = ("_blocks",)

    def __init__(self) -> None:
        self._blocks: dict[str, Any] = {}

    def block(self, n: int, precision: Precision) -> Any:
        """Memory for `n` numbers.  What was given out before stays in use where a larger one is needed."""
        known = self._blocks.get(precision.format)
        if known is None or len(known) < n:
            more = 0 if known is None else n // 4  # for lengths that grow
            known = self._blocks[precision.format] = aligned_zeros(n + more, precision)
            if settings.checks_passes():
                known[:] = array(precision.format, [math.nan]) * len(known)  # whoever relies on zeros is found
        return known[:n]


class ParameterStorage:
    """Data and gradients of `n` parameters in contiguous arrays.  Numbers are rounded to the precision when written.

    Parameters have numbers in their natural order, which traces know them by, and places in the arrays, which may be
    others: the layout says which.

    Attributes:
        is_shared: whether kernels of several steps work here.
        has_homes: whether there are objects with homes here (live.py), which know the arrays themselves.
        users, late: the kernels that work on the gradients, and what lets them be late (late.py); None at first.
    """

    __slots__ = (
        "_numbers", "_user", "data", "grad", "has_homes", "is_shared", "late", "layout", "precision", "size", "users",
    )  # fmt: skip

    def __init__(self, n: int, precision: Precision = FLOAT64, layout: ParameterLayout | None = None) -> None:
        self.precision, self.size, self.layout = precision, n, layout
        places = n if layout is None else layout.size
        self.data = aligned_zeros(places, precision)
        self.grad = aligned_zeros(places, precision)
        self._numbers: dict[int, int] = {}
        self._user: Any = None
        self.is_shared = self.has_homes = False
        self.late: Any = None
        self.users: Any = None

    def settle(self) -> None:
        """Let no gradients be due that are late."""
        if self.late is not None:
            self.late.settle()

    def note_user(self, user: Any) -> None:
        """Note that a step has a kernel that works here; `is_shared` says whether several have."""
        self.is_shared |= self._user not in (None, user)
        self._user = user

    def is_only_of(self, user: Any) -> bool:
        """Whether no other step has had a kernel that works here."""
        return not self.is_shared and self._user in (None, user)

    def __len__(self) -> int:
        return self.size

    def places(self, numbers: Sequence[int]) -> Sequence[int]:
        """Where the parameters with these numbers lie."""
        return numbers if self.layout is None else self.layout.positions(numbers)

    def number(self, place: int) -> int:
        """The number of the parameter that lies at a place."""
        if self.layout is None:
            return place
        if not self._numbers:
            self._numbers = dict(zip(self.layout.positions(range(self.size)), range(self.size)))
        return self._numbers[place]


class LaidOut:
    """The numbers of a State, in their natural order, that lie in memory in the order of a layout.

    Attributes:
        memory: what a kernel works on.
        layout: the place of each number.
        typecode: of the memory.
    """

    __slots__ = ("layout", "memory", "places", "typecode")

    def __init__(self, memory: array[float], size: int, layout: ParameterLayout) -> None:
        self.memory, self.layout, self.typecode = memory, layout, memory.typecode
        self.places = layout.positions(range(size))

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return array(self.typecode, map(self.memory.__getitem__, self.places[index]))
        return self.memory[self.places[index]]

    def __setitem__(self, index: Any, numbers: Any) -> None:
        if isinstance(index, slice):
            deque(map(self.memory.__setitem__, self.places[index], numbers), maxlen=0)
        else:
            self.memory[self.places[index]] = numbers

    def __iter__(self) -> Iterator[float]:
        return map(self.memory.__getitem__, self.places)

    def copy(self) -> LaidOut:
        """The same numbers in other memory."""
        return LaidOut(self.memory[:], len(self), self.layout)


def state_numbers(size: int, precision: Precision, layout: ParameterLayout | None) -> Any:
    """Zeros for a State, in an array of their own: in this layout, or in their natural order."""
    if layout is None:
        return zero_array(size, precision)
    return LaidOut(zero_array(layout.size, precision), size, layout)


def memory_of(numbers: Any) -> array[float]:
    """The memory in which the numbers of a State lie."""
    return numbers.memory if isinstance(numbers, LaidOut) else numbers


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


BoundValue.__name__ = BoundValue.__qualname__ = "Value"  # an implementation detail, so users see a plain Value

#: The bound class for each class of Values (users may derive from Value).
bound_classes: dict[type, type] = {Value: BoundValue}


def bound_class(cls: type) -> type:
    """The class that instances of `cls` get when they are bound."""
    bound = bound_classes.get(cls)
    if bound is None:
        copied = ("_is_bound", "_data", "_grad")
        members: dict[str, Any] = {name: BoundValue.__dict__[name] for name in copied}
        members.update(__module__=cls.__module__, __qualname__=cls.__qualname__, _mgjit_original=cls)
        bound = bound_classes[cls] = derived_unnoticed(cls, members)
    return bound


def storage_of(value: Value) -> ParameterStorage | None:
    """The storage that a Value lives in, or None if no kernel has moved it."""
    return value._storage if value._is_bound else None


def home_of(thing: Value | Parameter) -> tuple[ParameterStorage | None, int]:
    """The storage that a parameter lives in, and its number there; None and 0 if no kernel has moved it."""
    if isinstance(thing, Parameter):
        storage, place = thing.home()
    else:
        storage, place = (thing._storage, thing._index) if thing._is_bound else (None, 0)
    return storage, 0 if storage is None else storage.number(place)


#: Held from `fill` to `commit`, so that there is one move at a time.
moving = new_lock()


class Moved(Exception):
    """Another kernel has moved some of these parameters or this state since this kernel was made."""


class Move:
    """Parameters and state that a kernel is going to move into its memory.

    Args:
        values: the parameters, which no kernel has moved yet.
        numbers: the number of each of them in the storage.
        size: how many numbers there are.
        states: all states that the kernel uses, moved or not.
        layouts: where the parameters lie in the storage, and state that no kernel uses yet.
    """

    def __init__(
        self,
        values: Sequence[Value | Parameter],
        numbers: Sequence[int],
        size: int,
        states: Sequence[State] = (),
        precision: Precision = FLOAT64,
        layouts: Layouts = NATURAL,
    ) -> None:
        self.storage = ParameterStorage(size, precision, layouts.parameters)
        types = list(map(type, values))  # read once: another thread may be moving them now, which `fill` notices
        kinds: set[Any] = set(types)
        is_object = [kind is Parameter for kind in types] if Parameter in kinds else []
        places = self.storage.places(numbers)
        self._objects: list[tuple[Any, int]] = list(compress(zip(values, places), is_object))
        of_values = list(map(not_, is_object)) or repeat(True)
        self._values: list[Any] = list(compress(values, of_values))
        self._places = list(compress(places, of_values))
        self._precision = precision
        bound = {kind: kind if kind._is_bound else bound_class(kind) for kind in kinds if kind is not Parameter}
        self._classes = list(map(bound.__getitem__, compress(types, of_values)))
        self.storage.has_homes = bool(self._objects)
        self._moves = [move for thing, place in self._objects for move in thing.moves(self.storage, place)]
        self._states = states
        self._old_numbers = [state._buffer for state in states]
        #: For each state, its numbers in the kernel's precision and layout.
        self.state_numbers = [
            old
            if old.typecode == precision.format and region not in layouts.states
            else state_numbers(len(old), precision, layouts.states.get(region))
            for region, old in enumerate(self._old_numbers)
        ]
        #: For each state, the memory in which they lie.
        self.state_buffers = list(map(memory_of, self.state_numbers))

    @classmethod
    def of_trace(cls, trace: Trace, layouts: Layouts) -> Move:
        """What the first run of a traced kernel has to move: the parameters that no kernel owns yet, and the state."""
        start = trace.new_parameters[0][0] if trace.new_parameters else 0
        numbers = [number - start for number, _ in trace.new_parameters]
        size = numbers[-1] + 1 if numbers else 0
        values, states = [value for _, value in trace.new_parameters], [state for _, state in trace.states]
        return cls(values, numbers, size, states, trace.precision, layouts)

    def fill(self) -> None:
        """Copy the numbers into the new memory.

        Raises:
            Moved: another kernel has moved some of them in the meantime.
        """
        present = [state._buffer for state in self._states]
        if any(map(_is_bound, self._values)) or any(map(is_not, present, self._old_numbers)):
            raise Moved
        if any(thing.has_moved() for thing, _ in self._objects):
            raise Moved
        data, grad = self.storage.data, self.storage.grad
        for numbers, read in ((data, _data_of), (grad, _grad_of)):
            deque(map(setitem, repeat(numbers), self._places, map(read, self._values)), maxlen=0)
        for thing, place in self._objects:
            thing.copy(self.storage, place)
        for old, new in zip(self._old_numbers, self.state_numbers):
            if old is not new:
                for index, number in enumerate(old):
                    new[index] = number

    def commit(self) -> None:
        """Switch the Values and states over to the kernel's memory; does nothing the second time."""
        assignments = chain(
            map(_SET_STORAGE, self._values, repeat(self.storage)),
            map(_SET_INDEX, self._values, self._places),
            map(object.__setattr__, self._states, repeat("_buffer"), self.state_numbers),
            map(object.__setattr__, self._states, repeat("_precision"), repeat(self._precision)),
            map(_SET_CLASS, self._values, self._classes),
        )
        deque(assignments, maxlen=0)  # one call into C, during which no other Python code can run
        deque(map(functools.partial.__call__, self._moves), maxlen=0)


def bind(
    values: Sequence[Value | Parameter], numbers: Sequence[int], size: int, precision: Precision = FLOAT64
) -> ParameterStorage:
    """Move Values and other objects that no kernel has moved yet into one new storage of `size` elements."""
    move = Move(values, numbers, size, (), precision)
    move.fill()
    move.commit()
    return move.storage
