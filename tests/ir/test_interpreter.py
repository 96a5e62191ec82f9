"""The reference interpreter, statement by statement."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable

import pytest

from mgjit.engine.precision import FLOAT32
from mgjit.ir.interpreter import Interpreter
from mgjit.ir.program import (
    Array,
    Backward,
    Block,
    Bound,
    Choice,
    Constant,
    Dynamic,
    Index,
    Load,
    Loop,
    Mixed,
    Node,
    Program,
    Reference,
    Register,
    Statement,
    TableEntry,
    TargetChoice,
    TargetMixed,
)

X, Y = Array("x", "input", 4), Array("y", "output", 4)


def run(nodes: list[Node], x: list[float], size: int = 4, tables: tuple[int, ...] = ()) -> list[float]:
    """The output after running `nodes` over input `x`."""
    memory = {X: x, Y: [0.0] * size}
    Interpreter(Program(nodes, tables=array("i", tables)), memory).run()
    return memory[Y]


def test_01_loops_and_updates() -> None:
    """In both directions: the order of a sum is the order of the loop."""
    for reverse in (False, True):
        loop = Loop(4, [], reverse)
        loop.body = [
            Statement("add", (Load(Reference(X, Index(0, ((loop, 1),)))),), Reference(Y, Index(0)), update=True)
        ]
        values = [1e16, 1.0, -1e16, 1.0]
        expected = 0.0
        for value in values[::-1] if reverse else values:
            expected += value
        assert run([loop], values)[0] == expected


def test_02_registers_and_blocks() -> None:
    """The result just computed; blocks are transparent."""
    first = Statement("multiply", (Load(Reference(X, Index(0))), Constant(3.0)))
    second = Statement("negate", (Register(first),), Reference(Y, Index(1)))
    assert run([Block([first, second])], [2.0])[1] == -6.0


def test_03_choices() -> None:
    """Of operands and of targets; None writes nowhere."""
    loop = Loop(3, [])
    place = Index(0, ((loop, 1),))
    define = Statement("copy", (Choice(loop, Constant(7.0), Load(Reference(X, place))),), Reference(Y, place))
    loop.body = [define]
    assert run([loop], [1.0, 2.0, 3.0]) == [7.0, 2.0, 3.0, 0.0]
    loop.body = [Statement("add", (Constant(1.0),), TargetChoice(loop, None, Reference(Y, Index(3))), update=True)]
    assert run([loop], []) == [0.0, 0.0, 0.0, 2.0]


def test_04_tables_and_mixtures() -> None:
    """An entry of a table as index, and as the choice of an array."""
    loop = Loop(3, [])
    entry, selector = TableEntry(1, ((loop, 1),)), TableEntry(4, ((loop, 1),))
    place = Reference(Y, Index(0, ((loop, 1),)))
    loop.body = [Statement("copy", (Load(Reference(X, Index(0, (), entry))),), place)]
    tables = (9, 2, 0, 1, 0, 1, 0)
    assert run([loop], [5.0, 6.0, 7.0], tables=tables) == [7.0, 5.0, 6.0, 0.0]
    z = Array("z", "scratch", 3)
    fill = [Statement("copy", (Constant(10.0 + k),), Reference(z, Index(k))) for k in range(3)]
    loop.body = [Statement("copy", (Mixed((X, z), selector, entry),), place)]
    assert run([*fill, loop], [5.0, 6.0, 7.0], tables=tables) == [7.0, 10.0, 6.0, 0.0]
    loop.body = [Statement("add", (Constant(1.0),), TargetMixed((Y, None), selector, entry), update=True)]
    assert run([loop], [], tables=tables) == [0.0, 1.0, 1.0, 0.0]


def test_05_run_time_indices() -> None:
    """Stride times a number."""
    index = Index(1, dynamic=Dynamic(Load(Reference(X, Index(0))), 2, 2))
    assert (
        run([Statement("copy", (Load(Reference(X, index)),), Reference(Y, Index(0)))], [1.0, 0.0, 0.0, 8.0])[0] == 8.0
    )


def test_06_scratch_starts_as_nan() -> None:
    """A read before a write shows."""
    z = Array("z", "scratch", 1)
    result = run([Statement("copy", (Load(Reference(z, Index(0))),), Reference(Y, Index(0)))], [])
    assert math.isnan(result[0])


def test_07_errors() -> None:
    """What a Program must not contain."""
    with pytest.raises(TypeError, match="differentiate first"):
        run([Backward(Constant(1.0), 0, frozenset((0,)))], [])
    with pytest.raises(IndexError):
        run([Statement("copy", (Load(Reference(X, Index(-1))),))], [1.0])


def test_08_phases_in_order() -> None:
    """forward, backward, update."""
    step = Statement("multiply", (Constant(2.0),), Reference(Y, Index(0)), update=True)
    plus = Statement("add", (Constant(1.0),), Reference(Y, Index(0)), update=True)
    memory = {Y: [1.0]}
    Interpreter(Program([step], [plus], [step]), memory).run()
    assert memory[Y] == [6.0]


def test_float32() -> None:
    """What is read is rounded, integers by way of float64; and so is every result."""
    far = 2**60 + 2**36 + 1  # rounded to float64 it is a tie between two float32 numbers
    nodes: list[Node] = [
        Statement("copy", (Load(Reference(X, Index(0))),), Reference(Y, Index(0))),
        Statement("copy", (Load(Reference(X, Index(1))),), Reference(Y, Index(1))),
        Statement("add", (Constant(1.0), Constant(2.0**-24)), Reference(Y, Index(2))),
        Statement("add", (Constant(0.5),), Reference(Y, Index(2)), update=True),
    ]
    memory = {X: [0.1, far, 0, 0], Y: [0.0] * 4}
    Interpreter(Program(nodes, precision=FLOAT32), memory).run()
    assert memory[Y] == [0.10000000149011612, 2.0**60, 1.5, 0.0]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        (lambda i: Bound(0, ((i, 1),)), (0, 1, 2, 3)),
        (lambda i: Bound(3, ((i, -1),)), (3, 2, 1, 0)),
        (lambda i: Bound(1, (), TableEntry(1, ((i, 1),))), (1, 3, 2, 1)),
    ],
)
def test_09_bounds(bound: Callable[[Loop], Bound], expected: tuple[int, ...], reverse: bool) -> None:
    """The variable goes from 0 to the last iteration, or back; there may be no iteration."""
    i = Loop(4, [])
    j = Loop(3, [], reverse, bound=bound(i))
    place = Reference(Y, Index(0, ((i, 1),)))
    seen = Statement("add", (Load(Reference(X, Index(0, ((j, 1),)))),), place, update=True)
    j.body = [Statement("multiply", (Constant(10.0),), place, update=True), seen]
    i.body = [j]
    numbers = [float("".join(map(str, range(1, n + 1)[:: -1 if reverse else 1])) or 0) for n in expected]
    assert run([i], [1.0, 2.0, 3.0], tables=(9, 0, 2, 1, 0)) == numbers


def test_10_bounds_are_kept() -> None:
    """More iterations than the loop may have, and fewer than none."""
    for base in (4, -1):
        with pytest.raises(IndexError):
            run([Loop(3, [], bound=Bound(base))], [])
