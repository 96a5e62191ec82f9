"""The report about a script: `python -m mgjit run --report out.html script.py`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..report.page import page
from ..report.study import Study, study
from ..step.inside import Inside

if TYPE_CHECKING:
    from .report import Report
    from .section import Section


def write_report(report: Report, path: str) -> None:
    """Write a page about the loops of a script that became steps, those first that were called most.

    Args:
        report: what became of the loops.
        path: of the page.

    Raises:
        OSError: it cannot be written.
    """
    studies: list[Study] = []
    others = [
        f"{os.path.basename(note.filename)}:{note.line} runs as it stands, because of line {note.at}: {note.reason}"
        for note in report.notes
        if note.reason
    ]
    for section in sorted(report.sections, key=lambda one: -one.calls):
        source = section.source
        name = f"{os.path.basename(source.filename)}, lines {source.first} to {source.last}"
        if section.step is None and source.in_reserve:
            continue
        if section.step is None:
            why = section.reason or "the loop did not run long enough for it to be worth while"
            others.append(f"{name}, are a step that was not tried: {why}")
            continue
        try:
            studies.append(_studied(section, name))
        except Exception as error:  # of the script, whose step is traced once more
            others.append(f"{name}: there is no report, because {type(error).__name__} was raised: {error}")
    html = page(studies, others)
    with open(path, "w", encoding="utf-8") as file:
        file.write(html)


def _studied(section: Section, name: str) -> Study:
    step = section.step
    assert step is not None
    step.wait()
    found = study(Inside(step, "report").kernels, name)
    if section.reason and not found.why_plain:
        found.remarks.append(f"not used any more: {section.reason}")
    return found
