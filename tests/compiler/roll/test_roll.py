"""Rolling: the loops that are found, and that expanding them again gives back every record and operand."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit.compiler.roll.forest import Fold, Item, print_forest
from mgjit.compiler.roll.roll import roll
from mgjit.ir.opcodes import ADD, NUMBER, leaf_kind, operation_name
from tests.lowering import Example, numbers, sgd


def expand(items: Sequence[Item], offset: int = 0) -> list[int]:
    """The record positions that a forest stands for, in order."""
    found: list[int] = []
    for item in items:
        if isinstance(item, Fold):
            for iteration in range(item.count):
                found += expand(item.body, offset + iteration * item.period)
        else:
            found.append(item + offset)
    return found


def folds(items: Sequence[Item]) -> list[Fold]:
    """All loops, outer ones first."""
    found: list[Fold] = []
    for item in items:
        if isinstance(item, Fold):
            found += [item, *folds(item.body)]
    return found


def shape(items: Sequence[Item]) -> Any:
    """Counts of the loops, nested."""
    return [[item.count, shape(item.body)] for item in items if isinstance(item, Fold)]


def check(made: Example) -> list[Item]:
    """The forest of a trace; every column of it is wired as a loop must be."""
    trace = made.trace
    forest = roll(trace, made.reach.marks)
    assert expand(forest) == list(range(len(trace)))
    for loop in folds(forest):
        for position in range(loop.start, loop.start + loop.period):
            _check_column(made, loop, position)
    return forest


def _check_column(made: Example, loop: Fold, position: int) -> None:
    """One record of a loop in all of its iterations: like operations, operands that step or come from outside."""
    trace, period, start = made.trace, loop.period, loop.start
    places = [position + k * period for k in range(loop.count)]
    assert {trace.op[p] for p in places} == {trace.op[position]}
    assert len({made.reach.marks[p] for p in places} if made.reach.marks else {0}) == 1
    for column in [trace.a, trace.b] + ([trace.c] if trace.c is not None else []):
        operands = [column[p] for p in places]
        if trace.op[position] not in (ADD, ADD | NUMBER):
            assert len({leaf_kind(operand) for operand in operands}) == 1
        inside = [operand >= start for operand in operands]
        assert inside[1:] == inside[1:2] * (loop.count - 1)
        assert inside[1] or not inside[0]
        if inside[1]:
            assert [b - a for a, b in zip(operands[1:], operands[2:])] == [period] * (loop.count - 2)
            if inside[0]:
                assert operands[1] - operands[0] == period
            else:
                assert operands[1] < start + period  # carried: it reads the first iteration


def test_01_a_perceptron() -> None:
    """Layers of neurons of inputs: loops in loops, forward and update."""
    model = nn.MLP(6, [7, 5])

    def step(x: Any) -> Any:
        loss = sum(s * s for s in model(x))
        model.zero_grad()
        loss.backward()
        sgd(model.parameters(), 0.1)
        return loss

    forest = check(Example(step, numbers(6)))
    counts = shape(forest)
    assert [7, [[6, []]]] in counts
    assert [5, [[7, []]]] in counts
    assert len(forest) < 25


def test_02_a_batch_is_the_outer_loop() -> None:
    """100 samples of a network: one loop over the samples."""
    model = nn.MLP(3, [4, 4, 1])
    made = Example(lambda xs: sum(model(x).relu() for x in xs) * 0.01, [numbers(3, k) for k in range(100)])
    forest = check(made)
    assert max(loop.count for loop in folds(forest)) >= 99
    assert sum(1 for _ in folds(forest)) <= 12
    outer = max(folds(forest), key=lambda loop: loop.count * loop.period)
    assert outer.count >= 98
    assert len(expand(outer.body)) * outer.count == outer.count * outer.period


def test_03_a_recurrence() -> None:
    """Each iteration reads the one before: a loop whose first iteration starts from elsewhere."""
    w, start = mgjit.Value(0.5), mgjit.Value(0.25)

    def step(xs: Any) -> Any:
        h: Any = start
        for x in xs:
            h = mgjit.tanh(h * w + x)
        return h

    assert shape(check(Example(step, numbers(50))))[0][0] >= 49


def test_04_a_chain_of_sums() -> None:
    """Sums of products from any start: 0, a bias, the first term."""
    ws = [mgjit.Value(v) for v in numbers(40)]
    bias = mgjit.Value(0.5)

    def step(xs: Any) -> Any:
        products = [w * x for w, x in zip(ws, xs)]
        return sum(products), sum(products, bias), sum(products[1:], products[0])

    forest = check(Example(step, numbers(40)))
    assert sorted(loop.count for loop in folds(forest) if loop.count >= 38)[-1] == 40
    assert len(forest) < 20


def test_05_irregular_code() -> None:
    """Nothing to find: the forest is the trace, or small loops; always all of it, in order."""
    draw = random.Random(5)

    def step(x: Any) -> Any:
        values = [mgjit.exp(x * 0.5), x * 0.25 + 1.0]
        for _ in range(300):
            a, b = draw_two(values)
            values.append([a + b, a * b, a - b, mgjit.maximum(a, b), mgjit.tanh(a)][_ * 7 % 5])
        return values[-1]

    order = [draw.random() for _ in range(600)]

    def draw_two(values: list[Any]) -> tuple[Any, Any]:
        k = 2 * (len(values) - 2)
        return values[int(order[k] * len(values))], values[int(order[k + 1] * len(values))]

    check(Example(step, 0.3))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 17])
def test_06_few_iterations(count: int) -> None:
    """Loops of any length, also none."""
    ws = [mgjit.Value(v) for v in numbers(17)]
    made = Example(lambda xs: [mgjit.tanh(w * x * 2.0 + 1.0) - w for w, x in zip(ws, xs)], numbers(count))
    forest = check(made)
    if count >= 4:
        assert next(loop.count for loop in folds(forest)) >= count - 1


def test_07_marks_keep_records_apart() -> None:
    """Records of one loop are reached by the same backward passes."""
    ws = [mgjit.Value(v) for v in numbers(12)]

    def step(xs: Any) -> Any:
        products = [w * x for w, x in zip(ws, xs)]
        loss = products[0]
        for p in products[1:6]:
            loss = loss + p
        loss.backward()
        return loss, products

    made = Example(step, numbers(12))
    check(made)
    assert [made.reach.reached_by(k) for k in range(12)] == [frozenset((0,))] * 6 + [frozenset()] * 6


def test_08_an_interrupted_pattern() -> None:
    """A different operand kind in the middle ends a loop; the rest becomes another one."""
    ws = [mgjit.Value(v) for v in numbers(30)]

    def step(xs: Any) -> Any:
        return [w * (x if k != 14 else 3.0) for k, (w, x) in enumerate(zip(ws, xs))]

    counts = [loop.count for loop in folds(check(Example(step, numbers(30))))]
    assert 14 in counts
    assert 15 in counts


def test_09_empty_trace_and_printer() -> None:
    """A step that records nothing; the printer shows counts, ranges and operations."""
    empty = Example(lambda: None)
    assert roll(empty.trace) == []
    assert print_forest([], empty.trace) == ""
    ws = [mgjit.Value(v) for v in numbers(9)]
    made = Example(lambda x: [w * x for w in ws], 0.5)
    text = print_forest(check(made), made.trace)
    assert text.startswith("for 9:  # records 0 .. 8\n    multiply")
    assert {operation_name(code) for code in made.trace.op} == {"multiply", "store"}
