"""One table of everything that is differentiable, and what each row is compared with.

A row is a public name of `mgjit.tensor`, a method or operator of `Tensor`, a function of `nn.functional`, or a layer of
tests/nn/cases.py, with tensors for it.  A case is a row in one precision, of one view of what is differentiated by,
with a second operand of some type, computed in one way; results and gradients are compared

- with differences, in float64 (by Python loops, the definition of everything);
- of float32 with those of float64, nearly;
- of eager C, and of compiled steps on each backend, with those of Python loops, bit for bit.

`python -m tests.tensor.table` computes all cases, or those of rows that are named, `... table 71` one of 71 (a prime,
so that all ways have their turn), the tests those of a few views for each row.  PyTorch's numbers are those of
bench/tensor_gradients.py.
"""

from __future__ import annotations

import math
import os
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import mgjit
from mgjit import nn
from mgjit import tensor as T
from mgjit.nn import functional as F
from mgjit.tensor import pytorch
from tests.nn import cases as layers
from tests.tensor.cases import numbers


class Row(NamedTuple):
    """How something public is called.

    Attributes:
        call: (it, tensors) -> a tensor, or several.
        shapes: of the tensors; (shape, classes) is one of whole numbers.
        domain: "any", "positive" (from 0.3 on), or "unit" (between 0.1 and 0.9).
        elementwise: whether operands of any shape will do, also without elements or axes.
        mixes: whether the second operand may be of whole numbers, of bools, or a Python number.
        in_steps: whether a compiled step can have it.
    """

    call: Callable[..., Any]
    shapes: tuple[Any, ...]
    domain: str = "any"
    elementwise: bool = False
    mixes: bool = False
    in_steps: bool = True


A, B, M = (2, 3), (3,), (3, 4)


def _of(*given: Any, **options: Any) -> Callable[..., Any]:
    return lambda f, x: f(x, *given, **options)


_unary = Row(lambda f, x: f(x), (A,), elementwise=True)
_positive = _unary._replace(domain="positive")
_binary = Row(lambda f, x, y: f(x, y), (A, B), elementwise=True, mixes=True)
_reduction = Row(lambda f, x: (f(x), f(x, axis=0), f(x, axis=-1, keepdims=True)), (M,))
_whole = Row(lambda f, x: (f(x), f(x, axis=(0, 1)), f(x, axis=1, keepdims=True)), (M,))
_same = Row(lambda f, x, y: f(x, y), (A, A), mixes=True)
_labels = Row(lambda f, x, y: (f(x, y), f(x, y, reduction="none")), ((4, 3), ((4,), 3)))

