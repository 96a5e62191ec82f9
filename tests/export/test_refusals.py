"""Bad input of `.export()`: typed errors that name the line, and fixes that work."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit import errors
from tests.export.compiling import checked
from tests.export.steps import classifier

HERE = re.escape(__file__)


@pytest.mark.parametrize(
    "name", ["", "9lives", "two words", "net-1", "int", "class", "_net", "é", None, 3, "a.b", "math", "StdInt"]
)
def test_names_that_are_no_identifiers(name: Any, tmp_path: Path) -> None:
    step, _, calls = classifier()
    if name is None:
        step.__name__ = "<lambda>"
    with pytest.raises(errors.ArgumentValueError, match=rf"{HERE}:\d+: name=.* all names in the exported C begin") as e:
        step.export(tmp_path / "new", name, calls=calls)
    assert not (tmp_path / "new").exists()
    suggested = re.search(r"e\.g\. name='(\w+)'", str(e.value))
    assert suggested is not None
    step.export(tmp_path, suggested[1], calls=calls)
    assert "all bits" in checked(tmp_path, suggested[1])


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    step, _, calls = classifier()
    (tmp_path / "file").write_text("")
    for directory in (tmp_path / "file", tmp_path / "file" / "below", "/proc/mgjit"):
        with pytest.raises(errors.ExportError, match=rf"{HERE}:\d+: .* cannot be written: .*Nothing was exported") as e:
            step.export(directory, "net", calls=calls)
        assert isinstance(e.value, OSError)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_without_permission(tmp_path: Path) -> None:
    step, _, calls = classifier()
    tmp_path.chmod(0o500)
    with pytest.raises(errors.ExportError, match="Permission denied"):
        step.export(tmp_path, "net", calls=calls)
    tmp_path.chmod(0o700)


def test_files_of_other_people(tmp_path: Path) -> None:
    """They stay as they are; what an export has written is written anew."""
    step, _, calls = classifier()
    (tmp_path / "CMakeLists.txt").write_text("project(mine C)\n")
    with pytest.raises(errors.ExportError, match=rf"{HERE}:\d+: .*CMakeLists.txt was not written by an export"):
        step.export(tmp_path, "net", calls=calls)
    assert [path.name for path in tmp_path.iterdir()] == ["CMakeLists.txt"]
    assert (tmp_path / "CMakeLists.txt").read_text() == "project(mine C)\n"
    for _ in range(2):
        step.export(tmp_path / "net", "net", calls=calls)


@pytest.mark.parametrize("calls", [3, [1.0], ["ab"], {"x": 1}, [([0.5] * 12, 1, 0.1), None]])
def test_calls_that_are_no_tuples_of_arguments(calls: Any, tmp_path: Path) -> None:
    step, _, good = classifier()
    with pytest.raises(errors.ArgumentError, match=rf"{HERE}:\d+: calls.* is no tuple of arguments"):
        step.export(tmp_path, "net", calls=calls)
    assert len(step.export(tmp_path, "net", calls=iter(good))) == 6  # type: ignore[arg-type]  # not announced


def test_a_directory_that_is_no_path() -> None:
    step, _, calls = classifier()
    with pytest.raises(errors.ExportError, match="null"):
        step.export("a\0b", "net", calls=calls)
    with pytest.raises(errors.ArgumentError, match="which is no path"):
        step.export(3, "net", calls=calls)


def test_random_numbers_and_the_fix(tmp_path: Path) -> None:
    w = mgjit.Value(0.5)

    @mgjit.compile
    def noisy(x: Any) -> Any:
        return w * x + random.gauss(0.0, 1.0)

    line = noisy._function.__code__.co_firstlineno + 2
    with pytest.raises(errors.RandomnessError, match=rf"{HERE}:{line}: .* draws 1 random number a call: gauss 1 x"):
        noisy.export(tmp_path, calls=[(1.0,)])

    @mgjit.compile
    def fixed(x: Any, noise: Any) -> Any:
        return w * x + noise

    fixed.export(tmp_path, calls=[(1.0, random.gauss(0.0, 1.0))])
    assert "all bits" in checked(tmp_path, "fixed")


def test_strings_and_the_fixes(tmp_path: Path) -> None:
    table = [mgjit.Value(0.1 * k) for k in range(26)]

    def score(word: Any, x: Any) -> Any:
        return sum((table[ord(c) - 97] for c in word), mgjit.Value(0.0)) * x

    with pytest.raises(errors.ArgumentError, match=rf"{HERE}:\d+: argument word .*{HERE}:\d+ is the string 'abc'"):
        mgjit.compile(score).export(tmp_path, "score", calls=[("abc", 2.0)])
    mgjit.compile(static="word")(score).export(tmp_path, "score", calls=[("abc", 2.0)])
    assert "word is fixed: 'abc'" in (tmp_path / "score.h").read_text("ascii")
    assert "all bits" in checked(tmp_path, "score")

    def score_of(letters: Any, x: Any) -> Any:
        return sum((table[k] for k in letters), mgjit.Value(0.0)) * x

    mgjit.compile(score_of).export(tmp_path, "score", calls=[([0, 1, 2], 2.0), ([25, 3, 3], 1.0)])
    assert "all bits" in checked(tmp_path, "score")


def test_elements_of_arguments_that_are_assigned(tmp_path: Path) -> None:
    from array import array

    w = mgjit.Value(2.0)

    @mgjit.compile
    def step(x: Any) -> None:
        x[0] = (w * x[0]).data

    with pytest.raises(errors.UnsupportedError, match=r"assigns elements of argument x.*Let it return"):
        step.export(tmp_path, calls=[(array("d", [1.0, 2.0]),)])


def test_calls_of_another_structure(tmp_path: Path) -> None:
    step, _, calls = classifier()
    with pytest.raises(errors.ArgumentError, match=r"calls\[1\] has arguments of another structure"):
        step.export(tmp_path, "net", calls=[calls[0], (calls[0][0], 1.0, 0.1)])
    with pytest.raises(errors.ArgumentValueError, match="has no call"):
        step.export(tmp_path, "net", calls=[])


def test_nothing_to_export_for(tmp_path: Path) -> None:
    step, _, calls = classifier()
    with pytest.raises(errors.ArgumentError, match=rf"{HERE}:\d+: there is no compiled call.*calls=\["):
        step.export(tmp_path, "net")
    step(*calls[0])
    step.export(tmp_path, "net")
    assert "all bits" in checked(tmp_path, "net")


def test_ints_beyond_32_bits(tmp_path: Path) -> None:
    w = mgjit.Value(2.0)

    @mgjit.compile
    def step(n: Any) -> Any:
        return w * n

    with pytest.raises(errors.ArgumentValueError, match="argument n is an int beyond 32 bits"):
        step.export(tmp_path, calls=[(2**40,)])
    step.export(tmp_path, calls=[(float(2**40),)])
    assert "all bits" in checked(tmp_path, "step")


def test_weights_elsewhere(tmp_path: Path) -> None:
    step, _, calls = classifier()
    with pytest.raises(errors.ArgumentValueError, match="weights='cloud' is not one of 'inside', 'file'"):
        step.export(tmp_path, "net", calls=calls, weights="cloud")


def test_inside_of_a_step(tmp_path: Path) -> None:
    inner, _, calls = classifier()

    @mgjit.compile(background=False)
    def outer(x: Any) -> Any:
        inner.export(tmp_path, "net", calls=calls)
        return x

    with pytest.raises(errors.PhaseError, match="cannot be part of the step that is being traced"):
        outer(1.0)
