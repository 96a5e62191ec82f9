"""pending.py: calls are plain Python until a kernel is there, and nobody can tell by the numbers."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit import Value
from mgjit import tensor as T
from mgjit.compiler.build import build, options
from mgjit.compiler.build.options import Options
from mgjit.compiler.toolchain import compilers
from mgjit.errors import BackendWarning, DefectWarning, MismatchWarning
from mgjit.kernels.awaited import Awaited
from mgjit.kernels.building import background
from mgjit.kernels.building.background import Answer
from mgjit.kernels.first_calls import earnings
from mgjit.kernels.first_calls.earnings import Earnings
from mgjit.kernels.kernels import Kernels
from mgjit.runtime.kernel import Kernel
from mgjit.tensor import eager
from mgjit.tensor.memory import Memory

pytestmark = pytest.mark.skipif(os.name != "posix", reason="code is built in the background on POSIX only")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Steps do not wait, each call looks for a kernel, and nothing is in the cache."""
    monkeypatch.setenv("MGJIT_BACKGROUND", "1")
    monkeypatch.setattr(earnings, "_MOST_UNLOOKED", 0)
    monkeypatch.setenv("MGJIT_CACHE_DIR", str(tmp_path))


class Trainer:
    """A model and its step."""

    def __init__(self, **options: Any) -> None:
        self.w = [Value(0.1 * k - 0.3) for k in range(6)]
        self.rate = 0.05
        self.step = mgjit.compile(**options)(self.plain)

    def plain(self, xs: list[float], target: float) -> Any:
        out = sum((w * x for w, x in zip(self.w, xs)), Value(0.0)).tanh()
        loss = (out - target) ** 2
        for w in self.w:
            w.grad = 0.0
        loss.backward()
        for w in self.w:
            w.data -= self.rate * w.grad
        return loss.data

    def numbers(self) -> list[float]:
        return [number for w in self.w for number in (w.data, w.grad)]


def rows(seed: int, count: int, length: int = 6) -> list[tuple[list[float], float]]:
    draw = random.Random(seed)
    return [([draw.uniform(-1.0, 1.0) for _ in range(length)], draw.uniform(-1.0, 1.0)) for _ in range(count)]


def quick() -> bool:
    """Whether there is a compiler for the first tier."""
    return Options().quickly() is not None


def constant(seed: int) -> float:
    """A number that makes the trace of a test its own: code is shared within a process."""
    return random.Random(f"{seed} {os.getpid()}").uniform(1.0, 2.0)


# ---- 1: steps ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "better"), [(1, 1), (1, 4), (2, 3), (5, 11), (9, 10)])
def test_01_the_numbers_do_not_depend_on_when_kernels_come(first: int, better: int) -> None:
    """The first one, and the better one, are swapped in after certain calls."""
    mine, other = Trainer(), Trainer()
    mine.rate = other.rate = constant(100 * first + better)
    for number, row in enumerate(rows(first, 40)):
        if number == first:
            assert all(pending.job.wait() for pending in mine.step._kernels._awaited.pending())  # or it is there by now
        if number == better:
            assert mine.step.wait()
        assert mine.step(*row) == other.plain(*row)
        assert mine.numbers() == other.numbers()
    stats = mine.step.stats
    assert stats.waiting_calls >= 1
    assert stats.calls >= 40 - first
    assert stats.calls + stats.waiting_calls == 40
    assert ["optimised" in swap for swap in stats.swaps] == ([False, True] if quick() else [False])


