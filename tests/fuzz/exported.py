"""Random programs, exported: each call of a compiled step is also made by exported C, which must leave the same bits.

Before each call the step is exported with this one call, compiled and run.  Its program compares the result and what is
learned with those of the kernel, which this module's caller compares with the undecorated step.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mgjit
from mgjit.errors import ArgumentError, RandomnessError, UnsupportedError
from tests.export.compiling import checked

#: What an export refuses: such calls are made by the kernel alone.
_REFUSED = (ArgumentError, RandomnessError, UnsupportedError)

#: How many calls were exported, and how many were refused.
counts = {"exported": 0, "refused": 0}


def exporting(by: str, **options: Any) -> Callable[[Any], Callable[..., Any]]:
    """Makes of a step a function that also exports each call."""

    def make(step: Any) -> Callable[..., Any]:
        compiled = mgjit.compile(**options)(step)

        def call(*arguments: Any) -> Any:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    compiled.export(folder, "net", calls=[arguments])
                except _REFUSED:
                    counts["refused"] += 1
                else:
                    counts["exported"] += 1
                    try:
                        checked(Path(folder), "net", by, () if by == "tcc" else ("-O3", "-march=native"))
                    except (AssertionError, subprocess.SubprocessError) as error:
                        raise RuntimeError(f"exported C: {error}") from error
            return compiled(*arguments)

        return call

    return make
