"""Which plans are chosen, and what may not be planned."""

from __future__ import annotations

import pytest

from mgjit.compiler.schedule.cost import Plan, best_plan, pattern, pieces, vectors_of
from mgjit.compiler.toolchain.target import Processor
from mgjit.ir.program import Array, Choice, Constant, Loop, Node, PaddedRows, Register, Statement, TargetChoice
from tests.handmade import around, at, define, load, update
from tests.lowering import SCALAR, WIDE

X, W, B = Array("x", "input", 20_000), Array("w", "parameter", 20_000), Array("b", "parameter", 2_000)
R, T = Array("r", "scratch", 20_000), Array("t", "state", 20_000)


def plan_of(loop: Loop, processor: Processor = WIDE) -> Plan:
    """The plan, which there must be."""
    plan = best_plan(loop, processor)[1]
    assert plan is not None
    return plan


def layer(rows: int, columns: int, inputs: int, steps: tuple[int, int]) -> tuple[Loop, Loop, Loop]:
    """`for b: for j: r = bias; for i: r += w * x; t = relu(r)`; `steps` of the weights for j and i."""
    b, j, i = Loop(rows, []), Loop(columns, []), Loop(inputs, [])
    term = Statement("multiply", (load(W, (j, steps[0]), (i, steps[1])), load(X, (b, inputs), (i, 1))))
    around(
        b,
        around(
            j,
            define(at(R, (b, columns), (j, 1)), "copy", load(B, (j, 1))),
            around(i, term, update(at(R, (b, columns), (j, 1)), "add", Register(term))),
            define(at(T, (b, columns), (j, 1)), "relu", load(R, (b, columns), (j, 1))),
        ),
    )
    return b, j, i


@pytest.mark.parametrize(
    ("count", "lanes", "expected"),
    [
        (16, 8, ((8, 2),)), (17, 8, ((8, 2), (1, 1))), (13, 8, ((8, 1), (4, 1), (1, 1))),
        (7, 8, ((4, 1), (2, 1), (1, 1))),
        (1, 8, ((1, 1),)), (5, 1, ((1, 5),)), (6, 2, ((2, 3),)), (31, 16, ((16, 1), (8, 1), (4, 1), (2, 1), (1, 1))),
    ],
)  # fmt: skip
def test_01_pieces(count: int, lanes: int, expected: tuple[tuple[int, int], ...]) -> None:
    """Whole vectors, then halves, down to single iterations: all of them together are the count."""
    assert pieces(count, lanes) == expected
    assert sum(width * number for width, number in pieces(count, lanes)) == count


def test_02_the_loop_with_consecutive_elements() -> None:
    """Outputs of a layer side by side; the loop that sums stays innermost."""
    _, j, _ = layer(1, 64, 100, (1, 64))
    plan = plan_of(j)
    assert plan.vector is j
    assert plan.order == [j]  # the sum is below the band
    assert plan.packed == []
    assert plan.vectors > 1  # several sums are under way
    assert not plan.padded


def test_03_a_batch() -> None:
    """Few outputs: rows are side by side as well, and share the weights they read, as many as registers hold."""
    b, j, _ = layer(32, 16, 100, (1, 16))
    plan = plan_of(b)
    assert plan.vector is j
    assert plan.rows is b
    assert plan.row_count > 1
    assert plan.row_count * plan.vectors <= WIDE.registers


def test_04_weights_by_rows_are_packed() -> None:
    """For a batch that is worth it; for one sample it is not."""
    b, j, _ = layer(64, 64, 100, (100, 1))
    plan = plan_of(b)
    assert plan.vector is j
    assert [reference.array for reference in plan.packed] == [W]
    b, j, _ = layer(1, 64, 100, (100, 1))
    plan = best_plan(b, WIDE)[1]  # type: ignore[assignment]
    assert plan is None or plan.packed == []


def test_05_without_vectors() -> None:
    """Sums still run side by side."""
    _, j, _ = layer(8, 64, 100, (100, 1))
    plan = plan_of(j, SCALAR)
    assert plan.vector is None
    assert plan.rows is not None
    assert 1 < plan.row_count <= SCALAR.registers