def test_01_buffers_among_the_arguments_are_those_of_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in the call that is made by both codes."""
    monkeypatch.setenv("MGJIT_VERIFY", "auto")
    mine, other = Trainer(), Trainer()
    mine.rate = other.rate = constant(1950)
    for number in range(12):
        pixels = bytes((37 * number + 11 * k) % 256 for k in range(6))
        assert mine.step(pixels, 0.5) == other.plain(pixels, 0.5)
        assert mine.numbers() == other.numbers()
        if number in (1, 4, 6):
            assert mine.step.wait()
    assert mine.step.stats.mismatches == []


@pytest.mark.optimised
@pytest.mark.skipif(not quick(), reason="there is one tier only")
def test_01_better_code_that_is_wrong_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is compared with the code that it replaces, which goes on."""
    original = Kernel.replace

    def replace_by_wrong_code(self: Kernel, *arguments: Any) -> bool:
        is_replaced = original(self, *arguments)
        run, (storage, *_) = self.run["step"], self.parameters

        def run_wrongly() -> None:
            run()
            storage.data[2] += 1e-9

        self.run["step"] = run_wrongly
        return is_replaced

    monkeypatch.setattr(Kernel, "replace", replace_by_wrong_code)
    monkeypatch.setenv("MGJIT_VERIFY", "auto")
    mine, other = Trainer(), Trainer()
    mine.rate = other.rate = constant(1900)
    first, second, *more = rows(19, 6)
    assert mine.step(*first) == other.plain(*first)
    assert mine.step(*second) == other.plain(*second)
    assert mine.step.wait()
    with pytest.warns(MismatchWarning, match="the optimised code of plain is wrong: number .* runs as before"):
        results = [mine.step(*row) for row in more]
    assert results == [other.plain(*row) for row in more]
    assert mine.numbers() == other.numbers()
    calls = mine.step.stats.calls
    mine.step(*rows(19, 1)[0])
    assert mine.step.stats.calls == calls + 1
    assert len(mine.step.stats.mismatches) == 1


def test_02_what_is_in_the_cache_is_used_at_once() -> None:
    """By another step of the same structure."""
    first, second, other = Trainer(), Trainer(), Trainer()
    first.rate = second.rate = other.rate = constant(2)
    (row,) = rows(2, 1)
    first.step(*row)
    assert first.step.wait()
    assert second.step(*row) == other.plain(*row)
    assert second.numbers() == other.numbers()
    assert (second.step.stats.waiting_calls, second.step.stats.calls) == (0, 1)


def test_03_a_number_that_changes_meanwhile() -> None:
    """The trace is made again, with the number as an input; the first job is given up."""
    mine, other = Trainer(), Trainer()
    mine.rate = other.rate = constant(3)
    for row in rows(3, 100_000):  # as many as it takes to earn another trace
        if mine.step.stats.calls:
            break
        mine.rate = other.rate = mine.rate * 0.99
        assert mine.step(*row) == other.plain(*row)
        assert mine.numbers() == other.numbers()
        mine.step.wait()
    assert mine.step.stats.calls > 0


def test_04_phases_and_loops_wait() -> None:
    """They need a kernel."""
    mine, other = Trainer(), Trainer()
    mine.rate = other.rate = constant(4)
    (row, *more) = rows(4, 5)
    mine.step.forward(*row)
    mine.step.backward()
    mine.step.update()
    other.plain(*row)
    assert mine.numbers() == other.numbers()
    losses = mine.step.loop([xs for xs, _ in more], [target for _, target in more])
    assert list(losses) == [other.plain(*row) for row in more]
    assert mine.step.stats.waiting_calls == 0


def test_05_without_a_cache_on_disk() -> None:
    """The code comes back from the other process."""
    mine, other = Trainer(cache=False), Trainer()
    mine.rate = other.rate = constant(5)
    for row in rows(5, 6):
        assert mine.step(*row) == other.plain(*row)
        assert mine.step.wait()
    assert mine.numbers() == other.numbers()
    assert mine.step.stats.calls == 5


def test_06_the_python_back_end() -> None:
    """The same, as source."""
    mine, other = Trainer(backend="python"), Trainer()
    mine.rate = other.rate = constant(6)
    for row in rows(6, 6):
        assert mine.step(*row) == other.plain(*row)
        assert mine.step.wait()
    assert mine.numbers() == other.numbers()
    assert (mine.step.stats.calls, mine.step.stats.backend) == (5, "python")