OF_TENSOR = {
    **dict.fromkeys(("exp", "tanh", "relu", "sigmoid", "silu", "softplus", "square", "sin", "cos"), _unary),
    **dict.fromkeys(("floor", "ceil", "trunc", "round", "sign", "abs", "neg"), _unary),
    **dict.fromkeys(("atan", "sinh", "cosh", "erf", "expm1"), _unary),
    **dict.fromkeys(("log", "sqrt", "reciprocal", "log1p", "log2", "log10", "rsqrt"), _positive),
    **dict.fromkeys(("tan", "asin", "acos"), _unary._replace(domain="unit")),
    "gelu": _unary._replace(call=lambda f, x: (f(x), f(x, approximate="tanh"))),
    **dict.fromkeys(("add", "sub"), _binary._replace(call=lambda f, x, y: (f(x, y), f(x, y, alpha=2.0)))),
    "mul": _binary,
    **dict.fromkeys(("div", "remainder", "fmod", "floor_divide"), _binary._replace(domain="positive")),
    "masked_fill": _unary._replace(call=lambda f, x: f(x, x > 0.0, 2.0)),
    **dict.fromkeys(("cumsum", "cumprod"), Row(lambda f, x: (f(x), f(x, axis=1), f(x, 0)), (M,))),
    "sort": Row(lambda f, x: (f(x), f(x, axis=0, descending=True)), (M,)),
    "topk": Row(lambda f, x: (f(x, 2), f(x, 1, axis=0), f(x, 3, largest=False)), (M,)),
    "norm": Row(lambda f, x: (f(x), f(x, axis=1), f(x, 1, 0), f(x, 3.0, -1, True), f(x, math.inf, 0)), (M,)),
    "roll": Row(lambda f, x: (f(x, 1, axis=0), f(x, -3), f(x, (1, 2), axis=(0, 1))), (M,)),
    **dict.fromkeys(("tril", "triu"), Row(lambda f, x: (f(x), f(x, diagonal=1), f(x[None], -1)), (M,))),
    "diagonal": Row(lambda f, x: (f(x) * 2.0, f(x, 1), f(x, -1)), (M,)),
    "chunk": Row(lambda f, x: f(x, 3, axis=1), (M,)),
    "repeat": Row(lambda f, x: (f(x, 2, 1), f(x, (2, 1, 3))), (A,)),
    "repeat_interleave": Row(lambda f, x: (f(x, 2), f(x, 3, axis=0)), (A,)),
    "cat": Row(lambda f, x, y: f([x, y * 2.0], 1), (A, (2, 1))),
    "gather": Row(lambda f, x: (f(x, 1, T.asarray([[1, 1], [0, 3]])), f(x, axis=0, indices=T.asarray([[2]]))), (M,)),
    "index_select": Row(lambda f, x: f(x, 1, T.asarray([2, 0, 2])), (M,)),
    "scatter": Row(
        lambda f, x, y: (f(x, 1, T.asarray([[1, 3], [0, 2], [2, 2]]), y), f(x, 0, T.asarray([[2, 0]]), value=1.5)),
        (M, (3, 2)),
    ),
    "scatter_add": Row(lambda f, x, y: f(x, 1, T.asarray([[1, 3], [0, 2], [2, 2]]), y), (M, (3, 2))),
    "index_add": Row(
        lambda f, x, y: (f(x, 0, T.asarray([2, 2]), y), f(x, 0, T.asarray([0, 1]), y, alpha=2.0)), (M, (2, 4))
    ),
    "leaky_relu": _unary._replace(call=_of(0.1)),
    "clip": _unary._replace(call=_of(-0.5, 0.7)),
    **dict.fromkeys(("maximum", "minimum"), _binary),
    "power": _binary._replace(domain="positive"),
    "where": _binary._replace(call=lambda f, x, y: f(x < y, x * 2.0, y), shapes=(A, B)),
    "astype": Row(lambda f, x: f(f(x, _other_type(x)) * 2.0, x.dtype), (A,), elementwise=True, in_steps=False),
    "asarray": Row(lambda f, x: f([x[0], x[1] * 2.0]), (A,)),
    **dict.fromkeys(("sum", "mean", "prod"), _whole),
    **dict.fromkeys(("max", "min", "amax", "amin", "logsumexp"), _reduction),
    **dict.fromkeys(("var", "std"), _whole._replace(call=lambda f, x: (f(x), f(x, axis=1, correction=1)))),
    **dict.fromkeys(("softmax", "log_softmax"), Row(lambda f, x: (f(x), f(x, axis=0)), (M,))),
    "matmul": Row(lambda f, x, y: (f(x, y), f(x[0], y), f(y.mT, x[1])), (A, M)),
    "einsum": Row(lambda f, x, y: (f("ij,jk->ki", x, y), f("ij,jk->", x, y), f("ij->j", x), f("...i->...", x)), (A, M)),
    "vecdot": Row(lambda f, x, y: f(x, y), (A, A)),
    "outer": Row(lambda f, x, y: f(x, y), (B, (4,))),
    "tensordot": Row(lambda f, x, y: (f(x, y, axes=1), f(x, x, axes=2)), (A, M)),
    "concat": Row(lambda f, x, y: f([x, y * 2.0, x], axis=0), (A, (1, 3))),
    "stack": Row(lambda f, x, y: f([x, y], axis=1), (A, A)),
    "split": Row(lambda f, x: f(x, [1, 3], axis=1), (M,)),
    "pad": Row(lambda f, x: f(x, [(1, 0), (2, 1)], 0.5), (A,)),
    "take": Row(lambda f, x: (f(x, [2, 0, 2]), f(x, 1, axis=1), f(x, T.asarray([[0], [0]]))), (M,)),
    "take_along_axis": Row(lambda f, x: f(x, T.asarray([[1, 1], [0, 3], [2, 2]]), axis=1), (M,)),
    "grad": Row(lambda f, x: f(lambda z: (z**3).sum() + z.prod())(x), ((3,),)),
    "value_and_grad": Row(lambda f, x: f(lambda z: (z.sin() * z).sum())(x), (A,)),
    "jacobian": Row(lambda f, x: f(lambda z: z.sum(axis=0) * z[0])(x), (A,)),
    "vmap": Row(lambda f, x: (f(lambda row: (row * row.sin()).sum())(x), f(lambda row: row * 2.0, 1)(x)), (M,)),
    "custom_gradient": Row(lambda f, x: f(lambda z: (z * z, lambda g: g * z * 2.0))(x), (A,)),
}  # fmt: skip
METHODS = {
    **dict.fromkeys(("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__"), _binary),
    **dict.fromkeys(("__truediv__", "__rtruediv__", "__pow__", "__rpow__"), _binary._replace(domain="positive")),
    **dict.fromkeys(("__mod__", "__rmod__", "__floordiv__", "__rfloordiv__"), _binary._replace(domain="positive")),
    **dict.fromkeys(("__neg__", "__pos__", "__abs__", "copy", "clone", "cpu", "contiguous", "to"), _unary),
    **dict.fromkeys(("float", "double", "type", "type_as"), Row(
        lambda f, x: f(x, *([x] if f is T.Tensor.type_as else [x.dtype] if f is T.Tensor.type else [])).astype(x.dtype),
        (A,), in_steps=False,
    )),
    "t": Row(lambda f, x: f(x) * f(x).exp(), (A,)),
    "transpose": Row(lambda f, x: f(x, 0, 1).exp() + f(x), (A,)),
    "narrow": Row(lambda f, x: f(x, 1, 1, 2) * 2.0, (M,)),
    "select": Row(lambda f, x: f(x, 1, 2) * 2.0, (M,)),
    "unbind": Row(lambda f, x: f(x), (A,)),
    "trace": Row(lambda f, x: f(x), (M,)),
    **dict.fromkeys(("reshape_as", "expand_as"), Row(lambda f, x: f(x, x * 0.5) * 2.0, (A,))),
    **dict.fromkeys(("flip", "T"), Row(lambda f, x: f(x) * f(x).exp(), (A,))),
    "__matmul__": Row(lambda f, x, y: f(x, y), (A, M)),
    "__rmatmul__": Row(lambda f, x, y: f(x, y), (M, A)),
    "__getitem__": Row(
        lambda f, x: (
            f(x, (slice(1, None), slice(None, None, -2))), f(x, ([0, 2, 0], [1, -1, 1])), f(x, (..., None, 0)),
            f(x, (T.asarray([[1], [0]]), slice(1, 3))), f(x, [True, False, True]),
        ),
        (M,),
    ),
    "__iter__": Row(lambda f, x: [row * (k + 1.0) for k, row in enumerate(f(x))], (A,)),
    "astype": Row(lambda f, x: f(x, x.dtype) * 2.0, (A,), elementwise=True),
    "reshape": Row(lambda f, x: (f(x, 4, 3) * 2.0, f(x.mT, -1)), (M,)),
    "flatten": Row(lambda f, x: f(x, 1), ((2, 3, 2),)),
    "permute_dims": Row(lambda f, x: f(x, (2, 0, 1)).exp(), ((2, 3, 2),)),
    "swapaxes": Row(lambda f, x: f(x, 0, 1).exp(), (A,)),
    "moveaxis": Row(lambda f, x: f(x, 0, -1).exp(), ((2, 3, 2),)),
    "mT": Row(lambda f, x: f(x) * f(x), (A,)),
    "expand_dims": Row(lambda f, x: f(x, 1) * 2.0, (A,), elementwise=False),
    "squeeze": Row(lambda f, x: f(x, 1) * f(x), ((2, 1, 3),)),
    "broadcast_to": Row(lambda f, x: f(x, (4, 2, 3)) * 1.5, (A,)),
    "unfold": Row(lambda f, x: f(x, 1, 2, 1) ** 2, (M,)),
}  # fmt: skip
OF_FUNCTIONAL = {
    **dict.fromkeys(("elu", "hardtanh", "logsigmoid", "mish", "relu6"), _unary),
    **dict.fromkeys(("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "hinge_loss"),
                    _same._replace(call=lambda f, x, y: (f(x, y), f(x, y, reduction="none")), mixes=False)),
    "binary_cross_entropy": _same._replace(domain="unit", mixes=False),
    "binary_cross_entropy_with_logits": _same._replace(domain="unit", mixes=False),
    "cross_entropy": _labels, "nll_loss": _labels,
    "avg_pool1d": Row(_of(2), ((2, 2, 5),)), "max_pool1d": Row(_of(3, 2, 1), ((2, 2, 5),)),
    "avg_pool2d": Row(_of(3, 1, 1), ((2, 2, 5, 4),)), "max_pool2d": Row(_of((3, 2), 1, 1), ((2, 2, 5, 4),)),
    "conv1d": Row(lambda f, x, w: f(x, w, padding=1), ((2, 2, 5), (3, 2, 3))),
    "conv2d": Row(lambda f, x, w: f(x, w, stride=(2, 1)), ((1, 2, 5, 4), (2, 2, 3, 2))),
    "linear": Row(lambda f, x, w: f(x, w), (A, (4, 3))),
    "embedding": Row(lambda f, w: f(T.asarray([[0, 2], [2, 2]]), w), (M,)),
    "dropout": Row(lambda f, x: f(x, 0.5, training=False), (A,)),
    "batch_norm": Row(lambda f, x: f(x, None, None, training=True), ((4, 3),)),
    "layer_norm": Row(lambda f, x: f(x, (3,)), (A,)),
    "rms_norm": Row(lambda f, x: f(x, (3,)), (A,)),
    "conv_transpose1d": Row(lambda f, x, w: f(x, w, stride=2, padding=1), ((2, 2, 4), (2, 3, 3))),
    "conv_transpose2d": Row(lambda f, x, w: f(x, w, stride=(2, 1)), ((1, 2, 3, 2), (2, 2, 2, 3))),
    "adaptive_avg_pool1d": Row(_of(2), ((2, 2, 5),)), "adaptive_avg_pool2d": Row(_of((2, 1)), ((2, 2, 5, 4),)),
    "interpolate": Row(
        lambda f, x: (f(x, scale_factor=2), f(x, size=3, mode="bilinear", align_corners=True)), ((1, 2, 3, 2),)
    ),
    "group_norm": Row(lambda f, x: f(x, 2), ((2, 4, 3),)),
    "kl_div": _same._replace(call=lambda f, x, y: (f(x, y), f(y, x, log_target=True)), domain="unit", mixes=False),
    "normalize": Row(lambda f, x: (f(x), f(x, axis=0)), (A,)),
    "cosine_similarity": _same._replace(mixes=False),
    "pad": Row(lambda f, x: (f(x, (1, 2)), f(x, (1, -1, 0, 1), value=0.5), f(x, (1, 1), mode="reflect")), (A,)),
    "scaled_dot_product_attention": Row(lambda f, q, k, v: f(q, k, v), ((2, 2, 3), (2, 3, 3), (2, 3, 2))),
}  # fmt: skip

#: What has no derivative, and why.
NOT_DIFFERENTIABLE = {
    "types": "DType Tensor bool_ float32 float64 int64 dtype device cuda is_cuda func Generator",
    "of whole numbers or bools": "all any argmax argmin argsort logical_and logical_not logical_or one_hot __and__ "
    "__or__ __invert__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ eq ne lt le gt ge isnan isinf isfinite allclose equal "
    "int long bool",
    "made of numbers": "arange bernoulli empty empty_like eye from_numpy full full_like linspace manual_seed "
    "multinomial new_ones new_zeros normal ones ones_like rand rand_like randint randn randn_like randperm uniform "
    "zeros zeros_like",
    "types by default": "get_default_dtype set_default_dtype",
    "modes, and what is known of a tensor": "enable_grad no_grad inference_mode backward grad data detach is_leaf "
    "requires_grad requires_grad_ zero_grad shape size dim numel stride is_contiguous ndim strides __len__ __hash__",
    "numbers for Python": "item numpy tolist tolist_flat __array__ __array_ufunc__ __bool__ __buffer__ __float__ "
    "__format__ __index__ __int__",
    "assign, where no gradient may be lost": "__setitem__ __iadd__ __isub__ __imul__ __itruediv__ "
    + " ".join(pytorch.assigning_methods()),
}  # fmt: skip
#: Of object, pickling and text.
_OF_OBJECTS = {
    *vars(object),
    "__annotations__",
    "__copy__",
    "__deepcopy__",
    "__firstlineno__",
    "__getattr__",
    "__module__",
    "__slots__",
    "__static_attributes__",
    "__weakref__",
}


def missing() -> set[str]:
    """Public names that no row has, and which are not said to have no derivative."""
    without = set(" ".join(NOT_DIFFERENTIABLE.values()).split())
    methods = {
        name for name in dir(T.Tensor)
        if (not name.startswith("_") or name.endswith("__")) and getattr(T.Tensor, name) is not getattr(T, name, None)
    }  # fmt: skip
    methods -= {name for name in methods - METHODS.keys() if id(getattr(T.Tensor, name)) in _functions()}
    shared = {name for name in F.__all__ if getattr(F, name) is getattr(T, name, None)}
    made = {type(part) for name in layers.CASES for part in _modules(layers.made(name, 1)[0])}
    classes = {name for name in nn.__all__ if isinstance(getattr(nn, name), type)} - _NO_LAYERS
    return (
        {f"tensor.{name}" for name in set(T.__all__) - OF_TENSOR.keys() - without}
        | {f"Tensor.{name}" for name in methods - METHODS.keys() - without - _OF_OBJECTS}
        | {f"functional.{name}" for name in set(F.__all__) - OF_FUNCTIONAL.keys() - shared - without}
        | {f"nn.{name}" for name in classes if getattr(nn, name) not in made}
    )


def _functions() -> set[int]:
    """The identities of what has a row, or is known to have no derivative, under whatever name."""
    methods = [getattr(T.Tensor, name) for name in (*METHODS, "dim", "numel", "lt", "gt")]
    return set(map(id, [*methods, *(getattr(T, name) for name in OF_TENSOR)]))


#: Classes that are no layers over tensors: a part of one, a list, and those over scalars.
_NO_LAYERS = {"Buffer", "Parameter", "Module", "ModuleDict", "ModuleList", "Layer", "MLP", "Neuron"}


def _modules(thing: Any) -> Iterator[Any]:
    if isinstance(thing, nn.Module):
        yield thing
        for part in vars(thing).values():
            for one in part if isinstance(part, (list, tuple)) else (part,):
                yield from _modules(one)
        if isinstance(thing, nn.Sequential):
            for one in thing:
                yield from _modules(one)


def _other_type(x: T.Tensor) -> str:
    return "float32" if x.dtype is T.float64 else "float64"


# ---- cases ----------------------------------------------------------------------------------------------

#: Views of what is differentiated by: the shape of the leaf for a shape, and the view.
VIEWS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "plain": (lambda shape: shape, lambda x: x),
    "transposed": (lambda shape: shape[::-1], lambda x: x.T),
    "sliced": (lambda shape: (*shape[:-1], 2 * shape[-1] + 1), lambda x: x[..., 1::2]),
    "reversed": (lambda shape: shape, lambda x: x.flip()),
    "broadcast": (lambda shape: (1, *shape[1:]), lambda x: x),
    "no elements": (lambda shape: (0, *shape[1:]) if len(shape) > 1 else shape, lambda x: x),
    "no axes": (lambda shape: (), lambda x: x),
}  # fmt: skip
SECONDS = ("float", "int64", "bool", "number")
BACKENDS: dict[str, dict[str, Any]] = {
    "eager C": {}, "step in Python": {"backend": "python"}, "step by tcc": {"compiler": "tcc"},
    "step by gcc": {"compiler": "gcc"},
}  # fmt: skip


