"""Distributions: what they draw, and how likely that is, beside formulas."""

from __future__ import annotations

import math
import random

import pytest

import mgjit
from mgjit import tensor as T
from mgjit.distributions import Bernoulli, Categorical, Normal
from mgjit.errors import ArgumentError


def test_categorical() -> None:
    random.seed(1)
    one = Categorical(probs=T.asarray([[1.0, 1.0, 2.0], [0.0, 3.0, 1.0]]))
    other = Categorical(logits=one.logits + 7.0)
    assert T.allclose(one.probs, other.probs)
    assert one.log_prob(T.asarray([2, 1])).tolist() == pytest.approx([math.log(0.5), math.log(0.75)])
    assert math.isnan(float(one.log_prob(T.asarray([3, 1]))[0]))
    assert one.entropy().tolist() == pytest.approx([1.5 * math.log(2), -0.75 * math.log(0.75) - 0.25 * math.log(0.25)])
    drawn = one.sample((400,))
    assert drawn.shape == (400, 2)
    assert [float((drawn[:, 0] == k).double().mean()) for k in range(3)] == pytest.approx([0.25, 0.25, 0.5], abs=0.1)
    assert sorted(set(drawn[:, 1].tolist())) == [1, 2]
    with pytest.raises(ArgumentError, match="either"):
        Categorical()


def test_bernoulli_and_normal() -> None:
    random.seed(2)
    one, x = Bernoulli(probs=T.asarray([0.25])), T.asarray([1.0])
    assert float(one.log_prob(x)) == pytest.approx(math.log(0.25))
    assert float(one.entropy()) == pytest.approx(-0.75 * math.log(0.75) - 0.25 * math.log(0.25))
    assert float(one.sample((400,)).mean()) == pytest.approx(0.25, abs=0.1)
    mean = T.asarray([3.0], requires_grad=True)
    normal = Normal(mean, 2.0)
    assert float(normal.log_prob(x)) == pytest.approx(-0.5 - math.log(2.0 * math.sqrt(2.0 * math.pi)))
    assert float(normal.entropy()) == pytest.approx(0.5 + math.log(2.0 * math.sqrt(2.0 * math.pi)))
    assert not normal.sample().requires_grad
    normal.rsample((5,)).sum().backward()
    assert mean.grad is not None
    assert mean.grad.tolist() == [5.0]


def test_a_step_takes_them() -> None:
    logits = T.asarray([[0.5, 1.0, -1.0]] * 4, requires_grad=True)

    def step(actions: T.Tensor) -> T.Tensor:
        one = Categorical(logits=logits)
        loss = one.log_prob(actions).sum() + one.entropy().mean()
        logits.zero_grad()
        loss.backward()
        return loss

    compiled = mgjit.compile(step, background=False, backend="python")
    for actions in (T.asarray([0, 1, 2, 0]), T.asarray([2, 2, 1, 7])):
        found, gradient = compiled(actions).tolist(), logits.grad.tolist()  # type: ignore[union-attr]
        assert repr((found, gradient)) == repr((step(actions).tolist(), logits.grad.tolist()))  # type: ignore[union-attr]
    assert compiled.stats.calls == 2
