"""Every layer and loss, with tensors for it, for the tests that compare ways to compute it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import mgjit
from mgjit import nn
from mgjit import tensor as T
from mgjit.nn import functional as F


class Case(NamedTuple):
    """A layer, and the shapes of what it gets: of floats; or numbers below an int for an int64 tensor of that shape.

    Attributes:
        make: (generator of initial weights, dtype) -> module or function.
        shapes: of the tensors; (shape, classes) is one of labels.
        positive: whether the floats are between 0 and 1.
        kink: whether the derivative jumps where numeric differences would see it.
    """

    make: Callable[[random.Random, str], Any]
    shapes: tuple[Any, ...]
    positive: bool = False


class Causal(nn.Module):
    """Attention that looks back."""

    def __init__(self, draw: random.Random, dtype: str, **options: Any) -> None:
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True, generator=draw, dtype=dtype, **options)

    def forward(self, x: Any) -> Any:
        return self.attention(x, x, x, is_causal=True)


def _masked(q: Any, k: Any, v: Any) -> Any:
    mask = T.asarray([[True, False, True], [True, True, False]])
    added = T.asarray([[0.5, -1.0, 0.0], [1.0, 0.0, 2.0]], dtype=q.dtype)
    return F.scaled_dot_product_attention(q, k, v, mask) + F.scaled_dot_product_attention(q, k, v, added, scale=0.3)


def _plain(module: type, *given: Any, **options: Any) -> Callable[[random.Random, str], Any]:
    return lambda draw, dtype: module(*given, **options)


def _layer(module: type, *given: Any, **options: Any) -> Callable[[random.Random, str], Any]:
    return lambda draw, dtype: module(*given, dtype=dtype, generator=draw, **options)


def _norm(module: type, *given: Any, **options: Any) -> Callable[[random.Random, str], Any]:
    return lambda draw, dtype: module(*given, dtype=dtype, **options)


def _function(function: Any, **options: Any) -> Callable[[random.Random, str], Any]:
    return lambda draw, dtype: lambda *given: function(*given, **options)


def _weights(draw: random.Random, dtype: str) -> Any:
    weight = T.asarray([0.5, 1.0, 2.0], dtype=dtype)
    return lambda x, y: F.cross_entropy(x, y, weight, label_smoothing=0.1) + F.nll_loss(x, y, weight, reduction="sum")


def _ignoring(draw: random.Random, dtype: str) -> Any:
    weight = T.asarray([0.5, 1.0, 2.0], dtype=dtype)
    return lambda x, y: F.cross_entropy(x, y, weight, 1) + F.cross_entropy(x, y, ignore_index=0, reduction="sum")


IMAGE, WORD, PAIR = (2, 2, 5, 4), (3, 2, 3), ((2, 3), (2, 3))
LABELS = ((4, 3), ((4,), 3))
CASES = {
    "Linear": Case(_layer(nn.Linear, 3, 2), ((2, 3),)),
    "Linear without bias": Case(_layer(nn.Linear, 3, 2, bias=False), ((2, 2, 3),)),
    "Embedding": Case(_layer(nn.Embedding, 5, 3), (((2, 3), 5),)),
    "Embedding with padding": Case(_layer(nn.Embedding, 3, 2, padding_idx=1), (((2, 3), 3),)),
    "Sequential": Case(
        lambda draw, dtype: nn.Sequential(
            nn.Flatten(), nn.Linear(6, 3, dtype=dtype, generator=draw), nn.Dropout(0.4), nn.Tanh()
        ),
        ((2, 2, 3),),
    ),
    "Conv1d": Case(_layer(nn.Conv1d, 2, 3, 3), ((2, 2, 5),)),
    "Conv1d same": Case(_layer(nn.Conv1d, 2, 2, 4, padding="same", bias=False), ((2, 5),)),
    # gcc 12 jams loops over these windows, which overlap, in the wrong order if it may.
    "Conv1d of many channels": Case(_layer(nn.Conv1d, 4, 6, 4, padding="same", bias=False), ((1, 4, 9),)),
    "Conv2d": Case(_layer(nn.Conv2d, 2, 3, 3), (IMAGE,)),
    "Conv2d strides": Case(_layer(nn.Conv2d, 2, 2, (3, 2), stride=(2, 1), padding=(1, 0)), (IMAGE,)),
    "Conv2d dilation and groups": Case(_layer(nn.Conv2d, 2, 4, 2, dilation=(1, 2), groups=2), (IMAGE,)),
    "ConvTranspose1d": Case(_layer(nn.ConvTranspose1d, 2, 3, 3), ((2, 2, 4),)),
    "ConvTranspose2d": Case(_layer(nn.ConvTranspose2d, 2, 3, 3, 2, padding=1, output_padding=1), ((2, 2, 3, 2),)),
    "ConvTranspose2d groups": Case(
        _layer(nn.ConvTranspose2d, 4, 2, (2, 1), stride=(1, 2), padding=(2, 0), groups=2, dilation=1), ((1, 4, 5, 2),)
    ),
    "AdaptiveAvgPool1d": Case(_plain(nn.AdaptiveAvgPool1d, 3), ((2, 2, 5),)),
    "AdaptiveAvgPool2d": Case(_plain(nn.AdaptiveAvgPool2d, (1, None)), (IMAGE,)),
    "AdaptiveAvgPool2d uneven": Case(_plain(nn.AdaptiveAvgPool2d, (2, 3)), (IMAGE,)),
    "Upsample": Case(_plain(nn.Upsample, scale_factor=2), ((1, 2, 3, 2),)),
    "Upsample bilinear": Case(_plain(nn.Upsample, size=(5, 3), mode="bilinear"), ((1, 2, 3, 2),)),
    "GroupNorm": Case(_norm(nn.GroupNorm, 2, 4), ((2, 4, 3),)),
    "GELU tanh": Case(_plain(nn.GELU, approximate="tanh"), ((2, 3),)),
    "KLDivLoss": Case(_plain(nn.KLDivLoss, reduction="batchmean"), PAIR, True),
    "KLDivLoss of logarithms": Case(_plain(nn.KLDivLoss, reduction="sum", log_target=True), PAIR),
    "TransformerEncoderLayer": Case(_layer(nn.TransformerEncoderLayer, 4, 2, 3, dropout=0.2), ((2, 2, 4),)),
    "TransformerEncoder": Case(
        lambda draw, dtype: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(
                4, 2, 3, 0.0, "gelu", batch_first=True, norm_first=True, dtype=dtype, generator=draw
            ), 2, nn.LayerNorm(4, dtype=dtype),
        ),
        ((2, 2, 4),),
    ),
    "MaxPool1d": Case(_plain(nn.MaxPool1d, 3, 2, 1), ((2, 2, 5),)),
    "MaxPool2d": Case(_plain(nn.MaxPool2d, 2), (IMAGE,)),
    "MaxPool2d overlapping": Case(_plain(nn.MaxPool2d, (3, 2), 1, 1), (IMAGE,)),
    "MaxPool2d large": Case(_plain(nn.MaxPool2d, (7, 6), 1), ((1, 1, 8, 7),)),
    "AvgPool1d": Case(_plain(nn.AvgPool1d, 2), ((2, 2, 5),)),
    "AvgPool2d": Case(_plain(nn.AvgPool2d, 3, 1, 1), (IMAGE,)),
    "LayerNorm": Case(_norm(nn.LayerNorm, (2, 3)), ((2, 2, 3),)),
    "RMSNorm": Case(_norm(nn.RMSNorm, 3), ((2, 3),)),
    "BatchNorm1d": Case(_norm(nn.BatchNorm1d, 3), ((4, 3),)),
    "BatchNorm1d of all batches": Case(_norm(nn.BatchNorm1d, 3, momentum=None), ((2, 3, 2),)),
    "BatchNorm2d": Case(_norm(nn.BatchNorm2d, 2), (IMAGE,)),
    "BatchNorm2d in use": Case(lambda draw, dtype: nn.BatchNorm2d(2, dtype=dtype).eval(), (IMAGE,)),
    "RNN": Case(_layer(nn.RNN, 3, 2, num_layers=2, dropout=0.3), (WORD,)),
    "RNN relu": Case(_layer(nn.RNN, 3, 2, nonlinearity="relu", bias=False), ((3, 3),)),
    "LSTM": Case(_layer(nn.LSTM, 3, 2, batch_first=True), (WORD,)),
    "LSTM bidirectional": Case(_layer(nn.LSTM, 3, 2, bidirectional=True), (WORD,)),
    "GRU": Case(_layer(nn.GRU, 3, 2), (WORD, (1, 2, 2))),
    "GRU bidirectional": Case(_layer(nn.GRU, 3, 2, num_layers=2, bidirectional=True), (WORD,)),
    "RNNCell": Case(_layer(nn.RNNCell, 3, 2), ((2, 3),)),
    "LSTMCell": Case(_layer(nn.LSTMCell, 3, 2, bias=False), ((3,),)),
    "GRUCell": Case(_layer(nn.GRUCell, 3, 2), ((2, 3), (2, 2))),
    "MultiheadAttention": Case(_layer(nn.MultiheadAttention, 4, 2), ((2, 2, 4), (3, 2, 4), (3, 2, 4))),
    "MultiheadAttention causal": Case(lambda draw, dtype: Causal(draw, dtype, bias=False, dropout=0.2), ((2, 3, 4),)),
    "attention with masks": Case(_function(_masked), ((2, 2, 3), (2, 3, 3), (2, 3, 2))),
    **{
        f"{module.__name__}": Case(_plain(module), ((2, 3),))
        for module in (
            nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.Hardtanh, nn.Sigmoid, nn.LogSigmoid, nn.Tanh, nn.GELU, nn.SiLU,
            nn.Mish, nn.Softplus, nn.Softmax, nn.LogSoftmax, nn.Identity,
        )
    },
    **{
        f"{module.__name__} {reduction}": Case(_plain(module, reduction=reduction), PAIR, module is nn.BCELoss)
        for module, reduction in (
            (nn.MSELoss, "mean"), (nn.MSELoss, "none"), (nn.L1Loss, "sum"), (nn.HuberLoss, "mean"),
            (nn.SmoothL1Loss, "sum"), (nn.HingeLoss, "mean"), (nn.BCELoss, "mean"), (nn.BCEWithLogitsLoss, "mean"),
        )
    },
    "CrossEntropyLoss": Case(_plain(nn.CrossEntropyLoss), LABELS),
    "CrossEntropyLoss of places": Case(_plain(nn.CrossEntropyLoss, reduction="none"), ((2, 3, 2), ((2, 2), 3))),
    "CrossEntropyLoss smooth": Case(_plain(nn.CrossEntropyLoss, label_smoothing=0.2), LABELS),
    "CrossEntropyLoss of one": Case(_plain(nn.CrossEntropyLoss), ((3,), ((), 3))),
    "CrossEntropyLoss of probabilities": Case(_plain(nn.CrossEntropyLoss, label_smoothing=0.1), PAIR, True),
    "cross entropy with weights": Case(_weights, LABELS),
    "cross entropy without some": Case(_ignoring, LABELS),
    "NLLLoss": Case(_plain(nn.NLLLoss), LABELS),
    "bce with weights": Case(
        lambda draw, dtype: (
            lambda x, y: F.binary_cross_entropy_with_logits(x, y, None, "sum", T.asarray([2.0, 0.5, 1.0], dtype=dtype))
        ),
        PAIR,
    ),
}  # fmt: skip


def made(name: str, seed: int, dtype: str = "float64") -> tuple[Any, list[T.Tensor]]:
    """The module of a case, and random tensors for it."""
    case, draw = CASES[name], random.Random(seed)
    given = []
    for shape in case.shapes:
        if shape and isinstance(shape[0], tuple):
            size = len(T.zeros(shape[0]).tolist_flat())
            given.append(T.asarray([draw.randrange(shape[1]) for _ in range(size)]).reshape(shape[0]))
        else:
            x = T.rand(shape, generator=draw) * 0.8 + 0.1 if case.positive else T.randn(shape, generator=draw)
            given.append(x.astype(dtype))
    return case.make(draw, dtype), given


def weighted(module: Any, given: list[Any]) -> Any:
    """The sum of all results, with different weights, so that each has a derivative of its own."""
    total = None
    for found in tensors(module(*given)):
        weights = (T.arange(found.size, dtype=found.dtype) * 0.25 + 0.5).reshape(found.shape)
        total = (found * weights).sum() if total is None else total + (found * weights).sum()
    return total


def tensors(thing: Any) -> list[T.Tensor]:
    """The tensors in a result."""
    if isinstance(thing, (list, tuple)):
        return [tensor for part in thing for tensor in tensors(part)]
    return [] if thing is None else [thing]


def computed(module: Any, given: list[Any]) -> list[T.Tensor]:
    """The weighted sum, its gradients, and the buffers."""
    is_module = isinstance(module, nn.Module)
    if is_module:
        module.zero_grad()
    inputs = [x.detach().copy() if x.dtype.is_floating else x for x in given]
    leaves = [x for x in inputs if x.dtype.is_floating]
    for leaf in leaves:
        leaf.requires_grad = True
    value = weighted(module, inputs)
    value.backward()
    found = [value.detach(), *(gradient(leaf) for leaf in leaves)]
    if not is_module:
        return found
    return [*found, *map(gradient, module.parameters()), *(b.copy() for b in module.buffers())]


def gradient(leaf: T.Tensor) -> T.Tensor:
    """A copy of the gradient of a leaf."""
    assert leaf.grad is not None
    return leaf.grad.copy()


def looked_at(module: Any, given: list[Any]) -> list[T.Tensor]:
    """The weighted sum and its gradients by the inputs, of a layer that is left alone."""
    floats = tuple(k for k, x in enumerate(given) if x.dtype.is_floating)
    value, gradients = mgjit.value_and_grad(lambda *xs: weighted(module, list(xs)), floats)(*given)
    return [value.detach(), *gradients]
