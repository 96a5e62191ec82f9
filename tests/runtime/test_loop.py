"""`step.loop`: many steps in one call, bit for bit those that the same calls one by one make."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import threading
from array import array
from collections import deque
from collections.abc import Iterator
from typing import Any, Callable, NamedTuple

import pytest

import mgjit
from mgjit import Value, nn
from mgjit.engine.leaks import PlainCall
from mgjit.errors import ArgumentValueError, BackendWarning, ColumnError, IndexRangeError, PhaseError
from mgjit.runtime import loop
from tests.refusals import bits

BACKENDS = pytest.mark.parametrize("backend", ["auto", "python"])


class Pair(NamedTuple):
    """Two numbers."""

    left: Any
    right: Any


@dataclasses.dataclass
class Sample:
    """One row."""

    x: Any
    y: float
    name: str = "row"


class Trainer:
    """A network, state, and a step that changes both."""

    def __init__(self, width: int = 2) -> None:
        self.model = nn.MLP(width, [4, 1], seed=7)
        self.calls = mgjit.zeros(1)

    def plain(self, x: Any, y: Any, lr: Any = 0.1) -> Any:
        """One step of gradient descent."""
        loss = (self.model(x) - y) ** 2
        self.model.zero_grad()
        loss.backward()
        for p in self.model.parameters():
            p.data -= lr * p.grad
        self.calls[0] += 1.0
        return loss

    step = mgjit.compile(plain)

    def numbers(self) -> list[bytes]:
        """Everything that the step changes."""
        return [bits(number) for p in self.model.parameters() for number in (p.data, p.grad)] + [bits(self.calls[0])]


def rows(count: int, width: int = 2) -> list[list[float]]:
    return [[0.1 * k - 0.37 * j for j in range(width)] for k in range(count)]


def same_as_calls(
    plain: Callable[..., Any], *columns: Any, count: int, calls: list[tuple[Any, ...]], **options: Any
) -> Any:
    """The loop's result, after comparing it and all numbers with those of calls one by one."""
    ours, theirs = Trainer(), Trainer()
    looped = mgjit.compile(**options)(lambda *a: plain(ours, *a)).loop(*columns)
    step = mgjit.compile(**options)(lambda *a: plain(theirs, *a))
    results = [step(*arguments) for arguments in calls]
    assert len(results) == count
    assert ours.numbers() == theirs.numbers()
    if isinstance(looped, array):
        assert list(map(bits, looped)) == list(map(bits, results))
    return looped


# ---- columns ------------------------------------------------------------


def _inputs() -> list[tuple[str, Any, list[Any]]]:
    plain = rows(6)
    flat = array("d", [x for row in plain for x in row])
    table = memoryview(flat).cast("B").cast("d", (6, 2))
    raw = bytes(range(12))
    return [
        ("lists", plain, plain),
        ("tuple of tuples", tuple(map(tuple, plain)), list(map(tuple, plain))),
        ("mixed numbers", [[1, 0.5], [0.25, 2], [1, 2], [0.5, 0.5], [1.5, True], [0, 0]],
         [[1, 0.5], [0.25, 2], [1, 2], [0.5, 0.5], [1.5, True], [0, 0]]),
        ("integers", [[k, k + 1] for k in range(6)], [[k, k + 1] for k in range(6)]),
        ("deque", deque(plain), plain),
        ("arrays", [array("f", row) for row in plain], [array("f", row) for row in plain]),
        ("bytes", [raw[k : k + 2] for k in range(6)], [raw[k : k + 2] for k in range(6)]),
        ("a memoryview of rows", table, [flat[2 * k : 2 * k + 2] for k in range(6)]),
        ("a memoryview of bytes", memoryview(raw).cast("B", (6, 2)), [raw[2 * k : 2 * k + 2] for k in range(6)]),
    ]  # fmt: skip


