"""Processes that are measured from their start to their end, with what the processes they start cost as well."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Finished:
    """What a process has printed and cost.

    Attributes:
        code: its exit code, None where it was ended after the limit.
        wall: seconds from start to end. processor: its own and those of the processes it has waited for; nan where
            the system does not tell.
    """

    code: int | None
    wall: float
    processor: float
    out: str
    err: str


def timed(argv: Sequence[str], environment: Mapping[str, str], limit: float, where: Path | None = None) -> Finished:
    """Run a process in a folder to its end; after `limit` seconds it is killed, with all that it has started."""
    before, started = waited_for(), time.perf_counter()
    process = subprocess.Popen(
        argv, env=environment, cwd=where, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    code: int | None
    try:
        out, err = process.communicate(timeout=limit)
        code = process.returncode
    except BaseException as error:
        end_group(process)
        out, err = process.communicate()
        code = None
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
    return Finished(code, time.perf_counter() - started, waited_for() - before, out, err)


def end_group(process: subprocess.Popen[str]) -> None:
    """Kill a process and those in its group."""
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def waited_for() -> float:
    """Processor seconds of all processes that this one has waited for."""
    used = os.times()
    return used.children_user + used.children_system if os.name == "posix" else float("nan")


@contextmanager
def folder() -> Iterator[Path]:
    """A temporary folder; a process that was killed may have left one behind that still writes there."""
    path = tempfile.mkdtemp()
    try:
        yield Path(path)
    finally:
        shutil.rmtree(path, ignore_errors=True)


def environment(cache: Path, **settings: str) -> dict[str, str]:
    """The environment of a process that finds this copy of mgjit, with a disk cache of its own.

    Its modules are compiled to code of Python, as `pip install` does.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MGJIT_") or name == "MGJIT_CC"}
    modules = {"PYTHONPYCACHEPREFIX": _compiled_modules(), "PYTHONDONTWRITEBYTECODE": ""}
    return {**kept, "PYTHONPATH": str(ROOT), "MGJIT_CACHE_DIR": str(cache), **modules, **settings}


@functools.cache
def _compiled_modules() -> str:
    """A folder with the modules of mgjit and of the benchmarks, compiled; another interpreter adds its own."""
    path = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    settings = {**os.environ, "PYTHONPYCACHEPREFIX": path, "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, "-m", "compileall", "-q", str(ROOT / "mgjit"), str(ROOT / "bench")]
    subprocess.run(command, env=settings, check=False)  # what cannot be compiled is found by those who import it
    return path
