"""CompiledStep: argument structures, buffers, Values as arguments."""

from __future__ import annotations

import collections
import copy
import dataclasses
import gc
import math
import struct
from array import array
from typing import Any, Callable, NamedTuple

import pytest

import mgjit
from mgjit import Value
from mgjit.errors import ArgumentError, PlainWarning

BACKENDS = pytest.mark.parametrize("backend", ["auto", "python"])


@pytest.fixture
def w() -> Value:
    return Value(2.0)


def bits(number: Any) -> bytes:
    return struct.pack("<d", float(getattr(number, "data", number)))


# ---- argument structures ------------------------------------------------------------


class Pair(NamedTuple):
    """Two inputs."""

    left: Any
    right: Any


@dataclasses.dataclass
class Batch:
    """Inputs and a static field."""

    xs: Any
    scale: float
    name: str = "train"


@dataclasses.dataclass(frozen=True)
class Frozen:
    """An immutable one."""

    x: float


Point = collections.namedtuple("Point", "x y")


@BACKENDS
@pytest.mark.parametrize(
    ("plain", "calls"),
    [
        (lambda w, x: w * x, [(1.5,), (2,), (-0.0,)]),
        (lambda w, x: w * x[0] + x[1], [([1.0, 2],), ([3, 4.5],)]),
        (lambda w, x: w * x[1][0] + x[0][1], [([[1.0, 2.0], [3, 4]],), ([(5.0, 6.0), (7.0, 8.0)],)]),
        (lambda w, x: w * x[1][0] + len(x[0]), [([[1.0], [3.0, 4.0]],), ([[1.5], [2.0, 0.0]],)]),
        (lambda w, x: w * x["a"] + x["b"][0], [({"a": 1.0, "b": [2.0]},), ({"a": 3.0, "b": [4.0]},)]),
        (lambda w, x: w * x.left + x.right[0], [(Pair(1.0, [2.0]),), (Pair(3, [4.0]),)]),
        (lambda w, x: w * x.x + x.y, [(Point(1.0, 2.0),), (Point(3.0, 4.0),)]),
        (lambda w, x: w * x.xs[1] * x.scale + len(x.name), [(Batch([1.0, 2.0], 0.5),), (Batch([3.0, 4.0], 1.5),)]),
        (lambda w, x: w * x.x, [(Frozen(1.0),), (Frozen(2.0),)]),
        (lambda w, x, y=4.0, *rest: w * x * y + sum(rest), [(1.0,), (1.0, 2.0), (1.0, 2.0, 3.0), (1.0, 2.0, 5.0, 6.0)]),
        (lambda w, x, flag: w * x if flag else w + x, [(1.0, True), (1.0, False), (3.0, True)]),
        (lambda w, x: w + len(x), [([],), ((),)]),
    ],
    ids=["number", "list", "nested", "ragged", "dict", "NamedTuple", "namedtuple", "dataclass", "frozen", "star",
         "flag", "empty"],
)  # fmt: skip
def test_10_structures(w: Value, plain: Callable[..., Any], calls: list[tuple[Any, ...]], backend: str) -> None:
    """Every structure gives the undecorated result, also in the calls that find a kernel."""
    step = mgjit.compile(backend=backend)(lambda *arguments: plain(w, *arguments))
    named = mgjit.compile(backend=backend)(_bind(plain, w))
    for arguments in calls * 2:
        assert bits(named(*arguments)) == bits(plain(w, *arguments))
        assert bits(step(*arguments)) == bits(plain(w, *arguments))


def _bind(plain: Callable[..., Any], w: Value) -> Callable[..., Any]:
    import inspect

    names = list(inspect.signature(plain).parameters.values())[1:]
    bound = lambda *arguments, **named: plain(w, *arguments, **named)  # noqa: E731
    bound.__signature__ = inspect.Signature(names)  # type: ignore[attr-defined]
    return bound


def test_11_keywords(w: Value) -> None:
    """Keywords in any order, keyword-only arguments and **rest are the same arguments."""

    @mgjit.compile
    def step(x: float, *, scale: float = 2.0, **rest: float) -> Any:
        return w * x * scale + sum(rest.values())

    assert step(1.0) == 4.0
    assert step(x=1.0, scale=3.0) == step(scale=3.0, x=1.0) == 6.0
    assert step.stats.traces == 1
    assert step(1.0, other=5.0) == 9.0
    assert "other" in step.stats.retraces[0]


