"""Which kernel a call gets: found, or made, with a report of what was different."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import mgjit
from mgjit import Value
from mgjit.base.ffi import address_of
from mgjit.errors import RetraceLimitError, RetraceWarning
from mgjit.runtime.kernel import Kernel
from mgjit.tensor.memory import Memory
from mgjit.tracing.call.lengths import lengths_of


@pytest.fixture
def w() -> Value:
    return Value(2.0)


def test_01_the_report_names_the_first_difference(w: Value) -> None:
    """As a path into the arguments, with both descriptions."""

    def plain(x: Any, options: Any) -> Any:
        return w * x[0] * (options["rate"] if isinstance(options["rate"], (int, float)) else 1.0) + len(x)

    step = mgjit.compile(plain)
    step([1.0], {"rate": 1.0, "mode": "a"})
    step([1.0], {"rate": 2.0, "mode": "b"})
    step([1.0, 2.0], {"rate": 2.0, "mode": "b"})
    step([1.0, 2.0], {"rate": None, "mode": "b"})
    step([1.0, 2.0], {"rate": None})
    step([1.0], {"rate": 5.0, "mode": "a"})
    assert step.stats.retraces == [
        "options['mode'] was 'a', is 'b'",
        "x was 1 number in a list, is 2 numbers",
        "options['rate'] was number, is None",
        "options was dict with keys ['rate', 'mode'], is dict with keys ['rate']",
    ]
    assert step.stats.traces == 5
    assert "traced again: options['mode']" in step.lower([1.0], {"rate": 5.0, "mode": "a"}).explain()


def test_02_limit(w: Value) -> None:
    """More structures than `limit` are an error that names the difference; known ones still run."""
    step = mgjit.compile(limit=3)(lambda x: w * sum(x))
    for n in (1, 2, 3):
        step([1.0] * n)
    with pytest.raises(RetraceLimitError, match=r"test_kernels\.py:\d+: .*x was 3 numbers, is 4 numbers"):
        step([1.0] * 4)
    assert step([1.0] * 2) == 4.0
    step.clear()
    assert step([1.0] * 4) == 8.0


def test_02b_very_many_lengths_without_a_limit(w: Value, monkeypatch: pytest.MonkeyPatch) -> None:
    """Further lengths and other structures are plain Python, which says so once; phases need a kernel."""
    monkeypatch.setattr("mgjit.kernels.kernels._MOST_STRUCTURES", 3)

    def plain(x: Any) -> Any:
        loss = w * sum(x)
        loss.backward()
        w.data -= 0.125 * w.grad
        return loss.data

    rows = [[0.5 * k + 0.25 * n for k in range(n)] for n in (1, 2, 3, 4, 2, 5, 4, 3, 1)]
    expected = [plain(row) for row in rows] + [w.data, w.grad]
    in_a_loop = [plain(row) for row in rows]
    w.data, w.grad = 2.0, 0.0
    step = mgjit.compile(background=False)(plain)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = [step(row) for row in rows]
    assert [*found, w.data, w.grad] == expected
    texts = [str(warning.message) for warning in caught]
    assert [("texts or" in text, "3 by now" in text, "limit=" in text) for text in texts] == [(True, True, True)]
    assert (step.stats.calls, step.stats.plain_calls, step.stats.traces) == (6, 3, 3)
    assert "plain Python: its arguments have other lengths" in step.lower([1.0]).explain()
    assert list(step.loop(rows)) == in_a_loop
    plain_calls = step.stats.plain_calls
    step((1.0, 2.0))
    assert step.stats.plain_calls == plain_calls + 1
    for n in (1, 2, 3):
        step.forward([1.0] * n)
    with pytest.raises(RetraceLimitError):
        step.forward([1.0] * 4)


def test_03_warn_after(w: Value) -> None:
    """One warning, with the difference, at the line of the call."""
    step = mgjit.compile(warn_after=2)(lambda x: w * sum(x))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(1, 6):
            step([1.0] * n)
    found = [warning for warning in caught if warning.category is RetraceWarning]
    assert len(found) == 1
    assert "x was 2 numbers, is 3 numbers" in str(found[0].message)
    assert found[0].filename == __file__


def test_04_static(w: Value) -> None:
    """Static arguments are compared and may shape the computation."""
    step = mgjit.compile(static=("n", "power"))(lambda x, n, power=2: sum((w * x) ** power for _ in range(n)))
    assert [float(step(1.0, 3)), float(step(1.0, 2)), float(step(2.0, 3)), float(step(1.0, 2, power=3))] == [
        12.0, 8.0, 48.0, 16.0,
    ]  # fmt: skip
    assert step.stats.traces == 3
    assert mgjit.compile(static="n")(lambda n: w * n)(2**60) == 2.0**61


def test_05_families(w: Value) -> None:
    """Lengths that take turns keep their kernels; each is found by the lengths of its arguments."""
    step = mgjit.compile(lambda xs: w * sum(xs))
    for n in (1, 2, 3) * 4:
        assert step([0.5] * n) == n
    assert len(step._kernels) == step.stats.traces == 3
    assert len({id(step._kernels.member(([1.0] * n,))) for n in (1, 2, 3)}) == 3
    assert step._kernels.member(([1.0] * 4,)) is None


def test_06_forgotten_kernels(w: Value) -> None:
    """Are made again when they are needed; the others stay."""
    step = mgjit.compile(lambda xs: w * sum(xs))
    step([1.0])
    step([1.0, 2.0])
    forgotten = step._kernels.last
    assert forgotten is not None
    step._kernels.forget(forgotten)
    assert (len(step._kernels), step._kernels.last) == (1, None)
    assert (step([1.0]), step.stats.traces) == (2.0, 2)
    assert (step([1.0, 2.0]), step.stats.traces) == (6.0, 3)


def test_07_captured_things_that_change() -> None:
    """A kernel whose guard sees a difference is replaced, and the reason is kept."""
    scale = [2.0]
    step = mgjit.compile(lambda x: x * factor())

    def factor() -> float:
        return scale[0]

    assert step(3.0) == 6.0
    scale = [5.0]
    assert step(3.0) == 15.0
    assert len(step._kernels) == 1
    assert len(step.stats.retraces) == 1
    assert "scale" in step.stats.retraces[0]


def test_08_a_family_whose_members_are_used_again() -> None:
    """Sixteen lengths of sequences, each called several times, are no reason for a warning; sixteen called once are."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step = mgjit.compile(lambda xs: sum(x * x for x in xs), backend="python")
        for length in range(1, 17):
            for _ in range(6):
                step([0.5] * length)
    assert step.stats.traces == 16
    other = mgjit.compile(lambda xs: sum(x * x for x in xs), backend="python")
    with pytest.warns(RetraceWarning, match="11th time") as caught:
        [other([0.5] * length) for length in range(1, 17)]
    assert len(caught) == 1


