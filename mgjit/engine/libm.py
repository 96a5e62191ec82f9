"""The C library's mathematics that this process computes with."""

from __future__ import annotations

import functools
import math
import os
import re


@functools.cache
def mapped_libm() -> str | None:
    """The file of the libm that this process has mapped, where the system reveals it (Linux)."""
    math.exp(0.0)  # the module is imported, hence its library is mapped
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            paths = {line.rstrip("\n").split(None, 5)[-1] for line in maps}
    except OSError:
        return None
    named = [path for path in paths if re.fullmatch(r"libm(-[\d.]+)?\.so(\.\d+)*", os.path.basename(path))]
    return next((path for path in sorted(named) if os.path.isfile(path)), None)
