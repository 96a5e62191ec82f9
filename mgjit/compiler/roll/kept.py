"""The forests of the last traces: what is built twice, or compared with another length, is rolled once.

Only columns of numbers are looked at, by digests, and nothing of the user's objects is kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import xxhash

from ...ir.trace import Trace
from .forest import Item
from .holes import Placed
from .reach import Reach

#: How many forests are kept, ...
_MOST = 4
#: ... of traces of so many records: others are rolled in no time, or take much memory.
_FEWEST_RECORDS, _MOST_RECORDS = 100, 1_000_000


class Kept(NamedTuple):
    """What rolling has found out about a trace: its growing loops, and the forest of the trace that they pad."""

    columns: str
    placed: Sequence[Placed]
    forest: list[Item]


_kept: OrderedDict[str, Kept] = OrderedDict()


def known(trace: Trace, reach: Reach, *, alike: bool = False) -> Kept | None:
    """What is known of a trace.

    Args:
        alike: whether a trace of the same operations will do, which reads other places.
    """
    if not _is_kept(trace):
        return None
    found = _kept.get(_operations(trace, reach))
    return found if found is not None and (alike or found.columns == _columns(trace)) else None


def keep(trace: Trace, reach: Reach, placed: Sequence[Placed], forest: list[Item]) -> None:
    """Keep a forest."""
    if _is_kept(trace):
        key = _operations(trace, reach)
        _kept[key] = Kept(_columns(trace), placed, forest)
        _kept.move_to_end(key)
        while len(_kept) > _MOST:
            _kept.popitem(last=False)


def _is_kept(trace: Trace) -> bool:
    return _FEWEST_RECORDS <= len(trace) <= _MOST_RECORDS and not trace.nests


def _operations(trace: Trace, reach: Reach) -> str:
    """A digest of what the records do, and of which passes reach them."""
    digest = xxhash.xxh3_128(trace.op.tobytes())
    digest.update(b"" if reach.marks is None else reach.marks.tobytes())
    digest.update(repr((reach.backwards, [sorted(meaning) for meaning in reach.meanings], trace.blocks)).encode())
    return digest.hexdigest()


def _columns(trace: Trace) -> str:
    """A digest of what the records read and write."""
    digest = xxhash.xxh3_128(trace.a.tobytes())
    for column in (trace.b, trace.c):
        digest.update(b"" if column is None else column.tobytes())
    return digest.hexdigest()
