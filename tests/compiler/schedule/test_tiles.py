"""Nests executed in tiles: every edge, operands of every kind, and that no sum changes its order."""

from __future__ import annotations

import random

import pytest

from mgjit.compiler.schedule.cost import Plan, best_plan
from mgjit.compiler.schedule.expand import Arrays
from mgjit.compiler.schedule.tile_plan import plan_along, tiled_plan
from mgjit.compiler.schedule.tiles import Tiles
from mgjit.compiler.schedule.vectorise import vectorise
from mgjit.compiler.toolchain.target import Processor
from mgjit.ir.dependence import independent_among
from mgjit.ir.nest import Nest, examine, executions
from mgjit.ir.program import (
    Array,
    Loop,
    Node,
    PaddedRows,
    Program,
    Reference,
    Register,
    Statement,
    arrays_read,
    count_statements,
    statements,
    walk,
)
from mgjit.ir.rewrite import with_surroundings
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
        sums = [loop for loop in nest.band if loop not in free]
        plan = plan_along(nest, *draw.choice(pairs), free, Processor(lanes, 16), draw.randrange(max(1, len(sums))))
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


@pytest.mark.parametrize("seed", range(6))
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


def convolution(images: int, channels: int, outputs: int, side: int, window: int, sums_first: bool) -> Loop:
    """A convolution of images and windows that are squares; or, `sums_first`, the gradient of its weights."""
    wide = side + window - 1
    x = Array("x", "input", images * channels * wide * wide)
    w = Array("w", "parameter", outputs * channels * window * window)
    y = Array("y", "state", images * outputs * side * side)
    counts = (images, outputs, side, side, channels, window, window)
    n, o, i, j, c, k, l = (Loop(count, [], sums_first) for count in counts)  # noqa: E741
    far, high = channels * wide * wide, wide * wide
    read = load(x, (n, far), (c, high), (i, wide), (k, wide), (j, 1), (l, 1))
    weight = at(w, (o, channels * window**2), (c, window**2), (k, window), (l, 1))
    out = at(y, (n, outputs * side**2), (o, side**2), (i, side), (j, 1))
    term = Statement(
        "multiply", (read, load(out.array, *out.index.terms) if sums_first else load(w, *weight.index.terms))
    )
    if sums_first:
        adding = update(weight, "add", Register(term))
        return around(n, around(o, around(i, around(j, around(c, around(k, around(l, term, adding)))))))
    total = around(c, around(k, around(l, term, update(out, "add", Register(term)))))
    return around(n, around(o, around(i, around(j, define(out, "copy", load(Array("z", "input", 1))), total))))


@pytest.mark.parametrize("sums_first", [False, True])
def test_07_convolutions(sums_first: bool) -> None:
    """Loops that panels do not depend on are inside of blocks; sums over several loops are cut into blocks."""
    for seed in range(4):
        draw = random.Random(seed)
        sizes = [draw.randrange(2, 5), draw.randrange(2, 4), draw.randrange(2, 7), draw.randrange(2, 4)]
        check(convolution(*sizes, window=2, sums_first=sums_first), seed=seed)


def test_08_panels_of_convolutions_are_packed_once_and_fit_a_cache() -> None:
    """Weights are packed once, for all windows of all images; for their gradient, one image at a time."""
    for sums_first, side, packed, images in ((False, 5, "w", 0), (True, 14, "y", 128)):
        program = Program([convolution(128, 20, 64, side, 3, sums_first)])
        vectorise(program, Processor(16, 32))
        fills = {
            statement: loops
            for statement, loops in with_surroundings(program.forward)
            if statement.operation == "copy" and packed in {array.name for array in arrays_read(statement)}
            if isinstance(statement.target, Reference) and statement.target.array.name.startswith("tile")
        }
        elements = {array for statement in fills for array in arrays_read(statement)}.pop().size
        assert sum(executions(loops) for loops in fills.values()) == elements
        assert all(loops[0].count == images or not images for loops in fills.values())


def test_09_sums_in_lanes_keep_their_order() -> None:
    """The loop that is summed over is never the one that runs in lanes or rows."""
    nest = product(64, 64, 256)
    program = Program([nest])
    vectorise(program, FOUR)
    inner = [node for node in walk(program.forward) if isinstance(node, Loop) and node.count == 256]
    assert inner
    assert not any(loop.lanes for loop in inner)


@pytest.mark.parametrize("columns", [6, 8, 11])
def test_10_rows_with_padding_are_read_where_they_are(columns: int) -> None:
    """Without a copy, if nothing but their padding is between them; whole vectors go beyond the last column."""
    width = -(-columns // 4) * 4
    for pitch, offset, is_packed in ((width, 0, False), (width, 3 * width, False), (2 * width, 0, True)):
        i, j, n = Loop(7, []), Loop(columns, []), Loop(5, [])
        x, y, r = Array("x", "input", 35), Array("y", "parameter", 20 * width), Array("r", "gradient", 7 * columns)
        y.padded_rows = (PaddedRows(offset, columns, pitch, 5),)
        term = Statement("multiply", (load(x, (i, 5), (n, 1)), load(y, (n, pitch), (j, 1), base=offset)))
        loop = around(i, around(j, around(n, term, update(at(r, (i, columns), (j, 1)), "add", Register(term)))))
        nest = examine(loop)
        assert nest is not None
        plan = plan_along(nest, j, i, free_of(nest, loop), FOUR)
        assert plan is not None
        assert bool(plan.packed) == is_packed

        def change(program: Program, nest: Nest = nest, plan: Plan = plan) -> None:
            program.forward[:] = Tiles(nest, plan, 4, Arrays("tile")).nodes()

        for plan.vectors, plan.row_count in SIZES:
            same_bits(Program([loop]), change)
