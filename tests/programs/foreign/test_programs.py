"""Programs in the styles that people write, each with its own autograd class or none: a decorator is all they need.

Every program runs undecorated and compiled; what the steps return, and everything that can be seen of parameters and
state, is equal bit for bit after every call.
"""

from __future__ import annotations

import functools
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit.errors import TraceError
from tests.programs.foreign.running import CHANGES, NAMES, PROGRAMS, Snapshot, bits, difference, run

BACKENDS: dict[str, dict[str, Any]] = {
    "gcc": {"compiler": "gcc", "optimisation": "-O1"},
    "tcc": {"compiler": "tcc"},
    "python": {"backend": "python"},
}
#: Programs whose gradients are None until the first call has run, which is another step.
NONE_AT_FIRST = {"batch_norm", "lstm"}


@functools.cache
def undecorated(name: str) -> list[Snapshot]:
    """What a program does, with its changes."""
    with tempfile.TemporaryDirectory() as folder:
        return run(name, lambda step: step, Path(folder))[0]


@pytest.mark.parametrize("backend", ["gcc", pytest.param("tcc", marks=pytest.mark.once), "python"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled
def test_01_equal_bit_for_bit(name: str, backend: str, tmp_path: Path) -> None:
    """Results and state after each call; traced once."""
    wanted = undecorated(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, steps = run(name, mgjit.compile(**BACKENDS[backend]), tmp_path)
    assert len(wanted) >= 4
    for number, (mine, theirs) in enumerate(zip(wanted, found)):
        assert not difference(list(mine), list(theirs)), f"call {number}"
    traces = 2 if name in NONE_AT_FIRST else 1
    assert [step.stats.traces for step in steps] == [traces] * len(steps), [step.stats.retraces for step in steps]


@pytest.mark.parametrize("name", NAMES)
def test_02_the_calls_differ(name: str) -> None:
    """No two calls give the same, so that a call that did nothing would be seen."""
    results = [repr(snapshot) for snapshot in undecorated(name)]
    assert len(set(results)) == len(results)


@pytest.mark.parametrize("name", NAMES)
def test_03_the_programs_know_nothing_of_mgjit(name: str) -> None:
    """They are not written for it."""
    assert "mgjit" not in (PROGRAMS / f"{name}.py").read_text(encoding="utf-8")


@pytest.mark.usefixtures("no_paths")
def test_04_what_has_to_be_changed_is_refused() -> None:
    """A node that a traced index chooses among closures: there is no telling which way backward() goes."""
    assert CHANGES.keys() == {"reinforce"}
    with pytest.raises(TraceError, match=r"reinforce\.py:\d+: which Value is meant depends on a traced number"):
        run("reinforce", mgjit.compile(backend="python"))


def test_05_differences_are_seen() -> None:
    """The comparison tells what is equal to Python, but not the same."""
    a: Any = [1.0, {"t": 1, "m": (0.0, float("nan"))}]
    assert not difference(bits(a), bits([1.0, {"t": 1, "m": (0.0, float("nan"))}]))
    for other in (
        [1.0, {"t": 1, "m": (-0.0, float("nan"))}],
        [1.0, {"t": 1.0, "m": (0.0, float("nan"))}],
        [1.0000000000000002, {"t": 1, "m": (0.0, float("nan"))}],
        [1.0, {"t": True, "m": (0.0, float("nan"))}],
        [1.0, {"t": 1, "m": [0.0, float("nan")]}],
        [1.0, {"t": 1, "m": (0.0,)}],
    ):
        assert difference(bits(a), bits(other))
