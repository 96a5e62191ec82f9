"""Steps that are made again of the same function."""

from __future__ import annotations

import gc
import warnings
from types import SimpleNamespace
from typing import Any

import pytest

import mgjit
from mgjit.engine.leaks import PlainCall, is_traced
from mgjit.kernels.first_calls import lives as module
from mgjit.kernels.first_calls.earnings import Waiting
from mgjit.kernels.first_calls.lives import Lives, lives_of


class Counted(SimpleNamespace):
    """Stands for the stats of a step."""

    def __init__(self, calls: int) -> None:
        super().__init__(all_calls=calls)

    __hash__ = object.__hash__


def may_trace(lives: Lives, stats: Any, plain: float, is_patient: bool = False) -> bool:
    try:
        lives.require("key", stats, plain, is_patient)
    except Waiting:
        return False
    return True


def test_1_a_step_is_judged_by_earlier_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mgjit.kernels.first_calls.earnings._FIRST_SECONDS", 0.1)
    lives = Lives()
    lives.note_trace(1.0)
    steps = [Counted(1_000), Counted(10), Counted(0)]
    for stats in steps[:2]:
        lives.begin(stats)  # type: ignore[arg-type]
        assert may_trace(lives, stats, 1e-9)
    lives.begin(steps[2])  # type: ignore[arg-type]
    last = steps[2]
    assert not may_trace(lives, last, 9e-3)  # nine seconds
    assert may_trace(lives, last, 11e-3)
    last.all_calls = 200
    assert not may_trace(lives, last, 11e-3)
    last.all_calls = 1_999
    assert not may_trace(lives, last, 1e-9)
    last.all_calls = 2_000
    assert may_trace(lives, last, 1e-9)


def test_1_of_steps_that_are_gone_it_is_known_how_often_they_were_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mgjit.kernels.first_calls.earnings._FIRST_SECONDS", 0.1)
    lives = Lives()
    lives.note_trace(1.0)
    for _ in range(9):
        stats = Counted(0)
        lives.begin(stats)  # type: ignore[arg-type]
        stats.all_calls = 100
        lives.note_calls()
        del stats
        gc.collect()
    last = Counted(0)
    lives.begin(last)  # type: ignore[arg-type]
    assert [may_trace(lives, last, plain) for plain in (0.09, 0.11)] == [False, True]
    assert [may_trace(lives, last, plain, is_patient=True) for plain in (0.009, 0.011)] == [False, True]  # one trace


def test_steps_of_one_code_share_what_is_known_until_it_is_gone() -> None:
    def make() -> Any:
        return lambda x: x

    assert lives_of(make(), None) is lives_of(make(), None)
    assert lives_of(make, None) is not lives_of(make(), None)
    assert lives_of(len, None) is not lives_of(len, None)
    assert lives_of(make(), "other options") is not lives_of(make(), None)


def test_functions_that_one_function_calls_are_told_apart() -> None:
    def around(function: Any) -> Any:
        return lambda x: function(x) + 1.0

    def one(x: float) -> float:
        return x

    def other(x: float) -> float:
        return -x

    assert lives_of(around(one), None) is lives_of(around(one), None)
    assert lives_of(around(one), None) is not lives_of(around(other), None)


def test_what_is_known_goes_with_the_code() -> None:
    code = compile("f = lambda x: x", "<made>", "exec")
    namespace: dict[str, Any] = {}
    exec(code, namespace)  # noqa: S102 - a function that nothing else refers to
    number = id(namespace["f"].__code__)
    lives_of(namespace["f"], None)
    assert number in module._known
    del code, namespace
    gc.collect()
    assert number not in module._known


@pytest.mark.parametrize("background", ["0", "1"])
def test_2_steps_whose_traces_come_to_nothing_are_plain_at_once(
    background: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MGJIT_BACKGROUND", background)
    monkeypatch.setattr("mgjit.kernels.first_calls.earnings._FIRST_SECONDS", 0.0)

    def make(weight: float) -> Any:
        @mgjit.compile
        def step(x: Any) -> Any:
            if is_traced(x):
                raise PlainCall("it is a test")
            return weight * x

        return step

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for weight in range(20):
            step = make(float(weight))
            assert [step(0.5) for _ in range(20)] == [weight * 0.5] * 20
            assert step.stats.plain_reasons == ["it is a test"]
    assert step._kernels._lives._fruitless == module._FRUITLESS


@pytest.mark.parametrize("background", ["0", "1"])
def test_steps_that_are_made_again_have_the_numbers_of_plain_python(
    background: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MGJIT_BACKGROUND", background)
    monkeypatch.setattr("mgjit.kernels.first_calls.earnings._FIRST_SECONDS", 0.0)

    def fit(decorate: Any, start: float, calls: int) -> list[float]:
        weights = [start, -start]

        @decorate
        def step(x: float, y: float) -> float:
            error = weights[0] + weights[1] * x - y
            weights[0] -= 0.1 * error
            weights[1] -= 0.1 * error * x
            return error  # type: ignore[no-any-return]

        return [step(0.1 * (k % 7), 0.2 * (k % 3)) for k in range(calls)] + weights

    for number in range(12):
        calls = (50, 300, 5)[number % 3]
        assert fit(mgjit.compile, 0.1 * number, calls) == fit(lambda step: step, 0.1 * number, calls)
