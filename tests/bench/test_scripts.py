"""The twenty scripts print the same, decorated and undecorated; what the table says of runs; nothing is timed."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import scripts
from bench.processes import Finished

NAMES = sorted(path.stem for path in scripts.SCRIPTS.glob("*.py"))


@pytest.mark.once
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled(one_of=3)
def test_a_script_prints_what_it_prints_undecorated(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STEPS", "2")
    monkeypatch.setenv("MGJIT_CC", "tcc")
    printed = []
    for disabled in ("1", "0"):
        monkeypatch.setenv("MGJIT_DISABLE", disabled)
        names = runpy.run_path(str(scripts.SCRIPTS / f"{name}.py"), run_name="__main__")
        printed.append(capsys.readouterr().out)
    assert printed[0].strip()
    assert printed[0] == printed[1]
    steps = [thing for thing in names.values() if type(thing).__name__ == "CompiledStep"]
    assert any(step.stats.traces for step in steps)
    assert not any(step.stats.mismatches for step in steps)


def test_there_are_twenty_and_those_with_varying_shapes_are_among_them() -> None:
    assert len(NAMES) == 20
    assert set(NAMES) > scripts.VARYING


def finished(code: int | None = 0, out: str = "1.0\n", err: str = "") -> Finished:
    return Finished(code, 2.0, 1.0, out, err)


def test_what_a_run_has_told_is_noted(tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    told.write_text('{"steps": 7, "traced": 2, "plain_calls": 1, "mismatches": ["a bit"]}')
    way = scripts.Way()
    scripts.note(way, finished(), told)
    scripts.note(way, finished(code=1, err="Traceback\nValueError: no"), told)
    scripts.note(way, finished(code=None), told)
    assert (way.steps, way.traced, way.plain_calls) == (7, 2, 1)
    assert way.problems == ["a bit", "failed: ValueError: no", "not done after 2 s"]
    assert (way.seconds("wall"), way.seconds("processor")) == (2.0, 1.0)


def test_the_first_difference_is_named() -> None:
    assert scripts.first_difference("a\nb\n", "a\nc\n") == "printed 'c' instead of 'b'"
    assert scripts.first_difference("a\n", "a\nb\n") == "printed 'b' instead of '(end)'"


def test_medians_are_of_fixed_and_of_varying_shapes() -> None:
    def ways(plain: float, cold: float) -> dict[str, Any]:
        return {way: scripts.Way(wall=[seconds]) for way, seconds in (("plain", plain), ("cold", cold), ("warm", 1.0))}

    found = {"moons": ways(4.0, 2.0), "digits": ways(4.0, 1.0), "trees": ways(4.0, 8.0)}
    assert scripts.medians(found, "wall") == [
        "fixed, cold: plain / cold 3.00, at least 2.00",
        "fixed, warm: plain / warm 4.00, at least 4.00",
        "varying, cold: plain / cold 0.50, at least 0.50",
        "varying, warm: plain / warm 4.00, at least 4.00",
    ]


def test_a_script_of_ones_own_is_run_in_all_ways(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "mine.py"
    script.write_text("import os\nSTEPS = 3\nprint(os.environ.get('MGJIT_DISABLE'))\n")
    assert scripts.main([str(script), "--python", sys.executable, "--pause", "0"]) == 1
    printed = capsys.readouterr().out
    assert "| mine |  | 3 | 0 | 0 |" in printed
    assert "mine, cold: printed 'None' instead of '1'" in printed
