"""Code that measures how long each part of a Program takes, for reports.

1. The parts are the nodes at the top of each phase: loop nests, blocks, and stretches of single statements.  A loop
   around several nests, of which each takes much longer than a look at the clock, is divided into these.
2. After each part, `tick(number)` adds the time since the last one to what the part has taken.
3. What a tick takes itself is measured, too, with nothing in between, and subtracted.
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

from ...ir.program import Loop, Node, Statement
from ...ir.rewrite import with_surroundings
from ..schedule.cost import cost_when_scheduled

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
static long long last, spent[{count}], ticks[{count}];
static NOINLINE void tick(int part)
{{
    if (part >= 0) {{
        spent[part] += now() - last;
        ticks[part]++;
    }}
    last = now();
}}
EXPORT int mgjit_clock(void *const *m);
EXPORT int mgjit_clock(void *const *m)
{{
    long long *const out = (long long *)m[0];
    long long own;
    last = now();
    for (int k = 0; k < {ticks}; k++)
        tick({count} - 1);
    own = spent[{count} - 1];
    for (int k = 0; k < {count}; k++) {{
        out[k] = spent[k] - own * ticks[k] / {ticks};
        spent[k] = ticks[k] = 0;
    }}
    out[{count} - 1] = now();
    return 0;
}}
"""


class Part(NamedTuple):
    """A part of a Program.

    Attributes:
        phase: which it belongs to.
        nodes: what it consists of.
        text: its code.
        around: the loops around it.
    """

    phase: str
    nodes: Sequence[Node]
    text: str
    around: tuple[Loop, ...] = ()


def top_nodes(nodes: Sequence[Node]) -> Iterator[Sequence[Node]]:
    """The parts of a phase."""
    for _, group in groupby(enumerate(nodes), lambda one: one[0] if not isinstance(one[1], Statement) else -1):
        yield [node for _, node in group]


def parts_of(nodes: Sequence[Node], around: tuple[Loop, ...] = ()) -> Iterator[tuple[Sequence[Node], tuple[Loop, ...]]]:
    """The parts that are measured, each with the loops around it."""
    for group in top_nodes(nodes):
        first = group[0]
        if isinstance(first, Loop) and _is_divided(first):
            yield from parts_of(first.body, (*around, first))
        else:
            yield group, around


#: Parts of a loop cost so much on the average, in operations; a tick takes about 50.
_LEAST_COST = 500.0


def _is_divided(loop: Loop) -> bool:
    """Whether the parts of a loop are measured."""
    groups = list(top_nodes(loop.body))
    if sum(isinstance(group[0], Loop) and not (group[0].lanes or group[0].beside) for group in groups) < 2:
        return False
    cost = sum(cost_when_scheduled(statement, loops) for statement, loops in with_surroundings(loop.body))
    return cost >= _LEAST_COST * len(groups)


class Clock:
    """Measures the parts of one Program.

    Attributes:
        parts: in order; a part's number is its position.
    """

    #: How often it ticks to find out what that takes.
    TICKS = 64

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self._last = 0.0
        self._spent: list[float] = []
        self._ticks: list[int] = []

    def emit(self, phase: str, nodes: Sequence[Node], emitter: Emitter, functions: Sequence[str]) -> None:
        """Emit the nodes of a phase, with a tick after each part.

        Args:
            functions: the functions emitted so far, which parts may add to.
        """
        end = ";" if emitter.has_vectors else ""  # of C
        if not self.parts:
            emitter.line(f"tick(-1){end}")
        lasts = {id(part[-1]): (part, around) for part, around in parts_of(nodes)}
        done = [len(emitter.lines), len(functions)]

        def after(node: Node) -> None:
            if id(node) in lasts:
                part, around = lasts[id(node)]
                lines = [line[4:] for line in emitter.lines[done[0] :]]
                self.parts.append(Part(phase, part, "\n".join([*functions[done[1] :], *lines]), around))
                emitter.line(f"tick({len(self.parts) - 1}){end}")
                done[:] = len(emitter.lines), len(functions)

        emitter.after_node = after
        emitter.nodes(nodes)

    # ---- in C ---------------------------------------------------------------------------------------

    def c_source(self) -> str:
        """The functions that measure."""
        return _SOURCE.format(count=len(self.parts) + 1, ticks=self.TICKS)

    # ---- in Python ------------------------------------------------------------------------------------

    def tick(self, part: int) -> None:
        """A part ends, or the first one begins: -1."""
        if part >= 0:
            self._spent[part] += perf_counter() - self._last
            self._ticks[part] += 1
        self._last = perf_counter()

    def take(self) -> array[float]:
        """What each part has taken since the last time, and behind them the time, in seconds."""
        count = len(self.parts)
        self._spent, self._ticks = self._spent or [0.0] * (count + 1), self._ticks or [0] * (count + 1)
        self._last = perf_counter()
        for _ in range(self.TICKS):
            self.tick(count)
        own = self._spent[count] / self.TICKS
        found = array("d", [spent - own * ticks for spent, ticks in zip(self._spent[:count], self._ticks)])
        found.append(perf_counter())
        self._spent, self._ticks = [0.0] * (count + 1), [0] * (count + 1)
        return found
