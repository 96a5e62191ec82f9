"""LayerNorm, RMSNorm, batch norms: running statistics, modes, errors."""

from __future__ import annotations

import math
from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit import tensor as T
from mgjit.errors import ShapeError

pytestmark = pytest.mark.usefixtures("python_loops")


def test_layer_norm_is_over_the_row() -> None:
    found = nn.LayerNorm(2, eps=0.0)(T.asarray([[0.0, 2.0], [100.0, 104.0]]))
    assert found.tolist() == [[-1.0, 1.0], [-1.0, 1.0]]


def test_rms_norm_does_not_subtract_the_mean() -> None:
    root = math.sqrt(12.5)
    assert nn.RMSNorm(2, eps=0.0)(T.asarray([3.0, 4.0])).tolist() == pytest.approx([3.0 / root, 4.0 / root])


def test_running_statistics_move_in_training_only() -> None:
    layer = nn.BatchNorm1d(2, momentum=0.5)
    x = T.asarray([[0.0, 1.0], [2.0, 1.0]])
    layer(x)
    assert layer.running_mean is not None
    assert layer.running_var is not None
    assert layer.running_mean.tolist() == [0.5, 0.5]
    assert layer.running_var.tolist() == [1.5, 0.5]  # 0.5 + 0.5 * 2.0, whose variance is divided by n - 1
    layer.eval()
    layer(x)
    assert layer.running_mean.tolist() == [0.5, 0.5]
    assert list(layer.state_dict()) == ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]


def test_without_momentum_running_statistics_are_means_of_all_batches() -> None:
    layer = nn.BatchNorm1d(1, momentum=None)
    for number in (0.0, 3.0, 6.0):
        layer(T.asarray([[number], [number]]))
    assert layer.running_mean is not None
    assert layer.running_mean.tolist() == pytest.approx([3.0])


def test_a_step_moves_running_statistics_and_sees_the_mode() -> None:
    def run(wrap: Any) -> list[str]:
        layer = nn.BatchNorm2d(2)
        step = wrap(layer.forward)
        found = []
        for k in range(6):
            layer.train(k not in (2, 3))
            x = (T.arange(16.0) * (k + 1)).reshape(2, 2, 2, 2)
            found += [*step(x).tolist_flat(), *layer.running_mean.tolist(), *layer.running_var.tolist()]
        return [number.hex() for number in found]

    compiled = lambda function: mgjit.compile(function, background=False, backend="python")  # noqa: E731
    assert run(compiled) == run(lambda function: function)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nn.LayerNorm((2, 3))(T.ones((3, 2))), r"layer_norm of shape \(3, 2\).*\(2, 3\)"),
        (lambda: nn.RMSNorm(3)(T.ones((3, 2))), r"rms_norm of shape \(3, 2\).*\(3,\)"),
        (lambda: nn.BatchNorm1d(3)(T.ones((3, 2))), r"BatchNorm1d\(3, .*\) of shape \(3, 2\)"),
        (lambda: nn.BatchNorm2d(3)(T.ones((3, 3))), r"BatchNorm2d\(3, .*\) of shape \(3, 3\): 4 axes"),
        (lambda: nn.BatchNorm1d(3)(T.ones((1, 3))), r"batch_norm of shape \(1, 3\) in training: more than one number"),
    ],
)
def test_shape_errors_say_what_does_not_fit(call: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=r"test_normalisation\.py:\d+: " + message):
        call()
