"""Formatting of sizes, ages, counts, help, and text from other programs."""

from __future__ import annotations

import argparse
import os
import sys

#: What the state of a candidate directory means, in words (base/directories.py).
STATES = {
    "used": "used",
    "read-only": "read, never written: it is read-only",
    "missing": "used, and made when it is needed",
    "spare": "only if those above cannot be used",
}

_AGES = ((60.0, 1.0, "s"), (3600.0, 60.0, "min"), (86400.0, 3600.0, "h"))


def program() -> str:
    """How the command line was called."""
    return "mgjit" if os.path.basename(sys.argv[0]).startswith("mgjit") else "python -m mgjit"


def show_help(parser: argparse.ArgumentParser) -> int:
    """What a command without the part that it needs answers; returns the exit code."""
    print(parser.format_help(), end="")
    return 0


def counted(number: int, one: str, many: str) -> str:
    """A number of things, such as "1 entry"."""
    return f"{number:,} {one if number == 1 else many}"


def size_text(size: float) -> str:
    """A number of bytes for people; the units are those of MGJIT_CACHE_SIZE."""
    if size < 1024:
        return f"{size:.0f} B"
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        size /= 1024
        if size < 1024 or unit == "TiB":
            break
    return f"{size:.1f} {unit}"


def age_text(seconds: float) -> str:
    """How long ago something was."""
    for limit, length, unit in _AGES:
        if seconds < limit:
            return f"{max(seconds, 0.0) // length:.0f} {unit}"
    return f"{seconds // 86400.0:.0f} d"


def printable(text: str) -> str:
    """The text with characters that stdout cannot encode escaped: paths and compiler messages may contain any."""
    encoding = sys.stdout.encoding or "ascii"
    return text.encode(encoding, "backslashreplace").decode(encoding)