class Case(NamedTuple):
    """A row in one precision, of one view, with a second operand of one type."""

    name: str
    dtype: str
    view: str
    second: str

    @property
    def row(self) -> Row:
        """How it is called."""
        kind, _, name = self.name.partition(".")
        if kind == "nn":
            return Row(lambda f, *x: f(*x), layers.CASES[name].shapes, "unit" if layers.CASES[name].positive else "any")
        return {"tensor": OF_TENSOR, "Tensor": METHODS, "functional": OF_FUNCTIONAL}[kind][name]

    def thing(self) -> Any:
        """What is called."""
        kind, _, name = self.name.partition(".")
        if kind == "nn":
            return layers.CASES[name].make(random.Random(1), self.dtype)
        found = getattr({"tensor": T, "Tensor": T.Tensor, "functional": F}[kind], name)
        return found.fget if isinstance(found, property) else found

    def leaves(self) -> list[Any]:
        """Random tensors: what the views are made from."""
        draw, made = random.Random(f"{self.name} {self.second}"), []
        for number, shape in enumerate(self.row.shapes):
            if shape and isinstance(shape[0], tuple):
                whole = [draw.randrange(shape[1]) for _ in range(math.prod(shape[0]))]
                made.append(T.asarray(whole, dtype="int64").reshape(shape[0]))
                continue
            if number == 1 and self.second != "float":
                made.append(self._second(draw, VIEWS[self.view][0](shape)))
                continue
            x = T.randn(VIEWS[self.view][0](shape), generator=draw)
            x = abs(x) + 0.3 if self.row.domain == "positive" else x
            made.append((x.sigmoid() * 0.8 + 0.1 if self.row.domain == "unit" else x).astype(self.dtype))
        return made

    def _second(self, draw: random.Random, shape: Any) -> Any:
        if self.second == "number":
            return 1.75
        found = [draw.randrange(1, 3) for _ in range(math.prod(shape))]
        made = T.asarray(found, dtype="int64").reshape(shape)
        return made == 2 if self.second == "bool" else made

    def weighted(self, thing: Any, leaves: list[Any]) -> Any:
        """The sum of all results, with different weights, so that each has a derivative of its own."""
        view = VIEWS[self.view]
        given = []
        for x, shape in zip(leaves, self.row.shapes):
            is_viewed = isinstance(x, T.Tensor) and not (shape and isinstance(shape[0], tuple))
            found = view[1](x) if is_viewed else x
            given.append(found.broadcast_to(shape) if is_viewed and self.view == "broadcast" else found)
        total = None
        for one in layers.tensors(self.row.call(thing, *given)):
            if one.dtype.is_floating:
                weights = (T.arange(one.size, dtype=one.dtype) * 0.25 + 0.5).reshape(one.shape)
                total = (one * weights).sum() if total is None else total + (one * weights).sum()
        return total


