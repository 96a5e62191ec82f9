"""The reference interpreter: executes any Program, node by node, in pure Python.

It does not optimise anything; every pass and both backends are checked against it.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableSequence, Sequence
from typing import Any

from .operations import compute
from .program import (
    Array,
    Block,
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
    Register,
    Row,
    Statement,
    TableEntry,
    Target,
    TargetChoice,
)


class Interpreter:
    """Runs a differentiated Program over given memory.

    Args:
        program: without Backward nodes.
        memory: contents of the arrays that are not scratch or constant, by array; changed in place.
        given: the numbers that the Program needs to be given.
    """

    def __init__(self, program: Program, memory: dict[Array, MutableSequence[Any]], given: Sequence[int] = ()) -> None:
        self.program = program
        self.memory = dict(memory)
        self.variables: dict[Loop, int] = dict(zip(program.given, given))
        self.registers: dict[Statement, float] = {}

    def run(self) -> None:
        """All phases."""
        for _, nodes in self.program.phases:
            self.execute(nodes)

    def run_rows(self, rows: Sequence[Mapping[Array, MutableSequence[Any]]]) -> None:
        """A step for each row, with the contents of its arguments and results; as the Program has it."""
        rotation = self.program.rotation
        if self.program.row is not None:
            self._run_reordered(self.program.row, rows)
            return
        if rotation is None:
            for row in rows:
                self.memory.update(row)
                self.run()
            return
        self.memory.update(rows[0])
        self.execute(self.program.forward)
        for row in rows[1:]:
            self.memory.update((twin, row[one]) for one, twin in rotation.following.items() if one in row)
            self.execute(rotation.nodes)
            for one, twin in rotation.following.items():
                self.memory[one] = self.content(twin)
                del self.memory[twin]
            self.memory.update(row)
        for _, nodes in self.program.phases[1:]:
            self.execute(nodes)

    def _run_reordered(self, step: Row, rows: Sequence[Mapping[Array, MutableSequence[Any]]]) -> None:
        """A step for each row, while the elements of some arrays have another order."""
        for array, places in step.places.items():
            content = self.content(array)
            content[:] = [content[places.index(k)] for k in range(array.size)]
        for row in rows:
            self.memory.update(row)
            self.execute(step.nodes)
        for array, places in step.places.items():
            content = self.content(array)
            content[:] = [content[place] for place in places]

    def execute(self, nodes: Sequence[Node]) -> None:
        """A sequence of nodes."""
        for node in nodes:
            if isinstance(node, Loop):
                iterations = range(self.iterations(node))
                for i in reversed(iterations) if node.reverse else iterations:
                    self.variables[node] = i
                    self.execute(node.body)
            elif isinstance(node, Block):
                self.execute(node.body)
            elif isinstance(node, Statement):
                self.statement(node)
            else:
                raise TypeError("a Backward node cannot be executed: differentiate first")

    def iterations(self, loop: Loop) -> int:
        """How often a loop is executed now."""
        if loop.bound is None:
            return loop.count
        found = self.index(Index(*loop.bound))
        if found > loop.count:
            raise IndexError("more iterations than a loop may have")
        return found

    def statement(self, statement: Statement) -> None:
        """One statement."""
        operands = [self.value(operand) for operand in statement.operands]
        place = self.place(statement.target)
        if statement.update:
            if place is None:
                return
            operands.insert(0, self.element(*place))
        result = compute(statement.operation, operands, self.program.precision)
        self.registers[statement] = result
        if place is not None:
            self.content(place[0])[place[1]] = result

    def content(self, array: Array) -> MutableSequence[Any]:
        """The elements of an array; scratch arrays start as nan, so that reads before writes show up."""
        if array not in self.memory:
            constant = array.space == "constant"
            self.memory[array] = self.program.constants if constant else [float("nan")] * array.size
        return self.memory[array]

    def value(self, operand: Operand) -> float:
        """The number that an operand stands for."""
        if isinstance(operand, Constant):
            return operand.value
        if isinstance(operand, Register):
            return self.registers[operand.statement]
        if isinstance(operand, Load):
            return self.element(operand.reference.array, self.index(operand.reference.index))
        if isinstance(operand, Choice):
            return self.value(operand.rest if self.variables[operand.loop] else operand.first)
        assert isinstance(operand, Mixed)
        array = operand.arrays[self.entry(operand.selector)]
        return self.element(array, self.entry(operand.position))

    def element(self, array: Array, position: int) -> float:
        """An element, converted to the Program's precision; inputs may be integers, or more precise."""
        return self.program.precision.rounded(float(self.content(array)[position]))

    def place(self, target: Target) -> tuple[Array, int] | None:
        """Array and element that a target denotes in this iteration."""
        if target is None:
            return None
        if isinstance(target, Reference):
            return target.array, self.index(target.index)
        if isinstance(target, TargetChoice):
            return self.place(target.rest if self.variables[target.loop] else target.first)
        array = target.arrays[self.entry(target.selector)]
        return None if array is None else (array, self.entry(target.position))

    def index(self, index: Index) -> int:
        """The element number of an index in this iteration."""
        position = index.base + self.sum(index.terms)
        if index.table is not None:
            position += self.entry(index.table)
        if index.dynamic is not None:
            position += index.dynamic.stride * int(self.value(index.dynamic.operand))
        if position < 0:
            raise IndexError("a negative element number")
        return position

    def entry(self, entry: TableEntry) -> int:
        """An entry of the index tables."""
        return self.program.tables[entry.offset + self.sum(entry.terms)]

    def sum(self, terms: Sequence[tuple[Loop, int]]) -> int:
        """The linear part of an index."""
        return sum(coefficient * self.variables[loop] for loop, coefficient in terms)
