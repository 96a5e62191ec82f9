"""Traces that are equal but for the lengths of sequences, as members of a family that share one Program.

    for i in 0 .. 6: t[i] = x[i] * w             given n in 0 .. 15
    for i in 0 .. 8: t[i] = x[i] * w      ->     for i in 0 .. n: t[i] = x[i] * w

1. Two forests are a family if they have the same tree, and all counts are affine functions of one number, which is
   another one for each member, and of the growing loops around.
2. The loops whose counts depend on that number get boxes with room for longer members, and both traces are padded like
   growing loops (roll/holes.py).  So places, and what is made from them, are the same functions of the loops for all.
3. Both are lifted.  If the Programs are equal but for the first elements of indices and bounds, and for constants,
   these become affine functions of the number, and elements of the array of constants.
4. The trace of another member tells its number by its length.  It is padded in the same way, its operations are
   compared, and it is lifted: it is a member if that is exactly the Program of the family for its number.  Nothing is
   extrapolated without that proof.  No loop is searched for.  How an index changes along a loop that it executes only
   once, others have told: its own one is exact whatever that is.
5. If all records are those of a longer member (lengths/precedent.py), only statements that depend on the number are
   lifted, such as a use of the last sum.  So members may be shorter than those whose loops can be told.  That longer
   member may be a guess (lengths/longest.py), which has been proved.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from ...ir.opcodes import NO_OPERAND
from ...ir.program import Program
from ...ir.trace import InputRegion, Trace
from ..lift.folded import Folded
from ..lift.lift import Guide
from ..lift.memory import Memory
from ..roll.forest import Item, LiftError
from ..roll.holes import Grown, as_forest, grown, moved, records_of, stretches
from ..roll.reach import Reach
from .lengths import Part, Unlike, records_in, tree_of
from .longest import Scale, longest_trace
from .numbers import Numbers, Pattern
from .precedent import Precedent
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
        pattern: what the Programs of members have in common.
        dependent: the statements whose operands depend on the number, and backward passes.
        partial: the pattern of Programs in which only these have operands; None if that is no proof.
        used: where the tables of these Programs are among those of whole ones, from .. to, in order.
        loaded: how many of the constants of the trace are elements of an array.
        tables: the index tables, with holes where no known member has looked.
        varying: those that are other ones in other members.
        records: the number of a member by the number of its records, once they are counted.
        box: of all places of padded traces, once it is known.
        guide: by how much indices change along the loops, as members have told that execute them more than once.
        precedent: the longest member that this process knows, with what others have told, and its number.
    """

    tree: tuple[Part, ...]
    operations: list[int]
    marks: list[frozenset[int]]
    least: int = 0
    most: int = 0
    memory: str = ""
    pattern: Pattern = field(default_factory=lambda: Pattern("", [], []))
    dependent: frozenset[int] = frozenset()
    partial: Pattern | None = None
    used: list[tuple[int, int]] = field(default_factory=list)
    loaded: int = 0
    tables: list[int] = field(default_factory=list)
    varying: list[Varying] = field(default_factory=list)
    records: dict[int, int] | None = field(default=None, repr=False)
    box: tuple[array[int], array[int], array[int]] | None = field(default=None, repr=False)
    guide: Guide = field(default_factory=dict, repr=False)
    precedent: tuple[int, Precedent] | None = field(default=None, repr=False)

    # ---- 4: members -----------------------------------------------------------------------------------

    def row(self, member: Member) -> Row:
        """What the shared Program has to be given for a member.

        Raises:
            Unlike: it is no member.
            LiftError: it cannot be lifted in this way.
        """
        number = self.lengths().get(len(member.trace))
        if number is None:
            raise Unlike(f"no member has {len(member.trace)} records")
        if outline(member) != self.memory:
            raise Unlike("it works on other memory")
        boxed = self.boxed(member, number)
        own = self._compared(boxed, member, number)
        if own is None:
            own = self.prove(boxed, member)
        constants = array(member.trace.precision.format, [*member.trace.constants, *[0.0] * self.loaded][: self.loaded])
        constants.extend(own)
        return Row(number - self.least, constants)

    def prove(self, boxed: Boxed, member: Member, is_guess: bool = False) -> list[float]:
        """The constants that a member has for itself; it is lifted, and others will be compared with it.

        Args:
            is_guess: whether it is only there for others, who need not be told where tables look that vary.
        """
        number = boxed.number
        self.require_all(boxed)
        program, _ = boxed.lifted(member, self.guide)
        found = Numbers.of(program, member.inputs)
        own = self.pattern.own(found, number)
        expected = self._tables_of(number)
        for table in self.varying if is_guess else ():
            expected[table.offset : table.end] = program.tables[table.offset : table.end]
        _require(program.tables, expected)
        self.note(boxed, member)
        return own

    def require_all(self, boxed: Boxed) -> None:
        """Return if a member executes all statements.

        Raises:
            Unlike: it does not.
        """
        statements_ = self.statement_numbers(boxed.number)
        if len(set().union(*(statements_[start:end] for start, end in boxed.stretches))) < len(self.operations):
            raise Unlike("it is so short that some operations are missing")

    def _tables_of(self, number: int) -> list[int]:
        """The index tables of a member."""
        found = list(self.tables)
        for table in self.varying:
            found[table.offset : table.end] = table.at(number, self.tables)
        return found

    def _compared(self, boxed: Boxed, member: Member, number: int) -> list[float] | None:
        """The same by comparison with a known member; None if that does not tell."""
        if self.partial is None or self.precedent is None or number > self.precedent[0]:
            return None
        known = self.precedent[1]
        if not known.fits(boxed.trace, boxed.reach, member.inputs, boxed.stretches):
            return None
        statements_, a = self.statement_numbers(number), boxed.trace.a
        if len({statements_[place] for place in known.left_out if a[place] != NO_OPERAND}) < len(self.dependent):
            return None
        try:
            return self.partial.own(self.partly_lifted(boxed, member), number)
        except (Unlike, LiftError):
            return None

    def partly_lifted(self, boxed: Boxed, member: Member) -> Numbers:
        """The numbers of a Program in which only statements have operands that depend on the number."""
        statements_ = self.statement_numbers(boxed.number)
        program, _ = boxed.lifted(member, self.guide, lambda place: statements_[place] in self.dependent)
        found = Numbers.of(program, member.inputs)
        if program.tables:
            expected = self._tables_of(boxed.number)
            _require(program.tables, [entry for start, end in self.used for entry in expected[start:end]])
        return found

    def note(self, boxed: Boxed, member: Member) -> None:
        """Let others be compared with a member."""
        if self.partial is None:
            return
        left_out = [
            place for place, number in enumerate(self.statement_numbers(boxed.number)) if number in self.dependent
        ]
        known = boxed.number, Precedent(boxed.trace, boxed.reach, member.inputs, left_out, self.loaded)
        earlier = self.precedent or known
        self.precedent, less = max(known, earlier, key=itemgetter(0)), min(known, earlier, key=itemgetter(0))
        if less is not self.precedent:
            self.precedent[1].learn(less[1])

    def longest(self) -> int:
        """The number of records of the longest member that there is room for."""
        return max(self.lengths())

    def lengths(self) -> dict[int, int]:
        """The number of a member by the number of its records."""
        if self.records is None:
            numbers = range(self.most, self.least - 1, -1)
            self.records = {records_in(self.tree, number, ()): number for number in numbers}
        return self.records

    def boxed(self, member: Member, number: int) -> Boxed:
        """The trace of a member, in boxes as large as those of all others.

        Raises:
            Unlike: its operations are other ones.
        """
        trace, reach = member.trace, member.reach
        whole = self._whole(number)
        _, op, marks = self._box(number)
        executed = stretches(whole)
        places: list[int] = []
        runs: list[tuple[int, int]] = []
        for start, end in executed:
            runs.append((len(places), len(places) + end - start))
            places += range(start, end)
        if len(places) != len(trace):
            raise Unlike("it has another number of records")
        places.append(len(op))
        own = self._own_marks(reach, len(trace))
        for (start, end), (first, last) in zip(executed, runs):
            if op[start:end] != trace.op[first:last]:
                raise Unlike("its operations are other ones")
            if marks[start:end] != own[first:last]:
                raise Unlike("backward passes reach other operations")
        reach = reach._replace(meanings=self._meanings())
        marked = None if member.reach.marks is None else marks
        found, reached = moved(trace, reach, places, op, marked, [(0, len(trace))], runs)
        return Boxed(number, found, reached, as_forest(whole), executed)

    def imagined(self, one: Boxed, other: Boxed, scale: Scale) -> Boxed | None:
        """The trace of another member, as two suggest it; None if they do not."""
        whole = self._whole(scale.number)
        found = longest_trace(one, other, scale, self.tree, whole, self.statement_numbers(scale.number))
        return None if found is None else Boxed(scale.number, found, other.reach, as_forest(whole), stretches(whole))

    def _whole(self, number: int) -> Grown:
        """The loops of a member, as the body of a loop that is executed once."""
        return grown(1, [tree_of(part, number, ()) for part in self.tree])

    def _box(self, number: int) -> tuple[array[int], array[int], array[int]]:
        """For each place of the padded traces: the statement, the opcode, and the mark; the same for all members."""
        if self.box is None:
            numbers = array("i", records_of(self._whole(number)))
            own = list(map(self._meanings().index, self.marks))
            op = array("i", map(self.operations.__getitem__, numbers))
            self.box = numbers, op, array("i", map(own.__getitem__, numbers))
        return self.box

    def statement_numbers(self, number: int) -> array[int]:
        """The statement at each place of the padded traces; any number will do."""
        return self._box(number)[0]

    def _meanings(self) -> list[frozenset[int]]:
        """What marks mean in the padded traces; the first one is that no pass reaches a record, as in all traces."""
        return list(dict.fromkeys([frozenset[int](), *self.marks]))

    def _own_marks(self, reach: Reach, records: int) -> array[int]:
        """The marks of a trace, as this family has them."""
        names = {meaning: name for name, meaning in enumerate(self._meanings())}
        own = [names.get(meaning, -1) for meaning in reach.meanings]
        marks = reach.marks if reach.marks is not None else array("i", bytes(4 * records))
        if own == list(range(len(own))):
            return marks
        return array("i", map(own.__getitem__, marks))

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "records": None, "box": None, "guide": {}, "precedent": None}


class Boxed(NamedTuple):
    """The trace of a member, in boxes as large as those of all others.

    Attributes:
        number: of the member.
        trace, reach, forest: as of a trace that has been rolled.
        stretches: the places, from .. to, that are executed.
    """

    number: int
    trace: Trace
    reach: Reach
    forest: list[Item]
    stretches: list[tuple[int, int]]

    def lifted(
        self, member: Member, guide: Guide, wanted: Callable[[int], bool] | None = None
    ) -> tuple[Program, Memory]:
        """The Program of a member by itself; see `lift` for what is wanted, and for the guide."""
        return self.folded(member).lifted(hole=HOLE, wanted=wanted, guide=guide)

    def folded(self, member: Member) -> Folded:
        """What the Program is lifted from."""
        return Folded(self.trace, member.inputs, self.reach, self.forest)


def _require(tables: Sequence[int], expected: Sequence[int]) -> None:
    """Return if the tables of a member are those that its number makes likely, wherever it looks.

    Raises:
        Unlike: they are not.
    """
    if len(tables) != len(expected) or any(one not in (other, HOLE) for one, other in zip(tables, expected)):
        raise Unlike("its indices follow no rule, and are other ones")


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
