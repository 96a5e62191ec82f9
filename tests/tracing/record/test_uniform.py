"""Loops that do the same to each of many objects: the same records as the loop itself, and the numbers of Python."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import pytest

import mgjit
from mgjit.ir.trace import Trace
from mgjit.kernels.factory import Maker
from mgjit.tracing.record import uniform
from mgjit.tracing.record.uniform import UniformLoops, has_plain

COUNT = 14

CLASSES = """
import math
import mgjit

class Number:
    def __init__(self, data):
        self.data, self.grad = data, 0.25 * data
    def reset(self):
        self.data = self.grad = 0.0

class Slotted:
    __slots__ = ("data", "grad")
    def __init__(self, data):
        self.data, self.grad = data, 0.25 * data
    def reset(self):
        self.data = self.grad = 0.0

class Counting(Number):
    read = 0
    @property
    def scaled(self):
        return self.data * 2.0

class Settings:
    rate = 0.5
    def __init__(self):
        self.inner = Other()

class Other:
    def __init__(self):
        self.decay = 0.75

class Derived(list):
    pass

class Backwards(list):
    def __iter__(self):
        return reversed(self)

def made(kind):
    return [kind(0.1 * k - 0.4) for k in range(14)]

def spread(n, start):
    return [start + 0.01 * k for k in range(n)]
