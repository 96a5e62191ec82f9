"""Layers and losses as functions, with PyTorch's names, arguments and results; NumPy's `axis=` is taken as well."""

from __future__ import annotations

from typing import Any

from ..tensor import (
    creation,
    gelu,
    joining,
    leaky_relu,
    log_softmax,
    reductions,
    relu,
    sigmoid,
    silu,
    softmax,
    softplus,
    tanh,
)
from ..tensor.dtypes import int64
from ..tensor.elementwise import maximum
from ..tensor.spellings import missing, spelled
from ..tensor.tensor import Tensor, require
from .activations import elu, hardtanh, logsigmoid, mish, relu6
from .attention import scaled_dot_product_attention
from .convolution import (
    avg_pool1d,
    avg_pool2d,
    conv1d,
    conv2d,
    conv_transpose1d,
    conv_transpose2d,
    max_pool1d,
    max_pool2d,
)
from .linear import dropout, embedding, linear
from .losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    hinge_loss,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    nll_loss,
    smooth_l1_loss,
)
from .normalisation import batch_norm, group_norm, layer_norm, rms_norm
from .resizing import adaptive_avg_pool1d, adaptive_avg_pool2d, interpolate


@spelled
def one_hot(labels: Tensor, classes: int = -1, dtype: Any = int64) -> Tensor:
    """1 at the label of each element, 0 elsewhere: one more axis, of length `classes`.

    Args:
        labels: int64.
        classes: -1 for one more than the largest label, which must be known then.
        dtype: of the result.
    """
    found = require(labels, "one_hot")
    return creation.one_hot(found, int(found.max()) + 1 if classes == -1 else classes, dtype)


@spelled
def pad(x: Tensor, widths: Any, mode: str = "constant", value: float = 0.0) -> Tensor:
    """A border of one number.

    Args:
        widths: before and after the last axis, then before and after the one in front of it, and so on; or as in
            NumPy a pair for each axis.  What is below 0 is left out.
        mode: "constant", or "reflect", "replicate" and "circular", which repeat elements.
    """
    x, widths = require(x, "pad"), list(widths)
    if widths and isinstance(widths[0], (tuple, list)):
        return joining.pad(x, widths, value)
    pairs = [(0, 0)] * (x.ndim - len(widths) // 2) + list(zip(widths[::2], widths[1::2]))[::-1]
    if mode != "constant":
        for k, (before, after) in enumerate(pairs):
            if before or after:
                x = joining.take(x, _places(mode, x.shape[k], before, after), axis=k)
        return x
    kept = tuple(slice(max(-before, 0), extent - max(-after, 0)) for (before, after), extent in zip(pairs, x.shape))
    return joining.pad(x[kept], [(max(before, 0), max(after, 0)) for before, after in pairs], value)


def _places(mode: str, extent: int, before: int, after: int) -> list[int]:
    """Which elements a border has that repeats some of them."""
    places = range(-before, extent + after)
    if mode == "circular":
        return [k % extent for k in places]
    if mode == "replicate":
        return [min(max(k, 0), extent - 1) for k in places]
    return [extent - 1 - abs(extent - 1 - abs(k)) for k in places]  # as in a mirror


@spelled
def normalize(x: Tensor, p: float = 2.0, axis: int = 1, eps: float = 1e-12) -> Tensor:
    """x / max(norm(x), eps), with the norm along an axis."""
    x = require(x, "normalize")
    return x / maximum(reductions.norm(x, p, axis, True), eps)


@spelled
def cosine_similarity(x: Tensor, y: Tensor, axis: int = 1, eps: float = 1e-8) -> Tensor:
    """The sum of products along an axis, divided by both lengths, each of which is not below eps."""
    x, y = require(x, "cosine_similarity"), require(y, "cosine_similarity")
    return reductions.sum(normalize(x, 2.0, axis, eps) * normalize(y, 2.0, axis, eps), axis)


__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "avg_pool1d", "avg_pool2d", "batch_norm", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d", "cosine_similarity",
    "cross_entropy", "dropout", "elu", "embedding", "gelu", "group_norm", "hardtanh", "hinge_loss", "huber_loss",
    "interpolate", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "linear", "log_softmax", "logsigmoid", "max_pool1d",
    "max_pool2d", "mish", "mse_loss", "nll_loss", "normalize", "one_hot", "pad", "relu", "relu6", "rms_norm",
    "scaled_dot_product_attention", "sigmoid", "silu", "smooth_l1_loss", "softmax", "softplus", "tanh",
]  # fmt: skip

globals().update({
    name: spelled(function) for name, function in list(globals().items())
    if name in __all__ and not hasattr(function, "__wrapped__")
})  # fmt: skip


def __getattr__(name: str) -> Any:
    raise missing(__name__, globals(), name)
