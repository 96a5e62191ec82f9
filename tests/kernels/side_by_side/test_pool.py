"""The pool of threads: every task is done, whatever is raised where."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit import Value
from mgjit.base.threads import are_others
from mgjit.kernels.side_by_side import pool
from mgjit.runtime.detached import Detached
from tests.base.test_interruption import FORKS, in_child


class Counted:
    """A task that is done once."""

    def __init__(self, work: Callable[[int], Any] = lambda thread: None) -> None:
        self.times, self._work = 0, work

    def __call__(self, thread: int) -> None:
        if not self.times:
            self._work(thread)
            self.times += 1


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 3, 50])
def test_01_all_tasks(threads: int, count: int) -> None:
    """Each is done, by a thread of a number that is less than how many there are."""
    numbers: list[int] = []
    tasks = [Counted(numbers.append) for _ in range(count)]
    pool.run(tasks, threads)
    assert [task.times for task in tasks] == [1] * count
    assert len(numbers) == count
    assert set(numbers) <= set(range(threads))


def test_02_at_the_same_time() -> None:
    """Two tasks that wait for each other."""
    barrier = threading.Barrier(2, timeout=20)
    pool.run([Counted(lambda thread: barrier.wait())] * 1 + [Counted(lambda thread: barrier.wait())], 2)


def test_03_an_exception_in_the_caller() -> None:
    """It is raised when all tasks are done, the interrupted one too."""
    interrupted: list[int] = []

    def interrupt(thread: int) -> None:
        if not interrupted:
            interrupted.append(thread)
            raise KeyboardInterrupt

    tasks = [Counted(), Counted(interrupt), Counted()]
    with pytest.raises(KeyboardInterrupt):
        pool.run(tasks, 1)
    assert [task.times for task in tasks] == [1, 1, 1]


def test_04_an_exception_in_a_helper() -> None:
    """The caller does the task again; the helper stays for the next job."""
    main = threading.get_ident()
    failed = threading.Event()

    def fail(_: int) -> None:
        if threading.get_ident() != main:
            failed.set()
            raise MemoryError
        assert failed.wait(20)

    tasks = [Counted(fail) for _ in range(2)]
    pool.run(tasks, 2)
    assert [task.times for task in tasks] == [1, 1]
    test_02_at_the_same_time()


def test_05_several_callers() -> None:
    """Jobs of several threads share the helpers."""
    done: list[int] = []

    def call() -> None:
        for _ in range(50):
            tasks = [Counted() for _ in range(4)]
            pool.run(tasks, 3)
            done.append(sum(task.times for task in tasks))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == [4] * 200


@FORKS
def test_06_in_the_child_of_a_fork() -> None:
    """It has helpers of its own."""
    test_02_at_the_same_time()

    def works() -> bool:
        test_02_at_the_same_time()
        return True

    assert in_child(works) == 0


def test_07_helpers_are_no_threads_of_the_program(only_thread: None) -> None:
    """Parameters may be ordinary objects during plain calls though there are helpers."""
    test_02_at_the_same_time()
    assert pool._queues
    assert not are_others()
    w = Value(1.0)
    step = mgjit.compile(lambda x: w * x)
    step(1.0)
    kinds: list[type] = []
    Detached([w]).meanwhile(lambda: kinds.append(type(w)))
    assert kinds == [Value]
    assert type(w) is not Value
