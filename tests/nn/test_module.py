"""Module: its parts, modes, state, text; as an object that a compiled step captures."""

from __future__ import annotations

import copy
import pickle
import random
from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit import tensor as T
from mgjit.errors import ArgumentError, ShapeError
from mgjit.nn import functional as F

pytestmark = pytest.mark.usefixtures("python_loops")


def step(function: Any) -> Any:
    """A compiled step that needs no compiler."""
    return mgjit.compile(function, background=False, backend="python")


class Net(nn.Module):
    """Parts in attributes and in a list."""

    def __init__(self, seed: int = 1) -> None:
        draw = random.Random(seed)
        self.scale = nn.Buffer([2.0])
        self.table = nn.Embedding(5, 3, generator=draw)
        self.layers = [nn.Linear(3, 4, generator=draw), nn.Linear(4, 4, bias=False, generator=draw)]
        self.out = nn.Sequential(nn.Tanh(), nn.Dropout(0.5), nn.Linear(4, 2, generator=draw))

    def forward(self, indices: Any) -> Any:
        x = self.table(indices) * self.scale
        for layer in self.layers:
            x = F.relu(layer(x))
        return self.out(x)


NAMES = ["table.weight", "layers.0.weight", "layers.0.bias", "layers.1.weight", "out.2.weight", "out.2.bias"]


def test_parameters_are_found_in_attributes_and_lists_in_order() -> None:
    net = Net()
    assert [name for name, _ in net.named_parameters()] == NAMES
    assert all(a is b for a, (_, b) in zip(net.parameters(), net.named_parameters()))
    assert [name for name, _ in net.named_buffers()] == ["scale"]
    assert [name for name, _ in net.named_children()] == ["table", "layers.0", "layers.1", "out"]
    assert len(list(net.modules())) == 8


def test_parameters_are_a_list_and_an_iterator() -> None:
    net = Net()
    found = net.parameters()
    assert isinstance(found, list)
    assert all(next(found) is p for p in found)
    assert len([*found]) == len(NAMES) == len(list(iter(found)))
    assert sum(p.numel() for p in net.parameters()) == sum(p.numel() for _, p in net.named_parameters())
    assert [*nn.Sequential(net.table, net).parameters(recurse=False)] == []
    assert type(copy.deepcopy(found)) is list


def test_a_step_takes_the_next_of_parameters_that_it_lists() -> None:
    net, outside = Net(), Net().parameters()
    listed = step(lambda: next(net.parameters()).sum())
    taken = step(lambda: next(outside).sum())  # each call takes another one
    plain = Net().parameters()
    for p in plain[:3]:
        assert float(listed()) == float(next(net.parameters()).sum())
        assert float(taken()) == float(p.sum())
    assert listed.stats.traces == 1
    assert "listed outside" in taken.stats.plain_reasons[0]


def test_parts_of_a_dict_of_modules_are_attributes() -> None:
    parts = nn.ModuleDict({"first": nn.Linear(2, 2), "second": nn.Tanh()})
    assert parts.first is parts["first"]
    parts.second = nn.ReLU()
    assert type(parts["second"]) is nn.ReLU
    parts.scale = nn.Parameter(T.ones(1))
    assert [name for name, _ in parts.named_parameters()] == ["scale", "first.weight", "first.bias"]
    with pytest.raises(AttributeError, match="third"):
        _ = parts.third
    assert copy.deepcopy(parts).first.weight.tolist() == parts.first.weight.tolist()


def test_a_shared_parameter_counts_once() -> None:
    net = Net()
    net.layers.append(net.layers[0])
    net.tied = net.table.weight  # type: ignore[attr-defined]
    assert [name for name, _ in net.named_parameters()] == ["tied", *NAMES[1:]]
    assert len(net.parameters()) == len(NAMES)


def test_tensors_that_require_gradients_are_parameters_and_others_are_not() -> None:
    net = nn.Module()
    net.w, net.x = T.ones(2, requires_grad=True), T.ones(2)  # type: ignore[attr-defined]
    net.frozen = nn.Parameter([1.0], requires_grad=False)  # type: ignore[attr-defined]
    assert [name for name, _ in net.named_parameters()] == ["w", "frozen"]


def test_scalar_networks_are_modules_with_parameters() -> None:
    net = nn.Module()
    net.mlp, net.linear = nn.MLP(2, [3, 1]), nn.Linear(2, 1)  # type: ignore[attr-defined]
    assert len(net.parameters()) == 13 + 2
    assert [name for name, _ in net.named_parameters()][:3] == [
        f"mlp.layers.0.neurons.0.{k}" for k in ("w.0", "w.1", "b")
    ]
    state = net.state_dict()
    net.zero_grad()
    other = nn.Module()
    other.mlp, other.linear = nn.MLP(2, [3, 1], seed=5), nn.Linear(2, 1)  # type: ignore[attr-defined]
    other.load_state_dict(state)
    assert [p.data for p in other.mlp.parameters()] == [p.data for p in net.mlp.parameters()]  # type: ignore[attr-defined]


