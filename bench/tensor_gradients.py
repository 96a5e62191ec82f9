"""Operations on tensors, layers and losses against PyTorch, in float64 on the CPU.

Compared are results, gradients, products of second derivatives and a vector, and running statistics.  Each layer gets
the weights of PyTorch through `load_state_dict`, so names and shapes are compared as well; each is run eagerly and in a
compiled step, whose bits must be equal.

Run: python bench/tensor_gradients.py [NAME ...]     (PyTorch and NumPy must be installed; a few minutes)
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as TF

import mgjit
from mgjit import nn
from mgjit import tensor as T
from mgjit.nn import functional as F

torch.set_default_dtype(torch.float64)
torch.manual_seed(1)
#: The largest difference that is passed, relative to the largest number of a tensor.
TOLERANCE = 1e-9


class Case(NamedTuple):
    """The same layer or function twice, and the shapes of what it gets; (shape, n) is of whole numbers below n."""

    ours: Any
    theirs: Any
    shapes: tuple[Any, ...]
    positive: bool = False


def twice(name: str, shapes: tuple[Any, ...], *given: Any, **options: Any) -> Case:
    """A layer that has the same name and arguments in both libraries."""
    return Case(getattr(nn, name)(*given, **options), getattr(torch.nn, name)(*given, **options), shapes)


def both(name: str, shapes: tuple[Any, ...], positive: bool = False, **options: Any) -> Case:
    """A function that has."""
    ours, theirs = getattr(F, name), getattr(TF, name)
    return Case(lambda *x: ours(*x, **options), lambda *x: theirs(*x, **options), shapes, positive)


def causal(batch_first: bool) -> Case:
    """Attention that looks back: PyTorch needs the mask as well."""
    ours = nn.MultiheadAttention(8, 2, batch_first=batch_first)
    theirs = torch.nn.MultiheadAttention(8, 2, batch_first=batch_first)
    mask = torch.ones(5, 5, dtype=torch.bool).triu(1)

    class Ours(nn.Module):
        def __init__(self) -> None:
            self.inner = ours

        def forward(self, x: Any) -> Any:
            return self.inner(x, x, x, is_causal=True)

    class Theirs(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = theirs

        def forward(self, x: Any) -> Any:
            return self.inner(x, x, x, attn_mask=mask)

    return Case(Ours(), Theirs(), ((3, 5, 8) if batch_first else (5, 3, 8),))


def op(ours: Any, theirs: Any, *shapes: Any, positive: bool = False) -> Callable[[], Case]:
    """The same operation in both."""
    return lambda: Case(ours, theirs, shapes or ((3, 4),), positive)


def on(values: list[float], function: Any) -> Callable[[], Case]:
    """A function at special places."""

    def at(x: Any) -> Any:
        given = torch.tensor(values) if isinstance(x, torch.Tensor) else T.asarray(values)
        return function(x * 0.0 + given)

    return lambda: Case(at, at, ((len(values),),))


NAN = float("nan")
A, B, M, SQUARE = (2, 3), (3,), (3, 4), (3, 3)
LONG = torch.tensor
OPERATIONS: dict[str, Callable[[], Case]] = {
    **{
        f"tensor.{name}": op(getattr(T, name), getattr(torch, name))
        for name in ("exp", "tanh", "sin", "cos", "sigmoid", "square", "relu", "floor", "ceil", "trunc")
    },
    **{
        f"tensor.{name}": op(getattr(T, name), getattr(torch, name), positive=True)
        for name in ("log", "sqrt", "reciprocal")
    },
    **{
        f"tensor.{name}": op(getattr(T, name), getattr(torch, name), A, B) for name in ("maximum", "minimum")
    },
    "abs": op(abs, abs), "negate": op(lambda x: -x, lambda x: -x),
    "arithmetic": op(*[lambda x, y: (x + y) * (x - 2.0) / (y * y + 1.0) - 3.0 / (x * x + 2.0)] * 2, A, B),
    "power of tensors": op(*[lambda x, y: x**y + 2.0**y + x**3 + x**-0.5] * 2, A, B, positive=True),
    "power at 0": on([0.0, -2.0, 3.0], lambda x: x**0 + x**2 + x**3),
    "power of 0": on([0.0, 1.0, 2.0, 0.5], lambda y: 0.0**y),
    "power of negatives": on([-2.0, -1.0, -0.5], lambda x: x**3 + x**-1 + x**-2),
    "power to tensors with 0": on([0.0, -2.0, 3.0], lambda x: x ** (x.detach() * 0.0)),
    "max of nan": on([1.0, NAN, 2.0], lambda x: x.max()), "min of nan": on([1.0, NAN, 2.0], lambda x: x.min()),
    "argmax of nan": on([1.0, NAN, NAN], lambda x: x * x.argmax()),
    "maximum of nan": op(lambda x, y: T.maximum(x / (x * 0.0), y), lambda x, y: torch.maximum(x / (x * 0.0), y), B, B),
    "relu of nan": on([1.0, NAN, -2.0], lambda x: x.relu()),
    "where": op(lambda x, y: T.where(x > y, x * y, y), lambda x, y: torch.where(x > y, x * y, y), A, B),
    "clip": op(lambda x: x.clip(-0.5, 0.7), lambda x: x.clamp(-0.5, 0.7)),
    "astype": op(lambda x: (x * 2.0).sum().astype("float64"), lambda x: (x * 2.0).sum().double()),
    **{
        f"{name} {axis}": op(
            (lambda x, name=name, axis=axis: getattr(x, name)(axis=axis)),
            (lambda x, name=name, axis=axis: getattr(x, name)(dim=axis)),
        ) for name in ("sum", "mean", "logsumexp") for axis in (0, -1, (0, 1))
    },
    "prod": op(lambda x: x.prod(axis=1), lambda x: x.prod(1)),
    "max": op(lambda x: x.max(axis=1), lambda x: x.amax(1)), "min": op(lambda x: x.min(axis=0), lambda x: x.amin(0)),
    "var": op(lambda x: x.var(axis=1, correction=1), lambda x: x.var(1)),
    "std": op(lambda x: x.std(axis=0), lambda x: x.std(0, correction=0)),
    "matmul": op(*[lambda x, y: x @ y] * 2, (2, 1, 2, 3), (3, 3, 2)),
    "einsum": op(lambda x, y: T.einsum("ij,kj->ki", x, y), lambda x, y: torch.einsum("ij,kj->ki", x, y), A, (4, 3)),
    "outer": op(T.outer, torch.outer, B, (4,)), "vecdot": op(T.vecdot, torch.linalg.vecdot, A, A),
    "tensordot": op(lambda x, y: T.tensordot(x, y, axes=1), lambda x, y: torch.tensordot(x, y, dims=1), A, M),
    "concat": op(lambda x, y: T.concat([x, y, x]), lambda x, y: torch.cat([x, y, x]), A, (1, 3)),
    "stack": op(lambda x, y: T.stack([x, y], axis=1), lambda x, y: torch.stack([x, y], dim=1), A, A),
    "pad": op(lambda x: T.pad(x, [(1, 0), (2, 1)]) ** 2, lambda x: TF.pad(x, (2, 1, 1, 0)) ** 2),
    "take": op(lambda x: T.take(x, [2, 0, 2]) ** 2, lambda x: x[[2, 0, 2]] ** 2),
    "take_along_axis": op(
        lambda x: T.take_along_axis(x, T.asarray([[1, 1], [0, 3], [2, 2]]), axis=1) ** 2,
        lambda x: torch.gather(x, 1, LONG([[1, 1], [0, 3], [2, 2]])) ** 2,
    ),
    "pairs": op(*[lambda x: x[[0, 2, 0], [1, -1, 1]] ** 3] * 2),
    "pairs beside slices": op(*[lambda x: x[:, [0, 1], 1:, [2, 0]] ** 3] * 2, (2, 3, 4, 5)),
    "mask": op(*[lambda x: x[[True, False, True]] ** 3] * 2),
    "views": op(lambda x: (x.T[::1, 1:] * x.flip(1).T[:, 1:]) ** 2, lambda x: (x.T[::1, 1:] * x.flip(1).T[:, 1:]) ** 2),
    "unfold": op(*[lambda x: x.unfold(1, 2, 1) ** 3] * 2),
    "broadcast": op(lambda x: x.broadcast_to((4, 2, 3)) ** 3, lambda x: x.broadcast_to((4, 2, 3)) ** 3, A),
}  # fmt: skip

#: Where PyTorch's second derivative is nan: 0 times that of a power that is not taken.
NO_SECOND = {"power to tensors with 0"}

IMAGE, WORD, LABELS = (2, 4, 9, 8), (5, 3, 4), ((6, 4), ((6,), 4))
WEIGHT = [0.5, 1.0, 2.0, 3.0]
CASES: dict[str, Callable[[], Case]] = {
    **OPERATIONS,
    "Linear": lambda: twice("Linear", ((3, 5),), 5, 4),
    "Embedding": lambda: twice("Embedding", (((3, 4), 7),), 7, 5),
    "Embedding padding_idx": lambda: twice("Embedding", (((3, 4), 7),), 7, 5, padding_idx=2),
    "Conv1d": lambda: twice("Conv1d", ((2, 4, 9),), 4, 6, 3, stride=2, padding=1, dilation=2, groups=2),
    "Conv1d same": lambda: twice("Conv1d", ((2, 4, 9),), 4, 6, 4, padding="same", bias=False),
    "Conv2d": lambda: twice("Conv2d", (IMAGE,), 4, 6, 3),
    "Conv2d strides": lambda: twice("Conv2d", (IMAGE,), 4, 6, (3, 2), stride=(2, 3), padding=(2, 1)),
    "Conv2d groups": lambda: twice("Conv2d", (IMAGE,), 4, 8, 3, dilation=(2, 1), groups=4),
    "MaxPool1d": lambda: twice("MaxPool1d", ((2, 3, 9),), 3, 2, 1),
    "MaxPool2d": lambda: twice("MaxPool2d", (IMAGE,), 2),
    "MaxPool2d overlapping": lambda: twice("MaxPool2d", (IMAGE,), 3, 1, 1),
    "MaxPool2d large": lambda: twice("MaxPool2d", (IMAGE,), (8, 7), 1),
    "AvgPool1d": lambda: twice("AvgPool1d", ((2, 3, 9),), 3, 2, 1),
    "AvgPool2d": lambda: twice("AvgPool2d", (IMAGE,), (3, 2), 2, 1),
    "LayerNorm": lambda: twice("LayerNorm", ((3, 4, 5),), (4, 5)),
    "GroupNorm": lambda: twice("GroupNorm", ((3, 6, 5),), 3, 6),
    "ConvTranspose1d": lambda: twice("ConvTranspose1d", ((2, 4, 5),), 4, 3, 3, 2, 1, 1, groups=1),
    "ConvTranspose2d": lambda: twice("ConvTranspose2d", ((2, 4, 5, 3),), 4, 6, (3, 2), (1, 2), dilation=2, groups=2),
    "AdaptiveAvgPool2d": lambda: twice("AdaptiveAvgPool2d", ((2, 3, 7, 6),), (3, 2)),
    "KLDivLoss": lambda: Case(F.kl_div, TF.kl_div, ((4, 3), (4, 3)), True),
    "cumsum": lambda: Case(lambda x: (x.cumsum(1) ** 2), lambda x: (x.cumsum(1) ** 2), ((3, 4),)),
    "sort": lambda: Case(lambda x: T.sort(x, dim=0)[0] ** 2, lambda x: torch.sort(x, dim=0)[0] ** 2, ((5, 3),)),
    "norm": lambda: Case(lambda x: T.norm(x, dim=1), lambda x: torch.norm(x, dim=1), ((5, 3),)),
    "erf": lambda: Case(T.erf, torch.erf, ((5, 3),)),
    "RMSNorm": lambda: twice("RMSNorm", ((3, 4, 5),), 5),
    "BatchNorm1d": lambda: twice("BatchNorm1d", ((6, 5),), 5),
    "BatchNorm1d momentum=None": lambda: twice("BatchNorm1d", ((6, 5, 3),), 5, momentum=None),
    "BatchNorm2d": lambda: twice("BatchNorm2d", (IMAGE,), 4, momentum=0.3),
    "RNN": lambda: twice("RNN", (WORD,), 4, 3, 2),
    "RNN relu": lambda: twice("RNN", (WORD,), 4, 3, 1, nonlinearity="relu", bidirectional=True),
    "LSTM": lambda: twice("LSTM", (WORD,), 4, 3, 2, batch_first=True),
    "LSTM bidirectional": lambda: twice("LSTM", (WORD,), 4, 3, bidirectional=True, bias=False),
    "GRU": lambda: twice("GRU", (WORD, (2, 3, 3)), 4, 3, 2),
    "GRU bidirectional": lambda: twice("GRU", (WORD,), 4, 3, 2, bidirectional=True),
    "RNNCell": lambda: twice("RNNCell", ((3, 4), (3, 2)), 4, 2),
    "LSTMCell": lambda: twice("LSTMCell", ((3, 4),), 4, 2),
    "GRUCell": lambda: twice("GRUCell", ((3, 4), (3, 2)), 4, 2),
    "MultiheadAttention": lambda: twice("MultiheadAttention", ((5, 2, 8), (6, 2, 8), (6, 2, 8)), 8, 4),
    "MultiheadAttention causal": lambda: causal(batch_first=False),
    "MultiheadAttention batch_first": lambda: causal(batch_first=True),
    "scaled_dot_product_attention": lambda: both("scaled_dot_product_attention", ((2, 4, 3), (2, 5, 3), (2, 5, 6))),
    "scaled_dot_product_attention causal": lambda: both(
        "scaled_dot_product_attention", ((2, 4, 3), (2, 4, 3), (2, 4, 2)), is_causal=True
    ),
    "gelu": lambda: both("gelu", ((4, 5),)),
    "softmax": lambda: Case(F.softmax, lambda x: TF.softmax(x, -1), ((4, 5),)),
    "log_softmax": lambda: Case(F.log_softmax, lambda x: TF.log_softmax(x, -1), ((4, 5),)),
    **{
        name: (lambda name=name: both(name, ((4, 5),)))
        for name in ("relu", "relu6", "leaky_relu", "elu", "hardtanh", "sigmoid", "logsigmoid", "silu", "mish",
                     "softplus", "tanh")
    },
    **{
        f"{name} {reduction}": (lambda name=name, reduction=reduction: both(
            name, ((4, 5), (4, 5)), name == "binary_cross_entropy", reduction=reduction))
        for name in ("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "binary_cross_entropy",
                     "binary_cross_entropy_with_logits")
        for reduction in ("mean", "sum", "none")
    },
    **{
        f"cross_entropy {options}": (lambda options=options: both("cross_entropy", LABELS, **options))
        for options in ({}, {"reduction": "sum"}, {"reduction": "none"}, {"label_smoothing": 0.2}, {"ignore_index": 1})
    },
    "cross_entropy of places": lambda: both("cross_entropy", ((2, 4, 3), ((2, 3), 4))),
    "cross_entropy of probabilities": lambda: both("cross_entropy", ((4, 5), (4, 5)), True, label_smoothing=0.1),
    **{
        f"{name} weight {options}": (lambda name=name, options=options: Case(
            lambda x, y: getattr(F, name)(x, y, T.asarray(WEIGHT), **options),
            lambda x, y: getattr(TF, name)(x, y, torch.tensor(WEIGHT), **options), LABELS))
        for name in ("cross_entropy", "nll_loss") for options in ({}, {"ignore_index": 2}, {"reduction": "sum"})
    },
    "cross_entropy weight smooth": lambda: Case(
        lambda x, y: F.cross_entropy(x, y, T.asarray(WEIGHT), 2, label_smoothing=0.2),
        lambda x, y: TF.cross_entropy(x, y, torch.tensor(WEIGHT), ignore_index=2, label_smoothing=0.2), LABELS),
}  # fmt: skip


def flat(thing: Any) -> list[Any]:
    """The tensors in a result."""
    return [one for part in thing for one in flat(part)] if isinstance(thing, (list, tuple)) else [thing]


def theirs_of(case: Case, given: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    """PyTorch's results, gradients and buffers."""
    leaves = [x.clone().requires_grad_() if x.is_floating_point() else x for x in given]
    results = flat(case.theirs(*leaves))
    total = sum(
        ((x * (torch.arange(x.numel()) * 0.25 + 0.5).reshape(x.shape)).sum() for x in results), torch.tensor(0.0)
    )
    floats = [x for x in leaves if x.is_floating_point()]
    slopes = torch.autograd.grad(total, floats, create_graph=True, allow_unused=True) if floats else ()
    along = sum((g * torch.cos(x.detach())).sum() for g, x in zip(slopes, floats) if g is not None)
    second = [None] * len(floats)
    if isinstance(along, torch.Tensor) and along.requires_grad:
        second = list(torch.autograd.grad(along, floats, retain_graph=True, allow_unused=True))
    total.backward()
    found = {f"result {k}": x.detach() for k, x in enumerate(results)}
    found.update({f"gradient of input {k}": x.grad for k, x in enumerate(leaves) if x.is_floating_point()})
    for k, (x, one) in enumerate(zip(floats, second)):
        found[f"second derivative {k}"] = torch.zeros_like(x) if one is None else one.detach()
    if isinstance(case.theirs, torch.nn.Module):
        found.update({f"gradient of {name}": p.grad for name, p in case.theirs.named_parameters()})
        found.update(dict(case.theirs.named_buffers()))
    return found


