"""Random programs, exported: C compiled by itself leaves the bits of the undecorated step.

`hunt.py --ways export,export-gcc,export32 --seed N` runs more of them, and shortens those that fail.
"""

from __future__ import annotations

import sys

import pytest

from tests.export.compiling import require
from tests.fuzz import exported, oracle
from tests.fuzz.growing import growing_program
from tests.fuzz.programs import random_program

pytestmark = pytest.mark.fuzz


#: The oracle of float32 adds numbers with a `sum` of its own from Python 3.12 on, which is not compensated.
FLOAT32 = pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python's sum of floats is compensated")


@pytest.mark.parametrize(("way", "start"), [("export", 0), pytest.param("export32", 50, marks=FLOAT32)])
def test_random_programs(way: str, start: int) -> None:
    require("tcc")
    before = exported.counts["exported"]
    for seed in range(start, start + 4):
        assert not oracle.check(random_program(seed), way), seed
    assert exported.counts["exported"] - before >= 4  # most of their calls


def test_loops_that_grow() -> None:
    require("tcc")
    for seed in range(2):
        assert not oracle.check(growing_program(seed), "export"), seed
