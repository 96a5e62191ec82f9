"""Traces that are equal but for the lengths of sequences, as members of a family that share one Program.

    for i in 0 .. 6: t[i] = x[i] * w             given n in 0 .. 15
    for i in 0 .. 8: t[i] = x[i] * w      ->     for i in 0 .. n: t[i] = x[i] * w

1. Two forests are a family if they have the same tree, and all counts are affine functions of one number, which is
   another one for each member, and of the growing loops around.
2. The loops whose counts depend on that number get boxes with room for longer members, and both traces are padded like
   growing loops (passes/holes.py).  So places, and what is made from them, are the same functions of the loops for all.
3. Both are lifted.  If the Programs are equal but for the first elements of indices and bounds, and for constants,
   these become affine functions of the number, and elements of the array of constants.
4. The trace of another member tells its number by its length.  It is padded in the same way, its operations are
   compared, and it is lifted: it is a member if that is exactly the Program of the family for its number.  Nothing is
   extrapolated without that proof.  No loop is searched for.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from ..ir.program import Program
from ..record.trace import InputRegion, Trace
from .forest import Item
from .growing import Rolled
from .holes import Grown, as_fold, grown, moved, records_of, size_of, stretches
from .lengths import Part, Unlike, records_in, tree_of
from .memory import Memory
from .numbers import Numbers
from .reach import Reach
from .varying import HOLE, Varying


@dataclass
class Member:
    """A trace and what it was recorded with.

    Attributes:
        trace: of a step whose parameters are all in the storages of kernels.
        inputs: the memory of its arguments.
        reach: of the trace.
    """

    trace: Trace
    inputs: Sequence[InputRegion]
    reach: Reach


@dataclass
class Family:
    """What the members of a family have in common; see the top of the file.

    Attributes:
        tree: the loops and statements.
        operations, marks: of each statement: the opcode, and the backward passes that reach it (see `Reach`).
        least, most: the numbers that members may have.
        memory: what members work on, apart from arguments and results.
        key: the Program without the numbers in which members differ.
        numbers: these numbers: what they are for number 0, and by how much they grow.
        constants: constants that are the same in all members, None for others.
        loaded: how many of the constants of the trace are elements of an array.
        tables: the index tables, with holes where no known member has looked.
        varying: those that are other ones in other members.
        box: of all places of padded traces, once it is known.
    """

    tree: tuple[Part, ...]
    operations: list[int]
    marks: list[frozenset[int]]
    least: int = 0
    most: int = 0
    memory: str = ""
    key: str = ""
    numbers: list[tuple[int, int]] = field(default_factory=list)
    constants: list[float | None] = field(default_factory=list)
    loaded: int = 0
    tables: list[int] = field(default_factory=list)
    varying: list[Varying] = field(default_factory=list)
    box: tuple[array[int], array[int], array[int]] | None = field(default=None, repr=False)

    # ---- 4: members -----------------------------------------------------------------------------------

    def row(self, member: Member) -> Row:
        """What the shared Program has to be given for a member.

        Raises:
            Unlike: it is no member.
            LiftError: it cannot be lifted in this way.
        """
        number = self._lengths().get(len(member.trace))
        if number is None:
            raise Unlike(f"no member has {len(member.trace)} records")
        if outline(member) != self.memory:
            raise Unlike("it works on other memory")
        program, _ = self.lifted(member, number)
        found = Numbers.of(program, member.inputs)
        if found.key != self.key:
            raise Unlike("its loops read or write other places")
        expected = list(self.tables)
        for table in self.varying:
            expected[table.offset : table.end] = table.at(number, self.tables)
        if any(one not in (other, HOLE) for one, other in zip(program.tables, expected)):
            raise Unlike("its indices follow no rule, and are other ones")
        if found.numbers != [base + step * number for base, step in self.numbers]:
            raise Unlike("its indices or bounds are not those that its length makes likely")
        same = [bits_of(x) for x in found.constants]
        if any(one is not None and bits_of(one) != two for one, two in zip(self.constants, same)):
            raise Unlike("a number is another one that is the same in all members")
        return self._row(found, member, number)

    def _row(self, found: Numbers, member: Member, number: int) -> Row:
        own = [x for x, same in zip(found.constants, self.constants) if same is None]
        constants = array(member.trace.precision.format, [*member.trace.constants, *[0.0] * self.loaded][: self.loaded])
        constants.extend(own)
        return Row(number - self.least, constants)

    def longest(self) -> int:
        """The number of records of the longest member that there is room for."""
        return max(self._lengths())

    def _lengths(self) -> dict[int, int]:
        """The number of a member by the number of its records."""
        return {records_in(self.tree, number, ()): number for number in range(self.most, self.least - 1, -1)}

    def lifted(self, member: Member, number: int) -> tuple[Program, Memory]:
        """The Program of a member by itself, in boxes as large as those of all others."""
        from .pipeline import Folded

        padded = self._padded(member, number)
        return Folded(padded.trace, member.inputs, padded.reach, padded.forest).lifted(hole=HOLE)

    def _padded(self, member: Member, number: int) -> Rolled:
        trace, reach = member.trace, member.reach
        whole = grown(1, [tree_of(part, number, ()) for part in self.tree])
        statements_, op, marks = self._box(whole)
        runs: list[tuple[int, int]] = []
        places: list[int] = []
        for start, end in stretches(whole):
            runs.append((len(places), len(places) + end - start))
            places += range(start, end)
        if len(places) != len(trace):
            raise Unlike("it has another number of records")
        places.append(len(op))
        own = self._own_marks(reach, len(trace))
        executed: set[int] = set()
        for start, end in runs:
            here = slice(places[start], places[start] + end - start)
            if op[here] != trace.op[start:end]:
                raise Unlike("its operations are other ones")
            if marks[here] != own[start:end]:
                raise Unlike("backward passes reach other operations")
            executed.update(statements_[here])
        if len(executed) < len(self.operations):
            raise Unlike("it is so short that some operations are missing")
        reach = reach._replace(meanings=self._meanings())
        marked = None if member.reach.marks is None else marks
        found, reached = moved(trace, reach, places, op, marked, [(0, len(trace))], runs)
        starts = accumulate(map(size_of, whole.body), initial=0)
        forest: list[Item] = [
            start if isinstance(part, int) else as_fold(part, start) for part, start in zip(whole.body, starts)
        ]
        return Rolled(found, reached, forest)

    def _box(self, whole: Grown) -> tuple[array[int], array[int], array[int]]:
        """For each place of the padded traces: the statement, the opcode, and the mark; the same for all members."""
        if self.box is None or len(self.box[0]) != size_of(whole):
            numbers = array("i", records_of(whole))
            own = list(map(self._meanings().index, self.marks))
            op = array("i", map(self.operations.__getitem__, numbers))
            self.box = numbers, op, array("i", map(own.__getitem__, numbers))
        return self.box

    def _meanings(self) -> list[frozenset[int]]:
        """What marks mean in the padded traces; the first one is that no pass reaches a record, as in all traces."""
        return list(dict.fromkeys([frozenset[int](), *self.marks]))

    def _own_marks(self, reach: Reach, records: int) -> array[int]:
        """The marks of a trace, as this family has them."""
        names = {meaning: name for name, meaning in enumerate(self._meanings())}
        own = [names.get(meaning, -1) for meaning in reach.meanings]
        marks = reach.marks if reach.marks is not None else array("i", bytes(4 * records))
        return array("i", map(own.__getitem__, marks))

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "box": None}


class Row(NamedTuple):
    """What the shared Program is given for a member: its number, counted from the least one, and its constants."""

    number: int
    constants: array[float]


def outline(member: Member) -> str:
    """The memory that a member works on, apart from the sizes of arguments and results, as a digest."""
    trace = member.trace
    parts = (
        [(base, len(storage), storage.layout) for base, storage in trace.bound_storages],
        [(base, len(state), state._layout, state._is_new) for base, state in trace.states],
        [number for number, _ in trace.new_parameters],
        trace.layouts,
        trace.precision.name,
        [region.format for region in member.inputs],
        trace.c is None,
        len(member.reach.backwards),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def bits_of(number: float) -> str:
    return number.hex()
