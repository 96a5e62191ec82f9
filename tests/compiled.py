"""What compilers have made, kept for the rest of the session, or with MGJIT_TEST_COMPILED=DIR for others as well.

Most of the time of the tests is that of compilers, and many compile the same: the same step in another test, or the
same test on another interpreter.  The same command makes the same of the same source.  So each runs once; everything
before, from the trace to the source, and everything after happens again.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mgjit.base import settings
from mgjit.compiler.toolchain import build, process

#: Folders whose tests are about compilers, about what goes wrong with them, and about files: there, all of them run.
ABOUT_COMPILERS = ("cache", "robustness", "toolchain", "torture")
#: Folders and files whose tests are about the code that users get, which is quick at first, and better later; for all
#: others, any compiler is as good.
ABOUT_CODE = (
    "bench/", "compiler/", "export/", "faults/", "fuzz/", "kernels/", "runtime/test_detached.py",
    "runtime/test_last.py", "test_documents.py", "test_exactness.py", "test_step_layouts.py", "test_step_models.py",
    "test_step_orders.py", "verification/test_loops.py", "verification/test_phases.py",
)  # fmt: skip


class Compiled:
    """In place of `build._compile`.

    Args:
        directory: where the shared objects are.
        compile: what makes them.
    """

    def __init__(self, directory: Path, compile: Callable[..., bytes]) -> None:
        self._directory, self._compile = directory, compile
        directory.mkdir(parents=True, exist_ok=True)

    def __call__(self, compiler: Any, source: str, chosen: Sequence[str], mode: str, time_limit: float) -> bytes:
        if build.run is not process.run:  # a test looks at it
            return self._compile(compiler, source, chosen, mode, time_limit)
        limits = (time_limit, settings.compile_memory())
        parts = (compiler.argv, compiler.identity, chosen, build._link_choices(compiler, mode), limits, source)
        path = self._directory / hashlib.sha256(repr(parts).encode("utf-8", "replace")).hexdigest()
        try:
            binary = path.read_bytes()
        except OSError:
            binary = self._compile(compiler, source, chosen, mode, time_limit)
            with tempfile.NamedTemporaryFile(dir=self._directory, delete=False) as file:
                file.write(binary)
            os.replace(file.name, path)  # at once: other processes may read it now
        else:
            process.compiler_runs += 1
        return binary
