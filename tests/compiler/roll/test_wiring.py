"""How iterations are wired, by the definition; and the numbers from 0 on."""

from __future__ import annotations

from array import array

import pytest

from mgjit.compiler.roll.known_loops import KnownSteps
from mgjit.compiler.roll.wiring import Wiring, are_leaves, consecutive


def wiring(*columns: list[int]) -> Wiring:
    """Of these operands."""
    made = [array("i", column) for column in columns]
    return Wiring(made, KnownSteps([], made[-1]))


@pytest.mark.parametrize("count", [0, 1, 2, 255, 256, 257, 65_535, 65_536, 65_537, 131_073])
def test_01_consecutive(count: int) -> None:
    """All numbers, in order."""
    assert consecutive(count) == array("i", range(count))


def test_02_leaves() -> None:
    """Operands below zero."""
    assert are_leaves(array("i", [0, -1, 5, -(1 << 31), (1 << 31) - 1])) == b"\0\1\0\1\0"


def test_03_a_chain() -> None:
    """Each record reads the one before, the first one something else: a loop up to where the chain ends."""
    chain = [-5, *range(9), 3, 10, 11]
    assert wiring(chain, [-7] * 13).alike(0, 1, 13) == 10
    assert wiring(chain, [-7] * 13).alike(10, 1, 3) == 3


def test_04_what_lies_outside_may_be_arbitrary() -> None:
    """Leaves in any order are alike; a record of the run among them is not."""
    assert wiring([-9, -4, -70, -3, -1, -8], [-1] * 6).alike(0, 1, 6) == 6
    assert wiring([-9, -4, -70, -3, 1, -8], [-1] * 6).alike(0, 1, 6) == 4


def test_05_strangers() -> None:
    """An iteration that breaks the regular steps of the three that follow it."""
    assert wiring([-50, -2, -3, -4, -5], [-1] * 5).is_stranger(0, 1, 0, 1)
    assert not wiring([-1, -2, -3, -4, -5], [-1] * 5).is_stranger(0, 1, 0, 1)
    assert not wiring([-50, -2, -30, -4, -5], [-1] * 5).is_stranger(0, 1, 0, 1)