def test_07_background_is_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    """False: as if nobody had said anything else."""
    monkeypatch.delenv("MGJIT_BACKGROUND")
    mine = Trainer(background=False)
    mine.rate = constant(7)
    mine.step(*rows(7, 1)[0])
    assert (mine.step.stats.calls, mine.step.stats.waiting_calls) == (1, 0)


def test_09_a_call_that_would_take_long_waits_for_its_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as one has taken as plain Python, which is an hour here."""
    monkeypatch.setattr(Earnings, "measured", lambda self, key: 3600.0)
    mine, other = Trainer(), Trainer()
    mine.rate = other.rate = constant(9)
    (row,) = rows(9, 1)
    assert mine.step(*row) == other.plain(*row)
    assert (mine.step.stats.calls, mine.step.stats.waiting_calls) == (1, 0)
    assert "built in the background: (xs: 6 numbers, target: number): compiled" in mine.step.lower(*row).explain()


class Endless:
    """A job that never ends."""

    def __init__(self, clock: list[float]) -> None:
        self._clock = clock
        self.asked: list[float] = []

    def wait(self, seconds: float) -> bool:
        self.asked.append(seconds)
        self._clock[0] += seconds
        return False


@pytest.mark.parametrize(
    ("measured", "asked"),
    [([0.0, 0.0], []), ([0.5, 0.5], []), ([0.0, 4.0, 4.0, 4.0], [4.0]), ([4.0, 6.0, 6.0], [4.0, 2.0])],
    ids=["nothing is measured", "short calls", "the second call", "calls that become longer"],
)
def test_09_all_calls_together_wait_no_longer_than_one_was_measured(
    measured: list[float], asked: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is estimated from the trace."""
    clock = [0.0]
    monkeypatch.setattr("mgjit.kernels.first_calls.pending.plain_seconds", lambda *sizes: 3600.0)
    mine = Trainer()
    mine.rate = constant(92)
    mine.step(*rows(9, 1)[0])
    (pending,) = mine.step._kernels._awaited.pending()
    pending.job.cancel()
    monkeypatch.setattr("mgjit.kernels.first_calls.pending.perf_counter", lambda: clock[0])
    job = Endless(clock)
    pending.job = job  # type: ignore[assignment]
    assert not any(pending.comes_first(seconds) for seconds in measured)
    assert job.asked == asked


def test_09_a_first_call_waits_where_its_trace_tells_that_plain_python_takes_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And no plain call is made to see how long it takes."""
    monkeypatch.setattr("mgjit.kernels.first_calls.pending._LEAST_OF_RECORD", 10.0)
    model, number = mgjit.nn.MLP(4, [3, 1]), constant(93)

    def plain(xs: list[float]) -> Any:
        loss = (model(xs) - number) ** 2
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= 0.01 * p.grad
        return loss.data

    step = mgjit.compile(plain)
    step._kernels.earnings.begins_at_once = step._kernels.earnings.is_asked = True
    for _ in range(100):
        step([0.5, 0.25, -1.0, 2.0])
    assert (step.stats.calls, step.stats.waiting_calls, step.stats.plain_calls) == (100, 0, 0)


@pytest.mark.skipif(not quick(), reason="plain calls compile nothing")
def test_09_a_call_that_would_first_compile_operations_on_tensors_waits_for_its_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a plain call finds compiled takes no time."""
    monkeypatch.setattr("mgjit.kernels.first_calls.pending._WAIT_OF_TENSORS", 1e6)
    monkeypatch.setattr(eager, "_functions", {})
    monkeypatch.setattr(eager, "_SECONDS_OF_FORM", 1.0)
    w, number = T.asarray([0.5, 2.0, -1.0], requires_grad=True), constant(91)

    def plain(x: Any, shift: float) -> Any:
        w.zero_grad()
        loss = (T.tanh(w * x + shift) * number).sum()
        loss.backward()
        return loss

    step, x = mgjit.compile(plain), T.asarray([1.0, 0.25, 3.0])
    first = float(step(x, 0.5))
    assert (step.stats.calls, step.stats.waiting_calls) == (1, 0)
    nests = step._kernels.maker.traced(step._kernels.maker.plan((x, 0.5))).trace.nests
    seconds = eager.seconds_to_compile(nests)
    assert first == float(plain(x, 0.5))
    assert 0.0 <= eager.seconds_to_compile(nests) <= seconds / 2.0


