"""The sides of an `if` that a rewritten function takes (source/branches.py): one, or both when the test is traced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..errors import TraceError, user_location
from ..record.leaks import TracedView, is_traced

_MISSING = object()
Readers = Sequence[Callable[[], Any]]


class OneSide:
    """The only side: nothing is put back or selected."""

    __slots__ = ("chosen",)

    def __init__(self, chosen: bool) -> None:
        self.chosen = chosen

    def enter(self, readers: Readers, changed: Readers) -> None:
        """The side begins."""

    def leave(self, readers: Readers) -> None:
        """The side has ended."""

    def back(self, position: int) -> bool:
        """Whether a name is to be what it was before the first side."""
        return False

    done = back


class BothSides:
    """The first side, then the second one."""

    def __init__(self, test: Any, select: Callable[[Any, Any, Any], Any]) -> None:
        self.chosen, self._test, self._select = True, test, select
        self._before: list[Any] = []
        self._first: list[Any] = []
        self._second: list[Any] = []

    def enter(self, readers: Readers, changed: Readers) -> None:
        """A side begins."""
        if self.chosen:
            self._before = list(map(_content, readers))
            for content in map(_content, changed):
                if content is not _MISSING and hasattr(type(content), "__iadd__"):
                    raise TraceError(
                        f"{user_location()}: both sides of an `if` on a traced number are computed, and one changes a "
                        f"{type(content).__name__} in place. Write y = y + ... instead of y += ...."
                    )

    def back(self, position: int) -> bool:
        """Whether a name is to be what it was before the first side."""
        return not self.chosen and self._before[position] is not _MISSING

    def before(self, position: int) -> Any:
        """What a name was before the first side."""
        return self._before[position]

    def leave(self, readers: Readers) -> None:
        """A side has ended."""
        if self.chosen:
            self._first = list(map(_content, readers))
        else:
            self._second = list(map(_content, readers))

    def done(self, position: int) -> bool:
        """Whether a name is to be what is selected; one that a side has not assigned has the content of the other."""
        return bool(self._second) and self._first[position] is not _MISSING

    def selected(self, position: int) -> Any:
        """What a name is after both sides."""
        first, second = self._first[position], self._second[position]
        if second is _MISSING or first is second:
            return first
        return self._select(self._test, first, second)


def _content(reader: Callable[[], Any]) -> Any:
    try:
        return reader()
    except NameError:
        return _MISSING


def sides_of(test: Any, select: Callable[[Any, Any, Any], Any]) -> Iterator[Any]:
    """The sides to take."""
    if type(test) is bool or not is_traced(test) or issubclass(type(test), TracedView):
        yield OneSide(bool(test))
        return
    both = BothSides(test, select)
    yield both
    both.chosen = False
    yield both
