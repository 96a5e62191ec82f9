"""Tensor steps in which plain ints decide what is done: a kernel for each answer, none for each int."""

from __future__ import annotations

from typing import Any, Callable

import pytest

import mgjit
import mgjit.nn.functional as F
from mgjit import nn, optim


def _numbers(model: nn.Module) -> list[Any]:
    return [p.detach().tolist() for p in model.parameters()]


class Trainer:
    """Accumulates gradients, and keeps a mean that is written in place."""

    def __init__(self, optimiser: Callable[..., Any]) -> None:
        mgjit.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))
        self.optimiser = optimiser(self.model.parameters(), lr=0.05)
        self.mean = mgjit.Tensor([[0.0] * 3] * 5)
        self.t = self.steps = 0

    def by_argument(self, x: Any, y: Any, i: int) -> Any:
        loss = F.mse_loss(self.model(x), y)
        loss.backward()
        if (i + 1) % 4 == 0:
            self.optimiser.step()
            self.optimiser.zero_grad()
            self.steps += 1
        return loss

    def by_attribute(self, x: Any, y: Any, i: int) -> Any:
        self.t += 1
        self.optimiser.zero_grad()
        loss = F.mse_loss(self.model(x), y)
        loss.backward()
        self.optimiser.step()
        if self.t % 5 == 0:
            with mgjit.no_grad():
                self.mean[...] = 0.9 * self.mean + 0.1 * self.model[0].weight
        return loss


@pytest.mark.parametrize("optimiser", [optim.SGD, optim.Adam])
@pytest.mark.parametrize(("name", "paths"), [("by_argument", 2), ("by_attribute", 2)])
def test_01_a_kernel_for_each_answer(optimiser: Callable[..., Any], name: str, paths: int) -> None:
    x = mgjit.Tensor([[0.1 * (3 * i + j) for j in range(3)] for i in range(4)])
    y = mgjit.Tensor([[0.5], [-0.25], [1.0], [0.0]])
    plain, compiled = Trainer(optimiser), Trainer(optimiser)
    step = mgjit.compile(getattr(compiled, name), background=False)
    for i in range(40):
        assert step(x, y, i).item() == getattr(plain, name)(x, y, i).item()
        assert _numbers(compiled.model) == _numbers(plain.model)
        assert compiled.mean.tolist() == plain.mean.tolist()
    assert (compiled.t, compiled.steps) == (plain.t, plain.steps)
    assert step.stats.traces == paths
    assert not step.stats.plain_calls


def test_02_a_number_that_comes_from_a_tensor_is_not_known_while_the_step_is_traced() -> None:
    w = mgjit.Tensor([0.0] * 3)

    @mgjit.compile(background=False)
    def step(x: Any) -> Any:
        with mgjit.no_grad():
            w[...] = w + x
        if w[0].item() > 2.5:
            with mgjit.no_grad():
                w[...] = 0.0 * w
        return w.sum()

    with pytest.raises(mgjit.errors.TraceError):
        step(mgjit.Tensor([1.0, 2.0, 3.0]))
    assert w.tolist() == [0.0, 0.0, 0.0]
