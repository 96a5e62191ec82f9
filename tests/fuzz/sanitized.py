"""Random programs whose generated C runs under the sanitizers as well.

    python tests/fuzz/sanitized.py --programs 500 --seed 0

Each program runs as a step does, with the results of the undecorated program; then each of its sources runs, with the
memory of each call, as a program of its own: see tests/codegen/sanitizers.py.  Kinds of numbers, modes of scheduling
and compilers take turns.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, os.environ.get("MGJIT_HUNT_ROOT", str(Path(__file__).resolve().parents[2])))
os.environ.setdefault("MGJIT_VERIFY", "never")  # a kernel that is found out and replaced would hide its defect
os.environ.setdefault("MGJIT_BACKGROUND", "0")  # nothing is found in calls that wait for their kernel

from mgjit.base import ffi
from mgjit.compiler.codegen.c import emit_c
from mgjit.compiler.codegen.layout import lay_out
from mgjit.compiler.codegen.mathematics import verification
from mgjit.compiler.pipeline.pipeline import Lowered, lower
from mgjit.compiler.toolchain import build, compilers
from mgjit.compiler.toolchain.processor import processor
from mgjit.engine.precision import PRECISIONS
from tests.compiler.codegen.sanitizers import Case, Kernel, check
from tests.fuzz import oracle
from tests.fuzz.programs import random_program

#: Functions of which the vector form is used where it has the bits of the library.
_FUNCTIONS = ("exp", "log", "tanh", "power")


class Way(NamedTuple):
    """How a program is compiled."""

    family: str
    dtype: str
    optimisation: str
    grads: bool


#: One after the other, so that neighbouring seeds differ in everything.
WAYS = [
    Way(family, dtype, optimisation, grads)
    for grads in (True, False)
    for optimisation in ("-O2 -march=native", "-O2", "-O3 -march=native")
    for dtype in ("float64", "float32")
    for family in ("gcc", "clang")
    if grads or optimisation != "-O2"
]


class Recorded(oracle.Interpreted):
    """A step that is compiled, and whose sources and calls are written down."""

    def __init__(self, step: Any, way: Way, cases: list[Case]) -> None:
        compiler = compilers.find(way.family)
        assert compiler is not None
        self.way, self.cases, self.compiler = way, cases, compiler
        precision = PRECISIONS[way.dtype]
        kind = processor(compiler, build.flags(compiler, "strict", way.optimisation), precision)
        super().__init__(step, precision, functools.partial(lower, processor=kind, grads=way.grads))

    def executor(self, lowered: Lowered, contents: dict[Any, Any]) -> Any:
        layout = lay_out(lowered.program, lowered.memory)
        functions = frozenset(
            name for name in _FUNCTIONS if verification.verified(self.compiler, self.way.optimisation, name)
        )
        case = Case(emit_c(lowered.program, layout, "strict", functions), layout, self.way.grads)
        self.cases.append(case)
        built = build.compile_shared(self.compiler, case.source, optimisation=self.way.optimisation)
        kernel = Kernel(case, lowered.program, ffi.load_bytes(built.binary))
        kernel.memory = contents  # type: ignore[attr-defined]
        return kernel

    def run_once(self) -> None:
        self.interpreter.run(self.interpreter.memory)


def defect(text: str, way: Way, count: list[int]) -> str:
    """What is wrong with a program; adds up how many sources and calls were run."""
    name = ("kept" if not way.grads else "way") + ("32" if way.dtype == "float32" else "")
    wanted = oracle.expected(text, name)
    if wanted is None:
        return ""
    cases: list[Case] = []
    found = oracle.run_program(text, lambda step: Recorded(step, way, cases), dtype=way.dtype, gradients=way.grads)
    text = oracle.difference(wanted, found)
    if text:
        return f"differs: {text}"
    for case in cases:
        count[0] += 1
        count[1] += len(case.calls)
        for family in ("gcc", "clang"):
            compiler = compilers.find(family)
            assert compiler is not None
            level = way.optimisation.replace("-O2", "-O1").replace("-O3", "-O1").split()
            text = check(case, compiler, level)
            if text:
                return f"{family}: {text}"
    return ""


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--programs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started, count, failed = time.perf_counter(), [0, 0], 0
    for seed in range(options.seed, options.seed + options.programs):
        way = WAYS[seed % len(WAYS)]
        text = defect(random_program(seed), way, count)
        if text:
            failed += 1
            print(f"seed {seed} {way}: {text}", flush=True)
    seconds = time.perf_counter() - started
    print(
        f"{options.programs} programs, {count[0]} sources with {count[1]} calls under gcc and clang, "
        f"{failed} failed, {seconds:.0f} s"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
