"""Steps that call steps: the inner one is a part of the outer one, in a trace and in plain calls."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit import Value
from mgjit import tensor as T


def _tensors(wrap: Callable[[Any], Any], kept: list[Any] | None) -> list[Any]:
    w = T.asarray([1.0, 2.0], requires_grad=True)
    loss_of = wrap(lambda x: ((w * x) ** 2).sum())

    def step(x: Any) -> Any:
        if kept is not None:
            kept.append("a change that is for Python")
        loss = loss_of(x)
        w.zero_grad()
        loss.backward()
        with mgjit.no_grad():
            w[...] = w - 0.01 * w.grad
        return loss

    call = wrap(step)
    found = [call(T.ones(2) * float(k)).tolist() for k in range(6)]
    return [*found, loss_of(T.ones(2)).tolist(), w.tolist()]


def _values(wrap: Callable[[Any], Any], kept: list[Any] | None) -> list[Any]:
    v = Value(2.0)
    product = wrap(lambda x: v * x)

    def step(x: float) -> Any:
        if kept is not None:
            kept.append("a change that is for Python")
        y = product(x) * 2.0
        v.grad = 0.0
        y.backward()
        return y

    call = wrap(step)
    return [(call(1.0 + k).data, v.grad) for k in range(6)]


@pytest.mark.parametrize("run", [_tensors, _values])
@pytest.mark.parametrize("background", [True, False])
@pytest.mark.parametrize("disabled", ["", "1"])
@pytest.mark.parametrize("is_plain", [False, True], ids=["compiled", "plain"])
def test_01_a_backward_pass_through_what_another_step_returns(
    run: Any, background: bool, disabled: str, is_plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel of the inner one has no graph, so it is not used there."""
    expected = run(lambda step: step, None)
    monkeypatch.setenv("MGJIT_DISABLE", disabled)
    monkeypatch.setenv("MGJIT_BACKGROUND", str(int(background)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert run(mgjit.compile, [] if is_plain else None) == expected


def test_02_a_step_that_is_all_of_a_program_uses_the_kernels_of_others() -> None:
    """It has no backward pass of its own, and is never compiled."""
    w = T.ones(2, requires_grad=True)
    log: list[str] = []

    @mgjit.compile(background=False)
    def train_step(x: Any) -> Any:
        loss = (w * x).sum()
        w.zero_grad()
        loss.backward()
        return loss

    @mgjit.compile(background=False)
    def epoch(batches: Any) -> Any:
        log.insert(0, "epoch")
        return [train_step(x) for x in batches]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            epoch([T.ones(2), T.ones(2)])
    assert log == ["epoch"] * 3
    assert train_step.stats.calls >= 4


def test_03_hidden_state_that_is_carried_along(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a step returns has no graph, also with MGJIT_DISABLE=1: the next call ends there."""

    def run() -> list[Any]:
        w = T.asarray([[0.5, 0.1], [0.2, 0.3]], requires_grad=True)

        @mgjit.compile(background=False)
        def step(x: Any, h: Any) -> Any:
            new = T.tanh(h @ w + x)
            loss = (new * new).sum()
            w.zero_grad()
            loss.backward()
            return loss, new

        h, found = T.zeros(2), []
        for k in range(4):
            loss, h = step(T.ones(2) * float(k), h)
            found += [loss.tolist(), h.tolist(), w.grad.tolist()]
        return found

    compiled = run()
    monkeypatch.setenv("MGJIT_DISABLE", "1")
    assert run() == compiled
