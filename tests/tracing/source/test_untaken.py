"""Sides of conditions on traced numbers: what they may do, and what makes the call plain."""

from __future__ import annotations

import collections
import itertools
import random
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit.tracing.source.implicit import COMPUTES, READS, Implicit
from mgjit.tracing.source.untaken import Surroundings

numbers: list[float] = [0.5, 1.5]
table = {"a": 0.5}
queue = collections.deque([0.5, 1.5])
defaults: Any = collections.defaultdict(float)


class Counter:
    def __init__(self) -> None:
        self.n = 0.5

    def bump(self) -> float:
        self.n = self.n * 0.5 + 1.0
        return self.n

    def reads(self, x: float) -> float:
        return self.n * x


class Made:
    def __init__(self, x: float) -> None:
        self.x, self.parts = x, [x]

    def add(self, y: float) -> float:
        self.x += y
        self.parts.append(y)
        return self.x + sum(self.parts)


counter = Counter()


def draws(x: float) -> float:
    return random.random() if x > 0 else 0.0


def changes_an_object(x: float) -> float:
    if x > 0:
        y = counter.bump()
    else:
        y = 0.0
    return y


def changes_after_and(x: float) -> Any:
    return x > 0 and counter.bump()


def changes_after_or(x: float) -> Any:
    return x > 0 or counter.bump()


def changes_in_a_chain(x: float) -> Any:
    return 0 < x < counter.bump()


def changes_in_a_quantifier(x: float) -> Any:
    return any(counter.bump() > x for _ in range(3))


def appends_from_outside(x: float) -> Any:
    return (numbers.append(1.0) or 1.0) if x > 0 else 0.0  # type: ignore[func-returns-value]


def appends_in_c(x: float) -> Any:
    return len(list(map(numbers.append, [1.0]))) * x if x > 0 else 0.0


def appends_to_what_the_step_has_made(x: float) -> Any:
    made: list[float] = []
    y = (made.append(1.0) or 1.0) if x > 0 else 0.0  # type: ignore[func-returns-value]
    return y, made


def takes_from_an_iterator(x: float) -> Any:
    items = iter([0.5, 1.5])
    y = next(items) if x > 0 else 0.0
    return y, list(items)


def unpacks_an_iterator(x: float) -> Any:
    items = iter([0.5, 1.5])
    y = 0.0
    if x > 0:
        y, _ = items
    return y, list(items)


def looks_into_an_iterator(x: float) -> Any:
    items = iter([0.5, 1.5])
    y = 0.5 in items if x > 0 else False
    return y, list(items)


def takes_all_of_an_iterator(x: float) -> Any:
    items = iter([0.5, 1.5])
    y = list(items)[0] if x > 0 else 0.0  # noqa: RUF015
    return y, list(items)


def adds_up_an_iterator(x: float) -> Any:
    items = iter([0.5, 1.5])
    y = sum(items) if x > 0 else 0.0
    return y, list(items)


def adds_up_by_an_iterator(x: float) -> Any:
    items = iter([0.5, 1.5])
    y = sum(q * x for q, _ in zip(items, numbers)) if x > 0 else 0.0
    return y, list(items)


def goes_through_iterators(x: float) -> Any:
    pairs = [iter([0.5, 1.5]), iter([0.5, 1.5])]
    y = 0.0
    if x > 0:
        for a, b in pairs:
            y = a + b * x
    return y, [list(pair) for pair in pairs]


def adds_in_place(x: float) -> Any:
    made = [1.0]
    if x > 0:
        other = made
        other += [x]
    else:
        other = [x]
    return len(other), len(made)


def takes_from_a_count(x: float) -> Any:
    items = itertools.count()
    y = next(items) * x if x > 0 else 0.0
    return y, next(items)


def makes_an_entry(x: float) -> Any:
    return table.setdefault("b", 1.0) if x > 0 else 0.0


def makes_a_default(x: float) -> Any:
    return defaults["new"] if x > 0 else 1.0


def makes_a_default_of_its_own(x: float) -> Any:
    made: Any = collections.defaultdict(float)
    y = made["new"] if x > 0 else 1.0
    return y, len(made)


