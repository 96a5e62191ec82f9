"""Reductions along axes.  Order and initial value of each are part of its definition (docs/reference/tensors.md)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..errors import ArgumentError, ArgumentValueError, user_location
from ..ir.bodies import REDUCTIONS
from .apply import reduction
from .dtypes import DType, bool_, float64, int64
from .elementwise import abs, maximum, minimum, where
from .shapes import Shape, axes_from, axis_from, size_of
from .tensor import Tensor, require

#: Reductions that need at least one element.
_NOT_EMPTY = frozenset({"max", "min", "argmax", "argmin"})
#: What gives the same where there is no nan.
_OF_NUMBERS = {"max": "greatest", "min": "least"}


def _reduced(name: str, x: Tensor, axis: Any, keepdims: bool, dtype: DType, may_be_nan: bool = True) -> Tensor:
    x = require(x, name)
    body = REDUCTIONS[_OF_NUMBERS.get(name, name) if not may_be_nan or not x.dtype.is_floating else name]
    axes = axes_from(name, axis, x.ndim)
    if len(axes) > 1 and not body.is_sum:  # what is carried along goes through one axis
        rest = [k for k in range(x.ndim) if k not in axes]
        moved = x.permute_dims((*rest, *axes))
        flat = moved.reshape((*moved.shape[: len(rest)], size_of(moved.shape[len(rest) :])))
        return _kept(_reduced(name, flat, -1, False, dtype, may_be_nan), x.shape, axes, keepdims)
    outer = tuple(extent for k, extent in enumerate(x.shape) if k not in axes)
    inner = tuple(x.shape[k] for k in axes)
    if name in _NOT_EMPTY and 0 in inner:
        raise ArgumentValueError(f"{user_location()}: {name} of shape {x.shape} along axis {axis}: of no elements.")
    strides = x._view.strides
    order = tuple(s for k, s in enumerate(strides) if k not in axes) + tuple(strides[k] for k in axes)
    if not body.is_sum and not inner:
        inner, order = (1,), (*order, 0)
    return _kept(reduction(name, body, [(x, order)], outer, inner, dtype), x.shape, axes, keepdims)


def _kept(made: Tensor, shape: Shape, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    return made.reshape(tuple(1 if k in axes else e for k, e in enumerate(shape))) if keepdims else made


def sum(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """((0.0 + x[0]) + x[1]) + ... along an axis, or several, or all (None), in row-major order; of bools their number.

    Args:
        axis: an int, a tuple of ints, or None.
        keepdims: whether the axes stay, with length 1.
    """
    return _reduced("sum", x, axis, keepdims, int64 if require(x, "sum").dtype is bool_ else x.dtype)


def prod(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """((1.0 * x[0]) * x[1]) * ..."""
    return _reduced("prod", x, axis, keepdims, int64 if require(x, "prod").dtype is bool_ else x.dtype)


def max(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The greatest element; nan if one of them is.

    The gradient goes to the first of several equal ones.  With `dim=`, as in PyTorch, there is its index as well.
    """
    if isinstance(axis, Tensor):
        return maximum(x, axis)
    return _extremes("max", x, axis, keepdims)


