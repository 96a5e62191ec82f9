"""Code that measures how long each part of a Program takes, for reports.

1. The parts are the nodes at the top of each phase: loop nests, blocks, and stretches of single statements.
2. After each of them, `tick(number)` adds the time since the last one to what the part has taken.
3. What a tick takes itself is measured, too: `mgjit_clock` calls it many times with nothing in between.
4. The unit of the clock is found by reading it twice, a while apart, together with the system's (report/measured.py).

The parts are not moved across ticks, which are opaque to the compiler; they are otherwise compiled as in a kernel, so
that their times are what they take there, except that a part cannot overlap with the next one.  C reads the processor's
own counter, where the compiler has a name for it; otherwise, and in Python, the clock of the system.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import groupby
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from ..ir.program import Node, Statement

if TYPE_CHECKING:
    from .emitter import Emitter

_SOURCE = """\
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__TINYC__)
static long long now(void) {{ return (long long)__builtin_ia32_rdtsc(); }}
#elif defined(_WIN32)
extern int QueryPerformanceCounter(long long *);
static long long now(void) {{ long long n; QueryPerformanceCounter(&n); return n; }}
#else
extern int clock_gettime(int, long *);
static long long now(void)
{{
    long n[2];
#if defined(__APPLE__)
    clock_gettime(6, n);
#else
    clock_gettime(1, n);
#endif
    return n[0] * 1000000000LL + n[1];
}}
#endif
static long long last, spent[{count}];
static NOINLINE void tick(int part)
{{
    if (part >= 0)
        spent[part] += now() - last;
    last = now();
}}
EXPORT int mgjit_clock(void *const *m);
EXPORT int mgjit_clock(void *const *m)
{{
    long long *const out = (long long *)m[0];
    for (int k = 0; k < {count}; k++) {{
        out[k] = spent[k];
        spent[k] = 0;
    }}
    last = now();
    for (int k = 0; k < {ticks}; k++)
        tick({count} - 1);
    out[{count} - 1] = spent[{count} - 1];
    out[{count}] = now();
    spent[{count} - 1] = 0;
    last = now();
    return 0;
}}
"""


class Part(NamedTuple):
    """A part of a Program.

    Attributes:
        phase: which it belongs to.
        nodes: what it consists of.
        text: its code.
    """

    phase: str
    nodes: Sequence[Node]
    text: str


def top_nodes(nodes: Sequence[Node]) -> Iterator[Sequence[Node]]:
    """The parts of a phase."""
    for _, group in groupby(enumerate(nodes), lambda one: one[0] if not isinstance(one[1], Statement) else -1):
        yield [node for _, node in group]


class Clock:
    """Measures the parts of one Program.

    Attributes:
        parts: in order; a part's number is its position.
    """

    #: How often `mgjit_clock` ticks.
    TICKS = 64

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self._last = 0.0
        self._spent: list[float] = []

    def emit(self, phase: str, nodes: Sequence[Node], emitter: Emitter, functions: Sequence[str]) -> None:
        """Emit the nodes of a phase, with a tick after each part.

        Args:
            functions: the functions emitted so far, which parts may add to.
        """
        end = ";" if emitter.has_vectors else ""  # of C
        if not self.parts:
            emitter.line(f"tick(-1){end}")
        for part in top_nodes(nodes):
            lines, before = len(emitter.lines), len(functions)
            emitter.nodes(part)
            text = "\n".join([*functions[before:], *(line[4:] for line in emitter.lines[lines:])])
            emitter.line(f"tick({len(self.parts)}){end}")
            self.parts.append(Part(phase, part, text))

    # ---- in C ---------------------------------------------------------------------------------------

    def c_source(self) -> str:
        """The functions that measure."""
        return _SOURCE.format(count=len(self.parts) + 1, ticks=self.TICKS)

    # ---- in Python ------------------------------------------------------------------------------------

    def tick(self, part: int) -> None:
        """A part ends, or the first one begins: -1."""
        if part >= 0:
            self._spent[part] += perf_counter() - self._last
        self._last = perf_counter()

    def take(self) -> array[float]:
        """What each part has taken since the last time, what the ticks have taken, and the time, in seconds."""
        found = array("d", self._spent or [0.0] * (len(self.parts) + 1))
        found.append(perf_counter())
        self._spent = [0.0] * (len(self.parts) + 1)
        self._last = perf_counter()
        for _ in range(self.TICKS):
            self.tick(len(self.parts))
        found[-2], self._spent[-1] = self._spent[-1], 0.0
        self._last = perf_counter()
        return found
