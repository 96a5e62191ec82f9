"""Find where a text repeats with a short period, at the speed of C.

1. Represent the text as one large integer, with a lane of fixed width for each character.
2. Shift the integer by a period and compare (exclusive or) with itself: lanes of zero are characters that are the same
   as those one period later.
3. The text repeats where there are long enough runs of zeros.
"""

from __future__ import annotations

import re
import sys
from typing import NamedTuple

_ZEROS = re.compile(b"\0*")


class Repeat(NamedTuple):
    """A maximal stretch `first .. end-1` in which each character is the same as one period later.

    From each of the positions `first .. last` on, it repeats at least as often as requested.
    """

    first: int
    last: int
    end: int


class Repeats:
    """Finds the repeating stretches of one text."""

    def __init__(self, text: str) -> None:
        self._size = len(text)
        largest = ord(max(text, default="\0"))
        name, self._width = ("latin-1", 1) if largest < 0x100 else ("utf-16", 2) if largest < 0xD800 else ("utf-32", 4)
        code = name if self._width == 1 else f"{name}-{'le' if sys.byteorder == 'little' else 'be'}"
        self._number = int.from_bytes(text.encode(code, "surrogatepass" if self._width == 4 else "strict"), "little")

    def of(self, period: int, fewest: int) -> list[Repeat]:
        """The stretches that repeat a period at least `fewest` times, from left to right."""
        compared = self._size - period
        if compared < (fewest - 1) * period:
            return []
        width = self._width
        bits = 8 * width * compared
        differences = (self._number ^ self._number >> 8 * width * period) & ((1 << bits) - 1)
        lanes = differences.to_bytes(width * compared, "little")
        least = (fewest - 1) * period
        needle = bytes(width * least)
        found = []
        start = lanes.find(needle)
        while start >= 0:
            match = _ZEROS.match(lanes, start)
            assert match is not None
            first, end = -(-start // width), match.end() // width
            if end - first >= least:
                found.append(Repeat(first, end - least, end + period))
            start = lanes.find(needle, match.end())
        return found