@BACKENDS
@pytest.mark.parametrize(("name", "column", "items"), _inputs(), ids=[name for name, _, _ in _inputs()])
def test_01_inputs(name: str, column: Any, items: list[Any], backend: str) -> None:
    """Every kind of column beside a column of numbers and a number."""
    targets = array("d", [0.5, -1.0, 2.0, 0.0, 1.0, 3.0])
    calls = [(x, y, 0.05) for x, y in zip(items, targets)]
    losses = same_as_calls(Trainer.plain, column, targets, 0.05, count=6, calls=calls, backend=backend)
    assert type(losses) is array
    assert losses.typecode == "d"


@BACKENDS
@pytest.mark.parametrize("dtype", ["float64", "float32", "uint8", "int64"])
def test_02_numpy(dtype: str, backend: str) -> None:
    """Arrays of rows and of numbers: contiguous, strided, transposed, reversed, empty rows of a slice."""
    numpy = pytest.importorskip("numpy")
    base = numpy.arange(48).reshape(12, 4).astype(dtype)
    labels = numpy.arange(12).astype(dtype)
    for xs, ys in (
        (base[:6, :2].copy(), labels[:6]), (base[::2, ::2], labels[::2]), (base[:2, :].T[:, :2], labels[:4]),
        (base[::-1, :2], labels[::-1]), (numpy.asfortranarray(base[:, :2]), labels),
    ):  # fmt: skip
        calls = [(x, y, 0.001) for x, y in zip(xs, ys)]
        same_as_calls(Trainer.plain, xs, ys, 0.001, count=len(xs), calls=calls, backend=backend)
    same_as_calls(
        Trainer.plain, list(base[:3, :2]), list(labels[:3]), numpy.float64(0.001), count=3, backend=backend,
        calls=[(x, y, 0.001) for x, y in zip(base[:3, :2], labels)],
    )  # fmt: skip


@BACKENDS
def test_03_containers(backend: str) -> None:
    """Rows that are tuples, dicts, dataclasses and named tuples; one of them for all rows."""

    def plain(self: Trainer, pair: Any, sample: Any, options: Any, fixed: Any) -> Any:
        x = [sample.x[0] * options["scale"], pair.left + fixed.right]
        return self.plain(x, pair.right, options["rates"][1])

    pairs = [Pair(0.5 * k, 1.0 - k) for k in range(5)]
    samples = [Sample([1.0 * k, 2.0], 0.5) for k in range(5)]
    options = [{"scale": 0.5, "rates": (0.01, 0.02 * k)} for k in range(5)]
    fixed = Pair(1.0, b"x"[0])
    calls = [(*row, fixed) for row in zip(pairs, samples, options)]
    same_as_calls(plain, pairs, samples, options, fixed, count=5, calls=calls, backend=backend)


@BACKENDS
def test_04_results(backend: str) -> None:
    """The same tree, with a column in place of every number; None, strings and states stay as they are."""
    w, s = Value(2.0), mgjit.zeros(1)

    def plain(x: float) -> Any:
        y = w * x
        return {"y": y, "all": [x, (y.data, 3)], "pair": Pair(y, "a"), "sample": Sample([y], 1.5), "none": None, "s": s}

    got = mgjit.compile(backend=backend)(plain).loop([1.0, 2.0, 3.0])
    twice, once = array("d", [2.0, 4.0, 6.0]), array("d", [1.0, 2.0, 3.0])
    assert got == {
        "y": twice, "all": [once, (twice, array("d", [3.0] * 3))], "pair": Pair(twice, "a"),
        "sample": Sample([twice], array("d", [1.5] * 3)), "none": None, "s": s,
    }  # fmt: skip
    assert got["s"] is s
    assert mgjit.compile(backend=backend)(lambda x: None).loop([1.0]) is None
    assert mgjit.compile(backend=backend)(lambda x: x * 2.0).loop(range(3)) == array("d", [0.0, 2.0, 4.0])


