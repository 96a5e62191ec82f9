"""Datasets by number, parts of them, and several one after the other."""

from __future__ import annotations

import random

import pytest

from mgjit import data
from mgjit import tensor as T
from mgjit.errors import ArgumentValueError, ShapeError


def test_rows_of_tensors() -> None:
    whole = data.TensorDataset([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], T.asarray([7, 8, 9]))
    assert len(whole) == 3
    assert [one.tolist() for one in whole[1]] == [[3.0, 4.0], 8]
    with pytest.raises(ShapeError, match=r"\(3,\).*\(2,\)"):
        data.TensorDataset(T.zeros(3), T.zeros(2))


def test_parts_are_drawn_without_losing_a_sample() -> None:
    for lengths in ([7, 3], [0.7, 0.3], [0.5, 0.25, 0.25]):
        parts = data.random_split(list(range(10)), lengths, random.Random(1))
        assert sorted(one for part in parts for one in part) == list(range(10))  # type: ignore[attr-defined]
        again = data.random_split(list(range(10)), lengths, random.Random(1))
        assert [part.indices for part in parts] == [part.indices for part in again]
    assert [len(part) for part in data.random_split(range(10), [0.55, 0.45])] == [6, 4]
    with pytest.raises(ArgumentValueError, match="of 10 samples"):
        data.random_split(list(range(10)), [7, 4])


def test_several_one_after_the_other() -> None:
    whole = data.ConcatDataset([[1, 2], [], [3]])
    assert [whole[k] for k in (0, 1, 2, -1)] == [1, 2, 3, 3]
    assert len(whole) == 3
    with pytest.raises(IndexError):
        whole[3]
