"""Let PyTorch draw from Python's module `random`, as mgjit does: in row-major order, one call for each element.

So that both libraries have the same initial weights, batches, noise and masks.  Not used where times are taken.
"""

from __future__ import annotations

import math
import random
from typing import Any

import torch
from torch.utils import data

from mgjit.tensor import Generator


def share() -> None:
    """Replace what draws."""
    torch.Generator = Generator
    torch.manual_seed = random.seed
    torch.rand, torch.randn = _of_shape(_uniform), _of_shape(_gauss)
    torch.rand_like = lambda x, **_: torch.rand(x.shape)
    torch.randn_like = lambda x, **_: torch.randn(x.shape)
    torch.randint, torch.randperm, torch.multinomial = _randint, _randperm, _multinomial
    torch.Tensor.uniform_, torch.Tensor.normal_ = _uniform_, _normal_
    torch.nn.functional.dropout = _dropout
    data.RandomSampler.__iter__ = lambda self: iter(_shuffled(len(self.data_source)))


def _uniform(generator: Any) -> float:
    return generator.random()


def _gauss(generator: Any) -> float:
    return generator.gauss(0.0, 1.0)


def _of_shape(draw: Any) -> Any:
    def made(*shape: Any, generator: Any = None, **further: Any) -> Any:
        extents = tuple(shape[0]) if shape and not isinstance(shape[0], int) else shape
        found = torch.tensor([draw(generator or random) for _ in range(math.prod(extents))]).reshape(extents)
        return found.requires_grad_(further.get("requires_grad", False))

    return made


def _randint(low: int, high: Any, shape: Any = None, generator: Any = None, **_: Any) -> Any:
    if shape is None:
        low, high, shape = 0, low, high
    draw = (generator or random).randrange
    return torch.tensor([draw(low, high) for _ in range(math.prod(shape))]).reshape(tuple(shape))


def _shuffled(count: int, generator: Any = None) -> list[int]:
    order = list(range(count))
    (generator or random).shuffle(order)
    return order


def _randperm(count: int, generator: Any = None, **_: Any) -> Any:
    return torch.rand(count, generator=generator).argsort()


def _multinomial(x: Any, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Any:
    sums = x.cumsum(-1)
    total = sums[..., -1:]
    draws = torch.rand((*x.shape[:-1], num_samples), generator=generator) * total
    return ((sums.unsqueeze(-2) <= draws.unsqueeze(-1)) & (sums < total).unsqueeze(-2)).sum(-1)


def _uniform_(x: Any, low: float = 0.0, high: float = 1.0, generator: Any = None) -> Any:
    with torch.no_grad():
        return x.copy_(torch.rand(x.shape, generator=generator) * (high - low) + low)


def _normal_(x: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    with torch.no_grad():
        return x.copy_(torch.randn(x.shape, generator=generator) * std + mean)


def _dropout(x: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    return torch.where(torch.rand(x.shape) < p, 0.0, x / (1.0 - p)) if training and p else x