def test_08_clear_gives_up_what_is_being_built() -> None:
    """And the step begins anew."""
    mine = Trainer()
    mine.rate = constant(8)
    mine.step(*rows(8, 1)[0])
    (pending,) = mine.step._kernels._awaited.pending()
    mine.step.clear()
    assert pending.job not in background._jobs
    assert mine.step.wait()
    assert mine.step.stats.swaps == []


def test_09_waiting_does_not_trace_a_call_that_has_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """`wait` traces the last one that has returned: with the others' arguments, a trace raises something else."""

    def require(self: Earnings, key: Any, *_: Any) -> None:
        if not self.begins_at_once:  # until `wait` is called
            raise earnings.Waiting(key)

    monkeypatch.setattr(Earnings, "require", require)
    w = [1.0]

    @mgjit.compile
    def step(x: Any) -> Any:
        w[0] = w[0] * x
        return w[0]

    for expected in (2.0, 4.0, 8.0):
        assert step(2.0) == expected
        with pytest.raises(TypeError):
            step("text")
    assert step.stats.traces == 0
    assert step.wait()
    assert step.stats.traces == 1
    assert step(4.0) == 32.0
    assert step.stats.calls == 1


class Node:
    """An autograd class of a user's, whose gradients are no floats until there is one."""

    def __init__(self, data: float, children: tuple[Any, ...] = (), factors: tuple[float, ...] = ()) -> None:
        self.data, self.grad = data, 0
        self._children, self._factors = children, factors

    def __add__(self, other: Any) -> Any:
        return Node(self.data + other.data, (self, other), (1.0, 1.0))

    def __mul__(self, other: Any) -> Any:
        other = other if isinstance(other, Node) else Node(other)
        return Node(self.data * other.data, (self, other), (other.data, self.data))

    def backward(self) -> None:
        order: list[Any] = []
        seen: set[Any] = set()

        def visit(node: Any) -> None:
            if node not in seen:
                seen.add(node)
                for child in node._children:
                    visit(child)
                order.append(node)

        visit(self)
        self.grad = 1
        for node in reversed(order):
            for child, factor in zip(node._children, node._factors):
                child.grad += factor * node.grad


@pytest.mark.parametrize("length", [3, 40])
def test_10_gradients_that_plain_calls_leave_as_ints(length: int) -> None:
    """A kernel would leave them as floats: the trace is made as after its first call, and holds for all calls."""
    rate = constant(length)

    def trainer() -> tuple[list[Node], Any]:
        weights = [Node(0.1 * k - 0.3) for k in range(length)]

        def step(x: float, y: float) -> float:
            loss = Node(-y)
            for w in weights:
                loss = loss + w * x
            loss = loss * loss
            loss.backward()
            for w in weights:
                w.data -= 0.01 * rate * w.grad
                w.grad = 0
            return loss.data

        return weights, step

    (mine, compiled), (others, plain) = trainer(), trainer()
    compiled = mgjit.compile(compiled)
    for number, (xs, y) in enumerate(rows(8, 12, 1)):
        assert compiled(xs[0], y) == plain(xs[0], y)
        assert [(w.data, w.grad) for w in mine] == [(w.data, w.grad) for w in others]
        if number == 3:
            assert compiled.wait()
    stats = compiled.stats
    assert (stats.traces, stats.retraces, stats.plain_calls) == (1, [], 0)
    assert stats.calls >= 8  # more, if the code was there before it was waited for
    assert stats.calls + stats.waiting_calls == 12


