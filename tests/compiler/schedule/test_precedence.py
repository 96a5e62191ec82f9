"""One part of a body for all iterations, and then another: against comparing every iteration with every other."""

from __future__ import annotations

import random

import pytest

from mgjit.compiler.schedule.distribute import distribute
from mgjit.compiler.schedule.precedence import may_follow
from mgjit.ir.domain import has_bounds, iterations
from mgjit.ir.program import Array, Bound, Constant, Index, Load, Loop, Node, Reference, TableEntry
from tests.handmade import Program, around, at, define, load, same_bits, update

N = 5
K, S, X = Array("k", "scratch", 90, shape=(9, 10)), Array("s", "state", 90), Array("x", "input", 90)
#: Numbers of iterations of loops in the tests.
TABLES = [2, 0, 3, 1, 2]


def parts(bound: Bound | None, i: Loop) -> tuple[list[Node], list[Node]]:
    """`k[i] = x[i]` and `for j: s[i,j] = k[j]`."""
    j = Loop(N, [], bound=bound)
    around(j, define(at(S, (i, N), (j, 1)), "copy", load(K, (j, 1))))
    return [define(at(K, (i, 1)), "copy", load(X, (i, 1)))], [j]


def test_01_rows_that_are_done() -> None:
    """Every row needs itself and earlier ones, in the order of the loop; not all of them."""
    i, back = Loop(N, []), Loop(N, [], reverse=True)
    assert may_follow(*parts(Bound(1, ((i, 1),)), i), i, ())
    assert may_follow(*parts(Bound(0, ((i, 1),)), i), i, ())
    assert not may_follow(*parts(Bound(N, ((i, -1),)), i), i, ())
    assert not may_follow(*parts(Bound(1, ((back, 1),)), back), back, ())
    assert not may_follow(*parts(None, i), i, ())
    assert not may_follow(*parts(Bound(0, (), TableEntry(0, ((i, 1),))), i), i, TABLES)
    assert may_follow(*parts(Bound(0, (), TableEntry(0, ((i, 1),))), i), i, [1, 2, 0, 3, 5])


def test_02_sums_that_are_complete() -> None:
    """Rows that are added to until their own iteration, read there."""
    i = Loop(N, [], reverse=True)
    j = Loop(N, [], reverse=True, bound=Bound(1, ((i, 1),)))
    around(j, update(at(K, (j, 1)), "add", load(X, (i, N), (j, 1))))
    use: list[Node] = [define(at(S, (i, 1)), "copy", load(K, (i, 1)))]
    assert may_follow([j], use, i, ())
    assert not may_follow(use, [j], i, ())


def test_03_what_is_not_known() -> None:
    """Tables as indices; bounds by loops around; loops around that count differently."""
    o, i = Loop(2, []), Loop(N, [])
    first, (second,) = parts(Bound(1, ((i, 1),)), i)
    assert isinstance(second, Loop)
    looked_up = Load(Reference(K, Index(0, (), TableEntry(0, ((i, 1),)))))
    assert not may_follow(first, [define(at(S, (i, 1)), "copy", looked_up), second], i, TABLES)
    second.bound = Bound(1, ((o, 1), (i, 1)))
    assert not may_follow(first, [second], i, ())
    second.bound = Bound(1, ((i, 1),))
    assert not may_follow(first, [define(at(S, (i, 1)), "copy", load(K, (o, 1), (i, 1)))], i, ())
    same: list[Node] = [define(at(K, (o, 9), (i, 1)), "copy", Constant(0.0))]
    assert may_follow(same, [define(at(S, (i, 1)), "copy", load(K, (o, 9), (i, 1)))], i, ())


@pytest.mark.parametrize("seed", range(50))
def test_04_as_by_comparing_all_iterations(seed: int) -> None:
    """Random accesses in random triangles."""
    draw = random.Random(seed)
    i = Loop(draw.choice((3, N)), [], reverse=draw.random() < 0.3)

    def accesses(other: int) -> tuple[list[Node], list[tuple[Loop | None, Index, bool]]]:
        nodes: list[Node] = []
        seen: list[tuple[Loop | None, Index, bool]] = []
        for _ in range(draw.choice((1, 2))):
            bound = draw.choice(
                (None, Bound(1, ((i, 1),)), Bound(N, ((i, -1),)), Bound(0, (), TableEntry(0, ((i, 1),))))
            )
            j = draw.choice((None, Loop(N, [], bound=bound)))
            steps = [(i, draw.choice((0, 1, 1, 5, -1)))] + ([(j, draw.choice((1, 1, -1, 5)))] if j else [])
            index = Index(40, tuple((loop, step) for loop, step in steps if step))
            writes = draw.random() < 0.5
            s = (
                define(Reference(K, index), "copy", load(X))
                if writes
                else define(at(S, base=other), "copy", Load(Reference(K, index)))
            )
            nodes.append(around(j, s) if j else s)
            seen.append((j, index, writes))
        return nodes, seen

    (first, one), (second, other) = accesses(0), accesses(1)

    def visited(found: list[tuple[Loop | None, Index, bool]], iteration: int, writes: bool) -> set[int]:
        return {
            index.base + sum(step * variables[loop] for loop, step in index.terms)
            for j, index, is_write in found
            if is_write or not writes
            for variables in iterations([j] if j else [], TABLES, {i: iteration})
        }

    order = list(range(i.count))[:: -1 if i.reverse else 1]
    meets = any(
        visited(one, order[late], a) & visited(other, order[early], not a)
        for late in range(i.count)
        for early in range(late)
        for a in (True, False)
    )
    assert may_follow(first, second, i, TABLES) == (not meets)


def test_05_distribution() -> None:
    """The rows first, and then the triangle; not if a row needs later ones."""
    for bound, loops in ((lambda i: Bound(1, ((i, 1),)), 3), (lambda i: Bound(N, ((i, -1),)), 2)):
        i = Loop(N, [])
        _, (second,) = parts(bound(i), i)
        k = Loop(2, [])
        fill = around(k, define(at(K, (i, 1), (k, 20)), "copy", load(X, (i, 1))))
        assert isinstance(second, Loop)
        clear = Loop(90, [])
        around(clear, define(at(K, (clear, 1)), "copy", load(X, (clear, 1))))
        program = Program([clear, around(i, fill, second)])
        assert has_bounds(program.forward)
        same_bits(program, distribute)
        assert len(program.forward) == loops
