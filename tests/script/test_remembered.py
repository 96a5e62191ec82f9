"""What earlier runs of a program have found out about its loops."""

from __future__ import annotations

import sys
from importlib.util import source_hash
from pathlib import Path

import pytest

import mgjit
from mgjit.script import remembered
from mgjit.script.remembered import Remembered, Verdict
from mgjit.script.rewrite import StepSource
from mgjit.script.section import Off, Section
from mgjit.script.trying import Trying
from mgjit.script.watching import Watching, sections_of
from tests.script.running import seen
from tests.script.test_run import written

TEXT = b"for x in data: train(x)"


@pytest.fixture(autouse=True)
def directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("MGJIT_CACHE_DIR", str(tmp_path))
    return tmp_path


def sections(text: bytes = TEXT) -> tuple[Remembered, list[Section]]:
    """Two sections of a module as a run begins with them."""
    made = sections_of([StepSource("", "one", "x.py", 1, 2, 3), StepSource("", "two", "x.py", 4, 5, 6)], {})
    known = Remembered()
    known.apply(text, made)
    return known, made


class Step:
    """Stands for a step with a kernel."""

    kernels, waiting = 1, 0

    class stats:
        plain_calls = 0

    def give_up(self) -> None:
        """Nothing."""

    release = give_up


def tried(section: Section, calls: int, each: float, iteration: float) -> None:
    """Let a section have made compiled calls."""
    section.__class__, section.step = Trying, Step()  # type: ignore[assignment]
    section.calls, section.each, section.iteration, section.done = calls, each, iteration, 10


def test_a_loop_that_was_given_up_is_left_alone_in_the_next_run() -> None:
    known, (first, second) = sections()
    first.end("it is refused")
    known.note()
    _, (again, other) = sections()
    assert type(again) is Off
    assert again.reason == "it is refused"
    assert type(other) is type(second) is Watching


def test_a_step_that_pays_is_tried_in_the_first_iteration_of_the_next_run() -> None:
    known, (first, _) = sections()
    tried(first, 10_000, 1e-5, 1e-3)
    known.note()
    _, (again, _) = sections()
    assert again.ready
    assert type(again) is Trying
    assert again.calls_to_come == 10_010


def test_a_loop_that_ended_too_early_has_to_run_longer_the_next_time() -> None:
    known, (first, _) = sections()
    tried(first, 100, 1e-5, 1e-4)
    known.note()
    _, (again, _) = sections()
    assert not again.worth
    assert again.patience == pytest.approx(0.022)


def test_a_step_without_a_compiled_call_has_a_second_run_and_no_third_one() -> None:
    for kind in (Watching, Watching, Off):
        known, (first, _) = sections()
        assert type(first) is kind
        if kind is Watching:
            tried(first, 0, 0.0, 1e-3)
        known.note()


def test_another_text_is_another_program() -> None:
    known, (first, _) = sections()
    first.end("it is refused")
    known.note()
    assert type(sections(TEXT + b" ")[1][0]) is Watching


def test_what_is_forgotten_is_tried_again() -> None:
    known, (first, _) = sections()
    first.end("it is refused")
    known.note()
    remembered.forget()
    assert type(sections()[1][0]) is Watching


def test_strange_lines_are_left_out(directory: Path) -> None:
    known, (first, _) = sections()
    first.end("it is refused")
    known.note()
    path = directory / "loops"
    path.write_bytes(b"\xff\n1 2\n" + path.read_bytes() + b"x y vain 0 0 0\n")
    assert type(sections()[1][0]) is Off


def test_the_file_is_cut_down(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "_MUCH", 1000)
    for number in range(50):
        known, (first, _) = sections(TEXT + b"%d" % number)
        first.end("it is refused")
        known.note()
    assert (directory / "loops").stat().st_size <= 2000
    assert type(sections(TEXT + b"49")[1][0]) is Off


LOOP = """
w = [0.1, -0.2, 0.3, 0.4]
data = [([k / 30, 1.0, k % 3 / 2, 0.5], k / 10) for k in range(30)]
for epoch in range(200):
    for x, y in data:
        for _ in range(3):
            error = sum(a * b for a, b in zip(w, x)) - y
            for k in range(len(w)):
                w[k] -= 0.01 * error * x[k]
print(w)
"""


@pytest.mark.parametrize("word", [remembered.PAYS, remembered.TOO_EARLY, remembered.IN_VAIN])
def test_a_program_prints_the_same_whatever_is_remembered(tmp_path: Path, word: str) -> None:
    """As an earlier run may have left it, of all its loops."""
    script = written(tmp_path, LOOP)
    wanted = seen(tmp_path / "plain", [str(script)])
    key = source_hash(script.read_bytes() + f"{sys.version} {mgjit.__version__}".encode()).hex()
    lines = [Verdict(word, 900.0, 1e-3, 10.0, "it is refused").line(key, number) for number in range(4)]
    (tmp_path / "loops").write_text("".join(lines))
    for number in range(2):
        assert seen(tmp_path / f"run {number}", ["-m", "mgjit", "run", str(script)]) == wanted
