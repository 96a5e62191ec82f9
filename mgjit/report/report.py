"""A report about compiled steps, which can be saved, shown in a notebook, or printed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape

from ..kernels.kernels import Kernels
from .page import page
from .study import Study, study
from .text import described


def report_of(kernels: Kernels, name: str, path: str | os.PathLike[str] | None = None) -> Report:
    """The report about a step, which is also written to `path` if that is given.

    Args:
        kernels: of the step. name: of the step.
    """
    report = Report([study(kernels, name)])
    if path is not None:
        report.save(path)
    return report


class Report:
    """What is known about one or more steps.

    Attributes:
        studies: what was found out about each.
    """

    def __init__(self, studies: Sequence[Study]) -> None:
        self.studies = list(studies)

    @property
    def html(self) -> str:
        """The report as one page of HTML, which needs nothing else."""
        return page(self.studies)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page.

        Raises:
            OSError: the file cannot be written.
        """
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)

    def _repr_html_(self) -> str:
        """In a notebook: in a frame of its own, so that the styles of page and notebook do not meet."""
        return (
            f'<iframe srcdoc="{escape(self.html)}" style="width:100%;height:720px;border:1px solid #8884;'
            'border-radius:8px" title="mgjit report"></iframe>'
        )

    def __str__(self) -> str:
        """The lines and loops as text."""
        return "\n\n".join(map(described, self.studies))

    def __repr__(self) -> str:
        return f"<report about {', '.join(study.name for study in self.studies) or 'no step'}>"
