"""Ensembles: every member has, bit for bit, the numbers of the step run alone."""

from __future__ import annotations

import random
import signal
import threading
import time
import warnings
from array import array
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import mgjit
from mgjit import Value, nn
from mgjit.errors import ArgumentError, ArgumentValueError, ColumnError, IndexRangeError, PhaseError, SideEffectWarning
from mgjit.kernels.side_by_side import pool
from mgjit.parallel import calls
from tests.base.test_interruption import FORKS, in_child

RATES = [0.1, 0.05, 0.01]
ROWS = [([0.1 * k, 0.3, -0.2], k % 2) for k in range(30)]
XS, YS = [x for x, _ in ROWS], [y for _, y in ROWS]


class Trainer:
    """A step with parameters, a State, a number, a list, and draws from a generator of its own and the module's."""

    def __init__(self, seed: int) -> None:
        self.model = nn.MLP(3, [4, 2], seed=seed)
        self.moments = mgjit.zeros(len(self.model.parameters()))
        self.steps, self.last = 0, [0.0, 0.0]
        self.rng = random.Random(seed)

    def step(self, x: Sequence[float], y: int, rate: float) -> tuple[Value, float]:
        self.steps += 1
        noise = self.rng.gauss(0.0, 0.1) + random.random()
        scores = self.model([a + 0.1 * noise for a in x])
        loss = sum(((s - t) ** 2 for s, t in zip(scores, mgjit.one_hot(y, 2))), Value(0.0))
        self.model.zero_grad()
        loss.backward()
        for k, p in enumerate(self.model.parameters()):
            self.moments[k] = 0.9 * self.moments[k] + p.grad
            p.data -= rate * self.moments[k] / self.steps
        self.last[y] = loss.data
        return loss, noise

    def numbers(self) -> list[Any]:
        """Everything that the step changes."""
        return [
            [p.data for p in self.model.parameters()],
            [p.grad for p in self.model.parameters()],
            list(self.moments),
            (self.steps, type(self.steps), self.last, self.rng.getstate(), random.getstate()),
        ]


class Compiled(Trainer):
    """The same, compiled."""

    step = mgjit.compile(Trainer.step)


def alone(k: int, rows: Sequence[Any] = ROWS) -> tuple[list[Any], list[Any]]:
    """Results and numbers of member k, as plain Python has them."""
    random.seed(k)
    trainer = Trainer(k)
    results = [trainer.step(x, y, RATES[k]) for x, y in rows]
    return [(loss.data, noise) for loss, noise in results], trainer.numbers()


def prepared(trainer: Trainer) -> Callable[[int], None]:
    """An `init` that makes the trainer what it is in member k."""

    def init(k: int) -> None:
        random.seed(k)
        fresh = Trainer(k)
        for p, q in zip(trainer.model.parameters(), fresh.model.parameters()):
            p.data = q.data
        trainer.rng.seed(k)

    return init


