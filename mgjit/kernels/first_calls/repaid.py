"""Structures of arguments whose traces have been repaid in an earlier process, kept in the disk cache.

Nobody knows how long a program is going to run.  But most run again, and then as long as the last time:

1. When a process ends, each step whose compiled calls have saved more than all of its traces have cost notes the
   structures that have a kernel, and that it has noted some.
2. A later process traces such a structure at its first call, where others have to earn their traces (`earnings.py`).

These are notes in the cache (cache/notes.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ..._version import __version__
from ...compiler.cache.notes import has_note, put_note, this_python
from ...compiler.cache.store import open_store
from ...verification.proofs import digest_of

if TYPE_CHECKING:
    from ...compiler.build.options import StepOptions
    from ...tracing.call.plan import ArgumentPlan

#: So many answers are remembered.
_MOST_KNOWN = 10_000


class Repaid:
    """What is known of the structures of one step.

    Args:
        function: the step, undecorated. name: as the cache lists it.
        options: of the step.
    """

    def __init__(self, function: Callable[..., Any], name: str, options: StepOptions) -> None:
        self._name = name
        self._function = digest_of(getattr(function, "__code__", None)) if options.code.cache else ""
        self._known: dict[Any, bool] = {}
        self._has_notes: bool | None = None  # unknown so far

    def has(self, plan: ArgumentPlan) -> bool:
        """Whether a trace of arguments of this structure has been repaid."""
        if not self._function:
            return False
        known = self._known.get(plan.key)
        if known is None:
            if len(self._known) >= _MOST_KNOWN:  # each call has another structure
                self._known.clear()
            if self._has_notes is None:
                self._has_notes = has_note(open_store(), self._parts())
            known = self._has_notes and has_note(open_store(), self._parts(plan))
            self._known[plan.key] = known
        return known

    def note(self, plan: ArgumentPlan) -> None:
        """Write down that the trace of this structure was repaid, for this process and later ones."""
        if self._function and not self.has(plan):
            self._known[plan.key] = True
            for parts in (self._parts(plan), self._parts()):
                put_note(open_store(), parts, f"{self._name} (its trace was repaid)")

    def _parts(self, plan: ArgumentPlan | None = None) -> dict[str, str]:
        return {
            "repaid": "" if plan is None else plan.outline(),
            "step": self._function,
            "python": this_python(),
            "mgjit": __version__,
        }
