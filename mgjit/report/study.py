"""Study a step for a report: trace and lower it once more, and measure it.

1. The kernel that was used last says which arguments the report is about.  Its plan is enough to trace the step again;
   the arguments themselves are not kept.  This trace notes lines (tracer/sites.py).
2. It is lowered as the kernel was, for the same compiler, with a clock behind each part; what each pass leaves is
   written down.
3. The code is built and run on copies of the kernel's memory.  Where it cannot be, times are estimated, and the report
   says so.

If calls run as plain Python, or there have been none, there is only the source and the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from ..base import ffi
from ..compiler.build.build import emitted, emitted_python
from ..compiler.build.choices import optimisation_for
from ..compiler.build.families import FAMILY
from ..compiler.build.options import Options
from ..compiler.codegen.clock import Clock
from ..compiler.codegen.layout import Layout
from ..compiler.pipeline.pipeline import Lowered
from ..compiler.toolchain import build as toolchain
from ..compiler.toolchain import compilers
from ..engine.leaks import PlainCall
from ..errors import CompilerError
from ..ir.program import Statement
from ..ir.trace import Trace
from ..kernels.factory import Maker, Noted
from ..kernels.kernels import Kernels
from ..memory.buffers import Moved
from ..runtime.kernel import Kernel
from ..runtime.stats import Stats
from ..tracing.tracer.hints import power_hints
from ..tracing.tracer.knowledge import Again
from ..tracing.tracer.sites import Sites
from .findings import Findings, find
from .measured import Measured, Memory, measure
from .names import Names
from .source import Sources
from .stages import Stages


@dataclass
class Study:
    """What is known about a step.

    Attributes:
        name: of the step.
        stats: what the step has done.
        sources: the user's functions.
        arguments: the structure of the arguments that this is about, in words.
        facts: of the kernel's code (see build.py); empty without a kernel.
        findings: about lines and loops; None without a kernel.
        clock: has the parts of the Program and their code.
        stages: the Program after each pass.
        measured: how long the parts take; None if that was only estimated.
        why_estimated: why, in that case.
        why_plain: why there is no kernel, or no trace of it.
        memory: bytes, by kind.
        remarks: random numbers, backward passes, what takes a slower path.
        seconds: how long it took to make the report.
    """

    name: str
    stats: Stats
    sources: Sources
    arguments: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    findings: Findings | None = None
    clock: Clock | None = None
    stages: Stages | None = None
    measured: Measured | None = None
    why_estimated: str = ""
    why_plain: str = ""
    memory: dict[str, int] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    seconds: float = 0.0


def study(kernels: Kernels, name: str) -> Study:
    """Study the kernel that a step has used last.

    Args:
        kernels: of the step, none of which is being built.
        name: of the step.
    """
    started = perf_counter()
    maker = kernels.maker
    kernel = kernels.last or (kernels.separate.last if kernels.has_separate else None)
    if kernel is None:
        return Study(name, maker.stats, Sources(Sites(), maker.function), why_plain=_without_kernel(maker.stats))
    try:
        found = _Studied(maker, kernel, name).result()
    except (PlainCall, Again) as reason:
        why = f"it cannot be traced again: {str(reason) or 'other arguments have changed how'}"
        found = Study(name, maker.stats, Sources(Sites(), maker.function), why_plain=why)
    found.seconds = perf_counter() - started
    return found


def _without_kernel(stats: Stats) -> str:
    if stats.plain_reasons:
        return "; ".join(stats.plain_reasons)
    if stats.waiting_calls:
        return f"no kernel has been worth its time yet: {stats.waiting_calls} calls were plain Python"
    return "it has not been called, or has been cleared since"


class _Studied:
    """One kernel under study."""

    def __init__(self, maker: Maker, kernel: Kernel, name: str) -> None:
        self._maker, self._kernel, self._name = maker, kernel, name
        self._noted: Noted = maker.noted(kernel.plan, kernel.frame if kernel.told else None)
        if [answer.content for answer in self._noted.traced.told] != [answer.content for answer in kernel.told]:
            raise PlainCall("its numbers take another path now")
        self._sources = Sources(self._noted.sites, maker.function)
        self._clock, self._stages = Clock(), Stages(self._note)

    def result(self) -> Study:
        noted, kernel = self._noted, self._kernel
        lowered, layout, source, compiler = self._emitted()
        measured, why = self._measured(lowered, layout, source, compiler)
        names = Names(noted.plan, noted.traced.heap, self._sources, lowered.program)
        findings = find(
            self._clock.parts, measured.parts if measured else None, lowered.schedule, self._sources, names,
            hints_by_line(noted.traced.trace),
        )  # fmt: skip
        traced = noted.traced
        remarks = [text for text in (traced.draws.describe(), traced.heap.backward, traced.both_ways) if text]
        if FAMILY in kernel.code.facts:
            remarks.append(_SHARED)
        remarks += [f"slower path: {note}" for note in lowered.notes]
        return Study(
            self._name, self._maker.stats, self._sources, kernel.plan.outline(), kernel.code.facts, findings,
            self._clock, self._stages, measured, why, "", memory_of(kernel), remarks,
        )  # fmt: skip

    def _note(self, statement: Statement) -> str:
        origin = statement.origin
        lines = sorted({self._sources.lines_of(site).get(0, 0) for site in origin.sites} - {0})
        if not lines:
            return ""
        text = f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines[:4]))}{' ...' if len(lines) > 4 else ''}"
        return f"gradient of {text}" if origin.is_gradient else text

    @property
    def _options(self) -> Options:
        return self._maker.options.code

    def _emitted(self) -> tuple[Lowered, Layout, str, compilers.Compiler | None]:
        """The Program as for a whole step, with a clock; its source, and the compiler for it (None for Python)."""
        trace, inputs = self._noted.traced.trace, self._noted.inputs
        compiler = None if self._kernel.code.library is None else compilers.find(self._options.compiler)
        if compiler is None:
            return *emitted_python(trace, inputs, False, self._name, self._stages.watch, self._clock), None
        options = replace(self._options, separate=False)
        return *emitted(compiler, trace, inputs, options, self._name, self._stages.watch, self._clock), compiler

    def _measured(
        self, lowered: Lowered, layout: Layout, source: str, compiler: compilers.Compiler | None
    ) -> tuple[Measured | None, str]:
        if self._noted.traced.draws.size and not self._maker.stats.calls:
            return None, "it has drawn no random numbers yet"
        try:
            memory = Memory(self._kernel, self._noted, lowered, layout)
            library = None if compiler is None else _built(compiler, source, self._options, lowered.copies)
            found = measure(memory, self._clock, library, source)
        except CompilerError as reason:
            return None, f"the instrumented code could not be built: {reason}"
        except Moved:
            return None, "another thread has just moved the parameters"
        if found.call < _SHORTEST:
            return None, "its kernel takes less than 0.03 µs"
        return found, ""


_SHARED = (
    "its kernel is code for many lengths, which took no passes and no compiler for this one; what is shown below, and "
    "was measured, is code for this length alone"
)
#: Calls that take less, in seconds, are too short for the clock.
_SHORTEST = 3e-8
#: Instrumented libraries, by their source: a report is often made twice.
_libraries: dict[tuple[str, str], ffi.Library] = {}
_MOST_LIBRARIES = 8


def _built(compiler: compilers.Compiler, source: str, options: Options, statements: int) -> ffi.Library:
    key = compiler.identity, source
    if key not in _libraries:
        optimisation = optimisation_for(compiler, options, statements, source=source)
        built = toolchain.compile_shared(compiler, source, mode=options.mode, optimisation=optimisation)
        if len(_libraries) >= _MOST_LIBRARIES:
            _libraries.clear()
        _libraries[key] = ffi.load_bytes(built.binary)
    return _libraries[key]


def memory_of(kernel: Kernel) -> dict[str, int]:
    """The bytes of each kind of memory that a kernel works on, those of its arguments among them."""
    found: dict[str, int] = {}
    for slot, buffer in zip(kernel.code.slots, kernel.buffers):
        if isinstance(buffer, list):
            size = 8 * len(buffer)
        else:
            size = 0 if buffer is None else memoryview(buffer).nbytes
        found[slot.space] = found.get(slot.space, 0) + size
    return found


def hints_by_line(trace: Trace) -> dict[tuple[str, int], list[str]]:
    """The faster spellings, by file and line."""
    found: dict[tuple[str, int], list[str]] = {}
    for hint in power_hints(trace):
        place, _, text = hint.partition(": ")
        path, _, line = place.rpartition(":")
        found.setdefault((path, int(line)), []).append(text)
    return found
