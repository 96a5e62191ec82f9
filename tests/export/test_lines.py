"""Exported C says which lines it comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from mgjit.export.lines import as_comment

from .steps import classifier

pytestmark = pytest.mark.once


def test_lines_of_the_step_and_their_gradients(tmp_path: Path) -> None:
    step, _, calls = classifier()
    step.export(tmp_path, "net", calls=calls)
    text = (tmp_path / "net.c").read_text("ascii")
    assert "in Layer.__call__: scores = model(pixels) */" in text or ": scores = model(pixels) */" in text
    assert "/* gradient of steps.py:" in text
    assert ": p.data -= lr * p.grad */" in text


@pytest.mark.parametrize("text", ["a */ b", "a /* b", "a ??/ b", "**/*"])
def test_no_text_ends_a_comment_or_begins_another(text: str) -> None:
    inside = as_comment(text)[2:-2]
    assert not any(one in inside for one in ("*/", "/*", "??"))
