"""Layers of `mgjit.nn` record as a whole exactly what their loops record operation by operation."""

from __future__ import annotations

import builtins
import random
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit.ir.trace import Trace
from mgjit.tracing.call.plan import plan_arguments
from mgjit.tracing.record.blocks import Blocks
from mgjit.tracing.tracer.tracer import trace_call

Step = Callable[..., Any]


def traced(make: Callable[[], tuple[Step, tuple[Any, ...]]]) -> Trace:
    step, arguments = make()
    names = [f"x{k}" for k in range(len(arguments))]
    plan = plan_arguments(names, arguments, frozenset())
    return trace_call(lambda given: step(*given), plan, None).trace


def columns(trace: Trace) -> dict[str, Any]:
    """All that a trace consists of, with parameters by what can be seen of them."""
    first = trace.new_parameters[0][1]._sequence if trace.new_parameters else 0
    return {
        "op": list(trace.op), "a": list(trace.a), "b": list(trace.b), "c": trace.c and list(trace.c),
        "constants": list(map(repr, trace.constants)), "layouts": trace.layouts, "locals": trace.locals,
        "parameters": [(index, value._sequence - first) for index, value in trace.new_parameters],
        "bound": [(base, len(storage)) for base, storage in trace.bound_storages],
        "states": [(start, len(state)) for start, state in trace.states],
        "outputs": trace.outputs, "adjoints": trace.adjoint_reads, "power lines": len(trace.power_lines),
    }  # fmt: skip


def block_records(trace: Trace) -> int:
    return sum(block.end - block.start for block in trace.blocks)


@pytest.fixture
def by_loops(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Trace]:
    """Traces with the loops of nn/scalar.py."""

    def trace(make: Callable[[], tuple[Step, tuple[Any, ...]]]) -> Trace:
        with monkeypatch.context() as patch:
            patch.setattr(Blocks, "_results", lambda *_: None)
            patch.setattr(Blocks, "zero_grad", lambda *_: False)
            found = traced(make)
        assert not found.blocks
        return found

    return trace


def assert_same(make: Callable[[], tuple[Step, tuple[Any, ...]]], by_loops: Callable[..., Trace]) -> Trace:
    """The trace with blocks, which is the same as that of the loops."""
    whole, loops = traced(make), by_loops(make)
    assert columns(whole) == columns(loops)
    for block in whole.blocks:  # they say what is there
        codes = [int(code) for code in whole.op[block.start : block.end]]
        assert codes == ([2, 0] * block.inputs + [13] * block.nonlinear) * block.neurons
    return whole


# ---- programs that one may write ------------------------------------------------------------------------


def random_program(seed: int) -> tuple[Step, tuple[Any, ...]]:
    """A step over some networks, which are called with all kinds of inputs, in several orders."""
    draw = random.Random(seed)
    width = draw.choice([1, 1, 2, 3, 5, 8])
    embeddings = [mgjit.Value(draw.random()) for _ in range(width)]
    generator = random.Random(seed)
    shared = [nn.Neuron(width, draw.random() < 0.5, generator) for _ in range(2)]
    layers = [nn.Layer(width, draw.randrange(0, 5), draw.random() < 0.5, generator) for _ in range(3)]
    for layer in layers[1:]:
        if draw.random() < 0.4:
            layer.neurons.append(draw.choice([*shared, *layers[0].neurons, *shared]))
        if draw.random() < 0.3 and layer.neurons:
            draw.choice(layer.neurons).nonlin = draw.random() < 0.5
    perceptron = nn.MLP(width, [draw.randrange(1, 5) for _ in range(draw.randrange(1, 4))], seed=seed)
    state = mgjit.zeros(width)
    kinds = [draw.randrange(10) for _ in range(6)]
    callees = [draw.choice([*layers, perceptron, *shared]) for _ in range(6)]
    clears = [draw.randrange(3) for _ in range(6)]

    def step(numbers: Any, pixels: Any, rate: Any) -> Any:
        total: Any = 0.0
        hidden: Any = [rate * p for p in embeddings]
        for kind, callee, clear in zip(kinds, callees, clears):
            x = [
                numbers, pixels, embeddings, hidden, [p / 255.0 for p in pixels],
                [0.5, -0.0, 0.0, 2, True, float("nan"), 1e300, 3][:width], tuple(hidden),
                [state[k] for k in range(width)],
                [draw_from[k % 5] for k, draw_from in enumerate([[*hidden[:1], rate, 0.25, 7, embeddings[0]]] * width)],
                [numbers[k] > 0.0 for k in range(width)],
            ][kind]  # fmt: skip
            out = callee(x)
            outs = out if isinstance(out, list) else [out]
            total = sum((o * o for o in outs), total)
            hidden = [mgjit.tanh(outs[k % len(outs)]) for k in range(width)] if outs else hidden
            if clear == 0:
                perceptron.zero_grad()
            elif clear == 1 and isinstance(total, mgjit.Value):
                total.backward()
        loss = total + embeddings[0] * embeddings[0]
        perceptron.zero_grad()
        loss.backward()
        for p in perceptron.parameters():
            p.data -= rate * p.grad
        return loss, perceptron([p.data for p in embeddings])

    numbers = [draw.uniform(-1.0, 1.0) for _ in range(width)]
    return step, (numbers, bytes(draw.randrange(256) for _ in range(width)), 0.1)


