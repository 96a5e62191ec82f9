"""Huge pages for the large arrays of a kernel.

Schedules walk along several rows of several arrays at once, each in a page of its own, and processors know the
addresses of a few thousand pages only: of 4 KB, those are less than the weights, gradients and moments of a model.

1. The stretch of an array that consists of whole huge pages is marked for them, and the small pages that are there are
   put together, where the system can do that at once (Linux 6.1).
2. Whatever it refuses stays as it is: nothing but the speed depends on it.
"""

from __future__ import annotations

import functools
import sys
from array import array
from collections.abc import Callable
from typing import Any

from ..base import ffi

#: The size of a huge page, with small ones of 4 KB.
SIZE = 1 << 21
#: Advice of Linux.
_HUGEPAGE, _COLLAPSE = 14, 25


def use_huge_pages(buffer: Any) -> None:
    """Ask for huge pages where an array, or what a view is of, lies."""
    if ffi.PYPY or not isinstance(buffer, (array, memoryview)) or len(buffer) * buffer.itemsize < SIZE:
        return
    address = ffi.address_of(buffer)
    first = -(-address // SIZE) * SIZE
    length = (address + len(buffer) * buffer.itemsize - first) // SIZE * SIZE
    advise = _advise()
    if length > 0 and advise is not None:
        for advice in (_HUGEPAGE, _COLLAPSE):
            advise(first, length, advice)


@functools.cache
def _advise() -> Callable[[int, int, int], int] | None:
    """`madvise` of the C library, on Linux."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    function: Any = ctypes.CDLL(None)["madvise"]
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return function  # type: ignore[no-any-return]
