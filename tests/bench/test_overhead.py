"""The table of what traces cost: every part of a trace is still where it is looked for."""

from __future__ import annotations

import pytest

from bench.overhead import HEADER, of_script, row


@pytest.mark.parametrize("name", ["W2", "moons", "char_rnn"])
def test_01_a_row_has_all_columns(name: str) -> None:
    cells = [cell.strip() for cell in row(name, 1).strip("|").split("|")]
    assert len(cells) == HEADER.count("|") - 1
    assert cells[0] == name
    step, first, ratio, later, run = (float(cell) for cell in cells[2:7])
    assert min(step, first, ratio, later, run) > 0.0
    assert float(cells[-1]) > 0.0 or name != "char_rnn"  # an autograd class of its own


def test_02_a_script_gives_calls_of_two_lengths() -> None:
    _, first, later = of_script("char_rnn")
    assert [len(one) for one in first if hasattr(one, "__len__")] != [
        len(one) for one in later if hasattr(one, "__len__")
    ]
