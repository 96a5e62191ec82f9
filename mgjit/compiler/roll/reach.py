"""Which records each backward pass reaches.

A backward pass visits exactly the records that its root depends on through Value arithmetic; a record that it does not
reach must not add anything, not even a zero.  So records can only be one statement of a loop if the same passes reach
them; this analysis provides the marks that `roll` compares.

1. For each BACKWARD record, scan down from its root, following operands, some records at a time.
   A neuron of a block (record/blocks.py) is visited as a whole.
2. A record's mark says which passes reach it, numbered *relative to the next BACKWARD record*, so that the iterations
   of a loop that contains a backward pass have equal marks.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import compress
from typing import NamedTuple

from ...ir.opcodes import BACKWARD, NEST, NO_OPERAND, NUMBER, POWER, TAKE, TENSOR, leaf_index, leaf_kind
from ...ir.trace import Trace

#: How many records are looked at before the next one that is visited is searched for.
_SOME = 4096
_LOWEST_BYTE = 0 if sys.byteorder == "little" else 3


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
        root = trace.a[position]
        visited = _visited_with_nests(trace, root, position) if trace.nests else _visited(trace, root)
        lowest = visited.find(1)
        if lowest < 0:
            continue
        first, last = bisect_left(backwards, lowest), bisect_left(backwards, len(visited))
        edges = [lowest, *backwards[first:last], len(visited)]
        for following, (low, high) in enumerate(zip(edges, edges[1:]), first):
            part = visited[low:high]
            if number == following and 1 in part and (new_mark := with_pass(0, 0)) < 256:  # no pass was here before
                lowest_bytes = bytearray(4 * (high - low))
                lowest_bytes[_LOWEST_BYTE::4] = part.translate(bytes((0, new_mark)).ljust(256))
                memoryview(marks)[low:high] = memoryview(lowest_bytes).cast("i")
                continue
            before = marks[low:high]
            new = {mark: with_pass(mark, number - following) for mark in set(compress(before, part))}
            if len(new) == 1 and 0 not in part:
                marks[low:high] = array("i", new.values()) * (high - low)
            else:
                for at in compress(range(high - low), part):
                    marks[low + at] = new[before[at]]
    return Reach(backwards, marks, meanings)


def _backwards(op: array[int], low: int, high: int) -> Iterator[int]:
    """The positions of BACKWARD among these records: bytes are searched fast, and the lowest one tells nearly all."""
    codes = op[low:high].tobytes()[_LOWEST_BYTE::4]
    at = codes.find(BACKWARD)
    while at >= 0:
        if op[low + at] == BACKWARD:
            yield low + at
        at = codes.find(BACKWARD, at + 1)


def _visited(trace: Trace, root: int) -> bytearray:
    """Which records a pass from `root` visits: a byte of each up to it.

    All records of a neuron are visited, or none, because nothing else reads what they compute on the way.
    """
    visited = bytearray(root + 1)
    visited[root] = 1
    blocks = [block for block in trace.blocks if block.start <= root]
    high = root + 1
    while high:
        while blocks and blocks[-1].start >= high:
            blocks.pop()
        if blocks and high <= blocks[-1].end:
            block = blocks[-1]
            ends = range(block.start + block.period, min(block.end, root + 1) + 1, block.period)
            found = [end for end in ends if visited[end - 1]]
            for end in found:
                visited[end - block.period : end] = bytes((1,)) * block.period
            for operand in block.operands(trace.b) if found else ():
                if operand >= 0:
                    visited[operand] = 1
            low = block.start
        else:
            low = max(high - _SOME, blocks[-1].end if blocks else 0)
            _visit(trace, visited, low, high)
        high = visited.rfind(1, 0, low) + 1
    return visited


def _visited_with_nests(trace: Trace, root: int, end: int) -> bytearray:
    """The same of a step with tensors: a nest is visited if anything reads what it has written.

    Args:
        end: the position of the pass.
    """
    visited = bytearray(end)
    needed: set[int] = set()
    bases = [region.base for region in trace.tensors]

    def need(operand: int) -> None:
        if operand >= 0:
            visited[operand] = 1
        elif leaf_kind(operand) == TENSOR:
            needed.add(bisect_right(bases, leaf_index(operand)))

    need(root)
    for position in range(end - 1, -1, -1):
        code = trace.op[position]
        if code == NEST:
            nest = trace.nests[leaf_index(trace.a[position])]
            target = nest.target.leaf
            if nest.flows and leaf_kind(target) == TENSOR and bisect_right(bases, leaf_index(target)) in needed:
                visited[position] = 1
                for operand in nest.operands:
                    if operand.flows:
                        need(operand.leaf)
        elif visited[position]:
            if code >= NUMBER:
                visited[position] = 0
                continue
            need(trace.a[position])
            if code != POWER and code < TAKE and trace.b[position] != NO_OPERAND:
                need(trace.b[position])
    return visited


def _visit(trace: Trace, visited: bytearray, low: int, high: int) -> None:
    """Visit what the visited records among `low .. high-1` need, last ones first."""
    op, a, b = (reversed(column[low:high]) for column in (trace.op, trace.a, trace.b))
    seen = reversed(memoryview(visited)[low:high])  # sees what is visited on the way
    codes = set(trace.op[low:high])
    if max(codes) < TAKE and POWER not in codes:
        for is_visited, left, right in zip(seen, a, b):
            if is_visited:
                if left >= 0:
                    visited[left] = 1
                if right >= 0:
                    visited[right] = 1
        return
    for is_visited, code, left, right, position in zip(seen, op, a, b, range(high - 1, low - 1, -1)):
        if is_visited:
            if code >= NUMBER:
                visited[position] = 0
                continue
            if left >= 0:
                visited[left] = 1
            if right >= 0 and code != POWER and code < TAKE:
                visited[right] = 1
