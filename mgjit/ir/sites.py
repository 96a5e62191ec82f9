"""The sites of records: from which line of the user's program each of them comes, as tracer/sites.py notes it."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

#: The number of no site.
NOWHERE = -1


def sites_of_records(marks: Sequence[tuple[int, int]], operands: Sequence[int]) -> array[int]:
    """The site of each record.

    Args:
        marks: in the order in which they were made: from which record on, which site.
        operands: for each record the one that decides where a record from nowhere comes from.
    """
    valid: list[tuple[int, int]] = []
    for mark in marks:
        while valid and valid[-1][0] >= mark[0]:  # nothing was recorded there, or it was taken back
            valid.pop()
        valid.append(mark)
    found = array("i", [NOWHERE]) * (valid[0][0] if valid else len(operands))
    ends = [start for start, _ in valid[1:]] + [len(operands)]
    for (start, site), end in zip(valid, ends):
        found.extend(array("i", [site]) * (end - start))
    if valid:
        for record in range(valid[-1][0], len(operands)):
            operand = operands[record]
            if found[record] == NOWHERE and 0 <= operand < record:
                found[record] = found[operand]
    return found


def repeat_sites(marks: list[tuple[int, int]], start: int, period: int, count: int) -> None:
    """Of the records from `start` on, `period` have become `count` times as many."""
    last = [mark for mark in marks[-2:] if mark[0] >= start + period]
    body = []
    while marks and marks[-1][0] >= start:
        body.append(marks.pop())
    body = [mark for mark in reversed(body) if mark[0] < start + period]
    if len(body) > 1:
        body = [(place + k * period, site) for k in range(count) for place, site in body]
    marks += body
    marks += [(start + period * count, site) for _, site in last]
