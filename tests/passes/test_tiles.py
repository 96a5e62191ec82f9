"""Nests executed in tiles: every edge, operands of every kind, and that no sum changes its order."""

from __future__ import annotations

import random

import pytest

from mgjit.ir.program import Array, Loop, Node, Program, Register, Statement, count_statements, statements, walk
from mgjit.passes.cost import Processor, best_plan
from mgjit.passes.dependence import independent_among
from mgjit.passes.expand import Arrays
from mgjit.passes.nest import Nest, examine
from mgjit.passes.tile_plan import plan_along, tiled_plan
from mgjit.passes.tiles import Tiles
from mgjit.passes.vectorise import vectorise
from tests.handmade import around, at, define, load, same_bits, update
from tests.nests import random_chain, random_choosing, random_program

pytestmark = pytest.mark.once

FOUR, EIGHT = Processor(4, 16), Processor(8, 32)
#: Vectors and rows of a tile.
SIZES = [(1, 1), (1, 3), (2, 1), (2, 2), (3, 4)]


def free_of(nest: Nest, loop: Loop) -> list[Loop]:
    """The independent loops of its band."""
    return independent_among([one for one in nest.band if one not in nest.fixed and one.count > 1], [loop])


def tile(nodes: list[Node], lanes: int, draw: random.Random, found: list[int]) -> list[Node]:
    """Execute each nest in tiles that can be, along loops and in sizes that are drawn."""
    done: list[Node] = []
    arrays = Arrays("tile")
    for node in nodes:
        nest = examine(node) if isinstance(node, Loop) else None
        assert nest is None or isinstance(node, Loop)
        free = free_of(nest, node) if nest is not None and isinstance(node, Loop) else []
        pairs = [(one, other) for one in free for other in free if one is not other]
        if nest is None or not pairs or tiled_plan(nest, free, Processor(lanes, 16)) is None:
            done.append(node)
            continue
        plan = plan_along(nest, *draw.choice(pairs), free, Processor(lanes, 16))
        assert plan is not None
        plan.vectors, plan.row_count = draw.choice(SIZES)
        found.append(1)
        done += Tiles(nest, plan, lanes, arrays).nodes()
    return done


def check(*nodes: Node, seed: int = 0, lanes: int = 4) -> Program:
    """The Program in tiles, with the same bits; some nest must be executed in tiles."""
    program, found = Program(list(nodes)), list[int]()

    def change(program: Program) -> None:
        program.forward[:] = tile(program.forward, lanes, random.Random(seed), found)

    same_bits(program, change)
    assert found
    return program


def product(
    m: int, n: int, k: int, a: tuple[int, int] | None = None, b: tuple[int, int] | None = None, sums_first: bool = False
) -> Loop:
    """`for i: for j: r = bias; for l: r += a * b; t = relu(r)`, or, `sums_first`, only the sums; steps of operands."""
    x, y, z = Array("x", "input", m * k), Array("y", "parameter", k * n), Array("z", "input", n)
    r, t = Array("r", "gradient" if sums_first else "scratch", m * n, shape=(m, n)), Array("t", "state", m * n)
    i, j, l = Loop(m, []), Loop(n, []), Loop(k, [])  # noqa: E741
    row, column = a or (k, 1), b or (n, 1)
    term = Statement("multiply", (load(x, (i, row[0]), (l, row[1])), load(y, (l, column[0]), (j, column[1]))))
    place = (i, n), (j, 1)
    adding = update(at(r, *place), "add", Register(term))
    if sums_first:
        return around(l, around(i, around(j, term, adding)))
    first = define(at(r, *place), "copy", load(z, (j, 1)))
    return around(i, around(j, first, around(l, term, adding), define(at(t, *place), "relu", load(r, *place))))


