"""What the longest member is like is guessed right where two members tell, and believed only when it is proved."""

from __future__ import annotations

from typing import Any

import pytest

from mgjit.compiler.lengths import family as module
from mgjit.compiler.lengths.lengths import Unlike
from tests.compiler.lengths.test_family import STEPS, check, example, family, member, refuse_lifting_all
from tests.lowering import Example, numbers


@pytest.mark.parametrize("lengths", [(6, 7), (5, 9)])
@pytest.mark.parametrize("name", STEPS)
def test_01_the_guess_is_what_is_traced(name: str, lengths: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    guesses: list[Any] = []
    guess = module.longest_trace
    monkeypatch.setattr(module, "longest_trace", lambda *arguments: guesses.append(guess(*arguments)) or guesses[-1])
    make, unit = STEPS[name]
    step = make()
    found, _ = family(*(example(step, length, unit) for length in lengths))
    traced = found.boxed(member(example(step, lengths[0] + found.most, unit)), found.most)
    for guessed, real in ((guesses[0].a, traced.trace.a), (guesses[0].b, traced.trace.b)):
        assert all(guessed[start:end] == real[start:end] for start, end in traced.stretches)
    assert found.precedent is not None
    assert found.precedent[0] == found.most > lengths[1] - lengths[0]


@pytest.mark.parametrize("name", ["prefix sums", "recurrent", "attention"])
def test_02_a_longer_member_is_compared_and_not_lifted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, unit = STEPS[name]
    step = make()
    found, lowered = family(example(step, 5, unit), example(step, 6, unit))
    refuse_lifting_all(monkeypatch)
    for length in (9, 15, 16, 8):
        check(example(step, length, unit), found, lowered)


@pytest.mark.parametrize("odd", [8, 11, 16])
def test_03_one_other_operand_in_a_longer_one_is_noticed(odd: int) -> None:
    def step(xs: Any, y: Any) -> Any:
        total = y
        for k in range(len(xs)):
            total = total * 0.5 + xs[k - 1 if len(xs) == odd and k == 7 else k]
        return total

    found, lowered = family(example(step, 5), example(step, 7))
    assert found.precedent is not None
    check(example(step, 9), found, lowered)
    with pytest.raises(Unlike):
        found.row(member(example(step, odd)))


def test_04_what_two_lengths_suggest_wrongly_is_not_believed() -> None:
    """The tenth number is read by nobody; both know nothing of it."""

    def step(xs: Any, y: Any) -> Any:
        total = y
        for k in range(len(xs)):
            total = total * 0.5 + xs[0 if k == 9 else k]
        return total

    found, lowered = family(example(step, 5), example(step, 7))
    for length in (6, 9, 3):
        check(example(step, length), found, lowered)
    for length in (10, 12):
        with pytest.raises(Unlike):
            found.row(member(example(step, length)))


def test_05_indices_in_no_order_say_nothing_about_longer_ones() -> None:
    """Such a family has no longest member that could be guessed, and is none the worse for it."""
    order = [3, 0, 4, 1, 2, 5, 9, 7, 6, 8, 11, 10, 15, 12, 14, 13]

    def step(xs: Any, y: Any) -> Any:
        total = y
        for k in range(len(xs)):
            total = total * 0.5 + xs[k] * xs[min(order[k], 4)]
        return total

    found, lowered = family(example(step, 6), example(step, 8))
    for length in (6, 8, 7):
        check(Example(step, numbers(length), 0.5), found, lowered)
