"""What a call of an almost empty step costs: of three numbers, of a list of two and two numbers, and with ten weights.

    python bench/calls.py

For each step: the undecorated function over floats, calls by the generated function and ctypes (on PyPy, cffi), and
quick calls (mgjit/runtime/vectorcall.py), where they are possible.  Nanoseconds, the least of many short repetitions.
"""

from __future__ import annotations

import platform
import sys
import timeit
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import mgjit
from mgjit.runtime import vectorcall

NUMBER, REPETITIONS = 1000, 500


def three(a: Any, b: Any, c: Any) -> Any:
    return a * b + c


def listed(xs: Any, y: Any, rate: Any) -> Any:
    return xs[0] * xs[1] + y * rate


class Line:
    """Ten weights in a list that each call changes, and a count."""

    def __init__(self) -> None:
        self.w, self.count = [0.1 * k for k in range(10)], 0

    def update(self, x: Any, y: Any, rate: Any) -> Any:
        w, predicted = self.w, 0.0
        for k in range(0, 10, 2):
            predicted += w[k] * x + w[k + 1]
        error = predicted - y
        for k in range(0, 10, 2):
            w[k] -= rate * error * x
            w[k + 1] -= rate * error
        self.count += 1
        return error * error


def nanoseconds(function: Any, arguments: tuple[Any, ...]) -> float:
    """The least time of a call."""
    names = {"function": function, **{f"x{k}": one for k, one in enumerate(arguments)}}
    statement = f"function({', '.join(f'x{k}' for k in range(len(arguments)))})"
    return min(timeit.repeat(statement, globals=names, number=NUMBER, repeat=REPETITIONS)) / NUMBER * 1e9


def compiled(function: Any, arguments: tuple[Any, ...]) -> Any:
    """A step that has its own call path."""
    step = mgjit.compile(function, background=False, verify="never")
    for _ in range(1000):
        step(*arguments)
    return step


def main() -> None:
    """Print a table."""
    print(f"{platform.python_implementation()} {platform.python_version()}: ns a call")
    steps: dict[str, Any] = {
        "three numbers": (three, (1.5, 2.5, 3.5)),
        "a list and two": (listed, ([1.5, 2.5], 0.5, 0.1)),
    }
    steps["ten weights"] = Line().update, (0.5, 0.25, 1e-9)
    vectorcall.MANY_CALLS = sys.maxsize
    found = {
        what: [nanoseconds(function, given), nanoseconds(compiled(function, given), given)]
        for what, (function, given) in steps.items()
    }
    vectorcall.extension.obtain()
    for what, (function, given) in steps.items():
        has_quick = vectorcall.extension.make is not None
        found[what].append(nanoseconds(compiled(function, given), given) if has_quick else float("nan"))
        print(f"{what:>16}: plain {found[what][0]:.0f}, generated {found[what][1]:.0f}, quick {found[what][2]:.0f}")


if __name__ == "__main__":
    main()
