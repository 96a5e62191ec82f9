"""background.py, builder.py and worker.py: jobs end as they should, whatever happens to this process and to theirs."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit import Value
from mgjit.kernels.building import background, worker
from mgjit.kernels.building.background import Extent, Job

pytestmark = pytest.mark.skipif(os.name != "posix", reason="code is built in the background on POSIX only")

ROOT = Path(__file__).parents[3]

#: A step whose code no other test builds, and a compiler that takes its time and says that it has begun.
SCRIPT = """
import os, sys, signal, time
os.environ["MGJIT_BACKGROUND"] = "1"
import mgjit
from mgjit import Value
from mgjit.kernels.building import background
from mgjit.kernels.first_calls import earnings
earnings._BEFORE_FIRST, earnings._FIRST_SECONDS, earnings._MOST_UNLOOKED = 0.0, 0.0, 0
w = Value({weight!r})
step = mgjit.compile(lambda x: w * x * {weight!r} + 1.0)
def begun():
    while not os.path.exists({begun!r}):
        time.sleep(0.01)
def process():
    return background._jobs[0].builder.process.pid
"""


class Slow:
    """A directory with a cache and a slow compiler."""

    def __init__(self, directory: Path, seconds: float) -> None:
        self.begun, self.cache = directory / "begun", directory / "cache"
        self.weight = float.fromhex(f"0x1.{os.urandom(6).hex()}p0")
        compiler = directory / "slow-gcc"
        compiler.write_text(f'#!/bin/sh\ntouch {self.begun}\nsleep {seconds}\nexec gcc "$@"\n')
        compiler.chmod(0o755)
        self.environment = {
            **os.environ, "MGJIT_CC": str(compiler), "MGJIT_CACHE_DIR": str(self.cache), "PYTHONPATH": str(ROOT),
        }  # fmt: skip

    def start(self, body: str) -> subprocess.Popen[str]:
        """Run a script."""
        script = SCRIPT.format(weight=self.weight, begun=str(self.begun)) + textwrap.dedent(body)
        return subprocess.Popen(
            [sys.executable, "-c", script], env=self.environment, stdout=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip

    def run(self, body: str) -> str:
        """What a script prints."""
        process = self.start(body)
        printed, _ = process.communicate(timeout=120)
        return printed

    def entries(self) -> list[Path]:
        """The code in the cache."""
        return list(self.cache.glob("*.so"))


def ended(pid: int, seconds: float = 30.0) -> bool:
    """Whether a process that is not ours has ended, within some time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if _is_zombie(pid):
            return True
        time.sleep(0.05)
    return False


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False


def sleepers(slow: Slow) -> list[str]:
    """Compilers that still run."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended meanwhile, or is somebody else's
            lines.append(path.read_bytes())
    return [line.decode() for line in lines if slow.environment["MGJIT_CC"].encode() in line]


def test_01_a_script_that_is_shorter_than_its_build_leaves_a_warm_cache(tmp_path: Path) -> None:
    """And no process, once that is done."""
    slow = Slow(tmp_path, 2.0)
    pid = int(slow.run("step(1.0); begun(); print(process())"))
    assert ended(pid)
    assert len(slow.entries()) == 1
    printed = slow.run("step(1.0); print(step.stats.calls, step.stats.cache)")
    assert printed.split() == ["1", "hit"]


def test_01b_with_a_single_processor_the_plain_call_comes_first(tmp_path: Path) -> None:
    """A process that builds while the first call has not returned would only delay it."""
    script = """
    background._processors = lambda: 1
    module = sys.modules["mgjit.kernels.first_calls.plain"]
    as_returned = module.as_returned
    def returned(result, of_values):
        print([job.is_running() for job in background._jobs])
        return as_returned(result, of_values)
    module.as_returned = returned
    step(1.0)
    print([job.is_running() for job in background._jobs])
    """
    assert Slow(tmp_path, 0.0).run(script).split() == ["[False]", "[True]"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_02_a_program_that_is_killed_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    """Neither that of the job, nor its compiler."""
    slow = Slow(tmp_path, 600.0)
    process = slow.start(
        """
        signal.signal(signal.SIGINT, signal.default_int_handler)
        step(1.0); begun(); print(process(), flush=True); time.sleep(600)
        """
    )
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    process.send_signal(number)
    process.communicate(timeout=60)
    assert ended(pid)
    end = time.monotonic() + 30.0
    while sleepers(slow) and time.monotonic() < end:
        time.sleep(0.05)
    assert sleepers(slow) == []
    assert slow.entries() == []


def test_03_ctrl_c_does_not_disturb_a_build(tmp_path: Path) -> None:
    """It is for the program."""
    slow = Slow(tmp_path, 0.5)
    printed = slow.run(
        """
        signal.signal(signal.SIGINT, signal.default_int_handler)
        step(1.0); begun()
        try:
            os.killpg(0, signal.SIGINT); time.sleep(5)
        except KeyboardInterrupt:
            pass
        print(step.wait(), len(step.stats.swaps))
        """
    )
    assert printed.split() == ["True", "1"]


def test_04_a_killed_process_is_started_once_more(tmp_path: Path) -> None:
    """Then the step stays plain Python, and says why."""
    slow = Slow(tmp_path, 0.5)
    printed = slow.run(
        """
        step(1.0); begun(); first = process(); os.kill(first, signal.SIGKILL)
        while background._jobs[0].builder.process.poll() is None: time.sleep(0.01)
        step(2.0); print(process() != first, step.wait(), step(3.0) == w.data * 3.0 * w.data + 1.0, step.stats.calls)
        """
    )
    assert printed.split() == ["True", "True", "True", "1"]


def test_05_a_process_that_is_killed_twice(tmp_path: Path) -> None:
    """The step stays plain Python, and says why."""
    slow = Slow(tmp_path, 600.0)
    printed = slow.run(
        """
        import warnings
        warnings.simplefilter("ignore")
        step(1.0)
        for _ in range(2):
            os.kill(process(), signal.SIGKILL)
            while background._jobs and background._jobs[0].builder.process.poll() is None: time.sleep(0.01)
            step(2.0)
        step(3.0)
        print(step.stats.calls, step.stats.plain_calls, *step.stats.plain_reasons)
        """
    )
    assert printed.startswith("0 2 the process that was to build its kernel was killed, 2 times")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_06_a_fork_starts_its_own_jobs(tmp_path: Path) -> None:
    """The parent's go on; the child does not keep them alive when the parent is gone."""
    slow = Slow(tmp_path, 1.0)
    printed = slow.run(
        """
        step(1.0); begun()
        child = os.fork()
        found = step.wait(), step(2.0) == w.data * 2.0 * w.data + 1.0, step.stats.calls
        if child: os.waitpid(child, 0)
        print(*found, flush=True)
        """
    )
    assert printed.split() == ["True", "True", "1"] * 2


