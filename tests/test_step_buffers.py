"""Buffers among the arguments whose elements a step assigns: they hold what Python would have put there."""

from __future__ import annotations

import copy
from array import array
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit.runtime.stats import Stats

pytestmark = pytest.mark.filterwarnings("ignore::mgjit.errors.BackendWarning")


def _contents(thing: Any) -> Any:
    """Elements with their types, of nested containers and buffers."""
    if isinstance(thing, dict):
        return {key: _contents(part) for key, part in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [_contents(part) for part in thing]
    return repr(thing.tolist()) if hasattr(thing, "tolist") else repr(thing)


def _outcome(function: Callable[..., Any], arguments: list[Any]) -> Any:
    try:
        return repr(function(*arguments))
    except Exception as error:
        return next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins" and kind.__base__)


def _as_python(function: Callable[..., Any], make: Callable[[], list[Any]], calls: int = 5) -> Stats:
    """Call a step plain and compiled, over buffers that stay; returns the statistics."""
    step = mgjit.compile(function)
    wanted, got = make(), make()
    for k in range(calls):
        assert _outcome(step, [*got, 0.5 + k]) == _outcome(function, [*wanted, 0.5 + k])
        assert _contents(got) == _contents(wanted)
    stats: Any = step.stats
    return stats


def _assign(a: Any, x: float) -> float:
    a[0] += x
    a[-1] = a[0] * 2
    return a[1] * x


def _count(a: Any, x: float) -> float:
    a[1] += 3
    a[2] = 7
    return x * a[1]


@pytest.mark.parametrize(
    "make",
    [lambda: [array("d", [1, 2, 3])], lambda: [memoryview(array("d", [1, 2, 3]))], lambda: [array("d", range(40))]],
)
def test_float64_buffers_are_assigned_by_compiled_calls(make: Callable[[], list[Any]]) -> None:
    stats = _as_python(_assign, make)
    assert (stats.calls, stats.plain_calls, stats.traces) == (5, 0, 1)


def test_a_list_at_the_same_place_in_another_call_does_not_matter() -> None:
    """A list that is changed in place is known by its identity; a buffer is an input before that and afterwards."""

    def put(a: Any, x: Any) -> float:
        a[0] -= 0.5 * x[0]
        return a[0] + x[1]

    step = mgjit.compile(put)
    for arguments in ([array("d", [1, 2]), [1.0, 2.0]], [[1.0, 2.0], [1.0, 2.0]], [array("d", [1, 2]), (3, 4)]):
        wanted, got = copy.deepcopy(arguments), copy.deepcopy(arguments)
        for _ in range(3):
            assert step(*got) == put(*wanted)
            assert got == wanted
    assert step.stats.plain_calls == 0


def test_ints_of_64_bits_stay_ints() -> None:
    assert _as_python(_count, lambda: [array("q", [1, 2, 3])]).calls == 5


@pytest.mark.parametrize(
    "buffer",
    [array("f", [1, 2, 3]), array("q", [1, 2, 3]), bytearray(b"abc"), b"abc", memoryview(b"abc"), array("i", [1, 2])],
    ids=lambda buffer: type(buffer).__name__,
)
def test_what_only_python_knows_is_done_by_python(buffer: Any) -> None:
    _as_python(_assign, lambda: [buffer if isinstance(buffer, memoryview) else copy.copy(buffer)])


@pytest.mark.parametrize("buffer", [bytearray([1, 2, 3]), bytearray([250, 250, 250]), array("i", [1, 2, 3])], ids=repr)
def test_elements_that_overflow_raise_as_in_python(buffer: Any) -> None:
    assert _as_python(_count, lambda: [copy.copy(buffer)]).calls == 0


def test_buffers_that_grow_do_so() -> None:
    def step(a: Any, x: float) -> int:
        a.append(x)
        return len(a)

    _as_python(step, lambda: [array("d", [1.0])])


def test_buffers_inside_of_containers() -> None:
    def step(d: Any, x: float) -> float:
        d["a"][0] += x
        d["l"][1][1] -= x
        return x

    stats = _as_python(step, lambda: [{"a": array("d", [1]), "l": [1.0, array("d", [1, 2])]}])
    assert stats.calls == 5


def test_a_number_read_before_the_assignment_is_the_old_one() -> None:
    def step(a: Any, x: float) -> Any:
        before = a[0]
        a[0], a[1] = a[1] + x, a[0]
        return before, a[0], a[1]

    assert _as_python(step, lambda: [array("d", [1, 2])]).calls == 5


def _write_one_read_other(a: Any, b: Any, x: float) -> float:
    a[0] = x
    return b[0] * 2  # type: ignore[no-any-return]


def test_one_buffer_passed_twice() -> None:
    def twice() -> list[Any]:
        one = array("d", [1, 2])
        return [one, one]

    assert _as_python(_write_one_read_other, twice).plain_calls == 5
    step = mgjit.compile(_write_one_read_other)
    one, other = array("d", [1, 2]), array("d", [3, 4])
    assert [step(one, other, 0.5), step(one, one, 0.25), step(memoryview(one), one, 0.75)] == [6.0, 0.5, 1.5]


def test_a_buffer_that_the_step_also_captures() -> None:
    captured = array("d", [1.0, 2.0])

    @mgjit.compile
    def step(a: Any, x: float) -> float:
        a[0] += x
        return captured[0]

    assert [step(array("d", [9.0]), 1.0), step(captured, 1.0), step(captured, 1.0)] == [1.0, 2.0, 3.0]
    assert captured[0] == 3.0


def test_loops_write_row_by_row() -> None:
    @mgjit.compile
    def step(a: Any, x: float) -> Any:
        a[0] += x
        a[1] = a[0] * x
        return a[1]

    memory = array("d", range(6))
    rows = memoryview(memory).cast("B").cast("d", (3, 2))
    assert list(step.loop(rows, [1.0, 2.0, 3.0])) == [1.0, 8.0, 21.0]
    assert list(memory) == [1.0, 1.0, 4.0, 8.0, 7.0, 21.0]
    one = array("d", [0.0, 0.0])
    assert list(step.loop([one] * 3, [1.0, 2.0, 3.0])) == [1.0, 6.0, 18.0]


def test_phases_write_with_the_update() -> None:
    @mgjit.compile
    def step(a: Any, x: float) -> Any:
        a[0] += x
        return a[0]

    buffer = array("d", [1.0])
    step.forward(buffer, 2.0)
    assert buffer[0] == 1.0
    step.backward()
    step.update()
    assert buffer[0] == 3.0


def test_the_python_backend_writes_too() -> None:
    step = mgjit.compile(backend="python")(_assign)
    buffer = array("d", [1.0, 2.0, 3.0])
    step(buffer, 0.5)
    assert list(buffer) == [1.5, 2.0, 3.0]


def test_a_failed_call_writes_nothing() -> None:
    table = [1.0, 2.0]

    @mgjit.compile
    def step(a: Any, x: float, index: int) -> Any:
        a[0] += x
        return table[index]

    buffer = array("d", [1.0])
    step(buffer, 1.0, 0)
    with pytest.raises(IndexError):
        step(buffer, 1.0, 5)
    assert buffer[0] == 2.0


class TestNumpy:
    numpy: Any = None

    @pytest.fixture(autouse=True)
    def _numpy(self) -> None:
        self.numpy = pytest.importorskip("numpy")

    def test_one_dimension_also_with_gaps(self) -> None:
        def step(a: Any, x: float) -> float:
            a[0] += x
            a[-1] = a[0] * 2
            return float(a[1]) * x

        assert _as_python(step, lambda: [self.numpy.arange(5.0)]).calls == 5
        assert _as_python(step, lambda: [self.numpy.arange(8.0)[::2]]).calls == 5
        assert _as_python(step, lambda: [self.numpy.arange(8.0)[::-2]]).calls == 5

    def test_two_dimensions(self) -> None:
        def step(a: Any, x: float) -> float:
            for i in range(len(a)):
                for j in range(len(a[0])):
                    a[i, j] = a[i][j] * x + i
            row = a[0]
            row[1] -= 1
            a[1] = [3, x, x]
            return float(a[1, 1])

        assert _as_python(step, lambda: [self.numpy.ones((2, 3))]).calls == 5
        assert _as_python(step, lambda: [self.numpy.ones((3, 2)).T]).calls == 5

    def test_columns_and_slices_are_what_they_are_in_numpy(self) -> None:
        def step(a: Any, x: float) -> Any:
            a[1:3] = [a[0, 0], x]  # to both rows
            a[1:] = a[:3]
            a[3:] = 0
            return [float(e) for e in a[:, 0]], [float(e) for e in a[1, :]]

        def flat(a: Any, x: float) -> Any:
            a[1:3] = [a[0], x]
            a[3:] = 0
            return [float(e) for e in a[1:]]

        def column(a: Any, x: float) -> Any:
            return [float(e) * x for e in a[:, 1]], float(a[0:2, 1][1]), a.shape, a.ndim

        assert _as_python(step, lambda: [self.numpy.arange(8.0).reshape(4, 2)]).calls == 5
        assert _as_python(flat, lambda: [self.numpy.arange(5.0)]).calls == 5
        assert _as_python(column, lambda: [self.numpy.arange(8.0).reshape(4, 2)]).calls == 5

    def test_an_assignment_that_a_view_would_see(self) -> None:
        def step(a: Any, x: float) -> float:
            view = a[1:3]
            a[1] = x
            return float(view[0])

        def into_view(a: Any, x: float) -> float:
            view = a[1:3]
            view[0] = x
            return float(a[1])

        assert _as_python(step, lambda: [self.numpy.arange(4.0)]).plain_calls == 5
        assert _as_python(into_view, lambda: [self.numpy.arange(4.0)]).plain_calls == 5

    @pytest.mark.parametrize("kind", ["float32", "int64", "int8", "bool"])
    def test_other_types_of_elements(self, kind: str) -> None:
        def step(a: Any, x: float) -> float:
            a[0] = x
            a[1] = 3
            return float(a[0])

        _as_python(step, lambda: [self.numpy.zeros(3, kind)])

    def test_read_only_arrays_raise_as_in_numpy(self) -> None:
        def step(a: Any, x: float) -> None:
            a[0] = x

        def read_only() -> list[Any]:
            made = self.numpy.zeros(2)
            made.setflags(write=False)
            return [made]

        _as_python(step, read_only)

    def test_views_of_what_the_step_captures(self) -> None:
        captured = self.numpy.arange(6.0).reshape(2, 3)

        @mgjit.compile
        def step(a: Any, x: float) -> float:
            a[0] += x
            return float(captured[0][0])

        assert [step(captured[1], 1.0), step(captured[0], 1.0), step(captured[0], 1.0)] == [0.0, 1.0, 2.0]

    def test_overlapping_arguments(self) -> None:
        memory = self.numpy.arange(4.0)
        step = mgjit.compile(_write_one_read_other)
        assert float(step(memory[:2], memory[2:], 0.5)) == 4.0
        assert float(step(memory[:2], memory[0:3], 0.25)) == 0.5
        assert (step.stats.calls, step.stats.plain_calls) == (1, 1)


def test_a_scalar_of_numpy_as_an_index_is_known_by_its_value() -> None:
    """Where a table is a buffer: each index is a structure, and the trace that finds so has an end."""
    numpy = pytest.importorskip("numpy")
    table, wanted = numpy.zeros((3, 2)), numpy.zeros((3, 2))

    def step(table: Any, row: Any, x: float) -> Any:
        table[row][1] += x
        return table[row][1]

    compiled = mgjit.compile(background=False)(step)
    for row in numpy.array([2, 0, 2, 1]):
        assert repr(compiled(table, row, 0.5)) == repr(step(wanted, row, 0.5))
    assert (table == wanted).all()
    assert compiled.stats.calls == 4
