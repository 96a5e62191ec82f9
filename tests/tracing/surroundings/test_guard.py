"""Guards: what a step captures, and when it means something else."""

from __future__ import annotations

import math
from typing import Any

import pytest

import mgjit
from mgjit import tensor as T
from mgjit.tracing.surroundings.facts import Facts
from mgjit.tracing.surroundings.guard import Guard
from mgjit.tracing.surroundings.survey import Survey

SCALE: Any = 2.0
OTHER = 1.0


def guard_of(function: Any, objects: Any = ()) -> Guard:
    return Guard(Survey(function, [("an argument", thing) for thing in objects]))


def uses_global(x: float) -> float:
    """Reads a global, also in an inner function."""
    return sum(k * SCALE for k in [x])


def calls_helper(x: float) -> float:
    """Reads it through another function."""
    return uses_global(x) * 2.0


@pytest.fixture
def scale() -> Any:
    global SCALE
    yield
    SCALE = 2.0


@pytest.mark.parametrize("function", [uses_global, calls_helper])
@pytest.mark.parametrize("changed", [3.0, -2.0, 2, True, "2.0", None, math.nan])
def test_01_a_global(function: Any, changed: Any, scale: None) -> None:
    """Another value or type is a difference that names it."""
    global SCALE
    guard = guard_of(function)
    assert guard.difference() == ""
    SCALE = changed
    assert "SCALE was 2.0, is" in guard.difference()
    SCALE = float("2.0")  # an equal number is none
    assert guard.difference() == ""


@pytest.mark.parametrize(
    ("before", "after", "same"), [(0.0, -0.0, False), (math.nan, math.nan * 1.0, True), (1, 1, True)]
)
def test_02_equality_is_of_bits(before: Any, after: Any, same: bool) -> None:
    """Zeros of different sign differ; nan is nan."""
    value = before

    def step() -> Any:
        return value

    guard = guard_of(step)
    value = after
    assert (guard.difference() == "") is same


def test_03_objects_are_compared_by_identity() -> None:
    """Equal lists are not the same list."""
    items = [1.0]

    def step() -> Any:
        return items

    guard = guard_of(step)
    assert guard.difference() == ""
    items = [1.0]
    assert "items is another object" in guard.difference()


def test_04_names_that_go_and_come() -> None:
    """A deleted global is a difference, and so is one that was missing."""
    namespace: dict[str, Any] = {"__name__": "somewhere", "k": 1.0}
    exec("def step(x): return x * k + later if x > 5 else x", namespace)  # noqa: S102
    guard = guard_of(namespace["step"])
    namespace["later"] = 3.0
    assert guard.difference() == "the captured later has been set"
    del namespace["later"], namespace["k"]
    assert guard.difference() == "the captured k is gone"


def test_05_unrelated_globals_do_not_matter() -> None:
    """Only names that the functions use."""
    global OTHER
    guard = guard_of(calls_helper)
    OTHER = 5.0
    assert guard.difference() == ""
    OTHER = 1.0


def test_06_empty_cells_recursion_and_cycles() -> None:
    """Functions that call each other, and a variable that is not there yet."""

    def first(x: float) -> float:
        return second(x - 1.0)

    def second(x: float) -> float:
        return first(x) + late

    guard = guard_of(first)
    assert guard.difference() == ""
    late = 1.0
    assert guard_of(first).difference() == ""


def test_07_decorated_and_bound_functions() -> None:
    """Looked through."""
    import functools

    rate = 1.0

    def inner(x: float) -> float:
        return x * rate

    @functools.wraps(inner)
    def outer(x: float) -> float:
        return inner(x)

    class Thing:
        def method(self) -> float:
            return rate

    guards = [guard_of(outer), guard_of(Thing().method)]
    rate = 2.0
    assert all("rate" in guard.difference() for guard in guards)


def test_08_conditions() -> None:
    """The same questions as Python expressions; a difference makes one of them false or raises."""
    numbers, rate = [1.0], 1.5
    namespace: dict[str, Any] = {"__name__": "somewhere", "scale": 2.0, "x": 3.0, "for_": 4.0}
    exec("def helper(y): return y * scale * x * for_", namespace)  # noqa: S102
    helper = namespace["helper"]

    def step(x: float) -> float:
        return float(helper(x)) * numbers[0] * rate

    guard = guard_of(step)
    named: dict[str, Any] = {}
    cells: dict[str, Any] = {}

    def name_of(thing: Any) -> str:
        named[f"_{len(named)}"] = thing
        return f"_{len(named) - 1}"

    def variable_of(cell: Any) -> str:
        cells[f"cell{len(cells)}"] = cell
        return f"cell{len(cells) - 1}"

    conditions = guard.conditions(name_of, variable_of, namespace, ["x"])
    assert any(condition.startswith("scale is ") for condition in conditions)
    assert not any(condition.startswith("x is ") for condition in conditions)

    def hold() -> bool:
        variables = {name: cell.cell_contents for name, cell in cells.items()}
        return all(eval(condition, {**namespace, **named, **variables}) for condition in conditions)  # noqa: S307

    assert hold()
    for change, undo in (
        (lambda: namespace.update(scale=3.0), lambda: namespace.update(scale=2.0)),
        (lambda: namespace.update(x=1.0), lambda: namespace.update(x=3.0)),
        (lambda: numbers.append(1.0), numbers.pop),
    ):
        kept = dict(namespace)
        change()
        assert not hold()
        undo()
        namespace.update(kept)
        assert hold()
    rate = 2.5
    assert not hold()