def cases(name: str) -> list[Case]:
    """All cases of a row, without the ways to compute them."""
    row = Case(name, "float64", "plain", "float").row
    of_floats = [shape for shape in row.shapes if not (shape and isinstance(shape[0], tuple))]
    views = ["plain", "transposed", "sliced", "reversed", *(["broadcast"] if all(of_floats) else [])]
    views += ["no elements", "no axes"] if row.elementwise else []
    seconds = SECONDS if row.mixes else SECONDS[:1]
    return [Case(name, dtype, view, second) for dtype in ("float64", "float32") for view in views for second in seconds]


NAMES = [
    *(f"tensor.{name}" for name in OF_TENSOR), *(f"Tensor.{name}" for name in METHODS),
    *(f"functional.{name}" for name in OF_FUNCTIONAL), *(f"nn.{name}" for name in layers.CASES),
]  # fmt: skip


def computed(case: Case, thing: Any, given: list[Any]) -> list[Any]:
    """The weighted sum, its gradients by the tensors, and by the parameters of a layer."""
    leaves = [x.detach().copy() if isinstance(x, T.Tensor) and x.dtype.is_floating else x for x in given]
    floats = [x for x in leaves if isinstance(x, T.Tensor) and x.dtype.is_floating]
    for x in floats:
        x.requires_grad = True
    parameters = thing.parameters() if isinstance(thing, nn.Module) else []
    if parameters:
        thing.zero_grad()
    value = case.weighted(thing, leaves)
    if value.requires_grad:
        value.backward()
    return [value.detach(), *(layers.gradient(x) for x in [*floats, *parameters])]


