"""A pool of threads that make foreign calls, which hold no GIL.

1. `run(tasks, threads)` lets several threads take tasks from one iterator until there are none left.  The thread that
   calls it is one of them; the others are helpers, which stay for the next time.
2. A task may be run twice: the second time it finds that it is done.  So if an exception (Ctrl-C) comes in between, the
   helpers are waited for, and tasks that were taken but not done are made up for: `run` ends with all of them done.
3. The child of a fork has no helpers, and starts its own when it needs some.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any

from ...base.interruption import new_lock, with_cleanup
from ...base.threads import OwnThread
from ...errors import ArgumentError, ArgumentValueError, described, user_location

#: A task is called with the number of the thread that runs it, which is less than the number of threads.
Task = Callable[[int], Any]

#: How long a thread that waits for helpers waits before it looks again, in case an exception has swallowed the news.
_LOOK_AGAIN_SECONDS = 0.05


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def checked_threads(threads: Any) -> int:
    """The number of threads that an option asks for: None means as many as there are processors."""
    if threads is None:
        return processors()
    if type(threads) is not int:
        raise ArgumentError(f"{user_location()}: threads must be an int or None, not {described(threads)}.")
    if threads < 1:
        raise ArgumentValueError(f"{user_location()}: threads must be at least 1, not {threads}.")
    return threads


class _Job:
    """Tasks that are being run."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks, self._left = tasks, iter(tasks)
        self._lock = threading.Lock()
        self._started, self._ended, self._is_closed = 0, 0, False
        self._news: SimpleQueue[None] = SimpleQueue()
        self._process = os.getpid()

    def work(self, thread: int) -> None:
        """Run tasks until there are none left."""
        for task in self._left:
            task(thread)

    def help(self, thread: int) -> None:
        """The same in a helper; nothing if the job is over."""
        with self._lock:
            if self._is_closed:
                return
            self._started += 1
        try:
            self.work(thread)
        except BaseException:  # noqa: S110 - whoever waits runs the task again, and gets the exception
            pass
        finally:
            with self._lock:
                self._ended += 1
            self._news.put(None)

    def finish(self) -> None:
        """Wait for the helpers that have begun, and do what is left; may be called more than once."""
        if self._process != os.getpid():
            return  # the child of a fork, in which nobody waits for this job
        with self._lock:
            self._is_closed = True
        while self._ended < self._started:
            try:
                self._news.get(timeout=_LOOK_AGAIN_SECONDS)
            except Empty:
                continue
        for task in self._tasks:
            task(0)


_queues: list[SimpleQueue[Any]] = []
_growing = new_lock()


def run(tasks: Sequence[Task], threads: int) -> None:
    """Run all tasks, in no certain order, in at most so many threads."""
    job = _Job(tasks)

    def work() -> None:
        for number in range(min(threads, len(tasks)) - 1):
            _queue(number).put((job, number + 1))
        job.work(0)

    with_cleanup(work, job.finish)


def _queue(number: int) -> SimpleQueue[Any]:
    """Where a helper, which is started if it does not exist, looks for jobs."""
    with _growing:
        while len(_queues) <= number:
            queue: SimpleQueue[Any] = SimpleQueue()
            OwnThread(_help, queue, name="helper")
            _queues.append(queue)
    return _queues[number]


def _help(queue: SimpleQueue[Any]) -> None:
    while True:
        job, number = queue.get()
        job.help(number)
        del job  # which keeps memory alive


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_queues.clear)
