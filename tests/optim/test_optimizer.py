"""All optimisers: the same bits compiled, eager and by definition; groups, saving, and what is refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import mgjit
from mgjit import optim
from mgjit import tensor as T
from mgjit.errors import ArgumentError, ArgumentValueError, GradientError, PrecisionError, TraceError
from tests.optim.training import RULES, flat, train


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", RULES)
def test_a_compiled_step_an_eager_one_and_the_definition_give_the_same_bits(
    name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, options = RULES[name]
    backend = "python" if dtype == "float32" or list(RULES).index(name) % 2 else "auto"
    compiled = train(lambda params: kind(params, **options), True, dtype, backend=backend)
    assert compiled.step.stats.traces == 1
    assert compiled.step.stats.plain_calls == 0
    eager = train(lambda params: kind(params, **options), False, dtype)
    monkeypatch.setenv("MGJIT_DISABLE", "1")
    defined = train(lambda params: kind(params, **options), False, dtype)
    assert compiled[:3] == eager[:3] == defined[:3]


@pytest.mark.parametrize("name", RULES)
def test_scalars_give_the_bits_of_tensors_decorated_or_not(name: str) -> None:
    kind, options = RULES[name]
    tensors, plain, compiled = (
        train(lambda params: kind(params, **options), compile_it, scalars=scalars, backend="python")
        if compile_it
        else train(lambda params: kind(params, **options), False, scalars=scalars)
        for scalars, compile_it in ((False, False), (True, False), (True, True))
    )
    assert plain.losses == compiled.losses
    assert plain.parameters == compiled.parameters == tensors.parameters
    assert sorted(plain.remembered) == sorted(compiled.remembered) == sorted(tensors.remembered)
    assert compiled.step.stats.traces == 1


def test_a_first_call_that_is_traced_leaves_state_as_a_plain_one_and_calls_agree_when_verified(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MGJIT_VERIFY", "always")
    found = train(lambda params: optim.Adam(params, lr=0.01), True, backend="python")
    assert found.step.stats.compared_calls == 1
    assert not found.step.stats.mismatches


def test_groups_have_options_of_their_own() -> None:
    def make(params: list[Any]) -> optim.Optimizer:
        w, b = params
        return optim.SGD([{"params": [w], "lr": 0.0}, {"params": b, "momentum": 0.5}], lr=0.1)

    compiled, plain = (train(make, compile_it) for compile_it in (True, False))
    assert compiled[:3] == plain[:3]
    before = train(lambda params: optim.SGD(params, lr=0.0), False).parameters
    assert compiled.parameters[:3] == before[:3]
    assert compiled.parameters[3] != before[3]


def test_a_learning_rate_that_changes_between_calls_is_no_reason_to_trace_again() -> None:
    def change(optimizer: optim.Optimizer, k: int) -> None:
        optimizer.param_groups[0]["lr"] = 0.1 / (k + 2)

    compiled, plain = (
        train(lambda params: optim.SGD(params, lr=0.1, momentum=0.9), compile_it, between=change)
        for compile_it in (True, False)
    )
    assert compiled[:3] == plain[:3]
    assert compiled.step.stats.traces == 1


def test_a_change_of_another_option_takes_effect_in_the_next_call() -> None:
    def change(optimizer: optim.Optimizer, k: int) -> None:
        optimizer.param_groups[0]["betas"] = (0.5 + 0.05 * k, 0.9)

    compiled, plain = (train(optim.Adam, compile_it, between=change) for compile_it in (True, False))
    assert compiled[:3] == plain[:3]


def test_a_learning_rate_can_be_an_argument_of_the_step() -> None:
    def trained(decorate: Any) -> tuple[str, int]:
        x = T.asarray([1.0, 2.0], requires_grad=True)
        optimizer = optim.SGD([x])

        @decorate
        def step(rate: float) -> Any:
            loss = (x * x).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.param_groups[0]["lr"] = rate
            optimizer.step()
            return loss

        for k in range(4):
            step(0.1 / (k + 1))
        return str(x.tolist()) + str(optimizer.param_groups[0]["lr"]), getattr(
            getattr(step, "stats", None), "traces", 0
        )

    compiled, plain = trained(mgjit.compile(background=False)), trained(lambda f: f)
    assert compiled == (plain[0], 1)


def test_options_are_constants_also_of_a_step_that_assigns_elements_of_something_called_options() -> None:
    def trained(decorate: Any) -> list[Any]:
        x, seen = T.ones(2, requires_grad=True), [0.0]
        optimizer = optim.AdamW([x], lr=0.1)

        @decorate
        def step(y: float) -> None:
            optimizer.zero_grad()
            (x * x * y).sum().backward()
            optimizer.step()
            options = seen
            options[0] = options[0] + y

        for k in range(3):
            step(float(k))
        return [x.tolist(), seen, getattr(getattr(step, "stats", None), "plain_calls", 0)]

    assert trained(mgjit.compile(background=False, backend="python")) == trained(lambda f: f)


def test_a_number_of_the_step_as_another_option_is_refused() -> None:
    x = T.ones(2, requires_grad=True)
    optimizer = optim.SGD([x], lr=0.1, momentum=0.5)

    @mgjit.compile(background=False)
    def step(momentum: float) -> None:
        optimizer.param_groups[0]["momentum"] = momentum
        optimizer.step()

    with pytest.raises(TraceError, match=r"momentum of an optimiser is a constant .* only lr can be assigned"):
        step(0.9)
    assert optimizer.param_groups[0]["momentum"] == 0.5


def test_what_requires_no_gradient_stays_as_it_is() -> None:
    frozen, free = T.ones(2), T.ones(2, requires_grad=True)
    optimizer = optim.AdamW([frozen, free], lr=0.1)
    optimizer.zero_grad()
    (free * free).sum().backward()
    optimizer.step()
    assert frozen.tolist() == [1.0, 1.0]
    assert free.tolist() != [1.0, 1.0]


def test_zero_grad_lets_the_next_backward_begin_with_0() -> None:
    x, y = T.ones(2, requires_grad=True), mgjit.Value(1.0)
    optimizer = optim.SGD([{"params": [x]}, {"params": [y]}])
    (x * 3.0).sum().backward()
    (y * 3.0).backward()
    optimizer.zero_grad()
    assert (x.grad.tolist(), y.grad) == ([0.0, 0.0], 0.0)  # type: ignore[union-attr]


def test_a_class_of_the_user_can_have_the_numbers() -> None:
    class Weight:
        def __init__(self) -> None:
            self.data, self.grad = 1.0, 0.5

    weight = Weight()
    optim.SGD([weight], lr=0.1).step()
    assert weight.data == 1.0 - 0.1 * 0.5


@pytest.mark.parametrize("scalars", [False, True])
@pytest.mark.parametrize("name", ["SGD with momentum", "Adagrad", "Adam with amsgrad"])
def test_training_goes_on_from_a_saved_state(name: str, scalars: bool) -> None:
    kind, options = RULES[name]
    kept: list[Any] = []

    def save(optimizer: optim.Optimizer, k: int) -> None:
        if k == 2:
            kept.append(copy.deepcopy(optimizer.state_dict()))

    whole = train(lambda params: kind(params, **options), False, scalars=scalars, between=save)

    def load(optimizer: optim.Optimizer, k: int) -> None:
        if k == 2:
            optimizer.param_groups[0]["lr"] = 7.0
            for each in optimizer.param_groups[0].state.values():
                for index in range(len(each)):
                    if scalars:
                        each[index] = 7.0
                    else:
                        each[index][...] = 7.0
            optimizer.load_state_dict(kept[0])

    resumed = train(lambda params: kind(params, **options), not scalars, scalars=scalars, between=load)
    assert resumed[:3] == whole[:3]
    assert scalars or resumed.step.stats.traces == 1


def test_a_saved_state_is_a_copy() -> None:
    x = T.ones(2, requires_grad=True)
    optimizer = optim.Adam([x])
    saved = optimizer.state_dict()
    x.sum().backward()
    optimizer.step()
    assert saved["state"][0]["exp_avg"].tolist() == [0.0, 0.0]
    assert saved["param_groups"][0]["params"] == [0]


def test_an_optimiser_and_its_parameters_can_be_copied_together() -> None:
    x = T.ones(2, requires_grad=True)
    both = copy.deepcopy({"x": x, "optimizer": optim.Adam([x], lr=0.1)})
    both["x"].sum().backward()  # type: ignore[attr-defined]
    both["optimizer"].step()  # type: ignore[attr-defined]
    assert x.tolist() == [1.0, 1.0]
    assert flat(both["optimizer"])[0] != ["0x1.0000000000000p+0"] * 2  # type: ignore[arg-type]


def test_a_state_of_something_else_is_refused_before_anything_has_changed() -> None:
    x = T.ones(2, requires_grad=True)
    optimizer = optim.Adam([x], lr=0.5)
    before = flat(optimizer), optimizer.param_groups[0].lr
    others = [
        optim.SGD([x], momentum=0.9).state_dict(),
        optim.Adam([x, T.ones(3, requires_grad=True)]).state_dict(),
        optim.Adam([T.ones(3, requires_grad=True)], lr=0.1).state_dict(),
    ]
    for other, words in zip(others, ["another optimiser than Adam", r"\[2\] parameters", r"\(3,\) for a parameter"]):
        with pytest.raises(ArgumentValueError, match=words):
            optimizer.load_state_dict(other)
    assert (flat(optimizer), optimizer.param_groups[0].lr) == before


def test_parameters_that_were_converted_later_are_refused() -> None:
    model = mgjit.nn.Linear(2, 1)
    optimizer = optim.Adam(model.parameters())
    model.float()
    with pytest.raises(PrecisionError, match=r"float64 when this optimiser was made, and are float32 now"):
        optimizer.step()
    optim.Adam(model.parameters()).step()


def test_what_cannot_be_optimised_is_refused() -> None:
    x, y = T.ones(2, requires_grad=True), T.ones(2, requires_grad=True, dtype="float32")
    refused: list[tuple[type[Exception], Any, str]] = [
        (ArgumentError, x, "a list of parameters"),
        (ArgumentValueError, [], "without parameters"),
        (GradientError, [x * 2.0], "computed from others"),
        (GradientError, [T.asarray([1, 2])], "int64 has no gradient"),
        (PrecisionError, [x, y], "float64 and float32 in one group"),
        (ArgumentError, [x, mgjit.Value(1.0)], "Make two"),
        (ArgumentError, [1.0], "not the float 1.0"),
        (ArgumentValueError, [x, x], "updated twice"),
        (ArgumentValueError, [{"params": [x]}, {"params": [x]}], "updated twice"),
        (ArgumentValueError, [{"params": [x], "rate": 1.0}], "SGD has no option rate"),
        (ArgumentValueError, [{"params": [x], "lr": -1.0}], "lr=-1.0"),
        (ArgumentError, [{"params": [x], "lr": "0.1"}], "lr='0.1', which is no number"),
        (ArgumentError, [{"params": [x], "momentum": None}], "momentum=None, which is no number"),
    ]
    for kind, params, words in refused:
        with pytest.raises(kind, match=words) as caught:
            optim.SGD(params)
        assert __file__ in str(caught.value)
    with pytest.raises(ArgumentValueError, match="betas"):
        optim.Adam([x], betas=(0.9, 1.0))
    with pytest.raises(ArgumentValueError, match="nesterov needs a momentum"):
        optim.SGD([x], nesterov=True)
    with pytest.raises(ArgumentValueError, match=r"no state of an optimiser: it has \['model'\]"):
        optim.SGD([x]).load_state_dict({"model": {}})


def test_an_option_that_changes_late_takes_effect_in_the_next_call() -> None:
    weights = [T.ones(1, requires_grad=True) for _ in range(5)]
    optimizer = optim.SGD([{"params": [w]} for w in weights], lr=0.5)

    @mgjit.compile(background=False, backend="python", verify="never")
    def step(rate: float) -> None:
        sum((w * rate).sum() for w in weights).backward()
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(1200):  # the guard looks at everything in the first 1,000 calls
        step(0.0)
    optimizer.param_groups[4]["weight_decay"] = 0.0
    step(0.0)
    assert step.stats.traces == 1
    optimizer.param_groups[4]["weight_decay"] = 0.5
    step(0.0)
    assert [w.item() for w in weights] == [1.0, 1.0, 1.0, 1.0, 0.75]
    assert step.stats.traces == 2


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop, optim.Adagrad, optim.Adadelta])
def test_to_maximize_is_to_minimize_the_negative(kind: Any) -> None:
    def trained(sign: float, **further: Any) -> list[float]:
        p = T.asarray([1.0, -2.0], requires_grad=True)
        optimizer = kind([p], foreach=False, fused=None, **further)

        @mgjit.compile
        def step() -> Any:
            loss = (sign * (p - 3.0) ** 2).sum()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            return loss

        for _ in range(3):
            step()
        saved = optimizer.state_dict()
        del saved["param_groups"][0]["maximize"]  # as of an older version
        optimizer.load_state_dict(saved) if not further else None
        return p.tolist()

    assert trained(-1.0, maximize=True) == trained(1.0)
    with pytest.raises(ArgumentError, match="has no option sideways"):
        kind([T.zeros(1, requires_grad=True)], sideways=1)


def test_a_closure_computes_the_gradients() -> None:
    p = T.asarray([1.0], requires_grad=True)
    optimizer = optim.SGD([("p", p)], lr=0.5)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 1.0
    assert p.tolist() == [0.0]
