"""Layers and losses as functions, with the names of PyTorch; `axis=` where tensors use it."""

from ..tensor.creation import one_hot
from ..tensor.elementwise import gelu, leaky_relu, relu, sigmoid, silu, softplus, tanh
from ..tensor.joining import pad
from ..tensor.reductions import log_softmax, softmax
from .activations import elu, hardtanh, logsigmoid, mish, relu6
from .attention import scaled_dot_product_attention
from .convolution import avg_pool1d, avg_pool2d, conv1d, conv2d, max_pool1d, max_pool2d
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
from .normalisation import batch_norm, layer_norm, rms_norm

__all__ = [
    "avg_pool1d", "avg_pool2d", "batch_norm", "binary_cross_entropy", "binary_cross_entropy_with_logits", "conv1d",
    "conv2d", "cross_entropy", "dropout", "elu", "embedding", "gelu", "hardtanh", "hinge_loss", "huber_loss", "l1_loss",
    "layer_norm", "leaky_relu", "linear", "log_softmax", "logsigmoid", "max_pool1d", "max_pool2d", "mish", "mse_loss",
    "nll_loss", "one_hot", "pad", "relu", "relu6", "rms_norm", "scaled_dot_product_attention", "sigmoid", "silu",
    "smooth_l1_loss", "softmax", "softplus", "tanh",
]  # fmt: skip
