"""The smallest caller of an export, and its page."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from .compiling import COMPILERS, flags_of, require
from .steps import classifier, momentum, prediction

pytestmark = pytest.mark.once

MAKERS = {"training": classifier, "forward": prediction, "with state": momentum}


@pytest.mark.parametrize("weights", ["inside", "file"])
@pytest.mark.parametrize("name", MAKERS)
def test_the_example_prints_what_the_first_recorded_call_gives(name: str, weights: str, tmp_path: Path) -> None:
    step, _, calls = MAKERS[name]()
    step.export(tmp_path, "net", calls=calls, weights=weights)
    for compiler in COMPILERS:
        sources = ["net.c", "net_example.c", "-o", "example", "-lm"]
        subprocess.run([require(compiler), *flags_of(compiler), *sources], check=True, cwd=tmp_path)
        done = subprocess.run(["./example"], check=True, cwd=tmp_path, capture_output=True, text=True)
        recorded = (tmp_path / "net_check.c").read_text("ascii").split("results[CALLS]")[1]
        first = re.findall(r"-?(?:0x[\w.]+p[+-]\d+|\d+\.\d+)", recorded.split("},")[0])
        assert done.stdout.split() == [f"{float.fromhex(number):.9g}" for number in first if first]


def test_the_commands_of_the_page_work(tmp_path: Path) -> None:
    step, _, calls = classifier()
    step.export(tmp_path, "net", calls=calls)
    page = (tmp_path / "net_readme.md").read_text("ascii")
    require("cc")
    for command in page.split("```sh\n")[1].split("\n```")[0].splitlines():
        subprocess.run(command, shell=True, check=True, cwd=tmp_path, capture_output=True)  # noqa: S602
    assert set(re.findall(r"^\| `(\S+?)` \|", page.split("```")[0], re.MULTILINE)) == {
        p.name for p in tmp_path.iterdir() if p.suffix and p.name != "net_readme.md"
    }
