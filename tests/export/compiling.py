"""Compiling exported C as a user would, and running it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

COMPILERS = ("gcc", "clang", "tcc")
STRICT = (
    "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wdouble-promotion", "-Wfloat-conversion", "-Wshadow",
    "-Wmissing-prototypes", "-Werror",
)  # fmt: skip


def require(command: str) -> str:
    """The path of a program; the test is skipped where it is missing."""
    found = shutil.which(command)
    if found is None:
        pytest.skip(f"{command} is not installed")
    return found


def flags_of(compiler: str) -> list[str]:
    """Those of a careful user."""
    return ["-std=c99", "-Wall", "-Werror"] if compiler == "tcc" else ["-std=c99", "-ffp-contract=off", *STRICT]


def compiled(folder: Path, name: str, compiler: str = "tcc", more: Sequence[str] = ()) -> Path:
    """The self-checking program of an export."""
    program = folder / f"{name}_{compiler}"
    sources = [str(folder / f"{name}.c"), str(folder / f"{name}_check.c")]
    command = [require(compiler), *flags_of(compiler), *more, *sources, "-o", str(program), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


def checked(folder: Path, name: str, compiler: str = "tcc", more: Sequence[str] = ()) -> str:
    """What the self-checking program of an export prints; it must find nothing wrong."""
    program = compiled(folder, name, compiler, more)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stdout
    return done.stdout


def object_file(folder: Path, name: str, compiler: str = "gcc", more: Sequence[str] = ("-O2",)) -> Path:
    """The exported code alone, compiled."""
    made = folder / f"{name}.o"
    command = [
        require(compiler),
        "-std=c99",
        "-ffp-contract=off",
        *more,
        "-c",
        str(folder / f"{name}.c"),
        "-o",
        str(made),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return made


def symbols(made: Path) -> list[tuple[str, str]]:
    """(kind, name) of the symbols of an object file, as `nm` gives them."""
    text = subprocess.run([require("nm"), str(made)], check=True, capture_output=True, text=True).stdout
    return [(line.split()[-2], line.split()[-1]) for line in text.splitlines() if line.strip()]


def sections(made: Path) -> dict[str, int]:
    """The size of each section of an object file, in bytes."""
    command = [require("size"), "-A", str(made)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {name: int(size) for name, size in re.findall(r"^(\.\S+)\s+(\d+)", text, re.MULTILINE)}
