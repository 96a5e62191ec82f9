"""What became of the loops of a program: for `--explain`."""

from __future__ import annotations

from collections.abc import Sequence

from ..report.markup import plural
from .records import field, record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .remembered import Remembered
    from .rewrite import Note
    from .section import Section

#: Of so many traces of a step it is said why they were made.
_MOST_RETRACES = 3


@record
class Report:
    """The loops of all modules that were loaded.

    Attributes:
        notes: on each loop. sections: the parts that may be steps. defects: where this package has failed.
        remembered: what earlier runs have found out; None where that is left alone.
    """

    notes: list[Note] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    defects: list[str] = field(default_factory=list)
    remembered: Remembered | None = None

    def add(self, notes: Sequence[Note], sections: Sequence[Section]) -> None:
        """Add what was found in a module."""
        self.notes += notes
        self.sections += sections

    def text(self) -> str:
        """A few lines on each loop."""
        lines = [
            f"{note.filename}:{note.line}: runs as it stands. Line {note.at}: {_clause(note.reason)}."
            for note in self.notes
            if note.reason
        ]
        lines += self.defects
        for section in self.sections:
            lines += _told(section)
        return "\n".join(lines) or "mgjit: no loop was found that trains (--loop FILE:LINE names one)."


def _time(seconds: float) -> str:
    """A short time, for people."""
    return f"{1e6 * seconds:,.0f} us" if seconds < 1e-2 else f"{1e3 * seconds:,.0f} ms"


def _clause(reason: str) -> str:
    """A reason without its full stop: more may follow."""
    return reason.rstrip(".")


def _told(section: Section) -> list[str]:
    source, step = section.source, section.step
    place = f"lines {source.first} to {source.last} are" if source.last > source.first else f"line {source.first} is"
    head = f"{source.filename}:{source.line}: {place} a step"
    if step is None and source.in_reserve:
        return []
    if step is None:
        why = _clause(section.reason) or "the loop did not run long enough for it to be worth while"
        if section.done and section.iteration:
            why += f" ({_time(section.iteration)} each)"
        return [f"{head}, which was not tried: {why}."]
    stats = step.stats
    text = f"{head}: {plural(section.calls, 'compiled call')}"
    if stats.waiting_calls:
        text += f", {stats.waiting_calls:,} in Python while it was built"
    if stats.plain_calls:
        text += f", {stats.plain_calls:,} others in Python"
    if step.undone:
        text += f", {step.undone:,} of them undone"
    text += f"; {plural(stats.traces, 'trace')}."
    if section.each and section.iteration and not section.reason:
        times = section.iteration / section.each
        text += f" {_time(section.each)} each instead of {_time(section.iteration)}: {times:.1f} times as fast."
    lines = [text]
    reasons = dict.fromkeys([*stats.plain_reasons, section.reason, *stats.retraces[:_MOST_RETRACES]])
    lines += [f"    {reason}" for reason in reasons if reason]
    return lines
