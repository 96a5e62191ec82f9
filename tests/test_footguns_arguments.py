"""Footguns of arguments: types, sizes, indices out of range, numpy, random numbers."""

# The lambdas are the steps under test; a step is a function, whatever it calls.
# ruff: noqa: PLW0108

from __future__ import annotations

import importlib.util
import math
import random
from array import array
from typing import Any, Callable

import pytest

import mgjit
from mgjit import Value
from mgjit.errors import (
    ArgumentError,
    ArgumentValueError,
    BackendWarning,
    IndexRangeError,
    PlainWarning,
    RandomnessError,
)
from tests.refusals import HERE, refused


@pytest.fixture
def w() -> Value:
    """A parameter of 2.0."""
    return Value(2.0)


# ---- random numbers ------------------------------------------------------------

GENERATOR = random.Random(3)


def _draw_from_system() -> float:
    return random.SystemRandom().random()


@pytest.mark.parametrize(
    "draw",
    [random.random, lambda: random.gauss(0.0, 1.0), lambda: random.choice([1.0, 2.0]), lambda: GENERATOR.random()],
    ids=["random", "gauss", "choice", "own generator"],
)
def test_09_random_numbers(draw: Callable[[], float]) -> None:
    """Each call draws its own, as undecorated."""

    def step(x: float) -> Any:
        return x * draw()

    compiled = mgjit.compile(step)
    states = random.getstate(), GENERATOR.getstate()
    wanted = [step(2.0) for _ in range(9)]
    random.setstate(states[0])
    GENERATOR.setstate(states[1])
    assert [compiled(2.0) for _ in range(9)] == wanted
    assert len(set(wanted)) > 1


@pytest.mark.parametrize(
    "draw",
    [lambda: random.Random().random(), lambda: random.seed(3)],
    ids=["new generator", "seed"],
)
def test_10_random_numbers_from_nowhere(w: Value, draw: Callable[[], float]) -> None:
    """Numbers of generators that are seeded by the system, which cannot be drawn again, and seeds: an error."""

    def step(x: float) -> Any:
        return w * x * draw()

    refused(RandomnessError, "outside of the step", step, 1.0, value=w)


def test_10a_random_numbers_of_the_system(w: Value) -> None:
    """Each call is plain Python, and draws its own."""
    step = mgjit.compile(lambda x: w * x * _draw_from_system())
    with pytest.warns(PlainWarning, match="SystemRandom.*outside of the step"):
        drawn = [step(1.0).data for _ in range(5)]
    assert len(set(drawn)) == 5
    assert step.stats.plain_calls == 5


def test_11_numpy_random(w: Value) -> None:
    """The same for numpy's generators, old and new."""
    numpy = pytest.importorskip("numpy")
    generator = numpy.random.default_rng(1)
    for draw in (numpy.random.rand, generator.random):
        refused(RandomnessError, "outside of the step", lambda x, d=draw: w * x * d(), 1.0, value=w)


# ---- arguments ------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [lambda: {1.0}, lambda: 1j, lambda: (x for x in [1.0]), lambda: iter([1.0])],
    ids=["set", "complex", "generator", "iterator"],
)  # fmt: skip
def test_60_impossible_arguments(w: Value, make: Callable[[], Any]) -> None:
    """Named with its path."""
    refused(ArgumentError, r"argument x is a", lambda x: w, make(), value=w)
    refused(ArgumentError, r"argument x\['k'\]\[1\] is a", lambda x: w, {"k": ["text", make()]}, value=w)


@pytest.mark.parametrize(
    "wrap", [lambda n: n, lambda n: [n], lambda n: [[1.0], [n]], lambda n: {"a": (n, "b")}],
    ids=["number", "list", "nested", "mixed"],
)  # fmt: skip
@pytest.mark.parametrize("number", [2**53 + 1, -(2**60), 10**400], ids=["2**53+1", "-2**60", "10**400"])
def test_61_huge_integers(w: Value, wrap: Callable[[int], Any], number: int) -> None:
    """float64 cannot hold them: an ArgumentValueError, wherever they are, never a rounded number."""
    refused(ArgumentValueError, r"2\*\*53", lambda x: w, wrap(number), value=w)


