"""Quick calls for single tests: the extension of the process, which other tests know nothing of, stays as it is."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from mgjit.compiler.toolchain import compilers
from mgjit.runtime import vectorcall


@functools.cache
def _loaded() -> vectorcall.Extension:
    made = vectorcall.Extension()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MGJIT_CC", raising=False)  # which may not read the headers of Python
        if compilers.find() is not None:
            made.obtain()
    return made


def use_extension(monkeypatch: pytest.MonkeyPatch, wanted: bool = True) -> None:
    """Let a test have the extension, or none; the test is skipped where there can be none."""
    found = _loaded() if wanted else vectorcall.Extension()
    if not wanted:
        found.is_possible = False
    elif found.make is None:
        pytest.skip("calls of this interpreter are made by ctypes or cffi")
    monkeypatch.setattr(vectorcall, "extension", found)


def entered(call: Any) -> Any:
    """What a call enters: tracebacks do not show it."""
    return call.args[0] if isinstance(call, functools.partial) else call
