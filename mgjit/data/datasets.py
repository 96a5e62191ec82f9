"""Samples by number: datasets, parts of them, and several one after the other.

A dataset is anything with `len(dataset)` and `dataset[k]`, a list as well.
"""

from __future__ import annotations

import bisect
import random
from collections.abc import Sequence
from typing import Any

from ..errors import ArgumentValueError, ShapeError, user_location
from ..tensor.creation import asarray


class Dataset:
    """A base for classes that define `__len__` and `__getitem__`."""

    def __len__(self) -> int:
        raise NotImplementedError

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError


class TensorDataset(Dataset):
    """Rows of tensors: sample k is `(x[k], y[k], ...)`.

    Args:
        tensors: of the same first extent; arrays and nested lists become tensors.
    """

    def __init__(self, *tensors: Any) -> None:
        self.tensors = tuple(map(asarray, tensors))
        shapes = [x.shape for x in self.tensors]
        if not shapes or len({shape[:1] for shape in shapes}) > 1 or not all(shapes):
            raise ShapeError(f"{user_location()}: TensorDataset of shapes {shapes}: the first extents must be equal.")

    def __len__(self) -> int:
        return self.tensors[0].shape[0]

    def __getitem__(self, index: Any) -> Any:
        return tuple(x[index] for x in self.tensors)

    def batch(self, indices: list[int]) -> Any:
        """Several samples at once."""
        return [x[indices] for x in self.tensors]


class Subset(Dataset):
    """Some samples of a dataset, by their numbers."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: Any) -> Any:
        return self.dataset[self.indices[index]]


class ConcatDataset(Dataset):
    """Datasets one after the other."""

    def __init__(self, datasets: Sequence[Any]) -> None:
        self.datasets, self._ends = list(datasets), [0]
        for one in self.datasets:
            self._ends.append(self._ends[-1] + len(one))

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, index: Any) -> Any:
        number = range(len(self))[index]
        which = bisect.bisect_right(self._ends, number) - 1
        return self.datasets[which][number - self._ends[which]]


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Subset]:
    """Parts of a dataset, whose samples are drawn at random.

    Args:
        lengths: how many samples each part has; or its share of all samples. The first parts get what rounding leaves
            over.
        generator: a `random.Random` to draw from, instead of the module `random`.

    Raises:
        ArgumentValueError: the lengths do not add up.
    """
    count = len(dataset)
    parts = [int(one) for one in lengths]
    if all(0.0 <= one <= 1.0 for one in lengths) and abs(sum(lengths) - 1.0) < 1e-9:
        parts = [int(count * one) for one in lengths]
        for k in range(count - sum(parts)):
            parts[k % len(parts)] += 1
    if sum(parts) != count:
        raise ArgumentValueError(f"{user_location()}: random_split of {count} samples into {list(lengths)}.")
    order = list(range(count))
    (generator or random).shuffle(order)
    ends = [sum(parts[:k]) for k in range(len(parts) + 1)]
    return [Subset(dataset, order[low:high]) for low, high in zip(ends, ends[1:])]
