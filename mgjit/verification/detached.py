"""Detach parameters from kernels: during a plain call they are ordinary objects again.

An object whose numbers live in the memory of a kernel has another class, and attributes that can only hold floats.  A
step can tell the difference: `type(p) is Node`, `p.grad = None`.  So before a plain call the numbers return to the
objects, and after it the memory gets what the objects then hold; None becomes 0.0, as in every compiled call.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ..engine.value import Value
from ..interruption import with_cleanup
from ..runtime.live import Field, Home, field_of, set_class

T = TypeVar("T")

_VALUE_FIELDS = (field_of(Value, "_data"), field_of(Value, "_grad"))


def is_attached(thing: Any) -> bool:
    """Whether numbers of an object live in the memory of a kernel."""
    return (isinstance(thing, Value) and thing._is_bound) or hasattr(type(thing), "_mgjit_original")


class Detached:
    """The objects whose numbers live in the memory of kernels.

    Args:
        things: these objects.
    """

    def __init__(self, things: Iterable[Any]) -> None:
        self._things = list(things)
        self._classes: list[tuple[Any, type]] = []
        self._homes: list[tuple[Any, Field, Home]] = []
        self._fields: dict[type, list[Field]] = {}

    def during(self, work: Callable[[], T]) -> T:
        """Return `work()`, run while they are ordinary objects."""

        def run() -> T:
            for thing in self._things:
                if is_attached(thing):
                    self._detach(thing)
            return work()

        return with_cleanup(run, self._attach)

    def _detach(self, thing: Any) -> None:
        kind = type(thing)
        if isinstance(thing, Value):
            storage = thing._storage
            homes = [Home(memory, thing._index, storage) for memory in (storage.data, storage.grad)]
            found = list(zip(_VALUE_FIELDS, homes))
            original = kind.__bases__[0]
        else:
            original = kind._mgjit_original
            if kind not in self._fields:
                self._fields[kind] = [field_of(original, name) for name in kind._mgjit_fields]
            found = [(field, content) for field in self._fields[kind] if type(content := field.read(thing)) is Home]
        self._homes += [(thing, field, home) for field, home in found]
        for field, home in found:
            field.write(thing, home.number)
        self._classes.append((thing, kind))
        set_class(thing, original)

    def _attach(self) -> None:
        """May be repeated."""
        for thing, kind in self._classes:
            set_class(thing, kind)
        for thing, field, home in self._homes:
            number: Any = 0.0
            with contextlib.suppress(AttributeError, KeyError):
                number = field.read(thing)
            if type(number) is Home:
                continue
            with contextlib.suppress(TypeError):  # not a number: the step would not have been compiled
                home.array[home.index] = 0.0 if number is None else number
            if not isinstance(thing, Value):
                field.write(thing, home)
        self._classes, self._homes = [], []
