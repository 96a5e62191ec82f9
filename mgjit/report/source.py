"""The user's functions that a step has run, and the lines of them that records come from.

A record comes from a stack of lines: one of the step, one of the function that it calls there, and so on
(tracer/sites.py).  Lines of comprehensions and lambdas are those of the function around them.
"""

from __future__ import annotations

import inspect
import os
from dataclasses import dataclass, field
from types import CodeType

from ..ir.sites import NOWHERE
from ..tracing.tracer.sites import Sites


@dataclass
class Function:
    """A function of the user's.

    Attributes:
        name: qualified, where Python knows it.
        file: its name without the folders.
        path: its whole name.
        first: number of the first line.
        lines: its text; empty where there is none.
    """

    name: str
    file: str
    path: str
    first: int
    lines: list[str] = field(default_factory=list)

    def has(self, path: str, line: int) -> bool:
        """Whether a line belongs to it."""
        return self.path == path and self.first <= line < self.first + max(1, len(self.lines))


class Sources:
    """The functions that a trace has run.

    Args:
        sites: of the trace.
        step: the function that was decorated, or whatever was.

    Attributes:
        functions: the step, and the others in the order in which they were first called.
    """

    def __init__(self, sites: Sites, step: object) -> None:
        self._sites = sites
        code = getattr(inspect.unwrap(step) if callable(step) else step, "__code__", None)
        codes = [code] if isinstance(code, CodeType) else []
        codes += [site.code for site in sites.all]
        self.functions: list[Function] = []
        self._of_code: dict[CodeType, int] = {}
        named = [one for one in dict.fromkeys(codes) if not one.co_name.startswith("<")]
        for one in [*named, *dict.fromkeys(codes)]:  # those without a name may be parts of the others
            if one not in self._of_code:
                self._of_code[one] = self._number(one)
        self._places: dict[int, dict[int, int]] = {}

    def _number(self, code: CodeType) -> int:
        path, first = code.co_filename, code.co_firstlineno
        around = [k for k, known in enumerate(self.functions) if known.has(path, first)]
        if around:
            return max(around, key=lambda k: self.functions[k].first)
        name = getattr(code, "co_qualname", code.co_name).replace(".<locals>", "")
        self.functions.append(Function(name, os.path.basename(path), path, first, _lines(code)))
        return len(self.functions) - 1

    def lines_of(self, number: int) -> dict[int, int]:
        """The line of each function that has led to the records of a site: the outermost one."""
        found = self._places.get(number)
        if found is None:
            found = self._places[number] = {}
            for site in self._sites.stack(number) if number != NOWHERE else ():
                found.setdefault(self._of_code[site.code], site.line)
        return found


def _lines(code: CodeType) -> list[str]:
    """The text of a function; empty if it cannot be found."""
    try:
        lines, first = inspect.getsourcelines(code)
    except (OSError, TypeError, IndexError, SyntaxError):
        return []
    return [line.rstrip("\n") for line in lines] if first == code.co_firstlineno else []