def by_loops(case: Case) -> list[Any]:
    """The definition."""
    os.environ["MGJIT_DISABLE"] = "1"
    try:
        thing = case.thing()
        random.seed(11)
        return computed(case, thing, case.leaves())
    finally:
        del os.environ["MGJIT_DISABLE"]


def wrong_in(case: Case, backend: str) -> str:
    """What a way to compute a case gets wrong; empty if nothing."""
    expected, thing, given = numbers(by_loops(case)), case.thing(), case.leaves()
    if backend == "eager C":
        random.seed(11)
        return "" if numbers(computed(case, thing, given)) == expected else "other bits"
    tensors = [x for x in given if isinstance(x, T.Tensor)]

    def step(*inputs: Any) -> Any:
        every = iter(inputs)
        return computed(case, thing, [next(every) if isinstance(x, T.Tensor) else x for x in given])

    compiled = mgjit.compile(step, background=False, dtype=case.dtype, **BACKENDS[backend])
    random.seed(11)
    found = numbers(compiled(*tensors))
    if found != expected:
        return "other bits"
    return f"a plain call: {compiled.stats.plain_reasons}" if compiled.stats.plain_calls else ""


#: What differences say nothing about.
_NO_SLOPES = {
    "tensor.astype": "it rounds to float32",
    "Tensor.float": "it rounds to float32",
    "nn.Embedding with padding": "the gradient of the padding is 0 by definition",
}


