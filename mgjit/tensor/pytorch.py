"""PyTorch's names for what tensors have under other names: functions of a tensor, which are its methods as well.

Those that end in `_` assign to the elements of the tensor.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from ..errors import ShapeError, user_location
from . import creation, joining
from .devices import device as Device
from .dtypes import DTYPES, DType, bool_, dtype_of, float32, float64, int64
from .shapes import along, row_major
from .tensor import Tensor, require

#: PyTorch's names of element types, and their next relatives here.
DTYPES_OF_PYTORCH = {
    "float": float32, "double": float64, "long": int64, "int": int64, "short": int64, "int32": int64, "uint8": int64,
    "bool": bool_,
}  # fmt: skip

# ---- types and devices ----------------------------------------------------------------------------------------------


def to(x: Tensor, *given: Any, dtype: Any = None, device: Any = None, copy: builtins.bool = False) -> Tensor:
    """The tensor with another type, or that of another tensor; a device must be the processor.

    Args:
        given: a type, a device or a tensor.
        copy: whether it is copied in any case.
    """
    Device(device)
    for one in given:
        if isinstance(one, Tensor):
            dtype = one.dtype
        elif isinstance(one, (DType, builtins.type)) or (isinstance(one, str) and one in DTYPES):
            dtype = one
        elif not isinstance(one, builtins.bool):
            Device(one)
    made = x if dtype is None else x.astype(dtype)
    return made.copy() if copy and made is x else made


def _as_type(dtype: DType) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor) -> Tensor:
        return x.astype(dtype)

    function.__doc__ = f"The elements as {dtype.name}."
    return function


float, double, long, int, bool = map(_as_type, (float32, float64, int64, int64, bool_))


def type(x: Tensor, dtype: Any = None) -> Any:
    """The elements as another type; without one, the name of the type."""
    return str(x.dtype) if dtype is None else x.astype(dtype)


def type_as(x: Tensor, other: Tensor) -> Tensor:
    """The elements as the type of another tensor."""
    return x.astype(other.dtype)


def cpu(x: Tensor) -> Tensor:
    """The tensor itself."""
    return x


def device(x: Tensor) -> Device:
    """The only device."""
    return Device()


def is_cuda(x: Tensor) -> builtins.bool:
    """False."""
    return False


# ---- shapes ---------------------------------------------------------------------------------------------------------


def dim(x: Tensor) -> builtins.int:
    """The number of axes."""
    return x.ndim


def numel(x: Tensor) -> builtins.int:
    """The number of elements."""
    return builtins.int(x.size)


def stride(x: Tensor, axis: builtins.int | None = None) -> Any:
    """How far the next element of each axis is in memory."""
    return x.strides if axis is None else x.strides[axis]


def is_contiguous(x: Tensor) -> builtins.bool:
    """Whether the elements lie one after the other."""
    return x.strides == row_major(x.shape)


def contiguous(x: Tensor) -> Tensor:
    """The tensor itself if its elements lie one after the other, otherwise a copy."""
    return x if is_contiguous(x) else x.copy()


def reshape_as(x: Tensor, other: Tensor) -> Tensor:
    """The elements in the shape of another tensor."""
    return x.reshape(other.shape)


def expand_as(x: Tensor, other: Tensor) -> Tensor:
    """Repeated to the shape of another tensor."""
    return x.broadcast_to(other.shape)


def t(x: Tensor) -> Tensor:
    """A matrix transposed."""
    return x.T


def transpose(x: Tensor, first: Any = None, second: Any = None) -> Tensor:
    """Two axes exchanged; as in NumPy, the axes in another order that one tuple gives, or in reverse order."""
    if isinstance(first, (tuple, list)):
        return x.permute_dims(first)
    return x.T if first is None else x.swapaxes(first, second)


def narrow(x: Tensor, axis: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
    """A view of so many elements along an axis."""
    return x[along(axis % x.ndim, slice(start, start + length))]


def select(x: Tensor, axis: builtins.int, index: Any) -> Tensor:
    """A view of what is at one place along an axis."""
    return x[along(axis % x.ndim, index)]


def unbind(x: Tensor, axis: builtins.int = 0) -> tuple[Tensor, ...]:
    """Views of what is at each place along an axis."""
    return tuple(select(x, axis, k) for k in range(x.shape[axis]))


def trace(x: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix."""
    return joining.diagonal(x).sum()


# ---- autograd -------------------------------------------------------------------------------------------------------


def requires_grad_(x: Tensor, requires_grad: builtins.bool = True) -> Tensor:
    """Let gradients flow to the tensor, or no longer."""
    x.requires_grad = requires_grad
    return x


def data(x: Tensor) -> Tensor:
    """The same elements, through which no gradient flows; assigning to it assigns to them."""
    return x.detach()


