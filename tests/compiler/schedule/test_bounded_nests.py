"""What each pass decides about loops with bounds; that the bits stay the same is in test_bounds.py as well."""

from __future__ import annotations

import pytest

from mgjit.compiler.schedule.cost import best_plan
from mgjit.compiler.schedule.fuse import fuse
from mgjit.compiler.schedule.hoist import hoist
from mgjit.compiler.schedule.in_blocks import in_blocks
from mgjit.compiler.schedule.pack import can_be_packed
from mgjit.compiler.schedule.vectorise import vectorise
from mgjit.compiler.simplify.first_contributions import merge_first_contributions
from mgjit.compiler.simplify.reductions import find_reductions
from mgjit.compiler.simplify.unroll import unroll
from mgjit.compiler.toolchain.target import Processor
from mgjit.ir.nest import examine
from mgjit.ir.printer import print_program
from mgjit.ir.program import (
    Array,
    Bound,
    Choice,
    Constant,
    Load,
    Loop,
    Mixed,
    Node,
    Program,
    Reference,
    Register,
    Statement,
    TableEntry,
    count_copies,
    statements,
    walk,
)
from tests.backends import FlatMemory
from tests.handmade import around, at, define, load, same_bits, update

N = 6
X, Y, W = Array("x", "input", 80), Array("y", "state", 80), Array("w", "parameter", 80)
G = Array("g", "gradient", N * N)
ZERO = Constant(0.0)
WIDE = Processor(lanes=4, registers=16)


def growing(outer: Loop, least: int = 1) -> Loop:
    """As many iterations as `outer` has begun, or one fewer."""
    return Loop(N - 1 + least, [], bound=Bound(least, ((outer, 1),)))


def shrinking(outer: Loop) -> Loop:
    """`N, N-1, ... 1` iterations."""
    return Loop(N, [], bound=Bound(N, ((outer, -1),)))


# ---- reductions -----------------------------------------------------------------------------------------------


def chains(least: int, last: tuple[int, int], first: bool = False) -> Program:
    """`for i: for j in a triangle: t[i,j] = t[i,j-1] + x[j]`, and then `y[i] = t[base + step * i]`.

    Args:
        least: iterations of the first row.
        last: base and step of what is read.
        first: the read is not of the first row, which is something else.
    """
    length = N - 1 + least
    t = Array("t", "scratch", N * length, shape=(N, length))
    i = Loop(N, [])
    j = growing(i, least)
    before = load(t, (i, length), (j, 1), base=-1)
    around(j, define(at(t, (i, length), (j, 1)), "add", Choice(j, ZERO, before), load(X, (j, 1))))
    read = load(t, (i, last[1]), base=last[0])
    around(i, j, define(at(Y, (i, 1)), "copy", Choice(i, ZERO, read) if first else read))
    return Program([i])


def reduced(program: Program) -> str:
    """The Program after the pass."""
    same_bits(program, lambda program: find_reductions(program, FlatMemory([])))  # type: ignore[arg-type]
    return print_program(program)


def test_01_the_last_of_a_triangle() -> None:
    """It is on the diagonal."""
    assert reduced(chains(1, (0, N + 1))) == (
        "forward:\n"
        "    for i in 0 .. 5:\n"
        "        %0 = r[i] = copy(0.0)\n"
        "        for j in 0 .. i (6 at most):\n"
        "            r[i] = add(r[i], x[j])\n"
        "        %2 = y[i] = copy(r[i])\n"
    )


@pytest.mark.parametrize("last", [(0, N), (N - 1, N)])
def test_02_not_the_last(last: tuple[int, int]) -> None:
    """The first column; the last column, which only the last row has."""
    i = chains(1, last)
    program = i if last[0] == 0 else Program([])
    if last[0]:  # nothing is there in most rows: it is only looked at
        find_reductions(i, FlatMemory([]))  # type: ignore[arg-type]
        assert not any(s.update for s in statements(i.forward))
    else:
        assert "add(r" not in reduced(program)


def test_03_rows_without_iterations() -> None:
    """The sum would have to begin where nothing is computed."""
    assert "add(r" not in reduced(chains(0, (-1, N), first=True))
    assert "add(r" in reduced(chains(1, (0, N + 1), first=True))


