"""`%%mgjit` and `mgjit.install()` in IPython: cells whose training loops try compiled steps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.script.running import ROOT, SCRIPTS

pytest.importorskip("IPython")

CELL = """
for step in range(6):
    loss = (model([0.1, 0.2])[0] - 0.5) ** 2
    for p in model.parameters():
        p.grad = 0.0
    loss.backward()
    for p in model.parameters():
        p.data -= 0.01 * p.grad
print(loss.data)
"""
SESSION = f"""
import sys
sys.path.insert(0, {str(SCRIPTS)!r})
from IPython.core.interactiveshell import InteractiveShell
from mgjit.script.section import Section
Section.is_eager = True
shell = InteractiveShell.instance()
def run(cell):
    shell.run_cell(cell).raise_error()
run("from engine import MLP")
run("model = MLP([2, 4, 1])")
run({CELL!r})
run({CELL!r})
run("model = MLP([2, 4, 1])")
run("%load_ext mgjit")
run("%%mgjit" + {CELL!r})
run("import mgjit; mgjit.install()")
run({CELL!r})
run("print(loss.data, step)")
"""


def test_cells(tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-c", SESSION], cwd=tmp_path, text=True, capture_output=True, timeout=300, check=True,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "MGJIT_BACKGROUND": "0",
             "MGJIT_CACHE_DIR": str(tmp_path / "cache")},
    )  # fmt: skip
    first, second, again, explained, installed, last = found.stdout.splitlines()
    assert (again, installed) == (first, second)
    assert last == f"{second} 5"
    assert "5 compiled calls" in explained
