"""Causal attention with several heads through all passes: the same bits, and how it is scheduled."""

from __future__ import annotations

from functools import cache

import pytest

from mgjit.compiler.pipeline.order import PASSES, Work
from mgjit.compiler.simplify.differentiate import differentiate
from mgjit.compiler.simplify.phases import split_phases
from mgjit.compiler.toolchain.target import Processor
from mgjit.ir.program import Loop, Program, count_statements, walk
from mgjit.ir.verify import verify
from tests.backends import Contents, FlatMemory, in_c, in_python, interpreted
from tests.bounded import contents, unrolled
from tests.causal import CausalAttention
from tests.compiler.codegen.native import working


def lowered(made: CausalAttention, lanes: int = 8) -> Work:
    """After all passes."""
    memory = FlatMemory(made.arrays, made.gradient)
    work = Work(made.program(), memory, Processor(lanes, 32))  # type: ignore[arg-type]
    for one in PASSES:
        work.run(one)
        verify(work.program)
    return work


@cache
def expected(positions: int, heads: int, size: int) -> tuple[Contents, list[list[bytes]]]:
    """Memory, and what the differentiated records make of it, one by one."""
    made = CausalAttention(positions, heads, size)
    flat = made.program()
    verify(flat)
    flat.forward[:] = unrolled(flat.forward, ())
    differentiate(flat, FlatMemory(made.arrays, made.gradient))  # type: ignore[arg-type]
    split_phases(flat)
    memory = contents(made.arrays, 2)
    return memory, interpreted(flat, memory)


def same(made: CausalAttention, program: Program, family: str = "") -> None:
    """The Program computes what the records compute."""
    memory, numbers = expected(made.positions, made.heads, made.size)
    memory = dict(zip(made.arrays, memory.values()))
    assert (in_c(program, memory, family) if family else interpreted(program, memory)) == numbers


@pytest.mark.parametrize(
    ("positions", "heads", "size", "lanes"), [(5, 2, 3, 4), (9, 1, 4, 8), (6, 3, 2, 2), (4, 2, 4, 1)]
)
def test_01_the_same_bits(positions: int, heads: int, size: int, lanes: int) -> None:
    """For numbers of positions that are no multiples of anything."""
    made = CausalAttention(positions, heads, size)
    program = lowered(made, lanes).program
    same(made, program)
    memory, numbers = expected(positions, heads, size)
    assert in_python(program, dict(zip(made.arrays, memory.values()))) == numbers


@pytest.mark.once
@pytest.mark.parametrize("family", working())
def test_02_generated_c(family: str) -> None:
    """Vectors, register blocks and packed arrays."""
    made = CausalAttention(9, 2, 4)
    same(made, lowered(made, 1 if family == "tcc" else 8).program, family)


def test_03_how_it_is_scheduled() -> None:
    """Scores, powers and their gradients in lanes along the positions, packed once for all of them; the sums grow."""
    work = lowered(CausalAttention(16, 4, 4))
    lines = [str(line).partition(": ")[2] for line in work.schedule]
    triangles = [line for line in lines if line.startswith("16 x 4 x 16 (4) into t")]
    assert len(triangles) == 1
    assert all("8 lanes along the loop of 16" in line and "packed: t1" in line for line in triangles)
    top = [node for node in work.program.forward if isinstance(node, Loop)]
    assert sum(any(isinstance(n, Loop) and n.bound is not None for n in walk([loop])) for loop in top) == 2
    assert not any(line.startswith("16 x 4 x 16 into") and "not vectorised" in line for line in lines)


def test_04_as_many_statements_for_any_length() -> None:
    """Before register blocks are chosen, whose sizes depend on it."""
    sizes = set()
    for positions in (8, 16, 40):
        made = CausalAttention(positions, 2, 4)
        work = Work(made.program(), FlatMemory(made.arrays, made.gradient), Processor(8, 32))  # type: ignore[arg-type]
        for one in PASSES[: [one.name for one in PASSES].index("vectorise")]:
            work.run(one)
        sizes.add(count_statements([node for _, nodes in work.program.phases for node in nodes]))
    assert len(sizes) == 1
