"""Attention: scaled dot products, and several heads of them."""

from __future__ import annotations

import math
import random
from typing import Any

from ..errors import ArgumentValueError, ShapeError, user_location
from ..tensor import creation, reductions
from ..tensor.elementwise import where
from ..tensor.products import matmul
from ..tensor.tensor import Tensor, require
from . import checks, init
from .linear import Linear, dropout, linear
from .module import Module
from .parameter import Parameter


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None,
) -> Tensor:  # fmt: skip
    """softmax(query @ key.mT * scale) @ value

    Args:
        query: (..., L, width). key: (..., S, width). value: (..., S, width of the result).
        attn_mask: what can be broadcast to (..., L, S): bool, True where to look; or numbers that are added.
        dropout_p: the probability that a place is not looked at; 0 unless training.
        is_causal: whether place i looks at the places up to i only.
        scale: None for 1 / sqrt(width).

    Raises:
        ShapeError: the shapes do not go together.
    """
    name = "scaled_dot_product_attention"
    query, key, value = require(query, name), require(key, name), require(value, name)
    if (
        min(query.ndim, key.ndim, value.ndim) < 2
        or query.shape[-1] != key.shape[-1]
        or key.shape[-2] != value.shape[-2]
    ):
        raise ShapeError(
            f"{user_location()}: {name} of shapes {query.shape}, {key.shape} and {value.shape}: (..., L, width), "
            "(..., S, width) and (..., S, width of the result)."
        )
    allowed = None if attn_mask is None or attn_mask.dtype.is_floating else attn_mask
    added = None if allowed is not None else attn_mask
    weights = _weights(query, key, allowed, added, is_causal, scale)
    return matmul(dropout(weights, dropout_p), value)


def _weights(
    query: Tensor, key: Tensor, allowed: Tensor | None, added: Tensor | None, is_causal: bool, scale: float | None
) -> Tensor:
    """How much each place looks at each other."""
    scores = matmul(query, key.mT) * (1.0 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if added is not None:
        scores = scores + added
    if is_causal:
        rows, columns = creation.arange(scores.shape[-2]), creation.arange(scores.shape[-1])
        scores = where(columns <= rows.expand_dims(1), scores, -math.inf)
    if allowed is not None:
        scores = where(allowed, scores, -math.inf)
    return reductions.softmax(scores, axis=-1)


class MultiheadAttention(Module):
    """Several attentions side by side, each over a part of the features.

    Args:
        embed_dim: features of query, key, value and result.
        num_heads: so many parts.
        dropout: the probability that a place is not looked at, in training.
        bias: whether the projections have biases.
        batch_first: whether the first axis is that of the batch, and not of the places.
        dtype: of the parameters.
        generator: draws the initial weights: Xavier's uniform for the input projections, as `Linear` for the output
            projection. Biases are zeros.

    Attributes:
        in_proj_weight: (3 * embed_dim, embed_dim), those of query, key and value. in_proj_bias: or None.
        out_proj: a Linear.
    """

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, batch_first: bool = False, *,
        dtype: Any = "float64", generator: Any = random,
    ) -> None:  # fmt: skip
        self.embed_dim, self.num_heads = checks.count("embed_dim", embed_dim), checks.count("num_heads", num_heads)
        if embed_dim % num_heads:
            raise ArgumentValueError(f"{user_location()}: {embed_dim} features cannot be cut into {num_heads} heads.")
        self.dropout, self.batch_first = checks.probability("dropout", dropout), batch_first
        self.training = True
        self.in_proj_weight = Parameter(creation.zeros((3 * embed_dim, embed_dim), dtype=dtype))
        init.xavier_uniform_(self.in_proj_weight, generator=generator)
        self.in_proj_bias = Parameter(creation.zeros(3 * embed_dim, dtype=dtype)) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias, dtype=dtype, generator=generator)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
        need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """Look from each place of the query at those of the key.

        Args:
            query: (L, N, embed_dim); with batch_first (N, L, embed_dim); or (L, embed_dim). key, value: S for L.
            key_padding_mask: (N, S), True for places that get no attention.
            need_weights: whether the second result is the attention weights, and not None.
            attn_mask: (L, S) or (N * heads, L, S): True where no attention is paid, or numbers that are added to the
                scores.
            average_attn_weights: whether these are the means of all heads.
            is_causal: whether place i looks at the places up to i only; `attn_mask` is not needed for that.

        Returns:
            (a tensor of the shape of the query, the weights (N, L, S), or with all heads (N, heads, L, S))
        """
        given = [checks.last_extent(one, self.embed_dim, self) for one in (query, key, value)]
        if len({one.ndim for one in given}) > 1 or given[0].ndim not in (2, 3) or given[1].shape != given[2].shape:
            raise ShapeError(
                f"{user_location()}: {checks.named(self)} of shapes "
                f"{', '.join(str(one.shape) for one in given)}: key and value must be "
                "equal, and all have two or three axes."
            )
        has_batch = given[0].ndim == 3
        if not has_batch:
            given = [one.expand_dims(0) for one in given]
        elif not self.batch_first:
            given = [one.swapaxes(0, 1) for one in given]
        if given[0].shape[0] != given[1].shape[0]:
            raise ShapeError(
                f"{user_location()}: {checks.named(self)} of shapes {query.shape} and {key.shape}: "
                "batches of different sizes."
            )
        heads = [self._heads(one, k) for k, one in enumerate(given)]
        batch, places = given[0].shape[0], given[0].shape[1]
        allowed, added = self._masks(key_padding_mask, attn_mask, batch)
        weights = _weights(heads[0], heads[1], allowed, added, is_causal, None)
        found = matmul(dropout(weights, self.dropout, self.training), heads[2])
        found = self.out_proj(found.swapaxes(1, 2).reshape((batch, places, self.embed_dim)))
        if has_batch and not self.batch_first:
            found = found.swapaxes(0, 1)
        shown = None
        if need_weights:
            shown = reductions.mean(weights, axis=1) if average_attn_weights else weights
        if has_batch:
            return found, shown
        return found.squeeze(0), None if shown is None else shown.squeeze(0)

    def _heads(self, x: Tensor, which: int) -> Tensor:
        """One projection, cut into heads: (N, heads, places, features of a head)."""
        rows = slice(which * self.embed_dim, (which + 1) * self.embed_dim)
        bias = None if self.in_proj_bias is None else self.in_proj_bias[rows]
        wide = linear(x, self.in_proj_weight[rows], bias)
        return wide.reshape((*x.shape[:2], self.num_heads, -1)).swapaxes(1, 2)

    def _masks(self, padding: Tensor | None, mask: Tensor | None, batch: int) -> tuple[Tensor | None, Tensor | None]:
        """Where to look, and what is added, both of a shape that can be broadcast to (N, heads, L, S)."""
        allowed = added = None
        if mask is not None:
            mask = (
                mask.reshape((batch, self.num_heads, *mask.shape[1:])) if require(mask, "attn_mask").ndim == 3 else mask
            )
            allowed, added = (None, mask) if mask.dtype.is_floating else (~mask, None)
        if padding is not None:
            looked_at = ~require(padding, "key_padding_mask").reshape((batch, 1, 1, -1))
            allowed = looked_at if allowed is None else allowed & looked_at
        return allowed, added

    def extra_repr(self) -> str:
        return f"{self.embed_dim}, {self.num_heads}"