def after_processor_seconds(seconds: float, work: Callable[[], Any]) -> None:
    """Interrupt work, which takes longer, as Ctrl-C does."""
    before = signal.signal(signal.SIGPROF, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        with pytest.raises(KeyboardInterrupt):
            work()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def check(ensemble: mgjit.Ensemble, trainer: Trainer, results: Sequence[Any], rows: Sequence[Any] = ROWS) -> None:
    for k in range(3):
        expected, numbers = alone(k, rows)
        assert [tuple(result) for result in results[k]] == expected
        with ensemble[k]:
            assert trainer.numbers() == numbers


def made(**options: Any) -> tuple[Trainer, mgjit.Ensemble]:
    trainer = Compiled(7)
    return trainer, mgjit.ensemble(trainer.step, 3, init=prepared(trainer), **options)


@pytest.mark.parametrize("verify", ["never", "always"])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_01_as_alone(monkeypatch: pytest.MonkeyPatch, threads: int, verify: str) -> None:
    """Calls and loops in turn; what the step knows itself is not touched, and all members use one kernel."""
    monkeypatch.setenv("MGJIT_VERIFY", verify)
    monkeypatch.setattr(calls, "SECONDS_FOR_THREADS", 0.0)
    trainer, ensemble = made(threads=threads)
    random.seed(1)
    before = trainer.numbers()
    results: list[list[Any]] = [[], [], []]
    for start, end in ((0, 10), (11, 25), (26, 30)):
        for x, y in ROWS[max(0, start - 1) : start]:
            losses, noises = ensemble(x, y, mgjit.each(RATES))
            assert type(losses) is array
            for k in range(3):
                results[k].append((losses[k], noises[k]))
        columns = ensemble.loop(XS[start:end], YS[start:end], mgjit.each(RATES))
        for k in range(3):
            results[k] += zip(*columns[k])
    assert trainer.numbers() == before
    assert (ensemble.calls, ensemble.stats.calls, ensemble.stats.traces) == (30, 90, 1)
    check(ensemble, trainer, results)


@pytest.mark.parametrize("options", [{"backend": "python"}, {"lock": False}, {"background": True}])
def test_02_however_it_is_compiled(options: dict[str, Any]) -> None:
    """Generated Python runs one member after the other; an unlocked step is the one of this thread."""
    trainer = Trainer(7)
    step = mgjit.compile(**options)(trainer.step)
    ensemble = mgjit.ensemble(step, 3, init=prepared(trainer))
    columns = ensemble.loop(XS, YS, mgjit.each(RATES))
    check(ensemble, trainer, [list(zip(*column)) for column in columns])


@pytest.mark.parametrize("is_disabled", [False, True])
def test_03_plain_python(monkeypatch: pytest.MonkeyPatch, is_disabled: bool) -> None:
    """A step that runs as plain Python is right in every member, also what it changes that is no number."""
    if is_disabled:
        monkeypatch.setenv("MGJIT_DISABLE", "1")
    w = Value(1.0)
    log: list[Any] = []

    @mgjit.compile
    def step(x: float, model: Value) -> float:
        w.data += x * model.data
        model.data *= 0.5
        log.append({"step": len(log)})
        return w.data * 1.0

    def init(k: int) -> None:
        w.data = float(k)

    other = Value(3.0)
    ensemble = mgjit.ensemble(step, 4, init=init)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SideEffectWarning)
        columns = ensemble.loop([1.0, 2.0, 3.0, 4.0], other)
        result = ensemble(mgjit.each([5.0, 6.0, 7.0, 8.0]), other)
    assert (w.data, log, other.data) == (1.0, [], 3.0)
    for k in range(4):
        v, m, expected = float(k), 3.0, []
        for x in (1.0, 2.0, 3.0, 4.0, 5.0 + k):
            v, m = v + x * m, m * 0.5
            expected.append(v)
        assert [*columns[k], result[k]] == expected
        assert ensemble[k].copy(log) == [{"step": number} for number in range(5)]
        assert ensemble[k].copy(other).data == m


def test_04_different_numbers_of_rows_and_orders() -> None:
    """Each member its own order of the data."""
    orders = [random.Random(k).sample(range(30), 30) for k in range(3)]
    _, ensemble = made()
    xs = mgjit.each([[XS[i] for i in order] for order in orders])
    ys = mgjit.each([[YS[i] for i in order] for order in orders])
    columns = ensemble.loop(xs, ys, rate=mgjit.each(RATES))
    for k, order in enumerate(orders):
        assert list(zip(*columns[k])) == alone(k, [ROWS[i] for i in order])[0]


