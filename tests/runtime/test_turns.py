"""Rows of different lengths run in turn: the numbers, results and order of the same calls one by one."""

from __future__ import annotations

import random
from array import array
from functools import partial
from typing import Any, Callable

import pytest

import mgjit
from mgjit import Value
from mgjit.compiler.toolchain import compilers
from mgjit.errors import IndexRangeError
from mgjit.runtime import turns
from tests.fuzz.oracle import bits

pytestmark = [
    pytest.mark.skipif(compilers.find() is None, reason="no C compiler is installed"),
]


class Model:
    """Parameters, State, and numbers in plain lists, all of which a step changes."""

    def __init__(self) -> None:
        self.w = [Value(0.3 - 0.1 * k) for k in range(5)]
        self.momentum = mgjit.zeros(5)
        self.sums = [0.25, -0.5]
        self.calls = 0

    def step(self, xs: list[float], lr: float) -> Any:
        h = self.w[0] * 0.5
        for x in xs:
            h = (h * self.w[1] + self.w[2] * x).tanh()
        loss = (h * self.w[3] - self.w[4]) ** 2 + self.sums[0] * 0.125
        loss.backward()
        for k, p in enumerate(self.w):
            self.momentum[k] = self.momentum[k] * 0.5 + p.grad
            p.data -= lr * self.momentum[k]
            p.grad = 0.0
        self.sums[0] = self.sums[1] + loss.data
        self.sums[1] = self.sums[0] * 0.5
        self.calls += 1
        return [loss, len(xs)]

    def state(self) -> list[Any]:
        """All numbers."""
        return [bits([p.data for p in self.w]), bits(list(self.momentum)), bits(self.sums), self.calls]


def rows_of(count: int, seed: int, longest: int = 6) -> list[list[float]]:
    draw = random.Random(seed)
    return [[draw.uniform(-1.0, 1.0) for _ in range(draw.randint(1, longest))] for _ in range(count)]


def compiled(step: Callable[..., Any], **options: Any) -> Any:
    return mgjit.compile(step, **{"compiler": "tcc", "background": False, "verify": "never", "cache": False, **options})