def test_04_the_last_of_a_triangle_that_shrinks() -> None:
    """It is on the other diagonal."""
    t = Array("t", "scratch", N * N, shape=(N, N))
    i = Loop(N, [])
    j = shrinking(i)
    before = load(t, (i, N), (j, 1), base=-1)
    around(j, define(at(t, (i, N), (j, 1)), "add", Choice(j, load(W, (i, 1)), before), load(X, (j, 1))))
    around(i, j, define(at(Y, (i, 1)), "copy", load(t, (i, N - 1), base=N - 1)))
    text = reduced(Program([i]))
    assert "r[i] = copy(w[i])" in text
    assert "y[i] = copy(r[i])" in text


@pytest.mark.parametrize("start", ["plain", "mixed"])
def test_15_an_initial_value_by_the_same_loop(start: str) -> None:
    """It is read in the first iteration only, so it is the one of the first iteration."""
    t = Array("t", "scratch", N * N, shape=(N, N))
    i = Loop(N, [])
    j = growing(i)
    before = load(t, (i, N), (j, 1), base=-1)
    entry = TableEntry(0, ((i, 2), (j, 3)))
    first = Mixed((W, X), entry, entry) if start == "mixed" else load(W, (i, 1), (j, 3))
    around(j, define(at(t, (i, N), (j, 1)), "add", Choice(j, first, before), load(X, (j, 1))))
    around(i, j, define(at(Y, (i, 1)), "copy", load(t, (i, N + 1))))
    program = Program([i])
    program.tables.extend(k % 2 for k in range(40))
    assert "r[i] = add(r[i], x[j])" in reduced(program)


# ---- unroll, first contributions, hoist -----------------------------------------------------------------------


def test_05_unroll() -> None:
    """A loop with a bound is not unrolled; a loop around it is, and the bound becomes a count."""
    i = Loop(3, [])
    j = Loop(3, [], bound=Bound(0, ((i, 1),)))
    around(j, update(at(Y, (j, 1)), "add", Choice(j, ZERO, load(X, (i, 1)))))
    around(i, j)
    program = Program([i])
    same_bits(program, unroll)
    assert print_program(program).count("for") == 1 + 2  # forward, two loops
    around(i, define(at(Y, (i, 1), base=9), "copy", Choice(i, ZERO, load(X))), j)
    program = Program([i])
    same_bits(program, unroll)
    assert print_program(program).count("for j in 0 ..") == 0
    assert [loop.count for loop in walk(program.forward) if isinstance(loop, Loop)] == [1, 2]


def filled(clear: Loop, add: Loop, *outer: Loop) -> str:
    """`for i: for j: g[i,j] = 0` and `for i: for j: g[i,j] += x[i,j]` after the pass; the inner loops as given."""
    first, second = outer
    around(clear, define(at(G, (first, N), (clear, 1)), "copy", ZERO))
    around(add, update(at(G, (second, N), (add, 1)), "add", load(X, (second, N), (add, 1))))
    program = Program([around(first, clear), around(second, add)])
    same_bits(program, merge_first_contributions)
    return print_program(program)


def test_06_first_contributions() -> None:
    """To the same triangle, but not to another one or to a part of the square."""
    a, b = Loop(N, []), Loop(N, [], reverse=True)
    assert "add(0.0, " in filled(growing(a), growing(b), a, b)
    assert "add(0.0, " in filled(shrinking(a), shrinking(b), a, b)
    assert "add(0.0, " not in filled(growing(a), shrinking(b), a, b)
    assert "add(0.0, " not in filled(Loop(N, []), growing(b), a, b)
    assert "add(0.0, " not in filled(growing(a), Loop(N, []), a, b)
    assert "add(0.0, " not in filled(growing(a), growing(b, 0), a, b)


def test_07_a_first_contribution_that_may_be_missing() -> None:
    """A loop that is executed once or not at all is not one that is always executed once."""
    i = Loop(2, [])
    once = Loop(1, [], bound=Bound(0, ((i, 1),)))
    around(once, update(at(G), "add", load(X)))
    program = Program([around(i, define(at(G), "copy", ZERO), once)])
    same_bits(program, merge_first_contributions)
    assert "add(0.0, " not in print_program(program)


def divided(inner: Loop, outer: Loop, by: Load) -> str:
    """`for i: for j: y[i,j] = x[j] / by` after the pass."""
    half = Statement("divide", (Constant(1.0), by))
    around(inner, half, define(at(Y, (outer, N), (inner, 1)), "multiply", Register(half), load(X, (inner, 1))))
    program = Program([around(outer, inner)])
    same_bits(program, hoist)
    return print_program(program)


def test_08_hoist() -> None:
    """Out of a loop that always has an iteration; not out of one that may have none."""
    i = Loop(N, [])
    assert "copy(once1[i])" in divided(growing(i), i, load(W, (i, 1)))
    assert "once" not in divided(growing(i, 0), i, load(W, (i, 1)))