def test_06_nothing_to_gain() -> None:
    """A sum into one number has its order; a loop of one iteration is none."""
    i = Loop(100, [])
    assert best_plan(around(i, update(at(T), "add", load(X, (i, 1)))), WIDE)[1] is None
    i = Loop(1, [])
    assert best_plan(around(i, define(at(T, (i, 1)), "copy", load(X, (i, 1)))), WIDE)[1] is None


def test_07_a_recurrence() -> None:
    """The loop over time stays in order, those over units are independent."""
    t, j = Loop(10, []), Loop(16, [])
    step = define(at(T, (t, 16), (j, 1), base=16), "multiply", load(T, (t, 16), (j, 1)), load(X, (j, 1)))
    plan = plan_of(around(t, around(j, step)))
    assert plan.vector is j
    assert plan.order.index(t) > plan.order.index(j) or plan.order == [t, j]
    t, j = Loop(10, []), Loop(16, [])
    step = define(at(T, (t, 1), (j, 1), base=1), "multiply", load(T, (t, 1), (j, 1)), load(X, (j, 1)))
    assert best_plan(around(t, around(j, step)), WIDE)[1] is None


def test_08_loops_that_choose() -> None:
    """They are not cut into steps; another loop may be."""
    i, j = Loop(8, []), Loop(16, [])
    chosen = define(at(T, (i, 16), (j, 1)), "multiply", Choice(j, Constant(1.0), load(X, (j, 1))), load(B, (i, 1)))
    plan = best_plan(around(i, around(j, chosen)), WIDE)[1]
    assert plan is None or (plan.vector is not j and plan.rows is not j)
    i, j = Loop(8, []), Loop(16, [])
    target = TargetChoice(i, None, at(T, (i, 16), (j, 1)))
    assert best_plan(around(i, around(j, update(target, "add", load(X, (j, 1))))), WIDE)[1] is None


def padded_nest(used: int, pitch: int, operation: str = "relu") -> Loop:
    """A loop over one row of arrays with room behind it."""
    source, target = Array("u", "scratch", pitch, shape=(used,)), Array("v", "scratch", pitch, shape=(used,))
    for array in (source, target):
        array.padded_rows = (PaddedRows(0, used, pitch, 1),)
    j = Loop(used, [])
    return around(j, define(at(target, (j, 1)), operation, load(source, (j, 1))))


@pytest.mark.parametrize(
    ("used", "pitch", "operation", "expected"),
    [
        (13, 16, "relu", True),
        (16, 16, "relu", False),
        (13, 13, "relu", False),
        (13, 16, "log", False),
        (13, 14, "relu", False),
    ],
)
def test_09_room_behind_rows(used: int, pitch: int, operation: str, expected: bool) -> None:
    """The last vector goes beyond the end, unless what nobody reads there would be slow."""
    plan = plan_of(padded_nest(used, pitch, operation))
    assert plan.padded is expected
    assert vectors_of(plan, WIDE) == (((8, 2),) if expected else pieces(used, 8))


def test_10_room_is_needed_by_all() -> None:
    """An array without room, or another place in the row, keeps the rest."""
    j = padded_nest(13, 16)
    j.body.append(define(at(T, (j, 1)), "copy", Constant(1.0)))
    assert not plan_of(j).padded
    j = padded_nest(13, 16)
    statement = j.body[0]
    assert isinstance(statement, Statement)
    source = next(s for s in statement.operands).reference.array  # type: ignore[union-attr]
    source.size = 40
    source.padded_rows = (PaddedRows(0, 13, 16, 2),)
    statement.operands = (load(source, (j, 1), base=16),)
    assert plan_of(j).padded
    statement.operands = (load(source, (j, 1), base=1),)
    assert not plan_of(j).padded


