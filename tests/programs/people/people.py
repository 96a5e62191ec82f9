"""Programs as people write them: none is stopped, and all have the numbers of plain Python.

1. A program is a script with `mgjit.compile` in it, which tells `check` what there is to see.
2. `became(program)` runs it with the decorator and without, compares, and says what the calls were: compiled, plain, or
   both, with the reason.
3. `document()` is docs/people.md, a table of all of them.

    python -m tests.programs.people.people --write     # writes docs/people.md
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from mgjit.kernels.registry import KERNELS
from mgjit.step.leaving import Leaving
from tests.programs.traps.traps import PRELUDE as NAMES
from tests.programs.traps.traps import play

DOCUMENT = Path(__file__).parents[3] / "docs" / "people.md"
PRELUDE = NAMES[: NAMES.index("class Node")] + "import random\n\n"


_INTRODUCTION = """\
# Programs as people write them

Each line is a program of the kind that people write, with `@mgjit.compile` above its step. It ran with the decorator
and without, and all numbers that it shows were the same, bit for bit. The right column says how its calls were made.
Where they were plain Python, that is said with the reason, as in the one warning that the program gives.

The page is made of tests, by `python -m tests.programs.people.people --write`.
"""


class Program(NamedTuple):
    """A program: what it is about, and its script."""

    name: str
    code: str


class Became(NamedTuple):
    """What became of a program.

    Attributes:
        problem: what is not as it should be, or nothing.
        calls: "compiled", "plain", or "compiled, n plain".
        reason: why calls were plain.
    """

    problem: str
    calls: str
    reason: str


def load() -> dict[str, list[Program]]:
    """All programs, by chapter."""
    from tests.programs.people import courses, engines, models, networks, searches

    modules = (networks, engines, models, searches, courses)
    return {str(module.__doc__).rstrip("."): module.PROGRAMS for module in modules}


def became(program: Program, folder: Path) -> Became:
    """Run a program with the decorator and without it."""
    name = re.sub(r"\W+", "_", program.name)
    wanted = play(program.code, folder, f"{name}_plain", False, PRELUDE)
    if wanted.error is not None:
        return Became(f"undecorated, it ended with {wanted.error!r}", "", "")
    before = set(KERNELS)
    with mock.patch.object(Leaving, "_is_weighed", False):  # a clock would decide
        got = play(program.code, folder, name, True, PRELUDE)
    steps = [kernels.stats for kernels in KERNELS if kernels not in before]
    compiled, plain = sum(stats.calls for stats in steps), sum(stats.plain_calls for stats in steps)
    texts = [f"{one.category.__name__}: {one.message}" for one in got.warned]
    calls = "plain" if not compiled else "compiled" if not plain else f"compiled, {plain} plain"
    reasons = [reason for stats in steps for reason in stats.plain_reasons]
    problem = ""
    if got.error is not None:
        problem = f"it was stopped by {got.error!r}"
    elif (got.seen, got.printed) != (wanted.seen, wanted.printed):
        problem = f"{got.seen} was seen, not {wanted.seen}"
    elif len(got.warned) > 1 or (plain > max(3, compiled) and not got.warned):
        problem = f"the warnings were {texts}"
    elif any("Traced" in text or "defect" in text for text in texts):
        problem = f"the warning was {texts}"
    return Became(problem, calls, reasons[0].replace(str(folder), "") if reasons else "")


def document(folder: Path) -> str:
    """The text of docs/people.md."""
    parts = [_INTRODUCTION]
    for chapter, programs in load().items():
        parts.append(f"\n## {chapter}\n\n| program | calls |\n|---|---|\n")
        for program in programs:
            found = became(program, folder)
            assert not found.problem, f"{program.name}: {found.problem}"
            reason = f": {found.reason.lstrip('/')}" if found.reason else ""
            parts.append(f"| {program.name} | {found.calls}{reason.replace('|', chr(92) + '|')} |\n")
    return "".join(parts)


if __name__ == "__main__":
    import tempfile

    os.environ.update(MGJIT_BACKGROUND="0", MGJIT_REFUSE="plain")
    with tempfile.TemporaryDirectory() as place:
        DOCUMENT.write_text(document(Path(place)), encoding="utf-8")
