"""mgjit itself: compiled as the workload is measured, with gradients kept, in a loop, as Python; and undecorated."""

from __future__ import annotations

import os
import platform
import tempfile
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable

import mgjit
from bench import workloads
from bench.peers.common import Form, Problem, Unsupported, in_loop, per_call

PACKAGES = ("xxhash", "platformdirs", "tqdm", "cffi")

#: Workloads whose undecorated step would need minutes or gigabytes.
TOO_LARGE = ("W4", "W6x16")


def version() -> str:
    """Of the library and of this interpreter."""
    return f"mgjit {mgjit.__version__} on {platform.python_implementation()} {platform.python_version()}"


def forms(problem: Problem) -> dict[str, Callable[[], Form]]:
    """What `problem.options["forms"]` names, or all that are compared on one interpreter."""
    os.environ.setdefault("MGJIT_CACHE_DIR", tempfile.mkdtemp(prefix="mgjit-bench-"))
    possible: dict[str, Callable[[], Form]] = {
        "mgjit": lambda: _compiled(problem, grads=False),
        "mgjit .loop": lambda: _loop(problem),
        "mgjit, gradients kept": lambda: _compiled(problem, grads=True),
        "mgjit, Python backend": lambda: _python(problem),
        "undecorated": lambda: _undecorated(problem),
    }
    return {name: possible[name] for name in problem.options.get("forms", possible)}


def _instance(problem: Problem) -> Any:
    sources = workloads.Sources(*(Path(p) if p else None for p in (problem.mnist, problem.names)))
    return workloads.WORKLOADS[problem.name].make(sources)


def _step(instance: Any, problem: Problem, **options: Any) -> Any:
    return workloads.compiled(
        instance, workloads.WORKLOADS[problem.name], **problem.options.get("compile", {}), **options
    )


def _compiled(problem: Problem, **options: Any) -> Form:
    instance = _instance(problem)
    return per_call(_step(instance, problem, **options), instance.calls)


def _loop(problem: Problem) -> Form:
    instance = _instance(problem)
    step = _step(instance, problem, grads=False)
    if not hasattr(step, "loop"):
        raise Unsupported("this version of mgjit has no .loop")
    if len({len(call[0]) for call in instance.calls}) > 1:
        raise Unsupported(".loop needs rows of one structure")

    def loop(rows: list[tuple[Any, ...]]) -> Any:
        columns = [_column(column) for column in zip(*rows)]
        return lambda: step.loop(*columns)

    return in_loop(loop, instance.calls)


def _column(values: Sequence[Any]) -> Any:
    """Numbers, or rows of numbers, in contiguous memory, as the other peers get theirs."""
    first = values[0]
    if isinstance(first, (int, float)):
        return array("d" if isinstance(first, float) else "B", values)
    kind = {list: "d", bytes: "B"}.get(type(first)) or first.typecode
    flat = array(kind, (number for row in values for number in row))
    return memoryview(flat).cast("B").cast(kind, [len(values), len(first)])


def _python(problem: Problem) -> Form:
    if problem.name in TOO_LARGE:
        raise Unsupported("far too slow for a batch of this size")
    instance = _instance(problem)
    return per_call(_step(instance, problem, backend="python"), instance.calls)


def _undecorated(problem: Problem) -> Form:
    if problem.name in TOO_LARGE:
        raise Unsupported("minutes a step, and gigabytes")
    instance = _instance(problem)

    def step(*arguments: Any) -> float:
        return float(instance.step(*arguments).data)

    return per_call(step, instance.calls)