def test_09_kernels_share_scratch_unless_they_run_phases(w: Value) -> None:
    """What a phase has computed is there in the next one, whichever kernel runs in between."""

    @mgjit.compile(verify="never", background=False)
    def step(xs: list[float]) -> Value:
        w.grad = 0.0
        loss = sum(((w * x).tanh() ** 2 for x in xs), Value(0.0))
        loss.backward()
        w.data -= 0.1 * w.grad
        return loss

    def scratch(kernel: Kernel) -> int:
        memory = kernel.buffers[kernel.slot("scratch", 0)]
        assert len(memory) > 1
        return address_of(memory)

    for n in (48, 40, 32, 24):
        step([0.5] * n)
    whole = {scratch(kernel) for kernel in step._kernels.all()}
    assert len(whole) < 4  # a longer one may have needed more
    step.forward([0.5] * 24)
    assert step._kernels._separate is not None
    assert whole.isdisjoint(scratch(kernel) for kernel in step._kernels._separate.all())
    step.backward()


def test_10_lengths_that_have_earned_nothing_are_not_planned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """They run as plain Python, and are counted, until there may be a trace; other structures are planned."""
    monkeypatch.setenv("MGJIT_BACKGROUND", "1")
    monkeypatch.setattr(Memory, "exists", True)  # a trace is known to pay
    w = [Value(0.5), Value(-0.25)]

    @mgjit.compile
    def step(xs: list[float]) -> Any:
        return sum(p * x for p in w for x in xs)

    kernels = step._kernels
    planned: list[int] = []
    plan = kernels.maker.plan
    monkeypatch.setattr(
        kernels.maker, "plan", lambda given, *others: planned.append(len(given[0])) or plan(given, *others)
    )
    kernels.earnings.note_trace("another", 1e6)
    kernels.earnings.share = 0.0
    monkeypatch.setattr("mgjit.step.leaving.unlooked", lambda *given: 0)
    for number in range(4):
        assert step([1.0] * (2 + number % 2)) == step([1.0] * (2 + number % 2))
    assert planned == [2, 3]
    assert step.stats.waiting_calls == 8
    assert step.stats.waited().startswith("plain Python: 8 of 8 calls, whose kernels were not there yet, or would have")
    kernels.earnings.note_plain(kernels._unearned[lengths_of([[1.0, 1.0]])][0], 0.9)
    kernels.earnings.budget = 1e9
    step([1.0] * 2)
    assert planned == [2, 3, 2]
    assert step.wait()
    step([1.0] * 2)
    assert step.stats.calls == 1
    assert f"\n{step.stats.waited()}\n" in step.lower([1.0] * 2).explain()
