"""Which arrays become one, and that everybody finds its elements again."""

from __future__ import annotations

from typing import Any

import mgjit
from mgjit.compiler.lift.memory import Memory
from mgjit.compiler.simplify.merge import merge
from mgjit.ir.printer import print_program
from mgjit.ir.program import (
    Array,
    Choice,
    Index,
    Load,
    Loop,
    Mixed,
    Program,
    Reference,
    Statement,
    TableEntry,
    TargetMixed,
    statements,
)
from tests.handmade import around, at, define, load, same_bits
from tests.lowering import Example, numbers

X, S = Array("x", "input", 40), Array("s", "state", 40)


class NoReads:
    """As much of a Memory as the pass asks for."""

    def __init__(self, *results: Array) -> None:
        self.adjoint_reads = [(result, None) for result in results]


def merged(program: Program, *kept: Array) -> None:
    """The pass; the bits are the same."""
    memory: Any = NoReads(*kept)
    same_bits(program, lambda changed: merge(changed, memory))


def parts(count: int = 3, size: int = 4) -> tuple[list[Array], list[Loop]]:
    """Arrays, and the loops that fill them."""
    arrays = [Array(f"t{number}", "scratch", size, shape=(size,)) for number in range(count)]
    fills = []
    for number, array in enumerate(arrays):
        i = Loop(size, [])
        fills.append(around(i, define(at(array, (i, 1)), "copy", load(X, (i, 1), base=size * number))))
    return arrays, fills


def mixed(
    arrays: list[Array], selectors: list[int], positions: list[int], program: Program | None = None, base: int = 0
) -> tuple[Program, Loop]:
    """A Program with a loop that reads one of the arrays in each iteration."""
    program = program or Program([])
    i = Loop(len(selectors), [])
    start = len(program.tables)
    entries = [TableEntry(offset, ((i, 1),)) for offset in (start, start + len(selectors))]
    program.tables.extend([*selectors, *positions])
    around(i, define(at(S, (i, 1), base=base), "negate", Mixed(tuple(arrays), *entries)))
    program.forward.append(i)
    return program, i


def written(program: Program) -> dict[str, Array]:
    """The arrays that statements write, by name."""
    targets = [s.target for s in statements(program.forward)]
    return {target.array.name: target.array for target in targets if isinstance(target, Reference)}


def test_01_as_in_the_docstring() -> None:
    """Position by position: affine in the loop, nothing remembers the three."""
    arrays, fills = parts()
    program, _ = mixed(arrays, [0, 1, 2], [2, 2, 2])
    program.forward[:0] = fills
    merged(program)
    text = print_program(program)
    assert "s[i] = negate(t0[4*i + 2])" in text
    assert "t0[i + 8] = copy(x[i + 8])" in text
    assert written(program)["t0"].size == 12


def test_02_a_table_where_it_is_needed() -> None:
    """Another order of elements."""
    arrays, fills = parts()
    program, i = mixed(arrays, [2, 0, 1, 1], [3, 0, 1, 2])
    program.forward[:0] = fills
    merged(program)
    reads = [o for s in statements([i]) for o in s.operands]
    assert all(isinstance(read, Load) and read.reference.index.table is not None for read in reads)


def test_03_neighbours_of_neighbours() -> None:
    """Arrays that occur together with one of the group join it; others do not."""
    arrays, fills = parts(6)
    program, _ = mixed(arrays[:2], [0, 1], [0, 0])
    mixed(arrays[1:3], [0, 1], [1, 1], program, 10)
    mixed(arrays[4:], [0, 1], [1, 1], program, 20)
    program.forward[:0] = fills
    merged(program)
    assert {name: array.size for name, array in written(program).items()} == {"t0": 12, "t3": 4, "t4": 8, "s": 40}


def test_04_choices() -> None:
    """A selection inside a choice counts as well."""
    arrays, fills = parts(2)
    program, i = mixed(arrays, [0, 1, 0], [0, 1, 2])
    for statement in statements([i]):
        statement.operands = (Choice(i, load(X, base=7), statement.operands[0]),)
    program.forward[:0] = fills
    merged(program)
    assert "one of" not in print_program(program)


def test_05_what_stays() -> None:
    """Visible memory, results whose adjoints somebody reads, and arrays that are written through a selection."""
    arrays, fills = parts(2)
    program, _ = mixed([arrays[0], X], [0, 1], [0, 1])
    program.forward[:0] = fills
    merged(program)
    assert "one of" in print_program(program)
    arrays, fills = parts(2)
    program, _ = mixed(arrays, [0, 1], [0, 1])
    program.forward[:0] = fills
    merged(program, arrays[1])
    assert "one of" in print_program(program)
    arrays, fills = parts(2)
    program, i = mixed(arrays, [0, 1], [0, 1])
    i.body.append(
        Statement("copy", (load(X),), TargetMixed(tuple(arrays), TableEntry(0, ((i, 1),)), TableEntry(2, ((i, 1),))))
    )
    program.forward[:0] = fills
    merged(program)
    assert "one of" in print_program(program)


def test_06_shapes() -> None:
    """Members of one shape become rows; others just follow each other."""
    for sizes, expected in (((4, 4), (2, 4)), ((4, 3), (7,))):
        arrays = [Array(f"t{size}{number}", "scratch", size, shape=(size,)) for number, size in enumerate(sizes)]
        program, _ = mixed(arrays, [0, 1], [1, 2])
        for array in reversed(arrays):
            i = Loop(array.size, [])
            program.forward.insert(0, around(i, define(at(array, (i, 1)), "copy", load(X, (i, 1)))))
        merged(program)
        assert {array.shape for name, array in written(program).items() if name != "s"} == {expected}


def test_07_tables_into_a_member() -> None:
    """Other accesses to a member move with it: by tables too."""
    arrays, fills = parts(2)
    program, _ = mixed(arrays, [0, 1], [0, 1])
    program.tables.extend([3, 1])
    i = Loop(2, [])
    through = Load(Reference(arrays[1], Index(0, (), TableEntry(4, ((i, 1),)))))
    program.forward[:] = [*fills, *program.forward, around(i, define(at(S, (i, 1), base=20), "copy", through))]
    merged(program)


def test_08_a_growing_sequence() -> None:
    """Positions that read all earlier ones, as attention does: exact, and no table is left."""
    w = [mgjit.Value(v) for v in numbers(6)]

    def step(xs: Any) -> Any:
        keys: list[Any] = []
        total: Any = 0.0
        for x in xs:
            keys.append([x * a for a in w])
            total = total + sum(k * q for key in keys for k, q in zip(key, keys[-1]))
        total.backward()
        return total

    made = Example(step, numbers(5))
    assert isinstance(made.memory, Memory)
    for stage in ("merge", ""):
        program = made.lower(stage)
        if not stage:
            made.check(program)
    assert "one of" not in print_program(program)
