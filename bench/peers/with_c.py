"""The C written by hand, `bench/reference/`: a call a step, and the loop form where a file has one."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

from bench import references, workloads
from bench.peers.common import Form, Problem, Unsupported
from mgjit.compiler.toolchain import compilers

PACKAGES = ("xxhash", "platformdirs", "tqdm", "cffi")


def version() -> str:
    """Of the compiler."""
    compiler = compilers.find()
    return compiler.version() if compiler else "no C compiler"


def forms(problem: Problem) -> dict[str, Callable[[], Form]]:
    """Calls and, for some, a loop."""
    return {"C by hand": lambda: _form(problem, loop=False), "C by hand, loop": lambda: _form(problem, loop=True)}


def _form(problem: Problem, loop: bool) -> Form:
    workload = workloads.WORKLOADS[problem.name]
    sources = workloads.Sources(*(Path(p) if p else None for p in (problem.mnist, problem.names)))
    instance = workload.make(sources)
    reference = references.Reference(workload, instance)
    if loop and not reference.has_loop:
        raise Unsupported("no loop form was written")

    def prepared(count: int) -> Callable[[], Any]:
        run, losses = reference.prepared(count, loop)

        def timed() -> Any:
            run()
            return losses

        return timed

    lengths = {len(call[0]) for call in instance.calls}
    return Form(prepared, len(instance.calls) if len(lengths) > 1 else 1)
