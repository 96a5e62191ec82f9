"""numpy's functions and numbers in a step, beside the undecorated step: results with their types, what is left behind.

The expressions are in numpy_expressions.py.
"""

from __future__ import annotations

import copy
import linecache
import math
import random
import struct
import warnings
from typing import Any

import pytest

import mgjit
from mgjit.errors import PlainWarning
from tests.tracing.record.numpy_expressions import COMPILED, PLAIN, lines

numpy = pytest.importorskip("numpy")

_CALLS = 6


@pytest.fixture(autouse=True)
def goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is refused is plain, as for users."""
    monkeypatch.delenv("MGJIT_REFUSE")


class Things:
    def __init__(self, draw: random.Random) -> None:
        self.f, self.g, self.i = draw.gauss(0, 1), numpy.float64(draw.gauss(0, 1)), draw.randrange(1, 5)


def set_float(s: Things, number: Any) -> Any:
    s.f = number
    return number


def set_float64(s: Things, number: Any) -> Any:
    s.g = number
    return number


def set_us(us: Any, number: Any) -> Any:
    us[0] = number
    return number


def fill(array: Any, number: Any) -> Any:
    array.fill(number)
    return array


def put(array: Any, number: Any) -> Any:
    array[0] = number
    return array


def shown(thing: Any) -> Any:
    """Types and bits."""
    if isinstance(thing, (list, tuple)):
        return type(thing), [*map(shown, thing)]
    if isinstance(thing, dict):
        return {key: shown(part) for key, part in thing.items()}
    if isinstance(thing, numpy.ndarray):
        return thing.dtype.str, thing.shape, [*map(shown, thing.ravel().tolist())]
    if isinstance(thing, float):
        return type(thing), "nan" if thing != thing else struct.pack("d", thing)
    return type(thing), thing


def run(expression: str, seed: int, decorate: Any) -> tuple[list[Any], Any]:
    """What some calls return and leave."""
    draw = random.Random(seed)
    s, w = Things(draw), [draw.gauss(0, 1) for _ in range(3)]
    us = [numpy.float64(draw.gauss(0, 1)) for _ in range(3)]
    made: dict[str, Any] = {"np": numpy, "math": math, "s": s, "w": w, "fill": fill, "put": put}
    made.update(set_float=set_float, set_float64=set_float64, set_us=set_us)
    # The step is of a file of its own, as a user's is: what it calls is followed from its source.
    step = decorate(function_of(expression, made))
    seen = []
    for _ in range(_CALLS):
        x, y, n, a = draw.gauss(0, 1), draw.gauss(0, 1), draw.randrange(1, 9), numpy.float64(draw.gauss(0, 2))
        v, xs = numpy.array([draw.gauss(0, 1) for _ in range(4)]), [draw.gauss(0, 1) for _ in range(3)]
        with numpy.errstate(all="ignore"):
            result = step(x, y, n, a, v, xs, us)
        seen.append((shown(copy.copy(result)), shown([s.f, s.g, s.i, *w, *us]), shown(v)))
    return seen, step


def function_of(expression: str, names: dict[str, Any]) -> Any:
    file = f"<step {hash(expression)}>"
    text = f"def step(x, y, n, a, v, xs, us):\n    return {expression}\n"
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    exec(compile(text, file, "exec"), names)  # noqa: S102 - one of our expressions
    return names["step"]


def check(expression: str, compiled: bool, backend: str = "auto") -> None:
    for seed in range(3):
        wanted, _ = run(expression, seed, lambda step: step)
        options: dict[str, Any] = {"background": False, "backend": backend}
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found, step = run(expression, seed, mgjit.compile(**options))
        plain = [str(w.message) for w in told if issubclass(w.category, PlainWarning)]
        assert found == wanted, (expression, seed, plain)
        assert bool(step.stats.calls) == compiled, (expression, plain)
        assert len(plain) == (not compiled), plain


@pytest.mark.parametrize("expression", lines(COMPILED))
@pytest.mark.sampled(one_of=3)
def test_what_is_exact_is_compiled(expression: str) -> None:
    check(expression, True)


@pytest.mark.parametrize("expression", lines(COMPILED)[::4])
def test_the_same_in_python(expression: str) -> None:
    check(expression, True, "python")


@pytest.mark.parametrize("expression", lines(PLAIN))
def test_all_else_is_plain(expression: str) -> None:
    check(expression, False)
