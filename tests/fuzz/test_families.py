"""Random programs whose calls differ in lengths give the numbers of the undecorated ones, and share kernels.

`hunt.py --families --seed N --programs 1` shortens one that fails.
"""

from __future__ import annotations

import pytest

from mgjit.compiler.build.families import Kin
from mgjit.compiler.toolchain import compilers
from tests.fuzz import hunt
from tests.fuzz.families import family_program

pytestmark = pytest.mark.fuzz


@pytest.mark.sampled(one_of=2)
@pytest.mark.parametrize(("way", "start"), [("tcc", 0), ("gcc", 100), ("again", 200), ("loop-in-turn", 300)])
def test_01_the_numbers_of_the_undecorated_program(way: str, start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if compilers.find() is None:
        pytest.skip("no C compiler is installed")
    shared: set[int] = set()
    original = Kin.note

    def noting(self: Kin, *arguments: object) -> None:
        original(self, *arguments)  # type: ignore[arg-type]
        if self.families:
            shared.add(id(self))

    monkeypatch.setattr(Kin, "note", noting)
    found = {seed: hunt.failure(family_program(seed), way) for seed in range(start, start + 3)}
    assert not any(found.values()), found
    assert len(shared) >= 1, "hardly any program shares a kernel"
