"""Play the variations of each cause, plain and compiled, and print how many there are and how many are right.

    python -m tests.programs.situations.causes [CAUSE ...] [--verify never|auto] [--count]

"Right" are the same results, types, objects and side effects, with one warning of each step that is plain Python.
`--count` plays nothing.  Exits with 1 if one is not right, or a cause has fewer than ten variations.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import sys
from collections import defaultdict

from mgjit.base.ffi import PYPY
from tests.programs.situations.play import situations, verdict

#: What was wrong, stopped or dear once.
CAUSES = {
    "library": "state of libraries, C code and the system",
    "modules": "modules that are not in sys.modules, and what they hold",
    "arguments": "arguments whose class is not exactly a builtin one",
    "nested": "steps that call steps, verified",
    "loop": "the code of .loop",
    "none": "attributes that begin as None, counters beside them",
    "numpy": "functions and scalars of numpy over traced numbers",
    "visible": "what of mgjit is visible to the program",
    "vars": "vars, JSON, copies and pickles of objects with compiled methods or parameters",
    "output": "text that a step writes, prints or logs",
    "same": "two names of one result",
    "methods": "methods of numbers",
    "called": "methods of the program's that C calls",
    "getattr": "classes that answer for attributes",
    "tensors": "tensors in steps",
    "dtypes": "gradients through changes of the type, sin and cos",
    "second": "derivatives of derivatives",
    "pairs": "pairs of index tensors",
    "masks": "masks and ranges as indices",
    "captured": "gradient functions beside captured parameters",
    "nan": "nan in max, argmax and comparisons",
    "powers": "powers at zero",
    "kept": "what forward keeps for backward",
    "select": "ints that select",
    "text": "str of a counter",
    "branches": "branches on numbers",
    "plain": "steps that are plain for good",
    "replaced": "parameters replaced, steps made anew",
    "deleted": "names that are deleted",
    "run": "loops that `mgjit run` did not recognise",
    "inner": "loops inside of a model's forward function",
    "stops": "exceptions, wait() and other interruptions",
    "interrupts": "Ctrl-C",
    "debug": "debuggers, tracers and profilers",
    "arrays": "numpy arrays given to steps over tensors",
}


def left_out(name: str, script: str) -> str:
    """Why a variation is not played on this interpreter; empty if it is."""
    if "import numpy" in script and importlib.util.find_spec("numpy") is None:
        return "numpy is missing"
    if PYPY and "import sqlite3" in script:
        return "PyPy's sqlite3 is Python: what a connection keeps is looked into, and there are several reasons"
    if PYPY and (name.startswith("vars:") or "json.dumps(vars(" in script):
        return "on PyPy, compiled methods are in the __dict__ of their object (docs/reference/differences.md)"
    return ""


def main() -> None:
    """Play what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("causes", nargs="*", metavar="CAUSE", help=", ".join(CAUSES))
    parser.add_argument("--verify", default="auto", choices=("never", "auto"))
    parser.add_argument("--count", action="store_true")
    options = parser.parse_args()
    os.environ["MGJIT_VERIFY"] = options.verify
    if shutil.which("tcc"):  # any compiler is as good, and this one is quick
        os.environ.setdefault("MGJIT_CC", "tcc")
    scripts = defaultdict(list)
    for name, script, _ in situations("variations.txt"):
        scripts[name.partition(":")[0]].append((name, script))
    every = right = wrong = 0
    for cause in options.causes or CAUSES:
        cases = [(name, script) for name, script in scripts[cause] if not options.count and not left_out(name, script)]
        found = [(name, verdict(script, True)) for name, script in cases]
        others = [f"    {name}: {what}" for name, what in found if what != "right"]
        told = "" if options.count else f", {len(cases)} played, {len(cases) - len(others)} right"
        print(f"{cause}: {CAUSES[cause]}: {len(scripts[cause])} variations{told}", *others, sep="\n", flush=True)
        every, right = every + len(scripts[cause]), right + len(cases) - len(others)
        wrong += len(others) + (len(scripts[cause]) < 10)
    print(f"{len(options.causes or CAUSES)} causes, {every} variations, {right} right, {wrong} not right or missing")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
