"""What a report says about a step, for both of its forms.

1. Each part of the Program has a time: measured (report/measured.py), or what its statements cost by the model of the
   scheduler (schedule/cost.py).  Within a part, its time is divided among its statements by that model.
2. A statement belongs to the lines that its records come from, as many as come from each.  In a function, that is the
   line of its own that has led there.  So the shares of the lines of the step add up to 1, if those are counted that
   no line has; and the share of a line of another function is part of the share of the line that has called it.
3. The statements of a nest that was scheduled as one are one loop; what was not is by parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..compiler.codegen.clock import Part
from ..compiler.schedule.cost import cost_when_scheduled
from ..compiler.schedule.report import Scheduled
from ..ir.program import Array, Loop, Node, Statement, statements
from ..ir.rewrite import with_surroundings
from .names import Names
from .source import Function, Sources


@dataclass
class Line:
    """A line of the user's.

    Attributes:
        share: of the time of a call, from 0 to 1.
        gradient: the part of the share that is for the gradient of the line.
        loops: numbers of the loops that it became.
        hints: faster spellings.
    """

    number: int
    text: str
    share: float = 0.0
    gradient: float = 0.0
    loops: list[int] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)


@dataclass
class Body:
    """A function of the user's, with what was found out about its lines."""

    function: Function
    lines: list[Line]

    @property
    def share(self) -> float:
        """Of the time of a call."""
        return sum(line.share for line in self.lines)


@dataclass
class LoopNest:
    """Loops of the Program that are executed in one way, or statements outside of loops.

    Attributes:
        phase: forward, backward or update.
        shape: the counts of the loops; empty outside of loops.
        target: what they compute.
        how: they are executed.
        share: of the time of a call.
        lines: of the step, with the part of the time that each has.
        is_gradient: whether they compute gradients.
        parts: numbers of the parts of the Program that they are in.
    """

    phase: str
    shape: str
    target: str
    how: str
    share: float = 0.0
    lines: dict[int, float] = field(default_factory=dict)
    is_gradient: bool = False
    parts: list[int] = field(default_factory=list)

    @property
    def kind(self) -> tuple[str, bool, str, str]:
        """What those have in common that are shown as one, with how many there are."""
        return self.phase, self.is_gradient, self.shape, self.how


def grouped(loops: Iterable[LoopNest]) -> list[list[LoopNest]]:
    """Loops of one kind together, those first that take the most time."""
    groups: dict[object, list[LoopNest]] = {}
    for loop in loops:
        groups.setdefault(loop.kind, []).append(loop)
    return sorted(groups.values(), key=lambda group: -sum(loop.share for loop in group))


@dataclass
class Findings:
    """What was found out about the lines and loops of a step.

    Attributes:
        bodies: the step first, then the functions that it calls, those first that take the most time.
        loops: in order of execution.
        elsewhere: the share of what comes from no line.
    """

    bodies: list[Body]
    loops: list[LoopNest]
    elsewhere: float = 0.0

    def hottest(self) -> Line | None:
        """The line of the step that takes the most time."""
        lines = [line for line in self.bodies[0].lines if line.share] if self.bodies else []
        return max(lines, key=lambda line: line.share) if lines else None


def find(
    parts: Sequence[Part],
    seconds: Sequence[float] | None,
    schedule: Sequence[Scheduled],
    sources: Sources,
    names: Names,
    hints: Mapping[tuple[str, int], Sequence[str]],
) -> Findings:
    """What there is to say.

    Args:
        parts: of the Program.
        seconds: how long each part takes; None where that was not measured.
        schedule: how nests are executed.
        sources: the user's functions.
        names: of arrays.
        hints: faster spellings, by file and line.
    """
    times, part_of = _times(parts, seconds)
    bodies = [Body(one, _blank(one, hints)) for one in sources.functions]
    finding = Findings(bodies, [])
    at = [{line.number: line for line in body.lines} for body in bodies]
    loop_of, loops = _loops(parts, schedule, part_of, names)
    for statement, share in times.items():
        number = loop_of[statement]
        loop = loops[number]
        loop.share += share
        records = sum(statement.origin.sites.values())
        if not records:
            finding.elsewhere += share
        for site, count in statement.origin.sites.items():
            own = share * count / records
            places = sources.lines_of(site)
            if 0 not in places:
                finding.elsewhere += own
            else:
                loop.lines[places[0]] = loop.lines.get(places[0], 0.0) + own
            for function, place in places.items():
                line = at[function].get(place)
                if line is None:
                    line = at[function][place] = Line(place, "")
                    bodies[function].lines.append(line)
                line.share += own
                line.gradient += own if statement.origin.is_gradient else 0.0
                if number not in line.loops:
                    line.loops.append(number)
    for body in bodies:
        body.lines.sort(key=lambda line: line.number)
    finding.bodies = bodies[:1] + sorted(bodies[1:], key=lambda body: -body.share)
    finding.loops = loops
    return finding


