"""Tensors from pieces of others: concat, stack, split, pad, take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ArgumentError, ArgumentValueError, IndexRangeError, ShapeError, user_location
from .apply import access, copy_into, fresh, is_number, perform, recording
from .creation import arange, asarray, is_array
from .dtypes import bool_, common, int64
from .elementwise import where
from .indexing import TAKE
from .nests import Access, Chosen, Nest
from .shapes import View, along, axis_from, row_major, shape_from, size_of
from .tensor import Tensor, require


def concat(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors one after the other along an axis (`cat` in PyTorch).

    Raises:
        ShapeError: their other extents differ.
    """
    parts = [require(one, "concat") for one in tensors]
    if not parts:
        raise ArgumentValueError(f"{user_location()}: concat of no tensors.")
    k = axis_from("concat", axis, parts[0].ndim)
    rests = {(*one.shape[:k], -1, *one.shape[k + 1 :]) for one in parts}
    if len(rests) > 1:
        raise ShapeError(
            f"{user_location()}: concat along axis {axis} of shapes {' and '.join(str(one.shape) for one in parts)}: "
            "all other extents must be equal."
        )
    shape = (*parts[0].shape[:k], sum(one.shape[k] for one in parts), *parts[0].shape[k + 1 :])
    made = fresh(shape, common("concat", [one.dtype for one in parts]))
    place = 0
    for one in parts:
        view = View(place * made.strides[k], one.shape, made.strides)
        copy_into(made._memory, view, one, "concat", made.dtype.is_floating)
        place += one.shape[k]
    return made


