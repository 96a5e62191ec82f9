"""Iterators and files that existed before a step, of which each call would have to take the next element.

While a step is traced, stand-ins lie in their places, which raise an error when they are used.  What is printed,
written to a file or logged is for effects.py; what the clock, the system and libraries answer, for outside.py.
"""

from __future__ import annotations

import contextlib
import copy
import io
import itertools
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from ...engine.leaks import PlainCall
from ...errors import TraceError, user_location
from ..surroundings.places import Place, is_writable


class Iterators:
    """Iterators that existed before a step: none of them goes on while it is traced.

    Stand-ins take their places.  That of an itertools.count counts by itself, which is reported; any other one raises
    an error when it is used.  An iterator that lies where nothing else can be put, as in a tuple or behind a method,
    is refused before the step runs, because nothing could give back what the trace takes from it.

    Args:
        found: their places, and the iterators.
    """

    def __init__(self, found: Sequence[tuple[Place, Any]]) -> None:
        self._found = found
        self._replaced: list[tuple[Place, Any, _Halted]] = []

    def halt(self) -> None:
        """Replace them by stand-ins; `restore` must follow, also after an error."""
        stand_ins: dict[int, _Halted] = {}  # one for each iterator, which may have several names
        for place, iterator in self._found:
            if is_writable(place):
                stand_in = stand_ins.get(id(iterator)) or _stand_in(iterator, place.describe())
                stand_ins[id(iterator)] = stand_in
                place.write(stand_in)
                self._replaced.append((place, iterator, stand_in))
            elif not isinstance(iterator, io.IOBase) or (not iterator.closed and iterator.readable()):
                raise TraceError(_takes(place.describe()))

    def restore(self) -> list[Place]:
        """Restore the iterators, but for places where the step has put something else, which is left for others.

        Returns:
            The places of those that have advanced.
        """
        for place, iterator, stand_in in self._replaced:
            with contextlib.suppress(LookupError, AttributeError, ValueError):  # where nothing lies any more
                if place.read() is stand_in:
                    place.write(iterator)
        return [place for place, _, stand_in in self._replaced if stand_in.has_advanced]


def _takes(text: str) -> str:
    return (
        f"{user_location()}: the step takes the next element of {text}, which existed before it. Compiled calls would "
        "all use the one that was taken while the step was traced: take it outside of the step, and pass it as an "
        "argument."
    )


def _asks(text: str) -> str:
    return (
        f"{user_location()}: the step asks for the state of {text}, an iterator or file that existed before it. "
        "Compiled calls would all use what the trace has got: ask outside of the step, and pass it as an argument."
    )


class _Halted:
    """Stands for an iterator or a file while a step is traced.

    Args:
        text: describes its place.
    """

    has_advanced = False

    def __init__(self, original: Any, text: str) -> None:
        self._original, self._text = original, text

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # for isinstance()
        return type(self._original)

    def __bool__(self) -> bool:
        return True  # as any iterator

    def __iter__(self) -> Any:
        return self

    def __next__(self, *_: Any) -> Any:
        raise TraceError(_takes(self._text))

    send = throw = read = readline = readlines = __next__

    def _ask(self, *_: Any) -> Any:
        raise TraceError(_asks(self._text))

    __repr__ = __hash__ = __eq__ = __copy__ = __deepcopy__ = __reduce_ex__ = _ask

    def __length_hint__(self) -> int:
        raise PlainCall(_asks(self._text))  # operator.length_hint() takes a TypeError for an answer

    def __getattr__(self, name: str) -> Any:
        if isinstance(self._original, io.IOBase) and name in _OF_FILES:
            return getattr(self._original, name)
        raise TraceError(_asks(self._text))


#: What a step may use of a file, which effects.py reports.
_OF_FILES = ("write", "writelines", "flush", "name", "mode", "encoding", "errors", "newlines", "isatty", "fileno")


class _Counting(_Halted):
    """Stands for an itertools.count, such as one that numbers the nodes of a graph."""

    def __init__(self, original: Any, text: str) -> None:
        super().__init__(original, text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.14 has no copies
            self._copy = copy.copy(original)

    def __next__(self, *_: Any) -> Any:
        self.has_advanced = True
        return next(self._copy)


def _stand_in(iterator: Any, text: str) -> _Halted:
    can_be_copied = type(iterator) is itertools.count and sys.version_info < (3, 14)
    return (_Counting if can_be_copied else _Halted)(iterator, text)
