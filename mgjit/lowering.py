"""Inspecting a step without building it: `step.lower(*args)`."""

from __future__ import annotations

from dataclasses import dataclass, field

from .codegen.c import emit_c
from .codegen.layout import lay_out
from .ir.printer import print_program
from .passes.pipeline import Lowered
from .stats import Stats


@dataclass
class Lowering:
    """A step lowered for certain arguments."""

    lowered: Lowered
    trace_seconds: float
    stats: Stats
    hints: list[str] = field(default_factory=list)
    draws: str = ""
    backward: str = ""
    not_compared: str = ""

    @property
    def graph(self) -> str:
        """The Program as readable text."""
        return print_program(self.lowered.program)

    @property
    def c_source(self) -> str:
        """The generated C source."""
        return emit_c(self.lowered.program, lay_out(self.lowered.program, self.lowered.memory))

    def explain(self) -> str:
        """What was recorded, how each loop is executed, what takes a slower path and why, and how long it all took."""
        lowered = self.lowered
        lines = [
            f"{lowered.records} records traced in {self.trace_seconds:.3f} s",
            f"-> {lowered.loops} loops, {lowered.statements} statements, {self.c_source.count(chr(10))} lines of C",
            "seconds: " + ", ".join(f"{stage} {seconds:.4f}" for stage, seconds in lowered.seconds.items()),
        ]
        lines += [text for text in (self.draws, self.backward) if text]
        if self.stats.traces:
            lines.append(f"last build: cache {self.stats.cache}, C compiler {self.stats.compile_seconds:.3f} s")
        else:
            lines.append("not built yet: no compiler has run")
        lines += [f"    {line}" for line in lowered.schedule]
        lines += [f"slower path: {note}" for note in lowered.notes]
        lines += [f"could be faster: {hint}" for hint in self.hints]
        lines += [f"traced again: {reason}" for reason in self.stats.retraces]
        if self.stats.compared_calls:
            lines.append(f"compared with plain Python: {self.stats.compared_calls} calls")
        if self.not_compared:
            lines.append(f"not compared with plain Python: {self.not_compared}")
        lines += [f"runs as plain Python: {reason}" for reason in self.stats.plain_reasons]
        if self.stats.waiting_calls:
            lines.append(f"plain Python until a kernel was there: {self.stats.waiting_calls} calls")
        lines += [f"built in the background: {swap}" for swap in self.stats.swaps]
        return "\n".join(lines)
