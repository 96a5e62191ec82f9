"""tests/sampling.py: which cases of a table run every time."""

from __future__ import annotations

from itertools import combinations, product
from types import SimpleNamespace
from typing import Any

import pytest

from tests import sampling


class Item:
    """What pytest has for a case."""

    def __init__(self, choice: dict[str, Any], **indices: int) -> None:
        self.nodeid = f"tests/test_a.py::test[{'-'.join(map(str, indices.values()))}]"
        self.callspec = SimpleNamespace(params=indices)
        self.markers = {"sampled": pytest.mark.sampled(**choice).mark}

    def get_closest_marker(self, name: str) -> Any:
        return self.markers.get(name)

    def add_marker(self, name: str) -> None:
        self.markers[name] = getattr(pytest.mark, name).mark


def sample_of(choice: dict[str, Any], *lengths: int) -> tuple[list[Any], list[Any]]:
    """The sample of all combinations of so many parameters with so many values, and the whole."""
    items = [Item(choice, **dict(zip("abcd", values))) for values in product(*map(range, lengths))]
    sampling.mark_long(items)  # type: ignore[arg-type]
    return [item for item in items if not item.get_closest_marker("long")], items


def test_each_value_is_in_the_sample() -> None:
    sample, items = sample_of({}, 6, 5)
    assert {item.callspec.params["a"] for item in sample} == set(range(6))
    assert {item.callspec.params["b"] for item in sample} == set(range(5))
    assert len(sample) <= len(items) / 2


def test_each_pair_is_in_the_sample() -> None:
    sample, items = sample_of({"pairs": True}, 4, 4, 4)

    def pairs(of: list[Any]) -> set[Any]:
        return {pair for item in of for pair in combinations(sorted(item.callspec.params.items()), 2)}

    assert pairs(sample) == pairs(items)
    assert len(sample) <= len(items) * 2 / 3


def test_one_of_several() -> None:
    sample, _ = sample_of({"one_of": 4}, 40)
    assert len(sample) == 10


def test_the_sample_is_the_same_in_every_run() -> None:
    assert [item.nodeid for item in sample_of({}, 6, 5)[0]] == [item.nodeid for item in sample_of({}, 6, 5)[0]]


def test_what_is_not_marked_is_not_long() -> None:
    item = Item({}, a=0)
    del item.markers["sampled"]
    sampling.mark_long([item])  # type: ignore[list-item]
    assert not item.get_closest_marker("long")


def test_the_parts_together_are_the_whole() -> None:
    _, items = sample_of({}, 20, 20)
    parts = [{item.nodeid for item in items if sampling.in_part(item, f"{k}/3")} for k in (1, 2, 3)]
    assert sum(map(len, parts)) == len(items) == len(set().union(*parts))
    assert min(map(len, parts)) > len(items) / 6


@pytest.mark.parametrize("wrong", ["0/2", "3/2"])
def test_a_part_that_there_is_not(wrong: str) -> None:
    _, items = sample_of({}, 2, 2)
    with pytest.raises(pytest.UsageError, match="K from 1 to N"):
        sampling.in_part(items[0], wrong)
