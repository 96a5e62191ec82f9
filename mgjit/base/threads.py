"""Threads of mgjit: they call no steps and look at no objects of the program, which is as good as alone with them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class OwnThread(threading.Thread):
    """A thread of mgjit, started at once.

    Args:
        work: what it does. name: for people who look at the threads of a program.
        is_waited_for: whether the interpreter waits for it at the end, as for a compiler that it has started.
    """

    def __init__(self, work: Callable[..., Any], *args: Any, name: str, is_waited_for: bool = False) -> None:
        super().__init__(target=work, args=args, name=f"mgjit {name}", daemon=not is_waited_for)
        self.start()


def are_others() -> bool:
    """Whether the program has other threads than this one."""
    if threading.active_count() <= 1:
        return False
    return sum(not isinstance(thread, OwnThread) for thread in threading.enumerate()) > 1