@pytest.mark.parametrize("lanes", [4, 8])
@pytest.mark.parametrize("shape", [(2, 2, 2), (3, 17, 5), (5, 8, 4), (12, 13, 3), (7, 33, 2), (9, 3, 18)])
def test_01_products_of_all_sizes(shape: tuple[int, int, int], lanes: int) -> None:
    """Rows and columns below, at and above whole tiles; either operand transposed; sums outermost."""
    m, n, k = shape
    for seed in range(3):
        check(product(m, n, k), seed=seed, lanes=lanes)
        check(product(m, n, k, a=(1, m), b=(1, k)), seed=seed, lanes=lanes)
        check(product(m, n, k, sums_first=True), seed=seed, lanes=lanes)


def test_02_what_crosses() -> None:
    """Registers from before the sum are used in it and behind it; the sum begins with what was there."""
    m, n, k = 6, 11, 4
    x, y, r, t = (Array(name, "state", 300) for name in "xyrt")
    i, j, l = Loop(m, []), Loop(n, []), Loop(k, [])  # noqa: E741
    scale = Statement("multiply", (load(y, (j, 1)), load(x, (i, 1), base=250)))
    term = Statement("multiply", (load(x, (i, k), (l, 1)), Register(scale)))
    last = define(at(t, (i, n), (j, 1)), "add", load(r, (i, n), (j, 1)), Register(scale))
    for seed in range(4):
        check(
            around(i, around(j, scale, around(l, term, update(at(r, (i, n), (j, 1)), "add", Register(term))), last)),
            seed=seed,
        )


def test_03_two_sums_and_windows() -> None:
    """Two sums in a body, one of them over windows that overlap."""
    x, w, r, s, t = (Array(name, "state", 500) for name in "xwrst")
    for seed in range(4):
        i, j, c, d, e = Loop(5, []), Loop(9, []), Loop(3, []), Loop(2, []), Loop(7, [])
        place = (i, 9), (j, 1)
        one = Statement("multiply", (load(x, (i, 20), (c, 90), (d, 1), (j, 1)), load(w, (c, 2), (d, 1))))
        two = Statement("multiply", (load(x, (i, 7), (e, 1)), load(w, (j, 7), (e, 1), base=20)))
        body: list[Node] = [
            define(at(r, *place), "copy", load(w)),
            around(c, around(d, one, update(at(r, *place), "add", Register(one)))),
            define(at(s, *place), "copy", load(w, (j, 1))),
            around(e, two, update(at(s, *place), "subtract", Register(two))),
            define(at(t, *place), "maximum", load(r, *place), load(s, *place)),
        ]
        check(around(i, around(j, *body)), seed=seed)


@pytest.mark.parametrize("seed", range(12))
def test_04_random_nests(seed: int) -> None:
    """Whatever they access."""
    for made in (random_program(seed), random_program(seed, plain=True), random_chain(seed), random_choosing(seed)):

        def change(program: Program, seed: int = seed) -> None:
            for _, nodes in program.phases:
                nodes[:] = tile(nodes, 4, random.Random(seed), [])

        same_bits(made, change)


def test_05_large_products_are_executed_in_tiles() -> None:
    """The cost model takes tiles for them: panels are packed, and there is little code, whatever comes with the sum."""
    for a, b in ((None, None), ((1, 128), None), (None, (1, 512))):
        nest = product(128, 512, 512, a, b)
        _, plan = best_plan(nest, EIGHT)
        assert plan is not None
        assert plan.tiled
        assert plan.packed
        program = Program([nest])
        vectorise(program, EIGHT)
        assert count_statements(program.forward) < 120
        panels = {s.target.array for s in statements(program.forward) if s.operation == "copy"}  # type: ignore[union-attr]
        assert any(array.name.startswith("tile") and array.size == 512 * 8 * plan.vectors for array in panels)


def test_06_small_products_are_not() -> None:
    """What fits a cache and a few registers is executed as it was."""
    _, plan = best_plan(product(1, 16, 8), EIGHT)
    assert plan is None or not plan.tiled


def test_07_sums_in_lanes_keep_their_order() -> None:
    """The loop that is summed over is never the one that runs in lanes or rows."""
    nest = product(64, 64, 256)
    program = Program([nest])
    vectorise(program, FOUR)
    inner = [node for node in walk(program.forward) if isinstance(node, Loop) and node.count == 256]
    assert inner
    assert not any(loop.lanes for loop in inner)
