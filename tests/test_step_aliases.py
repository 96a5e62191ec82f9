"""Lists, dicts and objects that a step reaches in two ways, one of them an argument."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

import mgjit

pytestmark = pytest.mark.filterwarnings("ignore::mgjit.errors.BackendWarning")


@dataclasses.dataclass
class Box:
    number: float


def _captured_list(rows: Any, others: Any) -> Callable[..., Any]:
    def step(row: Any, x: float) -> Any:
        rows[0][0] += x
        return row[0] * x

    return step


def _changed_argument(rows: Any, others: Any) -> Callable[..., Any]:
    def step(row: Any, x: float) -> Any:
        row[0] += x
        return rows[0][0] * x

    return step


def _inside_of_a_dict(rows: Any, others: Any) -> Callable[..., Any]:
    first = rows[0]

    def step(row: Any, x: float) -> Any:
        first[0] += x
        return sum({"a": row}["a"]) * x

    return step


def _attribute(rows: Any, others: Any) -> Callable[..., Any]:
    box = type("Box", (), {})()
    box.row = rows[0]

    def step(row: Any, x: float) -> Any:
        box.row[1] -= x
        return [row[0] * x, row[1]]

    return step


@pytest.mark.parametrize("make", [_captured_list, _changed_argument, _inside_of_a_dict, _attribute])
@pytest.mark.parametrize("order", ["other", "alias", "mixed"])
def test_a_captured_list_that_is_also_an_argument(make: Callable[..., Any], order: str) -> None:
    outcomes = []
    for decorate in (lambda f: f, mgjit.compile):
        rows, others = [[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]]
        step = decorate(make(rows, others))
        arguments = {"other": [others[0]] * 5 + [rows[0]] * 5, "alias": [rows[0]] * 5 + [others[0], rows[1]] * 3}
        calls = arguments.get(order, [rows[0], others[0], rows[1]] * 5)
        outcomes.append(([step(row, 0.5) for row in calls], rows, others))
    assert outcomes[0] == outcomes[1]


def test_two_arguments_that_are_one_list() -> None:
    def step(a: Any, b: Any, x: float) -> Any:
        a[0] += x
        a[1], b[1] = b[1], a[1]
        return b[0] * x

    outcomes = []
    for function in (step, mgjit.compile(step)):
        a, b = [1.0, 2.0], [3.0, 4.0]
        pairs = [(a, b)] * 4 + [(a, a)] * 4 + [(b, a)] * 4 + [(b, b)]
        outcomes.append(([function(*pair, 0.5) for pair in pairs], a, b))
    assert outcomes[0] == outcomes[1]


def test_a_row_of_another_argument() -> None:
    def step(matrix: Any, row: Any, x: float) -> Any:
        matrix[0][0] += x
        return row[0] * x

    outcomes = []
    for function in (step, mgjit.compile(step)):
        m = [[1.0, 2.0], [3.0, 4.0]]
        outcomes.append(([function(m, row, 0.5) for row in [[9.0, 8.0]] * 4 + [m[0]] * 4 + [m[1]] * 2], m))
    assert outcomes[0] == outcomes[1]


def test_dicts_and_dataclasses() -> None:
    outcomes = []
    for decorate in (lambda f: f, mgjit.compile):
        table, box = {"a": 1.0}, Box(2.0)

        def step(d: Any, b: Any, x: float, table: Any = table, box: Any = box) -> Any:
            table["a"] += x
            box.number -= x
            return d["a"] * x, b.number

        step = decorate(step)  # type: ignore[operator]
        calls = [({"a": 5.0}, Box(6.0)), (table, Box(6.0)), ({"a": 7.0}, box), (table, box)]
        outcomes.append(([step(*pair, 0.5) for pair in calls * 3], table, box))
    assert outcomes[0] == outcomes[1]


def test_calls_of_the_same_kind_are_fast_afterwards() -> None:
    rows = [[1.0, 2.0]]

    @mgjit.compile
    def step(row: Any, x: float) -> Any:
        rows[0][0] += x
        return row[0] * x

    for _ in range(10):
        step([3.0, 4.0], 0.5)
        step(rows[0], 0.5)
    assert (step.stats.traces, step.stats.calls) == (2, 20)


def test_loops_see_what_the_rows_before_have_done() -> None:
    rows = [[1.0, 2.0], [3.0, 4.0]]

    @mgjit.compile
    def step(row: Any, x: float) -> Any:
        rows[1][0] += x
        return row[0] * x

    assert list(step.loop([[5.0, 6.0], rows[1], rows[0]], [1.0, 1.0, 1.0])) == [5.0, 5.0, 1.0]
    assert rows[1][0] == 6.0


@pytest.mark.parametrize(
    "change",
    [
        lambda xs, d, x: xs.append(x),
        lambda xs, d, x: xs.pop(),
        lambda xs, d, x: xs.insert(0, x),
        lambda xs, d, x: d.update(new=x),
        lambda xs, d, x: d.pop("a"),
        lambda xs, d, x: xs.__setitem__(slice(0, 2), [x]),
    ],
)
def test_arguments_that_grow_or_shrink(change: Callable[..., Any]) -> None:
    def step(xs: Any, d: Any, x: float) -> Any:
        change(xs, d, x)
        return len(xs) * x, list(d)

    compiled = mgjit.compile(step)
    for k in range(5):
        wanted, got = ([1.0, 2.0, 3.0], {"a": 1.0}), ([1.0, 2.0, 3.0], {"a": 1.0})
        assert compiled(*got, 0.5 + k) == step(*wanted, 0.5 + k)
        assert got == wanted
    assert compiled.stats.plain_calls == 5
