"""What tries of steps may cost a program: it ends hardly later than plain Python (base/account.py).

1. Loading mgjit, traces, attempts without a result, and compiled calls that take longer than Python are spent.
2. All that together is at most `_FLAT` seconds and `_SHARE` of what plain Python would take, up to now and in the
   iterations that are known to come, besides what compiled calls have saved.
3. A try is made only if what it is expected to cost is there, and given up when nothing is left.
"""

from __future__ import annotations

from time import thread_time

from ..base.account import Account

#: A program is that much later than plain Python at most: seconds, besides about 0.05 to start; and a part of its time.
_FLAT, _SHARE = 0.25, 0.03
#: Processor seconds that it takes to load mgjit.
LOADING = 0.17


class Purse:
    """The account of a program."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        """The program begins now."""
        self._account, self._began, self._plain = Account(_FLAT, _SHARE), thread_time(), 0.0

    def note(self, seconds: float) -> None:
        """Note what was saved, or spent, if it is less than 0.0."""
        self._account.note(seconds)

    def trust(self, seconds: float) -> None:
        """Let so much more be spent, because earlier runs have saved it."""
        self._account.add(seconds)

    def left(self, to_come: float = 0.0) -> float:
        """How much may still be spent; less than 0.0 if it has been too much.

        Args:
            to_come: seconds that plain Python would go on, as far as that is known.
        """
        plain = max(self._plain, thread_time() - self._began + self._account.balance)
        self._account.note_plain(plain - self._plain)
        self._plain = plain
        return self._account.left + _SHARE * to_come


#: That of this process.
PURSE = Purse()