def test_05_sequences_of_different_lengths() -> None:
    """Every length has a kernel; members keep their numbers in memory from one to the next."""

    class Model:
        def __init__(self) -> None:
            self.w, self.t, self.seen = [Value(0.1 * k) for k in range(4)], 0, [0.0, 0.0]

        def step(self, xs: list[float]) -> Value:
            self.t += 1
            loss = sum((self.w[k % 4] * x for k, x in enumerate(xs)), Value(0.0)) ** 2
            loss.backward()
            for p in self.w:
                p.data -= 0.01 * p.grad / self.t
                p.grad = 0.0
            self.seen[0] += xs[0]
            return loss

    lists = [[0.1 * k + j for j in range(1 + k % 3)] for k in range(30)]
    plain = Model()
    expected = [plain.step(xs).data for xs in lists]
    model = Model()
    step = mgjit.compile(model.step)
    ensemble = mgjit.ensemble(step, 3)
    results = [ensemble(xs)[2] for xs in lists[:15]]
    results += ensemble.loop(lists[15:])[2]
    assert results == expected
    with ensemble[1]:
        assert [p.data for p in model.w] == [p.data for p in plain.w]
        assert (model.t, type(model.t), model.seen) == (plain.t, int, plain.seen)
    assert (model.t, ensemble.stats.traces) == (0, 3)


def test_06_objects_that_are_made_anew() -> None:
    """`init` may put another model there, and steps may make their moments at the first call: one kernel fits all."""
    model = nn.MLP(2, [3, 1], seed=0)
    moments: dict[str, Any] = {}

    def step(x: float) -> Value:
        if "m" not in moments:
            moments["m"] = [0.0 for _ in model.parameters()]
        loss = model([x, 1.0]) ** 2
        model.zero_grad()
        loss.backward()
        for k, p in enumerate(model.parameters()):
            moments["m"][k] = 0.5 * moments["m"][k] + p.grad
            p.data -= 0.1 * moments["m"][k]
        return loss

    def init(k: int) -> None:
        nonlocal model
        model = nn.MLP(2, [3, 1], seed=k)

    expected = []
    for k in range(3):
        init(k)
        moments.clear()
        expected.append([step(0.1 * x).data for x in range(9)])
    init(0)
    moments.clear()
    first = model
    ensemble = mgjit.ensemble(mgjit.compile(step), 3, init=init)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SideEffectWarning)
        columns = [ensemble(0.1 * x) for x in range(9)]
    assert [[column[k] for column in columns] for k in range(3)] == expected
    assert ensemble.stats.traces <= 3
    assert model is first
    assert moments == {}
    traces = ensemble.stats.traces
    ensemble(0.0)
    assert ensemble.stats.traces == traces


def test_07_members() -> None:
    """`with` changes a member, `copy` gives what it has, `load` lets the step's objects be those of the member."""
    w = Value(1.0)

    @mgjit.compile
    def step(x: float) -> float:
        w.data += x
        return w.data * 1.0

    @mgjit.compile
    def read() -> float:
        return w.data * 2.0

    ensemble = mgjit.ensemble(step, 3)
    assert list(ensemble(mgjit.each([1, 2, 3]))) == [2.0, 3.0, 4.0]
    assert [member.number for member in ensemble] == [0, 1, 2]
    assert (len(ensemble), ensemble[-1].number, read()) == (3, 2, 2.0)
    with ensemble[1]:
        assert read() == 6.0
        assert step(10.0) == 13.0
        with pytest.raises(PhaseError, match=r"Leave that block"):
            ensemble(1.0)
        with pytest.raises(PhaseError), ensemble[2]:
            pass
        assert ensemble[1].copy(w).data == 13.0
        w.data += 0.5
    assert read() == 2.0
    assert list(ensemble(0.0)) == [2.0, 13.5, 4.0]
    ensemble[2].load()
    assert (w.data, read()) == (4.0, 8.0)
    step(1.0)
    assert list(ensemble(0.0)) == [2.0, 13.5, 4.0]

    def change() -> None:
        with ensemble[0]:
            w.data = -1.0
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        change()
    assert list(ensemble(0.0)) == [-1.0, 13.5, 4.0]


