"""Random Programs whose loops have bounds: triangles both ways, by several loops, by tables, without iterations.

They are those of `tests/nests.py` otherwise: carried values, sums, choices of the first iteration, registers that cross
loops.  Indices are inside of arrays in the iterations that are executed, and often only there.
"""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Sequence
from typing import Any

from mgjit.ir.domain import extent, value
from mgjit.ir.program import (
    Array,
    Backward,
    Bound,
    Choice,
    Constant,
    Index,
    Load,
    Loop,
    Node,
    Operand,
    Program,
    Reference,
    Register,
    Statement,
    TableEntry,
    TargetChoice,
    statements,
    walk,
)
from mgjit.ir.substitute import Substitution, copy_nodes
from tests.handmade import SPECIAL
from tests.nests import _TABLE, _ChainWriter, _Writer

#: Numbers of iterations in the tables: from here on, for counts 1, 2, ...
_LARGEST = 12
_EACH = 32


class _BoundedWriter(_Writer):
    """Draws Programs with bounds."""

    def program(self) -> Program:
        made = super().program()
        made.tables.extend(self.draw.randrange(count + 1) for count in range(1, _LARGEST + 1) for _ in range(_EACH))
        for statement in (s for _, nodes in made.phases for s in statements(nodes)):
            target = statement.target
            if isinstance(target, TargetChoice) and not statement.update:  # only an update may write nowhere
                statement.target = TargetChoice(target.loop, target.first or target.rest, target.rest or target.first)
        return made

    def new_loop(self, around: tuple[Loop, ...]) -> Loop:
        loop = super().new_loop(around)
        if around and self.draw.random() < 0.7:
            self.draw.choice((self.triangle, self.triangle, self.look_up, self.several))(loop, around)
        return loop

    def triangle(self, loop: Loop, around: tuple[Loop, ...]) -> None:
        """As many iterations as a loop around has run, or has to run, more or less."""
        outer = self.draw.choice(around)
        step = self.draw.choice((1, 1, 1, -1, -1, 2))
        base = self.draw.choice((0, 0, 1, 1, 2)) - min(0, step * (outer.count - 1))
        self.within(loop, base, ((outer, step),), around)

    def several(self, loop: Loop, around: tuple[Loop, ...]) -> None:
        """By all loops around."""
        terms = tuple((outer, self.draw.choice((1, -1, 1))) for outer in around)
        base = self.draw.choice((0, 1)) - sum(min(0, step * (outer.count - 1)) for outer, step in terms)
        self.within(loop, base, terms, around)

    def within(self, loop: Loop, base: int, terms: tuple[tuple[Loop, int], ...], around: tuple[Loop, ...]) -> None:
        """Bounds that leave something to be executed, with a count that is large enough, and now and then too large."""
        most = base + sum(max(0, step * (outer.count - 1)) for outer, step in terms)
        if 0 < most <= 2 * _LARGEST:
            loop.count, loop.bound = most + self.draw.choice((0, 0, 0, 1)), Bound(base, terms)

    def look_up(self, loop: Loop, around: tuple[Loop, ...]) -> None:
        """By a table, by one or two loops; a triangle besides now and then."""
        outer = self.draw.choice(around)
        if loop.count <= _LARGEST and outer.count <= _EACH // 2:
            offset = 2 * _TABLE + (loop.count - 1) * _EACH + self.draw.randrange(_EACH // 2)
            loop.bound = Bound(0, (), TableEntry(offset, ((outer, 1),)))
            if self.draw.random() < 0.2:
                loop.count, loop.bound = loop.count + outer.count - 1, loop.bound._replace(terms=((outer, 1),))

    def index(self, array: Array, loops: tuple[Loop, ...]) -> Index:
        if self.draw.random() < 0.7 or not any(loop.bound for loop in loops):
            return super().index(array, loops)
        length = array.shape[-1] if array.shape else 8
        for _ in range(10):
            steps = (1, 1, -1, length, length + 1, length - 1, 0)
            terms = tuple((loop, step) for loop in loops for step in (self.draw.choice(steps),) if step)
            found = None
            if not any(loop.bound is not None and loop.bound.table is not None for loop in loops):
                found = extent(0, terms, loops, ())
            if found is not None and found[1] - found[0] < array.size:
                return Index(-found[0] + self.draw.randrange(array.size - (found[1] - found[0])), terms)
        return super().index(array, loops)


class _BoundedChainWriter(_ChainWriter):
    """Nests over the same part of a matrix, a triangle for example, which can be fused, or one begin another."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, plain=True)
        self.columns = self.draw.choice((4, 5, 8, 9))
        self.scratch[:2] = [
            Array(n, "scratch", self.rows * self.columns, shape=(self.rows, self.columns)) for n in "tu"
        ]
        #: Iterations of the columns: coefficient of the row, least number.
        self.growth = [(self.draw.choice((-1, 0, 1, 1)), self.draw.choice((0, 0, 1))) for _ in range(2)]

    def program(self) -> Program:
        made = super().program()
        for _, nodes in made.phases:
            for node in walk(nodes):
                if isinstance(node, Loop):
                    self.bounds_inside(node)
        return made

    def bounds_inside(self, row: Loop) -> None:
        """A bound for the columns inside of the rows, which are the loops with these counts."""
        for column in walk(row.body):
            if row.count != self.rows or not isinstance(column, Loop) or column.bound or column.count != self.columns:
                continue
            step, least = self.draw.choice(self.growth)
            if step and least + self.rows - 1 <= self.columns:
                column.bound = Bound(least + (self.rows - 1 if step < 0 else 0), ((row, step),))


class StepWriter:
    """Draws Programs as they are before reductions and differentiation, with a backward pass and an update.

    Results are arrays over the loops around their statement.  Each is read in later nests by loops of the same kinds,
    which are numbered: rows, and for every row a number of columns that grows, shrinks or is in a table.
    """

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.rows = self.draw.choice((3, 4, 5, 8))
        self.tables = array("i", [self.draw.randrange(self.draw.choice((0, 1)), self.rows + 1) for _ in range(8)])
        self.parameters, self.gradients = Array("p", "parameter", 8), Array("g", "gradient", 8)
        self.input, self.output = Array("x", "input", 100), Array("y", "output", 1)
        #: What is known for each row, and for each column of each kind.
        self.by_row: list[Array] = []
        self.by_column: dict[int, list[Array]] = {0: [], 1: [], 2: []}
        #: What is known for all rows.
        self.before: list[Array] = []
        self.nodes: list[Node] = []

    def program(self) -> Program:
        for _ in range(self.draw.choice((3, 4, 6, 8))):
            self.nodes.append(self.nest())
        self.nodes.append(self.total(self.draw.choice(self.by_row)) if self.by_row else self.nest())
        if self.by_row:
            last = Load(Reference(self.loss, Index(self.rows - 1)))
            self.nodes.append(Statement("copy", (last,), Reference(self.output, Index(0))))
            self.nodes.append(Backward(last, 0, frozenset({0})))
            self.nodes.append(self.update())
        return Program(self.nodes, tables=self.tables)

    @property
    def arrays(self) -> list[Array]:
        """All memory that can be seen."""
        return [self.parameters, self.gradients, self.input, self.output]

    def gradient(self, one: Array) -> Array | None:
        """As the memory of a step has them."""
        return self.gradients if one is self.parameters else None

    # ---- nests --------------------------------------------------------------------------------------

    def nest(self) -> Node:
        """One loop of rows, and in it what is computed by row and by column."""
        row = Loop(self.rows, [])
        self.before = list(self.by_row)
        for _ in range(self.draw.choice((1, 1, 2, 3))):
            kind = self.draw.random()
            if kind < 0.3:
                self.define(row, (row,), self.by_row)
            elif kind < 0.4:
                self.recurrence(row)
            else:
                self.columns(row)
        return row

    def columns(self, row: Loop) -> None:
        kind = self.draw.choice((0, 0, 1, 2))
        bound = (Bound(1, ((row, 1),)), Bound(self.rows, ((row, -1),)), Bound(0, (), TableEntry(0, ((row, 1),))))[kind]
        column = Loop(self.rows, [], bound=bound)
        row.body.append(column)
        for _ in range(self.draw.choice((1, 1, 2))):
            self.define(row, (row, column), self.by_column[kind], kind)
        if self.draw.random() < 0.6:
            self.chain(row, column, kind)

    def define(self, row: Loop, loops: tuple[Loop, ...], known: list[Array], kind: int = 0) -> None:
        """A result for every row, or for every column of every row."""
        operation, count = self.draw.choice((("multiply", 2), ("add", 2), ("subtract", 2), ("tanh", 1), ("relu", 1)))
        made = self.array(loops)
        operands = tuple(self.operand(loops, kind) for _ in range(count))
        loops[-1].body.append(self.statement(operation, operands, self.at(made, loops)))
        known.append(made)

    def recurrence(self, row: Loop) -> None:
        """Each row from the one before."""
        made, term = self.array((row,)), self.operand((row,), 0)
        carried = Choice(row, self.operand((), 0), Load(Reference(made, Index(-1, ((row, 1),)))))
        row.body.append(self.statement("multiply", (carried, term), self.at(made, (row,))))
        self.by_row.append(made)

    def chain(self, row: Loop, column: Loop, kind: int) -> None:
        """A sum of columns; what it is in the end is known for each row, if there is one in each row."""
        loops, made = (row, column), self.array((row, column))
        begin = self.draw.choice((Constant(0.0), self.operand((row,), 0)))
        before = Load(Reference(made, Index(-1, ((row, self.rows), (column, 1)))))
        operation = self.draw.choice(("add", "add", "subtract"))
        operands = (Choice(column, begin, before), self.operand(loops, kind))
        column.body.append(self.statement(operation, operands, self.at(made, loops)))
        if kind < 2:  # by the table, some rows may be empty
            used = self.array((row,))
            base, step = ((0, self.rows + 1), (self.rows - 1, self.rows - 1))[kind]
            last = Load(Reference(made, Index(base, ((row, step),))))
            operands = (last, self.operand((row,), 0))
            row.body.append(self.statement("multiply", operands, self.at(used, (row,))))
            self.by_row.append(used)

    def total(self, of: Array) -> Node:
        """The sum over all rows."""
        row = Loop(self.rows, [])
        self.loss = self.array((row,))
        before = Load(Reference(self.loss, Index(-1, ((row, 1),))))
        operands = Choice(row, Constant(0.0), before), Load(self.at(of, (row,)))
        row.body = [self.statement("add", operands, self.at(self.loss, (row,)))]
        return row

    def update(self) -> Node:
        every = Loop(self.parameters.size, [])
        p, g = (Reference(one, Index(0, ((every, 1),))) for one in (self.parameters, self.gradients))
        step = Statement("multiply", (Load(g), Constant(0.125)))
        every.body = [step, Statement("subtract", (Load(p), Register(step)), p)]
        return every

    # ---- operands -----------------------------------------------------------------------------------

    def array(self, loops: tuple[Loop, ...]) -> Array:
        shape = tuple(loop.count for loop in loops)
        self.count = getattr(self, "count", 0) + 1
        return Array(f"t{self.count}", "scratch", math.prod(shape), shape=shape)

    def at(self, one: Array, loops: tuple[Loop, ...]) -> Reference:
        steps = (self.rows, 1)[-len(loops) :] if loops else ()
        return Reference(one, Index(0, tuple(zip(loops, steps))))

    @staticmethod
    def statement(operation: str, operands: tuple[Operand, ...], target: Reference) -> Statement:
        return Statement(operation, operands, target, passes=frozenset({0}))

    def operand(self, loops: tuple[Loop, ...], kind: int) -> Operand:
        """A parameter, an input, or what is known by these rows and columns."""
        number = self.draw.random()
        if len(loops) == 2 and self.by_column[kind] and number < 0.4:
            return Load(self.at(self.draw.choice(self.by_column[kind]), loops))
        if loops and self.by_row and number < 0.7:
            if number < 0.55 or not self.before:
                return Load(self.at(self.draw.choice(self.by_row), loops[:1]))
            return Load(self.at(self.draw.choice(self.before), loops[-1:]))  # any row of what is complete
        steps = tuple((loop, self.draw.choice((0, 1))) for loop in loops)
        terms = tuple((loop, step) for loop, step in steps if step)[:1]
        source = self.draw.choice((self.parameters, self.input))
        return Load(Reference(source, Index(0, terms)))


def random_bounded(seed: int, plain: bool = False) -> Program:
    """The Program of a seed.

    Args:
        seed: any number.
        plain: only affine accesses, which most passes can do more with.
    """
    return _BoundedWriter(seed, plain).program()


def random_bounded_chain(seed: int) -> Program:
    """The Program of a seed, whose nests are alike."""
    return _BoundedChainWriter(seed).program()


def random_step(seed: int) -> tuple[Program, StepWriter]:
    """The Program of a seed before it is differentiated, and its memory map."""
    writer = StepWriter(seed)
    return writer.program(), writer


def unrolled(nodes: Sequence[Node], tables: Sequence[int]) -> list[Node]:
    """The nodes without loops."""
    done: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop):
            count = range(node.count if node.bound is None else value(node.bound, {}, tables))
            for iteration in reversed(count) if node.reverse else count:
                done += unrolled(copy_nodes(node.body, Substitution(node, None, 1, iteration)), tables)
        else:
            done.append(node)
    return done


def contents(arrays: list[Array], seed: int) -> dict[Array, list[Any]]:
    """Memory to run a Program on; every other seed has infinities, nans and zeros of both signs."""
    draw = random.Random(seed)
    return {
        array: [
            draw.choice(SPECIAL) if seed % 2 and draw.random() < 0.3 else draw.uniform(-2.0, 2.0)
            for _ in range(array.size)
        ]
        for array in arrays
    }
