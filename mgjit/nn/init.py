"""Initial weights: functions that assign to a tensor in place, and return it.

Random numbers are drawn in row-major order from the module `random`, or from `generator=`.
"""

from __future__ import annotations

import math
import operator
import random
from typing import Any

from ..errors import ArgumentValueError, ShapeError, user_location
from ..tensor import creation
from ..tensor.modes import no_grad
from ..tensor.shapes import size_of
from ..tensor.tensor import Tensor

_GAINS = {
    "linear": 1.0, "identity": 1.0, "conv1d": 1.0, "conv2d": 1.0, "sigmoid": 1.0, "tanh": 5.0 / 3.0,
    "relu": math.sqrt(2.0), "selu": 0.75,
}  # fmt: skip


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """How much larger weights are in front of a nonlinearity, so that the variance stays.

    Args:
        nonlinearity: linear, conv1d, conv2d, sigmoid, tanh, relu, selu or leaky_relu.
        param: the negative slope of leaky_relu, otherwise 0.01.

    Raises:
        ArgumentValueError: it is none of these.
    """
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1.0 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in _GAINS:
        raise ArgumentValueError(
            f"{user_location()}: calculate_gain of {nonlinearity!r}; known are leaky_relu, {', '.join(_GAINS)}."
        )
    return _GAINS[nonlinearity]


def fans(tensor: Tensor) -> tuple[int, int]:
    """How many inputs one output depends on, and how many outputs one input has an effect on: fan_in and fan_out.

    A weight has the shape (outputs, inputs, *window), as those of Linear and of convolutions.

    Raises:
        ShapeError: there are fewer than two axes.
    """
    if tensor.ndim < 2:
        raise ShapeError(f"{user_location()}: fan_in and fan_out of shape {tensor.shape}: two axes are needed.")
    window = size_of(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, *, generator: Any = random) -> Tensor:
    """Uniform in [a, b)."""
    return _assigned(tensor, creation.uniform(tensor.shape, a, b, dtype=tensor.dtype, generator=generator))


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = random) -> Tensor:
    """Normally distributed."""
    return _assigned(tensor, creation.randn(tensor.shape, dtype=tensor.dtype, generator=generator) * std + mean)


def constant_(tensor: Tensor, value: float) -> Tensor:
    """One number everywhere."""
    return _assigned(tensor, value)


def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    return _assigned(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros."""
    return _assigned(tensor, 0.0)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, *, generator: Any = random) -> Tensor:
    """Uniform with the variance gain**2 * 2 / (fan_in + fan_out) (Glorot and Bengio, 2010)."""
    bound = gain * math.sqrt(6.0 / sum(fans(tensor)))
    return uniform_(tensor, -bound, bound, generator=generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, *, generator: Any = random) -> Tensor:
    """Normal with the variance gain**2 * 2 / (fan_in + fan_out) (Glorot and Bengio, 2010)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(fans(tensor))), generator=generator)


def kaiming_uniform_(
    tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", *, generator: Any = random
) -> Tensor:
    """Uniform with the variance gain**2 / fan (He et al., 2015).

    Args:
        a: the negative slope of leaky_relu.
        mode: fan_in keeps the variance of the forward pass, fan_out that of the backward pass.
        nonlinearity: see `calculate_gain`.
    """
    bound = math.sqrt(3.0) * _kaiming_deviation(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator=generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", *, generator: Any = random
) -> Tensor:
    """Normal with the variance gain**2 / fan (He et al., 2015); arguments as those of `kaiming_uniform_`."""
    return normal_(tensor, 0.0, _kaiming_deviation(tensor, a, mode, nonlinearity), generator=generator)


def orthogonal_(tensor: Tensor, gain: float = 1.0, *, generator: Any = random) -> Tensor:
    """Columns, or rows where there are fewer of them, that are orthogonal to each other (Saxe et al., 2013).

    The rest of normally distributed numbers, when their parts along those before have been taken away, twice.
    """
    rows, columns = tensor.shape[0], size_of(tensor.shape[1:])
    drawn = creation.randn((rows, columns), generator=generator)
    found: list[list[float]] = []
    for vector in (drawn.T if rows >= columns else drawn).tolist():
        rest = vector
        for other in found * 2:
            part = sum(map(operator.mul, rest, other))
            rest = [x - part * y for x, y in zip(rest, other)]
        length = math.sqrt(sum(x * x for x in rest))
        found.append([x / length for x in rest])
    made = creation.asarray(found, dtype=tensor.dtype)
    return _assigned(tensor, ((made.T if rows >= columns else made) * gain).reshape(tensor.shape))


def _kaiming_deviation(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        raise ArgumentValueError(f"{user_location()}: mode is 'fan_in' or 'fan_out', not {mode!r}.")
    fan = fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan) if fan else 0.0


def _assigned(tensor: Tensor, value: Any) -> Tensor:
    with no_grad():
        tensor[...] = value
    return tensor
