"""The lock of a key: who comes second waits, nobody waits for ever, and nothing depends on it."""

from __future__ import annotations

import errno
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from mgjit.base import files
from mgjit.compiler.cache import lock
from mgjit.compiler.cache.lock import one_builder

KEY, OTHER = "a" * 32, "b" * 32
ROOT = Path(__file__).resolve().parents[3]

HOLDER = """
import sys
from mgjit.compiler.cache.lock import one_builder
with one_builder(sys.argv[1], sys.argv[2]):
    print("inside", flush=True)
    sys.stdin.readline()
print("outside", flush=True)
"""


def holder(directory: Path, key: str = KEY) -> subprocess.Popen[str]:
    """Another process that is inside."""
    words = [sys.executable, "-c", HOLDER, str(directory), key]
    process = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "inside\n"
    return process


def waited(directory: Path, monkeypatch: pytest.MonkeyPatch, key: str = KEY, patience: float = 60.0) -> int:
    """How often this process had to pause before it came in."""
    pauses: list[float] = []
    monkeypatch.setattr(lock.time, "sleep", pauses.append)
    with one_builder(str(directory), key, patience):
        monkeypatch.undo()
        return len(pauses)


def test_01_another_process_waits_and_then_comes_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It pauses as long as the first one is inside, and one file is all there is."""
    first = holder(tmp_path)
    pauses = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 5:
            first.communicate("\n")

    monkeypatch.setattr(lock.time, "sleep", sleep)
    with one_builder(str(tmp_path), KEY):
        assert first.returncode == 0
    assert len(pauses) >= 5
    assert pauses[:3] == [0.001, 0.002, 0.004]
    assert os.listdir(tmp_path) == [lock.NAME]


def test_02_other_keys_do_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Different steps are built at the same time."""
    first = holder(tmp_path)
    assert waited(tmp_path, monkeypatch, OTHER) == 0
    first.communicate("\n")


def test_03_a_killed_holder_holds_up_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system takes the lock from it."""
    first = holder(tmp_path)
    first.kill()
    first.wait()
    assert waited(tmp_path, monkeypatch) == 0


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="processes cannot be stopped here")
def test_04_a_stopped_holder_holds_up_nobody_for_long(tmp_path: Path) -> None:
    """After its patience, the other one builds as well."""
    first = holder(tmp_path)
    first.send_signal(signal.SIGSTOP)
    inside = False
    with one_builder(str(tmp_path), KEY, patience=0.05):
        inside = True
    assert inside
    first.kill()
    first.communicate()


@pytest.mark.parametrize("directory", [True, False])
def test_05_threads_wait_for_each_other(directory: bool, tmp_path: Path) -> None:
    """With and without a directory; never two at once."""
    place = str(tmp_path) if directory else None
    inside, most = 0, 0

    def enter() -> None:
        nonlocal inside, most
        with one_builder(place, KEY):
            inside += 1
            most = max(most, inside)
            time.sleep(0.001)
            inside -= 1

    threads = [threading.Thread(target=enter) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (inside, most) == (0, 1)
    assert not any(mine.locked() for mine in lock._threads.values())


def test_06_a_thread_that_does_not_come_out_holds_up_nobody_for_long(tmp_path: Path) -> None:
    """As a process."""
    inside = []
    with one_builder(str(tmp_path), KEY):
        thread = threading.Thread(target=lambda: inside.append(enter_briefly(tmp_path)))
        thread.start()
        thread.join(30)
        assert inside == [True]
    assert not any(mine.locked() for mine in lock._threads.values())


def enter_briefly(directory: Path) -> bool:
    with one_builder(str(directory), KEY, patience=0.01):
        return True


@pytest.mark.parametrize("call", ["open", "lock", "unlock", "fstat", "stat"])
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOLCK, errno.EACCES, errno.EINTR])
def test_07_without_locks_everybody_goes_on(
    call: str, error: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system that has none, or a call that fails always."""

    def broken(*_args: Any) -> None:
        raise OSError(error, os.strerror(error))

    with one_builder(str(tmp_path), OTHER):
        pass
    monkeypatch.setattr(files, call, broken)
    inside = False
    with one_builder(str(tmp_path), KEY):
        inside = True
    assert inside


def test_08_an_interrupted_call_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock is then held as always."""
    failed = []
    real = files.lock

    def interrupted(descriptor: int, position: int) -> bool:
        if not failed:
            failed.append(1)
            raise OSError(errno.EINTR, os.strerror(errno.EINTR))
        return real(descriptor, position)

    monkeypatch.setattr(files, "lock", interrupted)
    with one_builder(str(tmp_path), KEY):
        assert lock_of_another_process(tmp_path) == "False"
    assert failed
    assert lock_of_another_process(tmp_path) == "True"


def lock_of_another_process(directory: Path) -> str:
    code = (
        "import sys; from mgjit.base import files; from mgjit.compiler.cache import lock\n"
        "print(files.lock(lock._descriptor(sys.argv[1]), lock._position(sys.argv[2])))"
    )
    words = [sys.executable, "-c", code, str(directory), KEY]
    return subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def test_09_a_deleted_directory(tmp_path: Path) -> None:
    """The file of locks is made again where it is missing."""
    with one_builder(str(tmp_path), KEY):
        pass
    (tmp_path / lock.NAME).unlink()
    with one_builder(str(tmp_path), KEY):
        assert lock_of_another_process(tmp_path) == "False"


def test_10_errors_inside_come_out(tmp_path: Path) -> None:
    """And leave nothing locked."""
    with pytest.raises(ZeroDivisionError), one_builder(str(tmp_path), KEY):
        raise ZeroDivisionError
    assert lock_of_another_process(tmp_path) == "True"
    assert not any(mine.locked() for mine in lock._threads.values())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_11_a_forked_child_does_not_wait_for_its_parents_threads(tmp_path: Path) -> None:
    """What they lock in memory would never be unlocked there."""
    with one_builder(None, KEY):
        child = os.fork()
        if child == 0:
            with one_builder(None, KEY, patience=20.0):
                os._exit((os.getpid(), "", KEY) in lock._threads)  # it went in without any lock
        assert os.waitpid(child, 0)[1] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_12_a_forked_child_does_not_wait_for_its_parents_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parent, which has the byte, may be waiting for the child; for other keys the child waits as anybody does."""
    first = holder(tmp_path, OTHER)
    with one_builder(str(tmp_path), KEY):
        child = os.fork()
        if child == 0:
            pauses = [waited(tmp_path, monkeypatch, key, patience=0.05) for key in (KEY, OTHER)]
            os._exit(10 * pauses[0] + min(pauses[1], 1))
        _, status = os.waitpid(child, 0)
    first.communicate("\n")
    assert os.WEXITSTATUS(status) == 1


@pytest.mark.skipif(not hasattr(gc, "callbacks"), reason="collections run no functions here")
def test_13_keys_of_other_threads_come_at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collection may run code between any two objects that are made, and let another thread go on."""
    known = {(1, "", str(number)): threading.Lock() for number in range(2000)}
    monkeypatch.setattr(lock, "_threads", known)

    def add(phase: str, info: object) -> None:
        known.setdefault((2, "", str(len(known))), threading.Lock())

    before = gc.get_threshold()
    gc.callbacks.append(add)
    gc.set_threshold(50)
    try:
        with one_builder(None, KEY):
            pass
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(add)
    assert len(known) > 2000
