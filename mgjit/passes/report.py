"""How each nest was scheduled, in words, for `explain()`.

forward: 100 x 16 (16) into r6, t7: 8 lanes along the loop of 16, 2 vectors x 10 rows at a time, packed: p0
"""

from __future__ import annotations

from ..ir.program import Loop, arrays_written, statements
from .cost import Plan, Processor
from .dependence import independent
from .nest import Nest, band


def describe(loop: Loop, nest: Nest | None, plan: Plan | None, processor: Processor) -> str:
    """One line for `explain()` about a nest."""
    loops = band(loop)
    inner = sorted({one.count for one in _below(loops[-1])}, reverse=True)
    shape = " x ".join(str(one.count) for one in loops) + (f" ({', '.join(map(str, inner))})" if inner else "")
    written = list(dict.fromkeys(a.name for s in statements(loop.body) for a in arrays_written(s)))
    names = ", ".join(written[:3]) + (" ..." if len(written) > 3 else "")
    return f"{shape} into {names}: {_how(loop, nest, plan, processor)}"


def _below(loop: Loop) -> list[Loop]:
    found: list[Loop] = []
    for node in loop.body:
        if isinstance(node, Loop):
            found += [node, *_below(node)]
    return found


def _how(loop: Loop, nest: Nest | None, plan: Plan | None, processor: Processor) -> str:
    if plan is None or plan.vector is None:
        reason = f"not vectorised, {_why_not(loop, nest, processor)}"
        return reason if plan is None or plan.rows is None else f"{plan.row_count} rows at a time, {reason}"
    lanes = min(processor.lanes, plan.vector.count)
    words = [f"{lanes} lanes along the loop of {plan.vector.count}"]
    if plan.vectors > 1 or plan.row_count > 1:
        rows = f" x {plan.row_count} rows" if plan.row_count > 1 else ""
        words.append(f"{plan.vectors} vector{'s' if plan.vectors > 1 else ''}{rows} at a time")
    if plan.padded:
        words.append("rows padded")
    if plan.packed:
        words.append("packed: " + ", ".join(dict.fromkeys(reference.array.name for reference in plan.packed)))
    return ", ".join(words)


def _why_not(loop: Loop, nest: Nest | None, processor: Processor) -> str:
    if processor.lanes == 1:
        return "the compiler knows no vectors"
    if nest is None:
        return "it writes where only a table knows, or is cut into functions"
    free = [one for one in nest.band if independent(one, [loop])]
    if not free:
        return "iterations depend on each other"
    if all(one in nest.fixed for one in free):
        return "its first iteration or a table makes a difference"
    return "single elements cost less than vectors of separate ones"
