"""`DataLoader`: the samples of a dataset in batches, which become tensors.

The order is drawn when an iteration begins.  A `TensorDataset`, and a part of one, gives a batch by one selection of
rows; of any other dataset samples are taken one by one, and put together (`default_collate`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ..errors import ArgumentValueError, user_location
from ..tensor.creation import asarray, is_array
from ..tensor.joining import stack
from ..tensor.tensor import Tensor
from .datasets import Subset, TensorDataset


class DataLoader:
    """Batches of a dataset: `for x, y in loader`; `len(loader)` of them.

    Args:
        dataset: anything with `len(dataset)` and `dataset[k]`, or something to be iterated over.
        batch_size: samples in a batch; None for samples one by one.
        shuffle: whether each iteration has another order.
        sampler: the numbers of the samples, in the order in which you want them; instead of `shuffle`.
        collate_fn: makes a batch of a list of samples; see `default_collate`.
        drop_last: whether a last batch that is smaller is left out: one shape is one kernel.
        generator: a `random.Random` that draws the orders, instead of the module `random`.
        further: such as `num_workers` and `pin_memory`, which make no difference.
    """

    def __init__(
        self, dataset: Any, batch_size: int | None = 1, shuffle: bool = False, sampler: Iterable[int] | None = None,
        *, collate_fn: Callable[[list[Any]], Any] | None = None, drop_last: bool = False, generator: Any = None,
        **further: Any,
    ) -> None:  # fmt: skip
        if (batch_size is not None and batch_size < 1) or (shuffle and sampler is not None):
            raise ArgumentValueError(
                f"{user_location()}: DataLoader with batch_size={batch_size}: at least 1; with shuffle=True there is "
                "no sampler."
            )
        self.dataset, self.batch_size, self.shuffle, self.sampler = dataset, batch_size, shuffle, sampler
        self.collate_fn, self.drop_last, self.generator = collate_fn, drop_last, generator

    def __len__(self) -> int:
        count = len(self.dataset if self.sampler is None else self.sampler)  # type: ignore[arg-type]
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        if not hasattr(self.dataset, "__getitem__"):
            yield from self._collected()
            return
        order = self._order()
        if self.batch_size is None:
            yield from (self.dataset[k] for k in order)
            return
        end = len(order) - len(order) % self.batch_size if self.drop_last else len(order)
        for start in range(0, end, self.batch_size):
            yield self._batch(order[start : start + self.batch_size])

    def _order(self) -> list[int]:
        if self.sampler is not None:
            return list(self.sampler)
        order = list(range(len(self.dataset)))
        if self.shuffle:
            (self.generator or random).shuffle(order)
        return order

    def _batch(self, numbers: list[int]) -> Any:
        dataset = self.dataset
        while type(dataset) is Subset:
            numbers, dataset = [dataset.indices[k] for k in numbers], dataset.dataset
        if self.collate_fn is None and type(dataset) is TensorDataset:
            return dataset.batch(numbers)
        return (self.collate_fn or default_collate)([dataset[k] for k in numbers])

    def _collected(self) -> Iterator[Any]:
        """The batches of what can only be iterated over."""
        samples: list[Any] = []
        for sample in self.dataset:
            if self.batch_size is None:
                yield sample
                continue
            samples.append(sample)
            if len(samples) == self.batch_size:
                yield (self.collate_fn or default_collate)(samples)
                samples = []
        if samples and not self.drop_last:
            yield (self.collate_fn or default_collate)(samples)


def default_collate(samples: list[Any]) -> Any:
    """A batch: tensors, arrays and numbers become a tensor with one more axis, and so do the parts of tuples and dicts.

    Anything else, such as text, becomes a list.
    """
    first = samples[0]
    if isinstance(first, Tensor):
        return stack(samples)
    if isinstance(first, Mapping):
        return {name: default_collate([sample[name] for sample in samples]) for name in first}
    if isinstance(first, (bool, int, float)):
        return asarray(samples)
    if isinstance(first, (tuple, list)):
        return [default_collate(list(parts)) for parts in zip(*samples)]
    return stack(list(map(asarray, samples))) if is_array(first) else samples