"""

#: The state around the step, and its body; the step has the arguments `rate` and `t`, an int, and returns `result`.
UNIFORM = {
    "descent": ("ps = made(mgjit.Value)", "for p in ps: p.data -= rate * p.data"),
    "descent of an own class": ("ps = made(Number)", "for p in ps: p.data -= rate * p.grad"),
    "a class derived from list": ("ps = Derived(made(Number))", "for p in ps: p.data -= rate * p.grad"),
    "slots": ("ps = made(Slotted)", "for p in ps: p.data = p.data - rate * p.grad"),
    "a constant": ("ps = made(Number)", "for p in ps: p.grad = 0.0"),
    "a constant gradient": ("ps = made(mgjit.Value)", "for p in ps: p.grad = 1.5"),
    "a number for all": ("ps = made(Slotted)", "for p in ps: p.grad = rate"),
    "momentum": (
        "ps = made(Number); m = spread(14, 0.1)",
        """
        for i, p in enumerate(ps):
            m[i] = 0.9 * m[i] + rate * p.grad
            p.data -= m[i]
    """,
    ),
    "adam": (
        "ps = made(mgjit.Value); m = mgjit.zeros(14); v = mgjit.zeros(14)",
        """
        for i, p in enumerate(ps):
            g = p.data
            m[i] = 0.9 * m[i] + 0.1 * g
            v[i] = 0.99 * v[i] + 0.01 * (g * g)
            p.data -= rate * m[i] / (mgjit.sqrt(v[i] * 1.25) + 1e-8)
        result = g
    """,
    ),
    "adam in lists": (
        "ps = made(Slotted); m = [0.0] * 14; v = [0.0] * 14",
        """
        for i, p in enumerate(ps):
            m[i] = 0.85 * m[i] + 0.15 * p.grad
            v[i] = 0.99 * v[i] + 0.01 * p.grad ** 2
            m_hat = m[i] / (1 - 0.85 ** (t + 1))
            v_hat = v[i] / (1 - 0.99 ** (t + 1))
            p.data -= rate * m_hat / (v_hat ** 0.5 + 1e-8)
            p.grad = 0.125
        result = m_hat + v_hat + p.data
    """,
    ),
    "two lists of objects": (
        "ps = made(Number); qs = made(Number)",
        """
        for p, q in zip(ps, qs):
            p.data = 0.5 * p.data + 0.5 * q.data
            q.grad = p.grad
    """,
    ),
    "numbers": (
        "xs = spread(14, 0.5); ys = spread(20, 2.0)",
        """
        for i, x in enumerate(xs):
            ys[i] = rate * x - ys[i]
    """,
    ),
    "an index alone": (
        "xs = spread(15, 0.5); ys = spread(14, 2.0)",
        """
        for i in range(14):
            ys[i] += rate * xs[i]
        result = i
    """,
    ),
    "settings": (
        "ps = made(Number); s = Settings()",
        """
        for p in ps:
            p.data -= s.rate * p.grad - s.inner.decay * p.data
    """,
    ),
    "functions": (
        "ps = made(Number)",
        """
        for p in ps:
            p.grad = max(-0.05, min(0.05, p.grad)) * math.sqrt(abs(p.data) + rate)
    """,
    ),
    "a condition": ("ps = made(Number)", "for p in ps: p.data = p.data + (rate if p.grad > 0 else -rate)"),
    "an int": ("ps = made(Number)", "for p in ps: p.data = (t * 2 + 1) * p.data - t"),
    "copies": ("ps = made(Slotted); qs = made(Slotted)", "for p, q in zip(ps, qs): q.data = p.data"),
    "ints among floats": (
        "ps = [p for _ in range(4) for p in made(Number)]; m = spread(60, 0.5); v = mgjit.zeros(56)\n"
        "for p in ps[20:26]: p.grad = 2",
        """
        for i, p in enumerate(ps):
            m[i] = 0.5 * m[i] + p.grad * rate
            v[i] = v[i] + p.grad * p.grad
            p.data -= m[i] * v[i]
            p.grad = 0
        result = p.data + m[i] + i
    """,
    ),
    "ints in several places": (
        "ps = [p for _ in range(4) for p in made(Slotted)]; qs = [p for _ in range(4) for p in made(Number)]\n"
        "for p in ps[30:50]: p.grad = 1\nfor q in qs[:16]: q.data = 3",
        """
        for p, q in zip(ps, qs):
            p.data = p.data - rate * p.grad * q.data
            q.data = q.data + t
            p.grad = p.data
        result = p.data + q.data
    """,
    ),
    "a product with one": ("ps = made(Number)", "for p in ps: p.data = p.data * 1.0 - 0.0 + rate"),
}

#: Loops that are not uniform in some way, and run as they are written.
OTHER = {
    "a sum": (
        "ps = made(Number)",
        """
        for p in ps:
            result = result + p.data
            p.data = result
    """,
    ),
    "an object twice": ("ps = made(Number); ps[3] = ps[7]", "for p in ps: p.data = p.data * rate"),
    "an object in two lists": ("ps = made(Number); qs = ps[::-1]", "for p, q in zip(ps, qs): p.data = q.data * rate"),
    "one list under two names": ("xs = spread(14, 0.5); ys = xs", "for i in range(14): ys[i] = xs[i] * rate"),
    "the element before": ("xs = spread(14, 0.5)", "for i in range(1, 14): xs[i] = xs[i - 1] * rate"),
    "a property": ("ps = made(Counting)", "for p in ps: p.data = p.scaled * rate"),
    "two classes": ("ps = made(Number)[:7] + made(Slotted)[7:]", "for p in ps: p.data = p.data * rate"),
    "a number that is read late": (
        "ps = made(mgjit.Value); s = mgjit.zeros(14)",
        """
        for i, p in enumerate(ps):
            old = p.data
            p.data = old * rate
            s[i] = old + 1.0
    """,
    ),
    "a generator": ("ps = made(Number)", "for p in (q for q in ps): p.data = p.data * rate"),
    "an end": (
        "ps = made(Number)",
        """
        for p in ps:
            p.data = p.data * rate
        else:
            result = 3.0
    """,
    ),
    "ints": ("ps = made(Number); ps[2].data = 3", "for p in ps: p.data = p.data + rate"),
    "a list that iterates otherwise": ("ps = Backwards(made(Number))", "for p in ps: p.data = p.data * rate"),
    "few": ("ps = made(Number)[:5]", "for p in ps: p.data = p.data * rate"),
    "the name of an object": (
        "ps = made(Number); last = [None]",
        """
        for p in ps:
            p.data = p.data * rate
            last[0] = p.data
        result = last[0]
    """,
    ),
}


def made(state: str, body: str, path: Any) -> dict[str, Any]:
    """A module with the step `step(rate, t)`; its source is in a file, as that of modules is."""
    body = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    # What only __init__ assigns would be constant.
    start = "    result = 0.0\n    if rate is None:\n        ps[0].reset()\n"
    text = f"{CLASSES}\n{state}\n\ndef step(rate, t):\n{start}{body}\n    return result\n"
    path.write_text(text, encoding="utf-8")
    found: dict[str, Any] = {"__name__": "the_step"}
    exec(compile(text, str(path), "exec"), found)  # noqa: S102
    return found


def state_of(module: dict[str, Any]) -> list[str]:
    """Every number of a module, exactly."""
    numbers: list[Any] = []
    for name in ("ps", "qs"):
        numbers += [x for p in module.get(name, ()) for x in (p.data, p.grad)]
    for name in ("xs", "ys", "m", "v", "s"):
        content = module.get(name, ())
        numbers += list(content) if hasattr(content, "__iter__") else []
    return [f"{type(x).__name__} {float(x).hex()}" for x in numbers]


def ran(module: dict[str, Any], step: Any) -> list[Any]:
    """What five calls return, and what they leave."""
    results = [step(0.5 + 0.125 * k, k) for k in range(5)]
    return [[f"{type(x).__name__} {float(x).hex()}" for x in results], state_of(module)]


@pytest.fixture(name="traces")
def _traces(monkeypatch: pytest.MonkeyPatch) -> list[Trace]:
    found: list[Trace] = []
    original = Maker._trace

    def traced(self: Maker, *arguments: Any) -> Any:
        result = original(self, *arguments)
        found.append(result[0].trace)
        return result

    monkeypatch.setattr(Maker, "_trace", traced)
    return found


def records(trace: Trace) -> list[Any]:
    return [trace.op, trace.a, trace.b, trace.c, trace.constants, [index for index, _ in trace.new_parameters]]


@pytest.mark.parametrize("name", [*UNIFORM, *OTHER])
def test_numbers_are_those_of_python_and_records_those_of_the_loop(
    name: str, traces: list[Trace], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    state, body = UNIFORM.get(name) or OTHER[name]
    repeated: list[int] = []
    repeat = uniform._Loop._repeat
    monkeypatch.setattr(uniform._Loop, "_repeat", lambda self, before: [repeated.append(1), repeat(self, before)])
    plain, module, slow = (made(state, body, tmp_path / f"step{k}.py") for k in range(3))
    expected = ran(plain, plain["step"])
    assert ran(module, mgjit.compile(module["step"])) == expected
    assert bool(repeated) == (name in UNIFORM)
    at_once = list(traces)
    monkeypatch.setattr(UniformLoops, "items", lambda *_: None)
    assert ran(slow, mgjit.compile(slow["step"])) == expected
    assert [records(one) for one in at_once] == [records(one) for one in traces[len(at_once) :]]


class Guarded:
    def __setattr__(self, name: str, content: Any) -> None:
        object.__setattr__(self, name, content)


class Answering:
    def __getattr__(self, name: str) -> float:
        return 1.0


class Plain:
    number = 1.0

    @property
    def computed(self) -> float:
        return math.pi


def test_an_attribute_is_plain_if_nothing_else_happens_when_it_is_read_or_assigned() -> None:
    assert has_plain(Plain, "number")
    assert has_plain(Plain, "anything")
    assert not has_plain(Plain, "computed")
    assert not has_plain(Guarded, "number")
    assert not has_plain(Answering, "number")


def test_an_error_in_the_body_names_the_line(tmp_path: Any) -> None:
    module = made("ps = made(Number)", "for p in ps:\n    p.data = p.data * rate + p.missing", tmp_path / "step.py")
    with pytest.raises(AttributeError, match="missing"):
        mgjit.compile(module["step"])(0.5, 1)
    assert state_of(module) == state_of(made("ps = made(Number)", "pass", tmp_path / "other.py"))
