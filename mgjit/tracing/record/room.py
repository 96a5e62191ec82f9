"""Indices for the elements of storages and tensors, of which each kind of memory has its own.

Records can name indices up to `INDEX_MASK`.  When half of them are taken, large tensors get greater ones, which only
nests can name: single elements of large tensors are read and written less often than whole ones, and are copied then.
"""

from __future__ import annotations

from ...errors import TraceError, user_location
from ...ir.opcodes import INDEX_MASK

#: Tensors with more elements are large.
_SMALL = 4096


class Room:
    """The indices of a kind of memory that are free.

    Args:
        first: of all.
    """

    def __init__(self, first: int = 0) -> None:
        self._near, self._far = first, INDEX_MASK + 1
        self._half = (first + INDEX_MASK) // 2

    def next(self) -> tuple[int, int]:
        """Indices below these are taken: of those that records can name, and of the others."""
        return self._near, self._far

    def take(self, size: int, is_tensor: bool = True) -> int:
        """The first of so many indices that follow each other.

        Raises:
            TraceError: there are no more that records can name.
        """
        if is_tensor and size > _SMALL and self._near + size > self._half:
            self._far += size
            return self._far - size
        if self._near + size > INDEX_MASK:
            raise TraceError(f"{user_location()}: one step uses more than {self._half} numbers in small tensors.")
        self._near += size
        return self._near - size