def test_08_an_exception_in_one_member() -> None:
    """No member is changed by that step, and the next one works."""
    w = Value(1.0)
    names: dict[str, Any] = {"k": 0}

    @mgjit.compile
    def step(x: float) -> float:
        w.data += x
        if names["k"] == 2:
            raise ZeroDivisionError("mine")
        return w.data * 1.0

    def init(k: int) -> None:
        names["k"] = k
        w.data = float(k)

    ensemble = mgjit.ensemble(step, 4, init=init)
    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        ensemble(1.0)
    assert all("member 2" in note for note in getattr(caught.value, "__notes__", ["member 2"]))
    assert [member.copy(w).data for member in ensemble] == [0.0, 1.0, 2.0, 3.0]
    assert (w.data, names, ensemble.calls) == (1.0, {"k": 0}, 0)
    with ensemble[2]:
        names["k"] = 5
    assert list(ensemble(1.0)) == [1.0, 2.0, 3.0, 4.0]


def test_09_an_exception_in_init() -> None:
    """It passes through, and the step's objects are what they were."""
    w = Value(1.0)

    def init(k: int) -> None:
        w.data = 5.0
        raise KeyError(k)

    with pytest.raises(KeyError):
        mgjit.ensemble(mgjit.compile(lambda x: w * x), 2, init=init)
    assert w.data == 1.0


def test_10_wrong_arguments() -> None:
    """Each is refused with words that help, before anything has changed."""
    w, table = Value(1.0), [1.0, 2.0]

    @mgjit.compile
    def step(x: float, i: int = 0) -> float:
        w.data += x * table[i]
        return w.data * 1.0

    ensemble = mgjit.ensemble(step, 2)
    for wrong, kind, words in (
        (lambda: mgjit.ensemble(lambda x: x, 2), ArgumentError, "Decorate it"),
        (lambda: mgjit.ensemble(step, 2.0), ArgumentError, "must be an int"),
        (lambda: mgjit.ensemble(step, 0), ArgumentValueError, "at least one member"),
        (lambda: mgjit.ensemble(step, 2, threads=0), ArgumentValueError, "at least 1"),
        (lambda: mgjit.ensemble(step, 2, threads="all"), ArgumentError, "an int or None"),
        (lambda: mgjit.ensemble(step, 2, init=3), ArgumentError, "a function"),
        (lambda: mgjit.each(3), ArgumentError, "an item for each member"),
        (lambda: ensemble(mgjit.each([1.0, 2.0, 3.0])), ArgumentValueError, "3 items for 2 members"),
        (lambda: ensemble(mgjit.each([Value(1.0), Value(2.0)])), ArgumentError, "numbers and data"),
        (lambda: ensemble.loop([1.0, 2.0], mgjit.each([[0, 1], [0]])), ColumnError, "differ in length"),
        (lambda: ensemble.loop(mgjit.each([[1.0], [1.0, 2.0]])), ColumnError, "same number of steps"),
        (lambda: ensemble.loop([1.0, 1.0], [0, 2]), IndexRangeError, "row 1"),
        (lambda: ensemble(1.0, mgjit.each([1, 2])), IndexRangeError, "the index 2"),
        (lambda: ensemble(1.0, 2.0, 3.0), ArgumentError, "too many"),
        (lambda: ensemble["0"], ArgumentError, "an int"),
        (lambda: ensemble[2], IndexError, "member 2"),
    ):
        with pytest.raises(kind, match=words):
            wrong()  # type: ignore[no-untyped-call]
        assert list(ensemble(0.0)) == [1.0, 1.0]


def test_11_arguments_that_the_step_changes() -> None:
    """They cannot be the same for all members; the advice works."""
    w = Value(1.0)

    @mgjit.compile
    def step(out: list[float], x: float) -> None:
        w.data += x
        out[0] = w.data

    ensemble = mgjit.ensemble(step, 2)
    out = [0.0]
    with pytest.raises(ArgumentError, match=r"mgjit.each\(\[copy.deepcopy\(out\)"):
        ensemble(out, 1.0)
    assert (out, ensemble[0].copy(w).data) == ([0.0], 1.0)
    own = [[0.0], [0.0]]
    ensemble(mgjit.each(own), mgjit.each([1.0, 2.0]))
    ensemble(mgjit.each(own), mgjit.each([1.0, 2.0]))
    assert own == [[3.0], [5.0]]


