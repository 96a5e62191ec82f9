"""Random programs in ensembles: each member has the bits of the undecorated step."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from mgjit.parallel import calls
from tests.fuzz import ensembles
from tests.fuzz.programs import random_program

pytestmark = pytest.mark.fuzz

QUICK: dict[str, Any] = {"compiler": "tcc"} if shutil.which("tcc") else {"optimisation": "-O0"}


@pytest.mark.parametrize("options", [QUICK, {"backend": "python"}], ids=["c", "python"])
def test_members_are_as_alone(monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]) -> None:
    monkeypatch.setattr(calls, "SECONDS_FOR_THREADS", 0.0)
    compared = 0
    for seed in range(8 if options is QUICK else 4):
        text = random_program(seed)
        expected = ensembles.undecorated(text)
        found = None if expected is None else ensembles.ensemble(text, **options)
        if found is not None:
            compared += 1
            assert found == expected, text
    assert compared >= (4 if options is QUICK else 2)