def test_train_and_eval_reach_everything() -> None:
    net = Net()
    assert net.eval() is net
    assert not any(module.training for module in net.modules())
    net.train()
    assert all(module.training for module in net.modules())


def test_zero_grad_sets_every_gradient_to_zero() -> None:
    net = Net()
    net(T.asarray([1, 2])).sum().backward()
    assert any(any(p.grad.tolist_flat()) for p in net.parameters())
    net.zero_grad()
    assert not any(any(p.grad.tolist_flat()) for p in net.parameters())


def test_state_is_copied_and_loaded() -> None:
    net, other = Net(1), Net(2)
    state = net.state_dict()
    with mgjit.no_grad():
        net.out[2].bias += 1.0
    other.load_state_dict(state)
    assert list(state) == ["scale", *NAMES]
    assert {name: x.tolist() for name, x in other.state_dict().items()} == {k: v.tolist() for k, v in state.items()}
    assert net.out[2].bias.tolist() != other.out[2].bias.tolist()
    assert other.out[2].bias.requires_grad


def test_loading_is_all_or_nothing() -> None:
    net = Net()
    before = net.state_dict()
    with pytest.raises(
        ArgumentError, match=r"test_module\.py:\d+: load_state_dict of Net: missing: scale.*strict=False"
    ):
        net.load_state_dict({"table.weight": T.zeros((5, 3))})
    wrong = {**{name: T.zeros_like(x) for name, x in before.items()}, "out.2.bias": T.zeros(3)}
    with pytest.raises(ShapeError, match=r"out\.2\.bias has shape \(2,\), not \(3,\)"):
        net.load_state_dict(wrong)
    assert [x.tolist() for x in net.state_dict().values()] == [x.tolist() for x in before.values()]
    net.load_state_dict({"out.2.bias": [1, 2]}, strict=False)
    assert net.out[2].bias.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("again", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])  # noqa: S301
def test_copies_have_parameters_of_their_own(again: Any) -> None:
    net = Net()
    net.tied = net.table.weight  # type: ignore[attr-defined]
    other = again(net)
    assert other.tied is other.table.weight
    assert isinstance(other.tied, nn.Parameter)
    assert isinstance(other.scale, nn.Buffer)
    with mgjit.no_grad():
        other.tied += 1.0
    assert other.table.weight.tolist() != net.table.weight.tolist()
    assert [p.requires_grad for p in other.parameters()] == [True] * len(NAMES)


def test_a_module_becomes_float32_in_place() -> None:
    net = Net()
    before = net.parameters()
    assert all(p is q and p.dtype is T.float32 and p.requires_grad for p, q in zip(net.float().parameters(), before))
    assert net(T.asarray([1])).dtype is T.float32
    net(T.asarray([1])).sum().backward()


def test_the_text_is_that_of_pytorch() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Sequential(nn.Dropout(0.2)))
    assert repr(model) == (
        "Sequential(\n  (0): Linear(in_features=2, out_features=3, bias=True)\n  (1): ReLU()\n"
        "  (2): Sequential(\n    (0): Dropout(p=0.2)\n  )\n)"
    )
    assert repr(nn.ModuleList([nn.Identity()])) == "ModuleList(\n  (0): Identity()\n)"


def test_containers_are_indexed_and_cut() -> None:
    model = nn.Sequential({"first": nn.Linear(2, 3), "second": nn.ReLU()}).append(nn.Linear(3, 1))
    assert [name for name, _ in model.named_children()] == ["first", "second", "2"]
    assert model[-1](model[:2](T.ones((1, 2)))).shape == (1, 1)
    assert len(nn.ModuleList([nn.ReLU()]).append(nn.Tanh())[1:]) == 1
    with pytest.raises(ArgumentError, match="1 is a int, not a module"):
        nn.Sequential(nn.ReLU(), 3)


def test_a_class_without_forward_says_so() -> None:
    with pytest.raises(ArgumentError, match=r"test_module\.py:\d+: Module has no method forward"):
        nn.Module()(1.0)


# ---- in compiled steps ------------------------------------------------------------------------------------


def train(net: Any) -> Any:
    """A function that trains a network."""

    def train_step(indices: Any, labels: Any, rate: Any) -> Any:
        loss = F.cross_entropy(net(indices), labels)
        net.zero_grad()
        loss.backward()
        with mgjit.no_grad():
            for p in net.parameters():
                p -= rate * p.grad  # noqa: PLW2901
        return loss

    return train_step


def run(function: Any, net: Any) -> list[str]:
    """Losses and parameters of some steps, training and not, as text."""
    random.seed(7)
    x, labels = T.asarray([0, 4, 4]), T.asarray([1, 0, 1])
    found = [function(x, labels, 0.1).item() for _ in range(3)]
    net.eval()
    found += [function(x, labels, 0.1).item() for _ in range(2)]
    net.train()
    found += [function(x, labels, 0.05).item() for _ in range(2)]
    found += [number for p in net.parameters() for number in p.tolist_flat()]
    return [float(number).hex() for number in found]


