"""Random programs about what a step is given are as plain Python; `arguments.py --seed N` shows one."""

from __future__ import annotations

import pytest

from mgjit.tracing.call.given import GivenContainers
from tests.fuzz import arguments

pytestmark = pytest.mark.fuzz


@pytest.fixture(autouse=True)
def as_users_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be compiled is plain Python."""
    monkeypatch.delenv("MGJIT_REFUSE", raising=False)


def test_01_as_plain_python() -> None:
    """What is read, changed, kept and returned, with types and identities."""
    wrong = {seed: arguments.fails(seed, backend="python", verify="never") for seed in range(30)}
    assert {seed: reason for seed, reason in wrong.items() if reason} == {}


def test_02_a_copy_instead_of_what_is_given_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """If nobody knows which arguments a step returns and keeps, some programs get copies."""
    monkeypatch.setattr(GivenContainers, "path", lambda self, thing: None)
    assert any(arguments.fails(seed, backend="python", verify="never") for seed in range(60))
