"""Copies with consecutive elements: when they are made, when they are used again, and when they are out of date."""

from __future__ import annotations

from mgjit.compiler.schedule.pack import Packer, can_be_packed
from mgjit.ir.nest import examine
from mgjit.ir.printer import print_program
from mgjit.ir.program import (
    Array,
    Choice,
    Constant,
    Dynamic,
    Index,
    Load,
    Loop,
    Node,
    Operand,
    PaddedRows,
    Program,
    Reference,
    Register,
    Statement,
    TableEntry,
)
from tests.handmade import around, at, define, load, same_bits

P, X, T = Array("p", "parameter", 80), Array("x", "input", 80), Array("t", "state", 80)
N = Array("n", "scratch", 4)


def product(rows: int = 3, columns: int = 5, step: int = 16) -> tuple[Loop, Loop, Statement]:
    """`for i: for j: t[i,j] = p[step * j + i] * x[i]`, whose elements of p lie in columns."""
    i, j = Loop(rows, []), Loop(columns, [])
    place = [(i, columns), (j, 1)]
    statement = define(at(T, *place), "multiply", load(P, (j, step), (i, 1)), load(X, (i, 1)))
    return around(i, around(j, statement)), j, statement


def first_operand(statement: Statement) -> Load:
    """The operand that is packed."""
    operand = statement.operands[0]
    assert isinstance(operand, Load)
    return operand


def chosen(number: Operand | None = None, table: int = 0) -> tuple[Loop, Loop, Statement]:
    """The product with a matrix that a number chooses, or for each row an entry of the table."""
    nest, j, statement = product()
    index = Index(0, ((j, 3), (nest, 1)))
    if number is None:
        index = index._replace(table=TableEntry(table, ((nest, 1),)))
    else:
        index = index._replace(dynamic=Dynamic(number, 15, 4))
    statement.operands = (Load(Reference(P, index)), statement.operands[1])
    return nest, j, statement


def allowed(nest: Loop, statement: Statement) -> list[bool]:
    """Of each read of P by a statement, whether it can be packed."""
    examined = examine(nest)
    assert examined is not None
    written = {use.reference.array for use in examined.uses if use.writes}
    reads = [use for use in examined.uses if use.statement is statement and use.reference.array is P]
    return [can_be_packed(use, examined, written) for use in reads]


def packed(packer: Packer, nest: Loop, vector: Loop, statement: Statement) -> list[Node]:
    """What is filled for the first operand."""
    return packer.pack([nest], vector, [first_operand(statement).reference])


def test_01_as_in_the_docstring() -> None:
    """Filled in front of the nest, the vector loop last, rows of whole vectors."""
    nest, j, statement = product()

    def change(program: Program) -> None:
        program.forward[:] = [*packed(Packer(4), nest, j, statement), nest]

    program = Program([nest])
    same_bits(program, change)
    assert print_program(program) == (
        "forward:\n"
        "    for i in 0 .. 2:\n"
        "        for j in 0 .. 4:\n"
        "            %0 = packed1[8*i + j] = copy(p[16*j + i])\n"
        "    for i in 0 .. 2:\n"
        "        for j in 0 .. 4:\n"
        "            %1 = t[5*i + j] = multiply(packed1[8*i + j], x[i])\n"
        "padded rows of packed1: 3 x 5 of 8\n"
    )
    array = first_operand(statement).reference.array
    assert (array.size, array.shape, array.padded_rows) == (24, (3, 5), (PaddedRows(0, 5, 8, 3),))


def test_02_the_same_pattern_again() -> None:
    """Other loops of the same counts read the same copy; another step or another place has its own."""
    packer = Packer(4)
    made = [product() for _ in range(3)]
    filled = [len(packed(packer, *parts)) for parts in made]
    assert filled == [1, 0, 0]
    arrays = {first_operand(statement).reference.array.name for _, _, statement in made}
    assert arrays == {"packed1"}
    assert len(packed(packer, *product(step=15))) == 1
    nest, j, statement = product()
    statement.operands = (load(P, (j, 16), (nest, 1), base=1), statement.operands[1])
    assert len(packed(packer, nest, j, statement)) == 1


def test_03_one_reference_in_several_statements() -> None:
    """It is filled once, and all of them read it."""
    nest, j, statement = product()
    again = define(at(T, (nest, 5), (j, 1), base=40), "negate", statement.operands[0])
    j.body.append(again)
    reference = first_operand(statement).reference

    def change(program: Program) -> None:
        program.forward[:] = [*Packer(8).pack([nest], j, [reference, reference]), nest]

    same_bits(Program([nest]), change)
    assert first_operand(statement) == first_operand(again)


