"""step/unit_choice.py: which function of a step is compiled by itself, and what speaks against it."""

from __future__ import annotations

import contextvars
import logging
import os
import sys
from collections.abc import Callable
from typing import Any

import pytest

from mgjit.step import unit_choice as choice_module
from mgjit.step.unit_choice import is_plain, watched
from tests.step.unit_programs import Node, program

LETTERS = [Node(0.5), Node(-0.25), Node(1.5)]
NAMES = [[0, 1], [1, 2, 0], [2], [0, 0, 1, 2]]
SCALES = [1.5, 2.0]


@pytest.fixture(autouse=True)
def whatever_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """These calls are too short to compare times."""
    monkeypatch.setattr(choice_module, "_SHARE", 0.0)


class Settings:
    """What a function may read."""

    factor = 0.5


settings = Settings()
kept: list[Any] = []


def sample(name: list[int]) -> Any:
    return sum(LETTERS[letter] * LETTERS[letter] * SCALES[0] * settings.factor for letter in name)


def depth(node: Any) -> int:
    return 1 + max(map(depth, node.children), default=0)


def trained(batch: list[list[int]]) -> Any:
    loss = sum(sample(name) for name in batch)
    loss.backward()
    return loss.data


def assigns_what_is_read(batch: list[list[int]]) -> Any:
    settings.factor = 0.5
    return trained(batch)


def changes_a_list_that_is_read(batch: list[list[int]]) -> Any:
    SCALES[0] = 1.5
    return trained(batch)


def appends_to_a_list_that_is_read(batch: list[list[int]]) -> Any:
    SCALES.append(1.0)
    SCALES.pop()
    return trained(batch)


def looks_at_the_graph(batch: list[list[int]]) -> Any:
    return depth(sum(sample(name) for name in batch))


def reaches_attributes_by_name(batch: list[list[int]]) -> Any:
    return getattr(sum(sample(name) for name in batch), "da" + "ta")


def returns_the_graph(batch: list[list[int]]) -> Any:
    return sum(sample(name) for name in batch)


def returns_graphs(batch: list[list[int]]) -> Any:
    return [sample(name) for name in batch]


def keeps_a_graph(batch: list[list[int]]) -> Any:
    kept[:] = [sample(name) for name in batch]
    return kept[0].data


def calls_it_once(batch: list[list[int]]) -> Any:
    return sample(batch[0]).data


def passes_nodes(batch: list[list[int]]) -> Any:
    def scaled(node: Any) -> Any:
        return node * node * node * node * node

    return sum(scaled(LETTERS[name[0]]) for name in batch * 50).data


def returns_parameters(batch: list[list[int]]) -> Any:
    def chosen(name: list[int]) -> Any:
        sum(LETTERS[0] * letter for letter in name * 20)
        return LETTERS[name[0]]

    return sum(chosen(name) for name in batch).data


def test_the_function_of_a_sample_is_found() -> None:
    result, choice = watched(trained, lambda: trained(NAMES))
    assert result == trained(NAMES)
    assert choice is not None
    assert choice.function is sample
    assert choice.known.kind is Node
    assert choice.ratio > 1.0


def test_of_functions_inside_each_other_the_outermost_is_taken() -> None:
    found = program(7)
    _, choice = watched(found.step, lambda: found.step(found.batches[0], 0.1))
    assert choice is not None
    assert choice.function is found.sample


def test_a_recursive_function_inside_does_not_hide_the_others() -> None:
    def height(number: int) -> float:
        return 0.5 if number < 2 else height(number - 1) + height(number - 2)

    def scaled(name: list[int]) -> Any:
        return sample(name) * height(4)

    def step(batch: list[list[int]]) -> Any:
        loss = sum(scaled(name) for name in batch)
        loss.backward()
        return loss.data

    _, choice = watched(step, lambda: step(NAMES))
    assert choice is not None
    assert choice.function is scaled


@pytest.mark.parametrize("step", [
    assigns_what_is_read, changes_a_list_that_is_read, appends_to_a_list_that_is_read, looks_at_the_graph,
    reaches_attributes_by_name, returns_the_graph, returns_graphs, keeps_a_graph, calls_it_once, passes_nodes,
    returns_parameters,
])  # fmt: skip
def test_nothing_is_chosen_where_somebody_could_tell(step: Callable[[Any], Any]) -> None:
    _, choice = watched(step, lambda: step(NAMES))
    assert choice is None


