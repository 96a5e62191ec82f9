"""Steps whose calls change their kernel so often, or find it so late, that plain Python is quicker."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import mgjit
from mgjit.errors import PlainWarning
from mgjit.kernels.first_calls.weighing import Weighing
from mgjit.step import giving_up
from mgjit.step.leaving import Leaving
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
def quick_to_change(monkeypatch: pytest.MonkeyPatch, only_thread: None) -> None:
    """Each plain call takes a second, and each compiled one ten."""
    monkeypatch.delenv("MGJIT_REFUSE", raising=False)
    monkeypatch.setattr(giving_up, "_CALLS_TO_CHANGE", 200)
    monkeypatch.setattr(Leaving, "_is_weighed", True)

    def timed(self: Weighing, call: Any, *args: Any) -> Any:
        self._blocks[-1].append(1.0 if self.wants_plain_call else 10.0)
        return call(*args)

    monkeypatch.setattr(Weighing, "timed", timed)


@pytest.mark.usefixtures("quick_to_change")
@pytest.mark.parametrize("shared", [False, True])
def test_1_the_step_is_given_up_with_the_same_numbers(shared: bool) -> None:
    """No warning: a clock has decided. Parameters are ordinary objects again, unless another step works on them."""
    models, others = [Model(0.5), Model(-0.5)], [Model(0.5), Model(-0.5)]
    step: Any = mgjit.compile(train)
    reader: Any = mgjit.compile(lambda x: models[0].weight * x + models[1].weight)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in range(2000):
            assert step(models[k % 2], 0.001 * k) == train(others[k % 2], 0.001 * k)
            if shared:
                assert reader(0.5) == others[0].weight * 0.5 + others[1].weight
    assert [m.weight for m in models] == [m.weight for m in others]
    assert "its calls change between 2 kernels" in step.stats.last.reason
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


@pytest.mark.usefixtures("only_thread")
def test_3_kernels_that_are_never_used_again_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_2_what_plain_python_takes_is_measured_before_paths_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that is traced at its first call has no plain call to compare with: a few are made; none is given up."""
    monkeypatch.setattr(Leaving, "_is_weighed", True)
    monkeypatch.setattr(giving_up, "_FLAT", 0.0)
    monkeypatch.setattr(giving_up, "_MOST_OF_CALL", 1e-9)  # to find a path is quicker than any plain call
    monkeypatch.setattr(giving_up, "FIRST_OF_PATHS", 10**9)
    totals = [0.0, 0.0]

    def work(k: int, total: list[float]) -> float:
        total[0] += 0.5 * k
        while total[0] > 3.0:
            total[0] -= 1.5
        return sum(total)

    step: Any = mgjit.compile(background=False, verify="never")(lambda k: work(k, totals))
    others = [0.0, 0.0]
    for k in range(200):
        assert step(k % 4) == work(k % 4, others)
    assert step.stats.waiting_calls == giving_up._CALLS_TO_KNOW
    assert step.stats.calls == 200 - giving_up._CALLS_TO_KNOW
