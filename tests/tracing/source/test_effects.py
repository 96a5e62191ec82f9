"""What a step prints, logs or writes: warned of where it stands, and done once; or left to Python."""

from __future__ import annotations

import io
import logging
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit import tensor as T
from mgjit.engine.leaks import PlainCall
from mgjit.errors import SideEffectWarning, TraceError
from mgjit.nn import functional
from mgjit.tracing.autograd.node_class import node_class
from mgjit.tracing.source.effects import without_effects

LOGGER = logging.getLogger(__name__)


@pytest.fixture
def records() -> Iterator[list[str]]:
    """The messages that are logged."""
    found: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    LOGGER.addHandler(handler)
    LOGGER.setLevel("INFO")
    yield found
    LOGGER.removeHandler(handler)


def logging_step(x: Any) -> Any:
    LOGGER.debug("nobody looks at this")
    LOGGER.info("a call")
    return x * 2.0


def printing_step(x: Any) -> Any:
    print("a call")
    return x * 2.0


def writing_step(x: Any) -> Any:
    sys.stdout.write("a call\n")
    return x * 2.0


STEPS = {"logs something": logging_step, "prints": printing_step, "writes to a file": writing_step}


@pytest.mark.parametrize("what", STEPS)
def test_01_a_warning_says_where(
    what: str, records: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled calls do not do it; the warning names the user's line."""
    monkeypatch.setenv("MGJIT_VERIFY", "never")  # calls that are compared are made by plain Python as well
    step = mgjit.compile(STEPS[what], background=False)
    with pytest.warns(SideEffectWarning, match=f"the step {what}") as warned:
        assert step(1.0) == 2.0
    line = STEPS[what].__code__.co_firstlineno + (2 if what.startswith("logs") else 1)
    assert {(w.filename, w.lineno) for w in warned} == {(__file__, line)}
    done = len(records) + capsys.readouterr().out.count("a call")
    assert done >= 1
    assert step(3.0) == 6.0
    assert len(records) + capsys.readouterr().out.count("a call") == (done if records else 0)


def test_02_what_only_looks_like_it() -> None:
    """A record below the level is none; text in memory and a method of the user's are no files."""

    class Tape:
        def __init__(self) -> None:
            self.last = 0.0

        def write(self, x: Any) -> None:
            self.last = x

    tape = Tape()

    @mgjit.compile(background=False)
    def step(x: Any) -> Any:
        LOGGER.debug("nobody looks at this")
        text = io.StringIO()
        text.write("a line")
        tape.write(x * len(text.getvalue()))
        return tape.last

    assert step(1.0) == 6.0
    assert step(2.0) == tape.last == 12.0
    assert step.stats.calls >= 1


def test_03_an_open_file(tmp_path: Path) -> None:
    """Also one that is an attribute."""
    with open(tmp_path / "log.txt", "w") as file:
        files = [file]

        @mgjit.compile(background=False)
        def step(x: Any) -> Any:
            files[0].writelines(["a call\n"])
            return x * 2.0

        assert step(1.0) == 2.0
    assert (tmp_path / "log.txt").read_text() == "a call\n"


@pytest.mark.parametrize("step", STEPS.values())
def test_04_what_must_have_no_effects(step: Callable[[Any], Any], records: list[str], capsys: Any) -> None:
    """It ends before anything has happened; other threads go on; everything is put back."""
    before = logging.getLogRecordFactory(), sys.stdout, sys.stderr

    def work() -> None:
        other = threading.Thread(target=lambda: print("another thread"))
        other.start()
        other.join()
        step(1.0)

    with pytest.raises(PlainCall, match=r"the step (prints|logs)"):
        without_effects(work)
    assert before == (logging.getLogRecordFactory(), sys.stdout, sys.stderr)
    assert (capsys.readouterr().out, records) == ("another thread\n", [])


@pytest.mark.parametrize("step", STEPS.values())
def test_05_a_class_that_is_tried_out(step: Callable[[Any], Any], records: list[str], capsys: Any) -> None:
    """Which is done to see whether its objects are nodes: nothing of that is to be seen."""

    class Node:
        def __init__(self, data: float) -> None:
            step(data)
            self.data, self.grad, self.parts = data, 0.0, ()

        def __mul__(self, other: Any) -> Any:
            found = Node(self.data * other.data)
            found.parts = (self, other)  # type: ignore[assignment]
            return found

        def backward(self) -> None:
            one, two = self.parts
            self.grad, one.grad, two.grad = 1.0, two.data, one.data

    assert node_class(Node) is None
    assert (capsys.readouterr().out, records) == ("", [])


def test_06_nothing_is_written_before_a_refusal(capsys: pytest.CaptureFixture[str]) -> None:
    """A print of text and then a traced number."""

    @mgjit.compile(background=False)
    def step(x: Any) -> Any:
        print("the loss is", x * 2.0)
        return x

    with pytest.raises(TraceError, match="no digits to print"):
        step(1.0)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("what", STEPS)
@pytest.mark.parametrize("is_refused", [False, True])
@pytest.mark.parametrize("background", [False, True])
def test_07_each_call_does_it_once_at_most(
    what: str,
    is_refused: bool,
    background: bool,
    records: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A call that is traced and then made by plain Python does not do it twice."""
    monkeypatch.setenv("MGJIT_REFUSE", "plain")
    monkeypatch.setenv("MGJIT_VERIFY", "never")  # a call that is compared does it as well
    monkeypatch.setenv("MGJIT_BACKGROUND", str(int(background)))

    @mgjit.compile
    def step(x: Any) -> Any:
        y = STEPS[what](x)
        return float(f"{y:.1f}") if is_refused else y

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for x in (1.0, 2.0, 3.0):
            plain = step.stats.plain_calls + step.stats.waiting_calls
            assert step(x) == 2.0 * x
            is_plain = step.stats.plain_calls + step.stats.waiting_calls > plain
            done = len(records) + capsys.readouterr().out.count("a call")
            assert done == 1 if is_plain or x == 1.0 else done == 0
            records.clear()
    step.clear()
    expected = ["PlainWarning"] if is_refused else ["SideEffectWarning"]
    assert [w.category.__name__ for w in warned] == expected


def test_08_print_to_an_object_of_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """What its `write` does besides is no effect that calls may leave out."""
    monkeypatch.delenv("MGJIT_REFUSE", raising=False)
    lines: list[str] = []

    class Sink(io.TextIOBase):
        def write(self, text: str) -> int:
            lines.append(text)
            return len(text)

    sink = Sink()

    @mgjit.compile(background=False)
    def step(x: Any) -> Any:
        print("a call", file=sink, end=";")
        return x * 2.0

    with pytest.warns(UserWarning, match="prints to a Sink"):
        assert [step(float(n)) for n in range(3)] == [0.0, 2.0, 4.0]
    assert "".join(lines) == "a call;" * 3


def test_09_the_warning_changes_no_variable_of_the_module_while_it_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    """`cross_entropy` names where Python keeps the warnings that a module has given."""
    monkeypatch.delitem(globals(), "__warningregistry__", raising=False)
    scores, labels = T.asarray([[0.5, 1.5], [2.0, 0.0]]), T.asarray([0, 1])

    @mgjit.compile(background=False)
    def step(scores: Any, labels: Any) -> Any:
        print("a call")
        return functional.cross_entropy(scores, labels)

    with pytest.warns(SideEffectWarning, match="the step prints"):
        step(scores, labels)
    step(scores, labels)
    assert step.stats.last.made_by == "kernel"
