"""Attention: masks, shapes, errors."""

from __future__ import annotations

from typing import Any

import pytest

from mgjit import nn
from mgjit import tensor as T
from mgjit.errors import ArgumentValueError, ShapeError
from mgjit.nn import functional as F

pytestmark = pytest.mark.usefixtures("python_loops")


def test_softmax_is_that_of_each_row() -> None:
    q = T.asarray([[0.0], [1000.0]])
    found = F.scaled_dot_product_attention(q, T.asarray([[0.0], [1.0]]), T.asarray([[1.0], [3.0]]))
    assert found.tolist() == [[2.0], [3.0]]


def test_a_causal_mask_hides_what_comes_later() -> None:
    layer, x = nn.MultiheadAttention(4, 2, batch_first=True), T.randn((1, 3, 4))
    y = T.concat([x[:, :2], T.randn((1, 1, 4))], axis=1)
    found, weights = layer(x, x, x, is_causal=True)
    other, _ = layer(y, y, y, is_causal=True)
    assert found[:, :2].tolist() == other[:, :2].tolist()
    assert found[:, 2].tolist() != other[:, 2].tolist()
    mask = T.arange(3).expand_dims(1) < T.arange(3)
    same, _ = layer(x, x, x, attn_mask=mask)
    assert same.tolist() == found.tolist()
    assert weights.shape == (1, 3, 3)
    assert weights[0, 0].tolist() == [1.0, 0.0, 0.0]


def test_padding_is_not_looked_at() -> None:
    layer, x = nn.MultiheadAttention(4, 1), T.randn((3, 2, 4))
    padding = T.asarray([[False, False, True], [False, False, False]])
    _, weights = layer(x, x, x, key_padding_mask=padding, average_attn_weights=False)
    assert weights.shape == (2, 1, 3, 3)
    assert weights[0, 0, :, 2].tolist() == [0.0, 0.0, 0.0]
    assert layer(x, x, x, need_weights=False)[1] is None


def test_without_a_batch_the_numbers_are_the_same() -> None:
    layer, x = nn.MultiheadAttention(4, 2), T.randn((3, 2, 4))
    assert layer(x[:, 0], x[:, 0], x[:, 0])[0].tolist() == layer(x, x, x)[0][:, 0].tolist()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: nn.MultiheadAttention(4, 3), ArgumentValueError, "4 features cannot be cut into 3 heads"),
        (
            lambda x: nn.MultiheadAttention(2, 1)(x, x, x),
            ShapeError,
            r"MultiheadAttention\(2, 1\) of shape \(3, 2, 4\)",
        ),
        (lambda x: nn.MultiheadAttention(4, 1)(x, x, x[:2]), ShapeError, r"\(3, 2, 4\), \(3, 2, 4\), \(2, 2, 4\)"),
        (lambda x: F.scaled_dot_product_attention(x, x[..., :2], x), ShapeError, r"\(3, 2, 4\), \(3, 2, 2\)"),
    ],
)
def test_errors_name_the_layer_and_the_shapes(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=r"test_attention\.py:\d+: .*" + message):
        call(T.ones((3, 2, 4)))
