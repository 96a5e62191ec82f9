"""Copies that turn rows into columns are one call, with the same numbers, for every width and compiler."""

from __future__ import annotations

from array import array

import pytest

from mgjit.base import ffi
from mgjit.compiler.codegen.transpose import has_many, transpose_function, transposition
from mgjit.compiler.codegen.vectors import Vectors
from mgjit.compiler.toolchain import build
from mgjit.ir.program import Array, Block, Constant, Loop, Node
from tests.compiler.codegen.mathematics.lanes import vector_compiler
from tests.handmade import around, at, define, load

pytestmark = pytest.mark.once

_CALLER = """
__attribute__((visibility("default"))) int run(void *const *m)
{
    const long *n = m[2];
    transpose(m[0], n[0], m[1], n[1], n[2], n[3]);
    return 0;
}
"""


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize("family", ["gcc", "clang"])
def test_01_every_element_and_no_other(family: str, lanes: int, dtype: str) -> None:
    """Whole blocks, none, and rests on both sides."""
    vectors = Vectors(dtype, has_transpose=True)
    vectors.type(lanes)
    real, integer, code = ("double", "long long", "d") if dtype == "float64" else ("float", "int", "f")
    head = (
        f"typedef {real} real;\ntypedef {integer} integer;\n#define UNUSED __attribute__((unused))\n#define NOINLINE\n"
    )
    source = "\n".join([head, *vectors.source(), _CALLER])
    built = build.compile_shared(vector_compiler(family), source, optimisation=f"-O1 {build.native()}")
    run = ffi.load_bytes(built.binary).function("run")
    for rows, columns in ((8, 8), (16, 32), (50, 21), (9, 40), (33, 8), (64, 64)):
        to_step, from_step = columns + 3, rows + 1
        to, given = array(code, [-1.0] * (rows * to_step)), array(code, range(from_step * columns))
        block = ffi.PointerBlock(3)
        for place, numbers in enumerate((to, given, array("l", [to_step, from_step, rows, columns]))):
            block.set(place, numbers)
        run(block)
        for row in range(rows):
            expected = [given[row + from_step * column] for column in range(columns)]
            assert list(to[to_step * row : to_step * (row + 1)]) == [*expected, -1.0, -1.0, -1.0]


def test_02_without_vectors() -> None:
    text = transpose_function(1)
    assert "vector_size" not in text
    assert "SHUFFLE" not in text


T, P = Array("t0", "scratch", 4096), Array("p0", "parameter", 4096)


def test_03_what_is_a_transposition() -> None:
    """Rows inside or outside, whatever is around."""
    for inside in (False, True):
        other, row, column = Loop(2, []), Loop(12, []), Loop(9, [])
        copy = define(at(T, (other, 1024), (row, 16), (column, 1)), "copy", load(P, (row, 1), (column, 20), base=5))
        outer = around(column, around(row, copy)) if inside else around(row, around(column, copy))
        around(other, outer)
        found = transposition(outer)
        assert found is not None
        assert (found.target_step, found.source_step, found.rows, found.columns) == (16, 20, 12, 9)
        assert found.source.index.base == 5
        assert found.target.index.terms == ((other, 1024),)


def test_04_what_is_none() -> None:
    """Few iterations, single steps on the same side, the same array, rows over one another, a sum, no copy."""

    def found(rows: int, columns: int, to: tuple[int, int], of: tuple[int, int], source: Array = P) -> object:
        row, column = Loop(rows, []), Loop(columns, [])
        copy = define(at(T, (row, to[0]), (column, to[1])), "copy", load(source, (row, of[0]), (column, of[1])))
        return transposition(around(row, around(column, copy)))

    assert found(8, 8, (8, 1), (1, 8)) is not None
    assert found(7, 8, (8, 1), (1, 8)) is None
    assert found(8, 8, (8, 1), (8, 1)) is None
    assert found(8, 8, (8, 1), (2, 8)) is None
    assert found(8, 8, (8, 1), (1, 8), T) is None
    assert found(8, 8, (4, 1), (1, 8)) is None
    row, column = Loop(8, []), Loop(8, [])
    doubled = define(at(T, (row, 8), (column, 1)), "add", load(P, (row, 1), (column, 8)), Constant(1.0))
    assert transposition(around(row, around(column, doubled))) is None


def test_05_few_elements_are_not_worth_the_function() -> None:
    """All copies of a source count, with the loops around them."""

    def copies(times: int) -> Node:
        other, row, column = Loop(times, []), Loop(16, []), Loop(16, [])
        copy = define(at(T, (other, 256), (row, 16), (column, 1)), "copy", load(P, (row, 1), (column, 16)))
        return around(other, around(row, around(column, copy)))

    assert not has_many([copies(3)])
    assert has_many([copies(3), copies(1)])
    assert has_many([Block([copies(4)])])
    assert not has_many([Loop(4, [])])