@pytest.fixture
def stretches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each foreign call that runs rows in turn is made for."""
    found: list[int] = []
    original = turns._Stretch.has_started

    def has_started(self: Any, *arguments: Any) -> bool:
        found.append(len(self))
        return original(self, *arguments)

    monkeypatch.setattr(turns._Stretch, "has_started", has_started)
    return found


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_01_numbers_results_and_counts(dtype: str, stretches: list[int]) -> None:
    """Of calls one by one, in several loops; the last one is a single foreign call."""
    one, other = Model(), Model()
    by_rows, by_calls = compiled(one.step, dtype=dtype), compiled(other.step, dtype=dtype)
    for seed in range(3):
        rows = rows_of(30, seed)
        found = by_rows.loop(rows, 0.05)
        expected = [by_calls(row, 0.05) for row in rows]
        assert bits([list(found[0]), list(found[1])]) == bits([[r[k] for r in expected] for k in range(2)])
        assert one.state() == other.state()
        assert (by_rows.stats.calls, by_rows.stats.traces) == (by_calls.stats.calls, by_calls.stats.traces)
    assert stretches[-1] == 30


def test_02_undecorated(stretches: list[int]) -> None:
    """As plain Python does it, with an update of numbers in lists by each length."""
    one, plain = Model(), Model()
    step = compiled(one.step)
    rows = rows_of(40, 5)
    for _ in range(2):
        found = step.loop(rows, 0.1)
        assert bits(list(found[0])) == bits([plain.step(row, 0.1)[0].data for row in rows])
        assert one.state() == plain.state()
    assert stretches[-1] == 40


def test_03_buffers_and_results_of_other_lengths(stretches: list[int]) -> None:
    """Arrays of floats; each call returns as many numbers as it gets."""
    w = Value(0.5)

    def step(xs: Any, scale: float) -> Any:
        w.data = w.data * 0.5 + xs[0] * scale
        return [x * w.data for x in xs]

    rows = [array("d", row) for row in rows_of(20, 3)]
    scales = [0.5 + 0.25 * k for k in range(20)]
    expected = [step(row, scale) for row, scale in zip(rows, scales)]
    before, w.data = w.data, 0.5
    f = compiled(step)
    f.loop(rows, scales)
    w.data = 0.5
    assert bits(f.loop(rows, scales)) == bits(expected)
    assert (stretches[-1], bits(w.data)) == (20, bits(before))


def test_04_an_index_out_of_range_is_found_before_its_row_runs(stretches: list[int]) -> None:
    """The rows before have been run, as calls one by one would have been."""
    w = [Value(0.1 * k) for k in range(4)]

    def step(indices: list[int]) -> Any:
        total = sum(w[index] * 2.0 for index in indices)
        w[0].data += 1.0
        return total

    f = compiled(step)
    rows = [[0, 1], [2, 3, 1], [1], [3, 3]]
    f.loop(rows)
    f.loop(rows)
    assert (stretches, w[0].data) == ([4], 8.0)
    with pytest.raises(IndexRangeError):
        f.loop([*rows, [1, 2, 4], [1]])
    assert (stretches, w[0].data) == ([4, 4], 12.0)


def test_05_rows_that_are_to_be_compared_are_calls(stretches: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """And so are those that need a new kernel; all others run in turn."""
    monkeypatch.setenv("MGJIT_VERIFY", "auto")
    one, plain = Model(), Model()
    step = compiled(one.step, verify="auto")
    for seed in range(6):
        rows = rows_of(40, seed, longest=3 + seed // 2)
        step.loop(rows, 0.1)
        for row in rows:
            plain.step(row, 0.1)
        assert one.state() == plain.state()
    assert max(stretches) >= 10
    assert step.stats.compared_calls >= 5
    assert not step.stats.mismatches


def test_06_what_python_has_to_do_is_done(stretches: list[int]) -> None:
    """Draws, and what a step writes into its arguments."""
    drawn = random.Random(5)

    def draws(xs: list[float]) -> float:
        return sum(x * drawn.random() for x in xs)

    def writes(xs: Any) -> float:
        xs[0] = xs[0] * 0.5
        return xs[0]  # type: ignore[no-any-return]

    for step, kind in ((draws, list), (writes, partial(array, "d"))):
        rows = [kind(row) for row in rows_of(12, 2)]
        drawn.seed(5)
        f = compiled(step)
        found = [list(f.loop(rows)) for _ in range(2)]
        plain = [kind(row) for row in rows_of(12, 2)]
        drawn.seed(5)
        assert bits(found) == bits([[step(row) for row in plain] for _ in range(2)])
        assert bits(rows) == bits(plain)
    assert not stretches


def test_07_an_interruption_leaves_whole_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers in the user's objects are those after the last row that has run."""
    one, plain = Model(), Model()
    step = compiled(one.step)
    rows = rows_of(30, 9)
    step.loop(rows, 0.1)
    original = turns._Turns.run

    def run(self: Any, count: int) -> None:
        original(self, min(count, 7))
        raise KeyboardInterrupt

    monkeypatch.setattr(turns._Turns, "run", run)
    with pytest.raises(KeyboardInterrupt):
        step.loop(rows, 0.1)
    done = step.stats.calls - 30
    assert 1 <= done <= 7
    for row in [*rows, *rows[:done]]:
        plain.step(row, 0.1)
    assert one.state() == plain.state()


def test_08_other_numbers_in_other_lengths_are_not_mixed_up() -> None:
    """A length that assigns other numbers of the user's has memory of its own for them."""
    even, odd = [1.0, 2.0], [3.0, 4.0]

    def step(xs: list[float]) -> float:
        target = even if len(xs) % 2 == 0 else odd
        target[0] = target[1] * 0.5 + xs[0]
        target[1] = target[0] - xs[-1]
        return target[0]

    rows = rows_of(24, 4)
    expected = [[step(row) for row in rows] for _ in range(3)]
    after = [*even, *odd]
    even[:], odd[:] = [1.0, 2.0], [3.0, 4.0]
    f = compiled(step)
    assert bits([list(f.loop(rows)) for _ in range(3)]) == bits(expected)
    assert bits([*even, *odd]) == bits(after)


def test_09_a_changed_constant_is_noticed(stretches: list[int]) -> None:
    """Guards are asked before the rows run."""
    w, factor = Value(0.5), [2.0]

    def step(xs: list[float]) -> float:
        w.data = w.data + sum(xs) * factor[0]
        return w.data

    f = compiled(step)
    rows = rows_of(10, 8)
    f.loop(rows)
    for factor[0] in (3.0, 4.0):
        w.data = 0.5
        expected = [step(row) for row in rows]
        w.data = 0.5
        assert bits(list(f.loop(rows))) == bits(expected)