def rotates(x: float) -> Any:
    return (queue.rotate() or queue[0]) if x > 0 else 0.0  # type: ignore[func-returns-value]


def counts_in_a_variable(x: float) -> Any:
    n = 0

    def count() -> float:
        nonlocal n
        n += 1
        return 0.5

    if x > 0:
        y = count()
    else:
        y = 0.25
    return y, n


def raises_and_handles(x: float) -> Any:
    try:
        y = numbers[3] if x > 0 else 0.0
    except IndexError:
        y = 9.0
    return y


def raises_in_a_statement(x: float) -> Any:
    y = 1.0
    try:
        if x > 0:
            y = table["none"]
    except KeyError:
        y = 9.0
    return y


def changes_further_in(x: float) -> Any:
    return (counter.bump() if x > 0.5 else 1.0) if x > 0 else 0.0


def leave() -> None:
    raise SystemExit


def ends_the_program(x: float) -> Any:
    if x > 5.0:
        leave()
    return x


def total(made: Made) -> float:
    return sum(made.parts)


def changes_what_was_reached_before(x: float) -> Any:
    made = Made(x)
    y = total(made) if x > 0 else 0.0
    made.parts = [x, y]
    parts = made.parts
    z = (parts.append(1.0) or 1.0) if x > 0.5 else 0.0  # type: ignore[func-returns-value]
    return y + z, parts


def shortens_what_was_reached_before(x: float) -> Any:
    made = Made(x)
    made.parts += numbers
    y = total(made) if x > 0 else 0.0
    made.parts.append(y)
    z = (made.parts.reverse() or 1.0) if x > 0.5 else total(made)  # type: ignore[func-returns-value]
    return z, made.parts


PLAIN = [
    changes_what_was_reached_before, adds_up_an_iterator, adds_up_by_an_iterator, goes_through_iterators,
    ends_the_program, draws, changes_in_a_quantifier,
    appends_from_outside, appends_in_c, appends_to_what_the_step_has_made, takes_from_an_iterator, takes_from_a_count,
    unpacks_an_iterator, looks_into_an_iterator, takes_all_of_an_iterator, adds_in_place,
    makes_an_entry, makes_a_default_of_its_own, rotates, raises_and_handles, raises_in_a_statement,
]  # fmt: skip


def computes(x: float) -> Any:
    y = counter.reads(x) if x > 0 else -x
    if x > 0.5:
        z = sum(q * x for q in numbers)
    else:
        z = max(x, y)
    return y, z


def adds_up(x: float) -> Any:
    made = Made(x)
    y = sum(numbers) * x if x > 0 else sum([q * x for q in made.parts], 1.0)
    z = 0.0
    if x > 0.5:
        for a, b in zip(numbers, made.parts):
            z = a * b + sum(a * k for k in range(len(numbers)))
    return y, z


def makes_and_changes(x: float) -> Any:
    return Made(x).add(1.0) if x > 0 else 0.0


def fills_lists(x: float) -> Any:
    def filled(y: float) -> float:
        found = [y]
        found.append(y * 2.0)
        found[0] = 1.0
        return sum(found)

    return filled(x) if x > 0 else 0.0


def asks_all(x: float) -> Any:
    return all(q * x < 1.0 for q in numbers), any(q > x for q in numbers)


def puts_an_iterator_where_no_other_side_comes(x: float) -> Any:
    made = Made(x)
    y = total(made) if x > 0 else 0.0
    made.rest = iter(numbers)  # type: ignore[attr-defined]
    z = counter.reads(x) if x > 0.5 else total(Made(x))
    return y + z


COMPILED = [
    adds_up,
    puts_an_iterator_where_no_other_side_comes, shortens_what_was_reached_before,
    computes, makes_and_changes, fills_lists, asks_all, makes_a_default,  # once it is there
    changes_an_object, changes_after_and, changes_after_or, changes_in_a_chain, changes_further_in,
    counts_in_a_variable,
]  # fmt: skip


