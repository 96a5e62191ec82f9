"""Reductions along axes.  Order and initial value of each are part of its definition (docs/tensors.md)."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentValueError, user_location
from .apply import reduction
from .bodies import REDUCTIONS
from .dtypes import DType, bool_, float64, int64
from .shapes import Shape, axes_from, axis_from, size_of
from .tensor import Tensor, require

#: Reductions that need at least one element.
_NOT_EMPTY = frozenset({"max", "min", "argmax", "argmin"})


def _reduced(name: str, x: Tensor, axis: Any, keepdims: bool, dtype: DType) -> Tensor:
    x = require(x, name)
    axes = axes_from(name, axis, x.ndim)
    if len(axes) > 1 and not REDUCTIONS[name].is_sum:  # what is carried along goes through one axis
        rest = [k for k in range(x.ndim) if k not in axes]
        moved = x.permute_dims((*rest, *axes))
        flat = moved.reshape((*moved.shape[: len(rest)], size_of(moved.shape[len(rest) :])))
        return _kept(_reduced(name, flat, -1, False, dtype), x.shape, axes, keepdims)
    outer = tuple(extent for k, extent in enumerate(x.shape) if k not in axes)
    inner = tuple(x.shape[k] for k in axes)
    if name in _NOT_EMPTY and 0 in inner:
        raise ArgumentValueError(f"{user_location()}: {name} of shape {x.shape} along axis {axis}: of no elements.")
    strides = x._view.strides
    order = tuple(s for k, s in enumerate(strides) if k not in axes) + tuple(strides[k] for k in axes)
    if not REDUCTIONS[name].is_sum and not inner:
        inner, order = (1,), (*order, 0)
    return _kept(reduction(name, REDUCTIONS[name], [(x, order)], outer, inner, dtype), x.shape, axes, keepdims)


def _kept(made: Tensor, shape: Shape, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    return made.reshape(tuple(1 if k in axes else e for k, e in enumerate(shape))) if keepdims else made


def sum(x: Tensor, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """((0.0 + x[0]) + x[1]) + ... along an axis, or several, or all (None), in row-major order; of bools their number.

    Args:
        axis: an int, a tuple of ints, or None.
        keepdims: whether the axes stay, with length 1.
    """
    return _reduced("sum", x, axis, keepdims, int64 if require(x, "sum").dtype is bool_ else x.dtype)


def prod(x: Tensor, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """((1.0 * x[0]) * x[1]) * ..."""
    return _reduced("prod", x, axis, keepdims, int64 if require(x, "prod").dtype is bool_ else x.dtype)


def max(x: Tensor, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The greatest element, found as by Python's max from -inf on: nan is not greater than anything.

    The gradient goes to the first of several equal ones.
    """
    return _reduced("max", x, axis, keepdims, require(x, "max").dtype)


def min(x: Tensor, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The smallest element, found as by Python's min from inf on."""
    return _reduced("min", x, axis, keepdims, require(x, "min").dtype)


def any(x: Tensor, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Whether some element is not 0."""
    return _reduced("any", x, axis, keepdims, bool_)


def all(x: Tensor, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Whether no element is 0."""
    return _reduced("all", x, axis, keepdims, bool_)


def argmax(x: Tensor, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The index of the greatest element, the first of several; without an axis, among all in row-major order."""
    return _indexed("argmax", x, axis, keepdims)


def argmin(x: Tensor, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The index of the smallest element, the first of several."""
    return _indexed("argmin", x, axis, keepdims)


def _indexed(name: str, x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    x = require(x, name)
    if axis is not None:
        axis = axis_from(name, axis, x.ndim)
    made = _reduced(name, x, axis, keepdims, int64)
    made._memory.limit = x.size if axis is None else x.shape[axis]
    return made


def mean(x: Tensor, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """sum(x) / n"""
    x = require(x, "mean")
    return _as_floats(sum(x, axis=axis, keepdims=keepdims)) / _count("mean", x, axis)


def var(x: Tensor, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """sum((x - mean(x)) ** 2) / (n - correction); PyTorch's default correction is 1."""
    x = _as_floats(require(x, "var"))
    away = x - mean(x, axis=axis, keepdims=True)
    return sum(away * away, axis=axis, keepdims=keepdims) / (_count("var", x, axis) - correction)


def std(x: Tensor, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """sqrt(var(x))"""
    return var(x, axis=axis, correction=correction, keepdims=keepdims).sqrt()


def logsumexp(x: Tensor, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """m + log(sum(exp(x - m))), where m is the maximum along the axis, without a gradient of its own."""
    x = require(x, "logsumexp")
    highest = max(x.detach(), axis=axis, keepdims=True)
    found = sum((x - highest).exp(), axis=axis, keepdims=True).log() + highest
    if keepdims:
        return found
    axes = axes_from("logsumexp", axis, x.ndim)
    return found.reshape(tuple(extent for k, extent in enumerate(x.shape) if k not in axes))


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """exp(x - m) / sum(exp(x - m)), where m is the maximum along the axis, without a gradient of its own."""
    x = require(x, "softmax")
    powers = (x - max(x.detach(), axis=axis, keepdims=True)).exp()
    return powers / sum(powers, axis=axis, keepdims=True)


def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """x - logsumexp(x)"""
    return require(x, "log_softmax") - logsumexp(x, axis=axis, keepdims=True)


def _count(name: str, x: Tensor, axis: Any) -> int:
    return size_of([x.shape[k] for k in axes_from(name, axis, x.ndim)])


def _as_floats(x: Tensor) -> Tensor:
    return x if x.dtype.is_floating else x.astype(float64)
