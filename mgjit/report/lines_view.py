"""The first tab: the user's source, each line tinted by its share of the time, and what became of the chosen line.

A line is a label with a radio button, so that a click or an arrow key chooses it, without a script; a rule of style for
each line shows its panel.
"""

from __future__ import annotations

from .findings import Body, Findings, Line, LoopNest, grouped
from .markup import element, percent, plural, python, radio, text
from .stages import without_data
from .study import Study

#: Functions other than the step that are shown, kinds of loops of one line, and lines of C of one loop.
_MOST_FUNCTIONS = 12
_MOST_LOOPS = 30
_MOST_LINES_OF_C = 300


class LinesView:
    """The tab of one step.

    Args:
        study: of the step.
        prefix: of the identities of elements.
        known: numbers that may be shown.
    """

    def __init__(self, study: Study, prefix: str, known: set[float]) -> None:
        self._study, self._prefix, self._known = study, prefix, known
        findings = study.findings
        self._findings = Findings([], []) if findings is None else findings
        self._rules: list[str] = []
        self._hottest = self._findings.hottest()

    def style(self) -> str:
        """The rules that show the panel of the line that is chosen."""
        return "\n".join(self._rules)

    def html(self) -> str:
        """The tab."""
        if not self._findings.bodies:
            return self._source_alone()
        step, *others = self._findings.bodies
        shown = [body for body in others if body.share > 0.0005 and body.lines][:_MOST_FUNCTIONS]
        bodies = [self._body(0, step, True), *(self._body(k, body, False) for k, body in enumerate(shown, 1))]
        panels = [self._panel(0, line) for line in step.lines if self._has_panel(line, 0)]
        for k, body in enumerate(shown, 1):
            panels += [self._panel(k, line) for line in body.lines if self._has_panel(line, k)]
        source = element("div", "".join(bodies) + self._legend(), class_="source")
        return element("div", source + element("div", "".join(panels), class_="panels"), class_="split")

    def _source_alone(self) -> str:
        """The step of which there is no kernel."""
        functions = self._study.sources.functions[:1]
        bodies = [
            self._body(0, Body(one, [Line(one.first + k, line) for k, line in enumerate(one.lines)]), True)
            for one in functions
        ]
        return element("div", "".join(bodies), class_="source")

    # ---- the source -----------------------------------------------------------------------------------

    def _body(self, number: int, body: Body, is_step: bool) -> str:
        rows = [self._row(number, line) for line in body.lines]
        if is_step and self._findings.elsewhere > 0.0005:
            rows.append(_quiet(self._findings.elsewhere, "", text("what comes from no line")))
        if not rows:
            rows = [_quiet(0.0, "", element("span", "its source cannot be found", class_="c"))]
        function = body.function
        place = f"{function.file}, line {function.first}"
        if is_step:
            head = element("header", element("b", text(function.name)) + element("span", text(place)))
            return element("div", head + element("div", "".join(rows), class_="rows"), class_="body")
        head = element(
            "summary",
            element("b", text(function.name)) + element("span", text(f"{percent(body.share)} · {place}")),
        )
        return element("div", element("details", head + element("div", "".join(rows), class_="rows")), class_="body")

    def _has_panel(self, line: Line, body: int) -> bool:
        return bool(line.loops or line.hints) or self._computes_gradients(line, body)

    def _computes_gradients(self, line: Line, body: int) -> bool:
        return body == 0 and ".backward(" in line.text and self._study.findings is not None

    def _row(self, body: int, line: Line) -> str:
        code = element("code", python(line.text) or " ")
        if not self._has_panel(line, body):
            return _quiet(line.share, str(line.number), code)
        identity = f"{self._prefix}-{body}-{line.number}"
        self._rules.append(f".split:has(#{identity}:checked) #{identity}-p {{ display: block; }}")
        button = radio(f"{self._prefix}-line", identity, body == 0 and line is self._hottest)
        parts = (line.share - line.gradient, line.gradient)
        meter = "".join(element("i", style=f"width:{100 * max(0.0, part):.1f}%") for part in parts)
        shown = element("span", percent(line.share) if line.share >= 0.0005 else "·", class_="share")
        shown += element("span", meter, class_="meter")
        shown += element("span", str(line.number), class_="no could" if line.hints else "no")
        return element(
            "label", button + shown + code,
            class_="row", for_=identity, style=f"--a:{_tint(line.share):.3f}", data_share=f"{100 * line.share:.6f}",
            data_body=body,
        )  # fmt: skip

    def _legend(self) -> str:
        study = self._study
        how = f"Shares by a cost model: nothing was measured, because {study.why_estimated}."
        if study.measured is not None:
            how = (
                f"Shares of the time of a call. Each loop nest was measured, in {study.measured.runs} runs of "
                "instrumented code on copies of the step's memory; among the lines of a nest, its time is divided by a "
                "cost model."
            )
        marks = element("i", style="background:rgb(var(--heat))") + "the line itself"
        marks += element("i", style="background:var(--plum)") + "its gradient, computed by <code>backward()</code>. "
        return element("p", marks + text(how), class_="legend")

    # ---- the panels -------------------------------------------------------------------------------------

    def _panel(self, body: int, line: Line) -> str:
        of_call = "of a call"
        if line.gradient:
            own = max(0.0, line.share - line.gradient)
            of_call += f": {percent(own)} for the line, {percent(line.gradient)} for its gradient"
        parts = [
            element("h3", element("code", python(line.text.strip()) or f"line {line.number}")),
            element("p", element("b", percent(line.share)) + text(of_call), class_="big"),
        ]
        faster = element("b", "Could be faster: ")
        parts += [element("p", faster + text(hint), class_="hint") for hint in line.hints]
        if self._computes_gradients(line, body):
            share = percent(sum(one.gradient for one in self._findings.bodies[0].lines))
            said = f"The gradients, {share} of a call, are counted at the lines that they are the gradients of."
            parts.append(element("p", said, class_="note"))
        loops = [self._findings.loops[k] for k in line.loops]
        groups = grouped(loops)
        parts += [self._loops(group, body, line) for group in groups[:_MOST_LOOPS]]
        rest = [loop for group in groups[_MOST_LOOPS:] for loop in group]
        if rest:
            share = percent(sum(loop.share for loop in rest))
            parts.append(element("p", text(f"... and {plural(len(rest), 'loop')} more, {share}"), class_="note"))
        return element("section", "".join(parts), class_="panel", id=f"{self._prefix}-{body}-{line.number}-p")

    def _loops(self, group: list[LoopNest], body: int, line: Line) -> str:
        """Loops of one kind."""
        loop = group[0]
        kind = f"{loop.phase}, gradient" if loop.is_gradient else loop.phase
        kind += f", {len(group)} times" if len(group) > 1 else ""
        words = element("b", text(loop.shape or "no loop")) + element("span", text(kind), class_="muted")
        share = percent(sum(one.share for one in group))
        what = element("p", words + element("span", share), class_="what")
        into = element("p", text(f"computes {loop.target}") + self._shared_with(loop, body, line), class_="into")
        chips = "".join(element("li", text(words), class_=mood) for words, mood in chips_of(loop.how))
        code = self._code(loop, body, line)
        return element("div", what + into + element("ul", chips, class_="chips") + code, class_="loop")

    def _shared_with(self, loop: LoopNest, body: int, line: Line) -> str:
        others = [number for number in sorted(loop.lines) if body or number != line.number]
        if not others or body:
            return ""
        jumps = [self._jump(number) for number in others[:6]]
        return ", together with " + ", ".join(jumps) + (" ..." if len(others) > 6 else "")

    def _jump(self, line: int) -> str:
        """A link to a line of the step."""
        return element("label", f"line {line}", class_="jump", for_=f"{self._prefix}-0-{line}")

    def _code(self, loop: LoopNest, body: int, line: Line) -> str:
        clock = self._study.clock
        if clock is None or not loop.lines:
            return ""
        home = max(loop.lines, key=loop.lines.__getitem__)  # where the code of the loop is shown
        if body or home != line.number:
            return element("p", f"Its code is shown at {self._jump(home)}.", class_="into")
        lines = "\n".join(clock.parts[part].text for part in loop.parts).splitlines()
        more = len(lines) - _MOST_LINES_OF_C
        code = "\n".join(lines[:_MOST_LINES_OF_C]) + (f"\n... {more:,} more lines" if more > 0 else "")
        kind = "C" if self._study.facts.get("backend") == "c" else "Python"
        summary = element("summary", text(f"{kind}, {plural(len(lines), 'line')}"))
        return element("details", summary + element("pre", text(without_data(code, self._known))))


def _quiet(share: float, number: str, code: str) -> str:
    """A row that cannot be chosen."""
    shown = element("span", percent(share) if share >= 0.0005 else "", class_="share")
    cells = shown + element("span") + element("span", number, class_="no") + code
    return element("div", cells, class_="row", data_share=f"{100 * share:.6f}", data_body=0 if not number else False)


def _tint(share: float) -> float:
    """How strongly a row is tinted: small shares can be seen, too."""
    return 0.0 if share < 0.0005 else 0.05 + 0.5 * share**0.7


def chips_of(how: str) -> list[tuple[str, str]]:
    """How a loop is executed, in pieces, and whether each is good news."""
    how, _, packed = how.partition(", packed: ")
    how, _, why = how.partition("not vectorised, ")
    found = [(words, "good") for words in how.rstrip(", ").split(", ") if words]
    if not (why or "lanes" in how or "rows" in how):
        found = [(words, "plain") for words, _ in found]
    if why:
        found.append((f"no lanes: {why}", "slow"))
    if packed:
        found.append((f"packed: {packed}", "good"))
    return found
