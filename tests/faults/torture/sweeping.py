"""A cache that is full: 5,000 entries and a limit.

The sweep that a put brings about keeps the limit, deletes what was used longest ago and nothing else, and every
process computes right before, during and after it.  The long form also measures a hit, in a directory of one entry
and in one of thousands, over many processes.
"""

from __future__ import annotations

import os
import statistics
import time

from mgjit.compiler.cache.store import Entry, Store

from .harness import WITHOUT_PROOFS, Place, Torture, compute, require, require_right
from .processes import at_once

NUMBER = 1
MEBI = 1 << 20


def sweeping(torture: Torture) -> None:
    """More than the limit, then a put; then many processes that put, hit and sweep at once."""
    count, limit = torture.times(short=200, long=5000), torture.times(short=2, long=64)
    place = torture.place(MGJIT_CACHE_SIZE=f"{limit}MiB", **WITHOUT_PROOFS)
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
        _measure(torture, count, limit)


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


def _measure(torture: Torture, count: int, limit: int) -> None:
    """Microseconds that the store takes to find an entry, in a process that has not used it: among few, among many."""
    places = {"alone": torture.place(), f"among {count} entries": torture.place()}
    for place in places.values():
        place.compute(NUMBER)
    key = places["alone"].entries()[0].stem
    _fill(place, count, limit * MEBI // count)
    times: dict[str, list[float]] = {name: [] for name in places}
    for _ in torture.progress(range(1000), "measuring"):  # in turn, so that a busy minute is one for both
        for name, place in places.items():
            report = place.run(lambda place=place: _seconds_of_a_hit(place, key))
            require(not report.error, report.error)
            times[name].append(report.value * 1e6)
    for name, values in times.items():
        torture.figures[f"µs for a hit {name}, median"] = round(statistics.median(values), 1)
        torture.figures[f"µs for a hit {name}, p95"] = round(_p95(values), 1)
    alone, among = times.values()
    torture.figures["p95 among many / p95 alone"] = round(_p95(among) / _p95(alone), 2)


def _p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


def _seconds_of_a_hit(place: Place, key: str) -> float:
    """The job: the first thing that a process asks of a store."""
    started = time.perf_counter()
    entry = Store(place.cache).get(key)
    seconds = time.perf_counter() - started
    require(entry is not None, "no hit")
    return seconds


SCENARIOS = {"sweeping": sweeping}