def wrong_slopes(case: Case) -> str:
    """Where gradients are not those of differences, or those in float32 not nearly those in float64."""
    found = by_loops(case)
    if case.dtype == "float32":
        exact = by_loops(case._replace(dtype="float64"))
        pairs = [(x, y) for a, b in zip(found, exact) for x, y in zip(a.tolist_flat(), b.tolist_flat())]
        far = [pair for pair in pairs if abs(pair[0] - pair[1]) > 1e-3 * max(1.0, abs(pair[1]))]
        return f"float32 and float64: {far[:3]}" if far and not case.name.startswith("nn.") else ""
    if case.name in _NO_SLOPES:
        return ""
    thing, given = case.thing(), case.leaves()
    floats = [x for x in given if isinstance(x, T.Tensor) and x.dtype.is_floating]
    parameters = thing.parameters() if isinstance(thing, nn.Module) else []
    draw = random.Random(case.name)
    for number, (x, gradient) in enumerate(zip([*floats, *parameters], found[1:])):
        places = range(x.size)
        for k in places if x.size <= 6 else sorted(draw.sample(places, 6)):
            slope = _slope(case, thing, given, x, k)
            if abs(slope - gradient.tolist_flat()[k]) > 2e-5 * max(1.0, abs(slope)):
                return f"tensor {number}, element {k}: {gradient.tolist_flat()[k]}, by differences {slope}"
    return ""


