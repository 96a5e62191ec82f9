"""Accounts of seconds: what may be lost beside plain Python."""

from __future__ import annotations

from mgjit.base.account import Account


def test_2_a_flat_sum_and_a_share_of_plain_python() -> None:
    account = Account(0.25, 0.5)
    account.note(-1.0)
    assert (account.left, account.balance) == (-0.75, -1.0)
    account.note_plain(2.0)
    assert (account.left, account.balance) == (0.25, -1.0)


def test_3_what_was_saved_may_be_spent_up_to_a_limit() -> None:
    """An hour of gain does not allow an hour of loss."""
    account = Account(0.25, 0.5, 1.0)
    account.note(3600.0)
    account.note(-1.5)
    assert account.left == -0.5
    without_limit = Account(0.25, 0.5)
    without_limit.note(3600.0)
    without_limit.note(-1.5)
    assert without_limit.left == 3598.75