# ---- 2: what goes wrong ---------------------------------------------------------------------------------


def answered(monkeypatch: pytest.MonkeyPatch, answer: Answer) -> None:
    """All jobs have ended with this answer."""

    def look(job: Any) -> None:
        job._dismiss()
        job._end(answer)

    monkeypatch.setattr(background.Job, "_look", look)


def test_11_a_defect_leaves_plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its warning, once."""
    answered(monkeypatch, Answer(plain="mgjit has a defect: so", warnings=[(DefectWarning, "A defect of mgjit")]))
    mine, other = Trainer(), Trainer()
    mine.rate = other.rate = constant(11)
    first, second, third = rows(11, 3)
    assert mine.step(*first) == other.plain(*first)
    with pytest.warns((DefectWarning, BackendWarning)) as caught:
        assert mine.step(*second) == other.plain(*second)
    assert sorted(w.category.__name__ for w in caught) == ["DefectWarning", "PlainWarning"]
    assert mine.step(*third) == other.plain(*third)
    assert mine.numbers() == other.numbers()
    assert (mine.step.stats.plain_calls, mine.step.stats.calls) == (2, 0)


def test_12_a_failure_is_made_good_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the other process could not build, this one builds."""
    answered(monkeypatch, Answer(failure="no process could be started"))
    mine, other = Trainer(), Trainer()
    mine.rate = other.rate = constant(12)
    for row in rows(12, 4):
        assert mine.step(*row) == other.plain(*row)
    assert mine.numbers() == other.numbers()
    assert mine.step.stats.calls == 3


def test_13_where_no_process_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an interpreter that is part of another program: the first call waits for its code."""
    monkeypatch.setattr(sys, "executable", "/usr/bin/blender")
    mine = Trainer()
    mine.rate = constant(13)
    mine.step(*rows(13, 1)[0])
    assert mine.step.stats.calls == 1


# ---- 3: what a trace has to earn -----------------------------------------------------------------------------


def test_23_lengths_run_plain_until_they_have_earned_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that gets another length in each call is traced once."""
    monkeypatch.setattr(Earnings, "note_plain", lambda self, key, seconds, calls: None)
    weight, bias = Value(0.5), constant(23)
    step: Callable[[list[float]], float] = mgjit.compile(lambda xs: sum((weight * x for x in xs), Value(bias)).data)
    for length in range(1, 12):
        assert step([0.5] * length) == sum((weight * 0.5 for _ in range(length)), Value(bias)).data
    assert step.stats.waiting_calls == 11  # type: ignore[attr-defined]
    assert len(background._jobs) <= 1
    step.wait()  # type: ignore[attr-defined]
    assert step.stats.traces == 1  # type: ignore[attr-defined]


def test_24_wait_traces_what_no_call_was_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that what follows has a kernel."""
    monkeypatch.setattr(earnings, "_FIRST_SECONDS", 1e6)
    monkeypatch.setattr(Memory, "exists", False)
    mine, other = Trainer(), Trainer()
    first, second, third = rows(1955, 3)
    assert not mine.step.stats.traces  # the step begins here, whatever others of this class have made of their calls
    assert mine.step(*first) == other.plain(*first)
    assert mine.step(*second) == other.plain(*second)
    assert (mine.step.stats.traces, mine.step.stats.waiting_calls) == (0, 2)
    assert mine.step.wait()
    assert mine.step(*third) == other.plain(*third)
    assert (mine.step.stats.traces, mine.step.stats.calls) == (1, 1)
    assert mine.numbers() == other.numbers()


@pytest.mark.optimised
def test_25_better_code_waits_until_it_pays() -> None:
    """And is built at once for whoever waits for it."""
    weight, bias = Value(0.5), constant(25.5)
    step: Any = mgjit.compile(lambda xs: sum((weight * x for x in xs), Value(bias)).data)
    step._kernels.earnings.all_calls = 100.0
    step([0.5])
    (pending,) = step._kernels._awaited.pending()
    assert pending.job.wait()
    for _ in range(40):
        step([0.5])
    (kernel,) = step._kernels.all()
    if kernel.upgrade is None:
        pytest.skip("there are no two tiers")
    assert kernel.upgrade.job is None
    assert step.wait()
    assert kernel.upgrade is None


def test_26_a_step_that_hardly_repeats_itself_keeps_its_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ordinary objects, in the memory of no kernel."""
    monkeypatch.setattr(Earnings, "note_plain", lambda self, key, seconds, calls: None)
    weight, bias = Value(0.5), constant(25)
    step: Any = mgjit.compile(lambda xs: sum((weight * x for x in xs), Value(bias)).data)
    for length in range(1, 9):
        step([0.5] * length)
    (pending,) = step._kernels._awaited.pending()
    assert pending.job.wait()
    step([0.5])
    assert (step.stats.calls, weight._is_bound) == (0, False)
    for _ in range(3):
        step([0.5])
    assert (step.stats.calls, weight._is_bound) == (3, True)


