"""Linear, Embedding, Dropout, Flatten: shapes, rows, draws, errors."""

from __future__ import annotations

import random
from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit import tensor as T
from mgjit.errors import ArgumentError, ArgumentValueError, IndexRangeError, ShapeError
from mgjit.nn import functional as F

pytestmark = pytest.mark.usefixtures("python_loops")


def test_linear_multiplies_by_the_transposed_weight() -> None:
    layer = nn.Linear(2, 1)
    layer.load_state_dict({"weight": [[2.0, 3.0]], "bias": [0.5]})
    assert layer(T.asarray([[1.0, 10.0], [0.0, 1.0]])).tolist() == [[32.5], [3.5]]


def test_initial_weights_come_from_the_generator() -> None:
    random.seed(3)
    first = nn.Linear(4, 2).weight.tolist()
    assert nn.Linear(4, 2, generator=random.Random(3)).weight.tolist() == first
    assert max(map(abs, first[0] + first[1])) <= 0.5


def test_an_embedding_is_applied_once() -> None:
    layer = nn.Embedding(4, 2)
    layer.load_state_dict({"weight": [[0.0, 1.0], [2.0, 3.0], [1.0, 0.0], [3.0, 2.0]]})
    found = layer(T.asarray([2, 0]))
    assert found.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    found.sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0], [0.0, 0.0]]
    with pytest.raises(
        ArgumentError, match=r"test_linear\.py:\d+: Embedding\(4, 2\) takes indices of type int64.*float64"
    ):
        layer(found)


def test_the_row_of_padding_is_zero_and_stays() -> None:
    layer = nn.Embedding(3, 2, padding_idx=-1)
    assert layer.weight.tolist()[2] == [0.0, 0.0]
    layer(T.asarray([[0, 2], [2, 1]])).sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.tolist() == [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]


@pytest.mark.parametrize("indices", [[0, 3], [-1, 0]])
def test_an_index_out_of_range_is_refused(indices: list[int]) -> None:
    layer = nn.Embedding(3, 2)
    with pytest.raises(IndexRangeError, match="not in range"):
        layer(T.asarray(indices))
    step = mgjit.compile(lambda x: layer(x).sum(), background=False, backend="python")
    step(T.asarray([0, 1]))
    with pytest.raises(IndexRangeError):
        step(T.asarray(indices))


def test_indices_that_a_step_cuts_and_reshapes_are_checked() -> None:
    layer = nn.Embedding(3, 2)
    step = mgjit.compile(lambda x: layer(x[:, :-1].reshape(-1)).sum(), background=False, backend="python")
    x = T.asarray([[0, 1, 9], [2, 1, 9]])
    assert step(x).item() == layer(x[:, :-1].reshape(-1)).sum().item()
    with pytest.raises(IndexRangeError):
        step(T.asarray([[0, 3, 9], [2, 1, 9]]))


def test_dropout_draws_for_each_element_and_keeps_the_mean() -> None:
    layer, x = nn.Dropout(0.25, generator=random.Random(5)), T.ones((4, 5))
    draw = random.Random(5)
    assert layer(x).tolist_flat() == [0.0 if draw.random() < 0.25 else 1.0 / 0.75 for _ in range(20)]
    assert layer.eval()(x) is x
    assert F.dropout(x, 1.0).tolist_flat() == [0.0] * 20
    with pytest.raises(ArgumentValueError, match="p must be a number from 0 to 1, not 2"):
        nn.Dropout(2)


def test_dropout_in_a_step_draws_at_each_call() -> None:
    layer, x = nn.Dropout(0.5, generator=random.Random(1)), T.ones(30)
    other = nn.Dropout(0.5, generator=random.Random(1))
    step = mgjit.compile(lambda x: other(x), background=False, backend="python")  # noqa: PLW0108
    assert [step(x).tolist() for _ in range(3)] == [layer(x).tolist() for _ in range(3)]


def test_flatten_keeps_the_batch() -> None:
    x = T.ones((2, 3, 4))
    assert [nn.Flatten()(x).shape, nn.Flatten(0, 1)(x).shape, nn.Flatten(-2)(x).shape] == [(2, 12), (6, 4), (2, 12)]


@pytest.mark.parametrize("shape", [(2, 4), ()])
def test_shape_errors_name_the_layer_both_shapes_and_the_line(shape: Any) -> None:
    with pytest.raises(ShapeError) as caught:
        nn.Linear(3, 2)(T.ones(shape))
    text = "Linear(in_features=3, out_features=2, bias=True) of shape " + str(shape)
    assert text in str(caught.value)
    assert "test_linear.py:" in str(caught.value)
    assert "must be 3" in str(caught.value)


def test_a_shape_error_in_a_step_names_the_line_too() -> None:
    layer = nn.Linear(3, 2)

    @mgjit.compile
    def step(x: Any) -> Any:
        return layer(x)

    with pytest.raises(ShapeError, match=r"test_linear\.py:\d+: Linear\(in_features=3"):
        step(T.ones((2, 4)))
