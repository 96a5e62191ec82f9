"""docs/howto/microcontroller.md: its example runs, and what it says of the files is so."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.export.compiling import require

DOCUMENT = (Path(__file__).parents[2] / "docs" / "howto" / "microcontroller.md").read_text("utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture
def exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "example.py"
    source.write_text(block("python"))
    exec(compile(block("python"), str(source), "exec"), {"__name__": "example"})  # noqa: S102 - the example
    return tmp_path


def test_the_commands_build_and_check_it(exported: Path) -> None:
    require("cmake")
    require("cc")
    for command in block("sh").splitlines():
        done = subprocess.run(
            [require("bash"), "-c", command], cwd=exported, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    printed = re.search(r"prints `(.*?)`", DOCUMENT)
    assert printed is not None
    assert done.stdout == f"{printed[1]}\n"


def test_the_caller_compiles(exported: Path) -> None:
    caller = exported / "caller.c"
    caller.write_text(block("c"))
    command = [require("gcc"), "-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-Inet", "-c", str(caller)]
    subprocess.run([*command, "-o", str(exported / "caller.o")], check=True, cwd=exported)


def test_the_files_that_it_names_exist(exported: Path) -> None:
    names = set(re.findall(r"`(net\.[ch]|net_(?:check|example)\.c|net_readme\.md|CMakeLists\.txt)`", DOCUMENT))
    assert names == {path.name for path in (exported / "net").iterdir()}
