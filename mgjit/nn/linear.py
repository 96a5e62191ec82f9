"""Linear, Embedding, Dropout, Flatten."""

from __future__ import annotations

import math
import random
from typing import Any

from ..errors import ArgumentError, IndexRangeError, ShapeError, user_location
from ..tensor import creation
from ..tensor.elementwise import where
from ..tensor.joining import take
from ..tensor.products import matmul
from ..tensor.shapes import axis_from, size_of
from ..tensor.tensor import Tensor, require
from . import checks, init
from .module import Module
from .parameter import Parameter


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x @ weight.mT + bias

    Args:
        x: of shape (..., inputs). weight: (outputs, inputs). bias: (outputs,)

    Raises:
        ShapeError: they do not go together.
    """
    x, weight = require(x, "linear"), require(weight, "linear")
    if not x.ndim or weight.ndim != 2 or x.shape[-1] != weight.shape[1]:
        raise ShapeError(
            f"{user_location()}: linear of shape {x.shape} with a weight of shape {weight.shape}: (..., inputs) and "
            "(outputs, inputs)."
        )
    found = matmul(x, weight.mT)
    return found if bias is None else found + bias


def embedding(indices: Any, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """The rows of a table that whole numbers choose; their axes come first.

    Args:
        indices: int64, of any shape, from 0 on. weight: (numbers, width)
        padding_idx: a row that gets no gradient.

    Raises:
        IndexRangeError: an index is out of range; nothing was computed.
    """
    if require(weight, "embedding").ndim != 2:
        raise ShapeError(f"{user_location()}: embedding with a weight of shape {weight.shape}: (numbers, width).")
    found = take(weight, indices)
    if padding_idx is None:
        return found
    if not isinstance(indices, Tensor):
        indices = creation.asarray(indices)
    return where((indices != padding_idx).expand_dims(-1), found, found.detach())


def dropout(x: Tensor, p: float = 0.5, training: bool = True, *, generator: Any = None) -> Tensor:
    """x / (1 - p), but 0 with probability p: where a number that is drawn for each element is below p.

    Args:
        p: of being 0.
        training: without it, x itself.
        generator: a `random.Random` to draw from, instead of the module `random`.
    """
    p = checks.probability("p", p)
    x = require(x, "dropout")
    if not training or p == 0.0:
        return x
    if p == 1.0:
        return x * 0.0
    draws = creation.rand(x.shape, dtype=x.dtype, generator=generator or random)
    return where(draws < p, 0.0, x * (1.0 / (1.0 - p)))


class Linear(Module):
    """x @ weight.mT + bias

    Args:
        in_features, out_features: the last extents of what comes in and of what goes out.
        bias: whether there is one.
        dtype: of the parameters.
        generator: what initial weights are drawn by, uniform in [-1, 1) / sqrt(in_features).

    Attributes:
        weight: (out_features, in_features).
        bias: (out_features,), or None.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, *, dtype: Any = "float64", generator: Any = random
    ) -> None:
        self.in_features, self.out_features = (
            checks.count("in_features", in_features, 0),
            checks.count("out_features", out_features, 0),
        )
        bound = 1.0 / math.sqrt(in_features) if in_features else 0.0
        self.weight = drawn((out_features, in_features), bound, dtype, generator)
        self.bias = drawn((out_features,), bound, dtype, generator) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """x: (..., in_features). Returns (..., out_features)."""
        return linear(checks.last_extent(x, self.in_features, self), self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


def drawn(shape: tuple[int, ...], bound: float, dtype: Any, generator: Any) -> Parameter:
    """A parameter that is uniform in [-bound, bound)."""
    return Parameter(creation.uniform(shape, -bound, bound, dtype=dtype, generator=generator))


class Embedding(Module):
    """A table whose rows whole numbers choose.

    Args:
        num_embeddings: rows. embedding_dim: columns.
        padding_idx: a row that is zeros at first and gets no gradient.
        dtype: of the table.
        generator: what initial weights are drawn by, normally distributed.

    Attributes:
        weight: (num_embeddings, embedding_dim).
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, *, dtype: Any = "float64",
        generator: Any = random,
    ) -> None:  # fmt: skip
        self.num_embeddings = checks.count("num_embeddings", num_embeddings)
        self.embedding_dim = checks.count("embedding_dim", embedding_dim)
        self.weight = Parameter(creation.randn((num_embeddings, embedding_dim), dtype=dtype, generator=generator))
        self.padding_idx = padding_idx
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise IndexRangeError(
                    f"{user_location()}: padding_idx={padding_idx} of an Embedding with {num_embeddings} rows."
                )
            self.padding_idx = padding_idx % num_embeddings
            init.zeros_(self.weight.detach()[self.padding_idx])

    def forward(self, indices: Any) -> Tensor:
        """indices: int64 of any shape. Returns (*shape, embedding_dim)."""
        if isinstance(indices, Tensor) and indices.dtype.is_floating:
            raise ArgumentError(
                f"{user_location()}: {checks.named(self)} takes indices of type int64, not a tensor of "
                f"{indices.dtype} of shape {indices.shape}."
            )
        return embedding(indices, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        more = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{more}"


class Dropout(Module):
    """While training, each element is 0 with probability p, and otherwise x / (1 - p).

    Random numbers are drawn in each call, in row-major order; inside of a compiled step they are inputs of the kernel.

    Args:
        p: of being 0.
        inplace: makes no difference.
        generator: a `random.Random` to draw from, instead of the module `random`.
    """

    def __init__(self, p: float = 0.5, inplace: bool = False, *, generator: Any = None) -> None:
        self.inplace = inplace
        self.p = checks.probability("p", p)
        self.generator = generator
        self.training = True

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p, self.training, generator=self.generator)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class Flatten(Module):
    """Several axes become one: all but the first, unless told otherwise."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: Tensor) -> Tensor:
        first, last = (
            axis_from("Flatten", axis, require(x, "Flatten").ndim) for axis in (self.start_dim, self.end_dim)
        )
        shape = x.shape
        return x.reshape((*shape[:first], size_of(shape[first : last + 1]), *shape[last + 1 :]))

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"