def _buffers() -> list[tuple[str, Any, Any]]:
    """Two buffers of each kind: (name, first, second), four elements each."""
    found: list[tuple[str, Any, Any]] = [
        ("bytes", bytes([1, 2, 250, 4]), bytes([5, 6, 7, 255])),
        ("bytearray", bytearray([1, 2, 250, 4]), bytearray([5, 6, 7, 255])),
        ("memoryview of bytes", memoryview(bytes([9, 1, 2, 250, 4]))[1:], memoryview(bytes([5, 6, 7, 255]))),
    ]
    signed = (-3, 1, 100, -120)
    contents: dict[str, tuple[float, ...]] = {
        **dict.fromkeys("bhilq", signed),
        **dict.fromkeys("BHILQ", (3, 1, 100, 250)),
        **dict.fromkeys("fd", (0.1, -2.5, 1e30, -0.0)),
    }
    found += [(f"array {code}", array(code, some), array(code, some[::-1])) for code, some in contents.items()]
    wide = memoryview(array("d", [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]))
    found.append(("slice", wide[1:5], wide[4:]))
    found.append(("strided slice", wide[::2], wide[1::2]))
    found.append(("reversed slice", wide[3::-1], wide[:3:-1]))
    return found


@BACKENDS
@pytest.mark.parametrize(("name", "first", "second"), _buffers(), ids=[name for name, _, _ in _buffers()])
def test_12_buffers(w: Value, name: str, first: Any, second: Any, backend: str) -> None:
    """bytes, arrays of every type code, memoryviews with strides: read in place, converted exactly."""
    plain = lambda x: w * x[0] + x[1] * x[2] - x[3] * len(x)  # noqa: E731
    step = mgjit.compile(backend=backend)(plain)
    for buffer in (first, second, first):
        assert bits(step(buffer)) == bits(plain(buffer))
    assert step.stats.traces == 1


@BACKENDS
def test_13_numpy(w: Value, backend: str) -> None:
    """Arrays of any number type and layout; other shapes and types re-trace."""
    numpy = pytest.importorskip("numpy")
    plain = lambda x: w * float_of(x[0][1]) + float_of(x[1, 2]) * 3.0 + x.shape[0]  # noqa: E731
    float_of = lambda number: number * 1.0  # noqa: E731
    step = mgjit.compile(backend=backend)(plain)
    base = numpy.arange(24).reshape(4, 6)
    for traces, kind in enumerate(("u1", "i2", "u4", "i8", "f8", "?"), 1):
        whole = base.astype(kind)
        for x in (whole[:2, :3], whole[::2, ::2], whole.T[1:3, 1:4], numpy.asfortranarray(whole[1:3, 2:5])):
            assert bits(step(x)) == bits(plain(x.astype(float)))
        assert step.stats.traces == traces
    step(base[:3, :3].astype("u1"))
    assert step.stats.retraces[-1] == "x was ndarray of 2 x 3 '?', is ndarray of 3 x 3 'B'"


def test_13_floats_of_fewer_bits(w: Value) -> None:
    """Values take them as they are; what plain floats and they make is rounded by numpy, and left to it."""
    numpy = pytest.importorskip("numpy")
    of_values, of_floats = (lambda x: w * x[0] + w * x[1]), (lambda x: (0.1 * x[0]) * (x[1] + 0.3))
    x = numpy.array([0.1, 0.7], numpy.float32)
    step = mgjit.compile(of_values)
    assert bits(step(x)) == bits(of_values(x))
    assert step.stats.calls == 1
    rounded = mgjit.compile(of_floats)
    with pytest.warns(PlainWarning, match="numpy.float32"):
        assert repr(rounded(x)) == repr(of_floats(x))
    assert rounded.stats.calls == 0


