"""Many processes at once, and processes that die.

`stampede`: 32 processes with an empty cache start the same step at the same moment.  All of them compute right, at
most two of them compile, and nothing is left but the entry.

`killed`: a process is killed (SIGKILL) at a random moment of tracing, compiling, publishing and loading.  A fresh
process then computes right and believes nothing broken; once another step is built, no temporary file of the dead one
is left.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from .harness import WITHOUT_PROOFS, Place, Report, Torture, compute, require, require_right

PROCESSES = 32
KILLED = 0


def stampede(torture: Torture) -> None:
    """32 processes, one step, an empty cache, all at once."""
    most = 0
    for turn in torture.progress(range(torture.times(short=1, long=50))):
        place, number = torture.place(**WITHOUT_PROOFS), turn % 10
        with torture.attempt(f"round {turn}"):
            reports = at_once(place, [lambda number=number: compute(number)] * PROCESSES)
            builds = place.builds()
            most = max(most, builds)
            torture.count("rounds")
            torture.count("processes", len(reports))
            torture.count("builds", builds)
            for report in reports:
                require_right(report, [number])
                require(not report.warnings, f"warnings: {report.warnings}")
            require(builds <= 2, f"{builds} processes compiled the same step")
            require(not place.leftovers(), f"temporary files are left: {place.leftovers()}")
            require(len(place.entries()) == 1, f"there should be one entry: {place.entries()}")
        place.remove()
    torture.figures["most builds in a round"] = most


def at_once(place: Place, jobs: list[Callable[[], Any]]) -> list[Report]:
    """Reports of children that begin their jobs when all of them are there."""
    wait, go = os.pipe()

    def waiting(job: Callable[[], Any]) -> Any:
        os.close(go)
        os.read(wait, 1)  # returns when the last one has closed its end
        return job()

    children = [place.start(lambda job=job: waiting(job)) for job in jobs]
    time.sleep(0.05)
    os.close(go)
    os.close(wait)
    return [child.report() for child in children]


def killed(torture: Torture) -> None:
    """SIGKILL at random moments of the first call, until so many processes have died of it."""
    lasts = _duration(torture)
    for turn in torture.progress(range(torture.times(short=12, long=1000))):
        with torture.attempt(f"process {turn}"):
            place, lasts = _killed_at_random(torture, lasts)
            torture.count("processes killed")
            torture.count("of them, after the entry was published", bool(place.entries()))
            torture.count("of them, with temporary files", bool(place.leftovers()))
            place.recovers(KILLED)
            place.compute_quietly(KILLED + 1)  # builds; what was left behind is removed by those who leave something
            require(not place.leftovers(), f"temporary files are left: {place.leftovers()}")
            place.remove()


def _killed_at_random(torture: Torture, lasts: float) -> tuple[Place, float]:
    """A place where a process has died, and how long such a process lasts, as far as is known by now.

    The estimate follows what happens: the machine may have more or less to do than a minute ago.
    """
    while True:
        place = torture.place()
        child = place.start(lambda: compute(KILLED))
        time.sleep(torture.random.uniform(0.0, 1.0) * lasts)
        child.kill()
        if child.report().code:
            return place, lasts * 1.02
        torture.count("processes that ended before")
        place.remove()
        lasts *= 0.9


def _duration(torture: Torture) -> float:
    """How long the first call takes, in a process like those that will be killed."""
    places = [torture.place() for _ in range(3)]
    durations = sorted(place.compute(KILLED).seconds for place in places)
    return durations[1]


SCENARIOS = {"stampede": stampede, "killed": killed}
