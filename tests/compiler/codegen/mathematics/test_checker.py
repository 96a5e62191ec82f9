"""The C source of the comparison."""

from __future__ import annotations

import pytest

from mgjit.compiler.codegen.mathematics.checker import BLOCKS, checker
from mgjit.compiler.codegen.mathematics.source import EXACT


@pytest.mark.parametrize("function", list(EXACT))
def test_01_a_source_without_headers(function: str) -> None:
    source = checker(function)
    assert "#include" not in source
    assert 'visibility("default"))) int compare(void *const *m)' in source
    assert f"(*volatile library)(double{', double' if function == 'power' else ''})" in source


def test_02_more_than_a_million_inputs() -> None:
    assert 8 * BLOCKS > 1_000_000
    assert f"block < {BLOCKS}" in checker("exp")
