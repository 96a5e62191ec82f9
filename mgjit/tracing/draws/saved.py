"""States of generators that are saved before each call which may be undone, and hardly ever restored.

`getstate` of Python's generator makes a tuple of 625 ints, which takes longer than many steps.  In CPython its state
lies in the object as one block: the place in 624 words, then the words.  Where that is so, as is tried once, the block
is copied as it is, and copied back: in the time of three draws.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
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
        self._usual = [one for one in generators if _is_usual(one)]
        self._others = [one for one in generators if not _is_usual(one)]
        blocks = map(_block, self._usual)
        self._pairs = [(memoryview(bytearray(len(block))), block) for block in blocks]
        self._following: list[float | None] = [None] * len(self._usual)
        self._states: list[Any] = []

    def save(self) -> None:
        """Save them as they are now."""
        for k, (saved, block) in enumerate(self._pairs):
            saved[:] = block
            self._following[k] = self._usual[k].gauss_next
        self._states = [state_of(one) for one in self._others]

    def saving(self, name_of: Callable[[Any], str]) -> list[str]:
        """Statements that do the same, in a third of the time.

        Args:
            name_of: the name of an object, in a generated function.
        """
        if self._others:
            return [f"{name_of(self.save)}()"]
        lines, following = list[str](), name_of(self._following)
        for k, (saved, block) in enumerate(self._pairs):
            lines.append(f"{name_of(saved)}[:] = {name_of(block)}")
            lines.append(f"{following}[{k}] = {name_of(self._usual[k])}.gauss_next")
        return lines

    def restore(self) -> None:
        """Restore what was saved last; may be repeated."""
        for one, (saved, block), following in zip(self._usual, self._pairs, self._following):
            block[:] = saved
            one.gauss_next = following
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
        if _state(_block(generator, offset)) != generator.getstate():
            return 0
    return offset


def _block(generator: random.Random, offset: int = 0) -> memoryview:
    """The memory of a generator in which its state lies, for as long as the generator is there."""
    block = (ctypes.c_char * _FORM.size).from_address(id(generator) + (offset or _offset()))
    return memoryview(block).cast("B")


def _state(block: memoryview) -> Any:
    """As `getstate` gives it."""
    place, *words = _FORM.unpack(block)
    return random.Random.VERSION, (*words, place), None
