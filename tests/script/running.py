"""Run scripts as plain Python and by `python -m mgjit run`, and compare all that can be seen from outside."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPTS = ROOT / "bench" / "unmodified"


@dataclass
class Seen:
    """What a process has left: its output, its exit code, and the files in its folder."""

    out: str
    err: str
    code: int
    files: dict[str, bytes]


def seen(folder: Path, words: Sequence[str], **settings: str) -> Seen:
    """Run Python in a new folder, waiting for code by the quickest compiler, not building it in the background."""
    folder.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "MGJIT_BACKGROUND": "0"}
    if shutil.which("tcc"):
        environment["MGJIT_CC"] = "tcc"
    environment.update(settings)
    found = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, text=True, capture_output=True, timeout=300, check=False
    )
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    return Seen(found.stdout, found.stderr, found.returncode, files)


def both(folder: Path, script: Path, arguments: Sequence[str] = (), options: Sequence[str] = ("--eager",)) -> Seen:
    """Run a script both ways, and require that nothing differs; returns what was seen."""
    plain = seen(folder / "plain", [str(script), *arguments])
    run = seen(folder / "run", ["-m", "mgjit", "run", *options, str(script), *arguments])
    assert run == plain
    return plain


def explained(folder: Path, script: Path, arguments: Sequence[str] = (), options: Sequence[str] = ("--eager",)) -> str:
    """What `--explain` says about a script, whose output must be that of Python, whatever clocks say."""
    plain = seen(folder / "plain", [str(script), *arguments])
    words = ["-m", f"{__package__}.unhurried", "run", "--explain", *options, str(script), *arguments]
    run = seen(folder / "run", words)
    seen_of_run, wanted = (run.out, run.code, run.files), (plain.out, plain.code, plain.files)
    assert seen_of_run == wanted, f"{seen_of_run} instead of {wanted}: {run.err[-2000:]}"
    assert run.err.startswith(plain.err)
    return run.err[len(plain.err) :]
