"""Tensors: arrays of numbers, computed at once, or compiled as part of a step.

Functions accept the argument names of NumPy and of PyTorch, and most are methods of tensors, too.  The module itself
may be called: `mgjit.tensor([1.0, 2.0])` makes a tensor.
"""

import sys
from typing import TYPE_CHECKING, Any

from . import creation, elementwise, joining, ordering, products, pytorch, reductions, scans, scattering
from . import transforms as func
from .creation import Generator
from .custom import custom_gradient
from .devices import cuda, device
from .dtypes import DType, bool_, float32, float64, get_default_dtype, int64, set_default_dtype
from .modes import enable_grad, no_grad
from .spellings import CallableModule, each_spelled, missing, spelled
from .tensor import Tensor, add_methods
from .transforms import grad, jacobian, value_and_grad, vmap

# ---- functions ------------------------------------------------------------------------------------------------------

zeros, ones, empty, rand, randn = (
    spelled(function, several=0) for function in (
        creation.zeros, creation.ones, creation.empty, creation.rand, creation.randn
    )
)  # fmt: skip
(
    asarray, from_numpy, full, zeros_like, ones_like, full_like, empty_like, rand_like, randn_like, arange, linspace,
    eye, one_hot, uniform, randint, bernoulli, normal,
) = each_spelled(
    creation.asarray, creation.from_numpy, creation.full, creation.zeros_like, creation.ones_like, creation.full_like,
    creation.empty_like, creation.rand_like, creation.randn_like, creation.arange, creation.linspace, creation.eye,
    creation.one_hot, creation.uniform, creation.randint, creation.bernoulli, creation.normal,
)  # fmt: skip
manual_seed = creation.manual_seed
(
    exp, log, tanh, sqrt, relu, sigmoid, silu, softplus, gelu, square, reciprocal, floor, ceil, trunc, sin, cos, tan,
    asin, acos, atan, sinh, cosh, log1p, expm1, log2, log10, erf, rsqrt, round, sign, isnan, isinf, isfinite,
    logical_not, abs, neg, leaky_relu, clip,
) = each_spelled(
    elementwise.exp, elementwise.log, elementwise.tanh, elementwise.sqrt, elementwise.relu, elementwise.sigmoid,
    elementwise.silu, elementwise.softplus, elementwise.gelu, elementwise.square, elementwise.reciprocal,
    elementwise.floor, elementwise.ceil, elementwise.trunc, elementwise.sin, elementwise.cos, elementwise.tan,
    elementwise.asin, elementwise.acos, elementwise.atan, elementwise.sinh, elementwise.cosh, elementwise.log1p,
    elementwise.expm1, elementwise.log2, elementwise.log10, elementwise.erf, elementwise.rsqrt, elementwise.round,
    elementwise.sign, elementwise.isnan, elementwise.isinf, elementwise.isfinite, elementwise.logical_not,
    elementwise.abs, elementwise.neg, elementwise.leaky_relu, elementwise.clip,
)  # fmt: skip
(
    add, sub, mul, div, power, remainder, fmod, floor_divide, maximum, minimum, eq, ne, lt, le, gt, ge, logical_and,
    logical_or, where, masked_fill, astype,
) = each_spelled(
    elementwise.add, elementwise.sub, elementwise.mul, elementwise.div, elementwise.power, elementwise.remainder,
    elementwise.fmod, elementwise.floor_divide, elementwise.maximum, elementwise.minimum, elementwise.eq,
    elementwise.ne, elementwise.lt, elementwise.le, elementwise.gt, elementwise.ge, elementwise.logical_and,
    elementwise.logical_or, elementwise.where, elementwise.masked_fill, elementwise.astype,
)  # fmt: skip
max, min, var, std = (
    spelled(function, of_pytorch) for function, of_pytorch in (
        (reductions.max, reductions.max_of_pytorch), (reductions.min, reductions.min_of_pytorch),
        (reductions.var, reductions.var_of_pytorch), (reductions.std, reductions.std_of_pytorch),
    )
)  # fmt: skip
sum, prod, mean, any, all, argmax, argmin, amax, amin, norm, logsumexp, softmax, log_softmax = each_spelled(
    reductions.sum, reductions.prod, reductions.mean, reductions.any, reductions.all, reductions.argmax,
    reductions.argmin, reductions.amax, reductions.amin, reductions.norm, reductions.logsumexp, reductions.softmax,
    reductions.log_softmax,
)  # fmt: skip
cumsum, cumprod = each_spelled(scans.cumsum, scans.cumprod)
matmul, einsum, outer, tensordot, vecdot = each_spelled(
    products.matmul, products.einsum, products.outer, products.tensordot, products.vecdot,
)  # fmt: skip
(
    concat, stack, pad, roll, tril, triu, diagonal, take, take_along_axis, gather, index_select, scatter, scatter_add,
    index_add,
) = each_spelled(
    joining.concat, joining.stack, joining.pad, joining.roll, joining.tril, joining.triu, joining.diagonal,
    joining.take, joining.take_along_axis, joining.gather, joining.index_select, scattering.scatter,
    scattering.scatter_add, scattering.index_add,
)  # fmt: skip
repeat = spelled(joining.repeat, several=1)
repeat_interleave = spelled(joining.repeat_interleave)
split, chunk = each_spelled(joining.split, joining.chunk)
sort, topk = each_spelled(ordering.sort, ordering.topk)
argsort, randperm, multinomial = each_spelled(ordering.argsort, ordering.randperm, ordering.multinomial)
allclose, equal = each_spelled(pytorch.allclose, pytorch.equal)

