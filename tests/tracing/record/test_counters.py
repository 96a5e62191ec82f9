"""Counters: numbers of which only the order is used, and what asks for more."""

from __future__ import annotations

from typing import Any, Callable

import pytest

from mgjit.tracing.record.counters import Counted


class Asked(BaseException):
    """The value is needed."""


def counter(start: int, value: Any = None) -> tuple[Counted, Callable[[], None]]:
    """A counter that raises Asked."""

    def used() -> None:
        raise Asked

    return Counted(start, start if value is None else value, used), used


def test_01_grows() -> None:
    """By ints that are not negative; the difference of two is an int."""
    base, _ = counter(5)
    later = 1 + (base + 2)
    assert (later.value, later.growth(), later - base, isinstance(later, int)) == (8, 3, 3, True)
    for shrink in (lambda: base - 1, lambda: base + -1, lambda: base + 0.5, lambda: 9 - base):
        with pytest.raises(Asked):
            shrink()


def test_02_order() -> None:
    """Of numbers of one counter, and of ints that were there before."""
    base, _ = counter(5)
    first, second = base + 1, base + 2
    assert sorted([second, first]) == [first, second]
    assert (first < second, first == first, first != second, first > 5, first > 4) == (True, True, True, True, True)
    assert {first: "a", second: "b", 3: "c"}[base + 2] == "b"
    other, _ = counter(5)
    for compare in (lambda: first < 6, lambda: first == other + 1, lambda: base < 5, lambda: first < 7.5):
        with pytest.raises(Asked):
            compare()


@pytest.mark.parametrize(
    "use",
    [lambda n: n * 2, lambda n: 2 * n, lambda n: n % 2, lambda n: n / 2, lambda n: [0] * n, range,
     bool, str, lambda n: f"{n}", float, lambda n: -n, lambda n: "abc"[n]],
)  # fmt: skip
def test_03_what_needs_the_value(use: Callable[[Any], Any]) -> None:
    """While tracing it is an event; afterwards, the number behaves as the int it was."""
    base, _ = counter(0)
    with pytest.raises(Asked):
        use(base + 1)
    assert use(Counted(0, 1, lambda: None)) == use(1)