@pytest.mark.parametrize("seed", range(25))
def test_random_programs_record_the_same(seed: int, by_loops: Callable[..., Trace]) -> None:
    assert_same(lambda: random_program(seed), by_loops)


def test_random_programs_are_recorded_in_blocks_for_the_most_part() -> None:
    found = [traced(lambda seed=seed: random_program(seed)) for seed in range(60)]  # type: ignore[misc]
    assert sum(1 for trace in found if trace.blocks) > 40


def forward(model: Any, x: Any) -> Callable[[], tuple[Step, tuple[Any, ...]]]:
    return lambda: (model, (x,))


@pytest.mark.parametrize(
    "x", [[0.5] * 6, (1, 2, 3, 4, 5, 6), bytes(6), [True] * 6], ids=["list", "tuple", "bytes", "bools"]
)
@pytest.mark.parametrize("sizes", [[4], [1], [1, 1, 3], [5, 4, 1]], ids=str)
def test_a_perceptron_is_recorded_in_blocks(x: Any, sizes: list[int], by_loops: Callable[..., Trace]) -> None:
    model = nn.MLP(6, sizes)
    trace = assert_same(forward(model, x), by_loops)
    assert block_records(trace) == len(trace) - trace.outputs


def test_neurons_one_by_one_are_one_block(by_loops: Callable[..., Trace]) -> None:
    neurons = nn.Layer(4, 7).neurons
    trace = assert_same(lambda: (lambda x: [n(x) for n in neurons], ([1.0] * 4,)), by_loops)
    assert [(block.inputs, block.neurons) for block in trace.blocks] == [(4, 7)]


def test_a_layer_that_is_called_twice_with_other_inputs_is_two_blocks(by_loops: Callable[..., Trace]) -> None:
    layer = nn.Layer(3, 4)
    trace = assert_same(lambda: (lambda x, y: [layer(x), layer(y)], ([1.0] * 3, [2.0] * 3)), by_loops)
    assert [block.neurons for block in trace.blocks] == [4, 4]


def test_parameters_in_the_memory_of_a_kernel(by_loops: Callable[..., Trace]) -> None:
    model = nn.MLP(3, [4, 2])

    @mgjit.compile(compiler="tcc")
    def step(x: Any) -> Any:
        loss = sum(s * s for s in model(x))
        model.zero_grad()
        loss.backward()
        return loss

    step([1.0, 2.0, 3.0])
    trace = assert_same(lambda: (step.__wrapped__, ([1.0, 2.0, 3.0],)), by_loops)
    assert trace.bound_storages
    assert len(trace.blocks) == 2


