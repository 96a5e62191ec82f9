"""The contents of traced arguments before and after a trace, which show whether the step has changed one in place."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from operator import is_
from typing import Any

from ..lookup import has, variables
from ..record.leaks import Traced


class Numbers:
    """The elements of a list of traced numbers: equal to others that are the same objects."""

    __slots__ = ("things",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, things: Sequence[Any]) -> None:
        self.things = tuple(things)

    def __len__(self) -> int:
        return len(self.things)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Numbers) and len(self) == len(other) and all(map(is_, self.things, other.things))


class Identity:
    """Equal to another one of the same object."""

    __slots__ = ("_thing",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, thing: Any) -> None:
        self._thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self._thing is other._thing


def contents(argument: Any) -> Any:
    """The contents of a traced argument, to check whether the step has changed it in place."""
    if type(argument) in (list, tuple):
        if argument and all(issubclass(kind, Traced) for kind in set(map(type, argument))):
            return Numbers(argument)
        return tuple(map(contents, argument))
    if type(argument) is dict:
        return tuple((Identity(key), contents(part)) for key, part in argument.items())
    if dataclasses.is_dataclass(argument) and not isinstance(argument, type) and has(argument, "__dict__"):
        return contents(variables(argument))
    return Identity(argument)


def has_grown(before: Any, after: Any) -> bool:
    """Whether a container among the `contents` of an argument has another length, or other keys, than before."""
    if not isinstance(before, (tuple, Numbers)) or not isinstance(after, (tuple, Numbers)):
        return False
    if len(before) != len(after):
        return True
    return isinstance(before, tuple) and isinstance(after, tuple) and any(map(has_grown, before, after))
