"""What is asked for in front of a long loop: of which arrays, where, and that it changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit import optim
from mgjit import tensor as T
from mgjit.compiler.codegen import ahead
from mgjit.compiler.codegen.ahead import asked_for
from mgjit.compiler.toolchain import compilers
from mgjit.ir.program import Array, Index, Load, Loop, Reference, Register, Statement

FAR, NEAR, ROW = (Array(name, "parameter", size) for name, size in (("far", 200_000), ("near", 1_000), ("row", 8)))


def update(array: Array, rows: int = 2, step: int = 1) -> Loop:
    """A loop over rows of one vector each, of which each element is doubled."""
    lane = Loop(8, [], lanes=True)
    row = Loop(rows, [lane])
    place = Reference(array, Index(0, ((row, 512), (lane, step))))
    double = Statement("multiply", (Load(place), Load(Reference(ROW, Index(0, ((lane, 1),))))))
    lane.body = [double, Statement("copy", (Register(double),), place)]
    return row


def summing(count: int, array: Array = NEAR) -> Loop:
    loop = Loop(count, [])
    term = Load(Reference(array, Index(0, ((loop, 1),))))
    loop.body = [Statement("add", (term,), Reference(ROW, Index(0)), update=True)]
    return loop


def test_01_far_vectors_behind_a_long_loop() -> None:
    """Once for each place, although it is read and written."""
    rows = update(FAR)
    (found,) = asked_for(summing(1_000), [summing(4), rows])
    assert (found.loops, found.lane) == ((rows,), rows.body[0])
    assert [place.array for place in found.places] == [FAR]


def test_02_nothing_else() -> None:
    """Not of near or touched arrays, scattered lanes, many vectors; not behind a short loop, or another long one."""
    assert asked_for(summing(999), [update(FAR)]) == []
    assert asked_for(summing(1_000, FAR), [update(FAR)]) == []
    assert asked_for(summing(1_000), [update(NEAR)]) == []
    assert asked_for(summing(1_000), [update(FAR, step=2)]) == []
    assert asked_for(summing(1_000), [update(FAR, rows=257)]) == []
    assert asked_for(summing(1_000), [summing(1_000), update(FAR)]) == []


@pytest.mark.skipif(compilers.find() is None, reason="no C compiler is installed")
def test_03_numbers_stay_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The update of a matrix behind its gradient, in tiles."""
    monkeypatch.setattr(ahead, "_LARGE", 1_000)

    def trained(decorate: Callable[[Any], Any]) -> tuple[Any, list[float]]:
        w = T.asarray([[0.01 * (i - j) for j in range(96)] for i in range(64)], dtype="float32", requires_grad=True)
        x = T.asarray([[0.1 * ((i * j) % 7) for j in range(64)] for i in range(90)], dtype="float32")
        sgd = optim.SGD([w], lr=0.001, momentum=0.9)

        def step() -> None:
            sgd.zero_grad()
            ((x @ w) * (x @ w)).sum().backward()
            sgd.step()

        made = decorate(step)
        for _ in range(2):
            made()
        return made, w.tolist()

    step, found = trained(mgjit.compile(dtype="float32", background=False, cache=False))
    assert "    AHEAD(&" in step.lower().c_source
    assert found == trained(lambda step: step)[1]
