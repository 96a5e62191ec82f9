"""Tensors: arrays of scalars whose operations are loop nests, eager or recorded whole in a compiled step."""

from .creation import (
    arange,
    asarray,
    eye,
    full,
    full_like,
    one_hot,
    ones,
    ones_like,
    rand,
    randn,
    uniform,
    zeros,
    zeros_like,
)
from .dtypes import DType, bool_, float32, float64, int64
from .elementwise import (
    astype,
    ceil,
    clip,
    cos,
    exp,
    floor,
    gelu,
    leaky_relu,
    log,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    power,
    reciprocal,
    relu,
    sigmoid,
    silu,
    sin,
    softplus,
    sqrt,
    square,
    tanh,
    trunc,
    where,
)
from .joining import concat, pad, split, stack, take, take_along_axis
from .modes import enable_grad, no_grad
from .products import einsum, matmul, outer, tensordot, vecdot
from .reductions import (
    all,
    any,
    argmax,
    argmin,
    log_softmax,
    logsumexp,
    max,
    mean,
    min,
    prod,
    softmax,
    std,
    sum,
    var,
)
from .tensor import Tensor, add_methods
from .transforms import grad, jacobian, value_and_grad

_METHODS = (
    exp, log, tanh, sqrt, relu, sigmoid, silu, softplus, gelu, square, reciprocal, floor, ceil, trunc, sin, cos, clip,
    maximum, minimum, matmul, sum, prod, max, min, any, all, argmax, argmin, mean, var, std, logsumexp, softmax,
    log_softmax, take, split, leaky_relu,
)  # fmt: skip
add_methods({function.__name__: function for function in _METHODS})
add_methods({
    "__matmul__": matmul, "__rmatmul__": lambda self, other: matmul(other, self), "__pow__": power,
    "__rpow__": lambda self, other: power(other, self),
})  # fmt: skip

__all__ = [
    "DType", "Tensor", "all", "any", "arange", "argmax", "argmin", "asarray", "astype", "bool_", "ceil", "clip",
    "concat", "cos", "einsum", "enable_grad", "exp", "eye", "float32", "float64", "floor", "full", "full_like", "gelu",
    "grad", "int64", "jacobian", "leaky_relu", "log", "log_softmax", "logical_and", "logical_not", "logical_or",
    "logsumexp", "matmul", "max", "maximum", "mean", "min", "minimum", "no_grad", "one_hot", "ones", "ones_like",
    "outer", "pad", "power", "prod", "rand", "randn", "reciprocal", "relu", "sigmoid", "silu", "sin", "softmax",
    "softplus", "split", "sqrt", "square", "stack", "std", "sum", "take", "take_along_axis", "tanh", "tensordot",
    "trunc", "uniform", "value_and_grad", "var", "vecdot", "where", "zeros", "zeros_like",
]  # fmt: skip
