"""Steps that look at lengths are right for every length, also where lengths share code, and where they do not.

`hunt.py --looking --programs 200` runs more, and `hunt.py --looking --seed N --programs 1` shortens one that fails.
"""

from __future__ import annotations

from typing import Any

import pytest

from mgjit.compiler.build.families import FAMILY, Kin
from mgjit.compiler.toolchain import compilers
from tests.fuzz import hunt
from tests.fuzz.lengths import _OF_POSITION, looking_program

pytestmark = pytest.mark.fuzz


@pytest.mark.parametrize(("way", "start"), [("tcc", 9), ("again", 100)])
def test_01_the_numbers_of_the_undecorated_program(way: str, start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the lengths decide; some of them share code, and others do not."""
    if compilers.find() is None:
        pytest.skip("no C compiler is installed")
    shares: list[bool] = []
    original = Kin.note

    def noting(self: Kin, *arguments: Any) -> None:
        original(self, *arguments)
        shares.append(FAMILY in arguments[-1])

    monkeypatch.setattr(Kin, "note", noting)
    found = {seed: hunt.failure(looking_program(seed), way) for seed in range(start, start + 4)}
    assert not any(found.values()), found
    assert shares.count(True) >= 3, "hardly any lengths share code"
    assert shares.count(False) >= 3, "all lengths share code"


def test_02_all_kinds_of_looks_are_written() -> None:
    """Among the first programs."""
    texts = "".join(map(looking_program, range(200)))
    for block in _OF_POSITION:
        assert block.partition("{c}")[0].split("\n")[0] in texts, block
