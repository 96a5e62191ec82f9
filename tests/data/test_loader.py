"""Batches: their sizes, their order, and what they are made of."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import mgjit
from mgjit import data, nn
from mgjit import tensor as T
from mgjit.errors import ArgumentValueError
from mgjit.nn import functional as F

ROWS = data.TensorDataset(T.arange(7.0), T.arange(7))


def read(loader: Any) -> list[Any]:
    return [[part.tolist() for part in batch] for batch in loader]


def test_the_last_batch_is_smaller_or_left_out() -> None:
    loader = data.DataLoader(ROWS, batch_size=3)
    assert read(loader) == [[[0.0, 1.0, 2.0], [0, 1, 2]], [[3.0, 4.0, 5.0], [3, 4, 5]], [[6.0], [6]]]
    assert (len(loader), len(data.DataLoader(ROWS, 3, drop_last=True))) == (3, 2)
    assert read(data.DataLoader(ROWS, 3, drop_last=True)) == read(loader)[:2]


def test_each_iteration_has_an_order_that_the_seed_repeats() -> None:
    loader = data.DataLoader(ROWS, 2, shuffle=True, generator=random.Random(3))
    first, second = read(loader), read(loader)
    assert first != second
    assert sorted(x for x, _ in first for x in x) == list(range(7))
    again = data.DataLoader(ROWS, 2, True, generator=T.Generator().manual_seed(3))
    assert [read(again), read(again)] == [first, second]


class Squares:
    """A dataset of somebody's own."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, k: int) -> Any:
        return {"x": T.asarray([k, k * k], dtype="float64"), "label": k, "name": str(k)}


def test_samples_are_put_together() -> None:
    batch = next(iter(data.DataLoader(Squares(), 2, num_workers=2, pin_memory=True)))
    assert batch["x"].tolist() == [[0.0, 0.0], [1.0, 1.0]]
    assert (batch["label"].tolist(), batch["label"].dtype, batch["name"]) == ([0, 1], T.int64, ["0", "1"])
    pairs = data.DataLoader([(1.5, True), (2.5, False)], 2)
    assert read(pairs) == [[[1.5, 2.5], [True, False]]]
    assert list(data.DataLoader(Squares(), 4, collate_fn=len)) == [4]


def test_what_can_only_be_iterated_over() -> None:
    class Stream:
        def __iter__(self) -> Iterator[int]:
            return iter(range(5))

    assert [batch.tolist() for batch in data.DataLoader(Stream(), 2)] == [[0, 1], [2, 3], [4]]
    assert list(data.DataLoader(Stream(), None)) == [0, 1, 2, 3, 4]


def test_a_part_of_rows_gives_batches_at_once() -> None:
    part = data.Subset(data.Subset(ROWS, [6, 4, 2, 0]), [3, 1])
    assert read(data.DataLoader(part, 2)) == [[[0.0, 4.0], [0, 4]]]


def test_a_sampler_says_the_order() -> None:
    assert read(data.DataLoader(ROWS, 2, sampler=[5, 1, 1])) == [[[5.0, 1.0], [5, 1]], [[1.0], [1]]]
    with pytest.raises(ArgumentValueError, match="no sampler"):
        data.DataLoader(ROWS, 2, True, sampler=[1])


def test_a_step_learns_from_batches_as_plain_python_does() -> None:
    results = []
    for make in (mgjit.compile, lambda function: function):
        model = nn.Linear(1, 3, generator=random.Random(1))
        optimizer = mgjit.optim.SGD(model.parameters(), lr=0.1)

        def train(x: Any, y: Any, model: Any = model, optimizer: Any = optimizer) -> Any:
            loss = F.cross_entropy(model(x.unsqueeze(1)), y % 3)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        step = make(train)
        loader = data.DataLoader(ROWS, 3, shuffle=True, drop_last=True, generator=random.Random(5))
        results.append([step(x, y).item() for _ in range(3) for x, y in data.progress(loader)])
    assert results[0] == results[1]
