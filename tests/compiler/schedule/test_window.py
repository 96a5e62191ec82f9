"""What nests add to at scattered places is kept in an array of its own: same bits, and when it is not."""

from __future__ import annotations

import random

import pytest

from mgjit.compiler.schedule.vectorise import vectorise
from mgjit.compiler.schedule.window import window_of
from mgjit.compiler.toolchain.target import Processor
from mgjit.ir.nest import examine
from mgjit.ir.program import Array, Loop, Node, Program, Register, Statement, arrays_written, statements
from tests.handmade import around, at, define, load, same_bits, update

pytestmark = pytest.mark.once


def convolved(draw: random.Random, channels: int, reverse: bool = True, gap: int = 0) -> tuple[Loop, Loop]:
    """The gradient of the input of a convolution, with windows, strides and dilations that are drawn; its channels."""
    n, o, y, x = (draw.randrange(1, 4) for _ in range(4))
    h, w, stride, dilation = (draw.randrange(1, 4) for _ in range(4))
    width = stride * (x - 1) + dilation * (w - 1) + 1
    area = width * (stride * (y - 1) + dilation * (h - 1) + 1) + gap
    loops = [Loop(count, [], reverse) for count in (n, o, y, x, channels, h, w)]
    image, out, row, column, c, i, j = loops
    base = draw.randrange(3)
    r = Array("r", "gradient", base + n * channels * area)
    d, p = Array("d", "input", n * o * y * x), Array("p", "parameter", o * channels * h * w)
    place = [(image, channels * area), (c, area), (row, stride * width), (column, stride)]
    place += [(i, dilation * width), (j, dilation)]
    term = Statement("multiply", (
        load(d, (image, o * y * x), (out, y * x), (row, x), (column, 1)),
        load(p, (out, channels * h * w), (c, h * w), (i, w), (j, 1)),
    ))  # fmt: skip
    nest: Node = around(loops[-1], term, update(at(r, *place, base=base), "add", Register(term)))
    for loop in reversed(loops[:-1]):
        nest = around(loop, nest)
    assert isinstance(nest, Loop)
    return nest, c


def has_window(program: Program) -> bool:
    """Whether something is copied into a window and back."""
    found = {array.name for s in statements(program.forward) for array in arrays_written(s)}
    return any(name.startswith("lane") for name in found)


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_01_same_bits(lanes: int) -> None:
    """Images, windows, strides, dilations and channels of all sizes, in both directions."""
    used = 0
    for seed in range(20):
        draw = random.Random(seed)
        program = Program([convolved(draw, draw.randrange(2, 21), seed % 3 > 0)[0]])
        same_bits(program, lambda program: vectorise(program, Processor(lanes, 32)))
        used += has_window(program)
    assert used > 2


def test_02_elements_in_between_stay() -> None:
    """The window contains elements that the nest does not access; something else has written them before."""
    nest, _ = convolved(random.Random(3), 16, gap=5)
    (target,) = (s.target for s in statements([nest]) if s.update)
    assert target is not None
    k = Loop(target.array.size, [])  # type: ignore[union-attr]
    before = around(k, define(at(target.array, (k, 1)), "copy", load(Array("z", "input", k.count), (k, 1))))  # type: ignore[union-attr]
    same_bits(Program([before, nest]), lambda program: vectorise(program, Processor(8, 32)))


def test_03_none_where_it_cannot_be() -> None:
    """The array is read in another way too, or places of different channels overlap, or the caller owns it."""
    nest, c = convolved(random.Random(1), 8)
    inside = [loop for loop, _ in _terms(nest)]
    examined = examine(nest)
    assert examined is not None
    assert window_of(examined, c, inside, 8) is not None
    target = next(s.target for s in statements([nest]) if s.update)
    array: Array = target.array  # type: ignore[union-attr]
    array.space = "input"
    assert window_of(examined, c, inside, 8) is None
    array.space = "gradient"
    term = next(iter(statements([nest])))
    term.operands = (load(array), term.operands[1])
    examined = examine(nest)
    assert examined is not None
    assert window_of(examined, c, inside, 8) is None


def _terms(nest: Loop) -> list[tuple[Loop, int]]:
    """The loops of what a nest adds to, but for that over images."""
    target = next(s.target for s in statements([nest]) if s.update)
    return [term for term in target.index.terms if term[0] is not nest]  # type: ignore[union-attr]
