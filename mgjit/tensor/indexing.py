"""Elements that tensors, lists and masks choose: `x[i, j]` with NumPy's rules, to read and to assign.

1. Each part of an index is an int, a slice, None, `...`, or an array: of ints, or of bools, which stands for the
   numbers of its true elements along as many axes.  Ints beside arrays are arrays of one number.
2. Slices and None give a view, as everywhere (shapes.py).  Arrays are broadcast together and choose pairs; the axes of
   what they have together take the place of the first of them if they follow each other, otherwise they come first.
3. Where the chosen elements lie is one number for each: the sum of index times stride, by operations on tensors, so
   that a compiled step has it as well.  Reading is a nest that copies what is chosen; assigning one whose target is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..engine.leaks import PlainCall, is_traced_number
from ..errors import ArgumentError, IndexRangeError, ShapeError, described, user_location
from ..ir.bodies import ELEMENTWISE, Body, Element, Step
from .apply import access, elementwise, fresh, is_number, perform, recording, tensor_of
from .creation import asarray, full, is_array
from .dtypes import bool_, int64
from .nests import Access, Chosen, Nest
from .shapes import Shape, View, broadcast, broadcast_strides, plain_index, row_major
from .tensor import Tensor

#: Copies the first operand; the second one has chosen it, or where it goes.
TAKE = Body(2, (Step("copy", (Element(0),)),))


class _Array(NamedTuple):
    """A part of an index that chooses along an axis: whole numbers, or one."""

    numbers: Any
    extent: int
    stride: int


class Selection(NamedTuple):
    """What an index with arrays means.

    Attributes:
        view: of the first elements that can be chosen; along the axes of the arrays, without strides.
        places: how much further the chosen ones lie, in steps.
        strides: of `places`, for each axis of the view.
        step: in elements.
        limit: all places are below.
    """

    view: View
    places: Any
    strides: Shape
    step: int
    limit: int

    def read(self, x: Tensor) -> Tensor:
        """The elements, copied; gradients flow back to them, and add up where one is chosen several times."""
        shape = self.view.shape
        made = fresh(shape, x.dtype)
        whole = tensor_of(x._memory, View(self.view.offset, (), ()), x._detached)
        reading = access("index", whole, self.view.strides, shape, x.dtype.is_floating)
        operands = reading._replace(chosen=self._chosen()), self._choosing()
        perform(Nest("index", TAKE, shape, (), operands, Access(made._memory, 0, row_major(shape))))
        return made

    def write(self, x: Tensor, value: Any) -> None:
        """Assign; of several values for one element, the last one stays.

        Raises:
            ShapeError: the value cannot be broadcast.
        """
        shape = self.view.shape
        if isinstance(value, Tensor):
            while value.ndim > len(shape) and value.shape[0] == 1:
                value = value.squeeze(0)
            if broadcast("assignment", value.shape, shape) != shape:
                raise ShapeError(f"{user_location()}: assignment of shape {value.shape} to elements of shape {shape}.")
        operands = access("assignment", value, None, shape, False), self._choosing()
        target = Access(x._memory, self.view.offset, self.view.strides, chosen=self._chosen())
        perform(Nest("assignment", TAKE, shape, (), operands, target))

    def _chosen(self) -> Chosen:
        return Chosen(1, self.step, self.limit)

    def _choosing(self) -> Access:
        return access("index", self.places, self.strides, self.view.shape, False)


def has_arrays(index: Any) -> bool:
    """Whether an index has parts that are arrays, and not only ints, slices, None and `...`, or numbers of the step."""
    return any(map(_is_array_part, index)) if isinstance(index, tuple) else _is_array_part(index)


def _is_array_part(part: Any) -> bool:
    if part is None or part is Ellipsis or isinstance(part, slice) or plain_index(part) is not None:
        return False
    if isinstance(part, Tensor):
        return bool(part.shape) or part.dtype is bool_
    return not is_traced_number(part)


def selection(x: Tensor, index: Any) -> Selection:
    """What `x[index]` means.

    Raises:
        IndexRangeError: a number is out of range, there are too many indices, or a mask has another shape.
        ArgumentError: a part is no index.
        PlainCall: a mask is computed by a step, or among its arguments: how many elements it has is not known.
    """
    view = x._view
    parts = [_part(part) for part in (index if isinstance(index, tuple) else (index,))]
    used = sum(map(_axes_of, parts))
    if used > len(view.shape):
        raise IndexRangeError(f"{user_location()}: {used} indices of a tensor of shape {view.shape}.")
    dots = sum(part is Ellipsis for part in parts)
    if dots > 1:
        raise IndexRangeError(f"{user_location()}: an index has `...` once, not {dots} times.")
    if not dots:
        parts.append(Ellipsis)
    offset, axis = view.offset, 0
    axes: list[tuple[int, int] | _Array] = []  # of the result: extent and stride; and arrays
    apart = 0  # how often arrays begin anew
    was_array = False
    for part in parts:
        is_array_part = isinstance(part, (int, Tensor)) or is_traced_number(part)
        apart += is_array_part and not was_array
        was_array = is_array_part
        if part is None:
            axes.append((1, 0))
        elif part is Ellipsis:
            count = len(view.shape) - used
            axes.extend(zip(view.shape[axis : axis + count], view.strides[axis : axis + count]))
            axis += count
        elif isinstance(part, slice):
            span = range(*part.indices(view.shape[axis]))
            offset += span.start * view.strides[axis] if span else 0
            axes.append((len(span), span.step * view.strides[axis]))
            axis += 1
        else:
            count = _axes_of(part)
            found = _of_mask(part, view.shape[axis : axis + count]) if _is_mask(part) else [part]
            extents, strides = (
                (view.shape[axis : axis + count], view.strides[axis : axis + count]) if count else ((1,), (0,))
            )
            axes.extend(map(_Array, found, extents, strides))
            axis += count
    return _selected(view, offset, axes, apart > 1)


def _selected(view: View, offset: int, axes: Sequence[tuple[int, int] | _Array], is_apart: bool) -> Selection:
    arrays = [_checked(one, k) for k, one in enumerate(axes) if isinstance(one, _Array)]
    together = broadcast("index", *(one.numbers.shape for one in arrays if isinstance(one.numbers, Tensor)))
    first = 0 if is_apart else next(k for k, one in enumerate(axes) if isinstance(one, _Array))
    basic = [one for one in axes if not isinstance(one, _Array)]
    before, behind = basic[:first], basic[first:]
    shape = (*(e for e, _ in before), *together, *(e for e, _ in behind))
    strides = (*(s for _, s in before), *(0,) * len(together), *(s for _, s in behind))
    offset += sum(one.numbers * one.stride for one in arrays if not isinstance(one.numbers, Tensor))
    places, step, limit, low = _places([one for one in arrays if isinstance(one.numbers, Tensor)], 0 in shape)
    own = broadcast_strides(places._view, together)
    choosing = (*(0,) * len(before), *own, *(0,) * len(behind))
    return Selection(View(offset + low, shape, strides), places, choosing, step, limit)


def _places(arrays: Sequence[_Array], are_none: bool) -> tuple[Tensor, int, int, int]:
    """Where elements are that several arrays choose together: in steps, their length, the limit, and where 0 is."""
    if are_none or not arrays:
        return full((), 0, dtype=int64), 1, 1, 0
    if len(arrays) == 1:
        return arrays[0].numbers, arrays[0].stride, arrays[0].extent, 0
    places, low, high = None, 0, 0
    for numbers, extent, stride in arrays:
        reach = (extent - 1) * stride
        low, high = low + min(reach, 0), high + max(reach, 0)
        part = numbers * stride
        places = part if places is None else places + part
    assert places is not None
    return places - low, 1, high - low + 1, low


def assign(x: Tensor, index: Any, value: Any) -> None:
    """Assign a tensor or number to what arrays or numbers of the step choose."""
    if _is_mask(index) and isinstance(index, Tensor) and is_number(value) and index.shape == x.shape[: index.ndim]:
        mask = index.reshape((*index.shape, *(1,) * (x.ndim - index.ndim)))
        x[...] = elementwise("where", ELEMENTWISE["where"], (mask, value, x.detach()), x.dtype)  # in a step as well
    else:
        selection(x, index).write(x, value)


def _part(part: Any) -> Any:
    """A part of an index: lists and arrays as tensors, and ints of NumPy as ints.

    Raises:
        ArgumentError: it is none.
    """
    if part is None or part is Ellipsis or isinstance(part, (slice, bool)) or is_traced_number(part):
        return part
    number = plain_index(part)
    if number is not None:
        return number
    if isinstance(part, (list, tuple, range)) or is_array(part):
        made = asarray(part)
        part = made if made.size or not isinstance(part, (list, tuple, range)) else made.astype(int64)
    if not isinstance(part, Tensor) or part.dtype.is_floating:
        what = f"tensor of type {part.dtype}" if isinstance(part, Tensor) else described(part)
        raise ArgumentError(
            f"{user_location()}: an index is an int, a slice, None, ..., or a tensor or list of whole numbers or "
            f"bools, not the {what}."
        )
    return part


def _is_mask(part: Any) -> bool:
    return isinstance(part, bool) or (isinstance(part, Tensor) and part.dtype is bool_)


def _axes_of(part: Any) -> int:
    """How many axes a part of an index is for."""
    if _is_mask(part):
        return part.ndim if isinstance(part, Tensor) else 0
    return 0 if part is None or part is Ellipsis else 1


def _of_mask(mask: Any, shape: Shape) -> list[Tensor]:
    """The numbers of its true elements along each of its axes; of one bool, along an axis of length 1."""
    if isinstance(mask, bool):
        return [asarray([0] * mask, dtype="int64")]
    if mask.shape != shape:
        raise IndexRangeError(f"{user_location()}: a mask of shape {mask.shape} for axes of shape {shape}.")
    taking = recording()
    elements = mask.tolist_flat() if taking is None else taking.known_elements(mask)
    if elements is None:
        raise PlainCall(
            f"{user_location()}: how many elements a mask chooses depends on its values, and a step has tensors of "
            "known shapes. Write mgjit.tensor.where(mask, x, 0.0) in place of x[mask], or count with mask.sum()"
        )
    found = [place for place, is_true in enumerate(elements) if is_true]
    if not mask.shape:
        return [asarray([0] * len(found), dtype="int64")]
    return [
        asarray([place // stride % extent for place in found], dtype="int64")
        for stride, extent in zip(row_major(shape), shape)
    ]


def _checked(array: _Array, axis: int) -> _Array:
    """Numbers from 0 on, for those that count from the end as well.

    Raises:
        IndexRangeError: one is out of range.
    """
    numbers, extent = array.numbers, array.extent
    taking = recording()
    if is_traced_number(numbers):
        assert taking is not None
        taking.require_in_range(numbers, extent)
        return array._replace(numbers=full((), numbers, dtype=int64))
    if not isinstance(numbers, Tensor):
        if not -extent <= numbers < extent:
            raise IndexRangeError(f"{user_location()}: index {numbers} is out of range for an axis of length {extent}.")
        return array._replace(numbers=numbers % extent)
    limit = numbers._memory.limit
    if taking is None:
        found = numbers.tolist_flat()
        wrong = next((number for number in found if not -extent <= number < extent), None)
        if wrong is not None:
            raise IndexRangeError(f"{user_location()}: index {wrong} is out of range for an axis of length {extent}.")
        if min(found, default=0) >= 0:
            return array
    elif limit is not None and limit <= extent:
        return array
    else:
        taking.require_in_range(numbers, extent, -extent)
    wrapped = elementwise("where", ELEMENTWISE["where"], (numbers < 0, numbers + extent, numbers))
    return array._replace(numbers=wrapped)
