"""The programs in the README and in docs/ run as they stand, in a process of their own, and print what is shown.

1. A block that imports mgjit, or whose first line names a file (`# train.py`), is a program.  One that imports such a
   file finds it, from whatever page of its folder, and has had it run.
2. Other blocks go on where those of their page before them have ended.
3. Below a program may stand what it prints, in a block of text.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

from bench import picture

ROOT = Path(__file__).resolve().parent.parent
#: Pages whose other blocks are about the reader's own step.
FRAGMENTS = {"docs/howto/machines.md"}
#: Those that have tests of their own, of what is printed beside them as well.
TESTED = {"docs/ir.md", "docs/passes.md", "docs/robustness.md", "docs/how-it-works/index.md"}


class Program(NamedTuple):
    """A block of a page.

    Attributes:
        page: from the root. line: its first. before: of the same page. shown: what it prints, if that is there.
    """

    page: str
    line: int
    source: str
    before: tuple[str, ...]
    shown: str | None

    @property
    def file(self) -> str | None:
        """The name that its first line gives it."""
        named = re.match(r"# (\w+\.py)\n", self.source)
        return named and named[1]

    @property
    def is_whole(self) -> bool:
        """Whether somebody may copy it as it stands."""
        return bool(self.file or re.search(r"^(import|from) mgjit\b", self.source, re.MULTILINE))


def programs() -> list[Program]:
    found = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        page, text = path.relative_to(ROOT).as_posix(), path.read_text("utf-8")
        before: list[str] = []
        if page not in TESTED:
            for match in re.finditer(
                r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", text, re.DOTALL | re.MULTILINE
            ):
                line = text[: match.start()].count("\n") + 2
                found.append(Program(page, line, match[1], tuple(before), match[2]))
                before.append(match[1])
    return found


ALL = programs()


def run(source: str, folder: Path, page: str, *command: str, **variables: str) -> str:
    """What a program prints, run in a folder with the files of its page's folder that it imports."""
    for one in ALL:
        is_beside = one.file and Path(one.page).parent == Path(page).parent
        if is_beside and re.search(rf"^from {one.file[:-3]} ", source, re.M):  # type: ignore[index]
            shutil.copytree(_made(one)[0].name, folder, dirs_exist_ok=True)
    return _printed("program.py", source, folder, *command, **variables)


@functools.cache
def _cache() -> tempfile.TemporaryDirectory[str]:
    """Where the kernels of all programs are kept, whose pages show the same step again and again."""
    return tempfile.TemporaryDirectory()


@functools.cache
def _made(one: Program) -> tuple[tempfile.TemporaryDirectory[str], str]:
    """A folder in which a file has run, and what that has printed."""
    folder = tempfile.TemporaryDirectory()
    return folder, _printed(str(one.file), one.source, Path(folder.name))


def _printed(file: str, text: str, folder: Path, *command: str, **variables: str) -> str:
    environment = {name: text for name, text in os.environ.items() if not name.startswith("MGJIT_")}
    environment.update(PYTHONPATH=str(ROOT), MGJIT_CACHE_DIR=_cache().name, **variables)
    (folder / file).write_text(text, "utf-8")
    done = subprocess.run(
        [sys.executable, *command, file],
        check=False,
        cwd=folder,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


WHOLE = [one for one in ALL if one.is_whole]
#: The last ones of their pages, which run all before them.
OTHERS = list({one.page: one for one in ALL if not one.is_whole and one.page not in FRAGMENTS}.values())


@pytest.mark.once
@pytest.mark.parametrize("program", WHOLE, ids=lambda one: f"{one.page}:{one.line}")
def test_programs_run_as_they_stand(program: Program, tmp_path: Path) -> None:
    if "mpi4py" in program.source:
        pytest.importorskip("mpi4py")
    printed = _made(program)[1] if program.file else run(program.source, tmp_path, program.page)
    if program.shown is not None:
        assert printed == program.shown


@pytest.mark.once
@pytest.mark.parametrize("program", OTHERS, ids=lambda one: f"{one.page}:{one.line}")
def test_the_blocks_of_a_page_go_on_from_each_other(program: Program, tmp_path: Path) -> None:
    run("\n".join([*program.before, program.source]), tmp_path, program.page)


def test_the_readme_prints_the_same_without_mgjit(tmp_path: Path) -> None:
    """In fewer steps."""
    (program,) = [one for one in WHOLE if one.page == "README.md"]
    shorter = program.source.replace("range(2001)", "range(5)").replace("% 500", "% 2")
    plain = run(shorter, tmp_path, program.page, MGJIT_DISABLE="1")
    assert plain.count("\n") == 3
    assert run(shorter, tmp_path, program.page) == plain


@pytest.mark.once
@pytest.mark.parametrize("program", [one for one in WHOLE if "mgjit" not in one.source], ids=lambda one: one.page)
def test_scripts_that_know_nothing_of_mgjit_print_the_same_under_it(program: Program, tmp_path: Path) -> None:
    assert program.shown
    assert run(program.source, tmp_path, program.page, "-m", "mgjit", "run") == program.shown


def test_there_are_programs() -> None:
    assert len(WHOLE) >= 15
    assert len([one for one in WHOLE if one.shown]) >= 12


def test_the_picture_shows_the_results() -> None:
    """Otherwise run `python bench/picture.py`."""
    assert picture.PICTURE.read_text("utf-8") == picture.picture()
    assert picture.time_text(6.78e-6) == "6.8 µs"
    readme = (ROOT / "README.md").read_text("utf-8")
    (described,) = re.findall(r"!\[([^\]]*)\]\(docs/speed.svg\)", readme)
    drawn = re.findall(r">([\d.]+ (?:µs|ms|s))[,<]", picture.picture())
    assert re.findall(r"[\d.]+ (?:µs|ms|s)\b", described) == drawn[-5:]
