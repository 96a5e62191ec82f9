"""Random Programs of loop nests, for passes that rearrange them: affine accesses of every kind, and what is not affine.

`random_program(seed)` makes the same Program every time.  All scratch memory is written before anything reads it.
"""

from __future__ import annotations

import random
from array import array

from mgjit.ir.program import (
    Array,
    Block,
    Choice,
    Constant,
    Dynamic,
    Index,
    Load,
    Loop,
    Mixed,
    Node,
    Operand,
    Program,
    Reference,
    Register,
    Statement,
    TableEntry,
    Target,
    TargetChoice,
    TargetMixed,
)

#: Below, at and above the numbers of lanes that are tested.
COUNTS = (1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 9, 11, 16, 17)
_TABLE = 40
_ONE_OPERAND = ("copy", "relu", "negate", "absolute", "sqrt")
_TWO_OPERANDS = ("add", "add", "multiply", "multiply", "subtract", "maximum", "minimum", "less", "equal", "divide")
_UPDATES = ("add", "add", "add", "subtract", "multiply", "maximum")
#: Iterations of all nests of a Program together, about.
_MOST_ITERATIONS = 400


class _Writer:
    """Draws the parts of one Program.

    Args:
        seed: of the draw.
        plain: only affine accesses and operands that no loop chooses.
    """

    def __init__(self, seed: int, plain: bool) -> None:
        self.draw = random.Random(seed)
        self.plain = plain
        self.scratch = [
            Array("t", "scratch", 60, shape=(6, 10)),
            Array("u", "scratch", 63, shape=(7, 9)),
            Array("v", "scratch", 17, shape=(17,)),
        ]
        spaces = (("p", "parameter"), ("g", "gradient"), ("s", "state"))
        self.visible = [Array(name, space, 70) for name, space in spaces]
        self.inputs = [Array("x", "input", 90), Array("y", "input", 40)]
        self.constants = Array("constants", "constant", 24)

    def program(self) -> Program:
        """A few nests in each phase."""
        phases = [[node for _ in range(self.draw.choice((1, 2, 3))) for node in self.nest()] for _ in range(3)]
        program = Program([*(self.fill(array) for array in self.scratch), *phases[0]], *phases[1:])
        program.constants = array("d", [float(number * 5 % 8) for number in range(self.constants.size)])
        program.tables.extend(self.draw.randrange(self.scratch[2].size) for _ in range(_TABLE))
        program.tables.extend(self.draw.randrange(2) for _ in range(_TABLE))
        return program

    def fill(self, scratch: Array) -> Loop:
        """A loop that gives all elements of an array a number."""
        loop = Loop(scratch.size, [])
        place = Index(0, ((loop, 1),))
        loop.body = [Statement("copy", (Load(Reference(self.inputs[0], place)),), Reference(scratch, place))]
        return loop

    # ---- nodes ------------------------------------------------------------------------------------

    def nest(self) -> list[Node]:
        """A nest of up to three loops, and now and then a statement in front of it."""
        before: list[Node] = []
        known: list[Statement] = []
        if self.draw.random() < 0.2:
            before = self.statements((), known, 1)
        return [*before, self.loop((), known, self.draw.choice((1, 2, 2, 3)))]

    def new_loop(self, around: tuple[Loop, ...]) -> Loop:
        """An empty loop."""
        iterations = 1
        for outer in around:
            iterations *= outer.count
        count = self.draw.choice([count for count in COUNTS if count * iterations <= _MOST_ITERATIONS])
        return Loop(count, [], reverse=self.draw.random() < 0.25)

    def loop(self, around: tuple[Loop, ...], known: list[Statement], depth: int) -> Loop:
        loop = self.new_loop(around)
        inside, seen = (*around, loop), list(known)
        if not self.plain and self.draw.random() < 0.07:
            loop.body = [Block(self.statements(inside, [], 2)), *self.statements(inside, seen, 1)]
        elif depth == 1:
            loop.body = self.statements(inside, seen, self.draw.choice((1, 1, 2, 3)))
        else:
            kind = self.draw.random()
            first = self.statements(inside, seen, self.draw.choice((1, 2))) if kind < 0.4 else []
            loop.body = [*first, self.loop(inside, seen, depth - 1)]
            if kind < 0.2:
                loop.body += self.statements(inside, seen, 1)
            elif kind > 0.9:
                loop.body.append(self.loop(inside, seen, 1))
        return loop

    def statements(self, loops: tuple[Loop, ...], known: list[Statement], count: int) -> list[Node]:
        """Statements in a body; each may use the registers of those that are known, and becomes known."""
        made: list[Node] = []
        for _ in range(count):
            if self.draw.random() < 0.5:
                operation = self.draw.choice(_UPDATES)
                statement = Statement(operation, (self.operand(loops, known),), self.target(loops), update=True)
            else:
                names, number = self.draw.choice(((_ONE_OPERAND, 1), (_TWO_OPERANDS, 2), (_TWO_OPERANDS, 2)))
                operands = tuple(self.operand(loops, known) for _ in range(number))
                target = None if self.draw.random() < 0.2 else self.target(loops)
                statement = Statement(self.draw.choice(names), operands, target)
                known.append(statement)
            made.append(statement)
        return made

    # ---- operands and targets -----------------------------------------------------------------------

    def operand(self, loops: tuple[Loop, ...], known: list[Statement], depth: int = 0) -> Operand:
        kind = self.draw.random()
        if known and kind < 0.25:
            return Register(self.draw.choice(known))
        if kind < 0.35:
            return Constant(self.draw.choice((0.0, -0.0, 1.0, 0.5, -2.0)))
        if not self.plain and loops and kind < 0.45 and depth < 2:
            first, rest = (self.operand(loops, known, depth + 1) for _ in range(2))
            return Choice(self.draw.choice(loops), first, rest)
        if not self.plain and kind < 0.5:
            return self.draw.choice((self.looked_up, self.at_run_time, self.mixed))(loops)
        array = self.draw.choice([*self.scratch, *self.visible, *self.inputs, *self.inputs])
        return Load(Reference(array, self.index(array, loops)))

    def target(self, loops: tuple[Loop, ...]) -> Target:
        array = self.draw.choice([*self.scratch, *self.visible, *self.visible])
        place = Reference(array, self.index(array, loops))
        kind = self.draw.random()
        if self.plain or not loops or kind > 0.1:
            return place
        if kind < 0.05:
            other = None if self.draw.random() < 0.3 else Reference(self.visible[0], self.index(self.visible[0], loops))
            return TargetChoice(self.draw.choice(loops), *self.draw.choice(((place, other), (other, place))))
        if kind < 0.065:
            return Reference(self.visible[0], self.index_at_run_time(loops))
        return TargetMixed((self.visible[0], self.visible[1]), *self.entries(loops))

    def index(self, array: Array, loops: tuple[Loop, ...]) -> Index:
        """An affine index that stays inside the array: rows, columns, diagonals, strides, in both directions."""
        length = array.shape[-1] if array.shape else self.draw.choice((5, 8, 9, 10))
        if self.draw.random() < 0.5:
            return self.row_and_column(array, length, loops)
        terms: list[tuple[Loop, int]] = []
        low = high = 0
        for loop in self.draw.sample(loops, len(loops)):
            step = self.draw.choice((1, 1, 1, length, length, 2, -1, -length, 3, 0))
            span = step * (loop.count - 1)
            if step and high + max(span, 0) - low - min(span, 0) < array.size:
                terms.append((loop, step))
                low, high = low + min(span, 0), high + max(span, 0)
        room = array.size - (high - low)
        return Index(-low + (0 if self.draw.random() < 0.6 else self.draw.randrange(room)), tuple(terms))

    def row_and_column(self, array: Array, length: int, loops: tuple[Loop, ...]) -> Index:
        """An element of a matrix by one or two loops, as in products of matrices."""
        rows = [loop for loop in loops if loop.count <= array.size // length]
        columns = [loop for loop in loops if loop.count <= length]
        row, column = (self.draw.choice([None, *found, *found]) for found in (rows, columns))
        steps = ((column, 1), (row, length)) if row is not column else ((column, 1),)
        return Index(0, tuple((loop, step) for loop, step in steps if loop is not None))

    def entries(self, loops: tuple[Loop, ...]) -> tuple[TableEntry, TableEntry]:
        """A selector of one of two arrays, and a position in it."""
        loop = self.draw.choice(loops)
        return TableEntry(_TABLE, ((loop, 1),)), TableEntry(self.draw.randrange(_TABLE - 17), ((loop, 1),))

    def looked_up(self, loops: tuple[Loop, ...]) -> Operand:
        terms = ((self.draw.choice(loops), 1),) if loops else ()
        return Load(Reference(self.scratch[2], Index(0, (), TableEntry(self.draw.randrange(_TABLE - 17), terms))))

    def at_run_time(self, loops: tuple[Loop, ...]) -> Operand:
        array = self.draw.choice((self.visible[0], self.inputs[0]))
        return Load(Reference(array, self.index_at_run_time(loops)))

    def index_at_run_time(self, loops: tuple[Loop, ...]) -> Index:
        """An element of a row, or near one, that a number chooses, which may differ in each iteration."""
        terms = ((self.draw.choice(loops), 1),) if loops and self.draw.random() < 0.5 else ()
        number: Operand = Load(Reference(self.constants, Index(self.draw.randrange(4), terms)))
        if loops and self.draw.random() < 0.3:
            number = Choice(self.draw.choice(loops), number, Constant(3.0))
        stride = self.draw.choice((1, 5, 6))
        steps = ((self.draw.choice(loops), 1),) if loops and self.draw.random() < 0.8 else ()
        return Index(0, steps, None, Dynamic(number, stride, 8))

    def mixed(self, loops: tuple[Loop, ...]) -> Operand:
        if not loops:
            return Constant(1.5)
        return Mixed((self.scratch[2], self.inputs[1]), *self.entries(loops))


class _ChainWriter(_Writer):
    """Programs whose nests are loops over the same rows and columns, and work on the same matrices."""

    def __init__(self, seed: int, plain: bool) -> None:
        super().__init__(seed, plain)
        self.rows, self.columns = self.draw.choice((2, 3, 4, 6)), self.draw.choice((2, 4, 5, 8, 9))
        shape = (self.rows, self.columns)
        self.scratch = [Array(name, "scratch", self.rows * self.columns, shape=shape) for name in "tu"]
        self.scratch.append(Array("v", "scratch", 17, shape=(17,)))

    def program(self) -> Program:
        phases = [[self.chain() for _ in range(self.draw.choice((2, 3, 4)))] for _ in range(3)]
        program = super().program()
        fills: list[Node] = program.forward[: len(self.scratch)]
        program.forward[:] = [*fills, *phases[0]]
        program.backward, program.update = phases[1], phases[2]
        return program

    def chain(self) -> Node:
        """A nest over rows, columns, and perhaps a loop that sums."""
        row, column = Loop(self.rows, []), Loop(self.columns, [], reverse=self.draw.random() < 0.1)
        total = Loop(self.draw.choice((1, 3, 5)), [], reverse=self.draw.random() < 0.3)
        loops = [row, column] + ([total] if self.draw.random() < 0.4 else [])
        if self.draw.random() < 0.3:
            self.draw.shuffle(loops)
        known: list[Statement] = []
        body: list[Node] = []
        for _ in range(self.draw.choice((1, 1, 2))):
            body += self.chained(row, column, total if total in loops else None, known)
        for loop in reversed(loops):
            loop.body = body
            body = [loop]
        return loops[0]

    def chained(self, row: Loop, column: Loop, total: Loop | None, known: list[Statement]) -> list[Node]:
        """A statement about one element of a matrix, mostly."""
        place = Reference(self.draw.choice([*self.scratch[:2], *self.visible]), self.element(row, column))
        other = Load(Reference(self.draw.choice([*self.scratch[:2], *self.visible]), self.element(row, column)))
        if total is None and self.draw.random() < 0.2:
            return [Statement("copy", (Constant(0.0),), place)]
        vector: Operand = Load(Reference(self.inputs[0], Index(0, ((total or row, self.columns), (column, 1)))))
        if total is not None or self.draw.random() < 0.3:
            return [Statement(self.draw.choice(("add", "subtract")), (self.draw.choice((vector, other)),), place, True)]
        if known and self.draw.random() < 0.4:
            vector = Register(self.draw.choice(known))
        made = Statement(self.draw.choice(_TWO_OPERANDS), (other, vector), place)
        known.append(made)
        return [made]

    def element(self, row: Loop, column: Loop) -> Index:
        base = 0
        if self.draw.random() < 0.1 and self.columns > 1:
            column, base = Loop(1, []), self.draw.randrange(self.columns)
        terms = ((row, self.columns), (column, 1))
        return Index(base, tuple((loop, step) for loop, step in terms if loop.count > 1))


class _ChoosingWriter(_Writer):
    """Sums of products with matrices of which a number or a table chooses one: several in a row, in and without a loop.

    The numbers that choose change in between, so that a copy of a chosen matrix goes out of date.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed, plain=True)
        self.rows, self.columns = self.draw.choice((2, 3, 5)), self.draw.choice((4, 5, 8, 9))
        self.terms = self.draw.choice((2, 3, 4))
        self.size = self.columns * self.terms
        self.matrices = Array("w", "parameter", 8 * self.size)
        self.numbers = Array("n", "scratch", 8, shape=(8,))
        self.result = Array("r", "state", self.rows * self.columns)

    def program(self) -> Program:
        program = Program([*self.fill_numbers(), *self.nests(())])
        program.forward.append(self.around(Loop(2, [])) if self.draw.random() < 0.5 else self.choose(()))
        program.forward += self.nests(())
        program.constants = array("d", [float(self.draw.randrange(8)) for _ in range(self.constants.size)])
        program.tables.extend(self.size * self.draw.randrange(8) for _ in range(_TABLE))
        return program

    def around(self, loop: Loop) -> Loop:
        loop.body = [*self.nests((loop,)), self.choose((loop,)), *self.nests((loop,))]
        return loop

    def fill_numbers(self) -> list[Node]:
        loop = Loop(8, [])
        place = Index(self.draw.randrange(8), ((loop, 1),))
        target = Reference(self.numbers, Index(0, ((loop, 1),)))
        loop.body = [Statement("copy", (Load(Reference(self.constants, place)),), target)]
        return [loop]

    def choose(self, around: tuple[Loop, ...]) -> Statement:
        """Another matrix from here on."""
        place = Index(self.draw.randrange(16), tuple((loop, 1) for loop in around))
        number = Load(Reference(self.constants, place))
        return Statement("copy", (number,), Reference(self.numbers, Index(self.draw.randrange(3))))

    def nests(self, around: tuple[Loop, ...]) -> list[Node]:
        made: list[Node] = []
        for _ in range(self.draw.choice((1, 2, 2, 3))):
            number: Operand = Load(Reference(self.numbers, Index(self.draw.randrange(3))))
            if self.draw.random() < 0.3:
                known = Statement("copy", (number,))
                made.append(known)
                number = Register(known)
            made.append(self.product(number, around))
            if self.draw.random() < 0.4:
                made.append(self.choose(around))
        return made

    def product(self, number: Operand, around: tuple[Loop, ...]) -> Loop:
        """`for row: for column: for term: r[row, column] += x[row, term] * w[one of them][column, term]`."""
        row, column, term = Loop(self.rows, []), Loop(self.columns, []), Loop(self.terms, [])
        vector = Load(Reference(self.inputs[0], Index(0, ((row, self.terms), (term, 1)))))
        product = Statement("multiply", (vector, self.element(number, row, column, term, around)))
        place = Reference(self.result, Index(0, ((row, self.columns), (column, 1))))
        term.body = [product, Statement("add", (Register(product),), place, update=True)]
        column.body, row.body = [term], [column]
        return row

    def element(self, number: Operand, row: Loop, column: Loop, term: Loop, around: tuple[Loop, ...]) -> Operand:
        inside = ((column, self.terms), (term, 1))

        def of(base: int, *chosen: tuple[Loop, int]) -> Operand:
            return Load(Reference(self.matrices, Index(base, (*chosen, *inside))))

        kind = self.draw.randrange(6)
        if kind == 0:  # the second alternative is before the array where it is not taken
            return Choice(row, of(self.size), of(-self.size, (row, self.size)))
        if kind == 1:  # the first one is behind it
            loop = self.draw.choice((row, term))
            return Choice(loop, of(7 * self.size, (loop, self.size)), of(0))
        if kind == 2:
            entry = TableEntry(self.draw.randrange(8), tuple((loop, 3) for loop in (row, *around)))
            return Load(Reference(self.matrices, Index(0, inside, entry)))
        if kind == 3:  # another one for each row
            number = Load(Reference(self.numbers, Index(self.draw.randrange(3), ((row, 1),))))
        return Load(Reference(self.matrices, Index(0, inside, None, Dynamic(number, self.size, 8))))


def random_program(seed: int, plain: bool = False) -> Program:
    """The Program of a seed.

    Args:
        seed: any number.
        plain: only affine accesses, which most passes can do more with.
    """
    return _Writer(seed, plain).program()


def random_chain(seed: int) -> Program:
    """The Program of a seed, whose nests are alike, so that they can be fused."""
    return _ChainWriter(seed, plain=True).program()


def random_choosing(seed: int) -> Program:
    """The Program of a seed, whose nests read matrices that are chosen at run time, by a table or by a loop."""
    return _ChoosingWriter(seed).program()
