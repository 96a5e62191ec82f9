"""What a step prints, logs or writes: warned of where it stands, and done once; or left to Python."""

from __future__ import annotations

import io
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit.autograd.node_class import node_class
from mgjit.errors import SideEffectWarning, TraceError
from mgjit.record.leaks import PlainCall
from mgjit.source.impure import without_effects

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

        with pytest.warns(SideEffectWarning, match="the step writes to a file"):
            assert step(1.0) == 2.0


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

    with pytest.warns(SideEffectWarning), pytest.raises(TraceError, match="no digits to print"):
        step(1.0)
    assert capsys.readouterr().out == ""


def module_of_clocks(x: Any) -> Any:
    import time

    return x + time.time()


def renamed_module_of_clocks(x: Any) -> Any:
    import time as clocks

    return x + clocks.time()


def clock(x: Any) -> Any:
    from time import perf_counter as now

    return x + now()


def date(x: Any) -> Any:
    from datetime import datetime

    return x + datetime.now().timestamp()


def used_time(x: Any) -> Any:
    return x + os.times().user + time.thread_time()


def folder(x: Any) -> Any:
    return x + len(os.listdir("."))


@pytest.mark.parametrize("step", [module_of_clocks, renamed_module_of_clocks, clock, date, used_time, folder])
def test_07_what_tells_of_the_world_outside(step: Callable[[Any], Any]) -> None:
    """Is no constant of the kernel, also where the step itself imports it."""
    with pytest.raises(TraceError, match="would be called while the step is traced"):
        mgjit.compile(step, background=False)(1.0)


@pytest.mark.parametrize("take", [lambda file: file.readline(), next, lambda file: file.read(2)])
def test_08_lines_of_an_open_file(take: Callable[[Any], str], tmp_path: Path) -> None:
    """They are no constants of the kernel, and none is lost by the refusal."""
    (tmp_path / "numbers.txt").write_text("1\n2\n3\n")
    with open(tmp_path / "numbers.txt") as file:
        places = {"data": file}

        @mgjit.compile(background=False)
        def step(x: Any) -> Any:
            return x * float(take(places["data"]))

        with pytest.raises(TraceError, match=r"takes the next element of .*which existed before it"):
            step(1.0)
        assert places["data"] is file
        assert file.readline() == "1\n"
