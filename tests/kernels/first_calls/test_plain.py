"""The policy of plain calls: when a structure is traced again, and what is said when."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from typing import Any

import pytest

import mgjit
from mgjit.engine.leaks import NewStructure, PlainCall, is_traced
from mgjit.errors import MismatchWarning, PlainWarning, SideEffectWarning
from mgjit.kernels.first_calls.plain import PlainCalls
from mgjit.runtime.stats import Stats


class Calls:
    """Calls whose traces all end in the same way.

    Attributes:
        traced: the numbers of the calls that were traced.
    """

    def __init__(self, reason: PlainCall) -> None:
        self.stats = Stats()
        self.traced: list[int] = []
        self.plain = PlainCalls("step", self.stats)
        self._reason = reason
        self._count = 0

    def call(self, key: Hashable = "a structure") -> None:
        self._count += 1
        try:
            self.plain.require_trace(key)
            self.traced.append(self._count)
            self.plain.note_trace(key, self._reason)
            raise self._reason
        except PlainCall as reason:
            self.plain.note_call(str(reason))


def caught_in(calls: Calls, count: int) -> list[tuple[type[Warning], int]]:
    """The warnings of some calls: their kinds, and the numbers of the calls."""
    found = []
    for number in range(1, count + 1):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", ResourceWarning)  # of what other tests have left, at any time
            calls.call()
        found += [(w.category, number) for w in caught]
    return found


def test_1_a_structure_is_traced_after_8_calls_then_after_64_then_never_again() -> None:
    calls = Calls(PlainCall("it is a test"))
    assert caught_in(calls, 600) == [(PlainWarning, 1)]
    assert calls.traced == [1, 9, 65]
    assert calls.stats.plain_calls == 600
    assert calls.stats.plain_reasons == ["it is a test"]


@pytest.mark.filterwarnings("ignore::mgjit.errors.PlainWarning")
def test_2_structures_that_are_new_in_every_call_are_traced_ever_more_rarely() -> None:
    calls = Calls(PlainCall("it is a test"))
    for number in range(100):
        calls.call(number)
    assert calls.traced == [1, 2, 4, 8, 16, 32, 64]


def test_3_what_will_be_there_in_later_calls_is_looked_for_three_times_before_it_is_mentioned() -> None:
    calls = Calls(NewStructure("it makes something"))
    assert caught_in(calls, 600) == [(SideEffectWarning, 3)]
    assert calls.traced == [1, 2, 3, 513]
    assert calls.stats.plain_calls == 600


def test_3_it_is_mentioned_where_each_call_has_another_structure() -> None:
    calls = Calls(NewStructure("the step changes the variable a"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for key in range(8):
            calls.call(key)
        assert not caught
        for key in range(8, 20):
            calls.call(key)
    assert [w.category for w in caught] == [SideEffectWarning]


def test_4_a_kernel_that_is_wrong_is_final_and_has_been_warned_about() -> None:
    calls = Calls(PlainCall("it is a test"))
    things = [object()]
    calls.plain.distrust("a structure", "p is 1 and 2", things)
    assert caught_in(calls, 600) == []
    assert calls.traced == []
    assert calls.stats.plain_reasons == ["its kernel is wrong: p is 1 and 2"]
    with pytest.raises(PlainCall) as raised:
        calls.plain.require_trace("a structure")
    assert raised.value.parameters is things
    calls.plain.require_trace("another structure")


def test_5_explain_names_the_reasons() -> None:
    @mgjit.compile
    def step(x: float, flag: bool) -> Any:
        if flag and is_traced(x):
            raise PlainCall("it is a test")
        return 2 * x

    with pytest.warns(PlainWarning, match="it is a test"):
        step(1.0, True)
    assert "runs as plain Python: it is a test" in step.lower(1.0, False).explain()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"verify": "never"}, 'verify="never"'),
        ({"mode": "fast"}, "mode='fast'"),
        ({"lock": False}, "lock=False"),
        ({"verify": "always"}, ""),
    ],
)
def test_explain_says_why_a_kernel_is_not_compared(
    options: dict[str, Any], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MGJIT_VERIFY", raising=False)

    @mgjit.compile(**options)
    def step(x: float) -> float:
        return 2 * x

    lines = [line for line in step.lower(1.0).explain().splitlines() if line.startswith("not compared")]
    assert len(lines) == bool(reason)
    assert all(reason in line for line in lines)


def test_a_mismatch_is_a_reason_that_explain_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MGJIT_VERIFY", "always")

    @mgjit.compile
    def step(x: float) -> float:
        return 2 * x

    step(1.0)
    kernel = step._kernels.last
    assert kernel is not None
    monkeypatch.setattr(kernel.result, "make", lambda number: number + 1.0)
    with pytest.warns(MismatchWarning, match="the result"):
        assert step(2.0) == 4.0
    assert step(3.0) == 6.0
    assert step.stats.plain_calls == 1
    assert "runs as plain Python: its kernel is wrong: the result" in step.lower(1.0).explain()


def test_a_dict_that_grows_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever key it gets."""
    monkeypatch.delenv("MGJIT_REFUSE", raising=False)
    seen: dict[str, float] = {}

    @mgjit.compile(background=False, backend="python")
    def step(key: str, x: float) -> float:
        seen[key] = seen.get(key, 0.0) + x
        return seen[key]

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [step(key, 0.5) for key in "abcdefghabcd"] == [0.5] * 8 + [1.0] * 4
    assert len([w for w in caught if "besides numbers" in str(w.message)]) == 1
