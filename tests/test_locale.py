"""A locale with a decimal comma, in the environment and in the process: the same text of C, the same numbers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

NAME = "de_DE.UTF-8"

PROGRAM = f"""
import hashlib, locale, sys
sys.path.insert(0, {str(ROOT)!r})
found = locale.setlocale(locale.LC_ALL, "")
comma = locale.localeconv()["decimal_point"]
import mgjit
from mgjit.errors import CompilerError

for options in [dict(compiler="gcc"), dict(compiler="clang"), dict(compiler="tcc"), dict(backend="python")]:
    for dtype in ("float64", "float32"):
        w = mgjit.Value(1234567.891)

        @mgjit.compile(dtype=dtype, cache=False, **options)
        def step(x):
            loss = (w * 0.1 + x / 3.7) ** 2 + mgjit.exp(w * -1.5e-7) + 1234.5
            w.grad = 0.0
            loss.backward()
            w.data -= 1e-9 * w.grad
            return loss

        try:
            print(step(2.5).hex(), w.data.hex(), w.grad.hex())
        except CompilerError as error:
            assert "there is no C compiler" in str(error), error
            continue
        source = step.lower(2.5).c_source if "compiler" in options else ""
        print(hashlib.sha256((source or "").encode()).hexdigest())
print(comma, file=sys.stderr)
"""


def directory_with_locale(place: Path) -> dict[str, str]:
    """Variables under which the locale can be used: installed, or made for this test."""
    probe = "import locale; locale.setlocale(locale.LC_ALL, '')"
    installed = {"LC_ALL": NAME}
    environment = {**os.environ, **installed}
    if subprocess.run([sys.executable, "-c", probe], check=False, env=environment, capture_output=True).returncode == 0:
        return installed
    program = shutil.which("localedef")
    made = place / NAME
    if program is not None:
        subprocess.run([program, "-i", "de_DE", "-f", "UTF-8", str(made)], check=False, capture_output=True)
    if not made.exists():
        pytest.skip(f"the locale {NAME} is not installed, and localedef cannot make it")
    return {"LC_ALL": NAME, "LOCPATH": str(place)}


def test_01_the_decimal_comma_changes_nothing(tmp_path: Path) -> None:
    """C source, constants and results of every backend are those under the locale C."""
    found = []
    for variables, comma in ((directory_with_locale(tmp_path), ","), ({"LC_ALL": "C"}, ".")):
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            check=False,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
        )
        assert run.returncode == 0, run.stderr
        assert run.stderr.split()[-1] == comma
        found.append(run.stdout)
    assert found[0] == found[1]
    assert len(found[0].split()) >= 8
