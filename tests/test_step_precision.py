"""Steps of dtype="float32": what is rounded when, what is shared with whom, on every backend."""

from __future__ import annotations

import copy
import math
import os
import pickle
import platform
import struct
import subprocess
import sys
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit import Value, nn
from mgjit.engine.precision import float32
from mgjit.errors import ArgumentValueError, IndexRangeError, PrecisionError
from tests.workload import BACKENDS, missing

ROOT = Path(__file__).resolve().parents[1]
Compile = Callable[[Callable[..., Any]], Any]


@pytest.fixture(params=["gcc", "clang -O2", "tcc", "python"])
def single(request: pytest.FixtureRequest) -> Compile:
    """The decorator, for each backend."""
    if missing(request.param):
        pytest.skip(f"{missing(request.param)} is not installed")
    return mgjit.compile(dtype="float32", **BACKENDS[request.param])


def bits(x: float) -> bytes:
    return b"nan" if x != x else struct.pack("<d", x)


def _elements(xs: Any) -> list[Any]:
    return list(xs)


NUMBERS = [0.1, -0.0, 1e39, -1e39, 1e-46, 2.0**-149 * 1.5, math.inf, math.nan, 16777217.0, 1.0 + 2.0**-24]


# ---- what enters -----------------------------------------------------------------------------------------


def test_01_numbers_enter_rounded(single: Compile) -> None:
    """A list, a tuple, single numbers, float64 and float32 buffers; they come back as floats."""
    expected = [bits(float32(x)) for x in NUMBERS]
    for argument in (NUMBERS, tuple(NUMBERS), array("d", NUMBERS), array("f", NUMBERS)):
        found = single(_elements)(argument)
        assert [bits(x) for x in found] == expected
        assert {type(x) for x in found} == {float}
    one = single(lambda x: x)
    assert [bits(one(x)) for x in NUMBERS] == expected


@pytest.mark.parametrize("code", "bBhHiIlLqQ")
@pytest.mark.sampled
def test_02_integers_of_buffers_enter_as_float_of_them(single: Compile, code: str) -> None:
    """By way of float64, as `float(n)` in Python; alone and many side by side."""
    size = 8 * struct.calcsize(code)
    low, high = (0, 2**size - 1) if code.isupper() else (-(2 ** (size - 1)), 2 ** (size - 1) - 1)
    far = [2**24 + 1, 2**24 + 3, 2**30 + 2**6 + 1, 2**60 + 2**36 + 1, 2**62 + 2**38 - 1, 2**53 + 1]
    numbers = [n for n in (0, 1, low, high, high - 1, *far, *(-n for n in far)) if low <= n <= high]
    numbers = (numbers * 40)[:40]
    expected = [float32(float(n)) for n in numbers]
    assert single(_elements)(array(code, numbers)) == expected
    weights = [Value(1.0) for _ in numbers]
    assert single(lambda xs: [w * x for w, x in zip(weights, xs)])(array(code, numbers)) == expected


def test_03_integers_that_are_numbers(single: Compile) -> None:
    """Beyond 2**24 they are rounded; beyond 2**53 they are refused, as ever."""
    step = single(lambda n: n + 0)
    assert [step(n) for n in (2**24 - 1, 2**24 + 1, 2**53)] == [2.0**24 - 1, 2.0**24, 2.0**53]
    with pytest.raises(ArgumentValueError):
        step(2**53 + 1)
    assert single(lambda xs: [x + 0 for x in xs])([2**24 + 1, 3]) == [2.0**24, 3.0]


def test_04_constants_and_learning_rates(single: Compile) -> None:
    """Constants are rounded where they meet a number of the step; what Python computes of them alone is not."""
    rate = 0.3
    assert single(lambda x: x * 0.1)(1.0) == float32(0.1)
    assert single(lambda x: x * (rate / 3.0))(1.0) == float32(rate / 3.0)
    assert single(lambda x: (x, rate))(1.0) == (1.0, rate)
    w = Value(3.0)
    by_constant, by_input = single(lambda: w / 0.1)(), single(lambda r: w / r)(0.1)
    assert by_constant == by_input == float32(3.0 * float32(1.0 / float32(0.1)))


def test_05_one_operation_after_the_other(single: Compile) -> None:
    """Every result is rounded: a sum that does not grow, a product that overflows."""

    def step(x: Any, y: Any) -> Any:
        total = x
        for _ in range(5):
            total = total + y
        return total, (x * 1e30) * 1e30 * 1e-30

    assert single(step)(1.0, 2.0**-24) == (1.0, math.inf)


