"""Ints and bools of numpy's, in arrays and as arguments, beside the undecorated step: results with their types."""

from __future__ import annotations

import linecache
import math
import warnings
from typing import Any

import pytest

import mgjit
from mgjit.errors import PlainWarning
from mgjit.nn import MLP

numpy = pytest.importorskip("numpy")

#: Of x: a float, n: an int, b: bytes, i: ints of 64 bits, t: bools, v: floats, us: objects of a class of the user's;
#: q: an int of 8 bits, m: a list of ints of 64 bits.
_COMPILED = """
sum([c / 255 for c in b])
[c / 255 for c in b]
[x * c for c in b] + [c * x for c in i] + [c - x for c in i] + [x / c for c in b]
b[0] / b[1], b[0] / n, n / b[0], i[0] / 3
b[0] * v[1] - i[0], v[1] * b[0], b[0] * numpy.float64(2)
[x if c == 252 else 0.0 for c in b]
[c > 0 for c in i], b[0] == b[1], b[0] > x, x > i[1], b[0] != n
[x if c else 0.0 for c in t], t[0] * x
float(b[2]) * 3, int(b[2]) + 200, [float(c) / 255 for c in b], sum(float(c) for c in b)
int(i[0]) * n, b[0].item() + n
math.exp(i[0]), math.sqrt(b[0])
[w[c] for c in b], [w[c] * x for c in b]
[u.data * c for u, c in zip(us, b)], [(u * c).data for u, c in zip(us, b)], [(c * u).data for u, c in zip(us, b)]
[(c * u).data for u, c in zip(us, v)]
type(b[0]), type(i[0]), isinstance(b[0], int), x
[(c - 128.0) / 255 for c in b]
x * q, q / 3, x - m[0], [c * x for c in m], 1.0 / m[1]
w[q] * x, [w[c] * x for c in m], [x if k == q else 0.0 for k in range(256)][q]
q > 2, q == m[0], int(q) + 10, float(m[2]) * x, isinstance(q, int), type(q), type(m[1])
[u.data * q for u in us], math.sqrt(q), {253: x}.get(q, 2 * x)
"""
_PLAIN = """
b[0] + 200
b[1] * 2
-b[0]
abs(i[0]) * x
b[0] ** 2
x ** b[0]
b[0] // 2
x // b[0]
b[0] & 3
n + i[1]
b[0] + b[1]
b[0] * numpy.int64(2)
sum(b)
max(b)
i[1]
t[0]
[b[0], x]
{"one": b[0]}
round(b[0])
numpy.sqrt(b[0])
q + 10
q * 2
-q
q
m[0] ** 2
m[0] * 2 ** 62
sum(m)
max(q, 2)
q // 2, q % 3
"""


class User:
    def __init__(self, data: Any) -> None:
        self.data = data

    def __mul__(self, other: Any) -> User:
        other = other if isinstance(other, User) else User(other)
        return User(self.data * other.data)

    def __rmul__(self, other: Any) -> User:
        return self * other


def shown(thing: Any) -> Any:
    if isinstance(thing, (list, tuple)):
        return type(thing), [*map(shown, thing)]
    if isinstance(thing, dict):
        return {key: shown(part) for key, part in thing.items()}
    return type(thing), repr(thing)


def run(expression: str, decorate: Any) -> tuple[list[Any], Any]:
    names: dict[str, Any] = {"numpy": numpy, "math": math, "w": [0.1 * k for k in range(300)]}
    file, text = f"<integers {hash(expression)}>", f"def step(x, n, b, i, t, v, us, q, m):\n    return {expression}\n"
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    exec(compile(text, file, "exec"), names)  # noqa: S102 - one of our expressions
    step, us, seen = decorate(names["step"]), [User(0.3 * k) for k in range(6)], []
    for k in range(5):
        b, i = numpy.arange(250, 256, dtype=numpy.uint8) - k % 2, numpy.arange(6) - 2 + k % 3
        t, v = numpy.array([True, k % 2 == 0, False]), numpy.linspace(-1, 1, 6) * (k + 1)
        q, m = b[k], list(numpy.arange(1, 5) + k)
        with numpy.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of what wraps around
            seen.append((shown(step(0.37 * k - 0.4, k + 1, b, i, t, v, us, q, m)), [shown(u.data) for u in us]))
    return seen, step


@pytest.fixture(autouse=True)
def goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is refused is plain, as for users."""
    monkeypatch.delenv("MGJIT_REFUSE")


def check(expression: str, is_compiled: bool) -> None:
    wanted, _ = run(expression, lambda step: step)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found, step = run(expression, mgjit.compile(background=False))
    assert found == wanted, expression
    assert bool(step.stats.calls) == is_compiled, [str(w.message) for w in told]
    plain = [w for w in told if issubclass(w.category, PlainWarning)]
    assert len(plain) == (not is_compiled), [str(w.message) for w in plain]


@pytest.mark.parametrize("expression", _COMPILED.split("\n")[1:-1])
def test_what_python_computes_with_floats_is_compiled(expression: str) -> None:
    check(expression, True)


@pytest.mark.parametrize("expression", _PLAIN.split("\n")[1:-1])
def test_what_numpy_computes_with_its_ints_is_plain(expression: str) -> None:
    check(expression, False)


def test_a_model_takes_pixels_as_they_are() -> None:
    model = MLP(4, [5, 1])

    @mgjit.compile(background=False)
    def step(pixels: Any) -> Any:
        out = model(pixels)
        loss = ((out[0] if isinstance(out, list) else out) - 1.0) ** 2
        loss.backward()
        return loss.data

    for kind in ("uint8", "int64", "bool"):
        before = step.stats.calls
        for k in range(3):
            pixels = (numpy.arange(4) + k).astype(kind)
            assert step(pixels) == step(pixels.tolist()) > 0.0
        assert step.stats.calls == before + 6