@pytest.fixture(autouse=True)
def goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that cannot be compiled are plain."""
    monkeypatch.delenv("MGJIT_REFUSE")


def begin() -> None:
    """What is around the steps is as it was."""
    numbers[:] = [0.5, 1.5]
    table.clear()
    table["a"] = 0.5
    defaults.clear()
    queue.clear()
    queue.extend([0.5, 1.5])
    counter.n = 0.5


def seen(step: Callable[[float], Any]) -> list[Any]:
    """What calls return and leave behind."""
    begin()
    random.seed(7)
    found = [
        (step(x), list(numbers), dict(table), list(queue), dict(defaults), counter.n)
        for x in (-0.5, 0.75, 0.0, -1.0, 0.25, 2.0, 0.5, -0.25)
    ]
    return [*found, random.random()]


@pytest.mark.parametrize("function", PLAIN)
def test_01_what_a_side_leaves_behind_is_that_of_its_path(function: Callable[[float], Any]) -> None:
    step = mgjit.compile(function, backend="python", background=False, verify="never")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert seen(step) == seen(function)


@pytest.mark.usefixtures("no_paths")
@pytest.mark.parametrize("function", PLAIN)
def test_01_what_a_side_leaves_behind_makes_the_call_plain(function: Callable[[float], Any]) -> None:
    """And the same is left behind as without, where there are no paths."""
    step = mgjit.compile(function, backend="python", background=False, verify="never")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert seen(step) == seen(function)
    assert step.stats.last.made_by == "plain Python"
    assert len([w for w in said if "both sides of a condition" in str(w.message)]) == 1


@pytest.mark.parametrize("function", COMPILED)
def test_02_a_side_may_compute_and_change_numbers(function: Callable[[float], Any]) -> None:
    """Such steps are compiled."""
    step = mgjit.compile(function, backend="python", background=False, verify="never")
    assert seen(step) == seen(function)
    assert step.stats.last.made_by == "kernel"


def test_03_sums_and_loops_over_lists_are_compared_with_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be an iterator is as it was."""
    monkeypatch.delattr(Surroundings, "look")
    step = mgjit.compile(adds_up, backend="python", background=False, verify="never")
    assert seen(step) == seen(adds_up)
    assert step.stats.last.made_by == "kernel"


class Node:
    """Operators that make nodes."""

    def __init__(self, data: float, parts: Any = ()) -> None:
        self.data, self.parts = data, set(parts)

    def __add__(self, other: Any) -> Any:
        other = other if isinstance(other, Node) else Node(other)
        out = Node(self.data + other.data, (self, other))
        out.grad = 0.0  # type: ignore[attr-defined]
        return out


class Counted:
    """An operator that counts."""

    made = 0

    def __add__(self, other: Any) -> Any:
        Counted.made += 1
        return self


class Assigning:
    """An operator that changes its operand."""

    data = 0.0

    def __mul__(self, other: Any) -> Any:
        out = other
        out.data = 1.0
        return out


class Cached:
    """A property that keeps something."""

    @property
    def data(self) -> float:
        self.kept = 1.0
        return self.kept


class Still:
    """A property that keeps nothing."""

    @property
    def data(self) -> float:
        return float(len(str)) if False else 1.0


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(Node, 0), (Counted, COMPUTES), (Assigning, COMPUTES), (Cached, READS | COMPUTES), (Still, 0)],
)
def test_04_what_operators_and_properties_do(kind: type, expected: int) -> None:
    """Those that only make objects leave everything as it was."""
    assert Implicit({kind: dict(vars(kind))}, ()).doing == expected


def test_05_a_return_in_the_middle_of_a_side() -> None:
    """What follows it is not computed in its place."""

    def function(a: float, b: float) -> float:
        if a > 0.0:
            return 1.0
        x = 0.0
        if b > 0.0:
            x = 0.5
        elif b < -1.0:
            return 2.0
        return 3.0 + x

    step = mgjit.compile(function, backend="python", background=False, verify="never")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for a, b in ((1.0, 1.0), (-1.0, 1.0), (-1.0, -2.0), (-1.0, -0.5)):
            assert step(a, b) == function(a, b)
