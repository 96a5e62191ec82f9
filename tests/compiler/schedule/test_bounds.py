"""Every pass on Programs whose loops have bounds: the same bits as without it, in every back end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mgjit.compiler.pipeline.order import PASSES, Pass, Work
from mgjit.compiler.simplify.differentiate import differentiate
from mgjit.compiler.simplify.phases import split_phases
from mgjit.compiler.simplify.reductions import find_reductions
from mgjit.compiler.toolchain.target import Processor
from mgjit.ir.program import Array, Loop, Program, Statement, walk
from mgjit.ir.verify import verify
from tests.backends import Contents, FlatMemory, in_c, in_python, interpreted
from tests.bounded import contents, random_bounded, random_bounded_chain, random_step, unrolled
from tests.compiler.codegen.native import working
from tests.handmade import visible

#: Those that take any Program; the others take one as it was traced.
FREE = [one for one in PASSES if one.name not in ("reductions", "layout", "differentiate", "phases", "gradients")]
LANES = (8, 2, 4, 1)


def work_on(program: Program, lanes: int, gradient: Callable[[Array], Array | None] = lambda one: None) -> Work:
    """The state of the passes, for a processor."""
    processor = Processor(lanes, 32 if lanes == 8 else 16)
    return Work(program, FlatMemory(visible(program), gradient), processor)  # type: ignore[arg-type]


def after(
    passes: list[Pass], make: Callable[[], Program], seed: int, lanes: int
) -> tuple[Program, Contents, list[list[bytes]]]:
    """A Program after some passes, memory for it, and what that should become."""
    program, other = make(), make()
    verify(program)
    memory = contents(visible(program), seed)
    expected = interpreted(program, memory)
    work = work_on(other, lanes)
    memory = dict(zip(visible(other), memory.values()))
    for one in passes:
        work.run(one)
        verify(other)
    return other, memory, expected


@pytest.mark.parametrize("one", FREE, ids=lambda one: str(one.name))
def test_01_each_pass_by_itself(one: Pass) -> None:
    """On any nests: triangles, several loops in a bound, tables, no iteration at all."""
    for seed in range(12):
        make = lambda seed=seed: random_bounded(seed, seed % 3 > 0)  # noqa: E731
        program, memory, expected = after([one], make, seed, LANES[seed % 4])
        assert interpreted(program, memory) == expected, seed


@pytest.mark.parametrize("seed", range(25))
def test_02_one_after_the_other(seed: int) -> None:
    """On any nests, and on nests over the same triangles, which can be fused."""
    for make in (lambda: random_bounded(1000 + seed, seed % 3 > 0), lambda: random_bounded_chain(seed)):
        program, memory, expected = after(FREE, make, seed, LANES[seed % 4])
        assert interpreted(program, memory) == expected
        assert in_python(program, memory) == expected


def lowered_step(seed: int, lanes: int) -> tuple[Program, Contents, list[list[bytes]]]:
    """A step after all passes, memory for it, and what its differentiated records make of that, one by one."""
    flat, writer = random_step(seed)
    flat.forward[:] = unrolled(flat.forward, flat.tables)
    work = work_on(flat, lanes, writer.gradient)
    differentiate(flat, work.memory)
    split_phases(flat)
    memory = contents(writer.arrays, seed)
    expected = interpreted(flat, memory)
    program, writer = random_step(seed)
    verify(program)
    work = work_on(program, lanes, writer.gradient)
    for one in PASSES:
        work.run(one)
        verify(program)
    return program, dict(zip(writer.arrays, memory.values())), expected


@pytest.mark.parametrize("seed", range(9))
def test_03_steps(seed: int) -> None:
    """Sums, recurrences, backward passes and updates through all passes, against the records one by one."""
    program, memory, expected = lowered_step(seed, LANES[seed % 4])
    assert interpreted(program, memory) == expected
    assert in_python(program, memory) == expected


@pytest.mark.once
@pytest.mark.parametrize("family", working())
@pytest.mark.parametrize("seed", range(3))
def test_04_generated_c(seed: int, family: str) -> None:
    """Vectors, register blocks and packed arrays included."""
    lanes = 1 if family == "tcc" else (8, 4)[seed % 2]
    program, memory, expected = lowered_step(seed, lanes)
    assert in_c(program, memory, family) == expected
    program, memory, expected = after(FREE, lambda: random_bounded_chain(seed), seed, lanes)
    assert in_c(program, memory, family) == expected


def test_05_steps_have_what_is_to_be_tested() -> None:
    """Loops that grow, that shrink, and that a table counts; and sums over them become accumulators."""
    seen: set[int] = set()
    accumulated = 0
    for seed in range(40):
        program, writer = random_step(seed)
        seen |= {kind for kind, known in writer.by_column.items() if known}
        find_reductions(program, work_on(program, 1, writer.gradient).memory)
        inner = [node for node in walk(program.forward) if isinstance(node, Loop) and node.bound is not None]
        accumulated += sum(isinstance(s, Statement) and s.update for loop in inner for s in loop.body)
    assert seen == {0, 1, 2}
    assert accumulated > 20
