"""Which sections' loops are running, and around which others; and where sections are plain code.

1. A loop that begins is the innermost one of those that run; one that goes on, or ends, is so as well.
2. Loops that were left by an exception or a `return` stay on the list until a loop around them goes on.  They are
   around no other one: their function is no longer running, or it is that of the other loop, which is not in theirs.
"""

from __future__ import annotations

import sys
from _thread import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

    from .section import Section

#: The sections whose loops are running, the outermost one first.
running: list[Section] = []
#: The threads in which all sections are plain code: a step is being traced there, or compared with plain Python.
inert: set[int] = set()


def is_inert() -> bool:
    """Whether sections are plain code in this thread."""
    if inert and get_ident() in inert:
        return True
    progress = sys.modules.get("mgjit.engine.progress")
    return progress is not None and bool(progress.tracing_threads) and progress.is_tracing()


def comes_last(section: Section) -> None:
    """Of the running loops, that of this section is known to be the innermost, if it is one of them."""
    if section in running:
        del running[running.index(section) + 1 :]


def around(section: Section) -> list[Section]:
    """The sections whose loops are running around that of another one."""
    frame: FrameType | None = sys._getframe(1)
    frames, outside, outer = set[tuple[int, int]](), set[int](), section.outer
    while frame is not None:
        frames.add((id(frame), id(frame.f_code)))
        frame = frame.f_back
    while outer is not None:
        outside.add(id(outer))
        outer = outer.outer
    before = running[: running.index(section)] if section in running else running
    return [
        one
        for one in before
        if one is not section
        and one.frame in frames
        and (id(one) in outside or (one.frame, one.source.function) != (section.frame, section.source.function))
    ]
