"""Loops that grow: the forests of triangles and ragged batches, and that they compute what the step computes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from mgjit.compiler.lift import folded
from mgjit.compiler.lift.lift import LiftError
from mgjit.compiler.pipeline import pipeline
from mgjit.compiler.roll.forest import Counts, Fold, Item
from mgjit.compiler.roll.growing import roll_growing
from mgjit.compiler.roll.roll import Roller, roll
from mgjit.ir.program import Program
from mgjit.ir.trace import Trace
from tests.growing_steps import STEPS, causal_attention, cholesky, prefix_sums, ragged_batch, suffix_products
from tests.lowering import Example, numbers


def growing_loops(items: Sequence[Item]) -> list[tuple[int, list[Counts]]]:
    """The iterations of growing loops, and the counts of the loops inside."""
    found = []
    for item in items:
        if isinstance(item, Fold):
            if item.grows:
                found.append((item.count, counts_in(item.body)))
            found += growing_loops(item.body)
    return found


def counts_in(items: Sequence[Item]) -> list[Counts]:
    """The counts of the loops that have some."""
    found: list[Counts] = []
    for item in items:
        if isinstance(item, Fold):
            found += ([] if item.counts is None else [item.counts]) + counts_in(item.body)
    return found


def added(terms: Sequence[Any]) -> Any:
    """Their sum, which `sum` rounds in another way from Python 3.12 on."""
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def triangle(row: Any, size: int) -> Any:
    """Sums of 1, 2, ... products."""
    return added([added([row[t] * row[s] for s in range(t + 1)]) * row[0] for t in range(size)])


def rolled(made: Any) -> list[Item]:
    """The forest of a step."""
    step, arguments = made
    example = Example(step, *arguments)
    return roll_growing(example.trace, example.reach).forest


def test_rows_of_a_triangle_down_to_one_term() -> None:
    assert growing_loops(rolled(prefix_sums(9))) == [(9, [tuple(range(1, 10))])]


def test_rows_that_shrink() -> None:
    assert growing_loops(rolled(suffix_products(9))) == [(9, [tuple(range(9, 0, -1))])]


@pytest.mark.parametrize("positions", [5, 8, 12])
def test_all_positions_of_causal_attention_are_one_loop(positions: int) -> None:
    counts = tuple(range(1, positions + 1))
    assert growing_loops(rolled(causal_attention(positions))) == [(positions, [counts] * 4)]


@pytest.mark.parametrize("positions", [8, 12])
def test_the_first_position_looks_for_the_greatest_of_one_score(positions: int) -> None:
    """There is no maximum of two numbers in it, and it is an iteration like the others."""
    ((count, counts),) = growing_loops(rolled(causal_attention(positions, shifted=True)))
    assert count == positions
    assert tuple(range(positions)) in counts  # maxima
    assert set(counts) <= {tuple(range(positions)), tuple(range(1, positions + 1))}


def test_a_triangle_inside_of_a_triangle() -> None:
    ((rows, counts), (inner, _)) = growing_loops(rolled(cholesky(9)))
    assert rows == inner == 7
    assert counts[:2] == [(1, 2, 3, 4, 5, 6, 7), tuple(tuple(range(k)) for k in range(1, 8))]


def test_sequences_of_different_lengths() -> None:
    lengths = (5, 7, 2, 4, 9, 1, 6, 3)
    assert growing_loops(rolled(ragged_batch(lengths))) == [(8, [tuple(length - 1 for length in lengths)])]


def test_a_batch_of_triangles() -> None:
    def step(rows: Any) -> Any:
        return [triangle(row, 6) for row in rows]

    made = Example(step, [numbers(6, seed) for seed in range(5)])
    forest = roll_growing(made.trace, made.reach).forest
    assert growing_loops(forest) == [(6, [(1, 2, 3, 4, 5, 6), (0, 1, 2, 3, 4, 5)])]
    assert isinstance(forest[0], Fold)
    assert (forest[0].count, forest[0].grows) == (5, False)


def test_triangles_of_different_sizes() -> None:
    sizes = [6, 4, 7, 9, 3, 5]

    def step(rows: Any) -> Any:
        return [triangle(row, size) for row, size in zip(rows, sizes)]

    made = Example(step, [numbers(size, size) for size in sizes])
    forest = roll_growing(made.trace, made.reach).forest
    ((count, counts), *_) = growing_loops(forest)
    assert count == 6
    assert tuple(sizes) in counts
    made.check(made.lower("lift", growing=True))


def test_layers_of_different_widths_are_no_growing_loop() -> None:
    from mgjit import nn

    model = nn.MLP(8, [7, 6, 5, 4, 1])

    def step(xs: Any) -> Any:
        loss = model(xs)
        model.zero_grad()
        loss.backward()
        return loss

    made = Example(step, numbers(8))
    trace, reached, forest = roll_growing(made.trace, made.reach)
    assert trace is made.trace
    assert reached is made.reach
    assert forest == roll(made.trace, made.reach.marks)


@pytest.mark.parametrize("name", ["suffix products", "cholesky"])
def test_a_growing_loop_computes_what_the_step_does(name: str) -> None:
    step, arguments = STEPS[name]()
    made = Example(step, *arguments)
    made.check(made.lower("lift", growing=True))


@pytest.mark.parametrize("seed", range(15))
def test_random_triangles_and_ragged_rows(seed: int) -> None:
    draw = random.Random(seed)
    rows = draw.randrange(4, 9)
    kind = draw.randrange(3)
    lengths = [(k * draw.choice([1, 1, 2]) + 1, 2 * (rows - k), draw.randrange(1, 9))[kind] for k in range(rows)]
    operations = [draw.randrange(4) for _ in range(draw.randrange(1, 4))]

    def step(xs: Any, ys: Any) -> Any:
        found = []
        total = ys[0]
        for k, length in enumerate(lengths):
            part = xs[k] if draw_first else total
            for j in range(length):
                for operation in operations:
                    part = (
                        part * ys[j]
                        if operation == 0
                        else part - ys[j] * xs[k]
                        if operation == 1
                        else part + xs[j % rows]
                        if operation == 2
                        else (part + ys[j]) * 0.5
                    )
            total = total * 0.5 + part
            found.append(part)
        return [*found, total]

    draw_first = draw.random() < 0.5
    made = Example(step, numbers(rows, seed + 1), numbers(max(lengths) + 1, seed + 2))
    made.check(made.lower("lift", growing=True))


def test_what_cannot_be_lifted_with_growing_loops_is_lifted_without(monkeypatch: pytest.MonkeyPatch) -> None:
    step, arguments = causal_attention(6)
    made = Example(step, *arguments)
    original = folded.lift

    def refusing(trace: Trace, *rest: Any) -> Program:
        if len(trace) > len(made.trace):
            raise LiftError("there are holes")
        return original(trace, *rest)

    monkeypatch.setattr(folded, "lift", refusing)
    lowered = pipeline.lower(made.trace, made.regions)
    assert lowered.notes == ["there are holes"]
    assert lowered.loops
    made.memory = lowered.memory
    made.check(lowered.program)


def test_a_trace_in_which_nothing_grows_is_rolled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def step(xs: Any, ys: Any) -> Any:
        return [added([x * y for y in ys]) for x in xs]

    made = Example(step, numbers(6), numbers(5))
    rolls = []
    original = Roller.run
    monkeypatch.setattr(Roller, "run", lambda self: rolls.append(1) or original(self))
    trace, _, _ = roll_growing(made.trace, made.reach)
    assert trace is made.trace
    assert len(rolls) == 1