def test_06_indices_are_exact(single: Compile) -> None:
    """An index is what the number is rounded to; its range is checked before anything is written."""
    w = Value(1.0)
    table = [float(k) for k in range(300)]

    def plain(i: Any, many: Any) -> Any:
        w.data = w.data + 1.0
        return mgjit.take(table, i) + mgjit.take(table, many[0]), mgjit.one_hot(i, 300)

    step = single(plain)
    result, hot = step(299, array("q", [7]))
    assert (result, hot.index(1.0), sum(hot)) == (306.0, 299, 1.0)
    for i, k in ((300, 0), (2**24 + 1, 0), (0, 2**40), (0, -1)):
        with pytest.raises(IndexRangeError):
            step(i, array("q", [k]))
    assert w.data == 2.0


# ---- memory ----------------------------------------------------------------------------------------------


def test_07_parameters_and_gradients_are_float32(single: Compile) -> None:
    """Rounded at the first call, and whenever they are assigned; copies and pickles are free again."""
    w = Value(0.1)
    w.grad = 0.7

    def plain(x: Any) -> Any:
        loss = w * x
        loss.backward()
        return loss

    step = single(plain)
    assert step(1.0) == float32(0.1)
    assert (w.data, w.grad) == (float32(0.1), float32(float32(0.7) + 1.0))
    w.data, w.grad = 0.2, 1e39
    assert (w.data, w.grad) == (float32(0.2), math.inf)
    for clone in (copy.deepcopy(w), pickle.loads(pickle.dumps(w))):  # noqa: S301
        clone.data = 0.3
        assert clone.data == 0.3


def test_08_one_kind_of_memory() -> None:
    """A parameter or state of one step cannot be used by a step of the other dtype; a copy can."""
    for first, second in (("float64", "float32"), ("float32", "float64")):
        w, moments = Value(0.1), mgjit.state([0.2])
        mgjit.compile(dtype=first)(lambda x, w=w, m=moments: w * x + m[0])(1.0, w, moments)
        before = w.data, moments[0]
        for plain in (lambda x, w=w: w * x, lambda x, m=moments: m[0] * x):
            with pytest.raises(PrecisionError, match=rf"precision\.py:\d+: .* a {first} step .* {second} step"):
                mgjit.compile(dtype=second)(plain)(1.0, plain.__defaults__[0])
        assert (w.data, moments[0]) == before
        clone, again = copy.deepcopy((w, moments))
        got = mgjit.compile(dtype=second)(lambda x, w=clone, m=again: w * x + m[0])(1.0, clone, again)
        assert got == float32(float32(before[0]) + float32(before[1])) if second == "float32" else before[0] + before[1]


def test_09_steps_of_one_precision_share_parameters(single: Compile) -> None:
    """Training and evaluation; state is seen by Python as it is."""
    model, moments = nn.MLP(3, [4, 1], seed=1), mgjit.zeros(21)

    def train(xs: Any) -> Any:
        loss = model(xs) ** 2
        model.zero_grad()
        loss.backward()
        for k, p in enumerate(model.parameters()):
            moments[k] = 0.9 * moments[k] + p.grad
            p.data -= 0.1 * moments[k]
        return loss

    step, evaluate = single(train), single(lambda xs: model(xs) * 1.0)
    before = evaluate([0.1, 0.2, 0.3])
    step([0.1, 0.2, 0.3])
    assert evaluate([0.1, 0.2, 0.3]) != before
    assert all(x == float32(x) for x in moments)
    assert all(p.data == float32(p.data) for p in model.parameters())


def test_10_argument_values(single: Compile) -> None:
    """Known by identity at first, copied in and out, rounded, when they change."""
    values = [Value(0.1), Value(0.2), Value(0.3)]

    def plain(v: Any) -> Any:
        result = v * 3.0
        v.data = v.data + 0.1
        return result

    step = single(plain)
    for value, start in zip(values, (0.1, 0.2, 0.3)):
        assert step(value) == float32(float32(start) * 3.0)
        assert value.data == float32(float32(start) + float32(0.1))


def test_11_phases(single: Compile) -> None:
    """forward, backward and update of float32 are the whole step."""
    results = []
    for phases in (False, True):
        model = nn.MLP(3, [4, 1], seed=2)

        def train(xs: Any, model: Any = model) -> Any:
            loss = model(xs) ** 2
            model.zero_grad()
            loss.backward()
            for p in model.parameters():
                p.data -= 0.1 * p.grad
            return loss

        step = single(train)
        if phases:
            step.forward([0.1, 0.2, 0.3])
            step.backward()
            step.update()
        else:
            step([0.1, 0.2, 0.3])
        results.append([bits(p.data) for p in model.parameters()])
    assert results[0] == results[1]


