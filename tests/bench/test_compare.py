"""What is compared, and the table that is made of it; nothing is timed."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import compare
from bench.compare import Entry, Result
from bench.workloads import WORKLOADS

PEER: Any = None  # no process is needed


def entry(label: str, *seconds: float) -> Entry:
    return Entry(label, label, PEER, 1, 0.5, seconds=list(seconds))


def test_strict_forms_are_compared_exactly_and_others_within_a_tolerance() -> None:
    strict, fast = WORKLOADS["W1"], WORKLOADS["W5"]
    nearly = 1.0 + 1e-12
    assert compare.difference("C by hand", strict, [1.0], [1.0]) == ""
    assert "loss 2" in compare.difference("C by hand", strict, [1.0, 1.0], [1.0, nearly])
    assert compare.difference("numpy", strict, [1.0], [nearly]) == ""
    assert compare.difference("C by hand", fast, [1.0], [1.0001]) == ""
    assert compare.difference("numpy", fast, [1.0], [1.01])
    assert compare.difference("numpy", fast, [1.0], [float("nan")])


def test_a_section_has_ratios_to_mgjit_and_to_c() -> None:
    result = Result(
        WORKLOADS["W1"], [entry("mgjit", 2e-6, 4e-6, 3e-6), entry("C by hand", 1.5e-6)], {"torch": "absent"}
    )
    text = "\n".join(compare.section(result))
    assert "| C by hand | 1.50 | 0.5000 | 1.00 | 0.50 |" in text
    assert "| mgjit | 3.00 | 1.00 | 2.00 | 0.50 |" in text
    assert "- torch: absent" in text


def test_a_section_without_c_has_no_ratio_to_it() -> None:
    assert "| mgjit | 3.00 | 1.00 |  | 0.50 |" in compare.section(Result(WORKLOADS["W1"], [entry("mgjit", 3e-6)]))


def test_what_was_measured_before_is_kept_with_its_machine(tmp_path: Path) -> None:
    output = tmp_path / "results.md"
    before = Result(WORKLOADS["W1"], [entry("mgjit", 2e-6, 4e-6, 3e-6)], {"torch": "absent"}, ["an old machine"])
    comparison: Any = argparse.Namespace(absent={}, options=argparse.Namespace(least=False))
    output.with_suffix(".json").write_text(json.dumps(compare.raw(comparison, [before], ["| start |"])))
    found, start = compare.kept(output, least=False)
    assert compare.section(found["W1"]) == compare.section(before)
    one = compare.report(comparison, [found["W1"]], start, "")
    assert one.count("an old machine") == 1
    assert one.endswith("## Start\n\n| start |\n")
    two = compare.report(comparison, [found["W1"], Result(WORKLOADS["W3"], machine=["a new machine"])], [], "")
    assert two.index("## W1") < two.index("an old machine") < two.index("## W3") < two.index("a new machine")


def test_the_python_backend_is_set_against_micrograd_of_the_same_interpreter() -> None:
    entries = [entry("mgjit, Python backend", 1e-3), entry("micrograd", 0.5), entry("PyPy: micrograd", 0.1)]
    assert compare.python_backend([Result(WORKLOADS["W3"], entries)])[4] == "| W3 | CPython | 500 |"
    assert compare.python_backend([Result(WORKLOADS["W3"])]) == []


def test_the_interpreter_is_the_one_given_or_that_of_the_environment_or_this_one(tmp_path: Path) -> None:
    python = tmp_path / "jax" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    options = argparse.Namespace(environments=tmp_path, python_of={"torch": "elsewhere"})
    assert compare.interpreter_of("torch", options) == "elsewhere"
    assert compare.interpreter_of("jax", options) == str(python)
    assert compare.interpreter_of("numba", options) == sys.executable
    assert compare.interpreter_of("mgjit", options) == sys.executable


@pytest.mark.parametrize(
    ("value", "text"), [(12345.6, "12,346"), (123.4, "123"), (12.345, "12.35"), (0.01234, "0.0123")]
)
def test_numbers_have_three_digits_or_so(value: float, text: str) -> None:
    assert compare.number(value) == text


def test_every_peer_has_a_file() -> None:
    folder = Path(compare.__file__).parent / "peers"
    assert {f"with_{name}.py" for name in compare.PEERS} == {path.name for path in folder.glob("with_*.py")}


def test_the_clock_waits_until_a_form_has_settled() -> None:
    """A first round that compiles, and a second one that verifies, say nothing about a step."""
    seconds = [10.0, 0.5, 1e-4]
    asked: list[int] = []

    class Slowly:
        def ask(self, _: float, count: int, **request: Any) -> dict[str, float]:
            asked.append(count)
            return {"seconds": seconds[min(len(asked), len(seconds)) - 1]}

    form = Entry("mgjit", "mgjit", Slowly(), 64, 0.5)  # type: ignore[arg-type]
    compare.Comparison._calibrate(None, form)  # type: ignore[arg-type]
    assert asked[:3] == [64, 64, 64]
    assert sum(asked) * 1e-4 >= compare.WARM_UP
    assert form.count == 320  # rounds that fill a slice
