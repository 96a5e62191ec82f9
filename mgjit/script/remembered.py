"""What earlier runs of a program have found out about its loops: which steps pay, and which were tried in vain.

1. A module is known by its text, the version of Python and that of mgjit: a hash of these stands for it.
2. When the program ends, each section that was tried, or is known to be too short or too long, gets a verdict.  They
   are lines of the file `loops` in the directory of the disk cache: the hash, the number of the section, a word, three
   numbers, and the reason for people.  The last line on a section is valid.
3. In a later run, what pays is tried in the first iteration, since code and number of iterations are known.  What was
   given up is `Off` from the beginning.  What did not run long enough to pay is left alone until it has run longer.

A line that is damaged or strange can only change how fast a program is.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from importlib.util import source_hash

from .._version import __version__
from .purse import LOADING
from .records import record
from .section import Off, Section
from .trying import Trying

#: The verdicts.
PAYS, TOO_EARLY, IN_VAIN = "pays", "early", "vain"
_NAME = "loops"
#: The file is cut down to so many bytes when it has twice as many.
_MUCH = 128 * 1024
#: A loop that was too short for a try is tried when it has gone on for so many times as long as then.
_LONGER = 2.0
#: A compiled call takes at most such a part of an iteration, if there has been none; after that it is measured.
_HOPED = 0.3
_MOST_OF_REASON = 500
_SCATTERED = "hardly any iteration is like one that was traced"


@record
class Verdict:
    """What has become of a section.

    Attributes:
        word: one of the verdicts. iterations: how many there were. seconds: what one takes in Python.
        worth: the seconds that compiled calls save if they begin at once. reason: why it was given up.
    """

    word: str
    iterations: float
    seconds: float
    worth: float
    reason: str = ""

    def line(self, key: str, number: int) -> str:
        """Its line in the file."""
        reason = " ".join(self.reason.split())[:_MOST_OF_REASON]
        return f"{key} {number} {self.word} {self.iterations:.6g} {self.seconds:.6g} {self.worth:.6g} {reason}\n"


class Remembered:
    """The sections of the modules of a program, and what is known about them."""

    def __init__(self) -> None:
        self._modules: list[tuple[str, Sequence[Section]]] = []
        self._known: dict[tuple[str, int], Verdict] | None = None

    def apply(self, source: bytes, sections: Sequence[Section]) -> None:
        """Let the sections of a module begin as an earlier run has left them.

        Args:
            source: the text of the module.
        """
        if self._known is None:
            self._known = _read()
        key = source_hash(source + f"{sys.version} {__version__}".encode()).hex()
        self._modules.append((key, sections))
        for number, section in enumerate(sections):
            verdict = self._known.get((key, number))
            if verdict is None:
                continue
            if verdict.word == IN_VAIN:
                section.reason = verdict.reason
                section.__class__ = Off
            else:
                section.expected, section.iteration = verdict.iterations, verdict.seconds
                section.worth = verdict.worth if verdict.word == PAYS else 0.0
                section.patience = _LONGER * verdict.iterations * verdict.seconds if not section.worth else 0.0

    def note(self) -> None:
        """Note what is new, at the end of the program."""
        known, lines = self._known or {}, []
        for key, sections in self._modules:
            for number, section in enumerate(sections):
                verdict = verdict_on(section)
                if verdict is not None and not _is_alike(verdict, known.get((key, number))):
                    lines.append(verdict.line(key, number))
        self._modules.clear()
        if lines:
            with contextlib.suppress(OSError):
                _append("".join(lines))


def verdict_on(section: Section) -> Verdict | None:
    """What is to be remembered of a section; None where nothing is known."""
    if isinstance(section, Off):
        return Verdict(IN_VAIN, section.total(), section.iteration, 0.0, section.reason)
    step = section.step
    if not isinstance(section, Trying) or step is None or not section.iteration:
        return None
    is_vain = (section.worth or section.patience) and not section.calls  # for the second time
    if is_vain or section.is_scattered() or not (step.kernels or step.waiting):
        reason = _SCATTERED if step.waiting else "there was no time for a trace of it"
        return Verdict(IN_VAIN, section.total(), section.iteration, 0.0, reason)
    each = section.each or _HOPED * section.iteration
    iterations = section.total() + section.calls
    compiled = section.calls if section.worth else max(0.0, iterations - step.stats.plain_calls)
    worth = compiled * (section.iteration - each) - LOADING - section.tracing
    word = PAYS if worth > 0.0 else TOO_EARLY
    return Verdict(word, iterations, section.iteration, max(0.0, worth))


def forget() -> None:
    """Forget what all programs have found out."""
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(_directory(), _NAME))


def _is_alike(verdict: Verdict, known: Verdict | None) -> bool:
    """Whether a verdict says about what is known already."""
    if known is None or verdict.word != known.word:
        return False
    return verdict.word == IN_VAIN or 0.5 * known.iterations <= verdict.iterations <= 2.0 * known.iterations


def _directory() -> str:
    """That of the disk cache; on Linux without importing what knows it on all systems."""
    chosen = os.environ.get("MGJIT_CACHE_DIR", "").strip()
    if chosen or not sys.platform.startswith("linux"):
        from ..base.settings import cache_directory

        return str(cache_directory())
    home = os.environ.get("XDG_CACHE_HOME", "").strip() or os.path.expanduser("~/.cache")
    return os.path.join(home, "mgjit")


def _read() -> dict[tuple[str, int], Verdict]:
    found = dict[tuple[str, int], Verdict]()
    try:
        with open(os.path.join(_directory(), _NAME), encoding="utf-8", errors="replace") as file:
            lines = file.readlines()
    except (OSError, RuntimeError):  # there is no home
        return found
    for line in lines:
        with contextlib.suppress(ValueError):
            key, number, word, iterations, seconds, worth, *reason = line.rstrip("\n").split(" ", 6)
            verdict = Verdict(word, float(iterations), float(seconds), float(worth), *reason)
            found[key, int(number)] = verdict
    return found


def _append(text: str) -> None:
    """Append lines in one write; only the last ones of a file that has become long are kept."""
    directory = _directory()
    os.makedirs(directory, 0o700, exist_ok=True)
    path = os.path.join(directory, _NAME)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0), 0o600)
    with open(descriptor, "ab", buffering=0) as file:
        file.write(text.encode("utf-8", "replace"))
        is_long = file.tell() > 2 * _MUCH
    if is_long:
        shorter = f"{path}.{os.getpid()}"
        with open(path, "rb") as file, open(shorter, "wb") as kept:
            kept.write(file.read()[-_MUCH:].partition(b"\n")[2])
        os.replace(shorter, path)
