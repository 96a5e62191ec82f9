"""Which kernel is tried first for arguments that look alike."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import mgjit
from mgjit.kernels.members import Members
from mgjit.tracing.call.lengths import lengths_of


def kept(members: Members, *arguments: Any) -> Any:
    """A kernel that has been used for these arguments."""
    kernel: Any = SimpleNamespace(plan=SimpleNamespace(nodes=[]))
    members.put(arguments, lengths_of(arguments), kernel)
    return kernel


def test_1_by_types_and_lengths() -> None:
    members = Members()
    assert members.find((1.0,)) is None
    short, long = kept(members, [1.0]), kept(members, [1.0, 2.0])
    assert members.find(([5.0],)) is short
    assert members.find(([5.0, 6.0],)) is long
    assert members.find((1.0,)) is None


@pytest.mark.parametrize(("one", "other"), [(True, False), ("a", "b"), (object(), object())])
def test_2_what_looks_alike_is_told_apart_by_value_or_identity(one: Any, other: Any) -> None:
    members = Members()
    first, second = kept(members, one, 1.0), kept(members, other, 1.0)
    assert members.find((one, 2.0)) in (first, second)  # a guess, until it has been used again
    members.put((one, 1.0), lengths_of((one, 1.0)), first)
    assert members.find((one, 2.0)) is first
    assert members.find((other, 2.0)) is second
    members.forget(first)
    assert members.find((one, 2.0)) is not first


def test_2_numbers_for_which_there_is_a_kernel_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that go round between an index of a text and the next are planned once for each."""
    letters, weights = "abcb", {"a": 0.5, "b": -1.0, "c": 2.0}
    mine, theirs = [0.25], [0.25]

    def function(k: int, x: float, state: list[float] = theirs) -> float:
        state[0] = 0.5 * state[0] + weights[letters[k]] * x
        return state[0]

    step, planned = mgjit.compile(lambda k, x: function(k, x, mine), backend="python"), []
    plan = step._kernels.maker.plan
    monkeypatch.setattr(step._kernels.maker, "plan", lambda *given: planned.append(1) or plan(*given))
    for n in range(80):
        assert step(n % 4, 0.125 * n) == function(n % 4, 0.125 * n)
    assert len(planned) < 40


class Model:
    def __init__(self, weight: float) -> None:
        self.weight = weight


def test_2_models_that_take_turns_are_planned_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(model: Model, x: float) -> float:
        error = model.weight * x - 1.0
        model.weight -= 0.1 * error * x
        return error

    step, planned = mgjit.compile(function), []
    plan = step._kernels.maker.plan
    monkeypatch.setattr(step._kernels.maker, "plan", lambda *given: planned.append(1) or plan(*given))
    models, others = [Model(0.5), Model(-0.5), Model(2.0)], [Model(0.5), Model(-0.5), Model(2.0)]
    for k in range(60):
        assert step(models[k % 3], 0.1 * k) == function(others[k % 3], 0.1 * k)
    assert [m.weight for m in models] == [m.weight for m in others]
    assert len(planned) <= 12
    assert step.stats.traces == 3
