"""Vectors that several sums read are loaded once in an iteration, as far as there are registers, with the same bits."""

from __future__ import annotations

from typing import Any

import pytest

import mgjit
from mgjit.compiler.codegen.held import held_vectors
from mgjit.compiler.toolchain import build
from mgjit.compiler.toolchain.target import Processor
from mgjit.ir.program import Array, Loop, Node
from tests.compiler.codegen.test_vectors import FAMILIES, run
from tests.handmade import around, at, define, load, update
from tests.lowering import Example, numbers, sgd

pytestmark = pytest.mark.once

W, X, R = Array("w0", "parameter", 4096), Array("x0", "input", 4096), Array("r0", "scratch", 4096)


def products(loop: Loop, rows: int, vectors: int, lanes: int = 8) -> list[Node]:
    """`r[row, vector] += w[vector] * x[row]` for all of them, in an iteration of a loop."""
    body: list[Node] = []
    for row in range(rows):
        for vector in range(vectors):
            lane = Loop(lanes, [], lanes=True)
            read = load(W, (loop, 64), (lane, 1), base=vector * lanes)
            product = define(None, "multiply", read, load(X, (loop, 1), base=64 * row))
            place = at(R, (lane, 1), base=64 * row + vector * lanes)
            body.append(around(lane, product, update(place, "add", product.operands[0])))
    return body


def test_01_what_is_read_again_is_held() -> None:
    loop = Loop(9, [])
    assert [place.index.base for place, _ in held_vectors(products(loop, 4, 3), 12, 8)] == [0, 8, 16]
    assert held_vectors(products(loop, 1, 3)[:3], 3, 8)  # a product and a sum read it
    assert not held_vectors([define(None, "copy", load(X, (loop, 1)))], 1, 8)


def test_02_as_many_as_registers_are_left() -> None:
    loop = Loop(9, [])
    assert len(held_vectors(products(loop, 4, 4), 16, 8)) == 4
    assert len(held_vectors(products(loop, 3, 4, lanes=4), 12, 8)) == 2
    assert not held_vectors(products(loop, 4, 4, lanes=4), 16, 8)


def test_03_what_the_loop_writes_is_not_held() -> None:
    loop, lane = Loop(9, []), Loop(8, [], lanes=True)
    written = around(lane, define(at(W, (lane, 1)), "copy", load(X, (lane, 1))))
    assert not held_vectors([*products(loop, 4, 3), written], 12, 8)


def test_04_nor_anything_around_another_loop() -> None:
    loop = Loop(9, [])
    assert not held_vectors([*products(loop, 4, 3), around(Loop(2, []), define(None, "copy", load(X)))], 12, 8)


@FAMILIES
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("width", "registers"), [(32, 16), (64, 32)])
def test_05_a_batch_in_blocks(family: str, dtype: str, width: int, registers: int) -> None:
    """Products of matrices in both directions, with rests of vectors and of rows."""
    inputs, units, batch = 13, 21, 7
    ws = [[mgjit.Value(v) for v in numbers(inputs, seed)] for seed in range(units)]

    def step(xs: Any, rate: Any) -> Any:
        rows = [xs[inputs * k : inputs * (k + 1)] for k in range(batch)]
        loss = sum(sum((mgjit.dot(w, row)).relu() for w in ws) for row in rows)
        parameters = [p for w in ws for p in w]
        for p in parameters:
            p.grad = 0.0
        loss.backward()
        sgd(parameters, rate)
        return loss

    made = Example(step, numbers(inputs * batch), 0.01)
    made = made if dtype == "float64" else made.in_float32()
    lanes = width // (8 if dtype == "float64" else 4)
    for mode in ("strict", "fast"):
        text = run(made, Processor(lanes, registers), family, f"-O2 {build.native()}", mode=mode)
        assert (f"HELD_{lanes}(h" in text) == (mode == "fast")
