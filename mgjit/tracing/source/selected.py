"""Lists and dicts of which a traced number says which one is meant: `w = a if x > 0 else b`.

What the step gets is a new list of selected numbers.  In Python it is one of the two, so the new one may only be read:

1. If the step changes it, or one of the two after that, or asks whether it is one of them, the call is plain.
2. If the step keeps or returns it, nothing else may refer to the two, which only CPython tells.
3. Where both have just been written out (`[x, y] if x > 0 else [y, x]`), nothing else means them: all may be done.

What a traced index chooses from a table (autograd/chosen.py) is no copy, but something of its own as well: if the step
asks which object it is, the call is plain.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any, NamedTuple, NoReturn, TypeVar

from ...errors import TraceError, user_location
from ..surroundings.shapes import is_same

T = TypeVar("T")


class _Selection(NamedTuple):
    """What is selected.

    Attributes:
        held: the new list or dict, and the two of which it is one; each with what it held.
        test: kept, so that it keeps its identity.
    """

    held: tuple[tuple[Any, Any], ...]
    test: Any
    location: str


class Selections:
    """Those of one trace."""

    def __init__(self) -> None:
        self._by_sources: dict[tuple[int, int, int], _Selection] = {}
        self._chosen: dict[int, Any] = {}

    def made_of(self, test: Any, chosen: Any, other: Any, make: Callable[[], Any]) -> Any:
        """What stands for one of two lists or dicts: the same again for the same two, which may have several names."""
        key = id(test), id(chosen), id(other)
        known = self._by_sources.get(key)
        if known is None:
            held = tuple((thing, _copied(thing)) for thing in (make(), chosen, other))
            known = self._by_sources[key] = _Selection(held, test, user_location())
        return known.held[0][0]

    def choose(self, thing: T) -> T:
        """Something new that stands for the element of a table that a traced index chooses."""
        self._chosen[id(thing)] = thing
        return thing

    def refuse_identity(self, *things: Any) -> None:
        """The step asks for the identity of things.

        Raises:
            TraceError: one of them is selected, or chosen.
        """
        asked = set(map(id, things))
        if not asked.isdisjoint(self._chosen):
            raise TraceError(
                f"{user_location()}: a traced index chooses an element of a table, and the step asks which object that "
                "is. Compare the indices."
            )
        for selection in self._by_sources.values():
            if id(selection.held[0][0]) in asked:
                _refuse(selection.location, "asks whether it is another one")

    def check(self, kept: Callable[[], Collection[int]]) -> None:
        """Look at them when the step has run.

        Args:
            kept: gives the identities of what the step returns or has put somewhere, and of all that this leads to.

        Raises:
            TraceError: Python would have changed or kept one of the two.
        """
        selections = list(self._by_sources.values())
        for selection in selections:
            if not all(is_same(_copied(thing), before) for thing, before in selection.held):
                _refuse(selection.location, "changes it, or one of the two")
        found = set(kept() if selections else ())
        ours = Counter(id(thing) for selection in selections for thing, _ in selection.held)
        for selection in reversed(selections):  # one of the two may be selected itself
            if id(selection.held[0][0]) in found:
                pairs = selection.held[1:]
                found.update(id(pair[0]) for pair in pairs)
                if not all(_is_ours(*pair, ours) for pair in pairs):  # type: ignore[call-arg]
                    _refuse(selection.location, "keeps or returns it")


def _is_ours(thing: Any, _: Any, ours: Counter[int]) -> bool:
    """Whether selections alone refer to something, where that can be told."""
    return _COUNTED and _others(thing, ours) == _OF_NOTHING


def _others(thing: Any, ours: Counter[int]) -> int:
    """How many references to something are not those of selections; with those of functions that are running."""
    return sys.getrefcount(thing) - ours[id(thing)]


_COUNTED = hasattr(sys, "getrefcount")
_OF_NOTHING = 0
if _COUNTED:
    _sample: tuple[Any, Any] = ([], None)

    def _sampled(thing: Any, _: Any, ours: Counter[int]) -> int:
        return _others(thing, ours)

    _OF_NOTHING = _sampled(*_sample, Counter({id(_sample[0]): 1}))


def _refuse(location: str, does: str) -> NoReturn:
    raise TraceError(
        f"{location}: which of two lists or dicts is meant depends on a traced number, and the step {does}. Read its "
        "numbers only, or write out new ones on both sides: `[*a] if test else [*b]`."
    )


def _copied(thing: Any) -> Any:
    return dict(thing) if type(thing) is dict else list(thing)