def test_a_step_that_captures_a_module_gives_the_same_bits_in_both_modes() -> None:
    net, other = Net(), Net()
    compiled = step(train(other))
    assert run(train(net), net) == run(compiled, other)
    assert compiled.stats.plain_calls == 0


def test_modes_of_many_layers_are_noticed() -> None:
    model = nn.Sequential(*(nn.Dropout(0.5) for _ in range(40)))
    compiled = step(model)
    x = T.ones(3)
    compiled(x)
    compiled(x)
    model.eval()
    assert compiled(x).tolist() == [1.0, 1.0, 1.0]


def test_a_module_is_an_argument() -> None:
    @step
    def forward(model: Any, x: Any) -> Any:
        return model(x)

    model = nn.Linear(2, 1)
    x = T.asarray([[1.0, 2.0]])
    assert forward(model, x).tolist() == model(x).tolist()
    with mgjit.no_grad():
        model.weight += 1.0
    assert forward(model, x).tolist() == model(x).tolist()


def test_the_code_of_layers_mentions_what_it_reads() -> None:
    """Otherwise the survey of a step would have to take every attribute of everything for read."""
    import inspect
    import pkgutil
    from importlib import import_module

    from mgjit.tracing.surroundings.code import COMPUTED, read

    for info in pkgutil.iter_modules(nn.__path__):
        module = import_module(f"mgjit.nn.{info.name}")
        classes = [kind for kind in vars(module).values() if inspect.isclass(kind)]
        members = [*vars(module).values(), *(member for kind in classes for member in vars(kind).values())]
        for function in members:
            if inspect.isfunction(function) and function.__module__ == module.__name__:
                assert not read(function.__code__).names & COMPUTED, function


def test_a_step_notices_what_is_frozen_and_other_types() -> None:
    def run(wrap: Any) -> list[str]:
        random.seed(3)
        net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))

        @wrap
        def train_step(x: Any) -> Any:
            loss = net(x).sum()
            net.zero_grad()
            loss.backward()
            with mgjit.no_grad():
                for p in net.parameters():
                    if p.requires_grad:
                        p -= p.grad * 0.125  # noqa: PLW2901
            return loss

        found = []
        for k in range(6):
            net[0].requires_grad_(k % 4 < 2)
            found.append(train_step(T.ones((1, 2))).item())
        net.float()
        with pytest.raises(mgjit.errors.PrecisionError):
            train_step(T.ones((1, 2)))
        return [float(x).hex() for x in (*found, *net[0].weight.tolist_flat())]

    assert run(step) == run(lambda function: function)


def test_hooks_see_results_and_may_replace_them() -> None:
    layer, seen = nn.Linear(2, 2), []
    x = T.ones(1, 2)
    plain = layer(x).tolist()
    first = layer.register_forward_hook(lambda module, given, result: seen.append((module, given, result)))
    second = layer.register_forward_hook(lambda module, given, result: result * 0.0)
    assert layer(x).tolist() == [[0.0, 0.0]]
    assert seen[0][0] is layer
    assert seen[0][1] == (x,)
    assert seen[0][2].tolist() == plain
    first.remove()
    second.remove()
    assert layer(x).tolist() == plain
    assert len(seen) == 1
    assert nn.Linear(2, 2)._hooks == {}


def test_a_dict_of_modules_has_their_parameters() -> None:
    class Choosing(nn.Module):
        def __init__(self) -> None:
            self.parts = nn.ModuleDict({"a": nn.Linear(2, 2)})
            self.parts["b"] = nn.Linear(2, 2, bias=False)

        def forward(self, x: Any) -> Any:
            for name in self.parts:
                x = self.parts[name](x)
            return x

    model = Choosing()
    assert list(model.state_dict()) == ["parts.a.weight", "parts.a.bias", "parts.b.weight"]
    assert (list(model.parts.keys()), len(model.parts), "a" in model.parts) == (["a", "b"], 2, True)
    assert [type(part) for part in model.parts.values()] == [nn.Linear] * 2
    compiled = mgjit.compile(background=False, backend="python")(lambda x: model(x) * 1.0)
    assert compiled(T.ones(1, 2)).tolist() == model(T.ones(1, 2)).tolist()


def test_buffers_are_of_any_type_and_stay_so() -> None:
    class Kept(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mask", T.tril(T.ones(2, 2)).bool())
            self.register_buffer("scale", T.asarray([1.5]))
            self.register_buffer("hidden", T.asarray([1]), persistent=False)
            self.register_buffer("none", None)

    model = Kept().to("cpu").to(T.float32)
    assert (model.mask.dtype, model.scale.dtype, model.none) == (T.bool_, T.float32, None)  # type: ignore[attr-defined]
    assert list(model.state_dict()) == ["mask", "scale"]
    copied = copy.deepcopy(model)
    assert copied.mask.tolist() == [[True, False], [True, True]]
    copied.load_state_dict({"mask": [[True, True], [True, True]], "scale": [2.0]})
    assert copied.mask.tolist() == [[True, True], [True, True]]
