"""Layers and losses as functions, with the names of PyTorch; `axis=` where tensors use it."""

from ..tensor.creation import one_hot
from ..tensor.elementwise import gelu, leaky_relu, relu, sigmoid, silu, softplus, tanh
from ..tensor.joining import pad
from ..tensor.reductions import log_softmax, softmax
from .activations import elu, hardtanh, logsigmoid, mish, relu6
from .linear import dropout, embedding, linear
from .losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    hinge_loss,
    huber_loss,
    l1_loss,
    mse_loss,
    nll_loss,
    smooth_l1_loss,
)

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "dropout", "elu", "embedding", "gelu",
    "hardtanh", "hinge_loss", "huber_loss", "l1_loss", "leaky_relu", "linear", "log_softmax", "logsigmoid", "mish",
    "mse_loss", "nll_loss", "one_hot", "pad", "relu", "relu6", "sigmoid", "silu", "smooth_l1_loss", "softmax",
    "softplus", "tanh",
]  # fmt: skip
