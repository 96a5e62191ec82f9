"""Runs programs with autograd classes of their own: undecorated, compiled, and with `backward()` recorded.

Every number that can be seen is compared after every call, bit for bit; where operands are in sets, whose order is
nobody's, up to rounding.
"""

from __future__ import annotations

import importlib.util
import itertools
import math
import re
import struct
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import mgjit
from mgjit.compiler.pipeline import pipeline
from mgjit.compiler.toolchain.target import Processor
from mgjit.errors import ArgumentError, DefectWarning, LeakError, TraceError
from mgjit.ir.trace import Trace

from .oracle import UNDEFINED, bits

#: How a program can be run: options of `mgjit.compile`.
WAYS: dict[str, dict[str, Any]] = {
    "tcc": {"compiler": "tcc", "cache": False},
    "gcc": {"compiler": "gcc", "cache": False},
    "clang": {"compiler": "clang", "cache": False},
    "python": {"backend": "python"},
    # The Program that is scheduled for vectors, as Python.
    "lanes4": {"backend": "python"},
    "lanes8": {"backend": "python"},
}
_PROCESSORS = {"lanes4": Processor(4, 16), "lanes8": Processor(8, 32)}
_number = itertools.count()
_ZERO = bits(0.0)
#: What undecorated programs may raise, because of the numbers that they happen to have.
_DISCARDED = (*UNDEFINED, ValueError, TypeError)


class Refused(Exception):
    """A typed error of mgjit, which docs/reference/steps.md announces."""


def outcome(text: str, way: str) -> str:
    """What becomes of a program: "same", "discarded", "refused: ..." or "differs: ..." and the like.

    A name that ends in "-recorded" is a way with `backward()` recorded operation by operation; one that ends in
    "-loop" makes all calls at once.
    """
    with TemporaryDirectory() as folder, scheduled_for(_PROCESSORS.get(way.partition("-")[0])):
        path = Path(folder) / "program.py"
        path.write_text(text)
        try:
            expected, is_exact = _run(path, lambda step: step, is_loop=way.endswith("-loop"))
        except _DISCARDED:
            return "discarded"
        said: list[str] = []
        try:
            found, _ = _run(path, lambda step: _compiled(step, way), way.endswith("-loop"), said)
        except Refused as error:
            return f"refused: {error}"
        except Exception as error:
            return f"raises {type(error).__name__}: {error}"
    difference = _first_difference(expected, found, is_exact)
    return f"differs: {difference}" if difference else f"same, {said[0]}"


@contextmanager
def scheduled_for(processor: Processor | None) -> Iterator[None]:
    """Steps that are built as Python meanwhile are scheduled for a processor."""
    lower = pipeline.lower

    def scheduled(trace: Trace, inputs: Any, *given: Any, **options: Any) -> Any:
        return lower(trace, inputs, *(given or (processor,)), **options)

    if processor is not None:
        pipeline.lower = scheduled
    try:
        yield
    finally:
        pipeline.lower = lower


def _compiled(step: Any, way: str) -> Any:
    compiled = mgjit.compile(step, **WAYS[way.partition("-")[0]])
    if way.endswith("-recorded"):
        compiled._kernels.maker.knowledge.no_flow = "so that it is not tried"
    return compiled


def _run(
    path: Path, decorate: Callable[[Any], Any], is_loop: bool = False, said: list[str] | None = None
) -> tuple[list[Any], bool]:
    """What can be seen after each call, and whether it has to be the same in every process."""
    name = f"foreign_{next(_number)}"
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None
    assert specification.loader is not None
    module: Any = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    try:
        specification.loader.exec_module(module)
        step, look, host = module.make()
        run = decorate(step)
        snapshots = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mgjit.errors.SideEffectWarning)
            warnings.simplefilter("error", DefectWarning)
            if is_loop and run is not step:
                _typed(lambda: run.loop(*map(list, zip(*module.CALLS))), lambda: None)  # rows may have run
                snapshots = [(None, bits(look()))]
            elif is_loop:
                for arguments in module.CALLS:
                    step(*arguments)
                snapshots = [(None, bits(look()))]
            else:
                for number, arguments in enumerate(module.CALLS):
                    result = _typed(lambda arguments=arguments: run(*arguments), look)
                    snapshots.append((bits(result), bits(look())))
                    _typed(lambda number=number: host(number), lambda: None)
            if said is not None:
                explained = _typed(lambda: run.lower(*module.CALLS[0]).explain(), look)
                said.append("symbolic" if "is taken symbolically" in explained else "recorded")
        return snapshots, not module.IN_SETS
    finally:
        del sys.modules[name]


def _typed(call: Callable[[], Any], look: Callable[[], Any]) -> Any:
    """A call; when it is refused, everything has to be as before."""
    before = bits(look())
    try:
        return call()
    except (ArgumentError, LeakError, TraceError) as error:
        if bits(look()) != before:
            raise RuntimeError(f"a refused call has changed something: {error}") from error
        text = re.sub(r"\S+\.py:\d+: ", "", str(error))
        raise Refused(f"{type(error).__name__}: {re.sub(r'[0-9.]+', '#', text)[:90]}") from error


def _first_difference(expected: list[Any], found: list[Any], is_exact: bool) -> str:
    for number, (mine, theirs) in enumerate(zip(expected, found)):
        for name, a, b in zip(("result", "state"), mine, theirs):
            if not _agree(a, b, is_exact):
                return f"call {number}, {name}: {a} expected, {b} found"
    return "" if len(expected) == len(found) else "another number of calls"


def _agree(a: Any, b: Any, is_exact: bool) -> bool:
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(_agree(x, y, is_exact) for x, y in zip(a, b))
    if a is None and b == _ZERO:
        return True  # a gradient that nothing was added to, in the memory of a kernel: see docs/reference/steps.md
    if is_exact or not (isinstance(a, str) and isinstance(b, str)):
        return bool(a == b)
    x, y = (float("nan") if text == "nan" else _number_of(text) for text in (a, b))
    return a == b or math.isclose(x, y, rel_tol=1e-6, abs_tol=1e-9)


def _number_of(pattern: str) -> float:
    return float(struct.unpack(">d", bytes.fromhex(pattern))[0])
