"""Parameters of a step: fields of the user's objects that are to live in a kernel's memory, and how they move there."""

from __future__ import annotations

import functools
from typing import Any

from .live import Field, Home, live_class, set_class


class Parameter:
    """One or two fields of an object, such as data and gradient, that are to live in a kernel's memory.

    Attributes:
        live: the names of all fields of the object that live there.
    """

    __slots__ = ("_homes", "_leaf", "fields", "live", "owner")

    def __init__(self, owner: Any, fields: tuple[Field, ...], leaf: int, live: tuple[str, ...]) -> None:
        self.owner, self.fields, self._leaf, self.live = owner, fields, leaf, live
        self._homes: list[list[Home]] = []  # one list for each time that a move has been planned

    def has_moved(self) -> bool:
        """Whether the numbers already live in some kernel's memory."""
        return any(type(field.read(self.owner)) is Home for field in self.fields)

    def home(self) -> tuple[Any, int]:
        """The storage that all of the numbers live in, and where; None and 0 if there is none."""
        homes = [field.read(self.owner) for field in self.fields]
        if any(type(home) is not Home for home in homes):
            return None, 0
        places = {(id(home.storage), home.index) for home in homes}
        return (homes[0].storage, homes[0].index) if len(places) == 1 else (None, 0)

    def copy(self, storage: Any, place: int) -> None:
        """Copy the numbers to `data` and `grad` of a storage."""
        for k, (field, array) in enumerate(zip(self.fields, (storage.data, storage.grad))):
            number = field.read(self.owner)
            if number is not None:
                array[place] = number
                for homes in self._homes:
                    homes[k].see(number)

    def moves(self, storage: Any, place: int) -> list[functools.partial[Any]]:
        """The calls that move the fields there: calls of C functions, which can be repeated."""
        homes = [Home(array, place, storage) for array in (storage.data, storage.grad)]
        self._homes.append(homes)
        made = [field.move(self.owner, home) for field, home in zip(self.fields, homes)]
        cls: Any = live_class(type(self.owner), self.live)  # type: ignore[arg-type]
        return [*made, functools.partial(set_class, self.owner, cls)]