@BACKENDS
def test_05_what_is_the_same_for_all_rows(backend: str) -> None:
    """Numbers, defaults, strings, static arguments and buffers inside of containers; keywords and *rest."""
    w = Value(0.5)

    def plain(x: Any, scale: Any = (2.0, 3.0), *rest: Any, mode: Any = "a", table: Any = (), **named: Any) -> Any:
        total = w * x * scale[0] + sum(rest) + (1.0 if mode == "a" else 2.0) + len(table)
        return total + sum(named.values())

    step = mgjit.compile(backend=backend, static=["table"])(plain)
    assert list(step.loop([1.0, 2.0])) == [2.0, 3.0]
    assert list(step.loop([1.0, 2.0], {0: 4.0})) == [3.0, 5.0]
    assert list(step.loop([1.0, 2.0], {0: 4.0}, [10.0, 20.0], 100.0)) == [113.0, 125.0]
    assert list(step.loop(x=[1.0, 2.0], mode="b", table=[0.0] * 7, more=[0.25, 0.5])) == [10.25, 11.5]
    buffers = mgjit.compile(backend=backend)(lambda x, options: x * options["raw"][1])
    assert list(buffers.loop([1.0, 2.0], {"raw": b"\x01\x05"})) == [5.0, 10.0]


@BACKENDS
def test_06_methods(backend: str) -> None:
    """Every instance for itself; `.stats.calls` counts steps; a loop of one row is a call."""
    ours, theirs = Trainer(), Trainer()
    for count in (1, 3, 1):
        ours.step.loop(rows(count), [1.0] * count)
        for x in rows(count):
            theirs.step(x, 1.0)
    assert ours.numbers() == theirs.numbers()
    assert (ours.step.stats.calls, ours.step.stats.traces) == (5, 1)
    assert bits(ours.step([1.0, 2.0], 1.0)) == bits(theirs.step([1.0, 2.0], 1.0))


@BACKENDS
def test_07_float32(backend: str) -> None:
    """Rows, indices and results of float32 steps."""
    w = Value(0.1)

    def plain(x: Any, i: Any, raw: Any) -> Any:
        w.data = w.data + x[0] * raw[0]
        return w * x[1], mgjit.take([1.0, 2.5], i), 0.1

    columns = [rows(4), [0, 1, 1, 0], [b"a", b"b", b"c", b"d"]]
    first = mgjit.compile(backend=backend, dtype="float32")(plain)
    expected = [first(*row) for row in zip(*columns)]
    last, w = w.data, Value(0.1)
    got = mgjit.compile(backend=backend, dtype="float32")(plain).loop(*columns)
    assert got == tuple(array("d", column) for column in zip(*expected))
    assert w.data == last


# ---- Values as arguments ------------------------------------------------------------


def train(p: Any, x: Any) -> Any:
    """A step whose parameter is an argument."""
    loss = (p * x - 1.0) ** 2
    p.grad = 0.0
    loss.backward()
    p.data -= 0.1 * p.grad
    return loss


@BACKENDS
def test_10_one_value_for_all_rows(backend: str) -> None:
    """Known by identity, and copied in and out."""
    step = mgjit.compile(backend=backend)(train)
    for k in range(3):
        p, q = Value(0.5 + k), Value(0.5 + k)
        expected = [train(q, x) for x in (1.0, 2.0, 3.0)]
        assert list(map(bits, step.loop(p, [1.0, 2.0, 3.0]))) == list(map(bits, expected))
        assert (p.data, p.grad) == (q.data, q.grad)


@BACKENDS
def test_11_a_column_of_values(backend: str) -> None:
    """Also with one of them in several rows, and with one that the step captures."""
    for order in ([0, 1, 2], [0, 0, 1], [1, 0, 1], [2, 2, 2]):
        ours, theirs = [Value(0.5 + k) for k in range(3)], [Value(0.5 + k) for k in range(3)]
        xs = [1.0, -2.0, 0.25]
        expected = [theirs[0] * train(theirs[k], x) for k, x in zip(order, xs)]
        step = mgjit.compile(backend=backend)(lambda p, x, w=ours[0]: w * train(p, x))
        got = step.loop([ours[k] for k in order], xs)
        assert list(map(bits, got)) == list(map(bits, expected))
        assert [(p.data, p.grad) for p in ours] == [(p.data, p.grad) for p in theirs]
        assert step.stats.calls == 3


# ---- refusals ------------------------------------------------------------


