"""Where new parameters lie: a bijection, with rows of neighbouring sums side by side."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import mgjit
from mgjit import nn
from mgjit.compiler.lift.layout import choose_layout, cut_at_blocks, cut_at_gaps
from mgjit.compiler.pipeline.pipeline import lower
from mgjit.compiler.roll.forest import Fold, Item
from mgjit.compiler.roll.roll import roll
from mgjit.engine.precision import FLOAT64
from mgjit.ir.opcodes import PARAMETER
from mgjit.ir.parameters import ParameterLayout
from tests.lowering import Example, numbers, sgd


def trained(sizes: list[int], momentum: bool = False, rate_in_state: bool = False) -> Example:
    """A traced SGD step of a network."""
    model = nn.MLP(sizes[0], sizes[1:], seed=3)
    state = mgjit.zeros(len(model.parameters()))
    kept = mgjit.state([0.1])

    def step(x: list[float], rate: float) -> object:
        loss = sum((o * o for o in model(x)), 0.0)
        model.zero_grad()
        loss.backward()
        if momentum:
            for k, p in enumerate(model.parameters()):
                state[k] = 0.9 * state[k] + p.grad
                p.data -= rate * state[k]
        else:
            sgd(model.parameters(), kept[0] if rate_in_state else rate)
        return loss

    return Example(step, numbers(sizes[0]), 0.1)


def layout_of(made: Example) -> ParameterLayout | None:
    program = made.lower("reductions")
    return choose_layout(program, made.memory.regions[PARAMETER][0][1])


@pytest.mark.parametrize("sizes", [[9, 8, 4], [5, 16, 16, 3], [20, 7, 5, 4]], ids=str)
def test_01_every_parameter_has_a_place_of_its_own(sizes: list[int]) -> None:
    """A bijection into the storage, which has holes only as padding."""
    made = trained(sizes)
    layout = layout_of(made)
    assert layout is not None
    count = len(made.trace.new_parameters)
    places = [layout.position(index) for index in range(count)]
    assert len(set(places)) == count
    assert min(places) >= 0
    assert max(places) < layout.size
    assert layout.positions(range(count)) == places
    assert ParameterLayout.of_json(layout.to_json()) == layout


def test_02_neighbouring_sums_side_by_side() -> None:
    """w[j][i] and w[j + 1][i] are neighbours; rows start at cache lines."""
    layout = layout_of(trained([10, 8, 4]))
    assert layout is not None
    first = layout.blocks[0]
    assert (first.rows, first.columns, first.row_step) == (8, 10, 11)
    assert layout.position(11) - layout.position(0) == 1
    assert layout.position(1) % 8 == layout.position(0) % 8 == 0


def test_03_loops_in_natural_order_are_cut_and_nothing_else() -> None:
    """The same records in the same order, as nests over rows and columns."""
    made = trained([10, 8, 4])
    layout = layout_of(made)
    assert layout is not None
    start, size = made.trace.new_parameters[0][0], len(made.trace.new_parameters)
    forest = roll(made.trace, made.reach.marks)
    cut = cut_at_blocks(forest, made.trace, layout, start, size)
    assert cut != forest
    assert _records(cut) == _records(forest) == list(range(len(made.trace)))


def moments(sizes: list[int], apart: int, lengths: Sequence[int]) -> Example:
    """A traced step with two moments of each parameter, in states of these lengths, the second one `apart` behind."""
    model = nn.MLP(sizes[0], sizes[1:], seed=3)
    states = [mgjit.zeros(length) for length in lengths]

    def step(x: list[float], rate: float) -> object:
        loss = sum((o * o for o in model(x)), 0.0)
        model.zero_grad()
        loss.backward()
        for k, p in enumerate(model.parameters()):
            states[0][k] = 0.9 * states[0][k] + p.grad
            states[-1][apart + k] = 0.5 * states[-1][apart + k] + p.grad * p.grad
            p.data -= rate * states[0][k] / (states[-1][apart + k] + 1.0)
        return loss

    return Example(step, numbers(sizes[0]), 0.1)


def test_04_state_lies_as_the_parameters_do_that_it_is_visited_with() -> None:
    """In a state of its own, or behind another one in the same; with padding, or not."""
    alone, two = trained([10, 8, 4], True), moments([10, 8, 4], 0, [124, 124])
    behind, longer = moments([10, 8, 4], 124, [248]), moments([10, 8, 4], 5, [124, 140])
    shapes = []
    for made in (alone, two, behind, longer):
        lowered = lower(made.trace, made.regions)
        made.memory = lowered.memory
        layouts = made.memory.layouts
        assert layouts.parameters is not None
        shape = [block[1:4] for block in layouts.parameters.blocks]
        shapes.append([[block[1:4] for block in layout.blocks] for layout in layouts.states.values()])
        made.check(lowered.program)
    assert shapes[0] == [shape]
    assert shapes[1] == [shape, shape]
    assert shapes[2] == [[*shape, *shape]]
    assert shapes[3] == [shape, [(1, 5, 5), *shape, (1, 11, 11)]]


def test_04_state_whose_order_is_settled_keeps_that_of_the_parameters() -> None:
    """Another kernel uses it, or it is copied from a list."""
    made = trained([10, 8, 4], True)
    made.trace.states[0][1]._precision = FLOAT64
    lowered = lower(made.trace, made.regions)
    assert not lowered.memory.layouts
    made.memory = lowered.memory
    made.check(lowered.program)


def test_04_state_in_which_something_is_looked_up_keeps_its_order() -> None:
    """The elements of a table are at equal distances."""
    model = nn.MLP(10, [8, 4], seed=3)
    state = mgjit.zeros(len(model.parameters()))

    def step(x: list[float], chosen: int, rate: float) -> object:
        loss = sum((o * o for o in model(x)), 0.0) + mgjit.take([state[j] for j in range(100)], chosen)
        model.zero_grad()
        loss.backward()
        for k, p in enumerate(model.parameters()):
            state[k] = 0.9 * state[k] + p.grad
            p.data -= rate * state[k]
        return loss

    made = Example(step, numbers(10), 3, 0.1)
    layouts = lower(made.trace, made.regions).memory.layouts
    assert layouts.parameters is not None
    assert not layouts.states


@pytest.mark.parametrize("sizes", [[9, 8, 4], [6, 13, 2], [3, 3, 2]], ids=str)
def test_05_the_laid_out_program_is_exact(sizes: list[int]) -> None:
    """Through the reference interpreter, against the undecorated step."""
    made = trained(sizes)
    lowered = lower(made.trace, made.regions)
    made.memory = lowered.memory
    made.check(lowered.program)


def test_06_one_number_of_a_state_leaves_the_layout_free() -> None:
    """A learning rate in a state, or in an attribute that is copied, is the same in all iterations."""
    made = trained([10, 8, 4], rate_in_state=True)
    lowered = lower(made.trace, made.regions)
    alone = lower(trained([10, 8, 4]).trace, made.regions).memory.layouts
    assert lowered.memory.layouts.parameters == alone.parameters is not None
    made.memory = lowered.memory
    made.check(lowered.program)


def _records(items: list[Item] | tuple[Item, ...]) -> list[int]:
    found: list[int] = []
    for item in items:
        if isinstance(item, Fold):
            body = _records(item.body)
            found += [position + k * item.period for k in range(item.count) for position in body]
        else:
            found.append(item)
    return found


def test_07_rows_of_float32_are_padded_to_the_same_cache_lines() -> None:
    """Sixteen numbers are 64 bytes."""
    for made, line in ((trained([10, 8, 4]), 8), (trained([10, 8, 4]).in_float32(), 16)):
        layout = layout_of(made)
        assert layout is not None
        assert layout.blocks[0].place % line == 0
        assert layout.blocks[0].column_stride == line


def test_08_loops_are_cut_at_gaps() -> None:
    """Where a few parameters are left out; not where parameters are picked here and there."""
    values = [mgjit.Value(float(k)) for k in range(64)]
    model = nn.MLP(1, [1])  # a gap of two Values
    values += [mgjit.Value(float(k)) for k in range(40)]
    picked = [value for k, value in enumerate(values) if k % 7 in (0, 1, 3)]

    def counts(chosen: list[mgjit.Value]) -> list[int]:
        def step(rate: float) -> float:
            for value in chosen:
                value.data -= rate * value.data
            return 0.0

        made = Example(step, 0.5)
        forest = roll(made.trace, made.reach.marks)
        cut = cut_at_gaps(forest, made.trace)
        assert _records(cut) == _records(forest) == list(range(len(made.trace)))
        made.check(made.lower())
        return [item.count for item in cut if isinstance(item, Fold)]

    assert counts(values) == [64, 40]
    assert counts(picked) == [len(picked)]
    assert len(model.parameters()) == 2
