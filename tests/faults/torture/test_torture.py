"""The short form of every scenario, each in a process of its own: what they do is written in their modules.

The scenarios fork, and count on a process that has not used mgjit; the one that runs the tests has.  The long form is
`python -m tests.faults.torture --long`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.torture.__main__ import SCENARIOS

ROOT = Path(__file__).resolve().parents[3]

pytestmark = [pytest.mark.long, pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")]


@pytest.mark.parametrize("name", SCENARIOS)
def test_01_nothing_breaks(name: str, tmp_path: Path) -> None:
    """A scenario finds nothing wrong."""
    result = tmp_path / "result.json"
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.torture", name, "--quiet", "--json", str(result)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    (row,) = json.loads(result.read_text())["rows"]
    if row["result"] == "skipped":
        pytest.skip(row["detail"])
    assert row["result"] == "passed"
    assert row["figures"], "a scenario that counts nothing does nothing"