def _slope(case: Case, thing: Any, given: list[Any], x: T.Tensor, k: int) -> float:
    data, found = x._memory.data, []
    before = data[k]
    for shift in (1e-6, -1e-6):
        data[k] = before + shift
        random.seed(11)
        with mgjit.no_grad():
            found.append(float(case.weighted(thing, given)))
    data[k] = before
    return (found[0] - found[1]) / 2e-6


def main() -> None:
    """Compute everything, and say how much that was."""
    warnings.simplefilter("ignore")
    steps = [int(word) for word in sys.argv[1:] if word.isdigit()]
    chosen = [word for word in sys.argv[1:] if not word.isdigit()] or NAMES
    count, computed, wrong = 0, 0, []
    for name in chosen:
        for case in cases(name):
            for backend in ("differences", *BACKENDS):
                if backend.startswith("step") and not case.row.in_steps:
                    continue
                count += 1
                if steps and count % steps[0]:
                    continue
                computed += 1
                try:
                    what = wrong_slopes(case) if backend == "differences" else wrong_in(case, backend)
                except Exception as error:
                    what = f"{type(error).__name__}: {error}"
                if what:
                    wrong.append((*case, backend))
                    print(*case, backend, what[:300], flush=True)
    told = f"{len(chosen)} operations and layers, {count} cases, {computed} computed, {len(wrong)} wrong"
    print(f"{told}; not in the table: {missing()}")
    sys.exit(bool(wrong or missing()))


if __name__ == "__main__":
    main()
