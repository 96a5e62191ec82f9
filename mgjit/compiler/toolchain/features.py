"""Which processor this is: what code compiled with `-march=native` depends on.

Everything that needs to know calls `features.cpu_features()`.  So a test that replaces that one function simulates
another processor for the scheduler, the cache keys, and `doctor`.
"""

from __future__ import annotations

import functools
import platform
import subprocess
import sys
from dataclasses import dataclass

import xxhash

_MODEL = ("model name", "CPU implementer", "CPU variant", "CPU part", "cpu", "uarch")
_FLAGS = ("flags", "Features", "isa")
_SYSCTL = ("machdep.cpu.brand_string", "machdep.cpu.features", "machdep.cpu.leaf7_features")


@dataclass(frozen=True)
class Features:
    """A processor: its model, and the sorted names of its features."""

    model: str
    flags: tuple[str, ...]

    @property
    def identity(self) -> str:
        """The model, and a hash of the feature names."""
        return f"{self.model} {xxhash.xxh3_64_hexdigest(' '.join(self.flags).encode())}"


@functools.cache
def cpu_features() -> Features:
    """The processor of this machine."""
    if sys.platform == "darwin":
        return _of_macos()
    return read_features("/proc/cpuinfo")


def read_features(path: str) -> Features:
    """What Linux reports about its first processor; on other systems, only the model is known."""
    found: dict[str, str] = {}
    try:
        with open(path, encoding="ascii", errors="replace") as lines:
            for line in lines:
                name, _, value = line.partition(":")
                if not name.strip() and found:
                    break  # the next processor begins: producing each line costs time, and a server has many
                found[name.strip()] = value.strip()
    except OSError:
        pass
    model = " ".join(found[name] for name in _MODEL if name in found)
    flags = " ".join(found[name] for name in _FLAGS if name in found)
    return Features(model or platform.processor() or platform.machine(), tuple(sorted(set(flags.split()))))


def _of_macos() -> Features:
    words = ["/usr/sbin/sysctl", "-n", *_SYSCTL]  # Apple's own processors list no features; the model implies them
    try:
        said = subprocess.run(words, capture_output=True, text=True, check=False, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        said = ""
    model, _, flags = said.partition("\n")
    return Features(model or platform.processor() or platform.machine(), tuple(sorted(set(flags.lower().split()))))
