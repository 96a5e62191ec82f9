"""Compilers that are shell scripts, and what they leave behind."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from pathlib import Path

import pytest

from mgjit.compiler.toolchain import compilers
from mgjit.compiler.toolchain.compilers import Compiler


def real(family: str) -> Compiler:
    """An installed compiler of a family."""
    compiler = compilers._of_family(family)
    if compiler is None:
        pytest.skip(f"{family} is not installed")
    return compiler


def fake(directory: Path, body: str, name: str = "fakecc") -> Compiler:
    """A compiler that is a shell script; `$out` is the file it should make."""
    if os.name != "posix":
        pytest.skip("fake compilers are shell scripts")
    script = directory / name
    head = '#!/bin/sh\nprev=; for a in "$@"; do [ "$prev" = -o ] && out=$a; prev=$a; done\n'
    script.write_text(head + body + "\n", encoding="utf-8")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return Compiler("gcc", (str(script),), str(script))


def left_over(directory: Path) -> list[Path]:
    """What is in the directory that tests have for temporary files."""
    return list((directory / "scratch").iterdir())


def alive(pid: int) -> bool:
    """Whether a process still runs, after a moment for it to end; one that nobody has waited for yet does not."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return False
        time.sleep(0.05)
    return True
