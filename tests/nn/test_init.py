"""Initial weights: fans, bounds, deviations, in place."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from mgjit import nn
from mgjit import tensor as T
from mgjit.errors import ArgumentValueError, GradientError, ShapeError
from mgjit.nn import init

pytestmark = pytest.mark.usefixtures("python_loops")


def test_fans_of_convolutions_are_not_exchanged() -> None:
    assert init.fans(nn.Conv2d(3, 8, (5, 2)).weight) == (3 * 10, 8 * 10)
    assert init.fans(nn.Conv2d(4, 8, 3, groups=2).weight) == (2 * 9, 8 * 9)
    assert init.fans(nn.Linear(3, 8).weight) == (3, 8)
    with pytest.raises(ShapeError, match=r"fan_out of shape \(3,\)"):
        init.xavier_normal_(T.zeros(3))


@pytest.mark.parametrize(
    ("function", "options", "deviation"),
    [
        (init.xavier_uniform_, {"gain": 2.0}, 2.0 * math.sqrt(2.0 / (20 + 50))),
        (init.xavier_normal_, {}, math.sqrt(2.0 / (20 + 50))),
        (init.kaiming_uniform_, {"a": 1.0}, 1.0 / math.sqrt(20)),
        (init.kaiming_normal_, {"nonlinearity": "relu"}, math.sqrt(2.0 / 20)),
        (init.kaiming_normal_, {"mode": "fan_out", "nonlinearity": "tanh"}, 5.0 / 3.0 / math.sqrt(50)),
        (init.uniform_, {"a": -1.0, "b": 2.0}, 3.0 / math.sqrt(12.0)),
        (init.normal_, {"std": 0.3}, 0.3),
    ],
)
def test_deviations(function: Any, options: dict[str, Any], deviation: float) -> None:
    x = T.zeros((25, 10, 2))
    assert function(x, **options, generator=random.Random(1)) is x
    assert x.std().item() == pytest.approx(deviation, rel=0.1)


def test_numbers_are_assigned_in_place() -> None:
    p = nn.Parameter(T.randn((2, 2)))
    assert init.ones_(p).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    init.constant_(p, 0.5)
    init.zeros_(p[0].detach())
    assert p.tolist() == [[0.0, 0.0], [0.5, 0.5]]
    assert p.requires_grad
    with pytest.raises(GradientError):
        init.zeros_(p * 2.0)


def test_gains() -> None:
    assert init.calculate_gain("leaky_relu", 1.0) == 1.0
    assert init.calculate_gain("relu") == math.sqrt(2.0)
    with pytest.raises(ArgumentValueError, match="calculate_gain of 'gelu'; known are leaky_relu, linear"):
        init.calculate_gain("gelu")


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2), (2, 2, 2)])
def test_orthogonal(shape: tuple[int, ...]) -> None:
    random.seed(1)
    x = init.orthogonal_(T.zeros(shape), 2.0).reshape(shape[0], -1)
    products = x @ x.T if x.shape[0] <= x.shape[1] else x.T @ x
    assert T.allclose(products, T.eye(products.shape[0]) * 4.0)