def test_04_out_of_date() -> None:
    """When somebody writes the array; not when another one is written."""
    packer = Packer(4)
    packed(packer, *product())
    packer.forget([T])
    assert packed(packer, *product()) == []
    packer.forget([P])
    assert len(packed(packer, *product())) == 1


def test_05_bodies() -> None:
    """What is valid around a body that does not write the array is valid in it; what is packed in it, only there."""
    packer = Packer(4)
    packed(packer, *product())
    assert packed(packer.inside([T]), *product()) == []
    inner = packer.inside([P])
    assert len(packed(inner, *product())) == 1
    assert packed(inner, *product()) == []
    other = product(step=15)
    packed(packer.inside([]), *other)
    assert len(packed(packer, *product(step=15))) == 1


def test_06_names_differ() -> None:
    """In bodies, and with a counter that several packers share."""
    counter = [0]
    packer, another = Packer(4, counter), Packer(4, counter)
    made = [product() for _ in range(3)]
    for chosen, parts in zip((packer, packer.inside([P]), another), made):
        packed(chosen, *parts)
    assert [first_operand(statement).reference.array.name for _, _, statement in made] == [
        "packed1",
        "packed2",
        "packed3",
    ]


def test_07_chosen_at_run_time() -> None:
    """A copy is of the matrix that one number chooses, until the number is written."""
    packer = Packer(4)
    first, again, other = chosen(load(N)), chosen(load(N)), chosen(load(N, base=1))
    assert [len(packed(packer, *parts)) for parts in (first, again, other)] == [1, 0, 1]
    assert first_operand(first[2]).reference.array is first_operand(again[2]).reference.array
    assert first_operand(first[2]).reference.array is not first_operand(other[2]).reference.array
    packer.forget([T])
    assert packed(packer, *chosen(load(N))) == []
    packer.forget([N])
    assert len(packed(packer, *chosen(load(N)))) == 1
    one, two = Statement("copy", (load(N),)), Statement("copy", (load(N, base=1),))
    made = [len(packed(packer, *chosen(Register(register)))) for register in (one, two, one)]
    assert made == [1, 1, 0]


def test_08_chosen_by_a_table() -> None:
    """Filled in the loops of the table too; other entries are other matrices."""
    packer = Packer(4)
    nests: list[Node] = []
    for table in (0, 3, 0):
        nest, j, statement = chosen(table=table)
        nests += [*packed(packer, nest, j, statement), nest]
        assert first_operand(statement).reference.array.shape == (3, 5)
    assert len(nests) == 5
    program = Program([chosen(table=table)[0] for table in (0, 3, 0)])
    program.tables.extend([30, 0, 60, 15, 45, 15])

    def change(changed: Program) -> None:
        changed.forward[:] = nests

    same_bits(program, change)


def test_09_a_number_for_each_iteration() -> None:
    """A run-time index that differs in a loop of the nest makes the copy longer."""
    nest, j, statement = chosen(load(N))
    index = first_operand(statement).reference.index
    statement.operands = (
        Load(Reference(P, index._replace(dynamic=Dynamic(load(N, (nest, 1)), 15, 4)))),
        statement.operands[1],
    )
    fill = around(Loop(4, []))
    fill.body = [define(at(N, (fill, 1)), "copy", load(Array("constants", "constant", 4), (fill, 1)))]

    def change(program: Program) -> None:
        program.forward[1:] = [*packed(Packer(4), nest, j, statement), nest]

    program = Program([fill, nest])
    program.constants.extend([2.0, 0.0, 3.0, 1.0])
    same_bits(program, change)
    assert first_operand(statement).reference.array.shape == (3, 5)


def test_10_what_cannot_be_packed() -> None:
    """What is written in the nest or known only there, and what some iterations would read outside of the array."""
    nest, _, statement = chosen(load(N))
    assert allowed(nest, statement) == [True]
    nest.body.append(define(at(N, (nest, 1)), "copy", Constant(0.0)))
    assert allowed(nest, statement) == [False]
    known = Statement("copy", (load(N),))
    nest, _, statement = chosen(Register(known))
    assert allowed(nest, statement) == [True]
    nest.body.insert(0, known)
    assert allowed(nest, statement) == [False]
    nest, j, statement = product()
    inside, before = load(P, (j, 16), (nest, 1)), load(P, (j, 16), (nest, 1), base=-1)
    statement.operands = (Choice(nest, inside, before), inside)
    assert allowed(nest, statement) == [True, False, True]
