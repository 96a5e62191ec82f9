"""Which records each backward pass reaches.

A backward pass visits exactly the records that its root depends on through Value arithmetic; a record that it does not
reach must not add anything, not even a zero.  So records can only be one statement of a loop if the same passes reach
them; this analysis provides the marks that `roll` compares.

1. For each BACKWARD record, scan down from its root, following operands, until below everything reached.
2. A record's mark says which passes reach it, numbered *relative to the next BACKWARD record*, so that the iterations
   of a loop that contains a backward pass have equal marks.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

from ..record.opcodes import BACKWARD, NUMBER, POWER, TAKE
from ..record.trace import Trace


class Reach(NamedTuple):
    """The marks of all records, and what they mean.

    Attributes:
        backwards: positions of the BACKWARD records.
        marks: for each record an int; 0 is "reached by none".
        meanings: for each mark, the relative numbers of the passes.
    """

    backwards: list[int]
    marks: list[int] | None
    meanings: list[frozenset[int]]

    def reached_by(self, position: int) -> frozenset[int]:
        """The numbers of the backward passes that reach the record."""
        if self.marks is None or not self.marks[position]:
            return frozenset()
        following = bisect_left(self.backwards, position)
        return frozenset(following + relative for relative in self.meanings[self.marks[position]])


def reach(trace: Trace) -> Reach:
    """Analyse a trace."""
    backwards = _positions(trace)
    if not backwards:
        return Reach([], None, [frozenset()])
    marks = [0] * len(trace)
    meanings: list[frozenset[int]] = [frozenset()]
    numbers: dict[frozenset[int], int] = {frozenset(): 0}
    for number, position in enumerate(backwards):
        reached = _reached(trace, trace.a[position])
        if len(backwards) == 1:
            for record in reached:
                marks[record] = 1
            return Reach(backwards, marks, [frozenset(), frozenset((0,))])
        for record in reached:
            relative = number - bisect_left(backwards, record)
            meaning = meanings[marks[record]] | {relative} if marks[record] else frozenset((relative,))
            mark = numbers.get(meaning)
            if mark is None:
                mark = numbers[meaning] = len(meanings)
                meanings.append(meaning)
            marks[record] = mark
    return Reach(backwards, marks, meanings)


def _positions(trace: Trace) -> list[int]:
    if BACKWARD not in trace.op:
        return []
    return [position for position, code in enumerate(trace.op) if code == BACKWARD]


def _reached(trace: Trace, root: int) -> list[int]:
    """Records that a pass from `root` visits, last created first."""
    op, a, b = trace.op, trace.a, trace.b
    visited = bytearray(root + 1)
    visited[root] = 1
    found = []
    position = lowest = root
    while position >= lowest:
        if visited[position]:
            code = op[position]
            if code < NUMBER:
                found.append(position)
                operand = a[position]
                if operand >= 0:
                    visited[operand] = 1
                    if operand < lowest:
                        lowest = operand
                operand = b[position]
                if operand >= 0 and code != POWER and code < TAKE:
                    visited[operand] = 1
                    if operand < lowest:
                        lowest = operand
        position -= 1
    return found