def test_62_huge_integers_later(w: Value) -> None:
    """The same in a call that finds a kernel."""
    step = mgjit.compile(lambda x, xs: w * x + xs[0])
    assert step(2**53, [1, 2]) == 2.0**54 + 1.0
    for arguments in ((2**53 + 1, [1, 2]), (1, [2**53 + 1, 2])):
        with pytest.raises(ArgumentValueError):
            step(*arguments)


@pytest.mark.parametrize("options", [{}, {"backend": "python"}], ids=["c", "python"])
def test_62_huge_integers_among_floats_later(w: Value, options: dict[str, Any]) -> None:
    """A list of floats is not searched at every call: an integer in it is rounded as `float(n)` does, every time."""
    step = mgjit.compile(lambda xs: w * xs[1] + xs[0], **options)
    assert step([0.5, 2.0]) == w.data * 2.0 + 0.5
    for number in (2**53 + 1, 2**53 + 3, -(2**60) - 129, 10**22):
        for _ in range(4):
            assert step([0.5, number]) == w.data * float(number) + 0.5
            assert list(step.loop([[0.5, 1.0], [0.5, number]])) == [w.data + 0.5, w.data * float(number) + 0.5]


def test_63_strings_none_and_bools(w: Value) -> None:
    """They shape the trace: another one is another kernel, not an error, and bools are not numbers."""

    def plain(x: float, mode: Any) -> Any:
        return w * x if mode in ("a", None, True) else w + x

    step = mgjit.compile(plain)
    for mode in ("a", "b", None, True, False, "a", None):
        assert step(3.0, mode) == plain(3.0, mode).data
    assert step.stats.traces == 5
    assert step.stats.retraces[0] == "mode was 'a', is 'b'"


def test_64_other_length_and_type(w: Value) -> None:
    """A list of another length, or a list where there was a number: traced again, never cut or padded."""

    def plain(x: Any) -> Any:
        return w * sum(x) if isinstance(x, (list, tuple)) else w * x

    step = mgjit.compile(plain)
    for x in ([1.0, 2.0], [1.0, 2.0, 3.0], 4.0, (1.0, 2.0), [0.5, 0.5]):
        assert step(x) == plain(x).data
    assert step.stats.traces == 4


@pytest.mark.parametrize("index", [-1, 3, 1.5, math.nan, math.inf, -math.inf])
def test_65_index_out_of_range(w: Value, index: float) -> None:
    """Of take and one_hot: an IndexRangeError before anything is written, at the line in the step."""
    table = [Value(1.0), Value(2.0), Value(3.0)]

    def by_take(i: Any) -> Any:
        w.data = 5.0
        return mgjit.take(table, i) * w

    def by_one_hot(i: Any) -> Any:
        w.data = 5.0
        return sum((p * w for p in mgjit.one_hot(i, 3)), w)

    for function in (by_take, by_one_hot):
        step = mgjit.compile(function)
        for _ in range(2):
            with pytest.raises(IndexRangeError) as caught:
                step(index)
            assert HERE.search(str(caught.value))
            assert isinstance(caught.value, IndexError)
        assert w.data == 2.0
        step(1)
        assert w.data == 5.0
        w.data = 2.0


def test_66_wrong_number_of_arguments(w: Value) -> None:
    """Python's own TypeError."""
    step = mgjit.compile(lambda x, y: w * x * y)
    for arguments in ((), (1.0,), (1.0, 2.0, 3.0)):
        with pytest.raises(TypeError):
            step(*arguments)
    with pytest.raises(TypeError):
        step(1.0, z=2.0)


def test_67_numpy_scalars(w: Value) -> None:
    """They are numbers; a 0-d array and a numpy bool are what Python makes of them."""
    numpy = pytest.importorskip("numpy")
    step = mgjit.compile(lambda x: w * x)
    for x in (numpy.float64(1.5), numpy.float32(1.1), numpy.int32(-7), numpy.uint8(200), numpy.array(2.5)):
        assert step(x) == 2.0 * float(x)
    both = [numpy.float64(3.0), numpy.float32(0.1)]
    assert mgjit.compile(lambda x: w * x[0] * x[1])(both) == 6.0 * float(numpy.float32(0.1))
    flagged = mgjit.compile(lambda x, flag: w * x if flag else w)
    assert [float(flagged(3.0, numpy.bool_(True))), float(flagged(3.0, numpy.bool_(False)))] == [6.0, 2.0]


