"""Shapes, strides, axes and indices of tensors: integers only, no elements."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..errors import ArgumentError, ArgumentValueError, IndexRangeError, ShapeError, described, user_location

Shape = tuple[int, ...]


class View(NamedTuple):
    """Which elements of a memory a tensor has: those at `offset + sum of index * stride`."""

    offset: int
    shape: Shape
    strides: Shape


class Size(int):
    """The number of elements, which can be called: `x.size` is 6 where `x.size()` is (2, 3), and `x.size(1)` is 3."""

    shape: Shape

    @classmethod
    def of(cls, shape: Shape) -> Size:
        """That of a shape."""
        made = cls(size_of(shape))
        made.shape = shape
        return made

    def __call__(self, axis: int | None = None, dim: int | None = None) -> Any:
        """The shape, or the extent of one axis."""
        axis = dim if axis is None else axis
        return self.shape if axis is None else self.shape[axis_from("size", axis, len(self.shape))]

    def __reduce__(self) -> Any:
        return int, (int(self),)


def size_of(shape: Sequence[int]) -> int:
    """The number of elements."""
    size = 1
    for extent in shape:
        size *= extent
    return size


def row_major(shape: Sequence[int]) -> Shape:
    """The strides of elements that lie one after the other, those of the last axis next to each other."""
    strides, size = [], 1
    for extent in reversed(shape):
        strides.append(size)
        size *= extent
    return tuple(reversed(strides))


def shape_from(given: Any, what: str) -> Shape:
    """A shape that a user has given: an int, or ints.

    Raises:
        ArgumentError: it is none.
    """
    extents = given if isinstance(given, (tuple, list)) else (given,)
    try:
        shape = tuple(int(operator.index(extent)) for extent in extents)
    except TypeError:
        shape = (-1,)
    if any(extent < 0 for extent in shape):
        raise ArgumentError(f"{user_location()}: {what} needs a shape: ints from 0 on, not {described(given)}.")
    return shape


def broadcast(name: str, *shapes: Shape) -> Shape:
    """The shape that operands of these shapes have together, by NumPy's rule.

    Raises:
        ShapeError: there is none.
    """
    rank = max(map(len, shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    found = []
    for extents in zip(*padded):
        several = {extent for extent in extents if extent != 1}
        if len(several) > 1:
            raise ShapeError(
                f"{user_location()}: {name} of shapes {' and '.join(map(str, shapes))}: from the right, extents must "
                f"be equal or 1, and {' and '.join(map(str, extents))} are not."
            )
        found.append(several.pop() if several else 1)
    return tuple(found)


def broadcast_strides(view: View, shape: Shape) -> Shape:
    """The strides with which a view is read as if it had a shape that it can be broadcast to."""
    missing = len(shape) - len(view.shape)
    own = [0 if extent == 1 and wanted != 1 else stride
           for extent, stride, wanted in zip(view.shape, view.strides, shape[missing:])]  # fmt: skip
    return (0,) * missing + tuple(own)


def along(axis: int, index: Any) -> tuple[Any, ...]:
    """An index of one axis, counted from 0, that leaves those before it as they are."""
    return (*(slice(None),) * axis, index)


def axis_from(name: str, axis: Any, rank: int) -> int:
    """An axis as a number from 0 on.

    Raises:
        ArgumentError, IndexRangeError: there is no such axis.
    """
    try:
        number = operator.index(axis)
    except TypeError:
        raise ArgumentError(f"{user_location()}: {name}: an axis is an int, not {described(axis)}.") from None
    if not -rank <= number < rank:
        raise IndexRangeError(f"{user_location()}: {name}: there is no axis {number} among {rank}.")
    return number % rank


def axes_from(name: str, axis: Any, rank: int) -> tuple[int, ...]:
    """Axes in rising order; None stands for all of them.

    Raises:
        ArgumentError, IndexRangeError: there is no such axis.
        ArgumentValueError: an axis is named twice.
    """
    if axis is None:
        return tuple(range(rank))
    axes = [axis_from(name, one, rank) for one in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    if len(set(axes)) < len(axes):
        raise ArgumentValueError(f"{user_location()}: {name}: an axis is named twice in {axis}.")
    return tuple(sorted(axes))


def reshaped(view: View, shape: Any) -> View | None:
    """The same elements in another shape; None if no strides give them.

    Args:
        shape: one extent may be -1, which is then what is left.

    Raises:
        ShapeError: the number of elements is another one.
    """
    given = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    size = size_of(view.shape)
    known = size_of([extent for extent in given if extent != -1])
    if given.count(-1) == 1 and known and size % known == 0:
        given = tuple(size // known if extent == -1 else extent for extent in given)
    if -1 in given or size_of(given) != size:
        raise ShapeError(
            f"{user_location()}: reshape of shape {view.shape}, {size} elements, to {given}, which has "
            f"{size_of(given) if -1 not in given else 'no'} elements."
        )
    if size == 0 or view.strides == row_major(view.shape):
        return View(view.offset, given, row_major(given))
    return _regrouped(view, given)


def _regrouped(view: View, shape: Shape) -> View | None:
    """Old and new axes are cut into groups of equal size; the old axes of a group must follow each other in memory."""
    old = [(extent, stride) for extent, stride in zip(view.shape, view.strides) if extent != 1]
    strides: list[int] = []
    done = 0
    while len(strides) < len(shape) and done < len(old):
        first, wanted, found = done, shape[len(strides)], old[done][0]
        end = len(strides) + 1
        done += 1
        while wanted != found:
            if wanted < found:
                wanted *= shape[end]
                end += 1
            else:
                found *= old[done][0]
                done += 1
        group = old[first:done]
        if any(outer[1] != inner[0] * inner[1] for outer, inner in zip(group, group[1:])):
            return None
        strides += [stride * group[-1][1] for stride in row_major(shape[len(strides) : end])]
    return View(view.offset, shape, (*strides, *(1,) * (len(shape) - len(strides))))


def indexed(view: View, index: Any) -> tuple[View, list[tuple[int, Any]]]:
    """The part of a view that `t[index]` means, by NumPy's rules for ints, slices, None and ...

    Returns:
        The part, and for each axis that something else than these has indexed: its number in the part, and that.

    Raises:
        IndexRangeError: an int is out of range, or there are too many indices.
    """
    parts = list(index) if isinstance(index, tuple) else [index]
    named = sum(1 for part in parts if part is not None and part is not Ellipsis)
    if named > len(view.shape):
        raise IndexRangeError(f"{user_location()}: {named} indices of a tensor of shape {view.shape}.")
    dots = [k for k, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1:
        raise IndexRangeError(f"{user_location()}: an index has `...` once, not {len(dots)} times.")
    place = dots[0] if dots else len(parts)
    parts[place : place + 1] = [slice(None)] * (len(view.shape) - named)
    offset, shape, strides = view.offset, [], []
    chosen: list[tuple[int, Any]] = []
    axis = 0
    for part in parts:
        if part is None:
            shape.append(1)
            strides.append(0)
            continue
        extent, stride = view.shape[axis], view.strides[axis]
        axis += 1
        if isinstance(part, slice):
            span = range(*part.indices(extent))
            offset += span.start * stride if span else 0
            shape.append(len(span))
            strides.append(span.step * stride)
            continue
        number = plain_index(part)
        if number is None:
            chosen.append((len(shape), part))
            shape.append(extent)
            strides.append(stride)
            continue
        if not -extent <= number < extent:
            raise IndexRangeError(
                f"{user_location()}: index {number} is out of range for axis {axis - 1} of shape {view.shape}."
            )
        offset += number % extent * stride
    return View(offset, tuple(shape), tuple(strides)), chosen


def plain_index(part: Any) -> int | None:
    """An index that is an int, known now."""
    if type(part) is int or type(part) is Size:
        return int(part)
    kind = type(part)
    is_numpys = kind.__module__ == "numpy" and hasattr(part, "__index__") and not kind.__name__.startswith("bool")
    return int(part) if is_numpys and not getattr(part, "shape", ()) else None
