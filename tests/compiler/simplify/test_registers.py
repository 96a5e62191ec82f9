"""When a load is a register, when it is not any more, and when a register is a load again."""

from __future__ import annotations

import pytest

from mgjit.compiler.simplify.registers import forward_copies, use_registers
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
    Node,
    Program,
    Reference,
    Register,
    Statement,
    TableEntry,
    TargetChoice,
    statements,
)
from mgjit.ir.rewrite import registers_used
from tests.handmade import around, at, define, load, same_bits, update
from tests.nests import random_chain, random_program

X, S, P = Array("x", "input", 40), Array("s", "state", 40), Array("p", "parameter", 40)
T = Array("t", "scratch", 40)


def used(*nodes: Node, across_loops: bool = False) -> int:
    """How many registers are used after the pass; the bits are the same."""

    def change(program: Program) -> None:
        use_registers(program, across_loops)

    program = Program(list(nodes))
    program.tables.extend(range(10))
    same_bits(program, change)
    return sum(len(list(registers_used(statement))) for statement in statements(program.forward))


def write(base: int = 0, *terms: tuple[Loop, int]) -> Statement:
    """`t[base] = x[base] * 2`."""
    return define(at(T, *terms, base=base), "multiply", load(X, *terms, base=base), Constant(2.0))


def read(base: int = 0, *terms: tuple[Loop, int]) -> Statement:
    """`s[base] = -t[base]`."""
    return define(at(S, *terms, base=base), "negate", load(T, *terms, base=base))


def test_01_the_same_element() -> None:
    """Of one array, at one place, whatever the loop does; and scratch that nobody reads then is not written."""
    assert used(write(), read()) == 1
    assert used(write(1), write(), read()) == 1
    i = Loop(5, [])
    assert used(around(i, write(3, (i, 2)), read(3, (i, 2)))) == 1
    program = Program([write(), read()])
    use_registers(program, across_loops=False)
    assert print_program(program) == "forward:\n    %0 = multiply(x[0], 2.0)\n    %1 = s[0] = negate(%0)\n"


def test_02_another_element_or_another_write() -> None:
    """What has been overwritten, updated, or perhaps overwritten."""
    entry = TableEntry(0, ())
    assert used(write(), write(1), read(1), read()) == 2
    assert used(write(), define(at(T), "copy", load(X, base=3)), read()) == 1  # of the second
    assert used(write(), update(at(T), "add", Constant(1.0)), read()) == 0
    assert used(write(), define(Reference(T, Index(0, (), entry)), "copy", load(X)), read()) == 0
    assert (
        used(write(), define(Reference(T, Index(0, (), None, Dynamic(Constant(1.0), 1, 3))), "copy", load(X)), read())
        == 0
    )
    i = Loop(3, [])
    assert used(write(3), around(i, define(at(T, (i, 1), base=4), "copy", load(X)), read(3))) == 0  # a loop before it
    fill = define(at(T), "copy", Constant(0.0))
    assert used(fill, around(i, write(0, (i, 1)), define(at(T, base=1), "copy", load(X)), read(0, (i, 1)))) == 0
    j = Loop(3, [])
    assert used(around(j, write(1, (j, 1)), update(TargetChoice(j, at(T), None), "add", load(X)), read(1, (j, 1)))) == 0


def test_03_reads_that_are_not_plain() -> None:
    """Loads through tables and run-time indices stay; alternatives of a choice do not."""
    through = define(at(S), "copy", Load(Reference(T, Index(0, (), TableEntry(0, ())))))
    assert used(write(), through) == 0
    i = Loop(3, [])
    chosen = define(at(S, (i, 1)), "copy", Choice(i, load(T, (i, 1)), load(X)))
    assert used(around(i, write(0, (i, 1)), chosen)) == 1


@pytest.mark.parametrize(("across", "expected"), [(False, 0), (True, 1)])
def test_04_across_loops(across: bool, expected: int) -> None:
    """Into a loop, and over one that touches something else."""
    i, j = Loop(3, []), Loop(4, [])
    inner = around(j, define(at(S, (i, 4), (j, 1)), "multiply", load(T, (i, 1)), load(X, (j, 1))))
    assert used(around(i, write(0, (i, 1)), inner), across_loops=across) == expected
    other = around(Loop(4, []), define(at(P), "copy", load(X)))
    assert used(around(i, write(0, (i, 1)), other, read(0, (i, 1))), across_loops=across) == expected


@pytest.mark.parametrize("across", [False, True])
def test_05_loops_that_write_the_array(across: bool) -> None:
    """What a loop inside may overwrite is read again, in front of the place as well: iterations follow each other."""
    j = Loop(4, [])
    assert used(write(), around(j, read(), define(at(T), "copy", load(X, (j, 1)))), across_loops=across) == 0
    j = Loop(4, [])
    assert used(write(), around(j, define(at(T), "copy", load(X, (j, 1)))), read(), across_loops=across) == 0


def test_06_blocks() -> None:
    """Registers do not cross the ends of functions."""
    assert used(write(), Block([read()]), across_loops=True) == 0
    assert used(Block([write()]), read(), across_loops=True) == 0
    assert used(Block([write(), read()]), across_loops=True) == 1


def test_07_visible_memory_is_written() -> None:
    """A parameter that was assigned is a register for who reads it, and is assigned all the same."""
    program = Program([define(at(P), "copy", load(X)), define(at(S), "negate", load(P))])
    same_bits(program, lambda changed: use_registers(changed, across_loops=False))
    assert print_program(program) == "forward:\n    %0 = p[0] = copy(x[0])\n    %1 = s[0] = negate(%0)\n"


def test_08_copies_are_loads_again() -> None:
    """As long as memory holds what was copied; constants always."""
    made = Statement("copy", (load(P),))
    number = Statement("copy", (Constant(0.5),))
    body: list[Node] = [made, number, define(at(S), "multiply", Register(made), Register(number))]
    program = Program(body)
    same_bits(program, lambda changed: forward_copies(changed.forward))
    assert print_program(program).splitlines()[-1] == "    %2 = s[0] = multiply(p[0], 0.5)"


@pytest.mark.parametrize("between", [define(at(P, base=7), "copy", load(X)), update(at(P), "add", Constant(1.0))])
def test_09_what_was_overwritten_stays_a_register(between: Statement) -> None:
    """Any write to the array between the copy and its use, in a loop as well."""
    for node in (between, around(Loop(2, []), between)):
        made = Statement("copy", (load(P),))
        program = Program([made, node, define(at(S), "negate", Register(made))])
        same_bits(program, lambda changed: forward_copies(changed.forward))
        assert "negate(%0)" in print_program(program)


def test_10_a_copy_onto_itself() -> None:
    """`old = p; p = old * 2; s = old`: the copy is of what was there before."""
    old = Statement("copy", (load(P),))
    program = Program(
        [old, define(at(P), "multiply", Register(old), Constant(2.0)), define(at(S), "copy", Register(old))]
    )
    same_bits(program, lambda changed: forward_copies(changed.forward))
    assert print_program(program).splitlines()[-1] == "    %2 = s[0] = copy(%0)"


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_11_random_nests(seed: int, across: bool) -> None:
    """Whatever is read and written in between."""
    for program in (random_program(seed), random_chain(seed)):
        same_bits(program, lambda changed: use_registers(changed, across))
        same_bits(program, lambda changed: [forward_copies(nodes) for _, nodes in changed.phases])
