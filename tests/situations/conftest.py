"""Situations are about what lies around a step: a compiler that does not optimise is as good, and quicker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mgjit.errors import CompilerError
from mgjit.toolchain import compilers


@pytest.fixture(scope="package", autouse=True)
def quick_compiler() -> Iterator[None]:
    """tcc, where it is installed."""
    with pytest.MonkeyPatch.context() as patch:
        try:
            compilers.find("tcc")
            patch.setenv("MGJIT_CC", "tcc")
        except CompilerError:
            pass
        yield
