"""Notes: entries of the cache without a library, which say that something is known of a step.

They are listed, counted and swept like any other entry.  What is known is in the key, so a note has to be found only.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping

from .about import NAME as ABOUT
from .about import origin
from .entry import Entry
from .key import entry_key
from .store import Store


def this_python() -> str:
    """The implementation and version of Python, as parts of a note have it: bytecode is that of a minor version."""
    return f"{platform.python_implementation()} {sys.version_info[0]}.{sys.version_info[1]}"


def has_note(store: Store, parts: Mapping[str, str]) -> bool:
    """Whether there is one with these parts, in this process or from an earlier one."""
    return store.get(entry_key(parts), again=True) is not None


def put_note(store: Store, parts: Mapping[str, str], title: str) -> None:
    """Leave a note.

    Args:
        parts: what is known, and of what.
        title: as the cache lists it.
    """
    store.put(entry_key(parts), Entry({ABOUT: origin(title, parts)}, "", b""))


def remove_note(store: Store, parts: Mapping[str, str]) -> None:
    """Let there be none with these parts."""
    store.remove(entry_key(parts))