def test_17_loops_of_calls(single: Compile) -> None:
    """Columns of lists and of buffers of any format give what one call after the other gives."""
    count = 30
    xs = [[0.1 * k, -0.7 + 0.01 * k] for k in range(count)]
    ts, ns = array("d", [0.3 * k for k in range(count)]), [k % 3 for k in range(count)]
    found = []
    for in_one in (False, True):
        w, moments = [Value(0.1), Value(0.2)], mgjit.state([0.1])

        def train(x: Any, t: Any, n: Any, w: Any = w, moments: Any = moments) -> Any:
            loss = (w[0] * x[0] + w[1] * x[1] - t * mgjit.take([0.1, 0.2, 0.3], n)) ** 2
            w[0].grad = w[1].grad = 0.0
            loss.backward()
            moments[0] = 0.9 * moments[0] + t
            for p in w:
                p.data -= 0.01 * p.grad
            return loss, t

        step = single(train)
        if in_one:
            columns = step.loop(xs, ts, ns)
        else:
            columns = list(zip(*(step(*row) for row in zip(xs, ts, ns))))
        numbers = [float(x) for column in columns for x in column]
        found.append([bits(x) for x in [*numbers, *(p.data for p in w), *(p.grad for p in w), *moments]])
    assert found[0] == found[1]


# ---- around ----------------------------------------------------------------------------------------------


def test_12_without_the_decorator_it_is_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    """MGJIT_DISABLE runs the Python text, which computes in float64."""
    monkeypatch.setenv("MGJIT_DISABLE", "1")
    assert mgjit.compile(dtype="float32")(lambda x: x * 0.1)(3.0) == 3.0 * 0.1


def test_13_source_and_graph() -> None:
    """They show the type; nothing is bound by looking."""
    w, moments = Value(0.1), mgjit.state([0.1])
    lowering = mgjit.compile(dtype="float32")(lambda x: w * x * 0.1 + moments[0]).lower(1.0)
    assert "typedef float real;" in lowering.c_source
    assert "double v" not in lowering.c_source
    assert (w.data, moments[0]) == (0.1, 0.1)


def test_14_fast_mode() -> None:
    """The compiler may reorder; the memory is float32 all the same."""
    weights = [Value(0.1 * k) for k in range(50)]
    step = mgjit.compile(dtype="float32", mode="fast")(lambda xs: sum(w * x for w, x in zip(weights, xs)))
    got = step([0.5] * 50)
    assert got == float32(got)
    assert got == pytest.approx(61.25, rel=1e-5)


def test_15_the_disk_cache_keeps_both_apart(tmp_path: Path) -> None:
    """A second process loads each from disk and computes the same."""
    code = (
        "import mgjit\n"
        "for dtype in ('float32', 'float64'):\n"
        "    w = mgjit.Value(0.1)\n"
        "    step = mgjit.compile(dtype=dtype)(lambda xs: [w * x * c for x in xs for c in (0.1, 0.7, 0.3, 0.9)])\n"
        "    print([x.hex() for x in step([0.1, 0.2])], w.data.hex(), step.stats.cache)\n"
    )
    environment = {**os.environ, "MGJIT_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    runs = [
        subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert runs[0].replace("miss", "hit") == runs[1]
    assert runs[1].count("hit") in (0, 2)  # none without a C compiler


def test_16_as_numpy_computes(single: Compile) -> None:
    """The same expressions over numpy.float32 scalars."""
    numpy = pytest.importorskip("numpy")
    xs = [0.1, -0.7, 1.3, 2.9]

    def plain(xs: Any) -> Any:
        total = xs[0] - xs[0]
        for x in xs:
            total = total + x * x / (x * x + x * x * x * x) - x
        return total

    expected = plain([numpy.float32(x) for x in xs])
    assert type(expected) is numpy.float32
    assert single(plain)(xs) == float(expected)


@pytest.mark.skipif(platform.machine() != "x86_64" or missing("gcc") != "", reason="by gcc, on processors with SSE")
@pytest.mark.parametrize("wide", [False, True])
def test_17_fast_mode_takes_small_numbers_as_zero(wide: bool) -> None:
    """In calls and rows, of steps with and without loops, and only while the code runs."""
    moments = [Value(1e-307) for _ in range(40 if wide else 1)]

    def decay(rate: float) -> float:
        for moment in moments:
            moment.data = moment.data * rate
        return moments[0].data

    step = mgjit.compile(mode="fast", compiler="gcc", background=False)(decay)
    assert [step(0.01), step(1e10), 2.0**-1074 * 1.0] == [0.0, 0.0, 5e-324]
    moments[0].data = 1e-307
    assert list(step.loop([0.01, 1e10])) == [0.0, 0.0]
    assert 2.0**-1073 * 0.5 == 5e-324
    moments[0].data = 1e-307
    assert mgjit.compile(compiler="gcc", background=False)(decay)(0.01) == 1e-307 * 0.01 > 0.0


def test_18_fast_mode_is_what_lower_shows() -> None:
    """Its schedule and its source are those of the mode."""
    weights = [Value(float(k)) for k in range(8)]

    def step(x: float) -> float:
        return sum(w * x for w in weights) ** 3.0

    strict, fast = (mgjit.compile(mode=mode)(step).lower(2.0) for mode in ("strict", "fast"))
    assert ("power" in strict.graph, "power" in fast.graph) == (True, False)
    assert ("ldmxcsr" in strict.c_source, "ldmxcsr" in fast.c_source) == (False, True)