def ours_of(case: Case, given: list[T.Tensor]) -> dict[str, T.Tensor]:
    """The same of mgjit."""
    leaves = []
    for x in given:
        leaf = x.detach().copy()
        if leaf.dtype.is_floating:
            leaf.requires_grad = True
        leaves.append(leaf)
    results = flat(case.ours(*leaves))
    weights = [(T.arange(x.size, dtype="float64") * 0.25 + 0.5).reshape(x.shape) for x in results]
    total = None
    for x, weight in zip(results, weights):
        total = (x * weight).sum() if total is None else total + (x * weight).sum()
    total.backward()
    found = {f"result {k}": x.detach() for k, x in enumerate(results)}
    found.update({f"gradient of input {k}": x.grad.copy() for k, x in enumerate(leaves) if x.dtype.is_floating})
    if isinstance(case.ours, nn.Module):
        found.update({f"gradient of {name}": p.grad.copy() for name, p in case.ours.named_parameters()})
        found.update({name: x.copy() for name, x in case.ours.named_buffers()})
    return found


def second_of(case: Case, given: list[T.Tensor]) -> dict[str, T.Tensor]:
    """Products of our second derivatives and a vector."""
    places = [k for k, x in enumerate(given) if x.dtype.is_floating]

    def total(*floats: T.Tensor) -> T.Tensor:
        leaves = list(given)
        for k, x in zip(places, floats):
            leaves[k] = x
        results = flat(case.ours(*leaves))
        weights = [(T.arange(x.size, dtype="float64") * 0.25 + 0.5).reshape(x.shape) for x in results]
        parts = [(x * weight).sum() for x, weight in zip(results, weights)]
        return T.stack(parts).sum()

    every = tuple(range(len(places)))
    floats = [given[k] for k in places]

    def along(*leaves: T.Tensor) -> T.Tensor:
        slopes = mgjit.grad(total, every)(*leaves)
        return T.stack([(g * x.cos()).sum() for g, x in zip(slopes, floats)]).sum()

    found = mgjit.grad(along, every)(*floats) if floats else ()
    return {f"second derivative {k}": x for k, x in enumerate(found)}


