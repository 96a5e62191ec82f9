"""A trace is a member of a family if its records are those of a longer one; and nobody else gets in."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from mgjit.compiler.lengths.lengths import Unlike
from tests.compiler.lengths.test_family import STEPS, check, example, family, member, refuse_lifting_all
from tests.compiler.lengths.test_grammar import remainder
from tests.lowering import Example, numbers


@pytest.mark.parametrize("name", ["prefix sums", "recurrent", "attention"])
def test_01_a_shorter_member_is_compared_and_not_lifted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of a single iteration, too, of which nobody could tell where the loops are."""
    make, unit = STEPS[name]
    step = make()
    found, lowered = family(example(step, 6, unit), example(step, 7, unit))
    refuse_lifting_all(monkeypatch)
    for length in (7, 3, 2, 1):
        check(example(step, length, unit), found, lowered)


def test_02_a_longer_member_is_lifted_and_then_others_are_compared_with_it() -> None:
    """In another process, which has found the family on disk."""
    step = STEPS["recurrent"][0]()
    found, lowered = family(example(step, 5), example(step, 6))
    found = pickle.loads(pickle.dumps(found))  # noqa: S301 - made here
    check(example(step, 8), found, lowered)
    assert found.precedent is not None
    assert found.precedent[0] == 3
    check(example(step, 7), found, lowered)


@pytest.mark.parametrize("odd", [2, 4, 5])
def test_03_one_other_operand_is_noticed(odd: int) -> None:
    def step(xs: Any, y: Any) -> Any:
        total = y
        for k in range(len(xs)):
            total = total * 0.5 + xs[k - 1 if len(xs) == odd and k == 1 else k]
        return total

    found, lowered = family(example(step, 6), example(step, 7))
    check(example(step, 3), found, lowered)
    with pytest.raises(Unlike):
        found.row(member(example(step, odd)))


@pytest.mark.parametrize("odd", [1, 3, 5])
def test_04_one_other_constant_is_noticed(odd: int) -> None:
    def step(xs: Any, y: Any) -> Any:
        total = y
        for x in xs:
            total = total * (0.25 if len(xs) == odd else 0.75) + x * 0.25
        return total + 0.75

    found, lowered = family(example(step, 6), example(step, 7))
    check(example(step, 2), found, lowered)
    with pytest.raises(Unlike):
        found.row(member(example(step, odd)))


def test_05_constants_may_be_met_in_another_order() -> None:
    """A half is one over the length of two, and a constant of all members."""

    def step(xs: Any, y: Any) -> Any:
        mean = y * (1.0 / len(xs))
        for x in xs:
            mean = mean * 0.5 + x * 3.0
        return mean - 7.0

    found, lowered = family(example(step, 5), example(step, 8))
    for length in (7, 4, 3, 2):
        check(example(step, length), found, lowered)


def test_06_arguments_begin_elsewhere() -> None:
    def step(xs: Any, ys: Any) -> Any:
        total = xs[0] * 0.5
        for x, y in zip(xs, ys):
            total = total * y + x
        return total * ys[1]

    made = [Example(step, numbers(length), numbers(length, seed=1)) for length in (6, 8, 7, 4, 5)]
    found, lowered = family(made[0], made[1])
    for one in made:
        check(one, found, lowered)


def backwards(odd: int = 0) -> Any:
    """The first row, then those from the last one on; one length is unlike the others."""

    def step(xs: Any, y: Any) -> Any:
        rows = [[x * 2.0, x * 3.0] for x in xs]
        total = y
        for k in range(len(rows)):
            row = rows[1 if len(rows) == odd and k == 2 else -k]
            for p in [row[0], row[1], rows[k][0]]:
                total = total * 0.5 + p
        return total

    return step


def test_07_index_tables_that_follow_the_number_are_compared_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    found, lowered = family(example(backwards(), 6), example(backwards(), 7))
    assert found.varying
    refuse_lifting_all(monkeypatch)
    for length in (7, 5, 4, 3, 2):
        check(example(backwards(), length), found, lowered)


def test_08_one_other_entry_of_a_table_is_noticed() -> None:
    step = backwards(odd=5)
    found, lowered = family(example(step, 6), example(step, 7))
    check(example(step, 4), found, lowered)
    with pytest.raises(Unlike):
        found.row(member(example(step, 5)))


def test_09_what_only_shorter_members_execute_is_told_by_one_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    found, lowered = family(example(remainder, 4), example(remainder, 8))
    refuse_lifting_all(monkeypatch)
    for length in (8, 6, 5, 4):
        check(example(remainder, length), found, lowered)