_ASKED = [
    "type(x).__name__", "x.__class__.__name__", "type(x).__module__", "repr(type(x))", "type(x) is float",
    "type(x) in (int, float)", "isinstance(x, float)", "isinstance(x, (int, float))", "isinstance(x, int)",
    "isinstance(x, (list, tuple))", "isinstance(x, type(y))", "type(x) is type(y)", "hasattr(x, 'dtype')",
    "hasattr(x, 'item')",
    "{float: 1, int: 2, list: 3}.get(type(x), 4)", "type(x[1:]).__name__", "x[:1]",
]  # fmt: skip


def _asked_about() -> list[Any]:
    class Own(float):
        """A number of the user's."""

    class Flag(int):
        """An int of the user's."""

    found = [0.5, 3, True, Own(0.5), Flag(3), [0.5, 1.5], (1, 2), bytes(2), bytearray(2), array("d", [0.5, 1.5])]
    found += [memoryview(b"ab"), array("B", b"ab"), [Own(0.5), Own(1.5)], [Flag(1), Flag(2)]]
    if importlib.util.find_spec("numpy") is not None:
        import numpy

        kinds = (numpy.float64, numpy.float32, numpy.float16, numpy.longdouble, numpy.int64, numpy.uint8, numpy.bool_)
        found += [kind(1) for kind in kinds] + [numpy.array(0.5), numpy.array(1)]
        found += [numpy.array([0.5, 1.5], kind) for kind in ("f8", "f4", "i8", "u1", "?")]
        found += [[kind(1), kind(2)] for kind in (numpy.float64, numpy.float32, numpy.int64)]
    return found


@pytest.mark.sampled(one_of=2)
@pytest.mark.parametrize("asked", _ASKED)
def test_67_what_an_argument_is(asked: str, w: Value, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that asks is told what plain Python says, whatever the argument stands for; so it is about elements."""
    monkeypatch.delenv("MGJIT_REFUSE")
    things = _asked_about()
    for thing in things:
        for text in ("x", "x[0]") if hasattr(thing, "__len__") and getattr(thing, "shape", (1,)) else ("x",):
            step: Any = eval(f"lambda x, y: ({asked.replace('x[', text + '[').replace('(x', '(' + text)}, y * 2.0)")  # noqa: S307
            results = []
            for call in (step, mgjit.compile(step, background=False, verify="never")):
                for y in (0.5, 1.5):
                    try:
                        results.append(repr(call(thing, y)).split(" at 0x")[0])
                    except Exception as error:
                        results.append(type(error).__name__)
            assert results[:2] == results[2:], (thing, text)


@pytest.mark.parametrize("other", ["float32(0.1)", "float16(0.1)", "longdouble(0.1)", "array(0.1)", "array(0.1, 'f4')"])
@pytest.mark.parametrize("first", [0.5, 3])
def test_67_numbers_of_numpys_that_come_later(first: float, other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Are not computed with as the floats and ints before them."""
    numpy = pytest.importorskip("numpy")
    monkeypatch.delenv("MGJIT_REFUSE")
    step = mgjit.compile(lambda x: x * 3.0, background=False, verify="never")
    number = eval(f"numpy.{other}", {"numpy": numpy})  # noqa: S307
    assert [step(first) for _ in range(5)] == [first * 3.0] * 5
    assert repr(step(number)) == repr(number * 3.0)


def test_68_numpy_constants_in_the_step(w: Value) -> None:
    """A numpy scalar on the left of a Value or a number is a constant of the step."""
    numpy = pytest.importorskip("numpy")
    three = numpy.float64(3.0)
    plain = lambda x: three * (w * x) + three * x + x / three  # noqa: E731
    assert mgjit.compile(plain)(0.1) == plain(0.1).data


def test_69_whole_array_arithmetic(w: Value) -> None:
    """Numpy arithmetic on an argument is plain Python, with a warning that shows the loop to write."""
    numpy = pytest.importorskip("numpy")
    for step in (lambda x: (x * 2.0)[0] * w, lambda x: x.sum() * w):
        compiled = mgjit.compile(step)
        with pytest.warns(BackendWarning, match=r"whole array, argument x.*for x in row"):
            assert compiled(numpy.ones(3)) == step(numpy.ones(3)).data
        assert compiled(2.0 * numpy.ones(3)) == step(2.0 * numpy.ones(3)).data
