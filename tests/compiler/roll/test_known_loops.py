"""Loops of blocks are those that the search finds, and what is known of their operands is true."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit.compiler.lift.lift import lift
from mgjit.compiler.lift.memory import Memory
from mgjit.compiler.roll.forest import Fold, Item, print_forest
from mgjit.compiler.roll.known_loops import known_loops
from mgjit.compiler.roll.reach import Reach, reach
from mgjit.compiler.roll.roll import roll
from mgjit.ir.printer import print_program
from mgjit.ir.trace import Trace
from tests.lowering import Example
from tests.tracing.record.test_blocks import random_program
from tests.training import WORKLOADS


def without_blocks(trace: Trace) -> Trace:
    return replace(trace, blocks=[])


def meanings(reach: Reach) -> list[frozenset[int]]:
    """For each record, which passes reach it."""
    return [reach.meanings[mark] for mark in reach.marks or ()]


def forests(made: Example) -> tuple[list[Item], list[Item]]:
    """With what is known of blocks, and with the search alone."""
    return roll(made.trace, made.reach.marks), roll(without_blocks(made.trace), made.reach.marks)


def assert_same(made: Example) -> None:
    """Blocks change neither what is reached, nor which loops there are, nor what they are lifted to."""
    searched = without_blocks(made.trace)
    assert meanings(reach(searched)) == meanings(made.reach)
    forest, found = forests(made)
    assert print_forest(forest, made.trace) == print_forest(found, made.trace)
    assert print_program(lift(made.trace, forest, Memory(made.trace, made.regions), made.reach)) == print_program(
        lift(searched, forest, Memory(searched, made.regions), made.reach)
    )


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_are_the_same_without_blocks(seed: int) -> None:
    step, arguments = random_program(seed)
    made = Example(step, *arguments)
    searched = without_blocks(made.trace)
    assert meanings(reach(searched)) == meanings(made.reach)
    forest = roll(made.trace, made.reach.marks)
    programs = [lift(t, forest, Memory(t, made.regions), made.reach) for t in (made.trace, searched)]
    assert print_program(programs[0]) == print_program(programs[1])
    made.check(made.lower())


#: In "batch norm", the calls of a layer follow each other: see test_one_layer_over_a_batch_is_a_nest.
@pytest.mark.parametrize("name", sorted(WORKLOADS.keys() - {"batch norm"}))
def test_workloads_are_the_same_without_blocks(name: str) -> None:
    instance = WORKLOADS[name]()
    assert_same(Example(instance.step, *instance.calls[0]))


def batch(model: Any, width: int, count: int = 6, others: Callable[[Any], Any] = mgjit.tanh) -> Example:
    """A step over a batch in a Python loop."""

    def step(xs: Any, rate: Any) -> Any:
        total: Any = 0.0
        for k in range(count):
            out = model(xs[width * k : width * (k + 1)])
            total = sum((others(o) for o in (out if isinstance(out, list) else [out])), total)
        total.backward()
        return total

    draw = random.Random(width)
    return Example(step, [draw.random() for _ in range(width * count)], 0.1)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("sizes", [[1], [2], [3, 4], [4, 3, 1], [6, 5, 5, 4], [5, 1, 6]], ids=str)
def test_a_batch_of_a_perceptron(width: int, sizes: list[int]) -> None:
    made = batch(nn.MLP(width, sizes), width)
    assert_same(made)
    made.check(made.lower())


@pytest.mark.parametrize("nonlin", [False, True], ids=["linear", "relu"])
def test_inputs_of_several_kinds_are_loops_of_their_own(nonlin: bool) -> None:
    """As of a recurrent network: some inputs are arguments, others are computed."""
    layer = nn.Layer(14, 5, nonlin)
    bias = mgjit.Value(1.0)

    def model(x: Any) -> Any:
        return layer([*x, *(mgjit.tanh(xi * bias) for xi in x), bias, 0.5])

    made = batch(model, 6)
    assert_same(made)
    stretches = {loops.stretches for loops in known_loops(made.trace, made.reach.marks)}
    assert stretches == {(6, 6, 1, 1)}
    made.check(made.lower())


def test_one_layer_over_a_batch_is_a_nest() -> None:
    """The search alone takes all neurons of all samples for one loop, because nothing is in between."""
    layer = nn.Layer(5, 7)

    def step(xs: Any) -> Any:
        outs = [layer(xs[5 * k : 5 * k + 5]) for k in range(6)]
        loss = sum(o * o for out in outs for o in out)
        loss.backward()
        return loss

    made = Example(step, [0.25 * k for k in range(30)])
    forest = roll(made.trace, made.reach.marks)
    assert isinstance(forest[0], Fold)
    inner = forest[0].body[0]
    assert (forest[0].count, isinstance(inner, Fold) and inner.count) == (6, 7)
    made.check(made.lower())


def test_layers_of_equal_size_in_a_row() -> None:
    layers = [nn.Layer(6, 6, generator=random.Random(k)) for k in range(5)]

    def model(x: Any) -> Any:
        for layer in layers:
            x = layer(x)
        return x

    made = batch(model, 6)
    assert_same(made)
    made.check(made.lower())


def test_layers_with_the_same_inputs_in_a_row() -> None:
    """As the gates of a recurrent network."""
    gates = [nn.Layer(6, 5, nonlin=False, generator=random.Random(k)) for k in range(3)]
    made = batch(lambda x: [o for gate in gates for o in gate(x)], 6)
    assert_same(made)
    made.check(made.lower())


def test_neurons_that_a_pass_does_not_reach() -> None:
    layer = nn.Layer(5, 8)

    def step(xs: Any) -> Any:
        out = layer(xs)
        loss = sum(o * o for o in out[:3]) + out[6]
        loss.backward()
        other = sum(out[1:5]) * 2.0
        other.backward()
        return loss, out[7], other

    made = Example(step, [1.0, 2.0, 3.0, -1.0, 0.5])
    assert_same(made)
    made.check(made.lower())


def test_a_backward_pass_from_a_neuron() -> None:
    layer = nn.Layer(5, 8, nonlin=False)

    def step(xs: Any) -> Any:
        out = layer(layer(xs)[:5])
        out[2].backward()
        return out

    made = Example(step, [1.0, 2.0, 3.0, -1.0, 0.5])
    assert_same(made)
    made.check(made.lower())


def test_parameters_in_another_order_are_searched() -> None:
    """A neuron among others whose parameters lie elsewhere."""
    first = nn.Neuron(6)
    layer = nn.Layer(6, 8)
    layer.neurons.insert(0, first)
    layer.neurons[4].w[0], layer.neurons[4].w[1] = layer.neurons[4].w[1], layer.neurons[4].w[0]
    made = batch(layer, 6)
    assert_same(made)
    made.check(made.lower())


def test_a_neuron_that_lies_elsewhere_is_searched() -> None:
    layer, _ = nn.Layer(6, 8), nn.Layer(2, 2)
    layer.neurons.append(nn.Neuron(6))
    made = batch(layer, 6)
    assert made.trace.blocks
    assert not known_loops(made.trace, made.reach.marks)
    assert_same(made)
    made.check(made.lower())
