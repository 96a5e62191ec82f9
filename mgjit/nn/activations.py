"""Activations as modules, and those functions that tensors have not as methods."""

from __future__ import annotations

from typing import Any

from ..tensor import elementwise, reductions
from ..tensor.tensor import Tensor, require
from .module import Module


def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x above 0, alpha * (exp(x) - 1) below."""
    x = require(x, "elu")
    below = elementwise.exp(elementwise.minimum(x, 0.0)) - 1.0
    return elementwise.where(x > 0.0, x, below * alpha)


def hardtanh(x: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """x, not below `min_val` and not above `max_val`."""
    return elementwise.clip(require(x, "hardtanh"), min_val, max_val)


def relu6(x: Tensor) -> Tensor:
    """x, not below 0 and not above 6."""
    return hardtanh(x, 0.0, 6.0)


def logsigmoid(x: Tensor) -> Tensor:
    """log(sigmoid(x)) = -softplus(-x)"""
    return -elementwise.softplus(-require(x, "logsigmoid"))


def mish(x: Tensor) -> Tensor:
    """x * tanh(softplus(x))"""
    return require(x, "mish") * elementwise.softplus(x).tanh()


class Identity(Module):
    """x itself."""

    def __init__(self, *given: Any, **named: Any) -> None:
        """Whatever it is given makes no difference."""

    def forward(self, x: Any) -> Any:
        return x


class _Activation(Module):
    """A function as a module.

    Args:
        inplace: makes no difference: what is not needed any more takes no memory in a compiled step.
    """

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace


class ReLU(_Activation):
    """max(0, x)"""

    def forward(self, x: Tensor) -> Tensor:
        return elementwise.relu(x)


class ReLU6(_Activation):
    """x, not below 0 and not above 6."""

    def forward(self, x: Tensor) -> Tensor:
        return relu6(x)


class LeakyReLU(Module):
    """x, times the slope below 0."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        self.negative_slope = negative_slope

    def forward(self, x: Tensor) -> Tensor:
        return elementwise.leaky_relu(x, self.negative_slope)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}"


class ELU(Module):
    """x above 0, alpha * (exp(x) - 1) below."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self.alpha = alpha

    def forward(self, x: Tensor) -> Tensor:
        return elu(x, self.alpha)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}"


class Hardtanh(Module):
    """x, not below `min_val` and not above `max_val`."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        self.min_val, self.max_val = min_val, max_val

    def forward(self, x: Tensor) -> Tensor:
        return hardtanh(x, self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"


class Sigmoid(Module):
    """1 / (1 + exp(-x))"""

    def forward(self, x: Tensor) -> Tensor:
        return elementwise.sigmoid(x)


class LogSigmoid(Module):
    """log(sigmoid(x))"""

    def forward(self, x: Tensor) -> Tensor:
        return logsigmoid(x)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, x: Tensor) -> Tensor:
        return elementwise.tanh(x)


class GELU(Module):
    """x/2 * (1 + erf(x / sqrt(2))); with `approximate="tanh"` that of `mgjit.tensor.gelu`."""

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        return elementwise.gelu(x, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class SiLU(_Activation):
    """x * sigmoid(x)"""

    def forward(self, x: Tensor) -> Tensor:
        return elementwise.silu(x)


class Mish(_Activation):
    """x * tanh(softplus(x))"""

    def forward(self, x: Tensor) -> Tensor:
        return mish(x)


class Softplus(Module):
    """log(1 + exp(x))"""

    def forward(self, x: Tensor) -> Tensor:
        return elementwise.softplus(x)


class Softmax(Module):
    """exp(x) / sum(exp(x)) along an axis."""

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        return reductions.softmax(x, axis=self.axis)

    def extra_repr(self) -> str:
        return f"axis={self.axis}"


class LogSoftmax(Softmax):
    """x - log(sum(exp(x))) along an axis."""

    def forward(self, x: Tensor) -> Tensor:
        return reductions.log_softmax(x, axis=self.axis)