def test_07_jobs_wait_in_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are not more processes than that, and the next one starts when one ends."""
    for job in background._jobs.copy():  # of tests that did not wait for their kernels
        job.cancel()
    monkeypatch.setattr(background, "_most_processes", lambda: 1)
    monkeypatch.setenv("MGJIT_BACKGROUND", "1")
    weights = [Value(float.fromhex(f"0x1.{os.urandom(6).hex()}p0")) for _ in range(3)]
    steps: list[Any] = [mgjit.compile(lambda x, w=w: w * x + w.data, static=["w"]) for w in weights]
    with monkeypatch.context() as patch:
        patch.setattr(Job, "_look", lambda job: None)  # the first one may be done before there are the others
        for step in steps:
            step(1.0)
        assert [job.is_running() for job in background._jobs] == [True, False, False]
    assert all(step.wait() for step in steps)
    assert background._jobs == []


def test_07_what_is_built_quickly_does_not_wait_for_what_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """But only so many of each kind are built at a time."""
    monkeypatch.setattr(background, "_most_processes", lambda: 1)
    monkeypatch.setattr(background, "_jobs", [])
    monkeypatch.setattr(Job, "_look", lambda job: None)
    monkeypatch.setattr(Job, "_run", lambda job: setattr(job, "builder", job))
    jobs = [Job(b"", is_quick=quick) for quick in (False, False, True, True)]
    for number, job in enumerate(jobs, 1):
        background._jobs.append(job)
        background._advance()
        assert [each.is_running() for each in jobs] == [number >= 1, False, number >= 3, False]


def test_08_waiting_has_an_end(tmp_path: Path) -> None:
    """Of so many seconds."""
    printed = Slow(tmp_path, 600.0).run("step(1.0); print(step.wait(0.2), step.wait(0.0)); step.clear()")
    assert printed.split() == ["False", "False"]


def test_09_what_stands_for_memory() -> None:
    """Its size is all that building asks for."""
    assert len(Extent(7)) == 7


def test_10_a_job_that_was_given_up_has_ended() -> None:
    """So that nobody waits for it."""
    job = Job(b"never read")
    job.cancel()
    assert job.has_ended()
    assert job.wait(0.0)
    assert job.answer is not None
    assert job.answer.failure == "it was given up"


class Working:
    """Stands for a process that works on a request."""

    def __init__(self) -> None:
        self.has_answered, self.has_ended = False, False

    def wait(self, seconds: float) -> bool:
        return self.has_answered

    def answer(self) -> str:
        return "an answer"

    def dismiss(self) -> Any:
        self.has_ended = True
        return subprocess.Popen([sys.executable, "-c", ""])


@pytest.mark.parametrize(
    ("is_quick", "size", "goes_on"), [(True, 10, True), (False, 10, False), (True, 1 << 20, False)]
)
def test_10b_the_process_of_a_small_quick_job_goes_on(
    monkeypatch: pytest.MonkeyPatch, is_quick: bool, size: int, goes_on: bool
) -> None:
    """When the job is given up, it finishes that, and then waits for the next: to start another one takes longer."""
    monkeypatch.setattr(background, "_idle", [])
    job, process = Job([memoryview(bytes(size))], is_quick), Working()
    job.builder = process  # type: ignore[assignment]
    job.cancel()
    assert process.has_ended != goes_on
    assert (process in background._finishing) == goes_on
    process.has_answered = True
    background._advance()
    assert background._finishing == []
    assert (process in background._idle) == goes_on


#: Steps whose code no other test builds.
STEPS = """
steps = [
    mgjit.compile(lambda x: w * x * {weight!r}),
    mgjit.compile(lambda x: w * x * {weight!r} - w),
    mgjit.compile(lambda x: w * x * {weight!r} + x),
    mgjit.compile(lambda x: w * x * {weight!r} * x),
]
def pids():
    return [builder.process.pid for builder in background._idle]
