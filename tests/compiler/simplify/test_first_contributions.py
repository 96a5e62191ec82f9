"""Which additions may define what was cleared, which may not, and the sign of zero."""

from __future__ import annotations

import pytest

from mgjit.compiler.simplify.first_contributions import merge_first_contributions
from mgjit.ir.printer import print_program
from mgjit.ir.program import Array, Choice, Constant, Index, Load, Loop, Node, Operand, Program, Reference, TableEntry
from tests.handmade import around, at, define, load, same_bits, update
from tests.nests import random_chain, random_program

G, H = Array("g", "gradient", 30), Array("h", "gradient", 30)
X, P = Array("x", "input", 30), Array("p", "parameter", 30)
ZERO = Constant(0.0)


def clear(count: int = 6, base: int = 0, number: float = 0.0) -> Loop:
    """`for i: g[i] = 0.0`."""
    i = Loop(count, [])
    return around(i, define(at(G, (i, 1), base=base), "copy", Constant(number)))


def add(count: int = 6, base: int = 0, operation: str = "add") -> Loop:
    """`for i: g[i] = g[i] + x[i]`."""
    i = Loop(count, [])
    return around(i, update(at(G, (i, 1), base=base), operation, load(X, (i, 1))))


def merged(*nodes: Node) -> bool:
    """Whether the pass changes a backward phase; its bits never."""
    program = Program([], list(nodes))
    program.tables.extend([2, 0, 1, 5, 3, 4])
    before = print_program(program)
    same_bits(program, merge_first_contributions)
    return print_program(program) != before


def test_01_the_clearing_goes() -> None:
    """As in the docstring of the module; later additions stay what they are."""
    program = Program([], [clear(), add(), add()])
    same_bits(program, merge_first_contributions)
    assert print_program(program) == (
        "backward:\n"
        "    for i in 0 .. 5:\n"
        "        %0 = g[i] = add(0.0, x[i])\n"
        "    for i in 0 .. 5:\n"
        "        g[i] = add(g[i], x[i])\n"
    )


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (clear(), add(5), False),  # one element is not visited
        (clear(5), add(6), False),  # one is visited that was not cleared
        (clear(), add(base=1), False),
        (clear(base=1), add(base=1), True),
        (clear(), add(operation="multiply"), False),
        (clear(), add(operation="subtract"), False),
        (clear(number=-0.0), add(), False),
        (clear(number=1.0), add(), False),
        (add(), clear(), False),
    ],
)
def test_02_exactly_the_same_elements(first: Loop, second: Loop, expected: bool) -> None:
    """The addition visits what was cleared, all of it and nothing else."""
    assert merged(first, second) is expected


def test_03_the_shape_of_the_loops() -> None:
    """Nests over the same elements, in any order; rows that overlap visit elements twice."""
    for row_step, expected in ((5, True), (4, False)):
        i, j, k, m = Loop(4, []), Loop(5, []), Loop(5, []), Loop(4, [])
        first = around(i, around(j, define(at(G, (i, row_step), (j, 1)), "copy", ZERO)))
        second = around(k, around(m, update(at(G, (m, row_step), (k, 1)), "add", load(X, (k, 1)))))
        assert merged(first, second) is expected


def test_04_sums_stay() -> None:
    """Many additions to one element need the zero first."""
    i = Loop(6, [])
    assert not merged(define(at(G), "copy", ZERO), around(i, update(at(G), "add", load(X, (i, 1)))))


def test_05_inside_a_shared_loop() -> None:
    """Elements are cleared and added to in every iteration, or added to in all of them after one clearing."""
    i = Loop(6, [])
    assert merged(around(i, define(at(G), "copy", ZERO), update(at(G), "add", load(X, (i, 1)))))
    i, j = Loop(6, []), Loop(4, [])
    assert merged(
        around(i, define(at(G, (i, 1)), "copy", ZERO), update(at(G, (i, 1)), "add", load(X, (i, 1)))), add(base=8)
    )
    i = Loop(6, [])
    inner = around(j, update(at(G, (j, 1)), "add", load(X, (i, 1))))
    assert not merged(clear(4), around(i, inner))


def test_06_something_else_is_first() -> None:
    """A read or a write of any of the elements in between; of others, or by others, it does not matter."""
    for between, expected in (
        (define(at(H), "copy", load(G, base=3)), False),
        (define(at(G, base=5), "copy", load(X)), False),
        (update(at(G, base=0), "multiply", load(X)), False),
        (define(at(H), "copy", load(G, base=6)), True),
        (define(at(G, base=6), "copy", load(X)), True),
    ):
        assert merged(clear(), between, add()) is expected


def test_07_read_in_its_own_loops() -> None:
    """Before the addition, or another element of the array, keeps the clearing; after it is fine."""
    for base, before, expected in ((0, False, True), (0, True, False), (1, False, False)):
        i = Loop(5, [])
        adds = update(at(G, (i, 1)), "add", load(X, (i, 1)))
        reads = define(at(P, (i, 1)), "copy", load(G, (i, 1), base=base))
        assert merged(clear(5), around(i, *([reads, adds] if before else [adds, reads]))) is expected


def test_08_not_affine() -> None:
    """Tables and choices that may touch the elements come in between."""
    i = Loop(6, [])
    operands: list[Operand] = [
        Load(Reference(G, Index(0, (), TableEntry(0, ((i, 1),))))),
        Choice(i, load(G, (i, 1)), Constant(1.0)),
    ]
    for operand in operands:
        assert not merged(clear(), around(i, define(at(P, (i, 1)), "copy", operand)), add())
    j = Loop(6, [])
    scattered = Reference(G, Index(0, (), TableEntry(0, ((j, 1),))))
    assert not merged(clear(), around(j, update(scattered, "add", load(X, (j, 1)))))


def test_09_across_phases() -> None:
    """Cleared in the forward phase, first added to in the backward phase."""
    program = Program([clear()], [add()])
    same_bits(program, merge_first_contributions)
    assert not program.forward


def test_10_the_sign_of_zero() -> None:
    """`0.0 + c` stays for numbers that may be -0.0 and becomes a copy for adjoints, which never are."""
    d = Array("d", "scratch", 6)
    i, j = Loop(6, []), Loop(6, [])
    for seeded, expected in ((1.0, "copy(d[i])"), (-0.0, "add(0.0, d[i])")):
        seed = around(i, define(at(d, (i, 1)), "copy", Constant(seeded)))
        more = around(j, update(at(G, (j, 1)), "add", load(d, (j, 1))))
        program = Program([], [seed, clear(), more])
        same_bits(program, merge_first_contributions)
        assert expected in print_program(program)


def test_11_only_scratch_and_gradients() -> None:
    """Parameters and states that a step clears are left alone."""
    i, j = Loop(6, []), Loop(6, [])
    first = around(i, define(at(P, (i, 1)), "copy", ZERO))
    assert not merged(first, around(j, update(at(P, (j, 1)), "add", load(X, (j, 1)))))


def test_90_a_sum_of_itself() -> None:
    """What is added is what was cleared."""
    i = Loop(6, [])
    assert not merged(clear(), around(i, update(at(G, (i, 1)), "add", load(G, (i, 1)))))


@pytest.mark.parametrize("seed", range(6))
def test_91_random_nests(seed: int) -> None:
    """Clearings among all that else may happen to an array."""
    for program in (random_chain(seed), random_program(seed)):
        same_bits(program, merge_first_contributions)
