"""The sides of an `if` that a rewritten function takes (source/branches.py): one, or both when the test is traced.

What both may not do is for untaken.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...errors import TraceError, user_location
from .implicit import Doing
from .stores import Changes, is_number, refuse, select_changes
from .untaken import Reached, Untaken

_MISSING = object()
Readers = Sequence[Callable[[], Any]]


class OneSide:
    """The only side: nothing is put back or selected."""

    __slots__ = ("chosen",)
    is_both = False

    def __init__(self, chosen: bool) -> None:
        self.chosen = chosen

    def __enter__(self) -> None:
        """Its statements begin."""

    def __exit__(self, *_: object) -> None:
        """They have ended, or raised an error."""


#: Where a test has an answer: the sides to take, by that.
ONE_SIDE = ((OneSide(False),), (OneSide(True),))


class BothSides:
    """The first side, then the second one."""

    is_both = True

    def __init__(
        self,
        test: Any,
        does: Doing,
        named: Sequence[str],
        written_out: Sequence[str],
        outer: Sequence[str],
        line: int,
        select: Callable[..., Any],
    ) -> None:
        self.chosen, self._test, self._does, self._named, self._select = True, test, does, named, select
        self._written_out, self._outer, self._line = written_out, outer, line
        self._before: list[Any] = []
        self._first: list[Any] = []
        self._second: list[Any] = []
        self._changes: Changes

    def enter(self, readers: Readers, changed: Readers) -> None:
        """A side begins."""
        if self.chosen:
            frame, recorder = sys._getframe(1), self._test._recorder
            recorder.both_ways[frame.f_code.co_filename, self._line] = None
            self._untaken = Untaken(recorder, self._does, Reached.by_frame(frame, self._named))
            self._untaken.frame = id(frame)
            del frame
            self._untaken.__enter__()
            self._before = list(map(_content, readers))
            for content in map(_content, changed):
                if content is not _MISSING and hasattr(type(content), "__iadd__"):
                    raise TraceError(
                        f"{user_location()}: both sides of an `if` on a traced number are computed, and one changes a "
                        f"{type(content).__name__} in place. Write y = y + ... instead of y += ...."
                    )
        else:
            self._untaken.begin()

    def __enter__(self) -> None:
        """Its statements begin."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """They have ended, or raised an error."""
        if error is not None:
            self._untaken.note(error)

    def back(self, position: int) -> bool:
        """Whether a name is to be what it was before the first side."""
        return not self.chosen and self._before[position] is not _MISSING

    def before(self, position: int) -> Any:
        """What a name was before the first side."""
        return self._before[position]

    def leave(self, readers: Readers) -> None:
        """A side has ended."""
        contents = list(map(_content, readers))
        self._names = [(*reader.__code__.co_freevars, *reader.__code__.co_names)[0] for reader in readers]
        for name, before, after in zip(self._names, self._before, contents):
            if name in self._outer and before is not after and not (is_number(before) and is_number(after)):
                refuse(f"{name}, and not a number in place of another one")
        changes = self._untaken.put_back(dict(zip(self._names, contents)))
        if self.chosen:
            self._first, self._changes = contents, changes
        else:
            self._second = contents
            select_changes(self._test, self._changes, changes, self._select)
            del self._untaken, self._changes

    def done(self, position: int) -> bool:
        """Whether a name is to be what is selected; one that a side has not assigned has the content of the other."""
        return bool(self._second) and self._first[position] is not _MISSING

    def selected(self, position: int) -> Any:
        """What a name is after both sides."""
        first, second = self._first[position], self._second[position]
        if second is _MISSING or first is second:
            return first
        return self._select(self._test, first, second, self._names[position] in self._written_out)


def _content(reader: Callable[[], Any]) -> Any:
    try:
        return reader()
    except NameError:
        return _MISSING


def both_sides(
    test: Any,
    select: Callable[..., Any],
    does: Doing,
    named: Sequence[str],
    written_out: Sequence[str],
    outer: Sequence[str],
    line: int,
) -> Iterator[BothSides]:
    """The first side, and then the second one, of an `if` on a traced number.

    Args:
        does: what they do (implicit.py). named: the names in them.
        written_out: the names that mean new lists or dicts after both. outer: those that are not local.
        line: of the statement.
    """
    both = BothSides(test, does, named, written_out, outer, line, select)
    yield both
    both.chosen = False
    yield both