def test_29_most_short_calls_look_for_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of which there is none: calls 1, 2, 4, 8, and each fifth one then; the time of all of them counts."""
    monkeypatch.setattr(earnings, "_MOST_UNLOOKED", 4)
    monkeypatch.setattr(earnings, "_PLAIN_PER_LOOK", 1e9)
    monkeypatch.setattr(earnings, "_SHORT", 1e9)  # some are not, while PyPy translates
    looks, noted = [], []
    find, note = Kernels.fitting, Earnings.note_plain
    monkeypatch.setattr(Kernels, "fitting", lambda self, *args, **named: looks.append(1) or find(self, *args, **named))
    monkeypatch.setattr(Earnings, "note_plain", lambda self, *args: noted.append(args[2]) or note(self, *args))
    monkeypatch.setattr(Awaited, "_is_time", lambda self: False)
    mine, other = Trainer(), Trainer()
    for row in rows(29, 20):
        assert mine.step(*row) == other.plain(*row)
    assert mine.numbers() == other.numbers()
    assert (len(looks), sum(noted), mine.step.stats.waiting_calls) == (6, 18, 20)


def test_29_a_call_that_looks_for_no_kernel_may_be_traced_by_another_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """As part of it."""
    monkeypatch.setattr(earnings, "_MOST_UNLOOKED", 4)
    weight = Value(0.5)
    inner: Any = mgjit.compile(lambda x: (weight * x).data)
    outer: Any = mgjit.compile(lambda x: inner(x) * 2.0)
    assert inner(3.0) == 1.5
    assert outer(3.0) == 3.0
    assert outer.wait()
    assert outer(4.0) == 4.0
    assert (outer.stats.traces, outer.stats.calls) == (1, 1)


class Smoothed:
    """A step over parameters, those of its own class or Values, and State; it takes rows of several lengths."""

    def __init__(self, kind: Any) -> None:
        self.w = [kind(0.1 * k - 0.3) for k in range(8)]
        self.mean = mgjit.zeros(8)

    def plain(self, xs: list[float]) -> Any:
        loss = self.w[0] * self.w[7]
        for w, x in zip(self.w, xs):
            loss = loss + w * w * x
        for w in self.w:
            w.grad = 0.0
        loss.backward()
        for k, w in enumerate(self.w):
            self.mean[k] = 0.75 * self.mean[k] + 0.25 * w.grad
            w.data -= 0.05 * self.mean[k]
            w.grad = 0.0
        return loss.data

    def numbers(self) -> list[float]:
        return [*(number for w in self.w for number in (w.data, w.grad)), *self.mean]


def all_earned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is traced at once."""
    monkeypatch.setattr(Earnings, "require", lambda self, *of_the_call: None)
    monkeypatch.setattr(Earnings, "are_worth_it", lambda self, keys, parameters: True)


def wait_for_jobs(step: Any) -> None:
    for waiting in step._kernels._awaited.pending():
        assert waiting.job.wait()


