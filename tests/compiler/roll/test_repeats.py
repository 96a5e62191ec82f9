"""Where a text repeats: the same stretches as a character by character comparison finds."""

from __future__ import annotations

import random

import pytest

from mgjit.compiler.roll.repeats import Repeat, Repeats


def compared(text: str, period: int, fewest: int) -> list[Repeat]:
    """The stretches, one character after the other."""
    found, first = [], 0
    alike = [one == other for one, other in zip(text, text[period:])] + [False]
    for position, same in enumerate(alike):
        if not same:
            if position - first >= (fewest - 1) * period:
                found.append(Repeat(first, position - (fewest - 1) * period, position + period))
            first = position + 1
    return found


def test_01_a_stretch() -> None:
    """`ab` repeats four times and a half from the second character on; three times from any of the first four."""
    assert Repeats("xababababay").of(2, 3) == [Repeat(first=1, last=4, end=10)]
    assert Repeats("xababababay").of(2, 5) == []
    assert Repeats("xababababay").of(1, 2) == []


def test_02_texts_that_are_too_short() -> None:
    """Nothing repeats in them."""
    assert Repeats("").of(1, 2) == []
    assert Repeats("a").of(1, 2) == []
    assert Repeats("abab").of(2, 3) == []
    assert Repeats("abab").of(8, 2) == []


def test_03_the_whole_text() -> None:
    """The last stretch ends with the text."""
    assert Repeats("aaaa").of(1, 4) == [Repeat(0, 0, 4)]
    assert Repeats("aaaa").of(1, 2) == [Repeat(0, 2, 4)]


@pytest.mark.parametrize("first", [0x01, 0x41, 0xFE, 0x100, 0xFFE, 0xD7FE, 0xD7FF, 0xFFFE, 0x10FFF0])
def test_04_any_characters(first: int) -> None:
    """Of one, two and four bytes, with bytes of zero in them: surrogates and the largest ones included."""
    draw = random.Random(first)
    for size in range(40):
        text = "".join(chr(first + draw.randrange(2)) for _ in range(size))
        for period in range(1, 6):
            for fewest in (2, 3, 4):
                assert Repeats(text).of(period, fewest) == compared(text, period, fewest)


@pytest.mark.parametrize("seed", range(10))
def test_05_long_texts(seed: int) -> None:
    """Repetitions of random words, some of them of characters that differ in one byte only."""
    draw = random.Random(seed)
    letters = [chr(c) for c in (1, 2, 0x100, 0x101, 0x200, 0x1000)[: draw.randrange(2, 7)]]
    words = ["".join(draw.choice(letters) for _ in range(draw.randrange(1, 9))) for _ in range(20)]
    text = "".join(draw.choice(words) * draw.randrange(1, 12) for _ in range(60))
    for period in range(1, 9):
        for fewest in (2, 3, 4):
            assert Repeats(text).of(period, fewest) == compared(text, period, fewest)
