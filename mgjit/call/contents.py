"""The contents of traced arguments before and after a trace, which show whether the step has changed one in place."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..lookup import has, variables


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
        return tuple(map(contents, argument))
    if type(argument) is dict:
        return tuple((Identity(key), contents(part)) for key, part in argument.items())
    if dataclasses.is_dataclass(argument) and not isinstance(argument, type) and has(argument, "__dict__"):
        return contents(variables(argument))
    return Identity(argument)


def has_grown(before: Any, after: Any) -> bool:
    """Whether a container among the `contents` of an argument has another length, or other keys, than before."""
    if not isinstance(before, tuple) or not isinstance(after, tuple):
        return False
    return len(before) != len(after) or any(map(has_grown, before, after))
