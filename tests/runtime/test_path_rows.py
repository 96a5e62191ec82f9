"""Rows that take several paths, in one foreign call: the numbers, results and order of the same calls one by one."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit.compiler.toolchain import compilers
from mgjit.runtime import path_rows
from mgjit.step import looping
from tests.fuzz.oracle import bits

pytestmark = pytest.mark.skipif(compilers.find() is None, reason="no C compiler is installed")


class Model:
    """Parameters, numbers in attributes and lists, each of which only some paths read or assign."""

    def __init__(self) -> None:
        self.w = [mgjit.Value(0.3 - 0.1 * k) for k in range(3)]
        self.momentum = mgjit.zeros(3)
        self.seen, self.best, self.table = 0, 9.0, [0.25, -0.5, 0.125, 0.75]

    def step(self, x: list[float], y: float) -> Any:
        loss = (self.w[0] * x[0] + self.w[1] * x[1] + self.w[2] - y) ** 2
        z, n = loss.data, 0
        while z > 1.0:
            z, n = 0.5 * z, n + 1
        if n > 2:
            self.seen += 1
            return z, self.table[self.seen % 4]
        k = int(z * 3.9)
        self.table[k] += 0.1 * (z - self.table[k])
        for p in self.w:
            p.grad = 0.0
        loss.backward()
        for i, p in enumerate(self.w):
            self.momentum[i] = 0.5 * self.momentum[i] + p.grad
            p.data -= 0.01 * self.momentum[i]
        if n == 0 and loss.data < self.best:
            self.best = loss.data
        return loss, n

    def state(self) -> Any:
        """All numbers."""
        return [*map(bits, ([p.data for p in self.w], list(self.momentum), self.table, [self.best])), self.seen]


def rows_of(count: int, seed: int) -> tuple[list[list[float]], list[float]]:
    draw = random.Random(seed)
    return [[draw.gauss(0, 1), draw.gauss(0, 1)] for _ in range(count)], [draw.gauss(0, 1) for _ in range(count)]


def compiled(step: Callable[..., Any], **options: Any) -> Any:
    return mgjit.compile(step, **{"compiler": "tcc", "background": False, "verify": "never", "cache": False, **options})


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """How many kernels and rows there were in each foreign call."""
    found: list[tuple[int, int]] = []
    original = path_rows.run_path_rows

    def run(runner: Any, *arguments: Any) -> Any:
        before = runner.done
        original(runner, *arguments)
        found.append((len(runner.kernels), runner.done - before))

    monkeypatch.setattr(looping, "run_path_rows", run)
    return found


@pytest.mark.parametrize("verify", ["never", "auto"])
def test_1_numbers_results_and_counts(runs: list[tuple[int, int]], verify: str) -> None:
    """Of plain calls one by one, in several loops, the later of which are hardly ever left."""
    one, other = Model(), Model()
    step = compiled(one.step, verify=verify)
    for seed in range(4):
        rows = rows_of(200, seed)
        del runs[:]
        found = step.loop(*rows)
        expected = [other.step(*row) for row in zip(*rows)]
        plain = [[x.data if isinstance(x, mgjit.Value) else float(x) for x in row] for row in expected]
        assert bits([float(x) for row in zip(*found) for x in row]) == bits([x for row in plain for x in row])
        assert one.state() == other.state()
    assert step.stats.calls + step.stats.plain_calls == 800
    assert step.stats.mismatches == []
    assert max(kernels for kernels, _ in runs) > 3
    assert sum(rows for _, rows in runs) > 150


def test_2_a_number_that_is_constant_to_one_path_and_changed_by_another() -> None:
    class Box:
        limit, k = 1.0, 0

    def made() -> tuple[Box, Callable[[float], Any]]:
        box = Box()
        box.limit, box.k = 1.0, 0

        def step(x: float) -> Any:
            while x > 4.0:
                x, box.limit = 0.5 * x, box.limit + 0.25
            if x > 1.0:
                return x * box.limit
            box.k = box.k + 1
            return x + box.k

        return box, step

    (box, function), (other, plain) = made(), made()
    step, draw = compiled(function), random.Random(5)
    for _ in range(5):
        rows = [draw.choice([0.5, 2.0, 3.0, 9.0]) for _ in range(60)]
        assert list(step.loop(rows)) == list(map(plain, rows))
        assert (box.limit, box.k) == (other.limit, other.k)


def test_3_rows_without_a_kernel_are_plain_and_in_order(runs: list[tuple[int, int]]) -> None:
    """As those in which a number is infinite, or for which plain Python raises."""
    def step(x: float) -> float:
        y = 1.0 / x
        while y > 2.0:
            y *= 0.5
        return y

    kept = [0.25, 4.0, 0.125, 8.0] * 20
    fast = compiled(step)
    assert list(fast.loop(kept)) == list(map(step, kept))
    with pytest.raises(ZeroDivisionError):
        fast.loop([*kept, 0.0, *kept])
    assert fast.stats.calls == 160
    assert list(fast.loop(kept)) == list(map(step, kept))
    assert runs[-1] == (3, 80)
