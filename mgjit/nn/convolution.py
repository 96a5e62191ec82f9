"""Convolution and pooling: one loop nest each over windows of the input, which are never copied.

A window is a matter of strides: along an axis, the next window is `stride` elements further, and the next element of a
window `dilation`.  So the definition of a convolution is that of a matrix product over them,

    for n, o, y, x:
        total = 0.0
        for c, i, j:
            total = total + input[n, c, y * stride + i * dilation, x * stride + j * dilation] * weight[o, c, i, j]

and its backward pass runs through the same loops in reverse, adding to the gradients of both.  Only padding copies: the
input into a larger tensor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..errors import ArgumentValueError, ShapeError, user_location
from ..ir.bodies import REDUCTIONS, greatest
from ..tensor import joining, reductions
from ..tensor.apply import access, elementwise_nest, reduction, result_type
from ..tensor.shapes import along, size_of
from ..tensor.tensor import Tensor, require
from . import checks
from .linear import drawn
from .module import Module

#: Windows of more elements are not written out one by one.
_MOST_WRITTEN_OUT = 36


def conv1d(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    """Cross-correlation along one axis; arguments and errors as those of `conv2d`, with one axis less."""
    return _convolution("conv1d", x, weight, bias, stride, padding, dilation, groups)


def conv2d(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Tensor:  # fmt: skip
    """Cross-correlation of images with windows, as PyTorch's.

    Args:
        x: of shape (N, C, height, width), or (C, height, width).
        weight: (outputs, C / groups, height and width of the window). bias: (outputs,)
        stride, dilation: how far windows, and elements in a window, are apart; an int or one for each axis.
        padding: zeros on both sides; or "same", for results of the size of x, or "valid", which is 0.
        groups: the channels and outputs are cut into so many groups that have nothing to do with each other.

    Returns:
        (N, outputs, (height + 2 * padding - dilation * (window - 1) - 1) // stride + 1, the same for the width).

    Raises:
        ShapeError: the shapes do not go together, or no window fits.
    """
    return _convolution("conv2d", x, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    groups: int = 1, dilation: Any = 1,
) -> Tensor:  # fmt: skip
    """`conv_transpose2d` along one axis."""
    return _transposed("conv1d", x, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    groups: int = 1, dilation: Any = 1,
) -> Tensor:  # fmt: skip
    """What `conv2d` does to gradients: each element is spread over a window; where windows overlap, they are added up.

    It is the convolution of the image, with `stride - 1` zeros between its elements, with the reversed windows.

    Args:
        x: (N, C, height, width), or without N.
        weight: (C, outputs / groups, height and width of the window). bias: (outputs,)
        stride, dilation: how far windows, and elements in a window, are apart.
        padding: so many elements at each end of the result are left out.
        output_padding: and so many at the other end are not.
        groups: see `conv2d`.

    Raises:
        ShapeError: the shapes do not go together.
    """
    return _transposed("conv2d", x, weight, bias, stride, padding, output_padding, groups, dilation)


def max_pool1d(x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1) -> Tensor:
    """The greatest element of each window along the last axis; arguments as those of `max_pool2d`."""
    return _max_pool("max_pool1d", x, kernel_size, stride, padding, dilation, 1)


def max_pool2d(x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1) -> Tensor:
    """The greatest element of each window, found as `max` does; the gradient goes to the first of several equal ones.

    Args:
        x: of shape (N, C, height, width), or (C, height, width).
        kernel_size: of the windows; an int or one for each axis.
        stride: how far they are apart; None for the size of the windows.
        padding: -inf on both sides. dilation: how far elements in a window are apart.

    Raises:
        ShapeError: no window fits.
    """
    return _max_pool("max_pool2d", x, kernel_size, stride, padding, dilation, 2)


def avg_pool1d(x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0) -> Tensor:
    """The mean of each window along the last axis; arguments as those of `avg_pool2d`."""
    return _avg_pool("avg_pool1d", x, kernel_size, stride, padding, 1)


def avg_pool2d(x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0) -> Tensor:
    """The mean of each window, in which zeros of the padding count; arguments as those of `max_pool2d`."""
    return _avg_pool("avg_pool2d", x, kernel_size, stride, padding, 2)


class _Windows:
    """The windows of the last axes of a tensor: how many there are, and the strides that lead to them.

    Attributes:
        x: the tensor, padded.
        counts: of windows along each axis.
        between, inside: strides from window to window, and from element to element.
    """

    def __init__(
        self, name: str, x: Tensor, sizes: Sequence[int], stride: Any, padding: Any, dilation: Any, border: float
    ) -> None:
        axes = len(sizes)
        steps, apart = checks.pair("stride", stride, axes), checks.pair("dilation", dilation, axes)
        widths = _widths(name, padding, sizes, steps, apart)
        if any(map(any, widths)):
            x = joining.pad(x, [(0, 0)] * (x.ndim - axes) + widths, border)
        spans = [space * (size - 1) + 1 for size, space in zip(sizes, apart)]
        extents, strides = x.shape[-axes:], x.strides[-axes:]
        if any(span > extent for span, extent in zip(spans, extents)):
            raise ShapeError(
                f"{user_location()}: {name} of shape {x.shape}, with the padding: no window of "
                f"{' x '.join(map(str, spans))} fits."
            )
        self.x = x
        self.counts = tuple((extent - span) // step + 1 for extent, span, step in zip(extents, spans, steps))
        self.between = tuple(stride * step for stride, step in zip(strides, steps))
        self.inside = tuple(stride * space for stride, space in zip(strides, apart))


def _widths(
    name: str, padding: Any, sizes: Sequence[int], steps: Sequence[int], apart: Sequence[int]
) -> list[tuple[int, int]]:
    """How many elements are added before and after each axis."""
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ArgumentValueError(f"{user_location()}: padding is an int, 'same' or 'valid', not {padding!r}.")
        if padding == "same" and set(steps) != {1}:
            raise ArgumentValueError(f"{user_location()}: {name}: padding='same' needs a stride of 1.")
        totals = [space * (size - 1) * (padding == "same") for size, space in zip(sizes, apart)]
        return [(total // 2, total - total // 2) for total in totals]
    return [(width, width) for width in checks.pair("padding", padding, len(sizes), 0)]


def _convolution(
    name: str, x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    axes = int(name[-2])
    x, weight = require(x, name), require(weight, name)
    if x.ndim == axes + 1:
        return _convolution(name, x.expand_dims(0), weight, bias, stride, padding, dilation, groups).squeeze(0)
    groups = checks.count("groups", groups)
    outputs = weight.shape[0] if weight.ndim else 0
    if x.ndim != axes + 2 or weight.ndim != axes + 2 or x.shape[1] != weight.shape[1] * groups or outputs % groups:
        raise ShapeError(
            f"{user_location()}: {name} of shape {x.shape} with a weight of shape {weight.shape}"
            f"{f' and {groups} groups' if groups > 1 else ''}: (N, channels, {axes} axes) and (outputs, "
            f"{'channels / groups' if groups > 1 else 'channels'}, {axes} axes)."
        )
    windows = _Windows(name, x, weight.shape[2:], stride, padding, dilation, 0.0)
    x, (n, c, *_), (o, i, *inside) = windows.x, windows.x.strides, weight.strides
    channels, none = weight.shape[1], (0,) * axes
    batch, split = x.shape[0], outputs // groups
    outer = (batch, groups, split, *windows.counts)
    reading = (n, c * channels, 0, *windows.between, c, *windows.inside)
    weighing = (0, o * split, o, *none, i, *inside)
    if groups == 1:
        outer, reading, weighing = ((one[0], *one[2:]) for one in (outer, reading, weighing))
    found = reduction(
        name, REDUCTIONS["dot"], [(x, reading), (weight, weighing)], outer, weight.shape[1:],
        result_type("multiply", (x, weight)),
    ).reshape((batch, outputs, *windows.counts))  # fmt: skip
    if bias is None:
        return found
    if require(bias, name).shape != (outputs,):
        raise ShapeError(f"{user_location()}: {name} with {outputs} outputs and a bias of shape {bias.shape}.")
    return found + bias.reshape((outputs, *(1,) * axes))


def _transposed(
    name: str, x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, output_padding: Any,
    groups: int, dilation: Any,
) -> Tensor:  # fmt: skip
    axes = int(name[-2])
    x, weight = require(x, name), require(weight, name)
    if x.ndim == axes + 1:
        given = stride, padding, output_padding, groups, dilation
        return _transposed(name, x.expand_dims(0), weight, bias, *given).squeeze(0)
    if x.ndim != axes + 2 or weight.ndim != axes + 2 or x.shape[1] != weight.shape[0] or x.shape[1] % groups:
        raise ShapeError(
            f"{user_location()}: a transposed {name} of shape {x.shape} with a weight of shape {weight.shape} and "
            f"{groups} groups: (N, channels, {axes} axes) and (channels, outputs / groups, {axes} axes)."
        )
    steps, apart = checks.pair("stride", stride, axes), checks.pair("dilation", dilation, axes)
    left_out, more = checks.pair("padding", padding, axes, 0), checks.pair("output_padding", output_padding, axes, 0)
    for k, (step, space, less, added) in enumerate(zip(steps, apart, left_out, more)):
        x = _spread(x, 2 + k, step, space * (weight.shape[2 + k] - 1) - less, added)
    inputs, outputs, *window = weight.shape
    turned = weight.flip(tuple(range(2, axes + 2))).reshape((groups, inputs // groups, outputs, *window))
    turned = turned.swapaxes(1, 2).reshape((groups * outputs, inputs // groups, *window))
    return _convolution(name, x, turned, bias, 1, 0, dilation, groups)


def _spread(x: Tensor, axis: int, step: int, border: int, more: int) -> Tensor:
    """Elements `step` apart along an axis, with zeros between them, and a border; below 0, that many are left out."""
    extent = x.shape[axis]
    if step > 1:
        shape = x.shape
        widths = [(0, 0)] * (axis + 1) + [(0, step - 1)] + [(0, 0)] * (len(shape) - axis - 1)
        wide = joining.pad(x.expand_dims(axis + 1), widths)
        wide = wide.reshape((*shape[:axis], extent * step, *shape[axis + 1 :]))
        x = wide[along(axis, slice((extent - 1) * step + 1))]
    widths = [(0, 0)] * axis + [(max(border, 0), max(border + more, 0))] + [(0, 0)] * (x.ndim - axis - 1)
    x = joining.pad(x, widths)
    return x[along(axis, slice(max(-border, 0), x.shape[axis] - max(-border - more, 0)))]


def _pooled(
    name: str, x: Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any, axes: int, border: float
) -> tuple[_Windows, tuple[int, ...]]:
    sizes = checks.pair("kernel_size", kernel, axes)
    if require(x, name).ndim not in (axes + 1, axes + 2):
        raise ShapeError(f"{user_location()}: {name} of shape {x.shape}: (N, channels, {axes} axes), or without N.")
    return _Windows(name, x, sizes, sizes if stride is None else stride, padding, dilation, border), sizes


def _max_pool(name: str, x: Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any, axes: int) -> Tensor:
    windows, sizes = _pooled(name, x, kernel, stride, padding, dilation, axes, -math.inf)
    x = windows.x
    strides = (*x.strides[:-axes], *windows.between)
    shape = (*x.shape[:-axes], *windows.counts)
    if (count := size_of(sizes)) > _MOST_WRITTEN_OUT:
        view = x._view._replace(shape=(*shape, *sizes), strides=(*strides, *windows.inside))
        return reductions.max(x._part(view), axis=tuple(range(-axes, 0)))
    places = [0]
    for size, step in zip(sizes, windows.inside):
        places = [place + k * step for place in places for k in range(size)]
    first = access(name, x, strides, shape, differentiates=True)
    operands = [first._replace(offset=first.offset + place) for place in places]
    return elementwise_nest(name, greatest(count), operands, shape, x.dtype)


def _avg_pool(name: str, x: Tensor, kernel: Any, stride: Any, padding: Any, axes: int) -> Tensor:
    windows, sizes = _pooled(name, x, kernel, stride, padding, 1, axes, 0.0)
    x = windows.x
    strides = (*x.strides[:-axes], *windows.between, *windows.inside)
    outer = (*x.shape[:-axes], *windows.counts)
    found = reduction(name, REDUCTIONS["sum"], [(x, strides)], outer, sizes, result_type("divide", (x,)))
    return found / size_of(sizes)


class _Convolution(Module):
    """What Conv1d and Conv2d have in common."""

    _axes = 2

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True, *, dtype: Any = "float64", generator: Any = None,
    ) -> None:  # fmt: skip
        self.in_channels = checks.count("in_channels", in_channels)
        self.out_channels = checks.count("out_channels", out_channels)
        self.groups = checks.count("groups", groups)
        if in_channels % groups or out_channels % groups:
            raise ArgumentValueError(
                f"{user_location()}: {in_channels} and {out_channels} channels cannot be cut into {groups} groups."
            )
        self.kernel_size = checks.pair("kernel_size", kernel_size, self._axes)
        self.stride, self.padding, self.dilation = stride, padding, dilation
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        bound = 1.0 / math.sqrt(size_of(shape[1:]))
        self.weight = drawn(shape, bound, dtype, generator)
        self.bias = drawn((out_channels,), bound, dtype, generator) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """x: (N, in_channels, *extents), or without N."""
        x = require(x, type(self).__name__)
        if x.ndim not in (self._axes + 1, self._axes + 2) or x.shape[-self._axes - 1] != self.in_channels:
            raise ShapeError(
                f"{user_location()}: {checks.named(self)} of shape {x.shape}: "
                f"(N, {self.in_channels}, {self._axes} axes), or without N."
            )
        name = f"conv{self._axes}d"
        return _convolution(name, x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        usual = {"padding": 0, "dilation": 1, "groups": 1}
        given = {"padding": self.padding, "dilation": self.dilation, "groups": self.groups}
        more = "".join(f", {name}={given[name]!r}" for name in usual if given[name] != usual[name])
        more += "" if self.bias is not None else ", bias=False"
        return f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}{more}"


class Conv1d(_Convolution):
    """Windows along the last axis; arguments and attributes as those of `Conv2d`."""

    _axes = 1


class Conv2d(_Convolution):
    """Windows of the last two axes.

    Args:
        in_channels, out_channels: the second extents of what comes in and of what goes out.
        kernel_size, stride, padding, dilation, groups: see `functional.conv2d`.
        bias: whether there is one.
        dtype: of the parameters.
        generator: what initial weights are drawn by, uniform in [-1, 1) / sqrt(fan_in).

    Attributes:
        weight: (out_channels, in_channels / groups, *kernel_size).
        bias: (out_channels,), or None.
    """


class _Transposed(Module):
    """What ConvTranspose1d and ConvTranspose2d have in common."""

    _axes = 2

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1, *, dtype: Any = "float64",
        generator: Any = None,
    ) -> None:  # fmt: skip
        self.in_channels = checks.count("in_channels", in_channels)
        self.out_channels = checks.count("out_channels", out_channels)
        self.groups = checks.count("groups", groups)
        if in_channels % groups or out_channels % groups:
            raise ArgumentValueError(
                f"{user_location()}: {in_channels} and {out_channels} channels cannot be cut into {groups} groups."
            )
        self.kernel_size = checks.pair("kernel_size", kernel_size, self._axes)
        self.stride, self.padding, self.output_padding, self.dilation = stride, padding, output_padding, dilation
        shape = (in_channels, out_channels // groups, *self.kernel_size)
        bound = 1.0 / math.sqrt(size_of(shape[1:]))
        self.weight = drawn(shape, bound, dtype, generator)
        self.bias = drawn((out_channels,), bound, dtype, generator) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """x: (N, in_channels, *extents), or without N."""
        given = self.stride, self.padding, self.output_padding, self.groups, self.dilation
        return _transposed(f"conv{self._axes}d", x, self.weight, self.bias, *given)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"


class ConvTranspose1d(_Transposed):
    """See `functional.conv_transpose1d`; arguments and attributes as those of `Conv1d`."""

    _axes = 1


class ConvTranspose2d(_Transposed):
    """See `functional.conv_transpose2d`; arguments and attributes as those of `Conv2d`."""


class _Pooling(Module):
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, kernel_size if stride is None else stride, padding

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxPool1d(_Pooling):
    """See `functional.max_pool1d`."""

    def forward(self, x: Tensor) -> Tensor:
        return max_pool1d(x, self.kernel_size, self.stride, self.padding)


class MaxPool2d(_Pooling):
    """See `functional.max_pool2d`."""

    def forward(self, x: Tensor) -> Tensor:
        return max_pool2d(x, self.kernel_size, self.stride, self.padding)


class AvgPool1d(_Pooling):
    """See `functional.avg_pool1d`."""

    def forward(self, x: Tensor) -> Tensor:
        return avg_pool1d(x, self.kernel_size, self.stride, self.padding)


class AvgPool2d(_Pooling):
    """See `functional.avg_pool2d`."""

    def forward(self, x: Tensor) -> Tensor:
        return avg_pool2d(x, self.kernel_size, self.stride, self.padding)
