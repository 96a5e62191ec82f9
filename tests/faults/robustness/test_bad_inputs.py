"""Every bad input has its error and message, and leaves everything as it was; the document shows the same."""

from __future__ import annotations

import pytest

from tests.faults.robustness.bad_inputs import DOCUMENT, Case, document, fails, fails_by_default, load

pytestmark = pytest.mark.keeps_traced  # values of a trace that are used later

CASES = [pytest.param(case, id=f"{chapter}: {case.code[:60]}") for chapter, found in load().items() for case in found]


@pytest.mark.parametrize("case", CASES)
def test_01_bad_input(case: Case) -> None:
    """Error, message, numbers, process, and the next good call."""
    if case.needs_numpy():
        pytest.importorskip("numpy")
    assert fails(case) == ""


@pytest.mark.parametrize("case", CASES)
def test_01_by_default(case: Case) -> None:
    """The numbers of plain Python and one warning, or an error that plain Python raises as well."""
    if case.needs_numpy():
        pytest.importorskip("numpy")
    assert fails_by_default(case) == ""


def test_02_no_case_twice() -> None:
    """There are many, and each stands for itself."""
    codes = [case.code for found in load().values() for case in found]
    assert len(codes) == len(set(codes))
    assert len(codes) >= 200


def test_03_the_document_is_up_to_date() -> None:
    """`python -m tests.faults.robustness.bad_inputs --write` writes it."""
    assert DOCUMENT.read_text(encoding="utf-8") == document()
