"""The slots of a pointer block, which layout.py hands out."""

from __future__ import annotations

from typing import NamedTuple


class Slot(NamedTuple):
    """One pointer of the block: its memory space, the region in that space, and the format of the elements."""

    space: str
    region: int
    format: str
