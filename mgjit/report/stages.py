"""The Program before and after each pass, and what has changed.

1. `Stages.watch` sees the Program before the first pass and after each; if another form of the trace is tried, it
   begins again.  It keeps the text, in which each statement says from which line it comes.
2. Two texts are compared line by line.  Between changes, only a few lines are kept.

Numbers that are not in the user's own text may be data, and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from ..ir.printer import print_program
from ..ir.program import Loop, Program, Statement, walk

#: Programs with more statements are not shown.
_MOST_STATEMENTS = 1_000
#: A comparison shows at most so many lines, and so many around each change.
_MOST_ROWS = 400
_AROUND = 3
#: Numbers in a Program, and in C.
_FLOAT = re.compile(r"(?<![\w.])-?(?:\d+\.\d+(?:e[-+]?\d+)?|\d+e[-+]?\d+)(?![\w.])")
_HEXADECIMAL = re.compile(r"(?<![\w.])-?0x[01]\.[0-9a-f]+p[-+]\d+f?(?![\w.])")
_REGISTER = re.compile(r"%\d+")
#: What stands in front of the name of a file.
_FOLDERS = re.compile(r"(?<![\w./<])(?:[A-Za-z]:)?(?:[\\/][^:'\"\\/\n]+)+[\\/](?=[^\s:'\"\\/]+\.pyw?\b)")
#: Instead of a number.
LEFT_OUT = "…"


class Row(NamedTuple):
    """A line of a comparison: the text before and after, None where there is none.

    A row without either stands for `skipped` equal lines.
    """

    before: str | None
    after: str | None
    is_equal: bool = True
    skipped: int = 0


class Stage(NamedTuple):
    """What one pass has done.

    Attributes:
        name: of the pass.
        text: the Program that it has left; empty if that is too long to be shown.
        statements, loops: how many it has left.
        changed: whether it has changed anything.
    """

    name: str
    text: str
    changed: bool
    statements: int
    loops: int


class Stages:
    """Collects the Program after each pass.

    Args:
        note: where a statement comes from, in words.

    Attributes:
        all: the first one is the Program before any pass.
    """

    def __init__(self, note: Callable[[Statement], str]) -> None:
        self._note = note
        self.all: list[Stage] = []

    def watch(self, number: int, name: str, program: Program) -> None:
        """See what a pass has left."""
        if number == 0:
            self.all = []
        nodes = [node for _, phase in program.phases for node in walk(phase)]
        loops = sum(isinstance(node, Loop) for node in nodes)
        statements = sum(isinstance(node, Statement) for node in nodes)
        text = print_program(program, self._note) if statements <= _MOST_STATEMENTS else ""
        last = self.all[-1] if self.all else None
        changed = last is not None and (_alike(text), statements, loops) != (_alike(last.text), *last[3:])
        self.all.append(Stage(name, text, changed, statements, loops))


def compared(before: str, after: str) -> list[Row]:
    """Two texts side by side; the numbers of registers make no difference."""
    one, two = before.splitlines(), after.splitlines()
    rows: list[Row] = []
    matcher = SequenceMatcher(None, _alike(before).splitlines(), _alike(after).splitlines(), autojunk=False)
    operations = matcher.get_opcodes()
    for number, (kind, low, high, other_low, other_high) in enumerate(operations):
        if kind != "equal":
            rows += _paired(one[low:high], two[other_low:other_high])
            continue
        equal = list(map(Row, one[low:high], two[other_low:other_high]))
        first = _AROUND if number else 0
        last = _AROUND if number < len(operations) - 1 else 0
        if high - low <= first + last + 1 or len(operations) == 1:
            rows += equal
        else:
            skipped = Row(None, None, True, len(equal) - first - last)
            rows += [*equal[:first], skipped, *equal[len(equal) - last :]]
    if len(rows) > _MOST_ROWS:
        rows = [*rows[:_MOST_ROWS], Row(None, None, True, len(rows) - _MOST_ROWS)]
    return rows


def _paired(one: Sequence[str], two: Sequence[str]) -> Iterator[Row]:
    longest = max(len(one), len(two))
    for k in range(longest):
        yield Row(one[k] if k < len(one) else None, two[k] if k < len(two) else None, False)


def _alike(text: str) -> str:
    """A text without the numbers of registers, which change whenever a statement is added in front of them."""
    return _REGISTER.sub("%", text)


def numbers_in(texts: Iterable[str]) -> set[float]:
    """The numbers that are written in the user's text."""
    return {float(number) for text in texts for number in re.findall(r"(?<![\w.])\d+(?:\.\d*)?(?:e[-+]?\d+)?", text)}


def without_folders(text: str) -> str:
    """A text without the folders of the files that it names."""
    return _FOLDERS.sub("", text)


def without_data(text: str, known: set[float]) -> str:
    """A text without the numbers that may be data: all but the known ones and small integers."""

    def shown(number: float, as_written: str) -> str:
        is_plain = number == int(number) and abs(number) <= 64 if abs(number) < 1e15 else False
        return as_written if is_plain or abs(number) in known or number != number else LEFT_OUT

    def of_hexadecimal(found: re.Match[str]) -> str:
        number = float.fromhex(found.group().rstrip("f"))
        return shown(number, f"{number!r}")

    text = _HEXADECIMAL.sub(of_hexadecimal, text)
    return _FLOAT.sub(lambda found: shown(float(found.group()), found.group()), text)