def test_11_patterns() -> None:
    """The same elements by other loops of the same counts."""
    i, j, k = Loop(3, []), Loop(3, []), Loop(4, [])
    assert pattern(at(W, (i, 5), base=2)) == pattern(at(W, (j, 5), base=2))
    for other in (at(W, (k, 5), base=2), at(W, (i, 4), base=2), at(W, (i, 5), base=3), at(B, (i, 5), base=2)):
        assert pattern(at(W, (i, 5), base=2)) != pattern(other)


@pytest.mark.parametrize("processor", [SCALAR, Processor(2, 16), Processor(4, 16), WIDE, Processor(16, 32)])
@pytest.mark.parametrize("shape", [(1, 3, 3), (7, 5, 9), (33, 17, 8), (100, 16, 2)])
def test_12_limits(processor: Processor, shape: tuple[int, int, int]) -> None:
    """Whatever is chosen: the loops of the band, each once, sums in registers, bodies that a compiler can digest."""
    rows, columns, inputs = shape
    for steps in ((1, columns), (inputs, 1)):
        b, j, _ = layer(rows, columns, inputs, steps)
        cost, plan = best_plan(b, processor)
        assert cost > 0
        if plan is None:
            continue
        assert sorted(map(id, plan.order)) == sorted(map(id, (b, j)))
        assert plan.vector is None or processor.lanes > 1
        assert plan.rows is None or plan.rows is not plan.vector
        assert plan.vectors * plan.row_count <= processor.registers
        assert (plan.row_count > 1) is (plan.rows is not None)


def test_13_the_inside_of_loops() -> None:
    """What has no plan as a whole costs what its nests cost, by their own plans."""
    t, j = Loop(10, []), Loop(64, [])
    inner = around(j, define(at(T, (j, 1), base=64), "multiply", load(T, (j, 1)), load(X, (t, 64), (j, 1))))
    body: list[Node] = [inner, define(at(T, (t, 1), base=200), "copy", load(T, base=70))]
    cost, plan = best_plan(around(t, *body), WIDE)
    assert plan is None
    assert cost >= 10 * best_plan(inner, WIDE)[0]


def test_14_smaller_register_blocks() -> None:
    """With slack, the smallest block that costs little more than the best one."""
    _, j, _ = layer(1, 160, 100, (1, 160))
    sizes, costs = [], []
    for slack in (1.0, 1.02, 1.1, 1.5):
        plan = plan_of(j, Processor(lanes=8, registers=32, slack=slack))
        sizes.append(plan.vectors * plan.row_count)
        costs.append(plan.cost)
        assert plan.cost <= slack * costs[0] * 1.001
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0]
    assert costs == sorted(costs)


def test_15_a_copy_inside_of_a_loop_is_not_shared() -> None:
    """Other nests that read the same weights read copies of their own, if a loop around chooses what is copied."""
    i, j = Loop(64, []), Loop(16, [])
    weight = load(W, (i, 1), (j, 64))
    term = Statement("multiply", (weight, load(X, (i, 1))))
    inner = around(j, term, update(at(R, (j, 1)), "add", Register(term)))
    around(i, inner)
    sharing = {pattern(weight.reference): 6}
    plan = best_plan(inner, WIDE, sharing)[1]
    assert plan is None or plan.packed == []
    assert [one.array for one in best_plan(i, WIDE, sharing)[1].packed] == [W]  # type: ignore[union-attr]


def test_16_numbers_that_have_to_be_copied_to_all_lanes() -> None:
    """Where that is an operation, more vectors share each of them."""
    b, _, _ = layer(64, 64, 64, (64, 1))
    free, copied = (best_plan(b, Processor(4, 16, spreading=spreading))[1] for spreading in (0.0, 1.0))
    assert free is not None
    assert copied is not None
    assert copied.vectors > free.vectors
    assert copied.row_count < free.row_count


def test_17_sums_of_a_single_row_leave_few_registers() -> None:
    """25 vectors are 13 and 12 at a time where there are 16 registers, not 9, 9 and 7."""
    _, j, _ = layer(1, 50, 784, (1, 50))
    assert plan_of(j, Processor(2, 16)).vectors == 13
