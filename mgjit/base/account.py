"""An account of seconds: what compiled calls have saved, and what has been spent on them beside plain Python.

1. What plain Python would have taken, where compiled code was used instead, is saved; whatever else mgjit does, from a
   trace to the look for a kernel, is spent.
2. There are `flat` seconds to begin with, and `share` of the time of plain Python is added as it passes.  So much later
   than plain Python a program may end, whatever was tried.
3. What is saved may be spent again, up to `most`: who has gained for an hour need not lose for long.
4. When nothing is left (`left` < 0.0), what was paid from the account is given up.

All of it are processor seconds of the thread, on which it makes no difference whether the machine is busy.
"""

from __future__ import annotations

import math


class Account:
    """Seconds that may be spent.

    Args:
        flat, share, most: see above.

    Attributes:
        left: how many there are; less than 0.0 if it has been too much.
        balance: what was saved, without what was spent.
    """

    def __init__(self, flat: float, share: float, most: float = math.inf) -> None:
        self._share, self._most = share, most
        self.left = flat
        self.balance = 0.0

    def note(self, seconds: float) -> None:
        """Note what was saved, or spent, if it is less than 0.0."""
        self.balance += seconds
        self.add(seconds)

    def note_plain(self, seconds: float) -> None:
        """Note that plain Python has taken, or would have taken, so long."""
        self.add(self._share * seconds)

    def add(self, seconds: float) -> None:
        """Let so much more be spent."""
        self.left = min(self._most, self.left + seconds)