def test_a_profiler_is_left_alone() -> None:
    def profiler(*event: Any) -> None:
        pass

    sys.setprofile(profiler)
    try:
        _, choice = watched(trained, lambda: trained(NAMES))
        found: Any = sys.getprofile()
    finally:
        sys.setprofile(None)
    assert choice is None
    assert found is profiler


def test_an_error_of_the_step_ends_the_watching() -> None:
    with pytest.raises(IndexError):
        watched(trained, lambda: trained([[0], [99]]))
    assert sys.getprofile() is None


@pytest.mark.parametrize(
    ("thing", "expected"),
    [(1, True), (1.5, True), (True, True), ([1, (2, 3.0)], True), (None, False), ("a", False), ([1, None], False),
     ({1: 2}, False), (LETTERS[0], False)],
)  # fmt: skip
def test_arguments_of_numbers_alone_are_plain(thing: Any, expected: bool) -> None:
    assert is_plain(thing) is expected


def looks_at_classes(batch: list[list[int]]) -> Any:
    loss = sum(sample(name) for name in batch) + (1.0 if type(LETTERS[0]) is Node else 2.0)
    loss.backward()
    return loss.data


def handles_errors(batch: list[list[int]]) -> Any:
    try:
        return trained(batch)
    except OverflowError:
        return 0.0


def scaled(name: list[int]) -> Any:
    return sample(name) * float(os.environ.get("MGJIT_TEST_SCALE", "1.0"))


def reads_the_surroundings(batch: list[list[int]]) -> Any:
    return sum(scaled(name) for name in batch).data


TEMPERATURE: contextvars.ContextVar[float] = contextvars.ContextVar("TEMPERATURE", default=1.0)


def at_a_temperature(name: list[int]) -> Any:
    return sample(name) * TEMPERATURE.get()


def reads_a_context(batch: list[list[int]]) -> Any:
    return sum(at_a_temperature(name) for name in batch).data


def logs(name: list[int]) -> Any:
    logging.getLogger("mgjit.tests").debug("%d letters", len(name))
    return sample(name) * 1.0


def writes_a_log(batch: list[list[int]]) -> Any:
    return sum(logs(name) for name in batch).data


@pytest.mark.parametrize(
    "step", [looks_at_classes, handles_errors, reads_the_surroundings, reads_a_context, writes_a_log]
)
def test_nothing_is_chosen_where_objects_or_errors_or_surroundings_would_differ(step: Callable[[Any], Any]) -> None:
    _, choice = watched(step, lambda: step(NAMES))
    assert choice is None


class Counting(Node):
    """A node that counts its kind."""

    __slots__ = ()
    made = 0

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        Counting.made += 1

    def __mul__(self, other: Any) -> Any:
        return Counting(self.data * other.data, (self, other), (other.data, self.data))

    def __add__(self, other: Any) -> Any:
        other = other if isinstance(other, Node) else Counting(other)
        return Counting(self.data + other.data, (self, other), (1, 1))

    __radd__ = __add__


COUNTED = [Counting(0.5), Counting(1.5)]


def counted(name: list[int]) -> Any:
    return sum(COUNTED[letter % 2] * COUNTED[letter % 2] for letter in name)


def counts(batch: list[list[int]]) -> Any:
    loss = sum(counted(name) for name in batch)
    loss.backward()
    return loss.data


def test_to_choose_makes_no_nodes() -> None:
    watched(counts, lambda: counts(NAMES))
    before = Counting.made
    counts(NAMES)
    between = Counting.made
    watched(counts, lambda: counts(NAMES))
    assert Counting.made - between == between - before


def test_a_profiler_that_the_step_starts_is_left_alone() -> None:
    def profiler(*event: Any) -> None:
        pass

    def starts_one(batch: list[list[int]]) -> Any:
        sys.setprofile(profiler)
        return trained(batch)

    try:
        watched(starts_one, lambda: starts_one(NAMES))
        found: Any = sys.getprofile()
    finally:
        sys.setprofile(None)
    assert found is profiler
