"""Cache directories that are broken, hostile, strange or missing.

Every case is a function that prepares a place and says what is to be seen: `Expected`.  Whatever the case, the numbers
are right, there is one warning at most, and no code is loaded from a directory that somebody else could write to.
Each case is played by some processes after each other: the first builds, the others may find what it kept.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .harness import NOBODY, Place, Skip, Torture, compute, require, require_right

NUMBER = 2
_NEW_NAMESPACE = 0x00020000  # CLONE_NEWNS


@dataclass
class Expected:
    """What must be seen: one warning in the first process or none, and where no library may come from."""

    warns: bool = False
    never: Path | None = None
    hits: bool | None = True  # whether the second process finds what the first one kept; None: it may or may not
    user: int | None = None
    most_warnings: int = 1
    before: Callable[[], None] | None = None  # done by each child before it computes
    during: Callable[[], None] | None = None  # done by each child between two steps


# ------------------------------------------------------------------------- directories of somebody else


def another_users(place: Place) -> Expected:
    """The directory belongs to somebody else, who has put code there."""
    _needs_root()
    _filled(place)
    for path in [place.cache, *place.cache.iterdir()]:
        os.chown(path, NOBODY, NOBODY)
    return Expected(warns=True, never=place.cache)


def world_writable(place: Place) -> Expected:
    """Anybody may write to the directory."""
    _filled(place)
    place.cache.chmod(0o777)
    return Expected(warns=True, never=place.cache)


def group_writable(place: Place) -> Expected:
    """A group may write to the directory."""
    _filled(place)
    place.cache.chmod(0o770)
    return Expected(warns=True, never=place.cache)


def below_a_world_writable_one(place: Place) -> Expected:
    """Anybody may rename the directory and put another one in its place."""
    outer = place.root / "outer"
    outer.mkdir()
    place.cache = outer / "cache"
    place.environment["MGJIT_CACHE_DIR"] = str(place.cache)
    _filled(place)
    outer.chmod(0o777)
    return Expected(warns=True, never=place.cache)


def link_into_a_world_writable_one(place: Place) -> Expected:
    """The directory is a link into one that anybody may write to."""
    target = place.root / "target"
    _linked(place, target)
    target.chmod(0o777)
    return Expected(warns=True, never=target)


def link_of_another_user(place: Place) -> Expected:
    """Somebody else has made the link, and may change it."""
    _needs_root()
    target = place.root / "target"
    _linked(place, target)
    os.chown(place.cache, NOBODY, NOBODY, follow_symlinks=False)
    return Expected(warns=True, never=target)


def link_to_a_good_one(place: Place) -> Expected:
    """The directory is a link of this user to another directory of this user: that is fine."""
    _linked(place, place.root / "target")
    return Expected()


# ------------------------------------------------------------------------- directories that do not work


def a_file(place: Place) -> Expected:
    """There is a file of that name."""
    place.cache.write_text("not a directory")
    return Expected(warns=True, hits=True)


def below_a_file(place: Place) -> Expected:
    """A directory above it is a file."""
    (place.root / "file").write_text("not a directory")
    _moved(place, place.root / "file" / "cache")
    return Expected(warns=True)


def link_to_nothing(place: Place) -> Expected:
    """A link to what does not exist."""
    place.cache.symlink_to(place.root / "nowhere")
    return Expected(warns=True)


def link_to_itself(place: Place) -> Expected:
    """A link that leads nowhere."""
    place.cache.symlink_to(place.cache)
    return Expected(warns=True)


def read_only_and_empty(place: Place) -> Expected:
    """This user may not write to the directory."""
    return _read_only(place, filled=False)


def read_only_and_filled(place: Place) -> Expected:
    """This user may not write to it, and the entry is there: it is used, and nothing is to be warned of."""
    return _read_only(place, filled=True)


def not_even_readable(place: Place) -> Expected:
    """This user may do nothing in the directory."""
    _needs_root()
    place.cache.mkdir(mode=0o000)
    _for_nobody(place)
    return Expected(warns=True, user=NOBODY)


def noexec(place: Place) -> Expected:
    """Libraries cannot be loaded from the file system of the directory."""
    place.cache.mkdir(mode=0o700)
    return Expected(warns=True, before=lambda: _mount(place.cache, "noexec,size=4m"), never=place.cache)


def noexec_everywhere(place: Place) -> Expected:
    """The same for the home and the temporary directory: only memory is left."""
    directories = (place.home, place.temporary)

    def before() -> None:
        for directory in directories:
            _mount(directory, "noexec,size=4m")

    _moved(place, place.home / "cache")
    return Expected(warns=True, before=before, hits=False, never=place.root)


def full_disk(place: Place) -> Expected:
    """There is room for nothing on the disk of the directory."""
    place.cache.mkdir(mode=0o700)

    def before() -> None:
        _mount(place.cache, "size=8k")
        with contextlib.suppress(OSError), open(place.cache / "filler", "wb", buffering=0) as file:
            while True:
                file.write(bytes(512))

    return Expected(warns=True, before=before, hits=None)


def no_room_for_names(place: Place) -> Expected:
    """The disk has no room for another file, not even for an empty one."""
    place.cache.mkdir(mode=0o700)
    return Expected(warns=True, before=lambda: _mount(place.cache, "nr_inodes=1"), hits=None)


def read_only_disk(place: Place) -> Expected:
    """The disk is mounted read-only."""
    place.cache.mkdir(mode=0o700)
    return Expected(warns=True, before=lambda: _mount(place.cache, "ro"))


# --------------------------------------------------------------------------------- homes and variables


def no_home(place: Place) -> Expected:
    """HOME is not set."""
    place.environment.update(HOME=None, MGJIT_CACHE_DIR=None, XDG_CACHE_HOME=str(place.cache))
    return Expected()


def home_that_does_not_exist(place: Place) -> Expected:
    """HOME names nothing, and nobody may make it."""
    _needs_root()
    place.environment.update(HOME="/nonexistent/home", MGJIT_CACHE_DIR=None)
    place.give_to(NOBODY)
    return Expected(warns=True, user=NOBODY)


def home_that_is_read_only(place: Place) -> Expected:
    """HOME cannot be written to."""
    _needs_root()
    place.environment.update(MGJIT_CACHE_DIR=None)
    _for_nobody(place, place.home)
    place.home.chmod(0o555)
    return Expected(warns=True, user=NOBODY)


def nothing_can_be_written(place: Place) -> Expected:
    """The whole system is read-only: not even a compiler has a place to write to."""

    def before() -> None:
        _unshare()
        for directory in ("/dev/shm", "/var/tmp", "/tmp", str(place.root)):  # noqa: S108 - not to write there
            if os.path.isdir(directory):
                _run_mount("--bind", directory, directory)
                _run_mount("-o", "remount,ro,bind", directory)
        os.chdir("/proc")  # where Python looks last for a temporary directory

    place.environment["MGJIT_CC"] = None  # a compiler that is asked for and cannot run would be an error
    return Expected(warns=True, before=before, hits=False, most_warnings=2)


# ---------------------------------------------------------------------------------------- while running


def deleted_while_running(place: Place) -> Expected:
    """Somebody deletes the cache between two steps: the next entry makes it again."""
    return Expected(during=lambda: shutil.rmtree(place.cache), hits=False)


def replaced_by_a_file_while_running(place: Place) -> Expected:
    """Somebody puts a file in its place between two steps."""

    def during() -> None:
        if place.cache.is_dir():
            shutil.rmtree(place.cache)
            place.cache.write_text("no longer a directory")

    return Expected(warns=True, during=during)


def opened_to_all_while_running(place: Place) -> Expected:
    """The directory becomes world-writable between two steps."""
    return Expected(warns=True, during=lambda: place.cache.exists() and place.cache.chmod(0o777))


def descriptors_closed_while_running(place: Place) -> Expected:
    """Only memory is left for libraries, and somebody closes all descriptors, as a daemon does when it starts."""
    expected = noexec_everywhere(place)

    def during() -> None:
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                if "memfd:mgjit" in os.readlink(f"/proc/self/fd/{name}"):
                    os.close(int(name))

    expected.during = during
    return expected


# ----------------------------------------------------------------------------------------- strange names

NAMES = {
    "blanks": "a directory with  blanks ",
    "quotes": 'it\'s "quoted" `twice` $HOME $(date)',
    "accents": "café-naïve-Ωmega-日本語",
    "a new line": "first line\nsecond line",
    "200 characters": "n" * 200,
    "the end of an option": "-o --help -Wl,x",
    "percent, colon, semicolon": "100%s:;,=@#",
    "bytes that are no text": os.fsdecode(b"latin-\xe9-\xff"),
    "deep": os.path.join(*["d" * 100] * 8),
}


def _named(name: str) -> Callable[[Place], Expected]:
    def case(place: Place) -> Expected:
        directory = place.root / name / "cache"
        _moved(place, directory)
        try:
            os.makedirs(directory.parent)
        except (OSError, UnicodeError) as reason:
            raise Skip(f"this file system has no such names: {reason}") from None
        temporary = place.root / name / "temporary"
        temporary.mkdir(mode=0o700)
        place.environment["TMPDIR"] = str(temporary)  # the compiler runs in there
        return Expected()

    case.__doc__ = "A strange name, of the temporary directory as well."
    return case


def _words(function: Callable[..., Any]) -> str:
    return function.__name__.replace("_", " ")


CASES: dict[str, Callable[[Place], Expected]] = {
    _words(case): case
    for case in (
        another_users,
        world_writable,
        group_writable,
        below_a_world_writable_one,
        link_into_a_world_writable_one,
        link_of_another_user,
        link_to_a_good_one,
        a_file,
        below_a_file,
        link_to_nothing,
        link_to_itself,
        read_only_and_empty,
        read_only_and_filled,
        not_even_readable,
        noexec,
        noexec_everywhere,
        full_disk,
        no_room_for_names,
        read_only_disk,
        no_home,
        home_that_does_not_exist,
        home_that_is_read_only,
        nothing_can_be_written,
        deleted_while_running,
        replaced_by_a_file_while_running,
        opened_to_all_while_running,
        descriptors_closed_while_running,
    )
}
CASES.update({f"a name with {what}": _named(name) for what, name in NAMES.items()})


# ------------------------------------------------------------------------------------------ playing a case


def directories(torture: Torture) -> None:
    """All cases."""
    for name, case in torture.progress(list(CASES.items())):
        with torture.attempt(name):
            _play(torture, name, case)


def _play(torture: Torture, name: str, case: Callable[[Place], Expected]) -> None:
    place = torture.place()
    try:
        expected = case(place)
        reports = [place.run(lambda: _job(expected), user=expected.user) for _ in range(torture.times(short=2, long=3))]
        if "harness.Skip: " in reports[0].error:
            raise Skip(reports[0].error.rpartition("harness.Skip: ")[2].strip())
    except Skip as reason:
        torture.count(f"skipped: {reason}")
        return
    torture.count("cases")
    for report in reports:
        require_right(report, [NUMBER, NUMBER + 1] if expected.during else [NUMBER])
        require(len(report.warnings) <= expected.most_warnings, f"too many warnings: {report.warnings}")
        if expected.never is not None:
            loaded = [each for each in report.value["libraries"] if each.startswith(str(expected.never))]
            require(not loaded, f"{loaded} was loaded")
    torture.count("cases with a warning", bool(reports[0].warnings))
    require(bool(reports[0].warnings) == expected.warns, f"warnings of the first process: {reports[0].warnings}")
    found = reports[1].value["counters"]["hits"] > 0
    torture.count("cases in which the next process found the entry", found)
    require(expected.hits in (found, None), f"whether the next process found the entry: {found}")
    place.remove()


def _job(expected: Expected) -> dict[str, Any]:
    """What each child does."""
    if expected.before is not None:
        expected.before()
    if expected.during is None:
        return compute(NUMBER)
    first = compute(NUMBER)
    expected.during()
    second = compute(NUMBER + 1)
    return {**second, "results": {**first["results"], **second["results"]}}


def _needs_root() -> None:
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        raise Skip("only root can act as two users")


def _filled(place: Place) -> None:
    """Let a process put the entry there, while nothing is wrong yet."""
    place.compute(NUMBER)
    require(place.entries(), "no entry was kept")


def _linked(place: Place, target: Path) -> None:
    _filled(place)
    place.cache.rename(target)
    place.cache.symlink_to(target)


def _moved(place: Place, directory: Path) -> None:
    place.cache = directory
    place.environment["MGJIT_CACHE_DIR"] = str(directory)


def _for_nobody(place: Place, *kept: Path) -> None:
    """The place becomes somebody else's, who is without rights in what root has there."""
    place.give_to(NOBODY)
    for path in kept:
        os.chown(path, NOBODY, NOBODY)


def _read_only(place: Place, filled: bool) -> Expected:
    _needs_root()
    place.cache.mkdir(mode=0o700)
    place.give_to(NOBODY)
    if filled:
        require_right(place.run(lambda: compute(NUMBER), user=NOBODY), [NUMBER])
    place.cache.chmod(0o555)
    return Expected(warns=not filled, user=NOBODY)


def _mount(directory: Path, options: str) -> None:
    """In a child: mount an empty file system there, which nobody else sees and which ends with the process."""
    _unshare()
    _run_mount("-t", "tmpfs", "-o", f"{options},mode=700", "tmpfs", str(directory))


def _unshare() -> None:
    """Mounts of this process are its own from now on."""
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "unshare") or library.unshare(_NEW_NAMESPACE) != 0:
        raise Skip(f"no mount namespace: {os.strerror(ctypes.get_errno())}")
    _run_mount("--make-rprivate", "/")


def _run_mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)  # noqa: S607
    if done.returncode:
        raise Skip(f"no mount: {done.stderr.strip()}")


SCENARIOS = {"directories": directories}
