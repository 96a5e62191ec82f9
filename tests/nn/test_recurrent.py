"""RNN, LSTM, GRU: shapes, cells, states, directions, errors."""

from __future__ import annotations

from typing import Any

import pytest

from mgjit import nn
from mgjit import tensor as T
from mgjit.errors import ArgumentValueError, ShapeError

pytestmark = pytest.mark.usefixtures("python_loops")


@pytest.mark.parametrize(("layer", "cell"), [(nn.GRU, nn.GRUCell), (nn.LSTM, nn.LSTMCell), (nn.RNN, nn.RNNCell)])
def test_a_layer_is_its_cell_time_after_time(layer: Any, cell: Any) -> None:
    whole, one = layer(3, 2), cell(3, 2)
    one.load_state_dict({name[: -len("_l0")]: x for name, x in whole.state_dict().items()})
    x = T.randn((4, 2, 3))
    found, last = whole(x)
    state = None
    for time in range(4):
        state = one(x[time], state)
        assert (state[0] if layer is nn.LSTM else state).tolist() == found[time].tolist()
    for a, b in zip(state if layer is nn.LSTM else [state], last if layer is nn.LSTM else [last]):  # type: ignore[arg-type]
        assert b.tolist() == [a.tolist()]


def test_a_state_goes_on() -> None:
    layer, x = nn.LSTM(3, 2, num_layers=2), T.randn((5, 2, 3))
    first, state = layer(x[:2])
    second, last = layer(x[2:], state)
    found, whole = layer(x)
    assert T.concat([first, second]).tolist() == found.tolist()
    assert [one.tolist() for one in last] == [one.tolist() for one in whole]


def test_directions_lie_side_by_side() -> None:
    layer, x = nn.GRU(3, 2, bidirectional=True), T.randn((4, 1, 3))
    found, last = layer(x)
    assert (found.shape, last.shape) == ((4, 1, 4), (2, 1, 2))
    assert found[-1, :, :2].tolist() == last[0].tolist()
    assert found[0, :, 2:].tolist() == last[1].tolist()


def test_batch_first_and_no_batch() -> None:
    layer = nn.RNN(3, 2, batch_first=True)
    x = T.randn((2, 4, 3))
    found, last = layer(x)
    assert (found.shape, last.shape) == ((2, 4, 2), (1, 2, 2))
    alone, own = layer(x[1])
    assert alone.tolist() == found[1].tolist()
    assert own.tolist() == [last[0, 1].tolist()]


def test_parameters_have_the_names_of_pytorch() -> None:
    layer = nn.LSTM(3, 2, 2, bidirectional=True)
    names = [name for name, _ in layer.named_parameters()]
    assert names[:5] == ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_ih_l0_reverse"]
    assert layer.weights["weight_ih_l1"].shape == (8, 4)
    assert repr(layer) == "LSTM(3, 2, num_layers=2, bidirectional=True)"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: nn.GRU(3, 2)(T.ones((4, 1, 2))), ShapeError, r"GRU\(3, 2\) of shape \(4, 1, 2\).*must be 3"),
        (lambda: nn.GRU(3, 2)(T.ones((4, 1, 3)), T.ones((1, 2, 2))), ShapeError, r"\(1, 2, 2\), not \(1, 1, 2\)"),
        (lambda: nn.LSTM(3, 2)(T.ones((4, 1, 3)), T.ones((1, 1, 2))), ArgumentValueError, "consists of 2 tensors"),
        (lambda: nn.GRUCell(3, 2)(T.ones((1, 3)), T.ones((2, 2))), ShapeError, r"GRUCell\(3, 2\) of shape \(1, 3\)"),
        (lambda: nn.RNN(3, 2, nonlinearity="x"), ArgumentValueError, "'tanh' or 'relu', not 'x'"),
    ],
)
def test_errors_name_the_layer_and_the_shapes(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=r"test_recurrent\.py:\d+: .*" + message):
        call()
