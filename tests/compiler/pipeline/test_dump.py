"""MGJIT_DUMP: the Program after each pass, in files."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit.compiler.pipeline import dump, pipeline
from mgjit.compiler.pipeline.order import PASSES, Work
from mgjit.compiler.pipeline.pipeline import lower
from mgjit.ir.printer import print_program
from tests.lowering import STAGES, WIDE, Example, numbers, sgd


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where Programs are written; it does not exist yet."""
    place = tmp_path / "new" / "dump"
    monkeypatch.setenv("MGJIT_DUMP", str(place))
    monkeypatch.setattr(dump, "_warned", set())
    return place


def made() -> Example:
    """A step of a small network, traced."""
    model = mgjit.nn.MLP(4, [8, 2])

    def step(x: Any) -> Any:
        loss = sum(s**2 for s in model(x))
        model.zero_grad()
        loss.backward()
        sgd(model.parameters(), 0.1)
        return loss

    return Example(step, numbers(4))


def test_01_every_pass_has_a_file(folder: Path) -> None:
    """Numbered in their order; the texts are the Programs, each once."""
    example = made()
    lowered = lower(example.trace, example.regions, WIDE, name="train")
    assert [path.name for path in folder.iterdir()] == ["train.1"]
    files = sorted((folder / "train.1").iterdir())
    names = [f"{number:02}-{name.replace(' ', '-')}.txt" for number, name in enumerate(STAGES)]
    assert [path.name for path in files] == names
    texts = [path.read_text(encoding="utf-8") for path in files]
    assert texts[0].startswith("forward:\n")
    last, whole = "", {}
    for file, text in zip(files, texts):
        if text.startswith("as in "):
            assert text == f"as in {last}\n"
        else:
            last, whole[file.name] = file.name, text
    assert len(whole) == len(set(whole.values())) > 8
    assert whole[last] == print_program(lowered.program)
    assert len(whole) < len(files)
    for name, stage in zip(names, STAGES):
        if name in whole:
            assert whole[name] == print_program(example.lower(stage, laid_out=STAGES.index(stage) > 1))


def test_02_a_pass_alone_makes_the_difference(folder: Path) -> None:
    """What only one pass changes is seen in its file, and not before."""
    example = made()
    lower(example.trace, example.regions, WIDE)
    texts = [path.read_text(encoding="utf-8") for path in sorted((folder / "step.1").iterdir())]
    changed = {stage: text for stage, text in zip(STAGES, texts) if not text.startswith("as in ")}
    stages = list(changed)
    place = stages.index("differentiate")
    assert ["backward from" in changed[stage] for stage in stages] == [n < place for n in range(len(stages))]
    assert ["r1[" in changed[stage] for stage in stages[:2]] == [False, True]  # an accumulator
    assert "    backward" not in changed["phases"]


def test_03_folders_of_their_own(folder: Path) -> None:
    """Of each Program that is lowered, also of one that was there before, and of strange names."""
    example = made()
    for _ in range(3):
        lower(example.trace, example.regions, WIDE, name="train")
    lower(example.trace, example.regions, WIDE, name="train", quick=True)
    lower(example.trace, example.regions, WIDE, name="../Model.<locals>.<lambda>/\u00e9")
    names = {path.name for path in folder.iterdir()}
    assert names == {"train.1", "train.2", "train.3", "train.quick.1", ".._Model._locals_._lambda_.1"}
    quick = {path.name[3:-4] for path in (folder / "train.quick.1").iterdir()}
    assert quick == {"lift", *(one.name.replace(" ", "-") for one in PASSES if one.stage != "schedule")}


def test_04_steps_are_built_as_ever(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same code, and under their names; also those that are only looked at."""
    weight = mgjit.Value(0.5)

    def train(x: Any) -> Any:
        weight.data = weight.data * x
        return weight * 2.0

    compiled = mgjit.compile(train, backend="python", background=False)
    assert compiled(2.0).data == 2.0
    assert [path.name for path in folder.iterdir()] == [f"{train.__qualname__.replace('<', '_').replace('>', '_')}.1"]
    source = compiled.lower(2.0).c_source
    assert len(list(folder.iterdir())) == 2
    monkeypatch.delenv("MGJIT_DUMP")
    assert compiled.lower(2.0).c_source == source
    assert len(list(folder.iterdir())) == 2


def test_05_in_the_other_process(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is built in the background is written by the process that builds it, relative to where the program is."""
    monkeypatch.setenv("MGJIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MGJIT_DUMP", "here")
    weight = mgjit.Value(0.5)

    def train(x: Any) -> Any:
        weight.data = weight.data * x
        return weight * 2.0

    compiled = mgjit.compile(train, compiler="tcc", background=True)
    compiled(1.0)
    compiled.wait()
    (found,) = {path.name.partition("train")[2] for path in (tmp_path / "here").iterdir()}
    assert found in (".1", ".quick.1")


@pytest.mark.parametrize("when", ["at first", "later"])
def test_06_what_cannot_be_written(when: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One warning, however many steps there are, and the same Program."""
    example = made()
    expected = print_program(lower(example.trace, example.regions, WIDE).program)
    if when == "at first":
        blocked = folder / "step.1" / "00-lift.txt"
        monkeypatch.setenv("MGJIT_DUMP", str(blocked / "inside"))
        with pytest.warns(UserWarning, match="MGJIT_DUMP: nothing can be written to .*inside") as caught:
            found = [print_program(lower(example.trace, example.regions, WIDE).program) for _ in range(3)]
    else:

        def fill(name: str, *_: Any, **__: Any) -> Any:
            raise OSError(28, "No space left on device", name)

        monkeypatch.setattr(dump, "open", fill, raising=False)
        with pytest.warns(UserWarning, match="No space left") as caught:
            found = [print_program(lower(example.trace, example.regions, WIDE).program)]
    assert found == [expected] * len(found)
    assert len(caught) == 1


def test_07_a_broken_pass(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has left is written, even if it cannot be printed, and so is everything of the next attempt."""

    def damage(work: Work) -> None:
        work.program.forward.append(None)  # type: ignore[arg-type]

    broken = tuple(one._replace(run=damage) if one.name == "hoist" else one for one in PASSES)
    monkeypatch.setattr(pipeline, "PASSES", broken)
    example = made()
    with pytest.warns(UserWarning, match="its pass 'hoist' fails"):
        lower(example.trace, example.regions, WIDE)
    attempts = sorted(folder.iterdir())
    assert [path.name for path in attempts] == ["step.1", "step.2", "step.3"]
    (text,) = [path.read_text(encoding="utf-8") for path in attempts[1].iterdir() if "hoist" in path.name]
    assert text.startswith("cannot be printed: ")
    assert not [path for path in attempts[2].iterdir() if "hoist" in path.name]


def test_08_nothing_without_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Program is printed."""
    monkeypatch.delenv("MGJIT_DUMP")
    monkeypatch.setattr(dump, "print_program", None)
    monkeypatch.chdir(tmp_path)
    example = made()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lower(example.trace, example.regions, WIDE)
    assert os.listdir(tmp_path) == []
