"""The numbers in which the lifted Programs of a family differ, and a key of everything else."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...ir.domain import full_range
from ...ir.printer import print_program
from ...ir.program import (
    Backward,
    Bound,
    Choice,
    Constant,
    Index,
    Load,
    Loop,
    Mixed,
    Node,
    Operand,
    Program,
    Reference,
    Statement,
    TableEntry,
    Target,
    TargetChoice,
    Term,
    leaf_operands,
    statements,
    walk,
)
from ...ir.trace import InputRegion
from .lengths import Unlike


class Numbers:
    """The numbers in which the Programs of members may differ, in order, and a key of everything else.

    Args:
        number: what becomes of the first element of an index, or of a bound: a number, and terms to be added.
        constant: the same for a constant.
        table: the same for the use of a table.

    Attributes:
        numbers, constants: what has been met.
        pairs: the offsets of tables that are looked up together.
        key: of everything else, if that is asked for.
    """

    def __init__(
        self,
        number: Callable[[int], tuple[int, tuple[Term, ...]]],
        constant: Callable[[float], Operand],
        table: Callable[[TableEntry], TableEntry] = lambda entry: entry,
    ) -> None:
        self._number, self._constant, self._table = number, constant, table
        self.numbers: list[int] = []
        self.constants: list[float] = []
        self.pairs: list[tuple[int, int]] = []
        self.key = ""

    @classmethod
    def of(cls, program: Program, inputs: Sequence[InputRegion]) -> Numbers:
        """Take the numbers out of a lifted Program."""
        found = cls(lambda number: (0, ()), lambda constant: Constant(0.0))
        loaded = loaded_constants(program)
        found.rewrite(program)
        loops = [node for node in walk(program.forward) if isinstance(node, Loop)]
        rest = (
            [(loop.count, loop.reverse) for loop in loops],
            [sorted(statement.passes) for statement in statements(program.forward)],
            [(b.number, sorted(b.instances)) for b in walk(program.forward) if isinstance(b, Backward)],
            loaded,
            len(program.tables),
            [[region.start, region.format][1:] for region in inputs],
        )
        text = f"{print_program(program)}\n{rest}"
        found.key = hashlib.sha256(text.encode()).hexdigest()
        return found

    def rewrite(self, program: Program) -> None:
        """Rewrite all numbers of a Program that has just been lifted, in place."""
        for node in walk(program.forward):
            if isinstance(node, Loop):
                if node.bound is not None:
                    node.bound = Bound(*self._index(Index(*node.bound))[:3])
            elif isinstance(node, Backward):
                node.root = self._operand(node.root)
            elif isinstance(node, Statement):
                node.operands = tuple([self._operand(operand) for operand in node.operands])
                node.target = self._target(node.target)

    def _index(self, index: Index) -> Index:
        self.numbers.append(index.base)
        base, terms = self._number(index.base)
        dynamic = index.dynamic
        if dynamic is not None:
            dynamic = dynamic._replace(operand=self._operand(dynamic.operand))
        table = None if index.table is None else self._table(index.table)
        return Index(base, (*terms, *index.terms), table, dynamic)

    def _operand(self, operand: Operand) -> Operand:
        if isinstance(operand, Constant):
            self.constants.append(operand.value)
            return self._constant(operand.value)
        if isinstance(operand, Load):
            array_, index = operand.reference
            return Load(Reference(array_, self._index(index)))
        if isinstance(operand, Choice):
            return Choice(operand.loop, self._operand(operand.first), self._operand(operand.rest))
        if isinstance(operand, Mixed):
            self.pairs.append((operand.selector.offset, operand.position.offset))
            return operand._replace(selector=self._table(operand.selector), position=self._table(operand.position))
        return operand

    def _target(self, target: Target) -> Target:
        if isinstance(target, Reference):
            return Reference(target.array, self._index(target.index))
        if isinstance(target, TargetChoice):
            return TargetChoice(target.loop, self._target(target.first), self._target(target.rest))
        if target is not None:
            self.pairs.append((target.selector.offset, target.position.offset))
            return target._replace(selector=self._table(target.selector), position=self._table(target.position))
        return None


class Pattern(NamedTuple):
    """What the Programs of the members of a family have in common.

    Attributes:
        key: a Program without the numbers in which members differ.
        numbers: these numbers: what they are for number 0, and by how much they grow.
        constants: constants that are the same in all members, None for others.
    """

    key: str
    numbers: list[tuple[int, int]]
    constants: list[float | None]

    @classmethod
    def of(cls, one: Numbers, other: Numbers, unit: int) -> Pattern:
        """That of the members 0 and `unit`.

        Raises:
            Unlike: they have no such pattern.
        """
        if one.key != other.key:
            raise Unlike("their loops read or write other places")
        if any((more - base) % unit for base, more in zip(one.numbers, other.numbers)):
            raise Unlike("an index or bound does not follow the lengths of their loops")
        numbers = [(base, (more - base) // unit) for base, more in zip(one.numbers, other.numbers)]
        pairs = zip(one.constants, other.constants)
        return cls(one.key, numbers, [x if bits_of(x) == bits_of(y) else None for x, y in pairs])

    def own(self, found: Numbers, number: int) -> list[float]:
        """The constants that a member has for itself.

        Raises:
            Unlike: it is no member.
        """
        if found.key != self.key:
            raise Unlike("its loops read or write other places")
        if found.numbers != [base + step * number for base, step in self.numbers]:
            raise Unlike("its indices or bounds are not those that its length makes likely")
        if any(one is not None and bits_of(one) != bits_of(two) for one, two in zip(self.constants, found.constants)):
            raise Unlike("a number is another one that is the same in all members")
        return [x for x, same in zip(found.constants, self.constants) if same is None]


def bits_of(number: float) -> str:
    """A key that tells -0.0 from 0.0."""
    return number.hex()


def loaded_constants(program: Program) -> int:
    """How many elements of the array of constants a lifted Program may read."""
    found = 0
    for statement in statements(program.forward):
        for operand in statement.operands:
            for part in leaf_operands(operand):
                if isinstance(part, Mixed) and any(one.space == "constant" for one in part.arrays):
                    found = max(found, _largest_entry(part.position, program) + 1)
                elif isinstance(part, Load) and part.reference.array.space == "constant":
                    index = part.reference.index
                    if index.dynamic is not None:
                        raise Unlike("constants are chosen at run time")
                    entry = 0 if index.table is None else _largest_entry(index.table, program)
                    found = max(found, full_range(index)[1] + entry + 1)
    return found


def _largest_entry(entry: TableEntry, program: Program) -> int:
    """The largest number that is looked up in a table."""
    _, last = full_range(Index(entry.offset, entry.terms))
    return max(program.tables[entry.offset : last + 1], default=0)


def table_offsets(nodes: Sequence[Node]) -> list[int]:
    """The offsets of the tables that statements and backward passes use."""
    return [entry.offset for entry in table_entries(Program(list(nodes)))[0]]


def table_entries(program: Program) -> tuple[list[TableEntry], list[tuple[int, int]]]:
    """The uses of tables in the order of their offsets, and the offsets of those that are looked up together."""
    found: dict[int, TableEntry] = {}

    def table(entry: TableEntry) -> TableEntry:
        return found.setdefault(entry.offset, entry)

    numbers = Numbers(lambda base: (base, ()), Constant, table)
    numbers.rewrite(program)
    return [found[offset] for offset in sorted(found)], numbers.pairs