def compared(name: str) -> float:
    """The largest difference of one case; raises if shapes, names or bits differ."""
    case = CASES[name]()
    if isinstance(case.theirs, torch.nn.Module):
        case.ours.load_state_dict({name: x.numpy().astype("float64") for name, x in case.theirs.state_dict().items()})
    given = []
    for shape in case.shapes:
        if shape and isinstance(shape[0], tuple):
            given.append(torch.randint(0, shape[1], shape[0]))
        else:
            given.append(torch.rand(shape) * 0.8 + 0.1 if case.positive else torch.randn(shape))
    ours = [T.asarray(x.numpy()) for x in given]
    state = case.ours.state_dict() if isinstance(case.ours, nn.Module) else None
    found = ours_of(case, ours)
    if state is not None:
        case.ours.load_state_dict(state)
        case.ours.zero_grad()
    step = mgjit.compile(lambda *inputs: ours_of(case, list(inputs)), background=False)
    again = step(*ours)
    assert {k: str(x.tolist()) for k, x in again.items()} == {k: str(x.tolist()) for k, x in found.items()}, "a step"
    if state is not None:
        case.ours.load_state_dict(state)
    found.update(second_of(case, ours))
    expected = theirs_of(case, given)
    if name in NO_SECOND:
        del expected["second derivative 0"], found["second derivative 0"]
    assert found.keys() == expected.keys(), found.keys() ^ expected.keys()
    worst = 0.0
    for key, x in expected.items():
        assert tuple(x.shape) == found[key].shape, (key, x.shape, found[key].shape)
        mine = torch.from_numpy(found[key].numpy().copy())
        assert torch.equal(mine.isnan(), x.isnan()), (key, mine, x)
        theirs = x.nan_to_num()
        difference = (mine.nan_to_num() - theirs).abs().max().item() if x.numel() else 0.0
        worst = max(worst, difference / max(1.0, theirs.abs().max().item()) if x.numel() else 0.0)
    return worst


def main() -> int:
    """Print a line for each case; 1 if any is beyond the tolerance."""
    wrong = 0
    names = sys.argv[1:] or list(CASES)
    for name in names:
        try:
            worst = compared(name)
        except Exception as error:
            print(f"{name:45} {type(error).__name__}: {error}")
            wrong += 1
            continue
        wrong += worst > TOLERANCE
        print(f"{name:45} {worst:.1e}{'   beyond the tolerance' if worst > TOLERANCE else ''}")
    print(f"{len(names)} cases, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