@BACKENDS
def test_20_bad_rows_change_nothing(backend: str) -> None:
    """The row is named; the steps before it have not run."""
    trainer = Trainer()
    step = mgjit.compile(backend=backend)(trainer.plain)
    before = trainer.numbers()
    good = rows(4)
    for column, why in (
        ([*good, 5.0], r"x was 2 numbers, is number.*Row 4"),
        ([good[0], good[1], (1.0, 2.0), good[2]], "Row 2"),
        ([good[0], [1.0, "2"]], "Row 1"),
        ([good[0], [1, 2], good[1], None], "x was 2 numbers, is None.*Row 3"),
        ([{"a": 1.0}, {"b": 1.0}], "Row 1"),
    ):
        with pytest.raises(ColumnError, match=rf"test_loop\.py:\d+: (?s:.*){why}"):
            mgjit.compile(backend=backend)(lambda x, y: 1.0 * y).loop(column, 1.0)
        if isinstance(column[0], list) and isinstance(column[0][0], float):
            with pytest.raises(ColumnError, match=why):
                step.loop(column, [1.0] * len(column), 0.1)
    with pytest.raises(ArgumentValueError, match=r"2\*\*53.*Row 1"):
        step.loop(good, [1, 2**60, 3, 4], 0.1)
    assert trainer.numbers() == before
    assert step.stats.calls == 0


@BACKENDS
def test_20_rows_of_different_lengths(backend: str) -> None:
    """Are separate calls, in their order; results of different lengths are a list."""
    sequences = [[0.5, -0.25], [1.5], [0.125, 2.0], [], [0.75, 0.5, -1.0], [0.25]]
    weights = [[Value(0.5), Value(-0.75), Value(1.25)] for _ in range(2)]

    def training(w: list[Value]) -> Any:
        def step(xs: list[float], rate: float) -> Any:
            sums = [sum((w[j] * xs[j] for j in range(k + 1)), w[0]).tanh() for k in range(len(xs))]
            loss = sum(sums, w[0] * w[1])
            loss.backward()
            for p in w:
                p.data -= rate * p.grad
                p.grad = 0.0
            return loss.data, [each.data for each in sums]

        return step

    undecorated = training(weights[0])
    expected = [undecorated(xs, 0.1) for xs in sequences]
    losses, sums = mgjit.compile(backend=backend)(training(weights[1])).loop(sequences, 0.1)
    assert list(losses) == [loss for loss, _ in expected]
    assert sums == [each for _, each in expected]
    assert [p.data for p in weights[1]] == [p.data for p in weights[0]]


def test_21_bad_columns() -> None:
    """Lengths that differ, iterators, sets, no column at all, arguments that do not fit."""
    trainer = Trainer()
    before = trainer.numbers()
    for columns, why in (
        ((rows(3), [1.0] * 4), "x has 3 rows, y has 4"),
        ((rows(3), (1.0 for _ in range(3))), r"column y is a generator.*list\(y\)"),
        ((zip([1.0], [2.0]), 1.0), r"column x is a zip"),
        (({1.0}, 1.0), r"column x is a set"),
        ((Pair(1.0, 2.0), 1.0), "needs a column"),
    ):
        with pytest.raises(ColumnError, match=rf"test_loop\.py:\d+: .*{why}"):
            trainer.step.loop(*columns)
    for columns in ((), (rows(2),), (rows(2), 1.0, 0.1, 7.0)):
        with pytest.raises(TypeError, match="argument"):
            trainer.step.loop(*columns)
    with pytest.raises(TypeError, match="unexpected"):
        trainer.step.loop(rows(2), 1.0, other=3)
    assert trainer.numbers() == before


@BACKENDS
def test_22_indices_of_all_rows(backend: str) -> None:
    """In a column of numbers, in a buffer, in what is the same for all rows."""
    w = Value(1.0)

    def plain(i: Any, raw: Any, j: Any) -> Any:
        w.data = w.data * 2.0
        return mgjit.take([1.0, 2.0, 3.0], i) + mgjit.take([5.0, 6.0], raw[1]) + mgjit.take([0.0, 1.0], j)

    step = mgjit.compile(backend=backend)(plain)
    assert list(step.loop([0, 1, 2], [b"\x09\x00", b"\x09\x01", b"\x09\x00"], 1)) == [7.0, 9.0, 9.0]
    raws = [b"\x00\x00"] * 3
    for columns, row in (
        (([0, 1, 3], raws, 0), 2), (([0, -1, 0], raws, 0), 1), (([0.0, 0.5, 0.0], raws, 0), 1),
        (([0.0, float("nan"), 0.0], raws, 0), 1), (([0.0, 0.0, float("inf")], raws, 0), 2),
        (([0, 1, 2], [*raws[:2], b"\x00\x02"], 0), 2), (([0, 1, 2], raws, 2), 0),
    ):  # fmt: skip
        with pytest.raises(IndexRangeError, match=rf"test_loop\.py:\d+: the index .* in row {row} is not"):
            step.loop(*columns)
    assert w.data == 8.0


