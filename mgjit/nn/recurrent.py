"""RNN, LSTM, GRU, and one step of each as a cell.

What comes in is multiplied for all times at once.  Then each time is two loop nests: a matrix product with the state,
and everything else, whose definition is a single body of scalar operations (below), as written in PyTorch's manual.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple

from ..errors import ArgumentValueError, ShapeError, user_location
from ..ir.bodies import define, sigmoid
from ..tensor import creation
from ..tensor.apply import elementwise
from ..tensor.joining import concat, stack
from ..tensor.products import matmul
from ..tensor.tensor import Tensor, require
from . import checks
from .linear import drawn, dropout, linear
from .module import Module
from .parameter import Parameter

#: What the parts of a sum are called below: x of what comes in, h of the state, b the bias of the latter.
_TANH = define(lambda x, h, b: (x + (h + b)).apply("tanh"))
_RELU = define(lambda x, h, b: (x + (h + b)).apply("relu"))
_LSTM_CELL = define(
    lambda xi, xf, xg, hi, hf, hg, bi, bf, bg, c: (
        sigmoid(xf + (hf + bf)) * c + sigmoid(xi + (hi + bi)) * (xg + (hg + bg)).apply("tanh")
    )
)
_LSTM_STATE = define(lambda xo, ho, bo, c: sigmoid(xo + (ho + bo)) * c.apply("tanh"))


def _gru(xr: Any, xz: Any, xn: Any, hr: Any, hz: Any, hn: Any, br: Any, bz: Any, bn: Any, h: Any) -> Any:
    reset, update = sigmoid(xr + (hr + br)), sigmoid(xz + (hz + bz))
    new = (xn + reset * (hn + bn)).apply("tanh")
    return (1.0 - update) * new + update * h


_GRU = define(_gru)

State = tuple[Tensor, ...]


class _Kind(NamedTuple):
    """One kind of recurrence.

    Attributes:
        gates: how many times the state the products are wide.
        states: how many tensors the state consists of.
        step: (parts of x @ w, parts of h @ w, parts of the bias, state) -> the next state.
    """

    gates: int
    states: int
    step: Callable[[Sequence[Any], Sequence[Any], Sequence[Any], State], State]


def _lstm_step(x: Sequence[Any], h: Sequence[Any], b: Sequence[Any], state: State) -> State:
    cell = elementwise("lstm", _LSTM_CELL, (*x[:3], *h[:3], *b[:3], state[1]))
    return elementwise("lstm", _LSTM_STATE, (x[3], h[3], b[3], cell)), cell


_KINDS = {
    "tanh": _Kind(1, 1, lambda x, h, b, state: (elementwise("rnn", _TANH, (*x, *h, *b)),)),
    "relu": _Kind(1, 1, lambda x, h, b, state: (elementwise("rnn", _RELU, (*x, *h, *b)),)),
    "lstm": _Kind(4, 2, _lstm_step),
    "gru": _Kind(3, 1, lambda x, h, b, state: (elementwise("gru", _GRU, (*x, *h, *b, *state)),)),
}


def _next(kind: _Kind, x: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> State:
    """The state after one time.

    Args:
        x: what comes in, multiplied already: (N, gates * hidden).
    """
    width = state[0].shape[-1]
    h = matmul(state[0], weight.mT)
    parts = [slice(k * width, (k + 1) * width) for k in range(kind.gates)]
    biases = [0.0 if bias is None else bias[part] for part in parts]
    return kind.step([x[..., part] for part in parts], [h[..., part] for part in parts], biases, state)


class _Recurrent(Module):
    """What RNN, LSTM and GRU have in common.

    Attributes:
        weights: the parameters, with the names of PyTorch, such as `weight_ih_l0` or `bias_hh_l1_reverse`.
    """

    _kind = "gru"

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, *, dtype: Any = "float64", generator: Any = random,
    ) -> None:  # fmt: skip
        self.input_size = checks.count("input_size", input_size)
        self.hidden_size = checks.count("hidden_size", hidden_size)
        self.num_layers = checks.count("num_layers", num_layers)
        self.bias, self.batch_first, self.bidirectional = bias, batch_first, bidirectional
        self.dropout = checks.probability("dropout", dropout)
        self.training = True
        bound = 1.0 / math.sqrt(hidden_size)
        wide = _KINDS[self._kind].gates * hidden_size
        self.weights: dict[str, Parameter] = {}
        for layer in range(num_layers):
            width = hidden_size * (1 + bidirectional) if layer else input_size
            for direction in ("", "_reverse")[: 1 + bidirectional]:
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (wide, width), "weight_hh": (wide, hidden_size)}
                shapes.update({"bias_ih": (wide,), "bias_hh": (wide,)} if bias else {})
                for name, shape in shapes.items():
                    self.weights[f"{name}_l{layer}{direction}"] = drawn(shape, bound, dtype, generator)

    def _parts(self) -> Any:
        return [*self.weights.items(), *((name, part) for name, part in super()._parts() if name != "weights")]

    def forward(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """Run through the times.

        Args:
            x: (time, N, input_size); with batch_first (N, time, input_size); or (time, input_size).
            state: (num_layers * directions, N, hidden_size), of an LSTM two of them; None for zeros.

        Returns:
            What the last layer gives at each time, of both directions one after the other; and the last states.

        Raises:
            ShapeError: the shapes are others.
        """
        x = checks.last_extent(x, self.input_size, self)
        if x.ndim not in (2, 3):
            raise ShapeError(
                f"{user_location()}: {checks.named(self)} of shape {x.shape}: two or three axes are needed."
            )
        has_batch = x.ndim == 3
        x = x.expand_dims(1) if not has_batch else x.swapaxes(0, 1) if self.batch_first else x
        if not len(x):
            raise ShapeError(f"{user_location()}: {checks.named(self)} of no times.")
        states = self._states(x, state, has_batch)
        found, last = self._layers(x, states)
        lasts = tuple(stack([one[k] for one in last]) for k in range(len(states[0])))
        if not has_batch:
            found, lasts = found.squeeze(1), tuple(one.squeeze(1) for one in lasts)
        elif self.batch_first:
            found = found.swapaxes(0, 1)
        return found, lasts if len(lasts) > 1 else lasts[0]

    def _layers(self, x: Tensor, states: list[State]) -> tuple[Tensor, list[State]]:
        last: list[State] = []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = dropout(x, self.dropout, self.training)
            outputs = []
            for direction in range(1 + self.bidirectional):
                found, after = self._times(x, states[len(last)], layer, bool(direction))
                outputs.append(found)
                last.append(after)
            x = concat(outputs, axis=-1) if self.bidirectional else outputs[0]
        return x, last

    def _times(self, x: Tensor, state: State, layer: int, backwards: bool) -> tuple[Tensor, State]:
        """One direction of one layer: what it gives at each time, and its last state."""
        end = f"_l{layer}{'_reverse' if backwards else ''}"
        kind, weights = _KINDS[self._kind], self.weights
        wide = linear(x, weights[f"weight_ih{end}"], weights.get(f"bias_ih{end}"))
        found = []
        for time in range(len(x) - 1, -1, -1) if backwards else range(len(x)):
            state = _next(kind, wide[time], state, weights[f"weight_hh{end}"], weights.get(f"bias_hh{end}"))
            found.append(state[0])
        return stack(found[::-1] if backwards else found), state

    def _states(self, x: Tensor, state: Any, has_batch: bool) -> list[State]:
        """The first state of each direction of each layer."""
        kind, count = _KINDS[self._kind], self.num_layers * (1 + self.bidirectional)
        shape = (count, x.shape[1], self.hidden_size)
        if state is None:
            zeros = creation.zeros(shape[1:], dtype=x.dtype)
            return [(zeros,) * kind.states] * count
        given = list(state) if kind.states > 1 else [state]
        if len(given) != kind.states:
            raise ArgumentValueError(
                f"{user_location()}: {checks.named(self)}: the state consists of {kind.states} tensors."
            )
        given = [require(one, type(self).__name__) for one in given]
        given = [one if has_batch else one.expand_dims(1) if one.ndim == 2 else one for one in given]
        if any(one.shape != shape for one in given):
            raise ShapeError(
                f"{user_location()}: {checks.named(self)} of shape {x.shape} (time, N, features) with a state of shape "
                f"{' and '.join(str(one.shape) for one in given)}, not {shape}."
            )
        return [tuple(one[k] for one in given) for k in range(count)]

    def extra_repr(self) -> str:
        usual = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False}
        given = {"num_layers": self.num_layers, "bias": self.bias, "batch_first": self.batch_first,
                 "dropout": self.dropout, "bidirectional": self.bidirectional}  # fmt: skip
        more = "".join(f", {name}={given[name]}" for name in usual if given[name] != usual[name])
        return f"{self.input_size}, {self.hidden_size}{more}"


class GRU(_Recurrent):
    """Gated recurrent units; see `forward` for the shapes.

    Args:
        input_size, hidden_size: of what comes in at each time, and of the state.
        num_layers: each but the first gets what the one before gives.
        bias: whether there are biases.
        batch_first: whether the first axis is that of the batch, and not of time.
        dropout: between layers.
        bidirectional: whether there is another set of weights that runs through the times in reverse.
        dtype: of the parameters.
        generator: what initial weights are drawn by, uniform in [-1, 1) / sqrt(hidden_size).

    Attributes:
        weights: the parameters by name: `weight_ih_l0`, `weight_hh_l0`, `bias_ih_l0`, `bias_hh_l0`, ...
    """


class LSTM(_Recurrent):
    """Long short-term memory, whose state is a pair (h, c); arguments as those of `GRU`."""

    _kind = "lstm"


class RNN(_Recurrent):
    """tanh, or relu, of sums; arguments as those of `GRU`, and nonlinearity, "tanh" or "relu"."""

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", **options: Any
    ) -> None:
        self._kind = _require_nonlinearity(nonlinearity)
        super().__init__(input_size, hidden_size, num_layers, **options)


def _require_nonlinearity(name: str) -> str:
    if name not in ("tanh", "relu"):
        raise ArgumentValueError(f"{user_location()}: nonlinearity is 'tanh' or 'relu', not {name!r}.")
    return name


class _Cell(Module):
    """What the cells have in common."""

    _kind = "gru"

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, *, dtype: Any = "float64", generator: Any = random
    ) -> None:
        self.input_size = checks.count("input_size", input_size)
        self.hidden_size = checks.count("hidden_size", hidden_size)
        bound, wide = 1.0 / math.sqrt(hidden_size), _KINDS[self._kind].gates * hidden_size
        self.weight_ih = drawn((wide, input_size), bound, dtype, generator)
        self.weight_hh = drawn((wide, hidden_size), bound, dtype, generator)
        self.bias_ih = drawn((wide,), bound, dtype, generator) if bias else None
        self.bias_hh = drawn((wide,), bound, dtype, generator) if bias else None

    def forward(self, x: Tensor, state: Any = None) -> Any:
        """One time.

        Args:
            x: (N, input_size), or (input_size,).
            state: (N, hidden_size), of an LSTM two of them; None for zeros.

        Returns:
            The next state.
        """
        x, kind = checks.last_extent(x, self.input_size, self), _KINDS[self._kind]
        shape = (*x.shape[:-1], self.hidden_size)
        if state is None:
            state = (creation.zeros(shape, dtype=x.dtype),) * kind.states
        given = tuple(state) if isinstance(state, (tuple, list)) else (state,)
        if len(given) != kind.states or any(require(one, type(self).__name__).shape != shape for one in given):
            raise ShapeError(
                f"{user_location()}: {checks.named(self)} of shape {x.shape} with a state of shape "
                f"{' and '.join(str(one.shape) for one in given)}, not {' and '.join([str(shape)] * kind.states)}."
            )
        found = _next(kind, linear(x, self.weight_ih, self.bias_ih), given, self.weight_hh, self.bias_hh)
        return found if len(found) > 1 else found[0]

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}{'' if self.bias_ih is not None else ', bias=False'}"


class GRUCell(_Cell):
    """One step of a `GRU`."""


class LSTMCell(_Cell):
    """One step of an `LSTM`: takes and returns a pair (h, c)."""

    _kind = "lstm"


class RNNCell(_Cell):
    """One step of an `RNN`."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", *,
        dtype: Any = "float64", generator: Any = random,
    ) -> None:  # fmt: skip
        self._kind = _require_nonlinearity(nonlinearity)
        super().__init__(input_size, hidden_size, bias, dtype=dtype, generator=generator)
