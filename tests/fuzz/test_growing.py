"""Random programs whose loops grow give the numbers of the undecorated ones.

`hunt.py --growing --seed N --programs 1` shortens one that fails.
"""

from __future__ import annotations

import pytest

from mgjit.compiler.pipeline import pipeline
from mgjit.compiler.roll.growing import Rolled
from mgjit.compiler.roll.reach import Reach
from mgjit.ir.trace import Trace
from tests.fuzz import oracle
from tests.fuzz.growing import growing_program

pytestmark = pytest.mark.fuzz


@pytest.mark.parametrize(("way", "start"), [("interpreter", 0), ("python", 100), ("lanes-4", 200), ("lanes-8", 300)])
def test_01_the_numbers_of_the_undecorated_program(way: str, start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many of them have loops that grow, not only loops of constant counts and single statements."""
    padded = 0
    original = pipeline.roll_growing

    def counting(trace: Trace, reach: Reach) -> Rolled:
        nonlocal padded
        rolled = original(trace, reach)
        padded += len(rolled.trace) > len(trace)
        return rolled

    monkeypatch.setattr(pipeline, "roll_growing", counting)
    count = 8
    for seed in range(start, start + count):
        assert not oracle.check(growing_program(seed), way), seed
    assert padded >= count // 4
