"""A directory that processors of two kinds share.

Code for this very processor must not be used by one that lacks what it uses, nor the other way round.  Linux says in
/proc/cpuinfo what a processor has; children of these scenarios read another one there.
"""

from __future__ import annotations

import builtins
import io
import re
from collections.abc import Callable
from typing import Any

from .harness import WITHOUT_PROOFS, Place, Report, Skip, Torture, compiler, compute, require, require_right

NUMBER = 1
_FLAGS = re.compile(r"^(flags\s*:|Features\s*:)(.*)$", re.MULTILINE)


def features(torture: Torture) -> None:
    """With AVX-512, without it, with it again; and a processor of another model with the same flags."""
    real = _cpuinfo()
    names = set(_FLAGS.findall(real)[0][1].split())
    wide = {name for name in names if name.startswith("avx512")} or {"avx512f", "avx512vl"}
    processors = {
        "with AVX-512": _with_flags(real, names | wide),
        "without AVX-512": _with_flags(real, names - wide),
        "without AVX-512 and AVX2": _with_flags(real, names - wide - {"avx2", "fma"}),
    }
    for order in (list(processors), list(reversed(processors))):
        place = torture.place(MGJIT_CC=compiler("gcc", "clang"), **WITHOUT_PROOFS)
        for known, name in enumerate(order):
            first, second = (_on(place, processors[name]) for _ in range(2))
            torture.count("first calls on a processor")
            torture.count("of them, compiled anew", _hits(first) == 0)
            require(_hits(first) == 0, f"code for a processor {order[:known]} was used {name}")
            require(_hits(second) == 1, f"{name}: its own code was not found: {second.value}")
            require(place.builds() == known + 1, f"{name}: {place.builds()} builds")
        for name in order:
            require(_hits(_on(place, processors[name])) == 1, f"{name}: its code is gone")
            torture.count("later calls that used the code of their processor")


def _hits(report: Report) -> int:
    hits: int = report.value["counters"]["hits"]
    return hits


def _cpuinfo() -> str:
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
            text = lines.read()
    except OSError:
        raise Skip("this system has no /proc/cpuinfo") from None
    if not _FLAGS.search(text):
        raise Skip("/proc/cpuinfo names no features")
    return text


def _with_flags(text: str, flags: set[str]) -> str:
    return _FLAGS.sub(lambda found: f"{found.group(1)} {' '.join(sorted(flags))}", text)


def _on(place: Place, cpuinfo: str) -> Report:
    """A child that sees this processor."""

    def job() -> Any:
        builtins.open = io.open = _instead(builtins.open, cpuinfo)
        return compute(NUMBER)

    report = place.run(job)
    require_right(report, [NUMBER])
    return report


def _instead(real: Callable[..., Any], cpuinfo: str) -> Any:
    """`open`, for which /proc/cpuinfo has another content."""

    def opened(file: Any, mode: str = "r", *args: Any, **rest: Any) -> Any:
        if str(file) != "/proc/cpuinfo":
            return real(file, mode, *args, **rest)
        return io.BytesIO(cpuinfo.encode()) if "b" in mode else io.StringIO(cpuinfo)

    return opened


SCENARIOS = {"features": features}
