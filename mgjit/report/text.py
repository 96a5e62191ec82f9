"""What a page says about lines and loops, for a terminal: `step.lower(...).explain()`.

A line of the step, its share of the time by the cost model, and below it the loops that it became:

    line    share by the cost model
       9   56.7 % scores = model(pixels)
                  50 × 784  forward             13 rows at a time, not vectorised: ...
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ..compiler.codegen.clock import Part, top_nodes
from ..compiler.pipeline.pipeline import Lowered
from ..kernels.factory import Noted
from .findings import Findings, Line, LoopNest, find, grouped
from .markup import percent, seconds
from .names import Names
from .source import Sources
from .study import Study

_BOLD, _FAINT, _WARM, _END = "\033[1m", "\033[2m", "\033[33m", "\033[0m"


def wants_colour() -> bool:
    """Whether text is going to a terminal that shows colours."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def estimated(lowered: Lowered, noted: Noted, step: object) -> Findings:
    """What there is to say about a Program that is not built: its times are what it costs by the model.

    Args:
        lowered: the Program.
        noted: its trace.
        step: the function.
    """
    sources = Sources(noted.sites, step)
    names = Names(noted.plan, noted.traced.heap, sources, lowered.program)
    parts = [Part(name, part, "") for name, nodes in lowered.program.phases for part in top_nodes(nodes)]
    return find(parts, None, lowered.schedule, sources, names, {})


def described(study: Study) -> str:
    """A study as text."""
    call = f": {seconds(study.measured.call)} a call, in its kernel" if study.measured is not None else ""
    lines = [f"{study.name} {study.arguments}{call}".rstrip()]
    if study.why_plain:
        lines.append(f"runs as plain Python: {study.why_plain}")
    if study.findings is not None:
        lines += table(study.findings, wants_colour(), "measured" if study.measured else "by the cost model")
    return "\n".join(lines)


def table(findings: Findings, colour: bool = False, how: str = "by the cost model") -> list[str]:
    """The lines of the step that cost anything, each with the loops that it became.

    Args:
        colour: whether to mark what takes time.
        how: the shares are known.
    """
    lines = [line for line in (findings.bodies[0].lines if findings.bodies else []) if line.loops]
    if not lines:
        return []
    homes = {k: max(one.lines, key=one.lines.__getitem__) for k, one in enumerate(findings.loops) if one.lines}
    shapes = max((len(one.shape) for one in findings.loops), default=0)
    digits = max(4, *(len(str(line.number)) for line in lines))
    rows = [_styled(f"{'line':>{digits}}  {'share':>7} {how}", _FAINT, colour)]
    for line in lines:
        rows.append(_head(line, digits, colour))
        own = [findings.loops[k] for k in line.loops if homes.get(k) == line.number and findings.loops[k].shape]
        rows += [_loops(group, digits, shapes, colour) for group in grouped(own)]
        rows += _elsewhere(line, homes, findings.loops, digits, colour)
    return rows


def _head(line: Line, digits: int, colour: bool) -> str:
    text = f"{line.number:>{digits}}  {percent(line.share):>7} {line.text.strip()}"
    return _styled(text, _BOLD, colour and line.share >= 0.1)


def _loops(group: Sequence[LoopNest], digits: int, shapes: int, colour: bool) -> str:
    """Loops of one kind."""
    one = group[0]
    kind = f"{one.phase}, gradient" if one.is_gradient else one.phase
    times = f"{len(group)} times: " if len(group) > 1 else ""
    text = f"{'':{digits + 10}}{one.shape:<{shapes}}  {kind:<18}  {times}{one.how}"
    is_slow = sum(loop.share for loop in group) >= 0.05 and "not vectorised" in one.how
    return _styled(text, _WARM, colour and is_slow)


def _elsewhere(line: Line, homes: dict[int, int], loops: Sequence[LoopNest], digits: int, colour: bool) -> list[str]:
    """The lines of the step whose loops compute some of this one."""
    others = sorted({homes[k] for k in line.loops if k in homes and homes[k] != line.number and loops[k].shape})
    if not others:
        return []
    text = f"{'':{digits + 10}}in the loops of line{'s' if len(others) > 1 else ''} {', '.join(map(str, others))}"
    return [_styled(text, _FAINT, colour)]


def _styled(text: str, style: str, is_styled: bool) -> str:
    return f"{style}{text}{_END}" if is_styled else text
