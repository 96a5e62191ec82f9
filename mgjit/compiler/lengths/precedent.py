"""Compare a trace with one that is known to be a member of a family, record by record: nothing is lifted.

1. A place of the padded traces stands for one iteration of one statement, in all members (lengths/family.py).  Where no
   operand of the shared Program depends on the number, its records are therefore the same in all members that execute
   it, and the known one says what they are.
2. What operands are called may differ: arguments begin at other indices, and constants have been met in another order.
   So the operands of the new trace get the names that the known one has for the same things.
3. All records are compared, as slices of columns, but for those of statements that depend on the number.  If one
   differs, that says nothing: perhaps the known member does not execute it.
4. Some loops have fewer iterations in longer members.  So what other known members execute is noted beside it.

The known member may be one that nobody has traced, but that two others suggest (lengths/longest.py) and that was
proved.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

from ...ir.opcodes import CONSTANT, INPUT, KINDS, NO_OPERAND, leaf
from ...ir.trace import InputRegion, Trace
from ..roll.reach import Reach
from .numbers import bits_of

#: The name of what the known member does not have.
_UNKNOWN = leaf(len(KINDS), 0)


class Precedent:
    """A known member.

    Args:
        trace, reach: padded.
        inputs: the memory of its arguments.
        left_out: the places of statements that depend on the number.
        loaded: how many constants are elements of an array, in which members have their own.
    """

    def __init__(
        self, trace: Trace, reach: Reach, inputs: Sequence[InputRegion], left_out: Sequence[int], loaded: int
    ) -> None:
        self.left_out, self._loaded = left_out, loaded
        self._columns = [self._without(column) for column in _columns(trace)]
        self._leaves = [{x for x in column if x < NO_OPERAND} for column in self._columns]
        self._constants = list(map(bits_of, trace.constants))
        self._backwards, self._adjoint_reads, self._inputs = reach.backwards, trace.adjoint_reads, inputs

    def learn(self, other: Precedent) -> None:
        """Let the records that only another known member executes be known."""
        if other._adjoint_reads != self._adjoint_reads[: len(other._adjoint_reads)]:
            return
        names = dict(self._names(other._constants, other._inputs))
        for place, (own, more) in enumerate(zip(self._columns[0], other._columns[0])):
            if own == NO_OPERAND != more:
                found = [names.get(column[place], column[place]) for column in other._columns]
                if _UNKNOWN not in found:
                    for column, operand in zip(self._columns, found):
                        column[place] = operand
        self._leaves = [{x for x in column if x < NO_OPERAND} for column in self._columns]

    def fits(
        self, trace: Trace, reach: Reach, inputs: Sequence[InputRegion], stretches: Sequence[tuple[int, int]]
    ) -> bool:
        """Whether the records of another trace are those of this one.

        Args:
            trace, reach: padded; operations and marks have been compared.
            inputs: the memory of its arguments.
            stretches: the places, from .. to, that it executes.
        """
        reads = trace.adjoint_reads
        if trace.nests or reach.backwards != self._backwards or reads != self._adjoint_reads[: len(reads)]:
            return False  # operations on tensors are not in the columns
        names = dict(self._names(list(map(bits_of, trace.constants)), inputs))
        for column, known, leaves in zip(_columns(trace), self._columns, self._leaves):
            own, expected = _executed(self._without(column), stretches), _executed(known, stretches)
            is_same = own == expected and leaves.isdisjoint(names)
            if not is_same and array("i", map(names.get, own, own)) != expected:
                return False
        return True

    def _names(self, constants: Sequence[str], inputs: Sequence[InputRegion]) -> Iterator[tuple[int, int]]:
        """What this member calls operands that have another name in a trace with such constants and arguments."""
        known = {x: leaf(CONSTANT, index) for index, x in enumerate(self._constants) if index >= self._loaded}
        for index, x in enumerate(constants):
            if self._constants[index : index + 1] != [x]:
                yield leaf(CONSTANT, index), known.get(x, _UNKNOWN)
        for mine, theirs in zip(inputs, self._inputs):
            if mine.start != theirs.start:
                for k in range(min(mine.size, theirs.size)):
                    yield leaf(INPUT, mine.start + k), leaf(INPUT, theirs.start + k)
            for k in range(theirs.size, mine.size):
                yield leaf(INPUT, mine.start + k), _UNKNOWN

    def _without(self, column: array[int]) -> array[int]:
        """A column without what is left out."""
        found = column[:]
        for place in self.left_out:
            found[place] = _UNKNOWN
        return found


def _executed(column: array[int], stretches: Sequence[tuple[int, int]]) -> array[int]:
    found = array("i")
    for start, end in stretches:
        found += column[start:end]
    return found


def _columns(trace: Trace) -> list[array[int]]:
    return [trace.a, trace.b, *([] if trace.c is None else [trace.c])]
