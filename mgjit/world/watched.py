"""What the user has around a step besides numbers: compared after a trace with what it was before."""

from __future__ import annotations

from collections.abc import Collection
from operator import is_
from typing import Any

from ..record.leaks import Symbol, is_traced, is_traced_number
from .functions import attributes
from .ownership import is_of_user
from .places import Attribute, ClassAttribute, Element, Place

#: How deep traced values are looked for in what a step leaves behind.
_DEPTH = 4


class Watched:
    """One place, and when a list or dict lies there, its parts."""

    __slots__ = ("_before", "_parts", "place")

    def __init__(self, place: Place, content: Any) -> None:
        self.place, self._before = place, content
        self._parts = content.copy() if type(content) in (list, dict) else None

    def _now(self) -> Any:
        # That another thing lies in a list shows where the list itself is watched; lists may be nested deeply.
        return self._before if isinstance(self.place, Element) else self.place.read()

    def holder(self) -> Any:
        """The list or dict that lay there."""
        return self._before

    def changes(self, numbers: Collection[Any]) -> list[Any]:
        """What is there now and was not before; something when anything is different.

        Args:
            numbers: keys of a dict that are looked after elsewhere.
        """
        now = self._now()
        if now is not self._before:
            return [now]
        if type(now) is list and self._parts is not None:
            if len(now) == len(self._parts) and all(map(is_, now, self._parts)):
                return []
            before = {id(part) for part in self._parts}
            return [part for part in now if id(part) not in before] or [now]
        if type(now) is dict and self._parts is not None:
            parts = self._parts
            new = [part for key, part in now.items() if key not in numbers and parts.get(key, parts) is not part]
            return new or ([now] if len(now) != len(parts) else [])
        return []

    def are_numbers(self) -> bool:
        """Whether all that is different are numbers where there were numbers."""
        now, parts = self._now(), self._parts
        if isinstance(self.place, ClassAttribute):
            return isinstance(now, (int, float))
        if now is not self._before or parts is None or len(now) != len(parts):
            return False
        pairs = zip(parts, now) if type(parts) is list else ((part, now.get(key)) for key, part in parts.items())
        return all(new is old or (type(old) in (float, int) and isinstance(new, (float, int))) for old, new in pairs)

    def was_nothing(self) -> bool:
        """Whether there is a traced number now in a field that held None."""
        return self._before is None and isinstance(self.place, Attribute) and is_traced_number(self.place.read())

    def restore(self) -> None:
        """Put back what was there."""
        if self._now() is not self._before:
            self.place.write(self._before)
        if self._parts is not None:
            if type(self._before) is list:
                self._before[:] = self._parts
            else:
                self._before.clear()
                self._before.update(self._parts)


def holds_traced(thing: Any, depth: int = _DEPTH) -> bool:
    """Whether something is, or contains, a value that lives only during a trace."""
    if is_traced(thing) or isinstance(thing, Symbol):
        return True
    if depth == 0:
        return False
    if type(thing) in (list, tuple, set, frozenset):
        return any(holds_traced(part, depth - 1) for part in thing)
    if type(thing) is dict:
        return any(holds_traced(part, depth - 1) for part in thing.values())
    return is_of_user(type(thing)) and any(holds_traced(part, depth - 1) for part in attributes(thing).values())
