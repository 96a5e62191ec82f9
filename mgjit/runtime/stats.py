"""What a compiled step has done so far: `step.stats`."""

from __future__ import annotations

import logging
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..base import settings
from ..compiler.build.families import SHARING
from .last import Calls, LastCall

if TYPE_CHECKING:
    from collections.abc import Callable

#: So many decisions of a step are told.
_MOST_DECIDED = 256


@dataclass(frozen=True)
class Member:
    """One kernel of a step: for one structure of its arguments, such as one length of a sequence.

    Attributes:
        signature: the structure of the arguments, in words. structure: the hash of its trace, part of its cache key.
        records, statements: size of the trace and of the Program.
        trace_seconds, roll_seconds, compile_seconds: as in `Stats`.
        cache: "hit", "miss" or "off".
    """

    signature: str
    structure: str
    records: int
    statements: int
    trace_seconds: float
    roll_seconds: float
    compile_seconds: float
    cache: str


@dataclass
class Stats:
    """What a compiled step has done so far; times in seconds, of the last trace.

    Attributes:
        traces: argument structures traced.
        calls: compiled calls that have changed what they change: calls of the step, rows of `.loop`, and `.update()`,
            the last one of three phases.
        records, loops, statements, lines: size of the trace, of the Program, of the generated source.
        trace_seconds: running the user's function once. roll_seconds: all passes and code generation.
        compile_seconds: the C compiler.
        cache: "hit", "miss" or "off". backend: "c" or "python". compiler: its command line.
        waiting_calls: calls and rows that were plain Python because their kernel was not built yet, or not worth its
            cost yet. Those that are part of another step's call count nowhere.
        swaps: which kernels were built in the background, and when they took over.
        plain_calls: calls that ran as plain Python. plain_reasons: why, each reason once.
        last: what happened at the last call: a kernel, and how good its code is, or plain Python, and why.
        compared_calls: calls that plain Python has made as well (verify=). compared_rows: rows of loops that were
            computed by the code of calls as well. mismatches: what was different in them.
        kernels: one description for each argument structure.
        retraces: why the step was traced again, in words.
        members: the kernels with what each has cost; `table()` prints them.
        sharing: by the structure of arguments, with whom a kernel shares its code, or why it does not.
        units: functions that are compiled by themselves, within plain calls, with what has been done for the forward
            and the backward part of each.
    """

    traces: int = 0
    calls: int = 0  # lives in `counter`, see below
    records: int = 0
    loops: int = 0
    statements: int = 0
    lines: int = 0
    trace_seconds: float = 0.0
    roll_seconds: float = 0.0
    compile_seconds: float = 0.0
    cache: str = "off"
    backend: str = ""
    compiler: str = ""
    waiting_calls: int = 0
    swaps: list[str] = field(default_factory=list)
    plain_calls: int = 0
    plain_reasons: list[str] = field(default_factory=list)
    compared_calls: int = 0
    compared_rows: int = 0
    mismatches: list[str] = field(default_factory=list)
    kernels: list[str] = field(default_factory=list)
    retraces: list[str] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)
    sharing: dict[str, str] = field(default_factory=dict)
    units: dict[str, tuple[Stats, Stats]] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        told = [
            f"{self.calls:,} compiled calls, {self.waiting_calls:,} plain ones before their code was there, "
            f"{self.plain_calls:,} plain ones for another reason",
            *self.plain_reasons,
            *(f"traced again: {reason}" for reason in self.retraces),
        ]
        return "\n".join([*told, self.table()] if self.members else told)

    @property
    def all_calls(self) -> int:
        """All calls and rows, compiled or plain, until the step is given up; also those that an exception has ended."""
        return self.calls + self.waiting_calls + self.plain_calls

    def between(self, name: str) -> int:
        """How many calls, of those that this field counts, there have been since the step has looked last."""
        under_way = self.__dict__.get("_under_way")
        return 0 if under_way is None else int(under_way(name))

    def look_between(self, under_way: Callable[[str], int]) -> None:
        """Count also the calls that `under_way` tells, for the name of a field."""
        self.__dict__["_under_way"] = under_way

    def waited(self) -> str:
        """How many calls were plain Python because they had no kernel yet, in words."""
        return (
            f"plain Python: {self.waiting_calls:,} of {self.waiting_calls + self.calls:,} calls, whose kernels were "
            "not there yet, or would have cost more than compiled calls have saved"
        )

    def table(self) -> str:
        """A table of the kernels, one line each, in the order in which they were made."""
        rows = [("arguments", "trace", "records", "statements", "trace s", "roll s", "compile s", "cache")]
        rows += [
            (
                member.signature, member.structure[:12], f"{member.records:,}", f"{member.statements:,}",
                f"{member.trace_seconds:.3f}", f"{member.roll_seconds:.3f}", f"{member.compile_seconds:.3f}",
                member.cache,
            )
            for member in self.members
        ]  # fmt: skip
        widths = [max(map(len, column)) for column in zip(*rows)]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if k < 2 else cell.rjust(width) for k, (cell, width) in enumerate(zip(row, widths))
            )
            for row in rows
        )

    def note_kernel(self, facts: dict[str, Any], trace_seconds: float, signature: str, reason: str) -> None:
        """Note a new kernel.

        Args:
            facts: of its code. trace_seconds: how long its trace took.
            signature: the structure of its arguments, in words. reason: why it was made.
        """
        if self.traces:
            self.retraces.append(reason)
        self.traces += 1
        self.trace_seconds = trace_seconds
        self.note_code(facts, signature)
        self.decide(f"kernel: for {signature}, {self.statements:,} statements, {self.backend}, cache: {self.cache}")
        self.kernels.append(f"{signature} {facts['structure'][:12]}")
        self.members.append(
            Member(
                signature, facts["structure"], self.records, self.statements, trace_seconds, self.roll_seconds,
                self.compile_seconds, self.cache,
            )
        )  # fmt: skip

    def note_code(self, facts: dict[str, Any], signature: str) -> None:
        """Note the code of a kernel for arguments of a structure."""
        self.sharing.pop(signature, None)
        if facts.get(SHARING):
            self.sharing[signature] = facts[SHARING]
        self.roll_seconds, self.compile_seconds = facts["lower_seconds"], facts["compile_seconds"]
        for name in ("records", "loops", "statements", "lines", "cache", "backend", "compiler"):
            setattr(self, name, facts[name])

    @property
    def last(self) -> LastCall:
        """What happened at the last call: whether a kernel has made it or plain Python, and why."""
        return self.noted.last(self.calls)

    def decide(self, text: str) -> None:
        """Let the logger tell a decision of the step, each text once, where MGJIT_LOG asks for that."""
        decided = self.noted.decided
        if settings.log_level() <= logging.INFO and text not in decided and len(decided) < _MOST_DECIDED:
            decided.add(text)
            settings.LOGGER.info("%s, call %d: %s", self.noted.name, self.all_calls + 1, text)

    def note_plain(self, reason: str, is_waiting: bool = False) -> None:
        """Note why a call runs as plain Python, or that it waits for its kernel."""
        self.decide(f"{'waits' if is_waiting else 'plain'}: {reason}")
        self.noted.compiled, self.noted.reason, self.noted.is_waiting = self.calls, reason, is_waiting

    @property
    def noted(self) -> Calls:
        """What is noted for `last`."""
        made: Calls = self.__dict__.setdefault("_noted", Calls())
        return made

    @property
    def counter(self) -> array[int]:
        """An array with one element, the number of calls, which compiled code increments."""
        made: array[int] = self.__dict__.setdefault("_counter", array("q", [0]))
        return made


def _calls(stats: Stats) -> int:
    return stats.counter[0]


def _set_calls(stats: Stats, calls: int) -> None:
    stats.counter[0] = calls


def _with_those_under_way(name: str) -> property:
    """A count, with the calls that have been made since the step has looked last (between.py)."""

    def get(stats: Stats) -> int:
        return int(stats.__dict__[name]) + stats.between(name)

    def put(stats: Stats, count: int) -> None:
        stats.__dict__[name] = count - stats.between(name)

    return property(get, put)


Stats.waiting_calls = _with_those_under_way("waiting_calls")  # type: ignore[assignment]  # as above
Stats.plain_calls = _with_those_under_way("plain_calls")  # type: ignore[assignment]
Stats.calls = property(_calls, _set_calls)  # type: ignore[assignment]  # a field in all other respects