def assign_data(x: Tensor, other: Any) -> None:
    """Assign to the elements."""
    source = other if isinstance(other, Tensor) else creation.asarray(other)
    if source.shape != x.shape:
        raise ShapeError(f"{user_location()}: data of shape {source.shape} for a tensor of shape {x.shape}.")
    if source._memory is not x._memory or source._view != x._view:
        x.detach()[...] = source.detach()


def new_zeros(x: Tensor, *shape: Any, dtype: Any = None) -> Tensor:
    """Zeros of the type of a tensor."""
    given = shape[0] if len(shape) == 1 else shape
    return creation.zeros(given, dtype=x.dtype if dtype is None else dtype_of(dtype))


def new_ones(x: Tensor, *shape: Any, dtype: Any = None) -> Tensor:
    """Ones of the type of a tensor."""
    return new_zeros(x, *shape, dtype=dtype) + 1


# ---- comparisons of whole tensors -----------------------------------------------------------------------------------


def allclose(
    x: Tensor, y: Tensor, rtol: builtins.float = 1e-5, atol: builtins.float = 1e-8, equal_nan: builtins.bool = False
) -> builtins.bool:
    """Whether all elements are nearly equal: abs(x - y) <= atol + rtol * abs(y)."""
    x, y = require(x, "allclose"), require(y, "allclose")
    near = (abs(x - y) <= abs(y) * rtol + atol) | (x == y)
    if equal_nan:
        near = near | ((x != x) & (y != y))
    return builtins.bool(near.all())


def equal(x: Tensor, y: Tensor) -> builtins.bool:
    """Whether shapes and all elements are equal."""
    return x.shape == y.shape and builtins.bool((x == y).all())


# ---- tables ---------------------------------------------------------------------------------------------------------


def cat(tensors: Any, axis: builtins.int = 0) -> Tensor:
    """Tensors one after the other along an axis."""
    return joining.concat(tensors, axis)


def _uniform(x: Tensor, low: Any = 0.0, high: Any = 1.0, *, generator: Any = None) -> Tensor:
    return creation.uniform(x.shape, low, high, dtype=x.dtype, generator=generator)


def _normal(x: Tensor, mean: Any = 0.0, std: Any = 1.0, *, generator: Any = None) -> Any:
    return creation.randn(x.shape, dtype=x.dtype, generator=generator) * std + mean


#: Names of methods that are there under another name.
OTHER_NAMES = {
    "view": "reshape", "view_as": "reshape_as", "permute": "permute_dims", "unsqueeze": "expand_dims",
    "expand": "broadcast_to", "ndimension": "dim", "nelement": "numel", "ravel": "flatten", "movedim": "moveaxis",
    "clamp": "clip", "pow": "power", "multiply": "mul", "subtract": "sub", "divide": "div", "true_divide": "div",
    "negative": "neg", "absolute": "abs", "mm": "matmul", "bmm": "matmul", "mv": "matmul", "dot": "matmul",
    "tile": "repeat", "greater": "gt", "less": "lt",
}  # fmt: skip
#: Methods that assign what others return.
_ASSIGNING = (
    "add", "sub", "mul", "div", "pow", "neg", "abs", "clamp", "exp", "sqrt", "tanh", "sigmoid", "relu", "masked_fill",
    "scatter", "scatter_add", "index_add", "floor", "round", "remainder",
)  # fmt: skip
#: What is assigned by others, made of the tensor and further arguments.
_ASSIGNED: dict[str, Callable[..., Any]] = {
    "zero_": lambda x: False if x.dtype is bool_ else 0,
    "fill_": lambda x, value: value,
    "copy_": lambda x, source: require(source, "copy_").detach().astype(x.dtype),
    "uniform_": _uniform,
    "normal_": _normal,
}


def assigning_methods() -> dict[str, Callable[..., Tensor]]:
    """Methods that assign to the elements of a tensor, and return it."""
    found = dict(_ASSIGNED)
    for name in _ASSIGNING:
        found[f"{name}_"] = getattr(Tensor, name)
    return {name: _assigning(name, function) for name, function in found.items()}


def _assigning(name: str, function: Callable[..., Any]) -> Callable[..., Tensor]:
    def method(x: Tensor, *given: Any, **named: Any) -> Tensor:
        x[...] = function(x, *given, **named)
        return x

    method.__name__ = method.__qualname__ = name
    method.__doc__ = "Assign to the elements what the method without `_` returns."
    return method


METHODS: dict[str, Callable[..., Any]] = {
    "float": float, "double": double, "long": long, "int": int, "bool": bool,
    **{function.__name__: function for function in (
        to, type, type_as, cpu, dim, numel, stride, is_contiguous, contiguous, reshape_as, expand_as, t, transpose,
        narrow, select, unbind, trace, requires_grad_, new_zeros, new_ones,
    )},
}  # fmt: skip
