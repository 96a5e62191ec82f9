"""nn: the shapes and the order of micrograd, seeds, wrong input."""

from __future__ import annotations

import copy
import pickle
import random

import pytest

import mgjit
from mgjit import Value, nn
from tests.gradients import assert_gradient


def test_numbers_of_parameters() -> None:
    assert len(nn.Neuron(3).parameters()) == 4
    assert len(nn.Layer(3, 5).parameters()) == 20
    assert len(nn.MLP(784, [50, 10]).parameters()) == 39_760
    assert nn.Module().parameters() == []


def test_parameters_come_weights_first_neuron_by_neuron() -> None:
    layer = nn.Layer(2, 2)
    first, second = layer.neurons
    assert layer.parameters() == [*first.w, first.b, *second.w, second.b]


def test_results_are_those_of_the_formula() -> None:
    neuron = nn.Neuron(2)
    neuron.w[0].data, neuron.w[1].data, neuron.b.data = 0.1, 0.2, -0.7
    x = [3.0, 0.3]
    assert neuron(x).data == max(0.0, (-0.7 + 0.1 * 3.0) + 0.2 * 0.3)
    neuron.nonlin = False
    assert neuron(x).data == (-0.7 + 0.1 * 3.0) + 0.2 * 0.3


def test_only_the_last_layer_is_linear() -> None:
    model = nn.MLP(2, [3, 3, 2])
    assert [[n.nonlin for n in layer.neurons] for layer in model.layers] == [[True] * 3, [True] * 3, [False] * 2]


def test_one_output_is_a_value_and_several_are_a_list() -> None:
    assert isinstance(nn.MLP(2, [3, 1])([1.0, 2.0]), Value)
    assert len(nn.MLP(2, [3, 2])([1.0, 2.0])) == 2


def test_a_hidden_layer_of_one_neuron_feeds_the_next() -> None:
    out = nn.MLP(2, [1, 3])([1.0, 2.0])
    assert len(out) == 3


def test_equal_seeds_give_equal_networks_and_leave_the_global_generator_alone() -> None:
    state = random.getstate()
    models = [nn.MLP(3, [4, 2], seed=seed) for seed in (5, 5, 6, "five")]
    weights = [[p.data for p in model.parameters()] for model in models]
    assert weights[0] == weights[1] != weights[2] != weights[3]
    assert random.getstate() == state


def test_weights_are_spread_and_small() -> None:
    weights = [w.data for w in nn.Layer(100, 100).neurons[0].w]
    assert len(set(weights)) == 100
    assert all(abs(w) <= 0.1 for w in weights)
    assert min(weights) < -0.05 < 0.05 < max(weights)


def test_zero_grad() -> None:
    model = nn.MLP(2, [2, 1])
    model([1.0, 2.0]).backward()
    assert any(p.grad for p in model.parameters())
    model.zero_grad()
    assert not any(p.grad for p in model.parameters())


def test_gradient_of_a_network() -> None:
    model = nn.MLP(2, [3, 1], seed=3)
    start = [p.data for p in model.parameters()]

    def loss(*parameters: Value) -> Value:
        it = iter(parameters)
        for layer in model.layers:
            for neuron in layer.neurons:
                neuron.w = [next(it) for _ in neuron.w]
                neuron.b = next(it)
        out: Value = (model([0.4, -0.8]) - 0.3) ** 2
        return out

    assert_gradient(loss, start, backend="python")


@pytest.mark.parametrize("length", [0, 1, 3])
def test_inputs_of_a_wrong_length_are_refused(length: int) -> None:
    for network in (nn.Neuron(2), nn.Layer(2, 2), nn.MLP(2, [2, 1])):
        with pytest.raises(ValueError, match=f"{length} inputs"):
            network([0.0] * length)


def test_inputs_of_a_wrong_length_are_refused_in_a_compiled_step_which_still_works() -> None:
    model = nn.MLP(2, [2, 1])
    step = mgjit.compile(backend="python")(model.__call__)
    before = step([1.0, 2.0])
    with pytest.raises(ValueError, match="3 inputs"):
        step([1.0, 2.0, 3.0])
    assert step([1.0, 2.0]) == before == model([1.0, 2.0]).data


def test_no_inputs_at_all() -> None:
    assert nn.Neuron(0)([]).data == 0.0


def test_repr_is_that_of_micrograd() -> None:
    assert repr(nn.MLP(2, [2, 1])) == "MLP of [Layer of [ReLUNeuron(2), ReLUNeuron(2)], Layer of [LinearNeuron(2)]]"


@pytest.mark.parametrize("compiled", [False, True])
def test_networks_are_copied_and_pickled(compiled: bool) -> None:
    model = nn.MLP(2, [3, 1])
    if compiled:
        mgjit.compile(backend="python")(model.__call__)([1.0, 2.0])
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):  # noqa: S301
        assert [p.data for p in other.parameters()] == [p.data for p in model.parameters()]
        other.parameters()[0].data += 1.0
        assert other.parameters()[0].data != model.parameters()[0].data