def _blank(function: Function, hints: Mapping[tuple[str, int], Sequence[str]]) -> list[Line]:
    lines = [Line(function.first + k, text) for k, text in enumerate(function.lines)]
    for line in lines:
        line.hints = list(hints.get((function.path, line.number), ()))
    return lines


def _times(
    parts: Sequence[Part], seconds: Sequence[float] | None
) -> tuple[dict[Statement, float], dict[Statement, int]]:
    """The share of each statement of the time of a call, and the part that it is in."""
    found: dict[Statement, float] = {}
    part_of: dict[Statement, int] = {}
    for number, part in enumerate(parts):
        costs = {s: cost_when_scheduled(s, loops) for s, loops in with_surroundings(part.nodes, part.around)}
        part_of.update(dict.fromkeys(costs, number))
        total = sum(costs.values())
        factor = 1.0 if seconds is None else seconds[number] / total if total else 0.0
        found.update((s, cost * factor) for s, cost in costs.items())
    total = sum(found.values())
    return {s: time / total if total else 0.0 for s, time in found.items()}, part_of


def _loops(
    parts: Sequence[Part], schedule: Sequence[Scheduled], part_of: Mapping[Statement, int], names: Names
) -> tuple[dict[Statement, int], list[LoopNest]]:
    """The loop that each statement belongs to."""
    found: list[tuple[int, LoopNest, list[Statement]]] = []
    taken: set[Statement] = set()
    for one in schedule:
        members = [s for s in one.members if s in part_of and s not in taken]
        if members:
            taken.update(members)
            found.append((part_of[members[0]], _scheduled(one, names), members))
    for number, part in enumerate(parts):
        rest = [s for s in statements(part.nodes) if s not in taken]
        if rest:
            shape = _shape(part.nodes)
            how = "in the order of the trace" if shape else "once a call"
            target = names.of_origin(rest[0].origin)
            found.append((number, LoopNest(part.phase, shape, target, how), rest))
    found.sort(key=lambda one: one[0])
    for _, loop, members in found:
        loop.parts = sorted({part_of[s] for s in members})
        loop.is_gradient = all(s.origin.is_gradient for s in members)
    return {s: k for k, (_, _, members) in enumerate(found) for s in members}, [loop for _, loop, _ in found]


def _scheduled(one: Scheduled, names: Names) -> LoopNest:
    targets = list(dict.fromkeys(map(names.of, sorted(one.written, key=_visible_first))))
    target = ", ".join(targets[:3]) + (" ..." if len(targets) > 3 else "")
    band, _, inside = one.shape.rstrip(")").partition(" (")
    inside = f"({inside})" if "," in inside else inside
    shape = " × ".join(part for part in (band.replace(" x ", " × "), inside) if part)
    return LoopNest(one.phase, shape, target, one.method(names.of))


def _visible_first(array: Array) -> bool:
    return array.space == "scratch"


def _shape(nodes: Sequence[Node]) -> str:
    """The counts of the loops of a part; empty outside of loops."""
    counts = []
    node = nodes[0] if len(nodes) == 1 else None
    while isinstance(node, Loop):
        counts.append(str(node.count))
        node = node.body[0] if len(node.body) == 1 else None
    return " × ".join(counts)