def test_12_a_model_among_the_arguments() -> None:
    """It belongs to what each member has of its own, whenever it is met."""

    @mgjit.compile
    def step(model: nn.MLP, x: float) -> Value:
        loss = model([x]) ** 2
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= 0.1 * p.grad
        return loss

    model, plain = nn.MLP(1, [2, 1], seed=3), nn.MLP(1, [2, 1], seed=3)
    before = [p.data for p in model.parameters()]
    ensemble = mgjit.ensemble(step, 2)
    results = [ensemble(model, x)[1] for x in (0.5, 1.0, 1.5, 2.0)]
    assert [p.data for p in model.parameters()] == before
    expected = [step._function(plain, x).data for x in (0.5, 1.0, 1.5, 2.0)]
    assert results == expected
    assert [p.data for p in ensemble[0].copy(model).parameters()] == [p.data for p in plain.parameters()]
    known = mgjit.ensemble(step, 2)  # whose kernel is there already
    known(model, 0.5)
    assert [p.data for p in model.parameters()] == before


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no such timer")
def test_13_interrupted() -> None:
    """After Ctrl-C, all members have made the same whole number of steps, which `calls` counts."""
    model = nn.MLP(20, [30, 1], seed=1)

    @mgjit.compile
    def step(x: float) -> Value:
        loss = model([x] * 20) ** 2
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= 0.001 * p.grad
        return loss

    def init(k: int) -> None:
        model.parameters()[0].data = float(k)

    ensemble = mgjit.ensemble(step, 3, init=init, threads=2)
    ensemble.loop([0.1] * 3)
    for seconds in (0.2, 0.3, 0.4):
        after_processor_seconds(seconds, lambda: ensemble.loop([0.1] * 3_000_000))
    calls, single = ensemble.calls, mgjit.compile(step._function)
    assert 3 <= calls < 9_000_000
    for k in range(3):
        init(k)
        with ensemble[k]:
            found = [p.data for p in model.parameters()]
        model_before = [p.data for p in model.parameters()]
        single.loop([0.1] * calls)
        assert [p.data for p in model.parameters()] == found
        for p, number in zip(model.parameters(), model_before):
            p.data = number
        for p, q in zip(model.parameters(), nn.MLP(20, [30, 1], seed=1).parameters()):
            p.data = q.data


@FORKS
def test_14_forks() -> None:
    """The child goes on with its own threads, also when another thread was in a loop."""
    _, ensemble = made(threads=2)
    ensemble.loop(XS[:20], YS[:20], mgjit.each(RATES))

    def goes_on() -> bool:
        columns = ensemble.loop(XS[20:], YS[20:], mgjit.each(RATES))
        return all(list(zip(*columns[k])) == alone(k)[0][20:] for k in range(3))

    assert in_child(goes_on) == 0
    assert goes_on()
    thread = threading.Thread(target=lambda: ensemble.loop(XS * 1000, YS * 1000, 0.0))
    thread.start()
    time.sleep(0.05)
    w = Value(1.0)
    other = mgjit.ensemble(mgjit.compile(lambda x: w * x), 3, threads=2)
    assert in_child(lambda: list(other.loop([1.0, 2.0])[1]) == [1.0, 2.0]) == 0
    thread.join()


