"""`mgjit.each([...])`: arguments of an ensemble, one for each member."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import ArgumentError, described, user_location


class Each:
    """Arguments of an ensemble, one for each member."""

    __slots__ = ("items",)

    def __init__(self, items: Sequence[Any]) -> None:
        self.items = items

    def __repr__(self) -> str:
        return f"mgjit.each({self.items!r:.60})"


def each(items: Iterable[Any]) -> Any:
    """Arguments of an ensemble, one for each member: `sweep(pixels, label, mgjit.each([0.1, 0.01]))`.

    Args:
        items: member k gets item k. Each is a number or other data; in `.loop`, it may also be a column.
    """
    if not isinstance(items, Iterable):
        raise ArgumentError(
            f"{user_location()}: each needs a list with an item for each member, not {described(items)}. An argument "
            "that is the same for all members needs no each()."
        )
    return Each(list(items))