def test_14_a_buffer_changed_between_calls(w: Value) -> None:
    """A buffer is read when the step is called."""
    step = mgjit.compile(lambda x: w * x[0])
    x = array("d", [1.0])
    assert step(x) == 2.0
    x[0] = 5.0
    assert step(x) == 10.0
    x.append(7.0)
    assert step(x) == 10.0
    assert step.stats.retraces == ["x was array of 1 'd', is array of 2 'd'"]


def test_15_a_buffer_is_not_kept(w: Value) -> None:
    """After a call with another buffer the first one can be resized."""
    step = mgjit.compile(lambda x: w * x[0])
    first = bytearray(b"\x01\x02")
    step(first)
    step(bytearray(b"\x03\x04"))
    gc.collect()
    first.extend(b"more")
    assert len(first) == 6


@pytest.mark.parametrize("kind", [">f8", "c16", "f2", "O", "U3", "M8[s]"])
def test_16_buffers_of_other_things(w: Value, kind: str) -> None:
    """Elements that are no native numbers are refused with what to write."""
    numpy = pytest.importorskip("numpy")
    with pytest.raises(ArgumentError, match=r"test_step_arguments\.py:\d+: argument x .*(astype|buffer)"):
        mgjit.compile(lambda x: w * x[0])(numpy.zeros(2, dtype=kind))


# ---- Values as arguments --------------------------------------------------------------------------------------------


def train(p: Any, x: Any) -> Any:
    """A step whose parameter is an argument."""
    loss = (p * x - 1.0) ** 2
    p.grad = 0.0
    loss.backward()
    p.data -= 0.1 * p.grad
    return loss


@BACKENDS
def test_20_a_value_by_identity(backend: str) -> None:
    """The same Value in every call is a parameter."""
    step = mgjit.compile(backend=backend)(train)
    p, q = Value(0.5), Value(0.5)
    for x in (1.0, 2.0, 3.0):
        assert bits(step(p, x)) == bits(train(q, x))
        assert (p.data, p.grad) == (q.data, q.grad)
    assert step.stats.traces == 1


@BACKENDS
def test_21_fresh_values_in_each_call(backend: str) -> None:
    """Other Values of the same structure are copied in and out; two traces are enough for any number of them."""
    step = mgjit.compile(backend=backend)(train)
    for k in range(6):
        p, q = Value(0.1 * k), Value(0.1 * k)
        p.grad = q.grad = 7.0
        assert bits(step(p, 1.5)) == bits(train(q, 1.5))
        assert (bits(p.data), bits(p.grad)) == (bits(q.data), bits(q.grad))
    assert step.stats.traces <= 2


def test_22_lists_and_dicts_of_values(w: Value) -> None:
    """Values deep inside of arguments, and the same one twice."""

    def plain(ps: Any, x: float) -> Any:
        loss = ps["a"][0] * x + ps["b"] * ps["a"][1]
        loss.backward()
        return loss

    step = mgjit.compile(plain)
    for k in range(4):
        mine = {"a": [Value(0.3 + k), Value(0.7)], "b": Value(1.5)}
        theirs = copy.deepcopy(mine)
        assert bits(step(mine, 0.1)) == bits(plain(theirs, 0.1))
        assert [p.grad for p in (*mine["a"], mine["b"])] == [p.grad for p in (*theirs["a"], theirs["b"])]


def test_23_one_value_in_two_arguments() -> None:
    """`step(p, p)` after `step(p, q)`: aliased arguments share gradient and data as they do undecorated."""

    def plain(a: Any, b: Any) -> Any:
        loss = a * b
        loss.backward()
        a.data = a.data + 1.0
        return loss, b.data * 1.0

    step = mgjit.compile(plain)
    for make in (lambda: (Value(2.0), Value(3.0)), lambda: (Value(2.0), Value(3.0)), lambda: (Value(2.0),) * 2):
        mine, theirs = make(), make()
        assert [float(x) for x in step(*mine)] == [float(getattr(x, "data", x)) for x in plain(*theirs)]
        assert [(v.data, v.grad) for v in mine] == [(v.data, v.grad) for v in theirs]


