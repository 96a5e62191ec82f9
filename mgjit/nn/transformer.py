"""Layers of a Transformer that reads: attention over all places, and two linear layers (Vaswani et al. 2017)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ..errors import ArgumentValueError, user_location
from ..tensor import elementwise
from ..tensor.tensor import Tensor
from .attention import MultiheadAttention
from .linear import Dropout, Linear
from .module import Module, ModuleList
from .normalisation import LayerNorm


class TransformerEncoderLayer(Module):
    """x = norm1(x + attention(x)), then norm2(x + linear2(activation(linear1(x)))).

    Args:
        d_model: features of each place.
        nhead: heads of the attention.
        dim_feedforward: features between the two linear layers.
        dropout: its probability, after the attention and both linear layers, and in the attention weights.
        activation: "relu", "gelu", or a function.
        layer_norm_eps: what the norms add to the variance.
        batch_first: whether the first axis is that of the batch, and not of the places.
        norm_first: whether each part begins with its norm, rather than the sum ending with it.
        bias: whether linear layers have one.
        dtype: of the parameters.
        generator: what initial weights are drawn by.
    """

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Any = "relu",
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True, *,
        dtype: Any = "float64", generator: Any = None,
    ) -> None:  # fmt: skip
        made: dict[str, Any] = {"dtype": dtype, "generator": generator}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first, **made)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **made)
        self.norm1, self.norm2 = (LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype) for _ in range(2))
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        self.norm_first = norm_first
        self.activation: Callable[[Tensor], Tensor] = _activation(activation)

    def forward(
        self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """src and the result: (L, N, d_model), or with batch_first (N, L, d_model); masks as of the attention."""
        x = src
        if self.norm_first:
            x = x + self._attended(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            return x + self._fed(self.norm2(x))  # type: ignore[no-any-return]
        x = self.norm1(x + self._attended(x, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(x + self._fed(x))  # type: ignore[no-any-return]

    def _attended(self, x: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool) -> Any:
        found, _ = self.self_attn(x, x, x, padding, False, mask, is_causal=is_causal)
        return self.dropout1(found)

    def _fed(self, x: Tensor) -> Any:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """Copies of a layer, one after the other.

    Args:
        encoder_layer: the layer.
        num_layers: how many copies.
        norm: what comes last, or None.
    """

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.norm = norm

    def forward(
        self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """See `TransformerEncoderLayer`."""
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, is_causal)
        return src if self.norm is None else self.norm(src)


def _activation(given: Any) -> Callable[[Tensor], Tensor]:
    if callable(given):
        return given  # type: ignore[no-any-return]
    if given not in ("relu", "gelu"):
        raise ArgumentValueError(f"{user_location()}: activation is 'relu', 'gelu' or a function, not {given!r}.")
    return elementwise.relu if given == "relu" else elementwise.gelu
