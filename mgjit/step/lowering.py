"""Inspecting a step without building it: `step.lower(*args)`."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..compiler.codegen.c import emit_c
from ..compiler.codegen.layout import lay_out
from ..compiler.codegen.sharing import shared_loops
from ..compiler.pipeline.pipeline import Lowered, lower
from ..compiler.toolchain.target import Processor
from ..ir.printer import print_program
from ..report.markup import plural
from ..report.text import estimated, table, wants_colour
from ..runtime.stats import Stats
from ..tracing.tracer.hints import power_hints
from ..tracing.tracer.knowledge import Again
from ..verification.trial import plain_seconds, reason_without_trial

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..kernels.factory import Maker, Noted


@dataclass
class Lowering:
    """A step lowered for certain arguments."""

    lowered: Lowered
    trace_seconds: float
    stats: Stats
    hints: list[str] = field(default_factory=list)
    draws: str = ""
    backward: str = ""
    both_ways: str = ""
    not_compared: str = ""
    noted: Noted | None = field(default=None, repr=False)
    step: object = field(default=None, repr=False)
    mode: str = "strict"
    paths: Sequence[str] = ()
    threads: int = 1

    @property
    def graph(self) -> str:
        """The Program as readable text."""
        return print_program(self.lowered.program)

    @property
    def c_source(self) -> str:
        """The generated C source."""
        program = self.lowered.program
        return emit_c(program, lay_out(program, self.lowered.memory), self.mode, threads=self.threads)

    def explain(self, colour: bool | None = None) -> str:
        """What was recorded, which line became which loops, what takes a slower path and why, and how long it all took.

        Args:
            colour: whether to mark what matters for a terminal; None: if that is where standard output goes.
        """
        lowered = self.lowered
        lines = [
            _sentence(str(self.stats.last)),
            f"{plural(lowered.records, 'record')} traced in {self.trace_seconds:.3f} s",
            f"-> {plural(lowered.loops, 'loop')}, {plural(lowered.statements, 'statement')}, "
            f"{self.c_source.count(chr(10)):,} lines of C",
            "seconds: " + ", ".join(f"{stage} {seconds:.4f}" for stage, seconds in lowered.seconds.items()),
        ]
        lines += [text for text in (self.draws, self.backward, self.both_ways, *self.paths) if text]
        lines += [self._sharing()] if self.threads > 1 else []
        if self.stats.traces:
            lines.append(f"last build: cache {self.stats.cache}, C compiler {self.stats.compile_seconds:.3f} s")
        else:
            lines.append("not built yet: no compiler has run")
        if self.noted is not None:
            lines += table(estimated(lowered, self.noted, self.step), wants_colour() if colour is None else colour)
        lines += [f"slower path: {note}" for note in lowered.notes]
        lines += [f"could be faster: {hint}" for hint in self.hints]
        lines += [f"traced again: {reason}" for reason in self.stats.retraces]
        if self.stats.compared_calls:
            lines.append(f"compared with plain Python: {plural(self.stats.compared_calls, 'call')}")
        if self.not_compared:
            lines.append(f"not compared with plain Python: {self.not_compared}")
        lines += [f"runs as plain Python: {reason}" for reason in self.stats.plain_reasons]
        if self.stats.waiting_calls:
            lines.append(self.stats.waited())
        lines += [f"built in the background: {swap}" for swap in self.stats.swaps]
        lines += [f"{signature}: {text}" for signature, text in self.stats.sharing.items()]
        for name, (forward, backward) in self.stats.units.items():
            traces = forward.traces + backward.traces
            calls = plural(forward.calls, "call")
            lines.append(f"{name} is compiled by itself: {calls} within plain ones, {plural(traces, 'trace')}")
        return "\n".join(lines)

    def _sharing(self) -> str:
        """What becomes of `threads=`."""
        count = len(shared_loops(self.lowered.program))
        if not count:
            return f"threads={self.threads} has no effect: what iterations compute side by side takes no millisecond"
        return f"{self.threads} threads share {plural(count, 'loop')}"


def lowering_of(maker: Maker, arguments: Sequence[Any]) -> Lowering:
    """Trace and lower a step for these arguments without building or running it."""
    while True:
        with contextlib.suppress(Again):
            plan = maker.plan(arguments)
            return _lowered(maker, maker.noted(plan, plan.packed(arguments)))


def _lowered(maker: Maker, noted: Noted) -> Lowering:
    plan, traced, trace, code = noted.plan, noted.traced, noted.traced.trace, maker.options.code
    plainly = plain_seconds(noted.seconds, len(trace), trace.in_blocks(), trace.work_in_nests())
    is_fast = code.mode == "fast"
    processor = Processor(64 // plan.precision.size, fuses=is_fast, is_fast=is_fast)  # the same on every machine
    lowered = lower(trace, noted.inputs, processor, code.grads, name=maker.qualname)
    return Lowering(
        lowered, noted.seconds, maker.stats, power_hints(trace), traced.draws.describe(), traced.heap.backward,
        traced.both_ways, reason_without_trial(maker.options, plainly), noted, maker.function, code.mode,
        threads=code.threads,
    )  # fmt: skip


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:].rstrip('.')}."
