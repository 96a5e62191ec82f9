"""Result trees: what a step returns, rebuilt from the outputs of a kernel."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from array import array
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

import mgjit
from mgjit.tracing.call.collected import collect_results
from mgjit.tracing.call.results import Result
from tests.lowering import Example


class Pair(NamedTuple):
    """A named tuple."""

    a: Any
    b: Any


@dataclasses.dataclass(frozen=True)
class Record:
    """A frozen dataclass with a field that is not a number."""

    loss: Any
    name: str


def rebuilt(returned: Any) -> Any:
    """The tree with outputs 10.0, 20.0, ..."""
    w = mgjit.Value(1.0)
    made = Example(lambda x: returned(w, x), 3.0)
    return made.result([10.0 * (k + 1) for k in range(made.trace.outputs)])


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (lambda w, x: w * x, 10.0),
        (lambda w, x: x, 10.0),
        (lambda w, x: w, 10.0),
        (lambda w, x: [w, x, [w, (x,)]], [10.0, 20.0, [30.0, (40.0,)]]),
        (lambda w, x: {"a": w, 2: [x]}, {"a": 10.0, 2: [20.0]}),
        (lambda w, x: Pair(w, b=x), Pair(10.0, 20.0)),
        (lambda w, x: Record(w * x, "name"), Record(10.0, "name")),
        (lambda w, x: (1, 2.5, "text", None, True), (1, 2.5, "text", None, True)),
        (lambda w, x: [], []),
        (lambda w, x: None, None),
    ],
)
def test_01_trees(returned: Any, expected: Any) -> None:
    """Containers keep their types, constants stay what they are."""
    got = rebuilt(returned)
    assert got == expected
    assert type(got) is (Result if expected == 10.0 and returned(mgjit.Value(1.0), 1.0) != 1.0 else type(got))
    assert isinstance(got, type(expected))


def test_02_results_that_were_values() -> None:
    """A float with `.data`; copies and pickles are the same number."""
    got = rebuilt(lambda w, x: w * x)
    assert type(got) is Result
    assert (got.data, got + 1.0) == (10.0, 11.0)
    assert type(got.data) is float
    for clone in (copy.copy(got), copy.deepcopy(got), pickle.loads(pickle.dumps(got))):  # noqa: S301
        assert clone == 10.0
    assert type(rebuilt(lambda w, x: x * 2.0)) is float


def test_03_state_is_live() -> None:
    """A State in a result is the State."""
    s = mgjit.zeros(2)
    assert rebuilt(lambda w, x: {"state": s})["state"] is s


def test_04_each_call_builds_anew() -> None:
    """Containers of two calls are not shared."""
    w = mgjit.Value(1.0)
    made = Example(lambda x: {"k": [w * x]}, 3.0)
    first, second = made.result([1.0]), made.result([2.0])
    assert (first, second) == ({"k": [1.0]}, {"k": [2.0]})


def test_05_columns() -> None:
    """Many calls at once: the same tree over columns, whether the results come from a table or exist already."""
    w = mgjit.Value(1.0)
    made = Example(lambda x: {"k": [w * x, x], "c": (2, "a", None, True), "r": Record(x, "n")}, 3.0)
    outputs = array("d", range(9))
    found = made.result.columns(outputs, 3, 3)
    first, second, third = (array("d", [k, k + 3.0, k + 6.0]) for k in range(3))
    constants = array("d", [2.0] * 3), "a", None, array("d", [1.0] * 3)
    expected = {"k": [first, second], "c": constants, "r": Record(third, "n")}
    assert found == expected
    assert collect_results([made.result(outputs[k : k + 3]) for k in (0, 3, 6)]) == expected
    assert collect_results([w * x for x in (1.0, 2.0)]) == array("d", [1.0, 2.0])
    assert collect_results([]) == array("d")
    assert (collect_results([(), ()]), collect_results([None])) == ((), None)


@pytest.mark.parametrize(
    "returned",
    [
        lambda w, x: w * x,
        lambda w, x: (x * 2.0, [w, "a"], None),
        lambda w, x: [x * k for k in range(6)],
        lambda w, x: tuple(w * k for k in range(6)),
        lambda w, x: [*(x * k for k in range(3)), w * 2.0, x * 4.0],
        lambda w, x: {"a": [x * k for k in range(4)], "b": Pair(x > 1.0, w)},
        lambda w, x: [[x * k for k in range(5)], [], [x, x * 3.0, x]],
    ],
)
def test_06_as_source(returned: Any) -> None:
    """The source of a tree makes what the tree makes."""
    w = mgjit.Value(2.0)
    example = Example(lambda x: returned(w, x), 3.0)
    outputs = array("d", [0.5 + k for k in range(40)])
    things: dict[str, Any] = {"outputs": outputs}

    def name_of(thing: Any) -> str:
        name = f"thing{len(things)}"
        things[name] = thing
        return name

    made = eval(example.result.expression("outputs", name_of), things)  # noqa: S307 - what is tested
    assert repr(made) == repr(example.result(outputs))


class Slope:
    """A number with its derivatives in a list, and the operands that it came from."""

    def __init__(self, number: Any, slopes: list[Any], operands: tuple[Any, ...] = ()) -> None:
        self.number, self.slopes, self.operands = number, slopes, operands

    def __mul__(self, other: Slope) -> Slope:
        slopes = [self.number * b + a * other.number for a, b in zip(self.slopes, other.slopes)]
        return Slope(self.number * other.number, slopes, (self, other))


def test_07_a_node_keeps_its_lists_of_numbers() -> None:
    """Also one of a class with operators: only its operands are gone, because the graph is."""

    def plain(x: float) -> Slope:
        return Slope(x, [1.0, 0.0]) * Slope(w[0], [0.0, 1.0])

    w = [3.0]
    step = mgjit.compile(background=False, backend="python")(plain)
    found, expected = [step(x) for x in (2.0, 5.0, 7.0)], [plain(x) for x in (2.0, 5.0, 7.0)]
    assert [(one.number, one.slopes) for one in found] == [(one.number, one.slopes) for one in expected]
    assert [one.operands for one in found] == [()] * 3


@pytest.mark.parametrize("backend", ["auto", "python"])
def test_09_a_new_list_that_the_step_keeps_is_what_it_returns(backend: str) -> None:
    """So what the program then assigns to its elements is there at the next call, in quick calls as well."""
    found = []
    for decorate in (mgjit.compile(background=False, backend=backend), lambda function: function):
        state = SimpleNamespace(last=[0.0, 1.0])

        def plain(x: float, state: SimpleNamespace = state) -> tuple[list[float], float]:
            state.last = [state.last[0] + x, state.last[1] * x]
            return state.last, state.last[0] * 2.0

        step = decorate(plain)
        for k in range(60):
            last, double = step(0.5 + k / 64)
            assert last is state.last
            found.append((list(last), double))
            last[0] -= 0.25
    assert found[:60] == found[60:]
