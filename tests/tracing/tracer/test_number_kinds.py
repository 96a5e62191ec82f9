"""trace/number_kinds.py: ints and floats that take each other's places in the user's objects."""

from __future__ import annotations

import linecache
from types import SimpleNamespace
from typing import Any

import pytest

import mgjit


@pytest.mark.parametrize("change", ["box.a = box.a * 0.5", "box.a += 1", "box.a = x", "box.a = -box.a", "pass"])
@pytest.mark.parametrize(("first", "later"), [(0.5, 3), (3, 0.5), (2, 0.25)])
@pytest.mark.parametrize(
    "asked",
    ["type(box.a) is float", "isinstance(box.a, int)", "isinstance(box.a, (str, float))", "box.a.__class__ is int"],
)
def test_a_step_asks_whether_a_number_is_an_int(
    asked: str, first: Any, later: Any, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which it is at one call, and not at another."""
    monkeypatch.delenv("MGJIT_REFUSE")
    text = f"def step(x):\n    y = 1.0 if {asked} else 2.0\n    {change}\n    box.w = box.w * 0.5 + y\n    return y\n"
    name = f"<{asked} {first} {change}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    found: list[list[Any]] = []
    for decorate in (lambda step: step, mgjit.compile(background=False, verify="never")):
        space: dict[str, Any] = {"box": SimpleNamespace(a=first, w=0.5)}
        exec(compile(text, name, "exec"), space)  # noqa: S102
        step = decorate(space["step"])
        found.append([step(1.0) for _ in range(4)])
        space["box"].a = later
        found[-1] += [(step(1.0), repr(space["box"].a)) for _ in range(3)]
    assert found[0] == found[1]
