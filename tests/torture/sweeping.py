"""A cache that is full: 5,000 entries and a limit.

The sweep that a put brings about keeps the limit, deletes what was used longest ago and nothing else, and every
process computes right before, during and after it.  The long form also measures a hit, in a directory of one entry
and in one of thousands: the first call of a step, over many processes.
"""

from __future__ import annotations

import os
import statistics
import time
from typing import Any

from mgjit.cache.store import Entry, Store

from .harness import Place, Torture, compute, deeds, require, require_right
from .processes import at_once

NUMBER = 1
MEBI = 1 << 20


def sweeping(torture: Torture) -> None:
    """More than the limit, then a put; then many processes that put, hit and sweep at once."""
    count, limit = torture.times(short=200, long=5000), torture.times(short=2, long=64)
    place = torture.place(MGJIT_CACHE_SIZE=f"{limit}MiB")
    place.compute(NUMBER)
    size = 2 * limit * MEBI // count  # twice as much as there is room for
    torture.figures["entries"], torture.figures["limit, MiB"] = count, limit
    _fill(place, count, size)
    torture.figures["MiB before the sweep"] = round(_size(place) / MEBI, 1)
    place.forget_the_last_sweep()
    place.compute_quietly(NUMBER)
    report = place.compute_quietly(NUMBER + 1)  # its put sweeps
    require(report.value["counters"]["puts"] == 1, f"{report.value}")
    after = _size(place)
    torture.figures["MiB after the sweep"] = round(after / MEBI, 1)
    torture.figures["entries after the sweep"] = len(place.entries())
    require(after <= limit * MEBI, f"{after} bytes are more than {limit} MiB")
    require(after >= limit * MEBI * 7 // 10, f"only {after} bytes are left of {limit} MiB: too much was deleted")
    for number in (NUMBER, NUMBER + 1):
        counters = place.compute_quietly(number).value["counters"]
        require(counters["hits"] == 1, f"an entry that was just used is gone: step {number}, {counters}")
    _all_at_once(torture, place, count, size, limit)
    if torture.long:
        _measure(torture, place)


def _fill(place: Place, count: int, size: int) -> None:
    """Entries of one size, the first ones used longest ago."""

    def job() -> None:
        store = Store(place.cache)
        store.put("f" * 32, Entry({}, "", os.urandom(size)))
        content = os.urandom(size)
        long_ago = time.time() - 10 * count
        for number in range(count):
            path = place.cache / f"{number:032x}.so"
            path.write_bytes(content)  # nobody asks for them: the content does not matter, the size does
            path.chmod(0o600)
            os.utime(path, (long_ago + number, long_ago + number))

    report = place.run(job)
    require(not report.error, report.error)


def _size(place: Place) -> int:
    return sum(path.stat().st_size for path in place.entries())


def _all_at_once(torture: Torture, place: Place, count: int, size: int, limit: int) -> None:
    """Processes that sweep, put and hit at the same moment: a put is not swept away half-way."""
    for turn in torture.progress(range(torture.times(short=1, long=10)), "at once"):
        _fill(place, count // 2, size * 2)
        place.forget_the_last_sweep()
        numbers = [10 * turn + 10 + k for k in range(8)]
        reports = at_once(place, [lambda number=number: compute(number, NUMBER) for number in numbers for _ in "ab"])
        for report, number in zip(reports, [number for number in numbers for _ in "ab"]):
            require_right(report, [number, NUMBER])
            require(not report.warnings, f"{report.warnings}")
            require(report.value["counters"]["corrupt"] == 0, f"{report.value}")
        torture.count("processes at once", len(reports))
        require(not place.leftovers(), f"temporary files are left: {place.leftovers()}")
        after = _size(place)
        require(after <= limit * MEBI * 11 // 10, f"{after} bytes are more than {limit} MiB and a tenth")


def _measure(torture: Torture, full: Place) -> None:
    """Microseconds of a step's first lookup: few entries, and many."""
    few = torture.place()
    few.compute(NUMBER)
    times: dict[str, list[float]] = {"few": [], "many": []}
    for _ in torture.progress(range(300), "measuring"):  # in turn, so that a slower hour is slower for both
        for name, place in (("few", few), ("many", full)):
            report = place.run(_one_hit)
            times[name].append(report.value["seconds"] * 1e6)
    for name, values in times.items():
        cuts = statistics.quantiles(values, n=20)
        torture.figures[f"hit with {name} entries, µs, median"] = round(statistics.median(values), 1)
        torture.figures[f"hit with {name} entries, µs, p95"] = round(cuts[-1], 1)
    ratio = statistics.quantiles(times["many"], n=20)[-1] / statistics.quantiles(times["few"], n=20)[-1]
    torture.figures["p95 with many / with few entries"] = round(ratio, 2)


def _one_hit() -> dict[str, Any]:
    """The job: how long the first call of a step takes, from tracing to the result, when its entry is there."""
    started = time.perf_counter()
    compute(NUMBER, calls=1)
    seconds = time.perf_counter() - started
    found = deeds()
    require(found["counters"]["hits"] == 1, f"{found}")
    return {"seconds": seconds, **found}


SCENARIOS = {"sweeping": sweeping}
