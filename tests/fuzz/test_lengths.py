"""Steps that look at lengths are right for every length.

`hunt.py --lengths --seed N --programs 1` shortens one that fails.
"""

from __future__ import annotations

import pytest

from tests.fuzz import hunt
from tests.fuzz.lengths import _OF_BATCH, _OF_SEQUENCE, lengths_program

pytestmark = pytest.mark.fuzz


@pytest.mark.parametrize(("way", "start"), [("python", 0), ("tcc", 50), ("swapped", 100)])
def test_01_the_numbers_of_the_undecorated_program(way: str, start: int) -> None:
    """Whatever the lengths decide."""
    found = {seed: hunt.failure(lengths_program(seed), way) for seed in range(start, start + 8)}
    assert not {seed: text for seed, text in found.items() if text}


def test_02_all_kinds_of_looks_are_written() -> None:
    """Among the first programs."""
    texts = "".join(map(lengths_program, range(200)))
    for block in (*_OF_BATCH, *_OF_SEQUENCE):
        first = block.partition("{c}")[0].split("\n")[0]
        assert first in texts, first