def test_09_hoist_what_depends_on_a_loop_with_a_bound() -> None:
    """It stays inside of the loop that the bound is by."""
    i = Loop(N, [])
    j = growing(i)
    assert "once" not in divided(j, i, load(W, (j, 1)))


def test_10_what_is_hoisted_twice() -> None:
    """The same operation over different triangles is not the same."""
    loops = [Loop(N, []) for _ in range(3)]
    inner = [growing(loops[0]), growing(loops[1]), shrinking(loops[2])]
    nests: list[Node] = []
    for number, (i, j) in enumerate(zip(loops, inner)):
        k = Loop(2, [])
        half = Statement("divide", (Constant(1.0), load(X, (i, N), (j, 1))))
        nests.append(around(k, around(i, around(j, half, update(at(Y, (k, 1), base=number), "add", Register(half))))))
    program = Program([around(Loop(1, []), *nests)])
    same_bits(program, hoist)
    text = print_program(program)
    assert "once2" in text
    assert "once3" not in text


# ---- fuse, vectorise ------------------------------------------------------------------------------------------


def attention() -> tuple[Program, list[Loop]]:
    """`for i: for j <= i: for d: mixed[i,d] += weights[i,j] * values[j,d]`."""
    i, d = Loop(N, []), Loop(16, [])
    j = growing(i)
    mixed, weights, values = (Array(name, "state", N * 16) for name in ("mixed", "weights", "values"))
    product = Statement("multiply", (load(weights, (i, N), (j, 1)), load(values, (j, 16), (d, 1))))
    around(i, around(j, around(d, product, update(at(mixed, (i, 16), (d, 1)), "add", Register(product)))))
    return Program([i]), [i, j, d]


def test_11_lanes_along_a_loop_that_does_not_grow() -> None:
    """It goes to the outside; those that grow, and those by which they do, keep their order."""
    program, (i, j, d) = attention()
    nest = examine(i)
    assert nest is not None
    assert nest.fixed == {i, j}
    plan = best_plan(j, WIDE)[1]
    assert plan is not None
    assert (plan.order, plan.vector) == ([d, j], d)
    same_bits(program, lambda program: vectorise(program, WIDE))
    assert any(isinstance(node, Loop) and node.lanes for node in walk(program.forward))


def test_12_rows_whose_bounds_agree() -> None:
    """Iterations side by side share the loops inside, with their bounds."""
    i, row = Loop(N, []), Loop(4, [])
    j = growing(i)
    around(j, update(at(Y, (row, N), (i, 1)), "add", load(X, (row, N), (j, 1))))
    around(row, around(i, j))

    def jammed(program: Program) -> None:
        program.forward[:] = in_blocks(row.body, row, 2)

    program = Program([row])
    same_bits(program, jammed)
    inner = [node for node in walk(program.forward) if isinstance(node, Loop) and node.bound is not None]
    assert len(inner) == 1
    assert count_copies(inner[0].body) == 2


def test_13_packing_once_for_all_positions() -> None:
    """The copy is of the whole box, so all of it must exist."""
    i, d = Loop(N, []), Loop(8, [])
    j = growing(i)
    around(i, around(j, around(d, update(at(Y, (i, 8), (d, 1)), "add", load(W, (d, N), (j, 1))))))
    nest = examine(i)
    assert nest is not None
    reads = [use for use in nest.uses if use.reference.array is W]
    assert can_be_packed(reads[0], nest, {Y})
    short = Array("short", "parameter", 8 * N - 1)
    moved = Reference(short, reads[0].reference.index)
    assert not can_be_packed(reads[0]._replace(reference=moved), nest, {Y})
    entry = Reference(W, moved.index._replace(terms=(), table=TableEntry(0, ((j, 1),))))
    assert not can_be_packed(reads[0]._replace(reference=entry), nest, {Y})


def test_14_fuse() -> None:
    """By the rows; the columns, which have bounds, stay inside."""
    t = Array("t", "scratch", N * N, shape=(N, N))
    a, b = Loop(N, []), Loop(N, [])
    one, other = growing(a), growing(b)
    around(one, define(at(t, (a, N), (one, 1)), "exp", load(X, (a, N), (one, 1))))
    around(
        b, around(other, define(at(Y, (b, N), (other, 1)), "multiply", load(t, (b, N), (other, 1)), load(W, (b, 1))))
    )
    program = Program([around(a, one), b])
    same_bits(program, lambda program: fuse(program, Processor(lanes=1)))
    text = print_program(program)
    assert text.count("(6 at most)") == 2
