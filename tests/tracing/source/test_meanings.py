"""What the names in a function refer to."""

from __future__ import annotations

import math
from math import exp as power_of_e
from typing import Any

import mgjit
from mgjit.tracing.source.meanings import meanings

max = sum


def by_many_names(x: Any, log: Any) -> Any:
    import math as inside
    from math import sin as wave

    log.write("x")
    return math.tanh(x) + power_of_e(x) + inside.cos(x) + wave(x) + min(x, 1.0) + max([x]) + mgjit.sqrt(x)


def test_names_are_told_with_what_replaces_their_meaning() -> None:
    found = dict(meanings(by_many_names))
    assert found.items() >= {
        "math.tanh": "math_tanh",
        "power_of_e": "math_exp",
        "inside.cos": "math_cos",
        "wave": "math_sin",
        "min": "min",
        "*.write": "writing",
        "mgjit.sqrt": "",  # is not replaced, but known
    }.items()
    assert found.get("max", "") == ""


def test_inner_functions_count() -> None:
    def outer(x: Any) -> Any:
        return [math.floor(y) for y in (lambda: [x])()]

    assert dict(meanings(outer))["math.floor"] == "math_floor"
