"""Random programs with `try` around arithmetic, nested and in turns with branches.

    python tests/fuzz/handlers.py --programs 300 --seed 1 --keep DIR

1. `program(seed)` writes the source of a class with a method, `step(x, y)`, whose operations may raise.
2. The method runs twice, compiled and undecorated, with numbers of which some make them raise.
3. After every call, the results and all that the objects hold must be equal, bit for bit.  A program ends where plain
   Python raises an error that it does not handle, or computes a complex number: there compiled calls may differ.
"""

from __future__ import annotations

import linecache
import random
import re
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import mgjit

_OPERATIONS = (
    "math.exp({a})", "math.log({a})", "1.0 / ({a})", "({a}) / ({b})", "math.sqrt({a})", "({a}) ** ({b})",
    "({a}) % ({b})", "({a}) // ({b})", "math.tanh({a})", "({a}) * ({b})", "({a}) - ({b})", "math.pow({a}, {b})",
    "math.acos({a})",
)  # fmt: skip
_LEAVES = ("x", "y", "self.w", "self.v[0]", "self.v[1]", "0.5", "800.0 * x", "2.0")
_TARGETS = ("self.w", "self.v[0]", "self.v[1]", "z")
_KINDS = (
    "OverflowError", "ZeroDivisionError", "ValueError", "ArithmeticError", "Exception",
    "(ValueError, ZeroDivisionError, OverflowError)",
)  # fmt: skip
_HEAD = """\
import math
class Thing:
    def __init__(self):
        self.w, self.v, self.n, self.m = 0.5, [0.3, -0.7], 0, 0
    def step(self, x, y):
        z = x
"""
_CALLS = 40


def _expression(draw: random.Random, depth: int) -> str:
    if not depth:
        return draw.choice(_LEAVES)
    return draw.choice(_OPERATIONS).format(a=_expression(draw, depth - 1), b=draw.choice(_LEAVES))


def _body(draw: random.Random, depth: int) -> list[str]:
    lines: list[str] = []
    for _ in range(draw.randint(1, 3)):
        kind, target = draw.random(), draw.choice(_TARGETS)
        if kind < 0.45:
            lines.append(f"{target} = {_expression(draw, draw.randint(1, 2))}")
        elif kind < 0.8 and depth < 2:
            lines += _attempt(draw, depth, target)
        else:
            lines.append(f"if {_expression(draw, 1)} > {_expression(draw, 0)}:")
            lines.append(f"    {target} = {_expression(draw, 1)}")
    return lines


def _attempt(draw: random.Random, depth: int, target: str) -> list[str]:
    handler = draw.choice((["self.n += 1"], [f"{target} = 0.25"], ["return -1.0"], ["self.n += 1", f"{target} = y"]))
    lines = ["try:", *_inside(_body(draw, depth + 1)), f"except {draw.choice(_KINDS)}:", *_inside(handler)]
    if draw.random() < 0.3:
        lines += ["else:", "    self.n += 2"]
    if draw.random() < 0.2:
        lines += ["finally:", "    self.m += 1"]
    return lines


def _inside(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def program(seed: int) -> str:
    """The source of a class `Thing`."""
    lines = [*_body(random.Random(seed), 0), "return z"]
    return _HEAD + "".join(f"        {line}\n" for line in lines)


def fails(seed: int, counts: Counter[str] | None = None, **options: Any) -> str:
    """How the compiled program of a seed differs from the plain one; empty if it does not.

    Args:
        counts: counts kinds of calls. options: of `mgjit.compile`.
    """
    space: dict[str, Any] = {}
    exec(compile(program(seed), f"<handlers {seed}>", "exec"), space)  # noqa: S102 - our own text
    plain, other = space["Thing"](), space["Thing"]()
    draw = random.Random(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        step = mgjit.compile(background=False, **options)(_with_source(seed, other))
        for call in range(_CALLS):
            some = (draw.uniform(0.0, 1.0), draw.uniform(0.1, 1.0))
            x, y = draw.choice([(0.0, 1.0), (draw.uniform(-2.0, 2.0), draw.uniform(-2.0, 2.0)), some, some, (1.5, 0.0)])
            try:
                expected = plain.step(x, y)
            except Exception:
                break
            if re.search(r"\dj\b", repr((expected, vars(plain)))):  # complex, which compiled steps do not have
                break
            found = step(x, y)
            if repr((found, vars(other))) != repr((expected, vars(plain))):
                return f"call {call} with {x!r}, {y!r}: {found!r}, {vars(other)} instead of {expected!r}, {vars(plain)}"
    if counts is not None:
        counts.update(compiled=step.stats.calls, plain=step.stats.plain_calls + step.stats.waiting_calls)
    return ""


def _with_source(seed: int, thing: Any) -> Any:
    """The method, whose source can be read, as that of a file."""
    source, name = program(seed), f"<handlers {seed}>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    return thing.step


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
    from tests.fuzz.command import hunt_and_count

    sys.exit(hunt_and_count(__doc__, fails, program))