"""


def printed_by(slow: Slow, body: str) -> list[str]:
    """What a script prints that has four steps and an ordinary compiler."""
    del slow.environment["MGJIT_CC"]
    steps = STEPS.format(weight=slow.weight)
    return slow.run(textwrap.dedent(steps) + textwrap.dedent(body)).split()


def test_11_one_process_builds_one_thing_after_the_other(tmp_path: Path) -> None:
    """It waits for the next job, and each job has the environment that the program has at that time."""
    printed = printed_by(
        Slow(tmp_path, 0.0),
        """
        for k, step in enumerate(steps):
            os.environ["MGJIT_CACHE_DIR"] = f"{os.environ['MGJIT_CACHE_DIR']}{k}"
            step(1.0); print(step.wait(), len(pids()), pids()[0] == (first := pids()[0] if k == 0 else first))
            print(len([name for name in os.listdir(os.environ["MGJIT_CACHE_DIR"]) if name.endswith(".so")]) > 0)
        """,
    )
    assert printed == ["True", "1", "True", "True"] * 4


def test_12_a_process_that_ended_while_it_waited_is_replaced(tmp_path: Path) -> None:
    """Whether that is known when the next job comes, or not."""
    printed = printed_by(
        Slow(tmp_path, 0.0),
        """
        steps[0](1.0); steps[0].wait(); first = pids()[0]
        os.kill(first, signal.SIGKILL); time.sleep(0.2)
        steps[1](1.0); print(steps[1].wait(), pids()[0] != first, steps[1].stats.plain_reasons)
        os.kill(pids()[0], signal.SIGSTOP)
        steps[2](1.0)
        os.kill(background._jobs[0].builder.process.pid, signal.SIGKILL)
        print(steps[2].wait(), steps[2](2.0) == w.data * 2.0 * w.data + 2.0, steps[2].stats.calls)
        """,
    )
    assert printed == ["True", "True", "[]", "True", "True", "1"]


def test_13_a_process_waits_while_the_step_is_traced(tmp_path: Path) -> None:
    """It is started before the trace, and ends with the program even if there is nothing to build."""
    slow = Slow(tmp_path, 0.0)
    body = """
        seen = []
        step = mgjit.compile(lambda x: seen.append(pids()) or w * x + {number})
        step(1.0)
        print(seen[0][0])
    """
    pid = int(printed_by(slow, body.format(number=0.5))[0])
    assert ended(pid)


def test_14_a_process_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that has all its kernels has no other process."""
    monkeypatch.setattr(worker, "_IDLE", 0.01)
    assert not worker._has_request()


def test_15_a_fork_leaves_the_process_to_the_parent(tmp_path: Path) -> None:
    """The child of a fork has its own when it needs one."""
    printed = printed_by(
        Slow(tmp_path, 0.0),
        """
        steps[0](1.0); steps[0].wait(); first = pids()[0]
        child = os.fork()
        step = steps[2] if child else steps[1]
        step(1.0); waited = step.wait()
        if child: os.waitpid(child, 0)
        print(waited, (pids()[0] == first) == bool(child), flush=True)
        """,
    )
    assert printed == ["True", "True"] * 2


@pytest.mark.parametrize("when", ["while it waits", "while it builds"])
def test_16_descriptors_that_the_program_has_closed(tmp_path: Path, when: str) -> None:
    """As a daemon does; its own files, which then get the same numbers, are neither written nor closed."""
    first = "steps[0](1.0)" + ("; steps[0].wait()" if when == "while it waits" else "")
    printed = printed_by(
        Slow(tmp_path, 0.0),
        f"""
        {first}
        os.closerange(3, 64)
        files = [open({str(tmp_path / "mine")!r} + str(k), "w+") for k in range(30)]
        for file in files:
            print(file.fileno(), file=file, flush=True)
        steps[1](1.0); print(steps[0].wait(), steps[1].wait(), steps[1](2.0) == w.data * 2.0 * w.data - w.data)
        background._finish_all()
        for file in files:
            file.seek(0)
        print(all(file.read() == f"{{file.fileno()}}\\n" for file in files), steps[1].stats.calls)
        """,
    )
    assert printed == ["True", "True", "True", "True", "1"]
