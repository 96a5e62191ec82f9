"""What happened at the last call of a step, and why: `step.stats.last`.

Compiled calls write nothing down but their number.  So each plain call notes that number and the reason; if there have
been no more compiled calls when somebody asks, the last call was plain, and otherwise the kernel that was used last has
made it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class LastCall:
    """What happened at the last call; its text is a sentence.

    Attributes:
        made_by: "kernel", or "plain Python"; empty if there has been no call.
        kernel: the structure of the arguments that the kernel is for, in words.
        tier: what the kernel's code is made by: a compiler, "quick code of" one, which better code is to replace, or
            "generated Python".
        is_waiting: whether plain Python has made it because its kernel is not there yet.
        reason: why plain Python has made it.
    """

    made_by: str = ""
    kernel: str = ""
    tier: str = ""
    is_waiting: bool = False
    reason: str = ""

    def __str__(self) -> str:
        if not self.made_by:
            return "there has been no call"
        if self.made_by == "kernel":
            return f"the last call was compiled: the kernel for {self.kernel}, {self.tier}"
        return f"the last call was plain Python: {self.reason}"


@dataclass
class Calls:
    """What is noted of calls.

    Attributes:
        compiled: how many there had been at the last plain call. is_waiting, reason: of that one.
        kernel: the arguments and the tier of the kernel that was used last.
        plain_since: reason and whether it waits, of plain calls since then that have noted nothing else (between.py).
        name: of the step. decided: the decisions that the logger has told.
    """

    compiled: int = -1
    is_waiting: bool = False
    reason: str = ""
    kernel: Callable[[], tuple[str, str]] = lambda: ("", "")
    plain_since: Callable[[], tuple[str, bool] | None] = lambda: None
    name: str = ""
    decided: set[str] = field(default_factory=set)

    def last(self, compiled: int) -> LastCall:
        """The last call, when so many have been compiled ones."""
        since = (self.reason, self.is_waiting) if compiled == self.compiled else self.plain_since()
        if since is not None:
            return LastCall("plain Python", reason=since[0], is_waiting=since[1])
        return LastCall("kernel", *self.kernel()) if compiled > 0 else LastCall()