def test_15_in_threads() -> None:
    """Two threads that use one ensemble take turns."""
    w = Value(0.0)

    @mgjit.compile
    def step(x: float) -> float:
        w.data += x
        return w.data * 1.0

    ensemble = mgjit.ensemble(step, 3, threads=2)
    ensemble(0.0)
    threads = [threading.Thread(target=lambda: ensemble.loop([1.0] * 5000)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(ensemble(0.0)) == [15000.0] * 3


def test_16_inside_a_trace() -> None:
    """An ensemble is no part of a step."""
    w = Value(0.0)
    step = mgjit.compile(lambda x: w * x)
    ensemble = mgjit.ensemble(step, 2)
    with pytest.raises(PhaseError, match="ensemble"):
        mgjit.compile(lambda x: ensemble(x) + w)(1.0)


def test_17_results_of_all_forms() -> None:
    """Numbers become columns; no rows are empty columns."""
    w = Value(2.0)

    @mgjit.compile
    def step(x: float, n: int) -> dict[str, Any]:
        return {"value": w * x, "pair": (n + 1, [x, x > 1.0]), "name": "s"}

    ensemble = mgjit.ensemble(step, 2)
    found = ensemble(mgjit.each([1.0, 3.0]), 4)
    assert found == {
        "value": array("d", [2.0, 6.0]),
        "pair": (array("d", [5, 5]), [array("d", [1.0, 3.0]), found["pair"][1][1]]),
        "name": "s",
    }
    assert [column["value"] for column in ensemble.loop([1.0, 2.0], mgjit.each([1, 2]))] == [array("d", [2.0, 4.0])] * 2
    assert [column["value"] for column in ensemble.loop([], 1)] == [array("d")] * 2


@pytest.mark.parametrize("options", [{"dtype": "float32"}, {"mode": "fast"}, {"grads": False}])
def test_18_other_numbers_by_request(options: dict[str, Any]) -> None:
    """Those of the step compiled with the same options."""
    found = []
    for n in (None, 3):
        model = nn.MLP(3, [4, 1], seed=5)
        moments = mgjit.zeros(3)

        def step(x: float, model: nn.MLP = model, moments: mgjit.State = moments) -> Value:
            loss = model([x, 0.2, 0.3]) ** 2
            model.zero_grad()
            loss.backward()
            for p in model.parameters():
                p.data -= 0.1 * p.grad
            moments[0] += loss.data / 3
            return loss

        compiled = mgjit.compile(**options)(step)
        xs = [0.1 * k for k in range(10)]
        if n is None:
            found.append((list(compiled.loop(xs)), [p.data for p in model.parameters()], list(moments)))
        else:
            ensemble = mgjit.ensemble(compiled, n)
            columns = ensemble.loop(xs[:5]), [ensemble(x)[1] for x in xs[5:]]
            ensemble[1].load()
            found.append(([*columns[0][1], *columns[1]], [p.data for p in model.parameters()], list(moments)))
    assert found[0] == found[1]


def test_19_few_general_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once a kernel is settled, no member is loaded into the step's objects any more."""
    _, ensemble = made()
    ensemble.loop(XS[:5], YS[:5], mgjit.each(RATES))

    def load(*_: Any) -> None:
        raise AssertionError("a member was loaded")

    monkeypatch.setattr("mgjit.kernels.side_by_side.worlds.Contents.load", load)
    ensemble.loop(XS[5:], YS[5:], mgjit.each(RATES))
    ensemble(XS[0], YS[0], 0.1)


def test_20_other_threads() -> None:
    """How many there are may change between calls."""
    w = Value(1.0)

    @mgjit.compile
    def step(x: float) -> float:
        w.data += x
        return w.data * 1.0

    ensemble = mgjit.ensemble(step, 4, threads=1)
    for number, threads in enumerate((1, 3, 3, 2, None)):
        ensemble.threads = threads  # type: ignore[assignment]
        assert list(ensemble(1.0)) == [2.0 + number] * 4
    assert ensemble.threads == pool.processors()
    with pytest.raises(ArgumentValueError, match="at least 1"):
        ensemble.threads = 0


def test_21_many_members(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than threads; those without init are loaded once."""
    monkeypatch.setattr(pool, "processors", lambda: 2)
    w = Value(1.0)

    @mgjit.compile
    def step(x: float) -> float:
        w.data *= x
        return w.data * 1.0

    ensemble = mgjit.ensemble(step, 50)
    rates = [1.0 + 0.01 * k for k in range(50)]
    columns = ensemble.loop(mgjit.each([[rate] * 10 for rate in rates]))
    for rate, column in zip(rates, columns):
        number = 1.0
        for found in column:
            number *= rate
            assert found == number
