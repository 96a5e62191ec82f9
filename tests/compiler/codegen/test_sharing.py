"""Loops that threads share: which they are, what each thread has of its own, and that the bits are those of one."""

from __future__ import annotations

import os
import random
import sys
import threading
from typing import Any

import pytest

import mgjit
import mgjit.nn.functional as F
from mgjit import nn, optim
from mgjit.compiler.codegen import sharing
from mgjit.compiler.codegen.sharing import shared_loops
from mgjit.errors import ArgumentError, ArgumentValueError
from mgjit.ir.program import Array, Constant, Index, Load, Loop, Program, Reference, Statement

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="threads have other names there")


def _of(array: Array, *terms: tuple[Loop, int], base: int = 0) -> Reference:
    return Reference(array, Index(base, terms))


def _nest(count: int, fills: int, again: bool = False) -> tuple[Loop, Array]:
    """Rows that are copied into a tile, as far as `fills`, and summed from all of it; `again` keeps what was there."""
    x, tile, y = Array("x0", "input", 64 * count), Array("tile1", "scratch", 64), Array("y", "output", count)
    outer, fill, add = Loop(count, []), Loop(fills, []), Loop(64, [])
    row = Load(_of(x, (outer, 64), (fill, 1)))
    fill.body = [Statement("add" if again else "copy", (row,), _of(tile, (fill, 1)), update=again)]
    add.body = [Statement("add", (Load(_of(tile, (add, 1))),), _of(y, (outer, 1)), update=True)]
    outer.body = [Statement("copy", (Constant(0.0),), _of(y, (outer, 1))), fill, add]
    return outer, tile


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops of any size are shared."""
    for name in ("_LEAST", "_LEAST_INSIDE", "_LEAST_IN_ALL"):
        monkeypatch.setattr(sharing, name, 1)


@pytest.mark.usefixtures("small")
def test_01_a_tile_that_is_filled_first_is_each_threads_own() -> None:
    outer, tile = _nest(8, 64)
    assert shared_loops(Program([outer])) == {outer: [tile]}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("fills", "again"), [(63, False), (64, True)])
def test_02_what_an_earlier_iteration_left_is_a_tie(fills: int, again: bool) -> None:
    outer, _ = _nest(8, fills, again)
    assert outer not in shared_loops(Program([outer]))


@pytest.mark.usefixtures("small")
def test_03_a_tile_that_is_read_afterwards_is_a_tie() -> None:
    outer, tile = _nest(8, 64)
    after = Statement("copy", (Load(_of(tile)),), _of(Array("t9", "scratch", 1)))
    assert outer not in shared_loops(Program([outer, after]))


def test_04_short_steps_have_no_threads() -> None:
    assert not shared_loops(Program([_nest(8, 64)[0]]))


def _model(kind: str) -> tuple[nn.Module, tuple[int, ...]]:
    if kind == "mlp":
        return nn.Sequential(nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 10)), (128, 256)
    layers = nn.Conv2d(1, 8, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1152, 10)
    return nn.Sequential(*layers), (64, 1, 28, 28)


def _trained(kind: str, threads: int, mode: str = "strict") -> list[bytes]:
    mgjit.manual_seed(3)
    model, shape = _model(kind)
    optimiser = optim.Adam(model.parameters(), lr=1e-2)
    numbers = random.Random(1)

    @mgjit.compile(background=False, threads=threads, mode=mode)
    def step(x: Any, y: Any) -> Any:
        optimiser.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimiser.step()
        return loss

    count = 1
    for size in shape:
        count *= size
    x = mgjit.Tensor([numbers.uniform(-1.0, 1.0) for _ in range(count)]).reshape(*shape)
    y = mgjit.Tensor([numbers.randrange(10) for _ in range(shape[0])]).long()
    losses = [step(x, y).item() for _ in range(5)]
    step.wait()
    losses.append(step(x, y).item())
    assert step.stats.last.made_by == "kernel"
    if threads > 1:
        assert f"{threads} threads share" in step.lower(x, y).explain()
    return [repr(losses).encode()] + [
        memoryview(one.numpy()).tobytes() for p in model.parameters() for one in (p.detach(), p.grad)
    ]


@pytest.mark.optimised
@pytest.mark.parametrize(("kind", "threads"), [("mlp", 2), ("convolutions", 5)])
def test_05_any_number_of_threads_gives_the_bits_of_one(kind: str, threads: int) -> None:
    assert _trained(kind, threads) == _trained(kind, 1)


@pytest.mark.optimised
def test_06_fast_mode_has_threads_too() -> None:
    assert _trained("mlp", 3, "fast") == _trained("mlp", 1, "fast")


@pytest.mark.optimised
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_07_a_forked_process_makes_calls_with_threads_of_its_own() -> None:
    one = _trained("mlp", 2)
    before = threading.active_count()
    child = os.fork()
    if not child:
        os._exit(0 if _trained("mlp", 2) == one else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert threading.active_count() == before


@pytest.mark.parametrize("threads", [0, 1000, True, "2"])
def test_08_other_numbers_are_refused(threads: Any) -> None:
    with pytest.raises((ArgumentError, ArgumentValueError), match="threads must be"):
        mgjit.compile(threads=threads)(lambda x: x)
