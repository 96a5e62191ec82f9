"""Copies with consecutive elements: when they are made, when they are used again, and when they are out of date."""

from __future__ import annotations

from mgjit.ir.printer import print_program
from mgjit.ir.program import Array, Load, Loop, Node, PaddedRows, Program, Statement
from mgjit.passes.pack import Packer
from tests.handmade import around, at, define, load, same_bits

P, X, T = Array("p", "parameter", 80), Array("x", "input", 80), Array("t", "state", 80)


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
