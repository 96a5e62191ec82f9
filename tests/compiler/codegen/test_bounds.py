"""Loops with bounds in every back end."""

from __future__ import annotations

import pytest

from mgjit.ir.verify import verify
from tests.backends import in_c, in_python, interpreted
from tests.bounded import contents, random_bounded
from tests.compiler.codegen.native import working
from tests.handmade import visible


@pytest.mark.parametrize("seed", range(50))
def test_01_generated_python(seed: int) -> None:
    """The same bits as the interpreter."""
    program = random_bounded(seed, plain=seed % 3 == 0)
    verify(program)
    memory = contents(visible(program), seed)
    assert in_python(program, memory) == interpreted(program, memory)


@pytest.mark.once
@pytest.mark.parametrize("family", working())
@pytest.mark.parametrize("seed", range(6))
def test_02_generated_c(seed: int, family: str) -> None:
    """The same bits as the interpreter."""
    program = random_bounded(1000 + seed, plain=seed % 3 == 0)
    memory = contents(visible(program), seed)
    assert in_c(program, memory, family) == interpreted(program, memory)