def stack(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors of one shape along a new axis.

    Raises:
        ShapeError: their shapes differ.
    """
    parts = [require(one, "stack") for one in tensors]
    shapes = {one.shape for one in parts}
    if len(shapes) != 1:
        raise ShapeError(f"{user_location()}: stack of shapes {' and '.join(map(str, sorted(shapes)))}: not of one.")
    return concat([one.expand_dims(axis) for one in parts], axis=axis)


def split(x: Tensor, sizes: Any, axis: int = 0) -> list[Tensor]:
    """Views of parts along an axis.

    Args:
        sizes: of all parts, a list; or of each but the last, an int.

    Raises:
        ShapeError: the sizes do not add up.
    """
    k = axis_from("split", axis, require(x, "split").ndim)
    extent = x.shape[k]
    parts = [min(sizes, extent - low) for low in range(0, extent, sizes)] if isinstance(sizes, int) else list(sizes)
    if sum(parts) != extent:
        raise ShapeError(f"{user_location()}: split of shape {x.shape} along axis {axis} into {parts}.")
    found, place = [], 0
    for size in parts:
        found.append(x[along(k, slice(place, place + size))])
        place += size
    return found


def chunk(x: Tensor, chunks: int, axis: int = 0) -> list[Tensor]:
    """Views of so many parts of equal size along an axis; the last may be smaller, or there are fewer."""
    extent = require(x, "chunk").shape[axis_from("chunk", axis, x.ndim)]
    return split(x, max(-(-extent // chunks), 1), axis)


def roll(x: Tensor, shifts: Any, axis: Any = None) -> Tensor:
    """Moved by so many elements along axes; what leaves at one end comes back at the other.

    Args:
        shifts: an int, or one for each of several axes.
        axis: None for all elements in row-major order.
    """
    x = require(x, "roll")
    if axis is None:
        return roll(x.flatten(), shifts, 0).reshape(x.shape)
    pairs = zip(shifts, axis) if isinstance(axis, (tuple, list)) else [(shifts, axis)]
    for shift, one in pairs:
        k = axis_from("roll", one, x.ndim)
        place = -shift % x.shape[k] if x.shape[k] else 0
        if place:
            x = concat(split(x, [place, x.shape[k] - place], k)[::-1], k)
    return x


def repeat(x: Tensor, counts: Any) -> Tensor:
    """The whole tensor so many times along each axis, new ones in front (`tile` in NumPy)."""
    x, counts = require(x, "repeat"), shape_from(counts, "repeat")
    if len(counts) < x.ndim:
        raise ShapeError(f"{user_location()}: repeat of shape {x.shape} needs a count for each axis, not {counts}.")
    shape = (1,) * (len(counts) - x.ndim) + x.shape
    apart = tuple(part for extent in shape for part in (1, extent))
    wide = tuple(part for pair in zip(counts, shape) for part in pair)
    return x.reshape(apart).broadcast_to(wide).reshape(tuple(a * b for a, b in zip(counts, shape)))


def repeat_interleave(x: Tensor, counts: int, axis: int | None = None) -> Tensor:
    """Each element so many times along an axis; without one, of all elements in row-major order."""
    x = require(x, "repeat_interleave")
    if axis is None:
        x, axis = x.flatten(), 0
    k = axis_from("repeat_interleave", axis, x.ndim)
    shape = x.shape
    wide = x.expand_dims(k + 1).broadcast_to((*shape[: k + 1], counts, *shape[k + 1 :]))
    return wide.reshape((*shape[:k], shape[k] * counts, *shape[k + 1 :]))


def tril(x: Tensor, diagonal: int = 0) -> Tensor:
    """The matrices up to a diagonal, 0 above it."""
    return _triangle("tril", x, lambda rows, columns: columns <= rows + diagonal)


def triu(x: Tensor, diagonal: int = 0) -> Tensor:
    """The matrices from a diagonal on, 0 below it."""
    return _triangle("triu", x, lambda rows, columns: rows + diagonal <= columns)


def _triangle(name: str, x: Tensor, keeps: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    x = require(x, name)
    if x.ndim < 2:
        raise ShapeError(f"{user_location()}: {name} of shape {x.shape}: a matrix has at least two axes.")
    mask = keeps(arange(x.shape[-2]).expand_dims(1), arange(x.shape[-1]))
    return where(mask, x, False if x.dtype is bool_ else 0)


def diagonal(x: Tensor, offset: int = 0, first: int = 0, second: int = 1) -> Tensor:
    """A view of the diagonal of two axes, as a new last axis."""
    x = require(x, "diagonal")
    i, j = (axis_from("diagonal", axis, x.ndim) for axis in (first, second))
    view = x._view
    rows, columns = view.shape[i] + min(offset, 0), view.shape[j] - max(offset, 0)
    start = view.offset + max(offset, 0) * view.strides[j] - min(offset, 0) * view.strides[i]
    kept = [k for k in range(x.ndim) if k not in (i, j)]
    shape = (*(view.shape[k] for k in kept), max(min(rows, columns), 0))
    return x._part(View(start, shape, (*(view.strides[k] for k in kept), view.strides[i] + view.strides[j])))


def pad(x: Tensor, widths: Any, value: float = 0.0) -> Tensor:
    """A border of one number.

    Args:
        widths: (before, after) for each axis, as in NumPy.
    """
    x = require(x, "pad")
    if len(widths) != x.ndim or any(len(pair) != 2 or min(pair) < 0 for pair in widths):
        raise ShapeError(
            f"{user_location()}: pad of shape {x.shape} needs (before, after) for each axis, not {widths}."
        )
    made = fresh(tuple(extent + sum(pair) for extent, pair in zip(x.shape, widths)), x.dtype)
    strides = made.strides
    for k, (before, after) in enumerate(widths):  # each element is written once: the axes before are done
        for low, count in ((0, before), (before + x.shape[k], after)):
            offset = low * strides[k] + sum(pair[0] * s for pair, s in zip(widths[:k], strides))
            shape = (*x.shape[:k], count, *made.shape[k + 1 :])
            if size_of(shape):
                copy_into(made._memory, View(offset, shape, strides), value, "pad")
    offset = sum(pair[0] * s for pair, s in zip(widths, strides))
    copy_into(made._memory, View(offset, x.shape, strides), x, "pad", x.dtype.is_floating)
    return made


def take(x: Tensor, indices: Any, axis: int = 0) -> Tensor:
    """The elements (rows, ...) of x that whole numbers choose along an axis; their axes take its place.

    Where an element is chosen several times, its gradients are added up.

    Args:
        indices: a tensor of int64, a list of ints, or an int, from 0 on.

    Raises:
        IndexRangeError: an index is out of range; nothing was computed.
        TraceError: inside a step, the range of the indices is not known: they must be an argument, or from argmax.
    """
    x = require(x, "take")
    k = axis_from("take", axis, x.ndim)
    extent = x.shape[k]
    if isinstance(indices, (list, tuple)):
        indices = asarray(indices, dtype="int64")
    elif not is_number(indices) and is_array(indices):
        indices = asarray(indices)
    inner: tuple[int, ...] = indices.shape if isinstance(indices, Tensor) else ()
    if isinstance(indices, Tensor) and indices.dtype is not int64:
        raise ArgumentError(f"{user_location()}: take needs indices of type int64, not {indices.dtype}.")
    require_in_range("take", indices, extent)
    shape = (*x.shape[:k], *inner, *x.shape[k + 1 :])
    made = fresh(shape, x.dtype)
    strides = x.strides
    own = (*strides[:k], *(0,) * len(inner), *strides[k + 1 :])
    reading = access("take", x, own, shape, x.dtype.is_floating)
    rest = (0,) * k, (0,) * (x.ndim - k - 1)
    index_strides = (*rest[0], *indices.strides, *rest[1]) if isinstance(indices, Tensor) else (0,) * len(shape)
    choosing = access("take", indices, index_strides, shape, False)
    operands = reading._replace(chosen=Chosen(1, strides[k], extent)), choosing
    perform(Nest("take", TAKE, shape, (), operands, Access(made._memory, 0, row_major(shape))))
    return made


def take_along_axis(x: Tensor, indices: Tensor, axis: int = -1) -> Tensor:
    """For each place of the other axes, the elements that whole numbers choose along one axis (`gather` in PyTorch).

    Args:
        indices: a tensor of int64, from 0 on, of the shape of x but for that axis.

    Raises:
        ShapeError, IndexRangeError, TraceError: see `take`.
    """
    x, indices = require(x, "take_along_axis"), require(indices, "take_along_axis")
    k = axis_from("take_along_axis", axis, x.ndim)
    shape = indices.shape
    if len(shape) != x.ndim or any(a != b for j, (a, b) in enumerate(zip(x.shape, shape)) if j != k):
        raise ShapeError(
            f"{user_location()}: take_along_axis of shape {x.shape} by indices of shape {shape}: all extents but "
            f"that of axis {axis} must be equal."
        )
    return _along("take_along_axis", x, indices, k)


def gather(x: Tensor, axis: int, indices: Tensor) -> Tensor:
    """As `take_along_axis`; the indices may have less elements along the other axes than x, and have its first ones.

    Raises:
        ShapeError: they have more. IndexRangeError, TraceError: see `take`.
    """
    x, indices = require(x, "gather"), require(indices, "gather")
    k = axis_from("gather", axis, x.ndim)
    if indices.ndim != x.ndim or any(a < b for j, (a, b) in enumerate(zip(x.shape, indices.shape)) if j != k):
        raise ShapeError(
            f"{user_location()}: gather of shape {x.shape} by indices of shape {indices.shape}: as many axes, and no "
            f"more elements along those other than {axis}."
        )
    return _along("gather", x, indices, k)


def index_select(x: Tensor, axis: int, indices: Any) -> Tensor:
    """`take`, with PyTorch's order of arguments."""
    return take(x, indices, axis)


def _along(name: str, x: Tensor, indices: Tensor, k: int) -> Tensor:
    if indices.dtype is not int64:
        raise ArgumentError(f"{user_location()}: {name} needs indices of type int64, not {indices.dtype}.")
    require_in_range(name, indices, x.shape[k])
    shape = indices.shape
    made = fresh(shape, x.dtype)
    own = (*x.strides[:k], 0, *x.strides[k + 1 :])
    reading = access(name, x, own, shape, x.dtype.is_floating)
    choosing = access(name, indices, indices.strides, shape, False)
    operands = reading._replace(chosen=Chosen(1, x.strides[k], x.shape[k])), choosing
    perform(Nest(name, TAKE, shape, (), operands, Access(made._memory, 0, row_major(shape))))
    return made


def require_in_range(name: str, indices: Any, extent: int) -> None:
    """Require that whole numbers are in `range(extent)`.

    Raises:
        IndexRangeError, TraceError: they are not, or that is not known.
    """
    taking = recording()
    if taking is not None:
        if not isinstance(indices, Tensor) or indices._memory.limit is None or indices._memory.limit > extent:
            taking.require_in_range(indices, extent)
        return
    found = indices.tolist_flat() if isinstance(indices, Tensor) else [indices]
    wrong = next((number for number in found if not 0 <= number < extent), None)
    if wrong is not None:
        raise IndexRangeError(f"{user_location()}: {name}: index {wrong} is not in range({extent}).")
