"""Generated call paths: they take the calls that fit, and leave all others to the general path."""

from __future__ import annotations

import dataclasses
import functools
import math
import threading
from array import array
from collections.abc import Iterator
from typing import Any, Callable, NamedTuple

import pytest

import mgjit
from mgjit import Value
from mgjit import tensor as T
from mgjit.base import ffi
from mgjit.compiler.toolchain import compilers
from mgjit.errors import ArgumentValueError, IndexRangeError, PhaseError
from mgjit.runtime import fastcall
from tests.refusals import bits
from tests.runtime.quick import entered, use_extension

pytestmark = [
    pytest.mark.skipif(compilers.find() is None, reason="no C compiler is installed"),
]

BIG = 2**53
SCALE: Any = 2.0


class Pair(NamedTuple):
    """Two things."""

    a: Any
    b: Any


@dataclasses.dataclass
class Sample:
    """Two things, too."""

    a: Any
    b: Any


@pytest.fixture(params=["short", "long", "quick"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """With the GIL and no lock, or the other way round; or without a function of Python, where there is another way."""
    monkeypatch.setattr(fastcall, "_SHORT_SECONDS", -1.0 if request.param == "long" else math.inf)
    use_extension(monkeypatch, request.param == "quick")
    return request.param  # type: ignore[no-any-return]


class Counted:
    """A compiled step, and how many of its calls took the general path."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self.step = mgjit.compile(**options)(function)
        self.general = 0
        inner = self.step._call

        def counting(*args: Any, **kwargs: Any) -> Any:
            self.general += 1
            return inner(*args, **kwargs)

        self.step._call = counting  # type: ignore[method-assign]
        self.step.clear()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.step(*args, **kwargs)

    def warm(self, *args: Any) -> Counted:
        """Calls that get the step its path."""
        for _ in range(3):
            self.step(*args)
        self.general = 0
        return self

    @property
    def is_fast(self) -> bool:
        call: Any = entered(self.step.__call__)
        return getattr(call, "__wrapped__", call).__code__.co_filename == fastcall._FILE  # type: ignore[no-any-return]


ARGUMENTS = [
    (lambda x: x * 1.5, [(2.0,), (-0.0,), (math.inf,)]),
    (lambda i: i * 1.5, [(2,), (-7,), (0,)]),
    (lambda x, y: x[0] * y + x[1], [([1.0, 2.0], 3.0), ([4, 5.5], 0.5), ([True, 2.5], 1.0)]),
    (lambda x: x[0] * x[2], [((1.0, 2.0, 3.0),), ((4.5, 5.0, 6.0),)]),
    (lambda x: sum(x) * 1.0, [([0.1 * k for k in range(40)],), ([0.3 * k for k in range(40)],)]),
    (lambda x: x[0] * x[1], [([3, 4],), ([5, 6],)]),
    (lambda x: x[1][0] + x[0][1], [([[1.0, 2.0], [3.0, 4.0]],), ([[5.0, 6], [7, 8.0]],)]),
    (lambda x, y: x[1] * y, [(b"abc", 2.0), (b"xyz", 3.0)]),
    (lambda x: x[1] * 2.0, [(bytearray(b"abc"),), (bytearray(b"xyz"),)]),
    (lambda x: x[1] * 2.0, [(array("f", [1.5, 2.5]),), (array("f", [3.5, 4.5]),)]),
    (lambda x: x[1] * 2.0, [(memoryview(b"abcd")[::2],), (memoryview(b"wxyz")[::2],)]),
    (lambda p: p.a * p.b[1], [(Pair(1.5, [1, 2]),), (Pair(2.5, [3, 4]),)]),
    (lambda p: p.a[0] * p.b, [(Sample(b"a", 2.0),), (Sample(b"b", 3.0),)]),
    (lambda d: d["a"] * d["b"]["c"], [({"a": 1.5, "b": {"c": 2}},), ({"a": 2.5, "b": {"c": 3}},)]),
    (lambda p: p[0] * p[1][0], [((1.5, (2, "a")),), ((2.5, (3, "a")),)]),
    (lambda x, flag, name: x * (2.0 if flag else 3.0) + len(name), [(1.0, True, "ab"), (2.0, True, "ab")]),
    (lambda x, y=0.25: x * y, [(1.0,), (2.0,), (3.0, 0.5)]),
    (lambda x, /, y: x * y, [(1.0, 2.0), (3.0, 4.0)]),
    (lambda x, none, empty: x * 2.0, [(1.0, None, []), (2.0, None, [])]),
    (lambda _0, _packed, call: _0 * _packed + call, [(1.0, 2.0, 3.0), (4.0, 5.0, 6.0)]),
    (lambda x: (x * 2.0, [x, "a"]), [(1.0,), (2.0,)]),
    (lambda x: None, [(1.0,), (2.0,)]),
    (lambda: 3.0, [()]),
]


def leaves(tree: Any) -> Any:
    if isinstance(tree, (list, tuple)):
        return type(tree)(map(leaves, tree))
    return bits(tree) if isinstance(tree, (float, Value)) else tree


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("plain", "calls"), ARGUMENTS)
def test_01_calls_that_fit(plain: Callable[..., Any], calls: list[tuple[Any, ...]], dtype: str, kind: str) -> None:
    """Every kind of argument and result, never by the general path."""
    step = Counted(plain, dtype=dtype).warm(*calls[0])
    general = [mgjit.compile(dtype=dtype)(plain)(*arguments) for arguments in calls]
    assert step.is_fast
    before = step.step.stats.calls
    assert before in (2, 3)  # whether the very first call has earned a trace depends on the clock
    for arguments, expected in zip(calls * 3, general * 3):
        assert leaves(step(*arguments)) == leaves(expected)
    assert step.general == 0
    assert step.step.stats.calls == before + 3 * len(calls)


def test_02_numpy(kind: str) -> None:
    """Arrays, contiguous or not, and scalars."""
    numpy = pytest.importorskip("numpy")
    base = numpy.arange(24.0).reshape(4, 6)
    step = Counted(lambda x, y: x[0][1] * y).warm(base, 2.0)
    for x, general in ((base + 1.0, 0), (base * 3.0, 0), (numpy.asfortranarray(base), 1), (base.astype("f4"), 1)):
        step.warm(base, 2.0)
        assert step(x, 2.0) == 2.0 * x[0][1]
        assert step.general == general
    step.warm(base, 2.0)
    assert step(base, numpy.float64(0.5)) == 0.5
    assert step.general == 1


def total(x: Any) -> Any:
    """A sum over everything in a tree."""
    if x is None or isinstance(x, str):
        return 0.5
    if isinstance(x, dict):
        return total(list(x.values()))
    return sum(map(total, x)) + len(x) if hasattr(x, "__len__") else x * 1.0


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (1.0, 2), (2, 1.0), (2, True), (1.0, True), (2, 2**30), (2, BIG), ([1.0, 2.0], (1.0, 2.0)),
        ([1.0, 2.0], [1.0, 2.0, 3.0]), ([1.0, 2.0], [1.0]), ([1, 2], [1, 2.5]), ([1.5, 2.5], [1, 2]),
        ([1.5] * 30, [1] * 30), ([[1.5], [2.5]], [[1], [2]]), (b"ab", b"abc"),
        (b"ab", bytearray(b"ab")), (array("d", [1.0]), array("f", [1.0])), ([[1.0], [2.0]], [[1.0, 2.0], [3.0, 4.0]]),
        ("a", "b"), (None, 1.0), ((1.0, "a"), (1.0, "b")), ({"a": 1.0}, {"b": 1.0}), (Pair(1.0, "x"), (1.0, "x")),
        ([1.0] * 30, [1.0] * 31), ([], [1.0]),
    ],
)  # fmt: skip
def test_03_another_structure(first: Any, then: Any, kind: str) -> None:
    """The general path, with the result of a fresh step."""

    def plain(x: Any, y: float) -> Any:
        return total(x) * y

    step = Counted(plain).warm(first, 2.0)
    assert bits(step(then, 2.0)) == bits(mgjit.compile(plain)(then, 2.0))
    assert step.general == 1
    assert bits(step(first, 3.0)) == bits(mgjit.compile(plain)(first, 3.0))


def test_04_errors_are_those_of_the_general_path(kind: str) -> None:
    """Integers that are too big, things that are no numbers, wrong numbers of arguments."""
    w = Value(1.0)

    def plain(x: Any, i: Any, lr: float = 0.5) -> Any:
        w.data = w.data + 1.0
        return w * x[0] * i * lr

    step = Counted(plain).warm([1.0], 2)
    before = w.data
    with pytest.raises(ArgumentValueError, match=rf"{__name__.rsplit('.')[-1]}\.py:\d+: .*2\*\*53"):
        step([1.0], BIG + 1)
    for arguments, named in (((), {}), (([1.0],), {}), (([1.0], 2, 0.5, 1.0), {}), (([1.0], 2), {"other": 1})):
        with pytest.raises(TypeError, match="argument"):
            step(*arguments, **named)
    with pytest.raises(TypeError, match=r"plain\(\) missing 1 required positional argument: 'i'"):
        step.step([1.0])
    assert w.data == before
    assert step(i=2, x=[3.0]) == (before + 1.0) * 3.0
    assert step([3.0], lr=0.25, i=2) == (before + 2.0) * 1.5
    assert step.step.stats.traces == 1


def test_05_indices(kind: str) -> None:
    """Checked in numbers, lists, bytes and buffers, before anything runs."""
    w = Value(0.0)
    table = [1.0, 2.0, 3.0]

    def plain(i: Any, x: Any, j: Any, raw: Any) -> Any:
        w.data = w.data + 1.0
        return sum(mgjit.take(table, k) for k in (i, j, x[1], raw[0]))

    good = 2, [9.5, 1.0], 1.0, b"\x02a"
    step = Counted(plain).warm(*good)
    assert step(*good) == 3.0 + 2.0 + 2.0 + 3.0
    assert step.general == 0
    before = w.data
    for place, wrong in (
        (0, 3), (0, -1), (1, [9.5, 3.0]), (1, [9.5, 0.5]), (1, [9.5, -1.0]), (1, [0.0, math.nan]), (2, 3.0), (2, -1.0),
        (2, 1.5), (2, math.nan), (2, math.inf), (3, b"\x03a"),
    ):  # fmt: skip
        arguments: list[Any] = list(good)
        arguments[place] = wrong
        with pytest.raises(IndexRangeError, match=r"test_fastcall\.py:\d+"):
            step(*arguments)
    assert w.data == before
    assert step(0, [9.5, -0.0], 1.0, b"\x00b") == 5.0


def test_05b_indices_in_buffers(kind: str) -> None:
    """Of arrays and tensors a private copy is checked, of all elements or of those that are indices."""
    w = Value(0.0)
    table = [1.0, 2.0, 3.0]
    rows = T.asarray(table)

    def plain(some: Any, labels: Any) -> Any:
        w.data = w.data + 1.0
        return mgjit.take(table, some[1]) + rows[labels].sum()

    good = array("q", [7, 2]), T.asarray([0, 1])
    step = Counted(plain).warm(*good)
    assert step.is_fast
    assert step(*good).item() == 3.0 + 1.0 + 2.0
    assert step(array("q", [-7, 0]), T.asarray([5, 2, 5, 2])[1::2]).item() == 1.0 + 3.0 + 3.0
    assert step(array("q", [0, 1]), T.asarray([-3, -1])).item() == 2.0 + 1.0 + 3.0
    assert step.general == 0
    before = w.data
    few = ([1, 3], [1, -4], [2**50, 0])
    for wrong in ((array("q", [0, 3]), good[1]), *((good[0], T.asarray(some)) for some in few)):
        with pytest.raises(IndexRangeError, match=r"test_fastcall\.py:\d+"):
            step(*wrong)
    assert w.data == before


def test_06_captured_names(kind: str) -> None:
    """Globals, closure variables, attributes, entries and lists: a change is noticed by the next call."""
    global SCALE
    scale, numbers, holder = 3.0, [1.0, 2.0], Sample(4.0, {"k": 5.0})

    def plain(x: float) -> Any:
        return x * SCALE * scale * numbers[1] * holder.a * holder.b["k"]

    step = Counted(plain)
    changes: list[Callable[[], Any]] = [lambda: None, lambda: numbers.append(7.0), lambda: numbers.__setitem__(1, 0.5)]
    changes += [lambda: setattr(holder, "a", 0.25), lambda: holder.b.__setitem__("k", 9.0)]
    try:
        for change in changes:
            step.warm(1.0)
            change()
            assert step(0.5) == plain(0.5)
        for number in (5.0, 2.0):
            step.warm(1.0)
            SCALE = number
            assert step(0.5) == plain(0.5)
            step.warm(1.0)
            scale += 1.0
            assert step(0.5) == plain(0.5)
    finally:
        SCALE = 2.0


def test_07_equal_is_enough(kind: str) -> None:
    """A captured number that is another object of equal value does not trace again."""
    scale = 2.5
    step = Counted(lambda x: x * scale).warm(1.0)
    scale = float("2.5")
    assert step(2.0) == 5.0
    assert step.general == (0 if ffi.PYPY else 1)  # where equal floats are identical
    assert step.step.stats.traces == 1


def test_08_nan_is_a_result(kind: str) -> None:
    """Of any sign; the step runs once."""
    w = Value(0.0)

    def plain(x: float) -> Any:
        w.data = w.data + 1.0
        return x * 1.0

    step = Counted(plain).warm(1.0)
    for x in (math.nan, -math.nan, math.copysign(math.nan, -1.0), math.inf - math.inf):
        assert math.isnan(step(x))
    assert (step.general, w.data, step.step.stats.calls) == (0, 7.0, 7)


def test_09_phases(kind: str) -> None:
    """A call between the phases is noticed, and phases run between calls."""
    w = Value(1.0)

    def plain(x: float) -> Any:
        loss = w * x
        w.grad = 0.0
        loss.backward()
        w.data -= 0.5 * w.grad
        return loss

    step = Counted(plain).warm(1.0)
    step.step.forward(1.0)
    step(1.0)
    for phase in (step.step.backward, step.step.update):
        with pytest.raises(PhaseError):
            phase()
    before = w.data
    step.step.forward(2.0)
    step.step.backward()
    step.step.update()
    assert w.data == before - 1.0
    step(1.0)
    assert w.data == before - 1.5


def test_10_many_kernels(kind: str) -> None:
    """Steps that alternate between structures, and forget them."""
    w = Value(2.0)
    step = mgjit.compile(lambda x: sum(w * k for k in x))
    for _ in range(4):
        for n in (1, 2, 3):
            for _ in range(n):
                assert step([1.0] * n) == 2.0 * n
    assert step.stats.traces == 3
    assert step.stats.calls == 4 * 6
    step.clear()
    assert [float(step([1.0])) for _ in range(5)] == [2.0] * 5
    assert (step.stats.traces, step.stats.calls) == (1, 5)


def test_11_short_and_long_kernels_of_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once there is a long one, short ones take the lock as well."""
    step = mgjit.compile(lambda x: x[0] * 2.0)
    monkeypatch.setattr(fastcall, "_SHORT_SECONDS", math.inf)
    for _ in range(4):
        step([1.0])
    assert not step._turn.has_long_calls
    short = step.__call__
    for _ in range(4):
        step(bytearray(b"a"))
    assert not step._turn.has_long_calls  # it takes the lock, but holds the GIL
    monkeypatch.setattr(fastcall, "_SHORT_SECONDS", -1.0)
    for _ in range(4):
        step(bytearray(b"ab"))
    assert step._turn.has_long_calls
    assert short([3.0]) == 6.0  # a thread may still be about to call it
    for _ in range(3):
        assert step([3.0]) == 6.0
    assert step.stats.calls == 16


@pytest.mark.filterwarnings("error")
def test_12_methods_and_inner_calls(kind: str) -> None:
    """Every instance has its own; inside of another trace the function itself runs."""

    class Thing:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        @mgjit.compile
        def step(self, x: float) -> Any:
            return x * self.factor

    things = [Thing(2.0), Thing(3.0)]
    for _ in range(4):
        assert [thing.step(5.0) for thing in things] == [10.0, 15.0]
    things[0].factor = 4.0
    assert [thing.step(5.0) for thing in things] == [20.0, 15.0]
    outer = mgjit.compile(lambda x: things[1].step(x) + 1.0)
    assert [float(outer(x)) for x in (1.0, 2.0, 3.0, 4.0)] == [4.0, 7.0, 10.0, 13.0]
    assert Thing.step(things[1], 1.0) == 3.0


def test_13_values(kind: str) -> None:
    """Known by identity: fast; copied in and out: general."""
    p, q = Value(1.0), Value(2.0)
    step = Counted(lambda p, x: p * x).warm(p, 2.0)
    assert (step(p, 3.0), step.general) == (3.0, 0)
    assert (step(q, 3.0), step.general) == (6.0, 1)
    assert (step(p, 3.0), step(q, 3.0)) == (3.0, 6.0)


def test_14_functions_without_plain_parameters(kind: str) -> None:
    """Stars and keyword-only parameters stay on the general path."""
    step = Counted(lambda *xs, k=1.0, **rest: sum(xs) * k).warm(1.0, 2.0)
    assert not step.is_fast
    assert (step(1.0, 4.0), step(1.0, 4.0, k=2.0)) == (5.0, 10.0)


def test_15_too_many_parts(kind: str) -> None:
    """A function that would take longer to compile than it saves is not made."""
    step = Counted(lambda d: d["k1"] * 2.0).warm({f"k{k}": 1.0 * k for k in range(600)})
    assert not step.is_fast


def test_16_threads(kind: str) -> None:
    """Calls, loops and general calls at the same time: none is lost, no input is that of another thread."""
    w = Value(0.0)

    def plain(x: Any, i: int) -> Any:
        w.data = w.data + 1.0
        return x[0] * i + x[1]

    step = mgjit.compile(plain)
    for _ in range(4):
        step([1.0, 1.0], 1)
    start, failures = threading.Barrier(6), []

    def work(number: int) -> None:
        start.wait()
        for k in range(300):
            if number == 0 and k % 10 == 0:
                step.loop([[1.0, 2.0]] * 50, 3)
            elif (
                step([float(number), float(k)], k if number != 1 else 2**31)
                != number * (k if number != 1 else 2**31) + k
            ):
                failures.append((number, k))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert w.data == step.stats.calls == 4 + 5 * 300 + 270 + 30 * 50


def test_17_a_callable_that_is_no_function(kind: str) -> None:
    """Wrapped functions have what the path needs."""
    w = Value(2.0)

    @functools.wraps(lambda x: x)
    def wrapped(x: float) -> Any:
        return w * x

    step = Counted(wrapped).warm(1.0)
    assert (step(3.0), step.general) == (6.0, 0)


def test_18_objects_and_partials(kind: str) -> None:
    """Have no name of their own."""

    class Scaled:
        factor = 2.0

        def __call__(self, x: float) -> Any:
            return x * self.factor

    for function in (Scaled(), functools.partial(lambda y, x: x * y, 2.0)):
        step = Counted(function).warm(1.0)
        assert (step.is_fast, step(3.0), step.general) == (True, 6.0, 0)
