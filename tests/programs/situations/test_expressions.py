"""Steps over the state of libraries and of the system compute what plain Python computes, or say so."""

from __future__ import annotations

import contextlib
import importlib
import os

import pytest

from tests.programs.situations.expressions import MODULES, Expression, expressions, scripts
from tests.programs.situations.play import verdict

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="each situation is played in processes of its own")


@pytest.fixture(scope="module", autouse=True)
def modules_are_there() -> None:
    """So that each process finds them, and needs not import them."""
    exec(MODULES, {})  # noqa: S102 - import statements
    with contextlib.suppress(ImportError):
        importlib.import_module("numpy")


@pytest.mark.sampled(one_of=12)
@pytest.mark.parametrize("one", list(expressions()), ids=lambda one: one.name)
def test_01_as_in_plain_python(one: Expression, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same numbers before and after a change, no error that plain Python has not, one warning of plain calls."""
    monkeypatch.delenv("MGJIT_REFUSE", raising=False)
    is_about_warnings = "warnings." in one.name  # and changes what is shown
    assert verdict(one.script(), are_warnings_compared=not is_about_warnings) == "right"


@pytest.mark.long
@pytest.mark.parametrize("script", [pytest.param(script, id=reading) for reading, script in scripts()])
def test_02_a_script_prints_what_it_prints(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a decorator, by `mgjit run`."""
    monkeypatch.delenv("MGJIT_REFUSE", raising=False)
    assert verdict(script) == "right"
