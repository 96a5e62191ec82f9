"""Convolution and pooling: against sums written out, known mistakes, errors."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from mgjit import nn
from mgjit import tensor as T
from mgjit.errors import ArgumentValueError, ShapeError
from mgjit.nn import functional as F

pytestmark = pytest.mark.usefixtures("python_loops")


def test_conv2d_is_the_sum_of_its_definition() -> None:
    x, w = T.randn((2, 4, 6, 5)), T.randn((4, 2, 2, 3))
    found = F.conv2d(x, w, stride=(2, 1), padding=(1, 0), dilation=(2, 1), groups=2)
    assert found.shape == (2, 4, 3, 3)

    def element(n: int, c: int, i: int, j: int) -> float:
        return x[n, c, i, j].item() if 0 <= i < 6 and 0 <= j < 5 else 0.0  # type: ignore[no-any-return]

    for n, o, i, j in itertools.product(range(2), range(4), range(3), range(3)):
        total = 0.0
        for c, a, b in itertools.product(range(2), range(2), range(3)):
            total = total + element(n, o // 2 * 2 + c, 2 * i + 2 * a - 1, j + b) * w[o, c, a, b].item()
        assert found[n, o, i, j].item() == total


def test_gradients_add_up_where_windows_overlap() -> None:
    x = T.zeros((1, 1, 4), requires_grad=True)
    F.conv1d(x, T.ones((1, 1, 2))).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[[1.0, 2.0, 2.0, 1.0]]]
    y = T.asarray([[[0.0, 3.0, 1.0, 2.0]]], requires_grad=True)
    F.max_pool1d(y, 2, 1).sum().backward()
    assert y.grad is not None
    assert y.grad.tolist() == [[[0.0, 2.0, 0.0, 1.0]]]


def test_same_padding_keeps_the_extents() -> None:
    assert nn.Conv1d(1, 1, 4, padding="same", dilation=2)(T.ones((1, 1, 9))).shape == (1, 1, 9)
    with pytest.raises(ArgumentValueError, match="stride of 1"):
        nn.Conv1d(1, 1, 3, padding="same", stride=2)(T.ones((1, 1, 9)))


def test_the_first_of_several_equal_elements_is_the_greatest() -> None:
    for size in (2, 7):
        x = T.ones((1, 1, size, size), requires_grad=True)
        F.max_pool2d(x, size).sum().backward()
        assert x.grad is not None
        assert x.grad.tolist_flat() == [1.0] + [0.0] * (size * size - 1)


def test_pooling_cuts_what_is_left() -> None:
    x = T.arange(10.0).reshape(1, 2, 5)
    assert F.max_pool1d(x, 2).tolist() == [[[1.0, 3.0], [6.0, 8.0]]]
    assert F.avg_pool1d(x, 2).tolist() == [[[0.5, 2.5], [5.5, 7.5]]]
    assert F.avg_pool2d(x, (2, 5)).tolist() == [[[4.5]]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: nn.Conv2d(3, 8, 3)(x[:]), r"Conv2d\(3, 8, kernel_size=\(3, 3\), stride=1\) of shape \(2, 1, 5, 5\)"),
        (lambda x: nn.Conv2d(1, 8, 7)(x[:]), r"conv2d of shape \(2, 1, 5, 5\).*no window of 7 x 7 fits"),
        (lambda x: F.conv2d(x, T.ones((2, 2, 3, 3))), r"conv2d of shape \(2, 1, 5, 5\) with a weight .*\(2, 2, 3, 3\)"),
        (lambda x: F.conv2d(x, T.ones((2, 1, 3, 3)), T.ones(3)), r"conv2d with 2 outputs and a bias of shape \(3,\)"),
        (lambda x: F.max_pool2d(x, 6), r"max_pool2d of shape \(2, 1, 5, 5\)"),
        (lambda x: F.avg_pool1d(x, 2), r"avg_pool1d of shape \(2, 1, 5, 5\)"),
    ],
)
def test_shape_errors_say_what_does_not_fit(call: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=r"test_convolution\.py:\d+: " + message):
        call(T.ones((2, 1, 5, 5)))
