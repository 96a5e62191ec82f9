"""Every message of a refusal has a program in a table, or a reason why it has none."""

from __future__ import annotations

from tests.messages import REASONS, found, reason, without_program


def test_every_message_has_a_program_or_a_reason() -> None:
    assert [f"{each.place}: {each.text}" for each in without_program() if not reason(each)] == []


def test_no_reason_is_of_a_message_that_is_gone_or_has_a_program() -> None:
    left = [each.text for each in without_program()]
    assert [part for part in REASONS if not any(part in text for text in left)] == []
    assert len(list(found())) > 150