def test_23_inside_a_trace() -> None:
    """A loop cannot be recorded."""
    trainer = Trainer()
    outer = mgjit.compile(lambda x: trainer.step.loop([x, x], 1.0))
    with pytest.raises(PhaseError, match=r"\.loop\(\)"):
        outer([1.0, 2.0])


# ---- everything around ------------------------------------------------------------


@BACKENDS
def test_30_no_rows(backend: str) -> None:
    """Nothing runs; the result has the structure of the last call, where there is one."""
    w = Value(1.0)
    step = mgjit.compile(backend=backend)(lambda x: (w * x, {"x": x, "name": "a"}))
    assert step.loop([]) == array("d")
    step(1.0)
    assert step.loop([]) == (array("d"), {"x": array("d"), "name": "a"})
    assert step.stats.calls == 1
    single = mgjit.compile(backend=backend)(lambda x: w * x)
    single(1.0)
    assert single.loop(array("d")) == array("d")


def test_31_guards_are_checked_first() -> None:
    """A captured number that has changed traces anew."""
    scale = 2.0
    step = mgjit.compile(lambda x: x * scale)
    assert list(step.loop([1.0, 2.0])) == [2.0, 4.0]
    scale = 3.0
    assert list(step.loop([1.0, 2.0])) == [3.0, 6.0]
    assert step.stats.traces == 2


def test_32_without_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """MGJIT_DISABLE=1: the same columns from the plain function."""
    w = Value(2.0)

    def plain(x: Any, *rest: Any) -> Any:
        return {"y": w * x, "list": [x, 3, None, (x * 1.0,)], "pair": Pair(x, "a"), "sample": Sample([x], x)}

    expected = mgjit.compile(plain).loop([1.0, 2.0], 5.0)
    monkeypatch.setenv("MGJIT_DISABLE", "1")
    step = mgjit.compile(plain)
    assert step.loop([1.0, 2.0], 5.0) == expected
    assert step.loop([], 5.0) == array("d")
    assert step.stats.calls == 0