def min(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The smallest element; nan if one of them is."""
    if isinstance(axis, Tensor):
        return minimum(x, axis)
    return _extremes("min", x, axis, keepdims)


def _extremes(name: str, x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    """Maxima or minima; those along one axis have `values` and `indices` as well, as in PyTorch."""
    x = require(x, name)
    found = _reduced(name, x, axis, keepdims, x.dtype)
    if isinstance(axis, int):
        found._extremes_of = x, x._memory.version, argmax if name == "max" else argmin, axis, keepdims
    return found


def part_of_extremes(x: Tensor, name: str) -> Tensor | None:
    """The `values` or `indices` of maxima or minima along an axis; None of other tensors."""
    try:
        original, version, find, axis, keepdims = object.__getattribute__(x, "_extremes_of")
    except AttributeError:
        return None
    if name == "indices" and original._memory.version != version:
        raise ArgumentError(
            f"{user_location()}: the indices of elements of a tensor to which something has been assigned since. Write "
            "dim= to have them with the values."
        )
    return x if name == "values" else find(original, axis, keepdims)


class Found(NamedTuple):
    """What PyTorch returns of several elements along an axis: which these are, and where they are."""

    values: Tensor
    indices: Tensor


def max_of_pytorch(input: Any, dim: Any, keepdim: bool = False) -> Found:
    """The greatest elements along an axis, and their indices."""
    return Found(max(input, dim, keepdim), argmax(input, dim, keepdim))


def min_of_pytorch(input: Any, dim: Any, keepdim: bool = False) -> Found:
    """The smallest elements along an axis, and their indices."""
    return Found(min(input, dim, keepdim), argmin(input, dim, keepdim))


def amax(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The greatest element along axes."""
    return max(x, axis, keepdims)


def amin(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The smallest element along axes."""
    return min(x, axis, keepdims)


def any(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether some element is not 0."""
    return _reduced("any", x, axis, keepdims, bool_)


def all(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether no element is 0."""
    return _reduced("all", x, axis, keepdims, bool_)


def argmax(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The index of the greatest element, the first of several, or of the first nan.

    Without an axis, it is that among all in row-major order.
    """
    return _indexed("argmax", x, axis, keepdims)


def argmin(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The index of the smallest element, the first of several, or of the first nan."""
    return _indexed("argmin", x, axis, keepdims)


def _indexed(name: str, x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    x = require(x, name)
    if axis is not None:
        axis = axis_from(name, axis, x.ndim)
    made = _reduced(name, x, axis, keepdims, int64)
    made._memory.limit = x.size if axis is None else x.shape[axis]
    return made


def mean(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
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


def var_of_pytorch(
    input: Any, dim: Any = None, unbiased: bool = True, keepdim: bool = False, correction: float | None = None
) -> Tensor:
    """The variance, divided by n - 1 unless told otherwise."""
    return var(input, dim, correction=unbiased if correction is None else correction, keepdims=keepdim)


def std_of_pytorch(
    input: Any, dim: Any = None, unbiased: bool = True, keepdim: bool = False, correction: float | None = None
) -> Tensor:
    """sqrt(var_of_pytorch(x))"""
    return var_of_pytorch(input, dim, unbiased, keepdim, correction).sqrt()


def norm(x: Tensor, p: Any = 2.0, axis: Any = None, keepdims: bool = False) -> Tensor:
    """sum(abs(x) ** p) ** (1 / p): with p = 2 the length, whose gradient at 0 is 0.

    Args:
        p: a number, infinity for the greatest size, or "fro" for 2.
        axis, keepdims: see `sum`.
    """
    x = _as_floats(require(x, "norm"))
    if p in (2, "fro", None):
        total = sum(x * x, axis, keepdims)
        is_zero = total == 0.0
        return where(is_zero, total, where(is_zero, 1.0, total).sqrt())
    if p == math.inf:
        return max(abs(x), axis, keepdims)
    if p == 0:
        return sum((x != 0.0).astype(x.dtype), axis, keepdims)
    total = sum(abs(x) if p == 1 else abs(x) ** p, axis, keepdims)
    return total if p == 1 else total ** (1.0 / p)


def logsumexp(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """m + log(sum(exp(x - m))), where m is the maximum along the axis, without a gradient of its own."""
    x = require(x, "logsumexp")
    highest = _highest(x, axis)
    found = sum((x - highest).exp(), axis=axis, keepdims=True).log() + highest
    if keepdims:
        return found
    axes = axes_from("logsumexp", axis, x.ndim)
    return found.reshape(tuple(extent for k, extent in enumerate(x.shape) if k not in axes))


def _highest(x: Tensor, axis: Any) -> Tensor:
    """The maximum, to be subtracted; where an element is nan, the sum of what is left is."""
    return _reduced("max", x.detach(), axis, True, x.dtype, may_be_nan=False)


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """exp(x - m) / sum(exp(x - m)), where m is the maximum along the axis, without a gradient of its own."""
    x = require(x, "softmax")
    powers = (x - _highest(x, axis)).exp()
    return powers / sum(powers, axis=axis, keepdims=True)


def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """x - logsumexp(x)"""
    return require(x, "log_softmax") - logsumexp(x, axis=axis, keepdims=True)


def _count(name: str, x: Tensor, axis: Any) -> int:
    return size_of([x.shape[k] for k in axes_from(name, axis, x.ndim)])


def _as_floats(x: Tensor) -> Tensor:
    return x if x.dtype.is_floating else x.astype(float64)