@pytest.mark.parametrize("kind", [Value, Node])
def test_28_traces_from_before_the_first_kernel_are_not_made_again(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their parameters and State have moved into its memory: they wait for code over that, which is not built here."""
    all_earned(monkeypatch)
    plain, compiled = Smoothed(kind), Smoothed(kind)
    step: Any = mgjit.compile(compiled.plain)
    lengths = [5, 6, 7]
    for length in lengths:
        assert step([0.5] * length) == plain.plain([0.5] * length)
    assert len(step._kernels._awaited) == 3
    wait_for_jobs(step)
    monkeypatch.setattr(build, "_compile", None)
    for _ in range(3):
        for length in lengths:
            assert step([0.5] * length) == plain.plain([0.5] * length)
            wait_for_jobs(step)
    step.wait()
    assert step([0.25] * 6) == plain.plain([0.25] * 6)
    assert compiled.numbers() == plain.numbers()
    assert (step.stats.traces, len(step._kernels)) == (3, 3)
    assert step.stats.calls >= 8  # more, if code was there before it was waited for


def test_28_a_trace_whose_parameters_have_moved_apart_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two steps have a kernel over a half of them each."""
    all_earned(monkeypatch)
    halves = [Value(0.5), Value(0.25)], [Value(0.75), Value(-0.5)]

    def moved(ws: list[Value], x: float) -> None:
        for w in ws:
            w.data -= 0.125 * x

    one = mgjit.compile(background=False)(lambda x: moved(halves[0], x))
    other = mgjit.compile(background=False)(lambda x: moved(halves[1], x))
    both: Any = mgjit.compile(lambda x: moved([*halves[0], *halves[1]], x))
    both(1.0)
    one(1.0)
    other(1.0)
    wait_for_jobs(both)
    for _ in range(3):
        both(1.0)
        wait_for_jobs(both)
    assert both.stats.calls > 0
    assert [w.data for half in halves for w in half] == [-0.125, -0.375, 0.125, -1.125]


@pytest.mark.optimised
@pytest.mark.parametrize("is_much", [False, True])
def test_27_the_first_tier_depends_on_the_work(is_much: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that is not optimised, or scheduled code of small loops; the numbers are the same."""
    if not quick() or compilers._of_family("gcc") is None:
        pytest.skip("there are no two tiers")
    monkeypatch.setattr(options, "_MUCH_WORK", 1_000 if is_much else 1_000_000)
    draw, offset = random.Random(27), constant(27 + is_much)
    models = [[T.asarray([[draw.uniform(-0.5, 0.5) for _ in range(20)] for _ in range(18)]) for _ in range(2)]]
    models.append([w.copy() for w in models[0]])

    def made(weights: list[T.Tensor]) -> Callable[..., Any]:
        for w in weights:
            w.requires_grad = True

        def step(x: T.Tensor) -> T.Tensor:
            loss = (T.tanh(x @ weights[0]) * weights[1]).sum() + offset
            for w in weights:
                w.zero_grad()
            loss.backward()
            with mgjit.no_grad():
                for w in weights:
                    w[...] = w - 0.1 * w.grad
            return loss

        return step

    x = T.uniform((18, 18), -1.0, 1.0, generator=draw)
    plain, compiled = made(models[0]), mgjit.compile(made(models[1]))
    stats: Any = compiled.stats  # type: ignore[attr-defined]
    found = []
    for number in range(6):
        assert float(plain(x)) == float(compiled(x))
        if number == 0:
            (waiting,) = compiled._kernels._awaited.pending()  # type: ignore[attr-defined]
            assert waiting.job.wait()
        found.append(stats.compiler)
        if number == 3:
            assert compiled.wait()  # type: ignore[attr-defined]
    assert ("tcc" in found[1]) is not is_much
    assert "tcc" not in found[-1]
    assert len(stats.swaps) == 2
    assert [w.tolist() for w in models[0]] == [w.tolist() for w in models[1]]