@pytest.mark.parametrize(
    ("before", "index", "after", "same"),
    [
        ([0.5, 1.5], 1, 1.5, True),
        ([0.5, 1.5], 1, 1.25, False),
        ([0.5, 0.0], 1, -0.0, False),
        ([0.5, 1.0], 1, 1, False),
        ([1, 2], 0, True, False),
        ([1, 2], 0, 1.0, False),
        ([0.5, math.inf], 1, -math.inf, False),
        ([float(k) for k in range(40)], 7, 7, False),
        ([0.5 + k for k in range(40)], 39, 0.25, False),
        ([0.5, math.nan], 1, 2.5, False),
        ([10**30, 0.5], 0, 1e30, False),
    ],
)
def test_09_conditions_of_lists(before: list[Any], index: int, after: Any, same: bool) -> None:
    """They tell numbers of equal value apart that are not of one kind and sign."""
    numbers = list(before)

    def step(x: float) -> float:
        return float(x * numbers[0])

    named: dict[str, Any] = {}

    def name_of(thing: Any) -> str:
        named[f"_{len(named)}"] = thing
        return f"_{len(named) - 1}"

    conditions = guard_of(step).conditions(name_of, lambda cell: name_of(cell.cell_contents), {}, [])

    def hold() -> bool:
        return all(eval(condition, dict(named)) for condition in conditions)  # noqa: S307

    assert hold()
    numbers[index] = after
    assert hold() or not same  # where equal floats are not identical, another path finds out
    assert same or not hold()
    numbers[index] = before[index]
    assert hold()
    numbers.append(1.0)
    assert not hold()


def test_10_tensors_that_require_gradients_or_no_longer() -> None:
    """A step over a parameter that is frozen between two calls, or is free again, is traced again; another is not."""
    x, y = T.asarray([1.0, 2.0], requires_grad=True), T.asarray([3.0], requires_grad=True)

    @mgjit.compile(background=False, backend="python")
    def step(factor: float) -> Any:
        loss = (x * x).sum() * factor + (y * y).sum()
        loss.backward()
        return loss

    found = []
    for tensor, wanted in ((x, True), (x, False), (T.ones(1), True), (x, True), (y, False)):
        tensor.requires_grad = wanted
        for one in (x, y):
            if one.requires_grad:
                one.zero_grad()
        step(1.5)
        found.append((x.grad is not None and x.grad.tolist(), y.grad is not None and y.grad.tolist()))
    assert found == [([3.0, 6.0], [6.0]), (False, [6.0]), (False, [6.0]), ([3.0, 6.0], [6.0]), ([3.0, 6.0], False)]
    assert step.stats.traces == 4


def test_11_a_short_list_of_functions_is_compared_at_each_call() -> None:
    """A function that is appended to an empty list, and removed after a few calls, was called in these."""
    hooks: list[Any] = []
    w = [1.0]

    @mgjit.compile(background=False, backend="python")
    def step(x: float) -> float:
        w[0] += x
        for hook in hooks:
            hook(w)
        return w[0]

    def double(numbers: list[float]) -> None:
        numbers[0] *= 2.0

    for _ in range(2000):
        step(0.0)  # so many that all else is compared now and then
    hooks.append(double)
    assert step(1.0) == 4.0
    hooks.clear()
    assert step(1.0) == 5.0


@pytest.mark.parametrize(("name", "differs"), [("data", False), ("save", False), ("anything", True)])
def test_12_what_mgjit_loads_when_it_is_first_used_is_no_change(
    monkeypatch: pytest.MonkeyPatch, name: str, differs: bool
) -> None:
    monkeypatch.delitem(vars(mgjit), name, raising=False)
    facts = Facts(())
    facts.entry(vars(mgjit), name, f"mgjit.{name}")
    assert not facts.difference()
    if differs:
        monkeypatch.setitem(vars(mgjit), name, 1.0)
    else:
        getattr(mgjit, name)
    assert bool(facts.difference()) is differs
    monkeypatch.setitem(vars(mgjit), name, 2.0)
    assert facts.difference()
