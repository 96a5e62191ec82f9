"""What is computed twice is computed once, and only what is the same."""

from __future__ import annotations

import mgjit
from mgjit.compiler.simplify.common import operand_key, share
from mgjit.ir.printer import print_program
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
    count_statements,
    statements,
)
from tests.handmade import around, at, define, load, same_bits, update
from tests.lowering import Example, numbers

X, Y, T = Array("x", "parameter", 40), Array("y", "parameter", 40), Array("t", "gradient", 40)
TWO = Constant(2.0)


def powers(*nodes: Node) -> int:
    """How many powers are left when common ones are shared; the bits stay."""
    program = Program(list(nodes))
    program.tables.extend([3, 1, 4, 1])
    same_bits(program, share)
    return sum(1 for s in statements(program.forward) if s.operation == "power")


def test_01_the_same_operation_in_one_body() -> None:
    """As in the docstring of the module."""
    i = Loop(5, [])
    first, second = Statement("power", (load(X, (i, 1)), TWO)), Statement("power", (load(X, (i, 1)), TWO))
    body: list[Node] = [
        first,
        define(at(T, (i, 1)), "add", Register(first), Constant(1.0)),
        second,
        define(at(T, (i, 1), base=20), "multiply", Register(second), load(Y, (i, 1))),
    ]
    program = Program([around(i, *body)])
    same_bits(program, share)
    assert print_program(program) == (
        "forward:\n"
        "    for i in 0 .. 4:\n"
        "        %0 = power(x[i], 2.0)\n"
        "        %1 = t[i] = add(%0, 1.0)\n"
        "        %2 = t[i + 20] = multiply(%0, y[i])\n"
    )


def test_02_through_other_operations() -> None:
    """Operands are equal when their statements are; a result that is stored becomes a copy."""
    left = [Statement("subtract", (load(X), load(Y))) for _ in range(2)]
    right = [define(at(T, base=k), "power", Register(left[k]), TWO) for k in range(2)]
    assert powers(left[0], right[0], left[1], right[1]) == 1


def test_03_written_in_between() -> None:
    """The element, another element, an element that depends on a loop, and a place from a table."""
    i = Loop(4, [])
    square = [define(at(T, base=k), "power", load(X, base=3), TWO) for k in range(2)]
    for place, count in ((at(X, base=3), 2), (at(X, base=4), 1), (at(Y), 1)):
        assert powers(square[0], define(place, "copy", Constant(0.5)), square[1]) == count
        square[1] = define(at(T, base=1), "power", load(X, base=3), TWO)
    assert powers(square[0], around(i, define(at(X, (i, 1)), "copy", Constant(0.5))), square[1]) == 2
    square[1] = define(at(T, base=1), "power", load(X, base=3), TWO)
    from_table = Reference(X, Index(0, (), TableEntry(0, ((i, 1),))))
    assert powers(square[0], around(i, define(from_table, "copy", Constant(0.5))), square[1]) == 2


def test_04_a_statement_that_changes_its_own_operand() -> None:
    assert powers(define(at(X), "power", load(X), TWO), define(at(X), "power", load(X), TWO)) == 2


def test_05_inside_loops() -> None:
    """A loop knows what is computed around it, unless it writes what was read; the next loop knows nothing of it."""

    def loop(*nodes: Node) -> Loop:
        one = Loop(3, [])
        return around(one, define(at(T, (one, 1)), "power", load(X), TWO), *nodes)

    outside = define(at(T, base=9), "power", load(X), TWO)
    assert powers(outside, loop(), loop()) == 1
    outside = define(at(T, base=9), "power", load(X), TWO)
    assert powers(outside, loop(define(at(X), "copy", Constant(3.0))), loop()) == 3
    assert powers(loop(), loop()) == 2


def test_06_blocks_share_nothing_with_their_surroundings() -> None:
    square = [define(at(T, base=k), "power", load(X), TWO) for k in range(4)]
    assert powers(square[0], Block([square[1], square[2]]), square[3]) == 2


def test_07_updates_are_not_shared() -> None:
    program = Program([update(at(T), "add", load(X)), update(at(T), "add", load(X))])
    same_bits(program, share)
    assert count_statements(program.forward) == 2


def test_08_constants_are_compared_by_their_bits() -> None:
    """0.0 and -0.0 are equal numbers and different operands."""
    terms = [define(at(T, base=k), "add", load(X), Constant(zero)) for k, zero in enumerate((0.0, -0.0, 0.0))]
    program = Program(list(terms))
    same_bits(program, share)
    assert [s.operation for s in statements(program.forward)] == ["add", "add", "copy"]
    nan = float("nan")
    assert operand_key(Constant(nan)) == operand_key(Constant(nan))


def test_09_every_kind_of_operand() -> None:
    """Choices, run-time places and mixtures are equal when all their parts are."""
    i = Loop(4, [])

    def operands(base: int) -> list[Operand]:
        return [
            Choice(i, load(X, base=base), load(Y, (i, 1))),
            Load(Reference(X, Index(base, (), None, Dynamic(Constant(2.0), 3, 4)))),
            Mixed((X, Y), TableEntry(base % 1, ()), TableEntry(base, ())),
            Load(Reference(X, Index(0, (), TableEntry(base, ())))),
        ]

    for number in range(4):
        one, same, other = operands(1)[number], operands(1)[number], operands(2)[number]
        assert operand_key(one) == operand_key(same) != operand_key(other)
    squares = [define(at(T, (i, 1), base=5 * k), "power", operands(0)[0], TWO) for k in range(2)]
    assert powers(around(i, *squares)) == 1


def test_10_a_traced_step() -> None:
    """A user who writes the same square twice."""
    w = [mgjit.Value(number) for number in numbers(6)]

    def step(x: list[float]) -> mgjit.Value:
        loss = sum((a * b) ** 3 + 2.0 * (a * b) ** 3 for a, b in zip(w, x))
        loss.backward()
        return loss

    example = Example(step, numbers(6))
    program = example.lower()
    assert sum(1 for s in statements(program.forward) if s.operation == "power") == 1
    example.check(program)
