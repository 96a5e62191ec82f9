"""Elements in order: `argsort`, `sort`, `topk`, and random choices, `multinomial` and `randperm`.

The place of an element is the number of those before it: the smaller ones, and of equal ones those that come first.
nan is greater than all numbers, as in NumPy and PyTorch.

1. Eagerly, Python sorts each row.
2. In a compiled step, one nest counts for each element those before it, and another one writes its number at its place:
   of a row of n elements that is n * n comparisons, without a branch.
"""

from __future__ import annotations

import random
from typing import Any

from ..errors import ArgumentValueError, user_location
from ..ir.bodies import Body, define
from .apply import access, fresh, perform, recording, reduction
from .creation import arange, from_flat, rand
from .dtypes import int64
from .elementwise import log
from .joining import take_along_axis
from .modes import floats_of_step, no_grad
from .nests import Access, Chosen, Nest
from .reductions import Found, sum
from .scans import cumsum
from .shapes import along, axis_from, row_major
from .tensor import Tensor, require


def _counted(descending: bool) -> Body:
    def counted(total: Any, x: Any, other: Any, k: Any, j: Any) -> Any:
        x_is_nan, other_is_nan = (one.apply("not_equal", one) for one in (x, other))
        before = (x < other) if descending else (other < x)
        before = before.apply("maximum", ((1.0 - x_is_nan) * other_is_nan) if descending else
                              x_is_nan * (1.0 - other_is_nan))  # fmt: skip
        is_equal = x.apply("equal", other).apply("maximum", x_is_nan * other_is_nan)
        return total + before.apply("maximum", is_equal * (j < k))

    return define(counted, (0.0,))


#: How many elements are before one: of x[k], x[j], k and j.
_BEFORE = {descending: _counted(descending) for descending in (False, True)}
_COPY_TO = define(lambda number, place: number.apply("copy"))


def argsort(x: Tensor, axis: int = -1, descending: bool = False) -> Tensor:
    """The indices of the elements along an axis, in rising order; equal ones stay in order.

    Args:
        descending: in falling order.
    """
    x = require(x, "argsort").detach()
    k = axis_from("argsort", axis, x.ndim) if x.ndim else 0
    rows = x.moveaxis(k, -1) if x.ndim else x.reshape(1)
    found = _recorded(rows, descending) if recording() is not None else _sorted(rows, descending)
    found._memory.limit = rows.shape[-1]
    return found.moveaxis(-1, k) if x.ndim else found.reshape(())


def sort(x: Tensor, axis: int = -1, descending: bool = False) -> Found:
    """The elements along an axis in rising order, and their indices; gradients flow back to where they were."""
    indices = argsort(x, axis, descending)
    return Found(take_along_axis(x, indices, axis) if x.ndim else x.copy(), indices)


def topk(x: Tensor, k: int, axis: int = -1, largest: bool = True) -> Found:
    """The k greatest elements along an axis, in falling order, and their indices.

    Args:
        largest: False for the smallest ones, in rising order.
    """
    number = axis_from("topk", axis, require(x, "topk").ndim)
    if not 0 <= k <= x.shape[number]:
        raise ArgumentValueError(f"{user_location()}: topk of {k} elements of shape {x.shape} along axis {axis}.")
    indices = argsort(x, number, largest)[along(number, slice(k))]
    return Found(take_along_axis(x, indices, number), indices)


def _sorted(rows: Tensor, descending: bool) -> Tensor:
    count, flat = rows.shape[-1], rows.tolist_flat()
    found: list[int] = []
    for start in range(0, len(flat), count or 1):
        row = flat[start : start + count]
        order = range(count)
        numbers = sorted((k for k in order if row[k] == row[k]), key=row.__getitem__, reverse=descending)
        others = [k for k in order if row[k] != row[k]] if len(numbers) < count else []
        found += [*others, *numbers] if descending else [*numbers, *others]
    return from_flat(found, rows.shape, int64)


def _recorded(rows: Tensor, descending: bool) -> Tensor:
    shape, count, strides = rows.shape, rows.shape[-1], rows.strides
    numbers, axes = arange(count), (0,) * (rows.ndim - 1)
    operands = [
        (rows, (*strides, 0)), (rows, (*strides[:-1], 0, strides[-1])), (numbers, (*axes, 1, 0)),
        (numbers, (*axes, 0, 1)),
    ]  # fmt: skip
    places = reduction("argsort", _BEFORE[descending], operands, shape, (count,), int64)
    made = fresh(shape, int64)
    reading, choosing = (
        access("argsort", one, own, shape, False) for one, own in ((numbers, (*axes, 1)), (places, places.strides))
    )
    target = Access(made._memory, 0, (*row_major(shape)[:-1], 0), chosen=Chosen(1, 1, count))
    perform(Nest("argsort", _COPY_TO, shape, (), (reading, choosing), target))
    return made


def randperm(n: int, *, generator: Any = None) -> Tensor:
    """The numbers from 0 to n - 1 in random order: of so many random numbers, the indices in rising order."""
    taking, own = recording(), floats_of_step()
    floats = taking.floats if taking is not None else "float64" if own is None else own.name
    return argsort(rand(n, dtype=floats, generator=generator))


def multinomial(x: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Tensor:
    """Indices along the last axis, drawn with probabilities that are proportional to the elements.

    Args:
        x: a vector or a matrix, not below 0.
        num_samples: how many for each row.
        replacement: whether one may be drawn again.
        generator: a `random.Random` to draw from, instead of the module `random`.

    Raises:
        ArgumentValueError: so many cannot be drawn.
    """
    with no_grad():
        x = require(x, "multinomial")
        count = x.shape[-1]
        if num_samples < 1 or (num_samples > count and not replacement):
            raise ArgumentValueError(f"{user_location()}: multinomial of {num_samples} samples from {count} elements.")
        generator = generator or random
        if num_samples > 1 and not replacement:  # the first of independent exponential times
            times = -log(1.0 - rand(x.shape, dtype=x.dtype, generator=generator)) / x
            return topk(times, num_samples, largest=False).indices
        sums = cumsum(x, -1)
        total = sums[..., -1:]
        draws = rand((*x.shape[:-1], num_samples), dtype=x.dtype, generator=generator) * total
        below = (sums.expand_dims(-2) <= draws.expand_dims(-1)) & (sums < total).expand_dims(-2)
        found = sum(below, -1)
        found._memory.limit = count
        return found