@pytest.mark.parametrize("kind", [type(nn.MLP(1, [1]).parameters()), list])
def test_the_gradients_of_a_model_are_set_to_zero_at_once(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, found, zero_grad, parameters = nn.MLP(3, [4, 2]), [], Blocks.zero_grad, nn.MLP.parameters
    monkeypatch.setattr(nn.MLP, "parameters", lambda self: kind(parameters(self)))
    monkeypatch.setattr(Blocks, "zero_grad", lambda self, all_: found.append(zero_grad(self, all_)) or found[-1])
    trace = traced(lambda: (lambda x: model.zero_grad(), (1.0,)))
    assert found == [True]
    assert len(trace) == len(model.parameters())


# ---- what is not as usual ---------------------------------------------------------------------------------


class Doubling(nn.Neuron):
    def __call__(self, x: Any) -> Any:
        return 2.0 * super().__call__(x)


class Marked(mgjit.Value):
    def __rmul__(self, other: Any) -> Any:
        return mgjit.Value.__rmul__(self, other) + 1.0


def _with_neuron(neuron: nn.Neuron) -> nn.Layer:
    layer = nn.Layer(3, 4)
    layer.neurons[2] = neuron
    return layer


def _with_weight(weight: Any) -> nn.Layer:
    layer = nn.Layer(3, 4)
    layer.neurons[1].w[2] = weight
    return layer


def _with_bias(bias: Any) -> nn.Layer:
    layer = nn.Layer(3, 4)
    layer.neurons[3].b = bias
    return layer


@pytest.mark.parametrize(
    "make",
    [
        lambda: _with_neuron(Doubling(3)),
        lambda: _with_weight(0.5),
        lambda: _with_weight(Marked(0.5)),
        lambda: _with_bias(1.0),
        lambda: _with_bias(Marked(1.0)),
    ],
    ids=["subclass", "weight", "subclass of Value", "bias", "bias of a subclass"],
)
def test_unusual_neurons_record_the_same(make: Callable[[], nn.Layer], by_loops: Callable[..., Trace]) -> None:
    assert_same(lambda: (make(), ([1.0, 2.0, 3.0],)), by_loops)


def test_inputs_of_a_subclass_record_the_same(by_loops: Callable[..., Trace]) -> None:
    layer, x = nn.Layer(3, 4), [Marked(1.0), Marked(2.0), mgjit.Value(3.0)]
    assert not assert_same(lambda: (lambda _: layer(x), (1.0,)), by_loops).blocks


def test_numbers_that_the_step_overwrites_are_copied_by_each_neuron(by_loops: Callable[..., Trace]) -> None:
    layer, x = nn.Layer(3, 4), [mgjit.Value(float(k)) for k in range(3)]

    def step(rate: Any) -> Any:
        first = [v.data for v in x]
        for v in x:
            v.data = rate
        return layer(first)

    assert_same(lambda: (step, (1.0,)), by_loops)


def test_parameters_that_are_exchanged_within_a_step(by_loops: Callable[..., Trace]) -> None:
    def make() -> tuple[Step, tuple[Any, ...]]:
        layer, other = nn.Layer(3, 4), mgjit.Value(2.0)

        def step(x: Any) -> Any:
            first = layer(x)
            before, layer.neurons[1].w[0] = layer.neurons[1].w[0], other
            second = layer(x)
            layer.neurons[1].w[0] = before
            layer.neurons[2].b, layer.neurons[0].b = layer.neurons[0].b, layer.neurons[2].b
            third = layer(x)
            layer.neurons[2].b, layer.neurons[0].b = layer.neurons[0].b, layer.neurons[2].b
            layer.neurons.reverse()
            fourth = layer(x)
            layer.neurons.reverse()
            return first, second, third, fourth

        return step, ([1.0, 2.0, 3.0],)

    assert_same(make, by_loops)


def test_a_computed_weight_is_no_block(by_loops: Callable[..., Trace]) -> None:
    def make() -> tuple[Step, tuple[Any, ...]]:
        layer = nn.Layer(3, 4)
        before = layer.neurons[0].w[1]

        def step(x: Any) -> Any:
            layer(x)
            layer.neurons[0].w[1] = before * x[0]
            result = layer(x)
            layer.neurons[0].w[1] = before
            return result

        return step, ([1.0, 2.0, 3.0],)

    assert len(assert_same(make, by_loops).blocks) == 1 + 1  # the first call, and the three other neurons


def test_replaced_functions_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, calls = nn.Layer(3, 2), []
    original_call, original_multiply = nn.Neuron.__call__, mgjit.Value.__mul__

    def call(self: nn.Neuron, x: Any) -> Any:
        calls.append("neuron")
        return original_call(self, x)

    def multiply(self: mgjit.Value, other: Any) -> Any:
        calls.append("multiply")
        return original_multiply(self, other)

    with monkeypatch.context() as patch:
        patch.setattr(nn.Neuron, "__call__", call)
        traced(forward(layer, [1.0, 2.0, 3.0]))
    assert calls == ["neuron"] * 2
    with monkeypatch.context() as patch:
        patch.setattr(mgjit.Value, "__mul__", multiply)
        traced(forward(layer, [1.0, 2.0, 3.0]))
    assert calls == ["neuron"] * 2 + ["multiply"] * 6


def test_a_replaced_sum_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, calls, original = nn.Layer(3, 2), [], builtins.sum

    def counting(*arguments: Any) -> Any:
        calls.append("sum")
        return original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(nn.scalar, "sum", counting, raising=False)
        traced(forward(layer, [1.0, 2.0, 3.0]))
    assert calls == ["sum"] * 2


def test_errors_are_those_of_the_loops() -> None:
    layer = nn.Layer(3, 2)
    with pytest.raises(mgjit.errors.ArgumentValueError, match="got 2 inputs; it takes 3"):
        traced(forward(layer, [1.0, 2.0]))
    outside = mgjit.Value(1.0) * 2.0
    with pytest.raises(mgjit.errors.TraceError, match="computed outside"):
        traced(lambda: (lambda x: layer([x, x, outside]), (1.0,)))


def test_gradients_of_a_generator_of_parameters(by_loops: Callable[..., Trace]) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            self.rows = [nn.Layer(2, 2), nn.Layer(2, 3)]

        def parameters(self) -> Any:
            return (p for row in self.rows for p in row.parameters())

    model = Model()
    assert_same(lambda: (lambda x: (model.zero_grad(), model.rows[1](model.rows[0]([x, x]))), (1.0,)), by_loops)


@pytest.mark.parametrize(
    "chosen", [lambda all: all, lambda all: all[:-3], lambda all: all[::-1], lambda all: all + all[:2]]
)
def test_gradients_of_some_parameters_of_layers_in_any_order(
    chosen: Callable[[list[Any]], list[Any]], by_loops: Callable[..., Trace]
) -> None:
    model = nn.MLP(3, [4, 2])
    parameters = chosen(model.parameters())

    def step(x: float) -> Any:
        loss = sum(model([x, x, x]), mgjit.Value(0.0))
        for p in parameters:
            p.grad = 0.0
        loss.backward()
        for p in parameters:
            p.data -= 0.1 * p.grad
        return loss

    assert_same(lambda: (step, (1.0,)), by_loops)
