"""Random programs over sequences give the numbers of the undecorated ones, scheduled for vectors as well.

`hunt.py --sequences --seed N --programs 1` shortens one that fails.
"""

from __future__ import annotations

import pytest

from tests.fuzz import foreign
from tests.fuzz.sequences import sequence_program

pytestmark = pytest.mark.fuzz

#: How many of the programs may be refused, or have numbers that Python refuses.
_FEW = 0.2


@pytest.mark.sampled(one_of=2)
@pytest.mark.parametrize(("way", "start"), [("python", 0), ("lanes4", 100), ("lanes8", 200), ("python-loop", 300)])
def test_01_the_numbers_of_the_undecorated_program(way: str, start: int) -> None:
    """With attention, positions, and several matrices that are chosen at run time; few programs are refused."""
    count = 5
    found = {seed: foreign.outcome(sequence_program(seed), way) for seed in range(start, start + count)}
    wrong = {seed: text for seed, text in found.items() if not text.startswith(("same", "refused", "discarded"))}
    assert not wrong
    assert sum(not text.startswith("same") for text in found.values()) <= _FEW * count


def test_02_what_is_written() -> None:
    """All kinds of programs are among the first ones."""
    texts = [sequence_program(seed) for seed in range(60)]
    for part in ("W[pairs[0][0]]", "for a, b in pairs", "zip(experts, h)", "for head in range(", "E[t], POSITIONS[i]",
                 "P = K = float", "Value as P", "class K", ".backward()", "pending[-1]", "users[id(operand)]",
                 "'rows': ", "c[i] = c[i] + "):  # fmt: skip
        assert any(part in text for text in texts), part
