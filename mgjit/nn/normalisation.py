"""LayerNorm, RMSNorm and batch norms."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentValueError, ShapeError, user_location
from ..tensor import creation, elementwise, reductions
from ..tensor.dtypes import float32
from ..tensor.modes import no_grad
from ..tensor.tensor import Tensor, require
from . import checks
from .module import Module
from .parameter import Buffer, Parameter


def layer_norm(
    x: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """(x - mean) * (1 / sqrt(var + eps)) * weight + bias, with the mean and the variance of the last axes.

    Args:
        normalized_shape: the extents of these axes. weight, bias: of that shape.

    Raises:
        ShapeError: x ends with other extents.
    """
    x, axes = _last_axes("layer_norm", x, normalized_shape)
    away = x - reductions.mean(x, axis=axes, keepdims=True)
    variance = reductions.mean(away * away, axis=axes, keepdims=True)
    return _scaled(away * _inverse_root(variance, eps), weight, bias)


def rms_norm(x: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """x * (1 / sqrt(mean(x ** 2) + eps)) * weight, with the mean over the last axes.

    Args:
        eps: None for the distance from 1 to the next number of the type of x.
    """
    x, axes = _last_axes("rms_norm", x, normalized_shape)
    least = (2.0**-23 if x.dtype is float32 else 2.0**-52) if eps is None else eps
    square = reductions.mean(x * x, axis=axes, keepdims=True)
    return _scaled(x * _inverse_root(square, least), weight, None)


def group_norm(
    x: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """(x - mean) * (1 / sqrt(var + eps)) * weight + bias, with the mean and the variance of each group of channels.

    Args:
        x: (N, channels, ...). num_groups: the channels are cut into so many. weight, bias: (channels,)

    Raises:
        ShapeError: the channels cannot be cut so.
    """
    x = require(x, "group_norm")
    if x.ndim < 2 or x.shape[1] % num_groups:
        raise ShapeError(f"{user_location()}: group_norm of shape {x.shape} with {num_groups} groups of channels.")
    groups = x.reshape((x.shape[0], num_groups, -1))
    found = layer_norm(groups, groups.shape[-1], eps=eps).reshape(x.shape)
    channels = (x.shape[1], *(1,) * (x.ndim - 2))
    weight, bias = (None if one is None else one.reshape(channels) for one in (weight, bias))
    return _scaled(found, weight, bias)


def batch_norm(
    x: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
    bias: Tensor | None = None, training: bool = False, momentum: Any = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """(x - mean) * (weight / sqrt(var + eps)) + bias, with a mean and a variance for each channel, the second axis.

    In training, mean and variance of x are used, and the running ones are updated:
    `r = (1 - momentum) * r + momentum * new`, with the variance divided by n - 1. In evaluation,
    the running ones are used.

    Args:
        x: (N, channels) or (N, channels, ...). The other tensors: (channels,)

    Raises:
        ShapeError: there is one number for a channel in training, which has no variance; or no channel at all.
    """
    x = require(x, "batch_norm")
    if x.ndim < 2:
        raise ShapeError(f"{user_location()}: batch_norm of shape {x.shape}: (N, channels) or (N, channels, ...).")
    channels = (x.shape[1], *(1,) * (x.ndim - 2))
    if not training and running_mean is not None and running_var is not None:
        mean, variance = running_mean, running_var
        away = x - mean.reshape(channels)
    else:
        axes, count = (0, *range(2, x.ndim)), x.size // max(x.shape[1], 1)
        if count < 2:
            raise ShapeError(
                f"{user_location()}: batch_norm of shape {x.shape} in training: more than one number for each channel "
                "is needed. Use eval() for single ones."
            )
        mean = reductions.mean(x, axis=axes)
        away = x - mean.reshape(channels)
        variance = reductions.mean(away * away, axis=axes)
        if running_mean is not None and running_var is not None:
            _move(running_mean, mean, momentum)
            _move(running_var, variance * (count / (count - 1)), momentum)
    scale = _inverse_root(variance, eps) if weight is None else weight * _inverse_root(variance, eps)
    found = away * scale.reshape(channels)
    return found if bias is None else found + bias.reshape(channels)


def _move(running: Tensor, new: Tensor, momentum: Any) -> None:
    with no_grad():
        running[...] = running * (1.0 - momentum) + new.detach() * momentum


def _inverse_root(x: Tensor, eps: float) -> Tensor:
    return elementwise.reciprocal(elementwise.sqrt(x + eps))


def _scaled(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    found = x if weight is None else x * weight
    return found if bias is None else found + bias


def _last_axes(name: str, x: Any, normalized_shape: Any) -> tuple[Tensor, tuple[int, ...]]:
    x, shape = require(x, name), _shape(normalized_shape)
    if not shape or x.shape[-len(shape) :] != shape:
        raise ShapeError(f"{user_location()}: {name} of shape {x.shape}: the last extents must be {shape}.")
    return x, tuple(range(-len(shape), 0))


def _shape(given: Any) -> tuple[int, ...]:
    parts = given if isinstance(given, (tuple, list)) else (given,)
    return tuple(checks.count("normalized_shape", one) for one in parts)


class LayerNorm(Module):
    """See `functional.layer_norm`.

    Args:
        normalized_shape: the extents of the last axes, an int or several.
        eps: what is added to the variance.
        elementwise_affine: whether there is a weight, and a bias unless `bias` is False.
        dtype: of the parameters.

    Attributes:
        weight, bias: of the shape `normalized_shape`, ones and zeros at first; or None.
    """

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True, *,
        dtype: Any = "float64",
    ) -> None:  # fmt: skip
        self.normalized_shape, self.eps = _shape(normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        self.weight = Parameter(creation.ones(self.normalized_shape, dtype=dtype)) if elementwise_affine else None
        has_bias = elementwise_affine and bias
        self.bias = Parameter(creation.zeros(self.normalized_shape, dtype=dtype)) if has_bias else None

    def forward(self, x: Tensor) -> Tensor:
        return layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class RMSNorm(Module):
    """See `functional.rms_norm`; arguments and attributes as those of `LayerNorm`, without a bias."""

    def __init__(
        self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True, *,
        dtype: Any = "float64",
    ) -> None:  # fmt: skip
        self.normalized_shape, self.eps = _shape(normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        self.weight = Parameter(creation.ones(self.normalized_shape, dtype=dtype)) if elementwise_affine else None

    def forward(self, x: Tensor) -> Tensor:
        return rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class _BatchNorm(Module):
    """What the batch norms have in common."""

    _ranks: tuple[int, ...] = (2, 3)

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, *, dtype: Any = "float64",
    ) -> None:  # fmt: skip
        self.num_features = checks.count("num_features", num_features)
        self.eps, self.momentum, self.affine, self.track_running_stats = eps, momentum, affine, track_running_stats
        if momentum is not None and not 0.0 <= momentum <= 1.0:
            raise ArgumentValueError(f"{user_location()}: momentum is from 0 to 1, or None, not {momentum!r}.")
        self.training = True
        ones, zeros = creation.ones(num_features, dtype=dtype), creation.zeros(num_features, dtype=dtype)
        self.weight = Parameter(ones) if affine else None
        self.bias = Parameter(zeros) if affine else None
        self.running_mean = Buffer(zeros) if track_running_stats else None
        self.running_var = Buffer(ones) if track_running_stats else None
        self.num_batches_tracked = Buffer(creation.zeros((), dtype=dtype)) if track_running_stats else None

    def forward(self, x: Tensor) -> Tensor:
        """x: (N, num_features, ...)."""
        x = require(x, type(self).__name__)
        if x.ndim not in self._ranks or x.shape[1] != self.num_features:
            raise ShapeError(
                f"{user_location()}: {checks.named(self)} of shape {x.shape}: "
                f"{' or '.join(map(str, self._ranks))} axes are needed, and {self.num_features} for the second extent."
            )
        return batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, self.training, self._moved(), self.eps
        )

    def _moved(self) -> Any:
        """How far running statistics move towards new ones."""
        tracked: Tensor | None = self.num_batches_tracked
        if tracked is None or not self.training:
            return self.momentum
        tracked += 1.0
        return 1.0 / tracked if self.momentum is None else self.momentum

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """See `functional.batch_norm`; x has the shape (N, num_features) or (N, num_features, length).

    Args:
        num_features: channels.
        eps: what is added to the variance.
        momentum: how far running statistics move with each batch; None for the mean of all batches.
        affine: whether there are a weight and a bias, ones and zeros at first.
        track_running_stats: whether there are running statistics; otherwise those of x are always used.
        dtype: of the parameters and buffers.

    Attributes:
        weight, bias: (num_features,), or None.
        running_mean, running_var, num_batches_tracked: buffers, or None.
    """


class BatchNorm2d(_BatchNorm):
    """See `BatchNorm1d`; x has the shape (N, num_features, height, width)."""

    _ranks = (4,)


class GroupNorm(Module):
    """See `functional.group_norm`.

    Args:
        num_groups: the channels are cut into so many.
        num_channels: the second extent of x.
        eps: what is added to the variance.
        affine: whether there are a weight and a bias, ones and zeros at first.
        dtype: of the parameters.

    Attributes:
        weight, bias: (num_channels,), or None.
    """

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, *, dtype: Any = "float64"
    ) -> None:
        self.num_groups = checks.count("num_groups", num_groups)
        self.num_channels = checks.count("num_channels", num_channels)
        if num_channels % num_groups:
            raise ArgumentValueError(
                f"{user_location()}: {num_channels} channels cannot be cut into {num_groups} groups."
            )
        self.eps = eps
        self.weight = Parameter(creation.ones(num_channels, dtype=dtype)) if affine else None
        self.bias = Parameter(creation.zeros(num_channels, dtype=dtype)) if affine else None

    def forward(self, x: Tensor) -> Tensor:
        """x: (N, num_channels, ...)."""
        return group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.weight is not None}"
