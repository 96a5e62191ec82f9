"""Registers that become array elements."""

from __future__ import annotations

import pytest

from mgjit.compiler.schedule.expand import Arrays, crossing_registers, expand_registers
from mgjit.ir.printer import print_program
from mgjit.ir.program import Array, Block, Choice, Constant, Loop, Node, Program, Register, Statement
from tests.handmade import around, at, define, load, same_bits

X, T = Array("x", "input", 60), Array("t", "state", 60)


def parts_of(*parts: list[Node]) -> dict[Statement, int]:
    """The part of each statement, statements in loops included."""
    found: dict[Statement, int] = {}

    def note(node: Node, number: int) -> None:
        if isinstance(node, Statement):
            found[node] = number
        elif isinstance(node, (Loop, Block)):
            for inner in node.body:
                note(inner, number)

    for number, part in enumerate(parts):
        for node in part:
            note(node, number)
    return found


def test_01_an_element_for_every_iteration_around() -> None:
    """Names, shape and order of the loops."""
    b, j = Loop(3, []), Loop(5, [])
    arrays = Arrays("kept")
    first, second = arrays.over((b, j)), arrays.over(())
    assert (first.array.name, first.array.size, first.array.shape) == ("kept1", 15, (3, 5))
    assert first.index.terms == ((b, 5), (j, 1))
    assert (second.array.name, second.array.size, second.index.terms) == ("kept2", 1, ())


def test_02_as_in_the_docstring() -> None:
    """Stored where it is computed, read where it is used."""
    b, j = Loop(3, []), Loop(5, [])
    made = Statement("multiply", (load(X, (b, 1)), Constant(2.0)))
    near = define(at(T, (b, 1), base=40), "negate", Register(made))
    far = around(j, define(at(T, (b, 5), (j, 1)), "multiply", Register(made), load(X, (j, 1))))
    part_of = parts_of([made, near], [far])
    assert crossing_registers([around(b, made, near, far)], part_of) == {made}

    def change(program: Program) -> None:
        assert expand_registers(b.body, (b,), part_of, {made}, Arrays("held"))

    program = Program([b])
    same_bits(program, change)
    assert print_program(program) == (
        "forward:\n"
        "    for i in 0 .. 2:\n"
        "        %0 = held1[i] = multiply(x[i], 2.0)\n"
        "        %1 = t[i + 40] = negate(%0)\n"
        "        for j in 0 .. 4:\n"
        "            %2 = t[5*i + j] = multiply(held1[i], x[j])\n"
    )


def test_03_what_is_stored_already() -> None:
    """Its place may be overwritten later: a copy is kept."""
    made = define(at(T), "exp", load(X))
    over = define(at(T), "copy", Constant(0.0))
    uses = define(at(T, base=1), "copy", Register(made))
    body: list[Node] = [made, over, uses]
    part_of = parts_of([made, over], [uses])

    def change(program: Program) -> None:
        assert expand_registers(program.forward, (), part_of, {made}, Arrays("held"))

    program = Program(body)
    same_bits(program, change)
    assert "held1[0] = copy(%0)" in print_program(program)


def test_04_uses_in_choices() -> None:
    """An alternative is a use."""
    i = Loop(4, [])
    made = Statement("exp", (load(X),))
    uses = around(i, define(at(T, (i, 1)), "copy", Choice(i, Register(made), load(X, (i, 1)))))
    assert crossing_registers([made, uses], parts_of([made], [uses])) == {made}
    assert crossing_registers([made, uses], parts_of([made, uses])) == set()


@pytest.mark.parametrize(("count", "expected"), [(1 << 20, True), ((1 << 20) + 1, False)])
def test_05_too_large(count: int, expected: bool) -> None:
    """Nothing is changed then."""
    i = Loop(count, [])
    made = Statement("exp", (load(X),))
    uses = define(at(T), "copy", Register(made))
    around(i, made, uses)
    part_of = parts_of([made], [uses])
    before = print_program(Program([i]))
    assert expand_registers(i.body, (i,), part_of, {made}, Arrays("held")) is expected
    assert (print_program(Program([i])) == before) is not expected
