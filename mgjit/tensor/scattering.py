"""Elements of a copy that whole numbers choose, replaced or added to: `scatter`, `scatter_add`, `index_add`.

Each is a copy of the tensor, and one nest whose target the indices choose.  Gradients flow to what is replaced or
added, and to the elements of the tensor that stay.
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError, ShapeError, user_location
from .apply import access, perform
from .creation import arange, asarray, full, zeros_like
from .dtypes import bool_, int64
from .elementwise import where
from .indexing import TAKE
from .joining import gather, require_in_range
from .nests import Access, Chosen, Nest
from .shapes import axis_from
from .tensor import Tensor, require


def scatter(x: Tensor, axis: int, indices: Tensor, src: Any = None, value: Any = None) -> Tensor:
    """A copy, with elements replaced that whole numbers choose along an axis.

    Args:
        indices: int64; no more of them along the other axes than x has elements.
        src: a tensor, whose first elements these are, or a number (`value` as well); the last one of several stays.

    Raises:
        ShapeError: the shapes do not go together. IndexRangeError, TraceError: see `take`.
    """
    x, source = require(x, "scatter"), src if value is None else value
    k = _checked("scatter", x, axis, indices, source)
    chosen = _written(full(x.shape, False, dtype=bool_), k, indices, True)
    if isinstance(source, Tensor):
        source = _written(zeros_like(x), k, indices, _last_ones(x, k, indices, source))
    return where(chosen, source, x)


def _last_ones(x: Tensor, k: int, indices: Tensor, source: Tensor) -> Tensor:
    """What is written; gradients flow to those that stay."""
    source = source[tuple(map(slice, indices.shape))]
    if not source.requires_grad:
        return source
    numbers = arange(indices.size).reshape(indices.shape)
    last = _written(full(x.shape, 0, dtype=int64), k, indices, numbers)
    return where(gather(last, k, indices) == numbers, source, source.detach())


def scatter_add(x: Tensor, axis: int, indices: Tensor, src: Any) -> Tensor:
    """A copy, with numbers added to elements that whole numbers choose along an axis; arguments as of `scatter`."""
    x = require(x, "scatter_add")
    k = _checked("scatter_add", x, axis, indices, src)
    return _written(x.copy(), k, indices, src, adds=True)


def index_add(x: Tensor, axis: int, indices: Any, source: Tensor, alpha: Any = 1) -> Tensor:
    """A copy, to whose rows along an axis other rows are added, times alpha.

    Args:
        indices: for each row of the source, the one that it is added to.
    """
    x, source = require(x, "index_add"), require(source, "index_add")
    k = axis_from("index_add", axis, x.ndim)
    chosen = indices if isinstance(indices, Tensor) else asarray(indices, dtype=int64)
    wanted = (*x.shape[:k], *chosen.shape, *x.shape[k + 1 :])
    if chosen.ndim != 1 or source.shape != wanted:
        raise ShapeError(
            f"{user_location()}: index_add of shape {x.shape} with {chosen.shape} indices and a source of shape "
            f"{source.shape}, not {wanted}."
        )
    wide = chosen.reshape((-1, *(1,) * (x.ndim - k - 1))).broadcast_to(wanted)
    return _written(x.copy(), k, wide, source if alpha == 1 else source * alpha, adds=True)


def _checked(name: str, x: Tensor, axis: int, indices: Any, source: Any) -> int:
    k = axis_from(name, axis, x.ndim)
    shape = require(indices, name).shape
    if (
        len(shape) != x.ndim
        or any(a > b for j, (a, b) in enumerate(zip(shape, x.shape)) if j != k)
        or (isinstance(source, Tensor) and (source.ndim != x.ndim or any(a > b for a, b in zip(shape, source.shape))))
    ):
        others = f" from shape {source.shape}" if isinstance(source, Tensor) else ""
        raise ShapeError(
            f"{user_location()}: {name} of shape {x.shape} by indices of shape {shape}{others}: as many axes, and no "
            f"more indices along those other than {axis}, or than there are sources."
        )
    return k


def _written(target: Tensor, k: int, indices: Tensor, source: Any, adds: bool = False) -> Tensor:
    """A new tensor, after elements of it have been written that indices choose along axis k."""
    if indices.dtype is not int64:
        raise ArgumentError(f"{user_location()}: scatter needs indices of type int64, not {indices.dtype}.")
    require_in_range("scatter", indices, target.shape[k])
    shape, strides = indices.shape, target.strides
    reading = access("scatter", source, source.strides if isinstance(source, Tensor) else None, shape,
                     target.dtype.is_floating)  # fmt: skip
    choosing = access("scatter", indices, indices.strides, shape, False)
    place = Access(target._memory, target._view.offset, (*strides[:k], 0, *strides[k + 1 :]),
                   chosen=Chosen(1, strides[k], target.shape[k]))  # fmt: skip
    perform(Nest("scatter", TAKE, shape, (), (reading, choosing), place, adds))
    return target
