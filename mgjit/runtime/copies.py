"""Numbers of the user's objects that are copied into a state before each call and back after it.

For numbers that cannot live in a kernel's memory themselves: variables, elements of lists, fields of single objects.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ArgumentError, user_location


@dataclass
class Copied:
    """One number, or a list of numbers.

    Attributes:
        place: where the user has it.
        offset: of the first number in the state.
        size: of the list; 0 for a number that is in no list.
        assigned: whether it is copied back.
        replaced: whether the step puts a new list there instead of assigning elements.
        integers: offsets of the numbers that are ints in Python.
    """

    place: Any
    offset: int
    size: int = 0
    assigned: bool = False
    replaced: bool = False
    integers: frozenset[int] = frozenset()

    def read(self) -> Sequence[Any]:
        """The numbers that are there now.

        Raises:
            ArgumentError: it is no number, or a list of another length.
        """
        content = self.place.read()
        numbers = content if self.size else (content,)
        if self.size and (type(content) is not list or len(content) != self.size):
            raise ArgumentError(
                f"{user_location()}: {self.place.describe()} was a list of {self.size} numbers when the step was "
                "traced. Keep its length, or call step.clear() to trace anew."
            )
        return numbers

    def write(self, numbers: array[float]) -> None:
        """Put numbers back, ints where Python would have ints."""
        found: list[Any] = numbers.tolist()
        for offset in self.integers:
            found[offset - self.offset] = int(found[offset - self.offset])
        if not self.size:
            self.place.write(found[0])
        elif self.replaced:
            self.place.write(found)
        else:
            self.place.read()[:] = found


class Copies:
    """All that a kernel copies."""

    def __init__(self, state: Any, parts: Sequence[Copied]) -> None:
        self._state, self._parts = state, parts
        self._assigned = [part for part in parts if part.assigned]

    def read(self) -> None:
        """Fill the state; nothing is written when something there is no number."""
        buffer = self._state._buffer
        found = []
        for part in self._parts:
            try:
                found.append(array(buffer.typecode, part.read()))
            except (TypeError, OverflowError) as reason:
                raise ArgumentError(f"{user_location()}: {part.place.describe()}: {reason}") from None
        for part, numbers in zip(self._parts, found):
            buffer[part.offset : part.offset + len(numbers)] = numbers

    def write(self) -> None:
        """Put back what the kernel has assigned."""
        buffer = self._state._buffer
        for part in self._assigned:
            part.write(buffer[part.offset : part.offset + (part.size or 1)])