@BACKENDS
def test_33_chunks(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the rows are cut, the numbers are the same, and progress adds up."""
    expected = None
    for seconds in (0.0, 1e-7, 1e-5, 10.0):
        monkeypatch.setattr(loop, "_SECONDS_A_CHUNK", seconds)
        trainer = Trainer()
        step = mgjit.compile(backend=backend)(lambda x, y, t=trainer: t.plain(x, y))
        losses = step.loop(rows(200), 1.0)
        again = step.loop(memoryview(array("d", [0.5] * 400)).cast("B").cast("d", (200, 2)), 1.0)
        found = losses, again, trainer.numbers()
        expected = expected or found
        assert found == expected


def test_34_progress(capfd: pytest.CaptureFixture[str]) -> None:
    """A bar on stderr, only when asked for; also for rows that are calls of their own."""
    trainer = Trainer()
    trainer.step.loop(rows(5), 1.0)
    assert capfd.readouterr().err == ""
    trainer.step.loop(rows(5), 1.0, progress=True)
    assert "5/5" in capfd.readouterr().err
    mgjit.compile(train).loop([Value(1.0), Value(2.0)], 1.0, progress=True)
    assert "2/2" in capfd.readouterr().err


@BACKENDS
def test_35_phases_after_a_loop(backend: str) -> None:
    """A loop ends a forward pass that was begun; calls and phases afterwards work on the same memory."""
    ours, theirs = Trainer(), Trainer()
    step = mgjit.compile(backend=backend)(ours.plain)
    step.forward([1.0, 2.0], 1.0)
    step.loop(rows(3), 1.0)
    with pytest.raises(PhaseError):
        step.backward()
    step.forward([1.0, 2.0], 0.5)
    step.backward()
    step.update()
    step([0.5, 0.5], 1.0)
    for x, y in [*((x, 1.0) for x in rows(3)), ([1.0, 2.0], 0.5), ([0.5, 0.5], 1.0)]:
        theirs.plain(x, y)
    assert ours.numbers()[:-1] == theirs.numbers()[:-1]


def test_36_threads() -> None:
    """Loops and calls of one step in many threads: none is lost, none runs inside of another."""
    w = Value(0.0)

    def plain(x: float) -> Any:
        w.data = w.data + x
        return w.data * 1.0

    step = mgjit.compile(plain)
    start = threading.Barrier(6)

    def work(number: int) -> None:
        start.wait()
        for _ in range(20):
            if number % 2:
                step(1.0)
            else:
                found = step.loop([1.0] * 500)
                assert list(found) == [found[0] + k for k in range(500)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert w.data == step.stats.calls == 3 * 20 * 501


@BACKENDS
def test_40_interruption(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ends a loop ends it between two steps: parameters, state, argument Values and `.stats.calls` agree."""

    @contextlib.contextmanager
    def interrupting(total: int, name: str, progress: bool) -> Iterator[Callable[[int], None]]:
        done = 0

        def report(count: int) -> None:
            nonlocal done
            done += count
            if done >= 5:
                raise KeyboardInterrupt

        yield report

    monkeypatch.setattr(loop, "_SECONDS_A_CHUNK", 0.0)
    monkeypatch.setattr("mgjit.step.looping.reporting", interrupting)
    for columns in (lambda p: (p, [0.5] * 9), lambda p: ([p] * 9, [0.5] * 9), lambda p: ([p] * 8 + [Value(1.0)], 0.5)):
        step = mgjit.compile(backend=backend)(train)
        for _ in range(3):  # a Value that is known, then others
            p, q = Value(0.5), Value(0.5)
            before = step.stats.calls
            with pytest.raises(KeyboardInterrupt):
                step.loop(*columns(p))
            assert step.stats.calls - before == 5
            for _ in range(5):
                train(q, 0.5)
            assert (p.data, p.grad) == (q.data, q.grad)


@pytest.mark.skipif(os.name == "nt", reason="SIGINT cannot be sent to a process there")
def test_41_ctrl_c(request: pytest.FixtureRequest) -> None:
    """A signal that arrives while C runs."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started this to ignore it
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    trainer = Trainer()
    step = mgjit.compile(trainer.plain)
    table = memoryview(bytes(2_000_000)).cast("B", (1_000_000, 2))
    step.loop(table, 1.0, 0.01)
    timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()

    def train_forever() -> None:
        while True:
            step.loop(table, 1.0, 0.01)

    with pytest.raises(KeyboardInterrupt):
        train_forever()
    timer.join()
    assert step.stats.calls == trainer.calls[0]
    step.loop(table, 1.0, 0.01)
    assert step.stats.calls == trainer.calls[0]


def test_37_a_row_ahead_that_runs_as_plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its result is Python's, whatever the kernel computed last."""
    mine, theirs = Trainer(), Trainer()
    monkeypatch.setenv("MGJIT_VERIFY", "always")
    step = mgjit.compile(theirs.plain)
    assert bits(step([0.5, 0.25], 1.0)) == bits(mine.plain([0.5, 0.25], 1.0))
    perform, refused = step._perform, iter([True])

    def performed(*arguments: Any) -> Any:
        if next(refused, False):
            raise PlainCall("this row is another one")
        return perform(*arguments)

    monkeypatch.setattr(step, "_perform", performed)
    rows = [[0.1 * k, 0.3] for k in range(4)]
    with pytest.warns(BackendWarning, match="this row is another one"):
        losses = step.loop(rows, 0.5)
    assert list(map(bits, losses)) == [bits(mine.plain(row, 0.5)) for row in rows]
