"""What the update of a traced step depends on, and the order of its outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit.tracing.record.separation import Separation


def separated(body: Callable[..., Any], *arguments: Any) -> Separation:
    """The separation of a step whose body gets a model, and the rest."""
    model = nn.MLP(2, [2, 1])
    step = mgjit.compile(lambda *given: body(model, *given), background=False)
    step.forward(*arguments)
    found: Separation = step._kernels.separate.all()[0].separation
    return found


def gradient(model: Any, x: Any) -> Any:
    loss = model(x) ** 2
    model.zero_grad()
    loss.backward()
    return loss


def descend(model: Any, lr: Any) -> None:
    for p in model.parameters():
        p.data -= lr * p.grad


def test_a_plain_step_can_be_separated() -> None:
    def body(model: Any, x: Any, lr: Any) -> Any:
        loss = gradient(model, x)
        descend(model, lr)
        return loss

    found = separated(body, [1.0, 2.0], 0.1)
    assert (found.reason, [list(numbers) for numbers in found.gradients]) == ("", [list(range(9))])
    assert (found.update_inputs, found.late_outputs, found.early_inputs) == ({2}, set(), {0: {0, 1}})


def test_inputs_that_only_outputs_need_are_no_inputs_of_the_update() -> None:
    def body(model: Any, x: Any, lr: Any) -> Any:
        loss = gradient(model, x)
        descend(model, lr)
        return loss * 2.0, x[0] + 1.0

    found = separated(body, [1.0, 2.0], 0.1)
    assert (found.reason, found.update_inputs, found.late_outputs) == ("", {2}, set())


def test_what_the_update_computes_is_late() -> None:
    def body(model: Any, x: Any, lr: Any) -> Any:
        before = model.parameters()[0].data + 0.0
        loss = gradient(model, x)
        norm = sum(p.grad * p.grad for p in model.parameters())
        descend(model, lr)
        return before, loss, norm, model.parameters()[0].data

    assert separated(body, [1.0, 2.0], 0.1).late_outputs == {2, 3}


def test_the_order_of_results_does_not_decide_what_forward_returns() -> None:
    model = nn.MLP(2, [2, 1])

    @mgjit.compile(background=False)
    def step(x: Any, lr: Any) -> Any:
        loss = gradient(model, x)
        norm = sum(p.grad * p.grad for p in model.parameters())
        descend(model, lr)
        return loss.data > 0.0, norm, loss, loss * 2.0, norm * 2.0

    above, norm, loss, twice, late = step.forward([1.0, 2.0], 0.1)
    plain = model([1.0, 2.0]).data ** 2
    assert (above, loss, twice) == (plain > 0.0, plain, plain * 2.0)
    assert norm != norm
    assert late != late


def two_losses(model: Any, x: Any, lr: Any) -> None:
    first, second = model(x) ** 2, model([x[1], x[0]]) ** 2
    model.zero_grad()
    first.backward()
    second.backward()
    descend(model, lr)


def reset_in_between(model: Any, x: Any, lr: Any) -> None:
    first, second = model(x) ** 2, model([x[1], x[0]]) ** 2
    first.backward()
    model.zero_grad()
    second.backward()
    descend(model, lr)


def hidden_gradient(model: Any, x: Any, lr: Any) -> None:
    out = model(x)
    loss = out * out
    model.zero_grad()
    loss.backward()
    descend(model, lr * out.grad)


def computed_reset(model: Any, x: Any, lr: Any) -> None:
    loss = model(x) ** 2
    for p in model.parameters():
        p.grad = 0.1 * p.data
    loss.backward()
    descend(model, lr)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (two_losses, ""),
        (reset_in_between, "between two backward passes"),
        (hidden_gradient, "nodes of the graph"),
        (computed_reset, "computes what it assigns"),
        (lambda model, x, lr: model(x), "backward() is not called"),
    ],
)
def test_reasons(body: Callable[..., Any], reason: str) -> None:
    found = separated(body, [1.0, 2.0], 0.1).reason
    assert reason in found
    assert bool(reason) == bool(found)
