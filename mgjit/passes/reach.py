"""Which records each backward pass reaches.

A backward pass visits exactly the records that its root depends on through Value arithmetic; a record that it does not
reach must not add anything, not even a zero.  So records can only be one statement of a loop if the same passes reach
them; this analysis provides the marks that `roll` compares.

1. For each BACKWARD record, scan down from its root, following operands, until below everything reached.
   A neuron of a block (record/blocks.py) is visited as a whole.
2. A record's mark says which passes reach it, numbered *relative to the next BACKWARD record*, so that the iterations
   of a loop that contains a backward pass have equal marks.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterator
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
    marks: array[int] | None
    meanings: list[frozenset[int]]

    def reached_by(self, position: int) -> frozenset[int]:
        """The numbers of the backward passes that reach the record."""
        if self.marks is None or not self.marks[position]:
            return frozenset()
        following = bisect_left(self.backwards, position)
        return frozenset(following + relative for relative in self.meanings[self.marks[position]])


def reach(trace: Trace) -> Reach:
    """Analyse a trace."""
    backwards = [position for low, high in trace.gaps() for position in _backwards(trace.op, low, high)]
    if not backwards:
        return Reach([], None, [frozenset()])
    marks = array("i", bytes(4 * len(trace)))
    meanings: list[frozenset[int]] = [frozenset()]
    numbers: dict[frozenset[int], int] = {frozenset(): 0}

    def with_pass(mark: int, relative: int) -> int:
        meaning = meanings[mark] | {relative}
        if meaning not in numbers:
            numbers[meaning] = len(meanings)
            meanings.append(meaning)
        return numbers[meaning]

    for number, position in enumerate(backwards):
        records, neurons = _reached(trace, trace.a[position])
        known: dict[tuple[int, int], int] = {}
        for record in records:
            key = marks[record], bisect_left(backwards, record)
            mark = known.get(key)
            if mark is None:
                mark = known[key] = with_pass(key[0], number - key[1])
            marks[record] = mark
        for first, end in neurons:
            mark = with_pass(marks[first], number - bisect_left(backwards, first))
            marks[first:end] = array("i", [mark]) * (end - first)
    return Reach(backwards, marks, meanings)


def _backwards(op: array[int], low: int, high: int) -> Iterator[int]:
    """The positions of BACKWARD among these records: bytes are searched fast, and the lowest one tells nearly all."""
    codes = op[low:high].tobytes()[0 if sys.byteorder == "little" else 3 :: 4]
    at = codes.find(BACKWARD)
    while at >= 0:
        if op[low + at] == BACKWARD:
            yield low + at
        at = codes.find(BACKWARD, at + 1)


def _reached(trace: Trace, root: int) -> tuple[list[int], list[tuple[int, int]]]:
    """The records that a pass from `root` visits, and the neurons of blocks: first record and end of each.

    All records of a neuron are visited, or none, because nothing else reads what they compute on the way.
    """
    op, a, b = trace.op, trace.a, trace.b
    visited = bytearray(root + 1)
    visited[root] = 1
    records: list[int] = []
    neurons: list[tuple[int, int]] = []
    blocks = [block for block in trace.blocks if block.start <= root]
    position = lowest = root
    while position >= lowest:
        if blocks and position < blocks[-1].end:
            block = blocks.pop()
            ends = range(block.start + block.period, min(block.end, root + 1) + 1, block.period)
            found = [(end - block.period, end) for end in ends if visited[end - 1]]
            neurons += found
            for operand in block.operands(b) if found else ():
                if operand >= 0:
                    visited[operand] = 1
                    lowest = min(lowest, operand)
            position = block.start
        elif visited[position]:
            code = op[position]
            if code < NUMBER:
                records.append(position)
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
    return records, neurons
