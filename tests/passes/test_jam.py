"""Which loops run eight sums side by side, which stay, and that every sum keeps its order."""

from __future__ import annotations

import pytest

from mgjit.ir.printer import print_program
from mgjit.ir.program import Array, Block, Choice, Constant, Loop, Program, Register, Statement, count_statements
from mgjit.passes.jam import WIDTH, jam
from tests.handmade import around, at, define, load, same_bits, update

W, X, B, T = (Array(name, "parameter", 120) for name in "wxbt")
R, S = Array("r", "scratch", 40), Array("s", "state", 40)


def layer(rows: int = 11, columns: int = 3, reverse: bool = False) -> Loop:
    """A layer whose sums live in scratch memory."""
    j, i = Loop(rows, [], reverse), Loop(columns, [])
    return around(
        j,
        define(at(R, (j, 1)), "copy", load(B, (j, 1))),
        around(i, update(at(R, (j, 1)), "add", load(W, (j, columns), (i, 1)))),
        define(at(T, (j, 1)), "relu", load(R, (j, 1))),
    )


def jammed(program: Program) -> bool:
    """Whether the pass changes a Program; its bits never."""
    before = print_program(program)
    same_bits(program, jam)
    return print_program(program) != before


def test_01_eight_at_once_and_a_rest() -> None:
    """Nodes are executed for eight iterations each; the inner loop for all of them in turn."""
    program = Program([layer(19)])
    assert jammed(program)
    main, rest = program.forward
    assert isinstance(main, Loop)
    assert isinstance(rest, Loop)
    assert (main.count, rest.count) == (2, 3)
    inner = [node for node in main.body if isinstance(node, Loop)]
    assert len(inner) == 1
    assert len(inner[0].body) == WIDTH
    assert len(main.body) == 2 * WIDTH + 1
    text = print_program(program)
    assert "r[8*i + 7] = add(r[8*i + 7], w[24*i + j + 21])" in text
    assert "r[i + 16] = add(r[i + 16], w[3*i + j + 48])" in text


@pytest.mark.parametrize(("rows", "nodes"), [(7, 1), (8, 1), (9, 2), (16, 1), (17, 2)])
def test_02_counts(rows: int, nodes: int) -> None:
    """Fewer than eight stay; a multiple of eight has no rest."""
    program = Program([layer(rows)])
    assert jammed(program) is (rows >= WIDTH)
    assert len(program.forward) == nodes


def test_03_downwards() -> None:
    """The rest comes first, and the eight from the last to the first."""
    program = Program([layer(11, reverse=True)])
    assert jammed(program)
    rest, main = program.forward
    assert isinstance(rest, Loop)
    assert isinstance(main, Loop)
    assert rest.reverse
    assert main.reverse
    assert (rest.count, main.count) == (3, 1)
    assert print_program(Program([main])).splitlines()[2].strip().startswith("%0 = r[8*i + 7]")


def test_04_all_phases_and_depths() -> None:
    """In every phase, inside loops and inside blocks."""
    program = Program([around(Loop(2, []), layer())], [layer()], [Block([layer()])])
    assert jammed(program)
    assert [count_statements(nodes) for _, nodes in program.phases] == [3 * (WIDTH + 1)] * 3


def test_05_nothing_to_gain() -> None:
    """Without a sum, with a sum elsewhere than in scratch memory, with loops too deep, or with a long body."""
    j, i = Loop(9, []), Loop(3, [])
    assert not jammed(Program([around(j, around(i, define(at(W, (j, 3), (i, 1)), "copy", load(X, (i, 1)))))]))
    j, i = Loop(9, []), Loop(3, [])
    assert not jammed(Program([around(j, around(i, update(at(T, (j, 1)), "add", load(X, (i, 1)))))]))
    nest = layer()
    inner = nest.body[1]
    assert isinstance(inner, Loop)
    inner.body.append(around(Loop(2, []), update(at(R, (nest, 1)), "add", load(X))))
    assert not jammed(Program([nest]))
    for more, expected in ((37, True), (38, False)):
        nest = layer()
        nest.body += [define(at(T, (nest, 1)), "copy", load(B, (nest, 1))) for _ in range(more)]
        assert jammed(Program([nest])) is expected


def test_06_dependences() -> None:
    """A sum that starts from the last one, and a number that all iterations add to."""
    nest = layer()
    nest.body[0] = define(at(R, (nest, 1), base=1), "copy", load(R, (nest, 1)))
    assert not jammed(Program([define(at(R), "copy", Constant(0.0)), nest]))
    nest = layer()
    nest.body.append(update(at(S), "add", load(T, (nest, 1))))
    assert not jammed(Program([nest]))


def test_07_choices() -> None:
    """What the first iteration does differently."""
    nest = layer()
    nest.body.append(define(at(S, (nest, 1)), "copy", Choice(nest, Constant(1.0), load(T, (nest, 1)))))
    assert not jammed(Program([nest]))


def test_08_registers() -> None:
    """Inside a stretch they name their own copies; across a loop they keep the loop."""
    for crosses in (False, True):
        nest = layer()
        made = Statement("exp", (load(X, (nest, 1)),))
        stored = define(at(S, (nest, 1)), "copy", Register(made))
        nest.body[:0] = [made] if crosses else [made, stored]
        nest.body += [stored] if crosses else []
        assert jammed(Program([nest])) is not crosses
