"""Images of another size: `adaptive_avg_pool1d`, `adaptive_avg_pool2d` and `interpolate`.

Along one axis after the other, each new element is a sum of some old ones times weights that depend on the sizes: means
of windows, the nearest element, or the two nearest ones.  Where windows are equal and do not overlap, they are means of
a view.
"""

from __future__ import annotations

import math
from typing import Any

from ..errors import ArgumentValueError, ShapeError, user_location
from ..tensor import creation, joining, reductions
from ..tensor.products import matmul
from ..tensor.tensor import Tensor, require
from . import checks
from .module import Module


def adaptive_avg_pool1d(x: Tensor, output_size: Any) -> Tensor:
    """The means of so many windows along the last axis; see `adaptive_avg_pool2d`."""
    return _adaptive("adaptive_avg_pool1d", x, output_size, 1)


def adaptive_avg_pool2d(x: Tensor, output_size: Any) -> Tensor:
    """The means of windows that cover an image: window k of n is from floor(k * size / n) to ceil((k + 1) * size / n).

    Args:
        x: (N, C, height, width), or (C, height, width).
        output_size: how many windows along each axis: an int, or two, of which None leaves an axis as it is.
    """
    return _adaptive("adaptive_avg_pool2d", x, output_size, 2)


def _adaptive(name: str, x: Tensor, output_size: Any, axes: int) -> Tensor:
    x = require(x, name)
    if x.ndim not in (axes + 1, axes + 2):
        raise ShapeError(f"{user_location()}: {name} of shape {x.shape}: (N, channels, {axes} axes), or without N.")
    given = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * axes
    extents = x.shape[-axes:]
    counts = checks.pair("output_size", [e if n is None else n for n, e in zip(given, extents)], axes)
    for k, (count, extent) in enumerate(zip(counts, extents)):
        axis = x.ndim - axes + k
        if extent % count == 0:
            apart = x.reshape((*x.shape[:axis], count, extent // count, *x.shape[axis + 1 :]))
            x = reductions.mean(apart, axis=axis + 1)
        else:
            spans = [(j * extent // count, -(-(j + 1) * extent // count)) for j in range(count)]
            x = _weighted(x, axis, [dict.fromkeys(range(start, end), 1.0 / (end - start)) for start, end in spans])
    return x


def interpolate(
    x: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """Images of another size.

    Args:
        x: (N, C, length) or (N, C, height, width).
        size: the new extents, an int or one for each axis; or else
        scale_factor: how many times larger they are.
        mode: "nearest", or "linear" and "bilinear", between the two nearest elements along each axis.
        align_corners: whether the first and the last elements stay where they are.

    Raises:
        ArgumentValueError: there is no such mode, or neither or both of size and scale_factor.
    """
    x = require(x, "interpolate")
    axes = x.ndim - 2
    if axes < 1:
        raise ShapeError(f"{user_location()}: interpolate of shape {x.shape}: (N, channels, axes).")
    if mode not in ("nearest", "linear", "bilinear") or (size is None) == (scale_factor is None):
        raise ArgumentValueError(
            f"{user_location()}: interpolate has the modes 'nearest', 'linear' and 'bilinear', not {mode!r}, and needs "
            "either size= or scale_factor=."
        )
    extents = x.shape[2:]
    if size is None:
        factors = tuple(scale_factor) if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * axes
        size, scales = [math.floor(e * f) for e, f in zip(extents, factors)], [1.0 / f for f in factors]
    else:
        scales = [e / n for e, n in zip(extents, checks.pair("size", size, axes))]
    for k, (count, scale) in enumerate(zip(checks.pair("size", size, axes), scales)):
        if mode == "nearest":
            places = [min(math.floor(j * scale), extents[k] - 1) for j in range(count)]
            x = joining.take(x, places, axis=2 + k)
        else:
            x = _weighted(x, 2 + k, [_between(j, count, extents[k], scale, bool(align_corners)) for j in range(count)])
    return x


def _between(j: int, count: int, extent: int, scale: float, align_corners: bool) -> dict[int, float]:
    """The weights of the two elements around the place of a new one."""
    if align_corners:
        place = j * (extent - 1) / (count - 1) if count > 1 else 0.0
    else:
        place = max((j + 0.5) * scale - 0.5, 0.0)
    low = min(math.floor(place), extent - 1)
    share = place - low
    return {low: 1.0} if low == extent - 1 else {low: 1.0 - share, low + 1: share}


def _weighted(x: Tensor, axis: int, weights: list[dict[int, float]]) -> Tensor:
    """Sums of elements along an axis, each times its weight."""
    rows = [[row.get(i, 0.0) for i in range(x.shape[axis])] for row in weights]
    matrix = creation.asarray(rows, dtype=x.dtype)
    return matmul(x.moveaxis(axis, -1), matrix.mT).moveaxis(-1, axis)


class _Adaptive(Module):
    def __init__(self, output_size: Any) -> None:
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_Adaptive):
    """See `functional.adaptive_avg_pool1d`."""

    def forward(self, x: Tensor) -> Tensor:
        return adaptive_avg_pool1d(x, self.output_size)


class AdaptiveAvgPool2d(_Adaptive):
    """See `functional.adaptive_avg_pool2d`."""

    def forward(self, x: Tensor) -> Tensor:
        return adaptive_avg_pool2d(x, self.output_size)


class Upsample(Module):
    """See `functional.interpolate`."""

    def __init__(
        self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
    ) -> None:
        self.size, self.scale_factor, self.mode, self.align_corners = size, scale_factor, mode, align_corners

    def forward(self, x: Tensor) -> Tensor:
        return interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners)
