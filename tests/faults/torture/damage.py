"""Entries that are not what was written.

`flipped`: every kind of entry with one byte changed at random positions, cut to random lengths, with bytes appended.
The mass goes through `Store.get`, which gives out what is to be loaded; a sample through real processes, which
rebuild the entry and compute right.

`impostors`: something else under an entry's name: another entry, an empty file, a directory, a pipe, a socket, a
symbolic link (to another entry, to itself, to /dev/zero), a device.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

from mgjit.compiler.cache.store import Entry, Store

from .harness import Torture, compute, require, require_right

NUMBER = 3


def flipped(torture: Torture) -> None:
    """Bytes changed, files cut short, bytes appended."""
    for name, content, key in _kinds(torture):
        torture.figures[f"bytes: {name}"] = len(content)
        report = torture.place().run(lambda content=content, key=key: _mass(torture, content, key))
        require(not report.error and report.code == 0, f"{name}: exit code {report.code}\n{report.error}")
        for figure, value in report.value.items():
            torture.count(figure, value)
    for turn in torture.progress(range(torture.times(short=6, long=150)), "processes"):
        with torture.attempt(f"process {turn}"):
            _in_a_process(torture)


def _kinds(torture: Torture) -> list[tuple[str, bytes, str]]:
    """Every kind of entry: name, content of the file, key."""
    place = torture.place()
    for number in range(5):
        place.compute(number)
    found = [(f"a step's entry {place_}", path) for place_, path in enumerate(place.entries())]
    written = Store(torture.fresh())
    made = {"no library": Entry({"outcome": True}, "", b""), "nothing": Entry({}, "", b"")}
    for name, entry in made.items():
        path = written.put("0" * 32, entry)
        require(path is not None, f"the store did not keep an entry with {name}")
        found.append((name, path.rename(torture.fresh() / path.name)))
    return [(name, path.read_bytes(), path.name[: -len(path.suffix)]) for name, path in found]


def _mass(torture: Torture, content: bytes, key: str) -> dict[str, int]:
    """The job: damage in one process; every damaged file must be refused, deleted and counted."""
    directory = torture.fresh("mass")
    store = Store(directory)
    path = directory / f"{key}.so"
    done = {"bytes changed": 0, "files cut short": 0, "files with bytes appended": 0}
    random = torture.random

    def refused(damaged: bytes, what: str) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(descriptor, damaged)
        os.close(descriptor)
        before = store.counters.corrupt
        require(store.get(key) is None, f"an entry with {what} was believed")
        require(not path.exists(), f"an entry with {what} was not deleted")
        require(store.counters.corrupt == before + 1, f"an entry with {what} was not counted")

    for _ in range(torture.times(short=100, long=2000)):
        position, change = random.randrange(len(content)), random.randrange(1, 256)
        damaged = bytearray(content)
        damaged[position] ^= change
        refused(bytes(damaged), f"byte {position} changed by {change}")
        done["bytes changed"] += 1
    for _ in range(torture.times(short=25, long=500)):
        length = random.randrange(len(content))
        refused(content[:length], f"only {length} of {len(content)} bytes")
        done["files cut short"] += 1
    for _ in range(torture.times(short=10, long=100)):
        more = random.randbytes(random.choice((1, 2, 16, 68, 4096)))
        refused(content + more, f"{len(more)} bytes appended")
        done["files with bytes appended"] += 1
    return done


def _in_a_process(torture: Torture) -> None:
    """Damage an entry on disk; a process must rebuild it, and the next one use it."""
    random, number = torture.random, torture.random.randrange(5)
    place = torture.place()
    place.compute(number)
    path = place.entries()[0]
    content = bytearray(path.read_bytes())
    if random.random() < 0.5:
        del content[random.randrange(len(content)) :]
    else:
        content[random.randrange(len(content))] ^= random.randrange(1, 256)
    path.write_bytes(content)
    report = place.compute_quietly(number)
    counters = report.value["counters"]
    require(counters["corrupt"] == 1 and counters["puts"] == 1, f"a damaged entry was not rebuilt: {counters}")
    torture.count("damaged entries rebuilt by processes")
    place.recovers(number)
    place.remove()


# --------------------------------------------------------------------------------- something else of that name


def _another_entry(path: Path, other: Path) -> None:
    shutil.copy(other, path)


def _empty(path: Path, _other: Path) -> None:
    path.touch(mode=0o600)


def _directory(path: Path, _other: Path) -> None:
    path.mkdir()
    (path / "something").touch()


def _pipe(path: Path, _other: Path) -> None:
    os.mkfifo(path, 0o600)


def _socket(path: Path, _other: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.getcwd()
        os.chdir(path.parent)  # names of sockets are short
        try:
            listener.bind(path.name)
        finally:
            os.chdir(here)


def _link_to_another_entry(path: Path, other: Path) -> None:
    path.symlink_to(other)


def _link_to_itself(path: Path, _other: Path) -> None:
    path.symlink_to(path.name)


def _link_to_nothing(path: Path, _other: Path) -> None:
    path.symlink_to("nowhere")


def _link_to_zeros(path: Path, _other: Path) -> None:
    path.symlink_to("/dev/zero")


def _device(path: Path, _other: Path) -> None:
    with contextlib.suppress(PermissionError):  # only root may make one
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))


def _holes(path: Path, _other: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(1 << 40)  # a terabyte, none of it on the disk
    path.chmod(0o600)


def _writable_by_all(path: Path, other: Path) -> None:
    shutil.copy(other, path)
    path.chmod(0o666)


IMPOSTORS: dict[str, Callable[[Path, Path], None]] = {
    "another entry": _another_entry,
    "an empty file": _empty,
    "a directory that is not empty": _directory,
    "a pipe": _pipe,
    "a socket": _socket,
    "a link to another entry": _link_to_another_entry,
    "a link to itself": _link_to_itself,
    "a link to nothing": _link_to_nothing,
    "a link to endless zeros": _link_to_zeros,
    "a device": _device,
    "a terabyte of holes": _holes,
    "another entry, writable by everybody": _writable_by_all,
}


def impostors(torture: Torture) -> None:
    """Something else under an entry's name: right results, and the other thing is not loaded."""
    for name, make in torture.progress(list(IMPOSTORS.items())):
        with torture.attempt(name):
            place = torture.place()
            place.compute(NUMBER)
            path = place.entries()[0]
            place.compute(NUMBER + 1)
            usual = place.compute(NUMBER).value["libraries"]  # quick calls have an entry, too
            other = next(entry for entry in place.entries() if entry != path and str(entry) not in usual)
            path.unlink()
            make(path, other)
            report = place.run(lambda: compute(NUMBER))
            require_right(report, [NUMBER])
            require(len(report.warnings) <= 1, f"more than one warning: {report.warnings}")
            loaded = [library for library in report.value["libraries"] if library == str(other)]
            require(not loaded, f"{loaded} was loaded")
            torture.count("things under an entry's name")
            torture.count("of them, replaced by a new entry", path.is_file() and not path.is_symlink())
            torture.count("of them, with a warning", bool(report.warnings))
            place.compute(NUMBER)
            place.remove()


SCENARIOS = {"flipped": flipped, "impostors": impostors}
