"""States of generators that are saved before each call which may be undone, and hardly ever restored.

`getstate` of Python's generator makes a tuple of 625 ints, which takes longer than many steps.  In CPython its state
lies in the object as one block: the place in 624 words, then the words.  Where that is so, as is tried once, the block
is copied as it is, and made a tuple of when the state is restored.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from functools import cache
from typing import Any

from ...base.ffi import PYPY
from .plan import restore_state, state_of

if not PYPY:
    import ctypes

#: The place, and the words.
_FORM = struct.Struct("i624I")


class SavedStates:
    """The states of some generators."""

    def __init__(self, generators: Sequence[Any]) -> None:
        self._others = [one for one in generators if not _is_usual(one)]
        self._usual = [(one, id(one) + _offset()) for one in generators if _is_usual(one)]
        self._states: list[Any] = []
        self._blocks: list[tuple[bytes, float | None]] = []

    def save(self) -> None:
        """Save them as they are now."""
        self._blocks = [(_block(address), one.gauss_next) for one, address in self._usual]
        self._states = [state_of(one) for one in self._others]

    def restore(self) -> None:
        """Restore what was saved last; may be repeated."""
        for (one, _), (block, following) in zip(self._usual, self._blocks):
            one.setstate(_state(block, following))
        for one, state in zip(self._others, self._states):
            restore_state(one, state)


def _is_usual(generator: Any) -> bool:
    kind = type(generator)
    if not issubclass(kind, random.Random) or kind.getstate is not random.Random.getstate:
        return False
    return kind.setstate is random.Random.setstate and _offset() > 0


@cache
def _offset() -> int:
    """Where the block lies in a generator; 0 if that is not known."""
    if PYPY:
        return 0
    offset = object.__basicsize__
    for seed in (1, 2):
        generator = random.Random(seed)  # noqa: S311 - of the user's kind
        if type(generator).__basicsize__ < offset + _FORM.size:
            return 0
        for _ in range(seed * 100):
            generator.random()
        if _state(_block(id(generator) + offset), None) != generator.getstate():
            return 0
    return offset


def _block(address: int) -> bytes:
    return ctypes.string_at(address, _FORM.size)


def _state(block: bytes, following: float | None) -> Any:
    place, *words = _FORM.unpack(block)
    return random.Random.VERSION, (*words, place), following
