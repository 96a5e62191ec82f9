"""What lies, during a trace, where a list is to which the step only appends, such as `losses.append(loss.data)`.

What the list holds, and how long it is, is another thing in each call, so nobody may look at it.  A `Log` lies there in
its place: it takes what is appended, and asks for another trace as soon as it is used in any other way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeVar

Self = TypeVar("Self", bound="Log")


class Log(list[Any]):
    """Stands for a list; its own elements are those that the step appends.

    Args:
        read: called when anything else is done with it; raises what ends the trace.
    """

    __slots__ = ("read",)

    def __init__(self, read: Callable[[], NoReturn]) -> None:
        self.read = read

    def __iadd__(self: Self, added: Iterable[Any]) -> Self:  # type: ignore[misc]
        self.extend(added)
        return self

    def taken(self) -> list[Any]:
        """What has been appended, which is here no more."""
        found = list.copy(self)
        list.clear(self)
        return found


def _refuse(self: Log, *_: Any, **__: Any) -> NoReturn:
    self.read()


_METHODS = "clear copy count index insert pop remove reverse sort"
_SPECIAL = (
    "len bool iter reversed contains getitem setitem delitem eq ne lt le gt ge hash add radd mul rmul imul repr str "
    "format sizeof reduce reduce_ex copy deepcopy"
)
for _name in (*_METHODS.split(), *(f"__{_special}__" for _special in _SPECIAL.split())):
    setattr(Log, _name, _refuse)
