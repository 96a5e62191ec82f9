"""The second tab: the Program before and after each pass, side by side, with what has changed marked.

The passes are radio buttons, so that the arrow keys go through them.
"""

from __future__ import annotations

import re

from .markup import element, plural, radio, text
from .stages import Row, Stage, compared, without_data
from .study import Study

#: Lines of the Program before any pass that are shown.
_MOST_LINES = 400
_COMMENT = re.compile(r"^(.*?)(  # .*)$")

#: What each pass does, in a line; docs/passes.md has more.
PURPOSES = {
    "lift": "the trace, rolled into loops: a statement for each operation, an array for each result",
    "reductions": "chains of additions get an accumulator",
    "layout": "chooses where parameters are stored, so that sums computed side by side read adjacent memory",
    "unroll": "unrolls loops of two or three iterations whose first one differs",
    "merge": "merges arrays that are read by one operand",
    "differentiate": "replaces backward() by the Program read backwards",
    "phases": "cuts the step into forward, backward and update",
    "powers": "writes powers as products and quotients, where those have the same bits",
    "first contributions": "lets a gradient begin with its first term instead of a zero",
    "more first contributions": "the same, for what stands alone in its loops now",
    "distribute": "splits loops whose parts are independent",
    "adjacent": "makes one loop of those that update neighbouring parameters, where all of them fit a cache",
    "boxes": "removes bounds of loops where lanes are worth the additional iterations",
    "fuse": "fuses nests that work on the same elements",
    "hoist": "moves expensive operations out of loops that do not change them",
    "blocks": "cuts long straight-line code into functions",
    "pad": "pads rows of scratch arrays to whole vectors",
    "vectorise": "executes every nest by its plan: lanes, rows, packed copies",
    "registers": "uses what the same iteration has just computed, across loops as well",
    "share": "computes common subexpressions once",
    "gradients": "with grads=False: forgets gradients that the step does not read",
    "late gradients": "computes gradients from numbers that are kept, when somebody looks",
}
for _when in ("before", "after"):
    PURPOSES[f"registers {_when}"] = "uses what the same iteration has just computed, instead of memory"
    PURPOSES[f"copies {_when}"] = "loads instead of copies"
    PURPOSES[f"dead statements {_when}"] = "deletes what nobody reads"
PURPOSES["dead statements"] = PURPOSES["last dead statements"] = "deletes what nobody reads"


class PassesView:
    """The tab of one step; see LinesView."""

    def __init__(self, study: Study, prefix: str, known: set[float]) -> None:
        self._stages = study.stages.all if study.stages is not None else []
        self._prefix, self._known = prefix, known
        self._rules: list[str] = []

    def style(self) -> str:
        """The rules that show the pass that is chosen."""
        return "\n".join(self._rules)

    def html(self) -> str:
        """The tab."""
        if not self._stages:
            return element("p", "There is no Program.", class_="muted")
        texts = [without_data(stage.text, self._known) for stage in self._stages]
        labels, changes = [], []
        for number, stage in enumerate(self._stages):
            rows = compared(texts[number - 1], texts[number]) if number else []
            labels.append(self._label(number, stage, rows))
            changes.append(self._change(number, stage, rows, texts[number]))
        chooser = element("nav", "".join(labels))
        return element("div", chooser + element("div", "".join(changes)), class_="stages")

    def _label(self, number: int, stage: Stage, rows: list[Row]) -> str:
        identity = f"{self._prefix}-x{number}"
        self._rules.append(f".stages:has(#{identity}:checked) #{identity}-c {{ display: block; }}")
        button = radio(f"{self._prefix}-pass", identity, not number)
        count = sum(not row.is_equal for row in rows)
        shown = element("small", f"{count:,}" if count else "") if stage.changed or not number else ""
        kind = "stage" if stage.changed or not number else "stage same"
        return element("label", button + element("span", text(stage.name)) + shown, class_=kind, for_=identity)

    def _change(self, number: int, stage: Stage, rows: list[Row], whole: str) -> str:
        count = sum(not row.is_equal for row in rows)
        said = "nothing changed" if number else "where it begins"
        if count:
            said = f"{plural(count, 'line')} changed"
        if not stage.text:
            size = f"{plural(stage.loops, 'loop')} and {plural(stage.statements, 'statement')}"
            said = f"{'left' if stage.changed or not number else said + ' of'} {size}, which are too many to be shown"
        purpose = PURPOSES.get(stage.name, "")
        head = element("h3", text(stage.name)) + element("p", text(f"{purpose}: {said}" if purpose else said))
        if count:
            before = "".join(_side(row, row.before, "gone") for row in rows)
            after = "".join(_side(row, row.after, "came") for row in rows)
            sides = element("div", element("h4", "before") + before) + element("div", element("h4", "after") + after)
            body = element("div", sides, class_="sides")
        else:
            shown = whole.splitlines()[:_MOST_LINES] if not number else []
            lines = "".join(element("span", _code(line)) for line in shown)
            if len(shown) == _MOST_LINES:
                lines += element("span", "and so on", class_="skip")
            body = element("div", element("div", lines), class_="sides whole") if lines else ""
        return element("section", head + body, class_="change", id=f"{self._prefix}-x{number}-c")


def _side(row: Row, line: str | None, mark: str) -> str:
    if row.skipped:
        return element("span", f"{row.skipped:,} equal lines", class_="skip")
    if line is None:
        return element("span", " ")
    return element("span", _code(line) or " ", class_=False if row.is_equal else mark)


def _code(line: str) -> str:
    """A line of a Program, with the place that it comes from set back."""
    found = _COMMENT.match(line)
    return text(line) if found is None else text(found.group(1)) + element("em", text(found.group(2)))
