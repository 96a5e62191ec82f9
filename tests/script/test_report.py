"""What `mgjit run --explain` says of each loop."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mgjit.script.report import _told


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("Compute them outside of the step.", "Compute them outside of the step (250 us each)."),
        ("the loop ends too soon", "the loop ends too soon (250 us each)."),
        ("", "the loop did not run long enough for it to be worth while (250 us each)."),
    ],
)
def test_a_loop_that_was_not_tried_is_told_in_one_sentence(reason: str, said: str) -> None:
    source = SimpleNamespace(filename="train.py", line=3, first=4, last=9, in_reserve=False)
    section: Any = SimpleNamespace(source=source, step=None, reason=reason, done=8, iteration=250e-6)
    assert _told(section) == [f"train.py:3: lines 4 to 9 are a step, which was not tried: {said}"]
