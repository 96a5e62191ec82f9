"""Random programs with autograd classes of their own give the numbers of the undecorated ones.

`hunt.py --foreign --seed N --programs 1` shortens one that fails.
"""

from __future__ import annotations

import pytest

from tests.fuzz import foreign
from tests.fuzz.foreign_steps import foreign_program

pytestmark = pytest.mark.fuzz

#: How many of the programs may be refused, or have numbers that Python refuses.
_FEW = 0.2


@pytest.mark.parametrize("way", ["python", "python-recorded", "python-loop"])
def test_01_the_numbers_of_the_undecorated_program(way: str) -> None:
    """With backward() taken symbolically, recorded, and all calls at once; few programs are refused."""
    count = 12 if way == "python" else 5
    found = {seed: foreign.outcome(foreign_program(seed), way) for seed in range(count)}
    wrong = {seed: text for seed, text in found.items() if not text.startswith(("same", "refused", "discarded"))}
    assert not wrong
    assert sum(not text.startswith("same") for text in found.values()) <= _FEW * count
    if way == "python":
        assert sum(text == "same, symbolic" for text in found.values()) >= count / 4


def test_02_a_difference_is_found() -> None:
    """Of a program in which each copy can see another number, and of one that Python refuses."""
    text = foreign_program(0).replace("IN_SETS = True", "IN_SETS = False")
    differing = text.replace("m, v, net.t]", "m, v, float(__name__[8:])]")
    assert foreign.outcome(differing, "python").startswith("differs: call 0, state")
    assert foreign.outcome(text.replace("m, v, net.t]", "m, v, 1 / 0]"), "python") == "discarded"
