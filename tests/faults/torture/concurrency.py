"""Threads, forks and pools.

`threads`: 16 threads make the first call of one step at once; of 16 steps of equal structure, one in each thread; of
16 different steps.
`forks`: parent and child go on with a step that was compiled before the fork; a process forks again and again while
another of its threads compiles, and every child compiles as well.
`pools`: `multiprocessing` by spawn, fork and forkserver, empty cache and full one.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.util
import threading
from collections.abc import Callable
from typing import Any

import mgjit

from . import steps
from .harness import Child, Torture, compute, expected, require, require_right

THREADS = 16


def threads(torture: Torture) -> None:
    """First calls by 16 threads at once."""
    for turn in torture.progress(range(torture.times(short=2, long=100))):
        for job, builds in ((_one_step, 1), (_equal_steps, 1), (_different_steps, THREADS)):
            with torture.attempt(f"round {turn}, {job.__name__}"):
                place = torture.place()
                report = place.run(lambda job=job, turn=turn: job(turn))
                require(not report.error and report.code == 0, f"exit code {report.code}\n{report.error}")
                require(not report.warnings, f"warnings: {report.warnings}")
                require(place.builds() == builds, f"{place.builds()} builds instead of {builds}")
                require(not place.leftovers(), f"temporary files are left: {place.leftovers()}")
                torture.count(f"rounds: {job.__name__.strip('_').replace('_', ' ')}")
                place.remove()


def _together(jobs: list[Callable[[], Any]]) -> list[Any]:
    """What the jobs return, each in a thread of its own, all begun at the same moment."""
    barrier = threading.Barrier(len(jobs))
    found: list[Any] = [None] * len(jobs)

    def run(place: int) -> None:
        barrier.wait()
        found[place] = jobs[place]()

    workers = [threading.Thread(target=run, args=(place,)) for place in range(len(jobs))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return found


def _one_step(turn: int) -> None:
    """One step, one set of parameters: the calls follow each other in some order, all with the same argument."""
    step, everything = steps.make(turn % 10, mgjit.compile)
    losses = _together([lambda: float(step(0.5))] * THREADS)
    plain, plain_everything = steps.make(turn % 10, steps.plain)
    right = [plain(0.5).data for _ in range(THREADS)]
    require(None not in losses, "a thread has died")
    require(sorted(map(float.hex, losses)) == sorted(map(float.hex, right)), f"{losses} instead of {right}")
    require(everything() == plain_everything(), f"{everything()} instead of {plain_everything()}")


def _equal_steps(turn: int) -> None:
    """A step for each thread, all of one structure: they share the code and nothing else."""
    number = turn % 10
    found = _together([lambda: steps.results(number, mgjit.compile)] * THREADS)
    for each in found:
        require(each == expected(number), f"step {number} gave {each}, not {expected(number)}")


def _different_steps(turn: int) -> None:
    """Another step for each thread."""
    numbers = [turn + place for place in range(THREADS)]
    found = _together([lambda number=number: steps.results(number, mgjit.compile) for number in numbers])
    for number, each in zip(numbers, found):
        require(each == expected(number), f"step {number} gave {each}, not {expected(number)}")


# --------------------------------------------------------------------------------------------------- forks


def forks(torture: Torture) -> None:
    """A fork after a step was compiled, and forks while steps are compiled."""
    for turn in torture.progress(range(torture.times(short=1, long=50))):
        for job in (_fork_after, _fork_during):
            with torture.attempt(f"round {turn}, {job.__name__}"):
                place = torture.place()
                report = place.run(lambda job=job, turn=turn: job(turn, torture.times(short=5, long=20)))
                require(not report.error and report.code == 0, f"exit code {report.code}\n{report.error}")
                torture.count(f"children: {job.__name__.strip('_').replace('_', ' ')}", report.value)
                place.recovers(turn % 10)
                place.remove()


def _fork_after(turn: int, count: int) -> int:
    """Parent and children continue the same training, each on its own copy of the parameters."""
    number = turn % 10
    step, everything = steps.make(number, mgjit.compile)
    plain, plain_everything = steps.make(number, steps.plain)

    def goes_on() -> None:
        for x in (0.25, 0.5, 0.75):
            step(x)
            plain(x)
        require(everything() == plain_everything(), f"{everything()} instead of {plain_everything()}")

    def child() -> dict[str, Any]:
        goes_on()
        return compute(number + 1)

    goes_on()
    for _ in range(count):
        started = Child(child, time_limit=60)
        goes_on()
        require_right(started.report(), [number + 1])
    return count


def _fork_during(turn: int, count: int) -> int:
    """A thread compiles one step after the other; each child of the main thread compiles the same and others."""
    done = threading.Event()
    errors: list[BaseException] = []

    def compiling() -> None:
        number = 0
        try:
            while not done.is_set():
                require(
                    steps.results(number, mgjit.compile) == expected(number), f"step {number} is wrong in the thread"
                )
                number += 1
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=compiling)
    thread.start()
    try:
        for place in range(count):
            numbers = [place, 1000 + place]
            require_right(Child(lambda numbers=numbers: compute(*numbers), time_limit=60).report(), numbers)
    finally:
        done.set()
        thread.join()
    if errors:
        raise errors[0]
    return count


# --------------------------------------------------------------------------------------------------- pools


def pools(torture: Torture) -> None:
    """Pools of processes, of every way to start them."""
    ways = [way for way in multiprocessing.get_all_start_methods() if torture.long or way != "forkserver"]
    for way in torture.progress(ways):
        place = torture.place()
        numbers = list(range(torture.times(short=4, long=40)))
        for state in ("empty", "full"):
            with torture.attempt(f"{way}, {state} cache"):
                report = place.run(lambda way=way, numbers=numbers: _pool(way, numbers))
                require(not report.error and report.code == 0, f"exit code {report.code}\n{report.error}")
                for number, found in zip(numbers, report.value):
                    require(found == expected(number), f"step {number} gave {found}, not {expected(number)}")
                torture.count(f"steps in a pool by {way}", len(numbers))
        require(place.builds() == len(numbers), f"{way}: {place.builds()} builds for {len(numbers)} steps")
        place.remove()


def _pool(way: str, numbers: list[int]) -> list[list[str]]:
    """The job: a pool of four, in a process that has compiled before."""
    require(steps.results(0, mgjit.compile) == expected(0), "the parent of the pool is wrong")
    with multiprocessing.get_context(way).Pool(4) as pool:
        found = pool.map(compiled_results, numbers, chunksize=1)
        pool.close()
        pool.join()
    multiprocessing.util._exit_function()  # what `multiprocessing` does when an interpreter ends
    return found


def compiled_results(number: int) -> list[str]:
    """What a worker does."""
    return steps.results(number, mgjit.compile)


SCENARIOS = {"threads": threads, "forks": forks, "pools": pools}