def test_24_a_captured_value_as_argument(w: Value) -> None:
    """A Value that the step also captures: one parameter, not two."""

    def plain(p: Any, x: float) -> Any:
        loss = p * w * x
        loss.backward()
        return loss

    step = mgjit.compile(plain)
    for p in (w, Value(5.0), Value(6.0), w):
        w.grad = p.grad = 0.0
        expected = plain(p, 1.5)
        gradients = w.grad, p.grad
        w.grad = p.grad = 0.0
        assert step(p, 1.5) == expected.data
        assert (w.grad, p.grad) == gradients


def test_static_arguments_are_told_apart_by_type_and_sign_of_zero() -> None:
    def step(c: Any, x: float) -> Any:
        return c, x * math.copysign(1.0, c[0] if isinstance(c, tuple) else c)

    compiled = mgjit.compile(static=("c",))(step)
    for _ in range(5):
        for c in (0.0, -0.0, 0, 1, 1.0, True, math.nan, (1,), (1.0,), (-0.0, (1,)), (-0.0, (True,)), (0.0, (1,))):
            assert repr(compiled(c, 2.0)) == repr(step(c, 2.0))
    assert compiled.stats.traces == 12


def test_keys_of_dicts_are_told_apart_by_type_and_sign_of_zero() -> None:
    def step(d: Any, x: float) -> Any:
        return list(d), sum([math.copysign(1.0, key) * x for key in d])

    compiled = mgjit.compile(step)
    for _ in range(5):
        for key in (0.0, -0.0, 0, 1, 1.0, True):
            assert repr(compiled({key: 1.0}, 2.0)) == repr(step({key: 1.0}, 2.0))


def test_attributes_of_a_dataclass_that_are_no_fields_are_inputs() -> None:
    @dataclasses.dataclass
    class Config:
        rate: float

        def __post_init__(self) -> None:
            self.inverse = 1 / self.rate

    @mgjit.compile
    def step(config: Any, x: float) -> Any:
        return config.inverse * x

    assert [step(Config(rate), 3.0) for rate in (1.0, 2.0, 4.0, 8.0, 16.0)] == [3.0, 1.5, 0.75, 0.375, 0.1875]
    assert step.stats.traces == 1


@dataclasses.dataclass
class _Sizes:
    n: int
    rate: float


@pytest.mark.parametrize(
    ("function", "make"),
    [
        (lambda c, xs: sum([xs[i] * c["rate"] for i in range(c["n"])]), lambda n: {"n": n, "rate": 0.5 * n}),
        (lambda c, xs: [sum([xs[i] * c.rate for i in range(c.n)]), c.n], lambda n: _Sizes(n, 0.5 * n)),
        (lambda c, xs: [[xs[i] * x for i in range(m)] for m, x in zip(c, xs)], lambda n: [n, n - 1]),
        (lambda c, xs: [0.0] * c["s"][0][1] + [c["s"][1][0] * xs[0]], lambda n: {"s": [[7, n], [n, 7]]}),
        (lambda c, xs: {c[0]: xs[0] * c[1]}, lambda n: (n, n + 1)),
    ],
    ids=["dict", "dataclass", "list", "nested", "key"],
)
def test_ints_inside_of_arguments_as_lengths_and_keys(function: Callable[..., Any], make: Callable[[int], Any]) -> None:
    """Each value is a trace of its own; other numbers beside it are inputs."""

    def step(c: Any, xs: Any) -> Any:
        return function(c, xs)

    compiled = mgjit.compile(step)
    for n in (1, 2, 3, 2, 1, 3) * 2:
        assert repr(compiled(make(n), [n + 0.5, 2.0, 3.0])) == repr(step(make(n), [n + 0.5, 2.0, 3.0]))
    assert compiled.stats.traces == 3


def test_the_table_tells_nested_structures_apart() -> None:
    @mgjit.compile
    def step(batch: Any, c: Any = None) -> Any:
        return sum([x for row in batch for x in row])

    for lengths in ((1, 2), (2, 1), (1, 2, 2, 3)):
        step([[0.5] * length for length in lengths], _Sizes(3, 0.5))
    rows = [line.split("  ")[0] for line in step.stats.table().splitlines()[1:]]
    assert rows[0] == "(batch: [1 number in a list, 2 numbers], c: _Sizes (n: integer, rate: number))"
    assert rows[2].startswith("(batch: [1 number in a list, 2 x 2 numbers, 3 numbers]")
    assert len(set(rows)) == 3
