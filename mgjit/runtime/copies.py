"""Numbers of the user's objects that are copied into a state before each call and back after it.

For numbers that cannot live in a kernel's memory themselves: variables, elements of lists, fields of single objects.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
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

    def assignments(self, name_of: Callable[[Any], str]) -> list[str]:
        """Statements that put the `numbers` of the state back, ints where Python would have ints."""
        if not self.size:
            number = f"int(numbers[{self.offset}])" if self.integers else f"numbers[{self.offset}]"
            return [self.place.assignment(name_of, number)]
        part = f"numbers[{self.offset}:{self.offset + self.size}]"
        statements = [f"part = {part}"]
        statements += [f"part[{k - self.offset}] = int(part[{k - self.offset}])" for k in sorted(self.integers)]
        target = self.place.expression(name_of)
        return [*statements, self.place.assignment(name_of, "part") if self.replaced else f"{target}[:] = part"]


class Copies:
    """All that a kernel copies; by two functions that are made for it, as they run in every call."""

    def __init__(self, state: Any, parts: Sequence[Copied]) -> None:
        self._state, self._parts = state, parts
        self._names: dict[int, str] = {}
        self._objects: dict[str, Any] = {"array": array}
        reading = ", ".join(("*" if part.size else "") + part.place.expression(self._name_of) for part in parts)
        lengths = [
            f"type(found := {part.place.expression(self._name_of)}) is list and len(found) == {part.size}"
            for part in parts
            if part.size
        ]
        assigned = [part for part in parts if part.assigned]
        writing = [statement for part in assigned for statement in part.assignments(self._name_of)]
        text = (
            f"def read(code):\n return array(code, [{reading}]) if {' and '.join(lengths) or 'True'} else None\n"
            f"def write(numbers):\n " + "\n ".join([*writing, "return None"])
        )
        exec(compile(text, "<copies>", "exec"), self._objects)  # noqa: S102 - names of objects, and nothing of the user's
        self._runs = _runs(parts)
        self._last = max((part.offset + (part.size or 1) for part in assigned), default=0)

    def _name_of(self, thing: Any) -> str:
        name = self._names.setdefault(id(thing), f"object{len(self._names)}")
        self._objects[name] = thing  # which keeps it alive
        return name

    def read(self) -> None:
        """Fill the state; nothing is written when something there is no number."""
        buffer = self._state._buffer
        try:
            found = self._objects["read"](buffer.typecode)
        except (TypeError, OverflowError, LookupError, AttributeError, ValueError):
            found = None
        if found is None:
            found = self._read_slowly(buffer.typecode)
        for start, offset, size in self._runs:
            buffer[offset : offset + size] = found[start : start + size]

    def _read_slowly(self, typecode: str) -> array[float]:
        """The same, with a message about what is wrong."""
        found: list[Any] = []
        for part in self._parts:
            try:
                found += array(typecode, part.read())
            except (TypeError, OverflowError) as reason:
                raise ArgumentError(f"{user_location()}: {part.place.describe()}: {reason}") from None
        return array(typecode, found)

    def write(self) -> None:
        """Put back what the kernel has assigned."""
        if self._last:
            self._objects["write"](self._state._buffer[: self._last].tolist())


def _runs(parts: Sequence[Copied]) -> list[tuple[int, int, int]]:
    """Stretches of numbers that lie together: where among all that are read, where in the state, and how many."""
    runs: list[tuple[int, int, int]] = []
    position = 0
    for part in parts:
        size = part.size or 1
        if runs and runs[-1][1] + runs[-1][2] == part.offset:
            runs[-1] = (*runs[-1][:2], runs[-1][2] + size)
        else:
            runs.append((position, part.offset, size))
        position += size
    return runs
