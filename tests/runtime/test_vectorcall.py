"""runtime/vectorcall.py: quick calls do what the generated functions do that they stand for."""

from __future__ import annotations

import copy
import gc
import math
import struct
import sys
import threading
import time
import warnings
import weakref
from array import array
from typing import Any

import pytest

import mgjit
from mgjit import Value
from mgjit.compiler.build.options import StepOptions
from mgjit.errors import ArgumentValueError, IndexRangeError, MgjitError, PlainWarning
from mgjit.runtime import fastcall, vectorcall
from mgjit.script.step import OutlinedStep
from mgjit.tracing.call.results import Result
from tests.runtime.quick import entered, use_extension

SCALE: Any = 2.0


@pytest.fixture(autouse=True)
def extension(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is there, and calls that are short."""
    use_extension(monkeypatch)
    monkeypatch.setattr(fastcall, "_SHORT_SECONDS", math.inf)


def compiled(function: Any, *arguments: Any, **options: Any) -> Any:
    """A step with a quick call."""
    step = mgjit.compile(function, background=False, verify="never", **options)
    for _ in range(4):
        step(*arguments)
    assert type(step.__call__).__name__ == "QuickCall"
    return step


def test_01_many_calls_ask_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread gets the extension; from then on calls are quick, with the same numbers, and all of them are counted."""
    monkeypatch.setattr(vectorcall, "extension", vectorcall.Extension())
    monkeypatch.setattr(vectorcall, "MANY_CALLS", 50)
    w = Value(0.0)

    def add(x: Any, y: Any) -> Any:
        w.data += x * y
        return w.data

    step = mgjit.compile(add, background=False, verify="never")
    expected = 0.0
    for number in range(1000):
        expected += 0.25 * number
        assert step(0.25, float(number)) == expected
        if vectorcall.extension.thread is not None:
            vectorcall.extension.thread.join()
    assert type(step.__call__).__name__ == "QuickCall"
    assert step.stats.calls == 1000


def test_02_where_it_is_impossible_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without headers, or with a compiler that fails."""
    monkeypatch.setattr(vectorcall, "MANY_CALLS", 10)
    for fails in (False, True):
        other = vectorcall.Extension()
        other.is_possible = fails
        if fails:
            other._include, other._parts = "/nowhere", {**other._parts, "include": "/nowhere"}
        monkeypatch.setattr(vectorcall, "extension", other)
        step = mgjit.compile(lambda x: x * SCALE, background=False, verify="never")
        for _ in range(300):
            assert step(1.5) == 3.0
            if other.thread is not None:
                other.thread.join()
        assert hasattr(entered(step.__call__), "__code__")
        assert (other.thread is not None) == fails
        assert not other.is_possible


def test_03_what_it_does_not_take() -> None:
    """Other types, names, numbers of arguments, ranges: the results and errors of the general path."""
    table = [0.5 * k for k in range(4)]
    step = compiled(lambda x, k, xs: x * table[k] + xs[1], 2.0, 1, [1.0, 2.0])
    assert step(2.0, 3, [0.0, 4.0]) == 7.0
    for result in (step(x=2.0, k=3, xs=[0.0, 4.0]), step(2, 3, [0, 4.0]), step(2.0, 3, (0.0, 4.0))):
        assert result == 7.0
    for wrong in (4, -1, 2**70):
        with pytest.raises((IndexRangeError, ArgumentValueError)):
            step(2.0, wrong, [0.0, 4.0])
    with pytest.raises(TypeError):
        step(2.0, 1)
    with pytest.raises(TypeError):
        step("2.0", 1, [1.0, 2.0])
    assert step(2.0, 3, [0.0, 4.0]) == 7.0


def test_03_tables_and_ints() -> None:
    """Nested lists, ints, and both among each other; what has another type or length, or is assigned to, goes on."""
    w = [0.5, -0.25]

    def plain(rows: Any, bits: Any, target: Any) -> Any:
        total = sum(sum(a * b for a, b in zip(row, w)) for row in rows) - sum(target)
        w[0] -= 0.125 * total * bits[0]
        w[1] -= 0.125 * total * bits[1]
        return total

    rows, more, bits, target = [[0.5, 1.0], [2.0, -1.0]], [[1, 0.25], [0.75, 2]], [1, 0], [0.5, 0.25]
    calls = [
        (rows, bits, target), (more, [1, 1], [0.25, 1]), ([[1, 2], [3, 4]], [0, 1], target), (rows, bits, [1, 2]),
        (rows, [1.0, 0.0], target), (rows, [True, 0], target), (rows, (1, 0), target),
        ([[0.5, 1.0, 2.0], [2.0, -1.0]], bits, target), ([[0.5, 1.0], w], bits, target), (rows, bits, target),
    ]  # fmt: skip
    step = compiled(plain, *calls[0])
    w[:] = [0.5, -0.25]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [(step(*arguments), *w) for arguments in calls * 3]
    w[:] = [0.5, -0.25]
    assert found == [(plain(*arguments), *w) for arguments in calls * 3]


def test_03_a_label_in_a_row() -> None:
    """An int among floats that is an index: one out of its range is an error of the general path."""
    table = [0.5, 0.25, 2.0]
    step = compiled(lambda row: table[row[-1]] * row[0], [1.5, 2])
    assert [step([2.5, k]) for k in range(3)] == [1.25, 0.625, 5.0]
    with pytest.raises(IndexRangeError):
        step([2.5, 3])
    with pytest.raises(TypeError):
        step([2.5, 1.0])
    assert step([2.5, 1]) == 0.625


@pytest.mark.parametrize("size", [3, 33, 1023])
def test_03_lists_with_another_object(size: int) -> None:
    """It is looked at, wherever it is; what is not taken is computed by another path."""

    class Doubled(float):
        def __mul__(self, other: Any) -> Any:
            return float(self) * other * 2.0

    def plain(xs: list[float], scale: float) -> Any:
        return xs[0] * scale + xs[-2] * scale

    numbers = [0.5 * k for k in range(size)]
    step = compiled(plain, numbers, 0.5)
    assert step(numbers, 0.25) == plain(numbers, 0.25)
    other = [*numbers[:-2], Doubled(2.0), 1.0]
    with pytest.warns(PlainWarning, match="is a Doubled"):
        assert step(other, 0.25) == plain(other, 0.25)
    assert step(numbers, 0.75) == plain(numbers, 0.75)


def test_04_what_a_step_captures() -> None:
    """Globals, variables, attributes and lists that change are noticed as always."""
    factor, model = 2.0, type("Model", (), {})()
    model.bias, model.rows = 1.0, [1.0, 2.0]

    def step_of(x: Any) -> Any:
        return x * factor * SCALE + model.bias + model.rows[1]

    step = compiled(step_of, 1.0)
    assert step(1.0) == 7.0
    factor = 3.0
    assert step(1.0) == 9.0
    globals()["SCALE"] = 1.0
    assert step(1.0) == 6.0
    globals()["SCALE"] = 2.0
    model.bias = 0.0
    assert step(1.0) == 8.0
    model.rows[1] = -2.0
    assert step(1.0) == 4.0


def test_04_elements_of_captured_lists() -> None:
    """They are compared in C, by identity; an equal float in place of another is no difference, but a zero of another
    sign, and an int in place of a float, may be one."""
    rows, signs = [[Value(2.0)], [Value(3.0)]], [0.0, 0.5, 1.0]

    def step_of(x: Any) -> Any:
        return rows[0][0].data * x + rows[1][0].data + signs[0] + signs[1] + signs[2]

    step = compiled(step_of, 1.0)
    quick = step.__call__

    def frames(x: float) -> list[str]:
        """The functions that run in Python during a call, whose result is right."""
        names: list[str] = []
        sys.setprofile(lambda frame, event, _: names.append(frame.f_code.co_name) if event == "call" else None)
        try:
            result = quick(x)
        finally:
            sys.setprofile(None)
        assert result == step_of(x)
        return names

    for _ in range(2):
        frames(2.0)  # the rest is compared as well
    kernel = step._chosen
    kernel.guard.times[0] = kernel.guard.pace.next[0] = time.perf_counter() + 1e6
    assert frames(2.0) == []
    signs[1] = float("0.5")
    assert frames(3.0) == []
    for k, other in ((0, -0.0), (2, 1), (0, 0.0), (1, 0.75)):
        signs[k] = other
        assert frames(2.0) != []
    rows[1] = [Value(4.0)]
    assert frames(2.0) != []
    rows.reverse()
    assert frames(2.0) != []


def test_04_when_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes long to compare is compared when the pauses are over, or all is to be looked at, and only then."""
    step = compiled(lambda x: x * SCALE, 2.0)
    kernel = step._chosen
    asked: list[float] = []

    def look() -> bool:
        asked.append(1.0)
        return True

    monkeypatch.setattr(kernel.guard, "_seem_same", look)
    kernel.fast_calls.clear()
    step._forget_call()
    quick = step._choose_call(kernel)
    assert type(quick).__name__ == "QuickCall"
    times, pause = kernel.guard.times, kernel.guard.pace.next

    def looks(next_time: float, end_of_pause: float, calls: int) -> int:
        times[0], times[1], pause[0] = next_time, 0.0, end_of_pause
        asked.clear()
        assert [quick(1.5) for _ in range(calls)] == [3.0] * calls
        return len(asked)

    later = time.perf_counter() + 1e6
    assert looks(0.0, later, 5) == 5
    assert looks(later, 0.0, 1000) == 0
    assert times[1] == 1.0
    assert looks(1.0, later, 1000) == 0
    assert 1000 // 16 <= looks(1.0, 1.0, 1000) <= 1000
    assert looks(later, later, 2) == 0
    assert looks(0.0, later, 1) == 1


def test_05_results() -> None:
    """Floats, ints, bools, Values, nans of either sign."""
    w = Value(3.0)
    assert type(compiled(lambda x: w * x, 2.0)(2.0)).__name__ == "Result"
    assert compiled(lambda x: w * x, 2.0)(2.0).data == 6.0
    assert math.copysign(1.0, compiled(lambda x: w * x, 2.0)(-0.0)) == -1.0
    assert type(compiled(lambda k: k + 1, 2)(2)) is int
    assert type(compiled(lambda x: x > 1.0, 2.0)(2.0)) is bool
    same = compiled(lambda x: x, 2.0)
    assert math.copysign(1.0, same(-0.0)) == -1.0
    assert same(-math.inf) == -math.inf
    assert math.isnan(same(math.nan))
    assert math.isnan(same(-math.nan))


def test_05_buffers() -> None:
    """Bytes with and without indices, arrays and memoryviews; what is not quite the same goes the general path."""
    table = [0.5 * k for k in range(4)]

    def step_of(tokens: Any, xs: Any, x: Any) -> Any:
        return mgjit.take(table, tokens[1]) * xs[0] + xs[1] * x

    step = compiled(step_of, b"\xff\x03", array("d", [2.0, 1.0]), 1.0)
    assert step(b"\xfe\x02", array("d", [4.0, 8.0]), 0.5) == 8.0
    for xs in ([4.0, 8.0], array("f", [4.0, 8.0]), memoryview(array("d", [4.0, 9.0, 8.0, 9.0]))[::2]):
        assert step(b"\xfe\x02", xs, 0.5) == 8.0
    for wrong in (b"\x00\x04", b"\x00\xff", bytearray(b"\x00\x04")):
        with pytest.raises(IndexRangeError):
            step(wrong, array("d", [4.0, 8.0]), 0.5)
    assert step(bytearray(b"\x00\x02"), array("d", [4.0, 8.0]), 0.5) == 8.0
    rows = compiled(lambda xs: xs[0, 1] + xs[1, 0], memoryview(array("i", range(4))).cast("B").cast("i", [2, 2]))
    assert rows(memoryview(array("i", [1, 2, 3, 4])).cast("B").cast("i", [2, 2])) == 5
    assert rows(memoryview(array("i", range(6))).cast("B").cast("i", [3, 2])) == 3


def test_05_float32() -> None:
    """Numbers are rounded; what is too large for that is refused as by the general path."""
    step = compiled(lambda x, k, xs: x * xs[0] + k, 1.0, 1, array("f", [1.0]), dtype="float32")
    general = entered(step.__call__).__wrapped__
    for x, k in ((0.1, 3), (1e-60, 2), (math.inf, 1), (math.nan, 1), (0.3, 2**24 + 1), (3.5e38, 1)):
        found = []
        for call in (step, general):
            try:
                found.append(struct.pack("d", call(x, k, array("f", [0.7]))))
            except MgjitError as error:
                found.append(type(error))
        assert found[0] == found[1]


def test_06_buffers_are_released() -> None:
    """An array can grow after a call, whether that was quick or not."""
    xs, ys = array("d", [1.0]), array("d", [1.0])
    step = compiled(lambda xs, x, ys: xs[0] * x + ys[0], xs, 2.0, ys)
    before = sys.getrefcount(xs)
    for _ in range(100):
        assert step(xs, 2.0, ys) == 3.0
    assert sys.getrefcount(xs) == before
    for arguments in ((xs, 2.0, ys), (xs, 2, ys), (xs, 2.0, [1.0]), (xs, 2.0, array("f", [1.0]))):
        assert step(*arguments) == 3.0
        xs.append(5.0)
        xs.pop()


def test_07_threads_with_arrays() -> None:
    """Quick calls and those of the generated function, whose buffers are put into a block, at the same time."""
    w = Value(0.0)

    def add(xs: Any, x: Any) -> Any:
        w.data += xs[0] * x
        return xs[0]

    step = compiled(add, array("d", [0.0]), 1.0)
    general = entered(step.__call__).__wrapped__
    wrong: list[float] = []

    def work(call: Any, number: float) -> None:
        results = [call(array("d", [number]), 1.0) for _ in range(2000)]
        wrong.extend(result for result in results if result != number)

    threads = [threading.Thread(target=work, args=(call, k)) for k, call in enumerate((step, general, step, general))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert w.data == 2000.0 * (0 + 1 + 2 + 3)


def test_06_references() -> None:
    """Calls keep nothing, and a step that nobody has any more is collected."""
    x, xs = 0.123456789, [0.5, 0.25]
    step = compiled(lambda x, xs: x * xs[0], x, xs)
    before = sys.getrefcount(x), sys.getrefcount(xs), sys.getrefcount(step.__call__)
    for _ in range(1000):
        step(x, xs)
        step(1, xs)
    assert (sys.getrefcount(x), sys.getrefcount(xs), sys.getrefcount(step.__call__)) == before
    found = weakref.ref(step)
    del step
    gc.collect()
    assert found() is None


def test_06_references_to_the_class_of_results() -> None:
    """Each result has one, and gives it back; they can be copied like others."""
    w = Value(3.0)
    step = compiled(lambda x: w * x, 2.0)
    gc.collect()  # what other tests have left
    before = sys.getrefcount(Result)
    results = [step(0.5 * k) for k in range(100)]
    assert results == [1.5 * k for k in range(100)]
    assert copy.deepcopy(results[7]) == Result(10.5)
    assert sys.getrefcount(Result) == before + 100
    del results
    gc.collect()
    assert sys.getrefcount(Result) == before


def test_07_structures_in_turn() -> None:
    """A quick call passes other lengths on to those of their kernels, as long as these are what the step would use."""
    model = type("Model", (), {})()
    model.bias = 1.0

    def add(xs: Any, x: Any) -> Any:
        return sum(xs) * x + model.bias

    step = compiled(add, b"ab", 1.0)
    for length in (2, 3, 4):
        for _ in range(6):
            assert step(bytes(length), 1.0) == 1.0
    quick = step.__call__
    assert len(step._siblings) == 3
    for number in range(50):
        length = 2 + number % 3
        assert step(bytes([number] * length), 0.5) == 0.5 * number * length + 1.0
    assert step.__call__ is quick
    assert step.stats.calls == 4 + 18 + 50
    model.bias = 2.0
    assert [step(bytes(length), 1.0) for length in (2, 3, 4, 5, 2)] == [2.0] * 5
    step.wait()
    assert not step._siblings
    assert [step(bytes(length), 1.0) for length in (2, 3, 4, 5, 2)] == [2.0] * 5
    step.clear()
    assert quick(b"ab", 1.0) == 97.0 + 98.0 + 2.0


def test_07_threads() -> None:
    """Calls from several threads at once are all made, one after the other."""
    w = Value(0.0)

    def add(x: Any) -> Any:
        w.data += x
        return w.data

    step = compiled(add, 0.0)
    threads = [threading.Thread(target=lambda: [step(1.0) for _ in range(2000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert w.data == 8000.0
    assert step.stats.calls == 8004


def test_08_exceptions_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked now and then may be interrupted: nothing has happened then."""
    w = Value(1.0)

    def double() -> Any:
        w.data *= 2.0
        return w.data

    step = compiled(double)

    def interrupted() -> bool:
        raise KeyboardInterrupt

    kernel = step._chosen
    monkeypatch.setattr(kernel.guard, "_seem_same", interrupted)
    kernel.fast_calls.clear()
    step._forget_call()
    step._choose_call(kernel)
    assert type(step.__call__).__name__ == "QuickCall"
    kernel.guard.times[0] = time.perf_counter() + 1e6
    assert [step(), step()] == [32.0, 64.0]
    assert kernel.guard.times[1] == 1.0
    kernel.guard.look_at_everything()
    with pytest.raises(KeyboardInterrupt):
        step()
    assert w.data == 64.0


def test_09_calls_that_are_undone() -> None:
    """A call for which plain Python may raise an error changes nothing, and is not counted."""

    def made(weights: list[float]) -> Any:
        def step(x: float, scale: float) -> Any:
            y = weights[0] * x / scale + weights[1]
            weights[0] -= 0.01 * y * x
            weights[1] -= 0.01 * y
            return (y,)

        return step

    ours, theirs = [0.5, 0.25], [0.5, 0.25]
    step, plain = OutlinedStep(made(ours), StepOptions(background=False, verify="never"), (True,), -1), made(theirs)
    for k in range(60):
        if k in (39, 59):
            calls = step.stats.calls
            assert type(step.__call__).__name__ == "QuickCall"
            assert step.attempt((0.5, 0.0), 1e-4, 1.0) is step.nothing
            assert (ours, step.stats.calls) == (theirs, calls)
        found = step.attempt((0.1 * k, 2.0), 1e-4, 1.0)
        if found is step.nothing:
            found = made(ours)(0.1 * k, 2.0)
        assert found == plain(0.1 * k, 2.0)
        assert ours == theirs
    assert step.undone == 2
