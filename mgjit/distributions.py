"""Probability distributions over tensors, with PyTorch's names: `Categorical`, `Bernoulli`, `Normal`.

Samples are drawn as tensors draw: from Python's module `random`, and no gradient flows through them but by `rsample`.
"""

from __future__ import annotations

import math
from typing import Any

from . import tensor as T
from .errors import ArgumentError, user_location
from .tensor import Tensor


class Categorical:
    """Whole numbers from 0 on, whose probabilities lie along the last axis.

    Args:
        probs: the probabilities, or numbers in proportion to them.
        logits: their logarithms, to which any number may be added.
    """

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        given = _one_of("Categorical", probs, logits)
        self.probs: Tensor = T.softmax(given, -1) if probs is None else given / T.sum(given, -1, keepdims=True)
        self.logits: Tensor = given - T.logsumexp(given, -1, keepdims=True) if probs is None else T.log(self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw classes, as whole numbers; of the shape `sample_shape` + `probs.shape[:-1]`."""
        shape, classes = self.probs.shape[:-1], self.probs.shape[-1]
        rows = self.probs.detach().reshape(-1, classes)
        found = T.multinomial(rows, math.prod(sample_shape), replacement=True)
        return found.T.reshape((*sample_shape, *shape))

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the probability of each whole number; nan for one that is none of them."""
        is_meant = T.asarray(value).expand_dims(-1) == T.arange(self.logits.shape[-1])
        found = T.sum(T.where(is_meant, self.logits, 0.0), -1)
        return T.where(T.any(is_meant, -1), found, math.nan)

    def entropy(self) -> Tensor:
        """The mean of the negative logarithm of the probability."""
        return -T.sum(self.probs * T.clip(self.logits, -1e300, None), -1)


class Bernoulli:
    """1.0 with a probability, otherwise 0.0.

    Args:
        probs: the probability of 1.0.
        logits: log(probs / (1 - probs)).
    """

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: Any = None) -> None:
        given = _one_of("Bernoulli", probs, logits)
        self.probs: Tensor = T.sigmoid(given) if probs is None else given
        self.logits: Tensor = given if probs is None else T.log(given) - T.log1p(-given)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Numbers that are drawn."""
        return T.bernoulli(self.probs.detach().broadcast_to((*sample_shape, *self.probs.shape)))

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the probability of 1.0 or 0.0."""
        x = self.logits
        return T.asarray(value) * x - T.softplus(x)

    def entropy(self) -> Tensor:
        """The mean of the negative logarithm of the probability."""
        return T.softplus(self.logits) - self.probs * self.logits


class Normal:
    """Normally distributed numbers.

    Args:
        loc, scale: the means and the standard deviations.
    """

    def __init__(self, loc: Any, scale: Any, validate_args: Any = None) -> None:
        self.loc, self.scale = T.asarray(loc), T.asarray(scale)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Numbers that are drawn."""
        return self.rsample(sample_shape).detach()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Numbers that are drawn, through which gradients flow to the means and deviations."""
        shape = (self.loc + self.scale).shape
        return T.randn((*sample_shape, *shape), dtype=self.loc.dtype) * self.scale + self.loc

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the density."""
        distance = T.asarray(value) - self.loc
        return -T.square(distance) / (2 * T.square(self.scale)) - T.log(self.scale) - math.log(math.sqrt(2 * math.pi))

    def entropy(self) -> Tensor:
        """The mean of the negative logarithm of the density."""
        return 0.5 + 0.5 * math.log(2 * math.pi) + T.log(self.scale) + self.loc * 0.0


def _one_of(name: str, probs: Any, logits: Any) -> Tensor:
    if (probs is None) == (logits is None):
        raise ArgumentError(f"{user_location()}: {name} of either probs= or logits=.")
    return T.asarray(logits if probs is None else probs)


__all__ = ["Bernoulli", "Categorical", "Normal"]
