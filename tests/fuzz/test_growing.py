"""Random programs whose loops grow give the numbers of the undecorated ones.

`hunt.py --growing --seed N --programs 1` shortens one that fails.
"""

from __future__ import annotations

import pytest

from mgjit.passes import pipeline
from mgjit.passes.growing import Rolled
from mgjit.passes.reach import Reach
from mgjit.record.trace import Trace
from tests.fuzz import oracle
from tests.fuzz.growing import growing_program

pytestmark = pytest.mark.fuzz


@pytest.mark.parametrize(("way", "start"), [("interpreter", 0), ("python", 100), ("lanes-4", 200), ("lanes-8", 300)])
def test_01_the_numbers_of_the_undecorated_program(way: str, start: int) -> None:
    for seed in range(start, start + 25):
        assert not oracle.check(growing_program(seed), way), seed


def test_02_many_of_them_have_loops_that_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested above are not only loops of constant counts and single statements."""
    padded = 0
    original = pipeline.roll_growing

    def counting(trace: Trace, reach: Reach) -> Rolled:
        nonlocal padded
        rolled = original(trace, reach)
        padded += len(rolled.trace) > len(trace)
        return rolled

    monkeypatch.setattr(pipeline, "roll_growing", counting)
    count = 30
    for seed in range(count):
        assert not oracle.check(growing_program(seed), "interpreter")
    assert padded >= count // 4
