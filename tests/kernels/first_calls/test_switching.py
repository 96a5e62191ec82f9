"""Steps whose calls change their kernel so often that plain Python is quicker."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import mgjit
from mgjit.errors import PlainWarning
from mgjit.kernels.first_calls import switching
from mgjit.kernels.first_calls.switching import Switching
from mgjit.tensor.memory import Memory


class Model:
    def __init__(self, weight: float) -> None:
        self.weight, self.bias = weight, 0.25

    def update(self, error: float, x: float) -> None:
        self.weight -= 0.01 * error * x
        self.bias -= 0.01 * error


def train(model: Model, x: float) -> float:
    error = model.weight * x + model.bias - 1.0
    model.update(error, x)
    return error


@pytest.fixture
def quick_to_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switching, "_FIRST", 200)
    monkeypatch.setattr(switching, "_BETWEEN", 8)
    monkeypatch.setattr(Switching, "timed", _timed)


def _timed(self: Switching, call: Any, *args: Any) -> Any:
    """Each plain call takes a second, and each compiled one ten."""
    times = self._plain if self.wants_plain_call else self._compiled
    times.append(1.0 if self.wants_plain_call else 10.0)
    return call(*args)


@pytest.mark.usefixtures("quick_to_change")
@pytest.mark.parametrize("shared", [False, True])
def test_1_the_step_is_given_up_with_the_same_numbers(shared: bool) -> None:
    """One warning says why; parameters are ordinary objects again, but for those that another step works on."""
    models, others = [Model(0.5), Model(-0.5)], [Model(0.5), Model(-0.5)]
    step: Any = mgjit.compile(train)
    reader: Any = mgjit.compile(lambda x: models[0].weight * x + models[1].weight)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in range(2000):
            assert step(models[k % 2], 0.001 * k) == train(others[k % 2], 0.001 * k)
            if shared:
                assert reader(0.5) == others[0].weight * 0.5 + others[1].weight
    assert [m.weight for m in models] == [m.weight for m in others]
    assert [w.category for w in caught] == [PlainWarning]
    assert "its calls change between 2 kernels" in str(caught[0].message)
    assert (step.__call__ is train, len(step._kernels)) == (True, 0)
    if not shared:
        assert all(type(model) is Model for model in models)
    models[0].weight = others[0].weight = 7.0
    assert step(models[0], 2.0) == train(others[0], 2.0)
    assert reader(0.5) == others[0].weight * 0.5 + others[1].weight


@pytest.mark.usefixtures("quick_to_change")
def test_1_rows_of_loops_are_compiled_nevertheless() -> None:
    models, others = [Model(0.5), Model(-0.5)], [Model(0.5), Model(-0.5)]
    step: Any = mgjit.compile(train)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(2000):
            assert step(models[k % 2], 0.001 * k) == train(others[k % 2], 0.001 * k)
    calls = step.stats.calls
    assert step.loop(models[0], [0.1, 0.2, 0.3]).tolist() == [train(others[0], x) for x in (0.1, 0.2, 0.3)]
    assert step.stats.calls == calls + 3
    assert step(models[1], 0.1) == train(others[1], 0.1)


@pytest.mark.usefixtures("quick_to_change")
def test_2_a_step_whose_calls_seldom_change_keeps_its_kernels() -> None:
    models, others = [Model(0.5), Model(-0.5)], [Model(0.5), Model(-0.5)]
    step: Any = mgjit.compile(train)
    for k in range(3000):
        assert step(models[k % 9 == 0], 0.001 * k) == train(others[k % 9 == 0], 0.001 * k)
    assert (len(step._kernels), step.stats.plain_calls) == (2, 0)


@pytest.mark.usefixtures("quick_to_change")
def test_3_each_round_that_shows_nothing_doubles_the_wait() -> None:
    """To time a plain call takes longer than to make it."""
    known, calls, waits = Switching(), 200, []
    for _ in range(4):
        waits.append(0)
        while not known.is_due(calls):
            waits[-1] += 1
        known._plain, known._compiled = [1.0] * switching._PAIRS, [1.0] * switching._PAIRS
        assert not known.is_too_much(calls)
    assert waits == [7, 15, 31, 63]


@pytest.mark.usefixtures("only_thread")
def test_4_kernels_that_are_never_used_again_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call has another text, so that each kernel had been for one call; what there was is an ordinary object."""
    monkeypatch.setattr(Memory, "exists", False)  # tensors of other tests
    model, other = Model(0.5), Model(0.5)
    step: Any = mgjit.compile(lambda line, x: train(model, x * len(line)), background=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in range(1000):
            assert step(f"line {k}", 0.001 * k) == train(other, 0.001 * k * len(f"line {k}"))
    assert [w.category for w in caught if w.category is PlainWarning] == [PlainWarning]
    assert type(model) is Model
    assert step.stats.plain_calls < 600
    assert step.__call__ is step.__wrapped__
