"""Steps whose compiled calls take longer than plain ones."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit.base.ffi import PYPY
from mgjit.kernels.first_calls import lives
from mgjit.kernels.first_calls.weighing import _AGAIN, _BLOCKS, _ROUNDS, Weighing
from mgjit.step.leaving import Leaving


class Model:
    def __init__(self, weight: float) -> None:
        self.weight, self.bias = weight, 0.25


def train(model: Any, x: float) -> float:
    error = model.weight * x + model.bias - 1.0
    model.weight -= 0.01 * error * x
    model.bias -= 0.01 * error
    return float(error)


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch, only_thread: None) -> list[float]:
    """What a compiled call takes, and a plain one, in seconds: plain ones are quicker."""
    monkeypatch.delenv("MGJIT_REFUSE", raising=False)
    taken = [10.0, 1.0]

    def note(self: Weighing, seconds: float) -> None:
        self._blocks[-1].append(taken[self.wants_plain_call])

    monkeypatch.setattr(Weighing, "note", note)
    monkeypatch.setattr(Leaving, "_is_weighed", True)
    return taken


def made(step: Callable[[Any, float], float]) -> Any:
    """A step that is compiled from its second call on."""
    return mgjit.compile(step, background=False)


def calls_of_round(size: int) -> int:
    return _BLOCKS * (size + 1)


def test_1_and_2_a_step_is_given_up_within_some_twenty_calls(times: list[float]) -> None:
    """With the same numbers throughout, no warning, and one sentence; objects are ordinary ones again."""
    model, other = Model(0.5), Model(0.5)
    step = made(lambda model, x: 2.0 * train(model, x))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in range(700):
            assert step(model, 0.001 * k) == 2.0 * train(other, 0.001 * k)
    assert vars(model) == vars(other)
    assert type(model) is Model
    assert 0 < step.stats.calls < 30
    assert len(step._kernels) == 0
    assert str(step.stats.last).endswith("take longer than plain Python")
    assert [str(step.stats.last).partition(": ")[2]] == step.stats.plain_reasons


def test_2_a_plain_call_that_is_interrupted_or_slowed_down_is_no_victory() -> None:
    """One of each block; or all, as parameters are attached while other threads run."""
    for is_exact in (True, False):
        weighing, plain_calls = Weighing(), 0
        for _ in range(1000):
            if weighing.is_due():
                plain_calls += weighing.wants_plain_call
                weighing.is_exact &= is_exact or not weighing.wants_plain_call
                is_slow = weighing.wants_plain_call and not (is_exact and len(weighing._blocks[-1]) != 2)
                weighing.note(0.5 if is_slow else 0.01)
                weighing.judge(0.0, 1, lambda compiled, plain: False)
        assert (plain_calls > 30, weighing.is_over) == (True, False)


def test_2_one_long_plain_call_tells_enough() -> None:
    """Of a step that has been compiled from its first call on."""
    for seconds, expected in ((30.0, 1), (0.05, 8)):
        weighing, plain_calls = Weighing(), 0
        while not weighing.is_over:
            plain_calls += weighing.wants_plain_call
            weighing.note(seconds if weighing.wants_plain_call else 0.0002)
            weighing.judge(0.0, 1, lambda compiled, plain: False)
        assert plain_calls == expected


def test_1_a_step_that_is_quicker_is_weighed_no_more(times: list[float]) -> None:
    times[:] = 1.0, 10.0
    model, other = Model(0.5), Model(0.5)
    step = made(lambda model, x: 2.0 * train(model, x))
    for k in range(100):
        assert step(model, 0.001 * k) == 2.0 * train(other, 0.001 * k)
    assert (step._weighing.is_over, step._weighing.is_slower, step.stats.plain_calls) == (True, False, 0)
    assert step.stats.waiting_calls < 12


def test_1_whoever_wants_no_plain_calls_gets_none(times: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MGJIT_REFUSE", "error")
    model, step = Model(0.5), made(lambda model, x: -train(model, x))
    for k in range(100):
        step(model, 0.001 * k)
    assert (step.stats.plain_calls, len(step._kernels)) == (0, 1)


def played(
    compiled: float, plain: float, before: float, may_be_quicker: Callable[[float, float], bool] = lambda *_: False
) -> tuple[bool, int]:
    """Whether a step is given up whose calls take so long, and after how many."""
    weighing, calls = Weighing(), 0
    while not weighing.is_over and calls < 1_000_000:
        calls += 1
        if weighing.is_due():
            weighing._blocks[-1].append(plain if weighing.wants_plain_call else compiled)
            weighing.judge(before, 1, may_be_quicker)
    return weighing.is_slower, calls


def test_2_and_3_what_is_not_clear_is_weighed_more_often() -> None:
    three = sum(calls + calls_of_round(size) for calls, size in _ROUNDS[:3])
    assert played(1e-3, 1e-4, 1e-4) == (True, _ROUNDS[0][0] + calls_of_round(_ROUNDS[0][1]))
    assert played(1e-3, 1e-4, 1e-2) == (False, _ROUNDS[0][0] + _ROUNDS[0][1] + 1)
    assert played(1e-3, 8e-4, 8e-4) == (True, three)
    assert played(1e-3, 1e-4, 8e-4) == (True, three)
    assert played(1e-3, 9.5e-4, 9.5e-4) == (False, sum(calls + calls_of_round(size) for calls, size in _ROUNDS))
    assert played(1e-3, 3e-3, 1e-3) == (False, _ROUNDS[0][0] + calls_of_round(_ROUNDS[0][1]))


def test_3_a_few_microseconds_of_first_calls_do_not_count() -> None:
    assert played(5e-6, 1e-6, 1e-6) == (True, sum(calls + calls_of_round(size) for calls, size in _ROUNDS[:2]))


def test_4_what_may_become_quicker_is_weighed_again() -> None:
    asked: list[float] = []

    def may_be_quicker(seconds: float, plain: float) -> bool:
        asked.append(seconds)
        return len(asked) < 3

    is_slower, calls = played(1e-3, 1e-6, 1e-6, may_be_quicker)
    assert is_slower
    assert asked == [1e-3] * 3
    assert calls == _ROUNDS[0][0] + 2 * _AGAIN + 3 * calls_of_round(_ROUNDS[0][1])


def test_4_a_kernel_that_comes_in_the_middle_of_a_round() -> None:
    """Blocks before it have left out fewer first calls: the round is made again."""
    weighing, size = Weighing(), _ROUNDS[0][1]
    for kernels in (1, 2, 9):
        for _ in range(_BLOCKS * size):
            weighing.note(1.0)
            weighing.judge(1.0, kernels, lambda compiled, plain: False)
    assert not weighing.is_slower


def test_5_calls_that_change_the_kernel_do_not_count(times: list[float]) -> None:
    models, others = [Model(0.5), Model(-0.5)], [Model(0.5), Model(-0.5)]
    step = made(lambda model, x: 3.0 * train(model, x))
    for k in range(100):
        assert step(models[k % 2], 0.001 * k) == 3.0 * train(others[k % 2], 0.001 * k)
    assert (len(step._kernels), step.stats.plain_calls, step._weighing.is_over) == (2, 0, False)


def test_6_steps_of_the_same_code_are_plain_at_once(times: list[float]) -> None:
    """And only of this code."""

    def step(model: Any, x: float) -> float:
        return train(model, x)

    for _ in range(lives._SLOWER):
        last, model = made(step), Model(0.5)
        for k in range(60):
            last(model, 0.001 * k)
        assert len(last._kernels) == 0
    assert last.stats.calls > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again: Any = mgjit.compile(background=False)(step)
        model, other = Model(0.5), Model(0.5)
        assert [again(model, 0.1 * k) for k in range(20)] == [train(other, 0.1 * k) for k in range(20)]
    assert (again.stats.calls, again.stats.traces, again.stats.plain_calls) == (0, 0, 20)
    assert again.stats.plain_reasons == last.stats.plain_reasons


def test_exceptions_of_weighed_calls_have_no_frames_of_ours(times: list[float]) -> None:
    rows, w = [[0.5, 0.25]], [0.1]

    def step(row: Any) -> float:
        w[0] += row[0] * row[1]
        return w[0]

    compiled = made(step)
    for _ in range(4):
        compiled(rows[0])
    with pytest.raises(IndexError) as caught:
        compiled([0.5])
    assert [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)][1 + PYPY :] == ["step"]
