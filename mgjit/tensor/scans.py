"""Sums of all elements so far: `cumsum`, one nest that reads what it has just written; and products, `cumprod`.

The first element is copied; then each is the one before it plus an element of the operand.  Loops run in row-major
order, and a backward pass runs through them in reverse, so that the gradient is the sum from the end.  Of whole numbers
in a compiled step, each is a sum of its own, whose size the trace knows.
"""

from __future__ import annotations

from ..ir.bodies import ELEMENTWISE, define
from .apply import access, copy_into, fresh, perform, recording, reduction
from .creation import arange
from .dtypes import bool_, int64
from .joining import stack
from .nests import Access, Nest
from .shapes import along, axis_from
from .tensor import Tensor, require

_UP_TO = define(lambda total, x, k, j: total + (k < j).apply("select", 0.0, x), (0.0,))


def cumsum(x: Tensor, axis: int = 0) -> Tensor:
    """x[0], x[0] + x[1], (x[0] + x[1]) + x[2], ... along an axis."""
    x = require(x, "cumsum")
    if not x.ndim:
        return x.copy()
    k = axis_from("cumsum", axis, x.ndim)
    dtype = int64 if x.dtype is bool_ else x.dtype
    if not dtype.is_floating and recording() is not None:
        return _of_whole_numbers(x, k)
    made = fresh(x.shape, dtype)
    extent, strides = x.shape[k], made.strides
    if 0 in x.shape:
        return made
    order = [*(j for j in range(x.ndim) if j != k), k]
    first = along(k, slice(1))
    copy_into(made._memory, made[first]._view, x[first], "cumsum", dtype.is_floating)
    if extent > 1:
        shape = (*(x.shape[j] for j in order[:-1]), extent - 1)
        own, steps = (tuple(one.strides[j] for j in order) for one in (x, made))
        reading = access("cumsum", x, own, shape, dtype.is_floating)
        reading = reading._replace(offset=reading.offset + own[-1])
        before = Access(made._memory, 0, steps, reading.flows)
        target = Access(made._memory, strides[k], steps)
        perform(Nest("cumsum", ELEMENTWISE["add"], shape, (), (before, reading), target))
    return made


def cumprod(x: Tensor, axis: int = 0) -> Tensor:
    """x[0], x[0] * x[1], (x[0] * x[1]) * x[2], ... along an axis."""
    x = require(x, "cumprod")
    k = axis_from("cumprod", axis, x.ndim) if x.ndim else 0
    if not x.ndim or not x.shape[k]:
        return x.copy()
    found = [x[along(k, 0)]]
    for number in range(1, x.shape[k]):
        found.append(found[-1] * x[along(k, number)])
    return stack(found, k)


def _of_whole_numbers(x: Tensor, k: int) -> Tensor:
    rows = x.moveaxis(k, -1)
    shape, strides, axes = rows.shape, rows.strides, (0,) * (rows.ndim - 1)
    numbers = arange(shape[-1])
    operands = [(rows, (*strides[:-1], 0, strides[-1])), (numbers, (*axes, 1, 0)), (numbers, (*axes, 0, 1))]
    return reduction("cumsum", _UP_TO, operands, shape, (shape[-1],), int64).moveaxis(-1, k)
