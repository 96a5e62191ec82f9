"""What tries of steps cost a program, and what compiled calls have saved it: it ends hardly later than plain Python.

1. Loading mgjit, traces, attempts without a result, and compiled calls that take longer than Python are spent.
2. All that together is at most `_FLAT` seconds and `_SHARE` of what plain Python would take, up to now and in the
   iterations that are known to come, besides what compiled calls have saved.
3. A try is made only if what it is expected to cost is there, and given up when nothing is left.
"""

from __future__ import annotations

from time import thread_time

#: A program is that much later than plain Python at most: seconds, besides about 0.05 to start; and a part of its time.
_FLAT, _SHARE = 0.25, 0.03
#: Processor seconds that it takes to load mgjit.
LOADING = 0.17


class Purse:
    """Processor seconds of the thread, on which it makes no difference whether the machine is busy.

    Attributes:
        spent, saved: seconds so far. trusted: what may be spent because earlier runs have saved more.
    """

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        """The program begins now."""
        self._began = thread_time()
        self.spent = self.saved = self.trusted = 0.0

    def left(self, to_come: float = 0.0) -> float:
        """How much may still be spent; less than 0.0 if it has been too much.

        Args:
            to_come: seconds that plain Python would go on, as far as that is known.
        """
        plainly = max(0.0, thread_time() - self._began - self.spent + self.saved)
        return _FLAT + _SHARE * (plainly + to_come) + self.trusted + self.saved - self.spent

    def note(self, seconds: float) -> None:
        """Note what was saved, or spent, if it is less than 0.0."""
        if seconds >= 0.0:
            self.saved += seconds
        else:
            self.spent -= seconds


#: That of this process.
PURSE = Purse()
