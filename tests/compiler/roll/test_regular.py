"""Which iterations that grow are a loop: by where their operands lie."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import replace

import pytest

from mgjit.compiler.roll.holes import Grown, grown
from mgjit.compiler.roll.regular import Operands
from mgjit.ir.opcodes import ADD, BACKWARD, COPY, INPUT, MULTIPLY, PARAMETER, leaf
from mgjit.ir.trace import Trace
from tests.growing_steps import prefix_sums
from tests.lowering import Example

#: Rows of 1 to 4 products and sums, and what reads the sum.
ROWS = 4
TREE = grown(ROWS, [grown(ROWS, [0, 1], counts=(1, 2, 3, 4)), 2], grows=True)


def operands(weight: Callable[[int, int], int], last: Callable[[int, int], int], ragged: bool = False) -> Operands:
    """The rows of a triangle.

    Args:
        weight: the second operand of the product of row i and column j.
        last: what the record at the end of row i reads, from the row and its own position.
    """
    op, a, b = array("i"), array("i"), array("i")
    for i in range(ROWS):
        for j in range(i + 1):
            at = len(op)
            op.extend([MULTIPLY, ADD])
            a.extend([leaf(INPUT, j), at - 1 if j else leaf(INPUT, 0)])
            b.extend([weight(i, j), at])
        a.append(last(i, len(op)))
        b.append(leaf(INPUT, 0))
        op.append(COPY)
    step, arguments = prefix_sums(4)
    trace: Trace = replace(Example(step, *arguments).trace, op=op, a=a, b=b, c=None, blocks=[])
    tree: Grown = TREE
    return Operands(trace, range(len(op) + 1), 0, len(op), tree, ragged)


def own_sum(_: int, position: int) -> int:
    """The last sum of the row."""
    return position - 1


def test_operands_that_are_affine() -> None:
    assert operands(lambda i, j: leaf(PARAMETER, 3 * i + j), own_sum).are_affine()


def test_rows_that_begin_anywhere_in_memory() -> None:
    assert operands(lambda i, j: leaf(PARAMETER, (7, 1, 40, 9)[i] + j), own_sum).are_affine()


def test_rows_that_lie_differently_in_memory() -> None:
    """As the weights of layers of different widths do."""
    irregular = operands(lambda i, j: leaf(PARAMETER, 50 * i + j * j * (i + 1)), own_sum)
    assert not irregular.are_affine()
    assert not irregular.are_alike()


def test_results_that_are_read_in_no_order() -> None:
    sums = [2, 7, 14, 23]  # the positions behind the rows
    irregular = operands(lambda i, j: leaf(PARAMETER, j), lambda i, position: position - (1, 3, 1, 5)[i])
    assert not irregular.are_affine()
    assert not irregular.are_alike()
    assert operands(lambda i, j: leaf(PARAMETER, j), lambda i, position: sums[i] - 1).are_affine()


@pytest.mark.parametrize("rule", [Operands.are_affine, Operands.are_alike])
def test_a_backward_pass_is_in_no_growing_loop(rule: Callable[[Operands], bool]) -> None:
    found = operands(lambda i, j: leaf(PARAMETER, j), own_sum)
    assert rule(found)
    found = operands(lambda i, j: leaf(PARAMETER, j), own_sum)
    found._trace.op[2] = BACKWARD
    assert not rule(found)


def test_a_tree_that_does_not_have_so_many_records() -> None:
    good = operands(lambda i, j: leaf(PARAMETER, j), own_sum)
    bad = Operands(good._trace, good._places, 0, len(good._trace.op) - 1, TREE, False)
    assert good.are_affine()
    assert not bad.are_affine()