# ---- methods --------------------------------------------------------------------------------------------------------

#: Functions that are methods as well.
_METHODS = (
    exp, log, tanh, sqrt, relu, sigmoid, silu, softplus, gelu, square, reciprocal, floor, ceil, trunc, sin, cos, tan,
    asin, acos, atan, sinh, cosh, log1p, expm1, log2, log10, erf, rsqrt, round, sign, isnan, isinf, isfinite,
    logical_not, abs, neg, leaky_relu, clip, add, sub, mul, div, power, remainder, fmod, floor_divide, maximum,
    minimum, eq, ne, lt, le, gt, ge, logical_and, logical_or, masked_fill, matmul, outer, sum, prod, max, min, any,
    all, argmax, argmin, amax, amin, mean, var, std, norm, logsumexp, softmax, log_softmax, cumsum, cumprod, take,
    split, chunk, roll, tril, triu, diagonal, gather, index_select, scatter, scatter_add, index_add, repeat,
    repeat_interleave, sort, argsort, topk, multinomial, allclose, equal, bernoulli,
)  # fmt: skip
add_methods({function.__name__: function for function in _METHODS})
add_methods({name: spelled(getattr(Tensor, name)) for name in (
    "flatten", "swapaxes", "moveaxis", "expand_dims", "squeeze", "unfold", "backward",
)})  # fmt: skip
add_methods({name: spelled(getattr(Tensor, name), several=1) for name in ("permute_dims", "broadcast_to", "flip")})
add_methods({name: spelled(function) for name, function in pytorch.METHODS.items()})
add_methods({name: getattr(Tensor, ours) for name, ours in pytorch.OTHER_NAMES.items()})
add_methods(pytorch.assigning_methods())
add_methods({
    "__matmul__": matmul, "__rmatmul__": lambda self, other: matmul(other, self), "__pow__": power,
    "__rpow__": lambda self, other: power(other, self),
    "data": property(pytorch.data, pytorch.assign_data, None, pytorch.data.__doc__),
    "device": property(pytorch.device), "is_cuda": property(pytorch.is_cuda),
})  # fmt: skip

#: Methods that are functions as well.
_FUNCTIONS = (
    "flatten", "swapaxes", "moveaxis", "movedim", "squeeze", "unsqueeze", "flip", "reshape", "permute", "transpose",
    "broadcast_to", "clone", "detach", "clamp", "pow", "multiply", "subtract", "divide", "true_divide", "negative",
    "absolute", "mm", "bmm", "mv", "dot", "tile", "narrow", "select", "unbind", "trace", "numel", "t", "expand_dims",
    "permute_dims",
)  # fmt: skip
globals().update({name: getattr(Tensor, name) for name in _FUNCTIONS})
cat, concatenate = (spelled(pytorch.cat) for _ in range(2))
globals().update(pytorch.DTYPES_OF_PYTORCH)
inference_mode = no_grad

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """PyTorch's other names."""

else:

    def __getattr__(name: str) -> Any:
        """What programs ask PyTorch's main module for, from where it is; otherwise an error says what to write."""
        if name in ("nn", "optim", "distributions", "compile", "save", "load"):
            return getattr(sys.modules["mgjit"], name)  # public.py is above all folders
        raise missing(__name__, globals(), name)


sys.modules[__name__].__class__ = CallableModule
globals()["tensor"] = sys.modules[__name__]  # `mgjit.tensor.tensor([1.0, 2.0])` makes one as well

__all__ = [
    "DType", "Generator", "Tensor", "abs", "acos", "add", "all", "allclose", "amax", "amin", "any", "arange", "argmax",
    "argmin", "argsort", "asarray", "asin", "astype", "atan", "bernoulli", "bool_", "cat", "ceil", "chunk", "clip",
    "concat", "cos", "cosh", "cuda", "cumprod", "cumsum", "custom_gradient", "device", "diagonal", "div", "einsum",
    "empty", "empty_like", "enable_grad", "eq", "equal", "erf", "exp", "expm1", "eye", "float32", "float64", "floor",
    "floor_divide", "fmod", "from_numpy", "full", "full_like", "func", "gather", "ge", "gelu", "get_default_dtype",
    "grad", "gt", "index_add", "index_select", "inference_mode", "int64", "isfinite", "isinf", "isnan", "jacobian",
    "le", "leaky_relu", "linspace", "log", "log1p", "log2", "log10", "log_softmax", "logical_and", "logical_not",
    "logical_or", "logsumexp", "lt", "manual_seed", "masked_fill", "matmul", "max", "maximum", "mean", "min", "minimum",
    "mul", "multinomial", "ne", "neg", "no_grad", "norm", "normal", "one_hot", "ones", "ones_like", "outer", "pad",
    "power", "prod", "rand", "rand_like", "randint", "randn", "randn_like", "randperm", "reciprocal", "relu",
    "remainder", "repeat", "repeat_interleave", "roll", "round", "rsqrt", "scatter", "scatter_add", "set_default_dtype",
    "sigmoid", "sign", "silu", "sin", "sinh", "softmax", "softplus", "sort", "split", "sqrt", "square", "stack", "std",
    "sub", "sum", "take", "take_along_axis", "tan", "tanh", "tensordot", "topk", "tril", "triu", "trunc", "uniform",
    "value_and_grad", "var", "vecdot", "vmap", "where", "zeros", "zeros_like",
]  # fmt: skip
