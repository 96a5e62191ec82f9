"""What plain Python sees in a compared call, and what the caller gets back of it."""

from __future__ import annotations

from typing import Any

from mgjit.tracing.call.plan import plan_arguments
from mgjit.verification.documented import Seen


def seen(*arguments: Any) -> Seen:
    names = [f"x{k}" for k in range(len(arguments))]
    return Seen(plan_arguments(names, arguments, frozenset()), arguments)


def test_1_lists_that_mix_ints_and_floats_are_seen_as_floats_and_returned_as_they_are() -> None:
    mixed, rows, floats = [0, 1.5], ([1, 2.5], [3.5, 4]), [0.5]
    inside = {"a": [mixed]}
    found = seen(mixed, rows, floats, inside)
    assert repr(found.arguments) == "[[0.0, 1.5], ([1.0, 2.5], [3.5, 4.0]), [0.5], {'a': [[0.0, 1.5]]}]"
    assert found.arguments[2] is floats
    first, second, _, third = found.arguments
    given = found.as_given((first, {"b": second[1]}, [third], 1.0))
    assert given[0] is mixed
    assert given[1]["b"] is rows[1]
    assert given[2][0] is inside


def test_2_results_without_such_parts_stay_the_same_objects() -> None:
    found = seen([0, 1.5])
    result = ([1.0], {"a": (2, 3)})
    assert found.as_given(result) is result
