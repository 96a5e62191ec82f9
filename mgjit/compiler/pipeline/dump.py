"""Write the Program of a step as text, after each pass: MGJIT_DUMP=DIR.

1. Each time that a Program is lowered, it gets a folder of its own, DIR/<step>.<number>.  There is more than one of a
   step if it has several structures, if a form of the trace could not be lowered, or if it is built in two tiers (then
   the first one is <step>.quick).
2. A pass writes <its number in the pipeline>-<its name>.txt.  Where it has changed nothing, this says which file has
   the text, so that the files of one size are those that can be skipped, and `diff` of two others shows what was done.
3. What cannot be written is not written: that costs one warning, and the step is built as ever.
"""

from __future__ import annotations

import os
import re
import warnings
from itertools import count

from ...base import settings
from ...errors import is_defect, user_stacklevel
from ...ir.printer import print_program
from ...ir.program import Program

_warned: set[str] = set()


class Dump:
    """The folder of one Program that is being lowered.

    Args:
        folder: empty if nothing is to be written.
    """

    def __init__(self, folder: str = "") -> None:
        self._folder = folder
        self._last_text = self._last_file = ""

    @classmethod
    def open(cls, step: str) -> Dump:
        """A new folder, if MGJIT_DUMP asks for one.

        Args:
            step: the name of the step.
        """
        directory = settings.dump_directory()
        if not directory:
            return cls()
        name = re.sub(r"[^\w.-]+", "_", step, flags=re.ASCII)[:100] or "step"
        try:
            os.makedirs(directory, exist_ok=True)
            for number in count(1):
                folder = os.path.join(directory, f"{name}.{number}")
                try:
                    os.mkdir(folder)
                except FileExistsError:
                    continue
                return cls(folder)
        except (OSError, ValueError) as reason:
            _warn(directory, reason)
        return cls()

    def write(self, number: int, name: str, program: Program) -> None:
        """Write what a pass has left.

        Args:
            number, name: of the pass.
            program: as it is now.
        """
        if not self._folder:
            return
        text, file = _text(program), f"{number:02}-{name.replace(' ', '-')}.txt"
        content = text if text != self._last_text else f"as in {self._last_file}\n"
        if text != self._last_text:
            self._last_text, self._last_file = text, file
        try:
            with open(os.path.join(self._folder, file), "w", encoding="utf-8") as stream:
                stream.write(content)
        except OSError as reason:
            _warn(self._folder, reason)
            self._folder = ""


def _text(program: Program) -> str:
    try:
        return print_program(program)
    except Exception as error:  # the Program is not well formed, which is for `verify` to say
        if not is_defect(error):
            raise
        return f"cannot be printed: {error!r}\n"


def _warn(place: str, reason: Exception) -> None:
    if place not in _warned:
        _warned.add(place)
        warnings.warn(
            f"{settings.DUMP.name}: nothing can be written to {place} ({reason}).", stacklevel=user_stacklevel()
        )
