"""What `step.stats` counts, whichever way a call goes, and what a call that is interrupted leaves."""

from __future__ import annotations

import warnings
from typing import Any, Callable

import pytest

import mgjit
from mgjit import nn
from mgjit.engine.leaks import PlainCall, is_traced


def _net(decorate: Any) -> tuple[Any, nn.MLP]:
    model = nn.MLP(2, [3, 1], seed=1)

    def step(x: float, rate: float) -> Any:
        loss = (model([x, 1.0]) - 1.0) ** 2
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= rate * p.grad
        return loss

    return decorate(step), model


def _counts(step: Any) -> tuple[int, int, int]:
    stats = step.stats
    assert stats.all_calls == stats.calls + stats.waiting_calls + stats.plain_calls
    return stats.calls, stats.waiting_calls, stats.plain_calls


compiled = mgjit.compile(background=False)


def test_calls_and_rows_of_loops() -> None:
    step, _ = _net(compiled)
    for k in range(5):
        step(0.1 * k, 0.01)
    assert _counts(step) == (5, 0, 0)
    step.loop([0.1, 0.2, 0.3], 0.01)
    assert _counts(step) == (8, 0, 0)
    step.loop([], 0.01)
    assert _counts(step) == (8, 0, 0)


def test_three_phases_are_one_call_at_the_last() -> None:
    step, model = _net(compiled)
    other, wanted = _net(lambda f: f)
    for k in range(3):
        other(0.1 * k, 0.01)
        step.forward(0.1 * k, 0.01)
        step.backward()
        assert _counts(step) == (k, 0, 0)
        step.update()
        assert _counts(step) == (k + 1, 0, 0)
    step.forward(0.5, 0.01)
    assert _counts(step) == (3, 0, 0)
    assert [p.data for p in model.parameters()] == [p.data for p in wanted.parameters()]


def test_calls_that_are_compared_count_once() -> None:
    step, _ = _net(mgjit.compile(background=False, verify="always"))
    for k in range(4):
        step(0.1 * k, 0.01)
    assert _counts(step)[0] + step.stats.plain_calls == 4


def test_calls_that_wait_for_their_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mgjit.kernels.first_calls.earnings._BEFORE_FIRST", 1e9)
    monkeypatch.delenv("MGJIT_BACKGROUND")
    step, _ = _net(mgjit.compile)
    for k in range(40):
        step(0.1 * k, 0.01)
    assert _counts(step) == (0, 40, 0)
    assert step.wait(60)
    assert step.stats.traces == 1  # at once, though no call has been worth it
    step(0.1, 0.01)
    assert _counts(step) == (1, 40, 0)


def test_plain_calls_and_rows() -> None:
    @compiled
    def step(x: float) -> float:
        if is_traced(x):
            raise PlainCall("it is a test")
        return 2 * x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [step(1.0), step(2.0)] == [2.0, 4.0]
        assert list(step.loop([1.0, 2.0, 3.0])) == [2.0, 4.0, 6.0]
    assert _counts(step) == (0, 0, 5)


def test_what_is_part_of_another_step_counts_there() -> None:
    inner, _ = _net(compiled)

    @compiled
    def outer(x: float) -> Any:
        return inner(x, 0.01)

    outer(0.1)
    outer(0.2)
    assert _counts(inner) == (0, 0, 0)
    assert _counts(outer) == (2, 0, 0)


def test_without_mgjit_nothing_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MGJIT_DISABLE", "1")
    step, _ = _net(compiled)
    step(0.1, 0.01)
    assert _counts(step) == (0, 0, 0)


# ---- interruptions ------------------------------------------------------------------------------------------


class Interrupted:
    """Parameters in a list, and an update that Ctrl-C ends before a certain one."""

    def __init__(self, decorate: Callable[[Any], Any], is_plain: bool) -> None:
        self.weights, self.last = [0.5 * k for k in range(6)], 99
        self.is_plain = is_plain
        self.step = decorate(self._step)

    def _step(self, x: float) -> float:
        if self.is_plain and is_traced(x):
            raise PlainCall("it is a test")
        for k in range(6):
            if k == self.last:
                raise KeyboardInterrupt
            self.weights[k] -= 0.1 * x * k
        return x


@pytest.mark.parametrize("is_plain", [True, False])
@pytest.mark.parametrize("last", [0, 3, 5])
def test_an_interrupted_plain_call_leaves_what_python_leaves(last: int, is_plain: bool) -> None:
    """As in the undecorated step: half of an update, where it was half done.  The next calls work."""
    plain, other = Interrupted(lambda f: f, is_plain), Interrupted(mgjit.compile(background=False), is_plain)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one in (plain, other):
            one.step(0.3)
            one.last = last
            with pytest.raises(KeyboardInterrupt):
                one.step(0.7)
        before = Interrupted(lambda f: f, False)
        before.step(0.3)
        # What is traced when it is interrupted has changed nothing.
        assert other.weights == (plain.weights if is_plain else before.weights)
        other.weights[:] = plain.weights
        for one in (plain, other):
            one.last = 99
        assert [other.step(0.1 * k) for k in range(3)] == [plain.step(0.1 * k) for k in range(3)]
    assert other.weights == plain.weights
