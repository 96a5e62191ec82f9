"""`.loop(threads=)`: rows side by side have the same bits, in order."""

from __future__ import annotations

import random
import signal
from array import array
from typing import Any

import pytest

import mgjit
from mgjit import Value, nn
from mgjit.errors import ArgumentError, ArgumentValueError, IndexRangeError
from mgjit.kernels.side_by_side import rows as parallel_rows
from tests.parallel.test_ensemble import after_processor_seconds

XS = [[0.01 * k, 0.3, -0.2] for k in range(500)]


@pytest.mark.parametrize("verify", ["never", "always"])
@pytest.mark.parametrize("options", [{}, {"backend": "python"}, {"lock": False}, {"dtype": "float32"}])
def test_01_in_order(monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], verify: str) -> None:
    """Of all kinds of results, however many threads there are, also in the first loop of a step."""
    monkeypatch.setenv("MGJIT_VERIFY", verify)
    monkeypatch.setattr(parallel_rows, "_SECONDS_A_ROUND", 1e-4)
    model, scale = nn.MLP(3, [4, 2], seed=1), [2.0, 3.0]

    def predict(x: list[float], y: int) -> Any:
        scores = model(x)
        return {"scores": [s * scale[0] for s in scores], "chosen": scores[0] * scale[y], "y": y}

    expected = mgjit.compile(**options)(predict).loop(XS, [k % 2 for k in range(500)])
    for threads in (2, 3, 1, None):
        step = mgjit.compile(**options)(predict)
        assert step.loop(XS, [k % 2 for k in range(500)], threads=threads) == expected
        assert step.loop(XS, [k % 2 for k in range(500)], threads=threads) == expected
        assert step.stats.calls == 1000


@pytest.mark.parametrize("form", ["bytes", "doubles", "separate"])
def test_02_buffers(form: str) -> None:
    """One buffer for all rows, or one for each."""
    model = nn.MLP(4, [3, 1], seed=2)
    numbers = [k % 251 for k in range(4 * 300)]
    columns: Any = {
        "bytes": memoryview(bytes(numbers)).cast("B", (300, 4)),
        "doubles": memoryview(array("d", numbers)).cast("B").cast("d", (300, 4)),
        "separate": [array("f", numbers[4 * k : 4 * k + 4]) for k in range(300)],
    }
    step = mgjit.compile(lambda pixels: model([p / 255 for p in pixels]))
    assert step.loop(columns[form], threads=2) == step.loop(columns[form])


def test_03_random_numbers() -> None:
    """They are drawn in the order of the rows."""
    model = nn.MLP(3, [2, 1], seed=3)
    step = mgjit.compile(lambda x: model([a + random.gauss(0.0, 1.0) for a in x]))
    random.seed(5)
    expected, state = step.loop(XS), random.getstate()
    random.seed(5)
    assert step.loop(XS, threads=3) == expected
    assert random.getstate() == state


def test_04_rows_of_different_lengths() -> None:
    """They are separate calls, in order."""
    w = Value(0.5)
    step = mgjit.compile(lambda xs: sum((w * x for x in xs), Value(0.0)))
    lists = [[0.1] * (1 + k % 3) for k in range(20)]
    assert step.loop(lists, threads=2) == step.loop(lists)


def test_05_wrong_arguments() -> None:
    """They are refused before anything runs."""
    table, w = [1.0, 2.0], Value(1.0)
    step = mgjit.compile(lambda i: w * table[i])
    for threads, kind in (
        (0, ArgumentValueError),
        (-1, ArgumentValueError),
        (2.0, ArgumentError),
        ("2", ArgumentError),
    ):
        with pytest.raises(kind, match="threads must be"):
            step.loop([0, 1], threads=threads)
    with pytest.raises(IndexRangeError, match="row 2"):
        step.loop([0, 1, 2], threads=2)
    assert step.stats.calls == 0


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no such timer")
def test_06_interrupted() -> None:
    """Ctrl-C ends it; the generator and the count are those of a whole number of rows."""
    model, rng = nn.MLP(20, [30, 1], seed=1), random.Random(3)
    step = mgjit.compile(lambda x: model([x + rng.random()] * 20))
    step.loop([0.1] * 10, threads=2)
    after_processor_seconds(0.3, lambda: step.loop([0.1] * 2_000_000, threads=2))
    assert 10 <= step.stats.calls < 2_000_000
    other = random.Random(3)
    for _ in range(step.stats.calls):
        other.random()
    assert rng.getstate() == other.getstate()
