"""Layers and losses of mgjit.nn against PyTorch: results, gradients and running statistics, in float64 on the CPU.

Each layer gets the weights of PyTorch through `load_state_dict`, so names and shapes are compared as well; each is run
eagerly and in a compiled step, whose bits must be equal.

Run: python bench/tensor_gradients.py        (PyTorch and NumPy must be installed; about a minute)
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


IMAGE, WORD, LABELS = (2, 4, 9, 8), (5, 3, 4), ((6, 4), ((6,), 4))
WEIGHT = [0.5, 1.0, 2.0, 3.0]
CASES: dict[str, Callable[[], Case]] = {
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
    "gelu": lambda: Case(F.gelu, lambda x: TF.gelu(x, approximate="tanh"), ((4, 5),)),
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
    total.backward()
    found = {f"result {k}": x.detach() for k, x in enumerate(results)}
    found.update({f"gradient of input {k}": x.grad for k, x in enumerate(leaves) if x.is_floating_point()})
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
    assert {k: x.tolist() for k, x in again.items()} == {k: x.tolist() for k, x in found.items()}, "a step differs"
    expected = theirs_of(case, given)
    assert found.keys() == expected.keys(), found.keys() ^ expected.keys()
    worst = 0.0
    for key, x in expected.items():
        assert tuple(x.shape) == found[key].shape, (key, x.shape, found[key].shape)
        difference = (torch.from_numpy(found[key].numpy().copy()) - x).abs().max().item() if x.numel() else 0.0
        worst = max(worst, difference / max(1.0, x.abs().max().item()))
    return worst


def main() -> int:
    """Print a line for each case; 1 if any is beyond the tolerance."""
    wrong = 0
    for name in CASES:
        try:
            worst = compared(name)
        except Exception as error:
            print(f"{name:45} {type(error).__name__}: {error}")
            wrong += 1
            continue
        wrong += worst > TOLERANCE
        print(f"{name:45} {worst:.1e}{'   beyond the tolerance' if worst > TOLERANCE else ''}")
    print(f"{len(CASES)} cases, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
