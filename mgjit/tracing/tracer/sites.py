"""Where records come from: the lines of the user's program, noted while a trace for people is made.

Records themselves know no lines, because that would slow every trace down.  Where somebody wants to look at a step
(`step.lower`, `step.report`), its trace runs under `sys.settrace`:

1. Each line of the user's code that begins is a *site*: the line, and the site that has called its function.  A
   function that calls itself is called from where it was called first, so there are as many sites as there are lines.
   The `forward` of a layer of this package counts as well: a model may have no lines of the user's.
2. What is recorded from then on comes from that site, until the next line begins or the function returns.
3. What is recorded after the step has returned, such as the assignment of its result, comes from where its operand
   does.

Nothing of this changes the trace: its records and its structure hash are those of a trace without sites.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from types import CodeType, FrameType
from typing import Any, Callable, NamedTuple, TypeVar

from ...errors import PACKAGE
from ...ir.sites import NOWHERE
from ..record.current import current_recorder
from ..surroundings.ownership import is_file_of_user

T = TypeVar("T")


class Site(NamedTuple):
    """A line of the user's program, in one of the ways in which the step gets there.

    Attributes:
        caller: the number of the site that has called the function; NOWHERE in the step itself.
        code: of the function.
        line: in its file, from 1 on.
    """

    caller: int
    code: CodeType
    line: int


class Sites:
    """Notes the sites of a trace.

    Attributes:
        all: every site; a site's number is its position.
    """

    def __init__(self) -> None:
        self.all: list[Site] = []
        self._numbers: dict[Site, int] = {}

    def noting(self, call: Callable[..., T]) -> Callable[..., T]:
        """The same call, during which the recorder of this thread notes where its records come from."""

        def noted(*arguments: Any) -> T:
            recorder = current_recorder()
            if recorder is None:
                return call(*arguments)
            recorder.sites = []
            before = sys.gettrace()
            sys.settrace(_Calls(self, recorder.op, recorder.sites).enter)
            try:
                return call(*arguments)
            finally:
                sys.settrace(before)
                recorder.sites.append((len(recorder.op), NOWHERE))

        return noted

    def number(self, site: Site) -> int:
        """The number of a site, which is new or known."""
        known = self._numbers.get(site)
        if known is None:
            known = self._numbers[site] = len(self.all)
            self.all.append(site)
        return known

    def stack(self, number: int) -> list[Site]:
        """A site and those that have called its function, from the step itself inwards."""
        found: list[Site] = []
        while number != NOWHERE:
            found.append(self.all[number])
            number = found[-1].caller
        return found[::-1]


class _Calls:
    """The functions of the user that run at present."""

    def __init__(self, sites: Sites, op: Sequence[int], marks: list[tuple[int, int]]) -> None:
        self._sites, self._op, self._marks = sites, op, marks
        #: For each function that runs: its frame, where it was called, and where it is.
        self._running: list[tuple[FrameType, int, int]] = []
        #: Where each of these functions was first called, and how often it runs.
        self._first: dict[CodeType, tuple[int, int]] = {}

    def enter(self, frame: FrameType, event: str, _: Any) -> Any:
        """A function is called, or a generator goes on."""
        code = frame.f_code
        if event != "call" or not _is_shown(code, frame.f_globals):
            return None
        here = self._running[-1][2] if self._running else NOWHERE
        caller, times = self._first.get(code, (here, 0))
        self._first[code] = caller, times + 1
        self._running.append((frame, caller, here))
        return self._inside

    def _inside(self, frame: FrameType, event: str, _: Any) -> Any:
        if not self._running or self._running[-1][0] is not frame:
            return self._inside  # it runs outside of the step, such as the end of a generator
        if event == "line":
            caller = self._running[-1][1]
            site = self._sites.number(Site(caller, frame.f_code, frame.f_lineno))
            self._running[-1] = frame, caller, site
            self._marks.append((len(self._op), site))
        elif event == "return":
            self._running.pop()
            caller, times = self._first.pop(frame.f_code)
            if times > 1:
                self._first[frame.f_code] = caller, times - 1
            self._marks.append((len(self._op), self._running[-1][2] if self._running else NOWHERE))
        return self._inside


def _is_shown(code: CodeType, names: Mapping[str, Any]) -> bool:
    """Whether a function is the user's, or the `forward` of a layer.

    Args:
        names: of its module.
    """
    file = code.co_filename
    if file.startswith("<") and str(names.get("__name__")).startswith(_MADE):
        return False
    return is_file_of_user(file) or (code.co_name == "forward" and os.path.dirname(file) == _LAYERS)


#: Methods that dataclasses and named tuples make have no file; these are the beginnings of the names of their modules.
_MADE = (f"{__name__.partition('.')[0]}.", "namedtuple_")
_LAYERS = os.path.join(PACKAGE, "nn")
