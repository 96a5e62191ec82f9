"""Operators that assign: what `+=` and `-=` do to tensors that gradients flow through."""

from __future__ import annotations

from typing import Any

import pytest

import mgjit
from mgjit import tensor as T
from mgjit.errors import GradientError
from mgjit.tensor import autograd


def tensors() -> tuple[Any, Any]:
    return T.asarray([[0.5, -1.5], [2.0, 0.25]], requires_grad=True), T.asarray([0.75, -2.0], requires_grad=True)


def in_place(x: Any, b: Any) -> Any:
    y = x @ x
    seen = y.view(-1)  # shares the elements
    y += b
    y -= b * x
    y += 1.0
    y[0] -= b
    total = (seen * seen).sum()
    total += (b * b).sum()
    total += b.sin().sum()
    return total


def written_out(x: Any, b: Any) -> Any:
    y = x @ x + b - b * x + 1.0
    y = y - T.stack([b, b * 0.0])
    return (y * y).sum() + (b * b).sum() + b.sin().sum()


def gradients(function: Any, wrap: Any = lambda function: function) -> list[Any]:
    x, b = tensors()

    @wrap
    def step() -> Any:
        loss = function(x, b)
        loss.backward()
        return loss

    return [step().tolist(), x.grad.tolist(), b.grad.tolist()]


def test_what_is_added_in_place_has_gradients() -> None:
    found = gradients(in_place)
    for ours, other in zip(found, gradients(written_out)):
        assert T.allclose(T.asarray(ours), T.asarray(other))
    assert gradients(in_place, lambda step: mgjit.compile(step, background=False, backend="python")) == found


def test_what_a_derivative_needs_is_not_added_to() -> None:
    x, b = tensors()
    for name in ("tanh", "exp", "relu", "sigmoid"):
        y = getattr(x, name)()
        with pytest.raises(GradientError, match=r"x = x \+ y in place of x \+= y"):
            y += b
    y = x @ x
    z = y.sin()
    y += b
    with pytest.raises(GradientError, match="assigned since"):
        z.sum().backward()


def test_no_second_derivative_of_what_was_read_before() -> None:
    x, b = tensors()
    y = x @ x
    z = y + 0.0
    y += b
    with pytest.raises(GradientError, match="in place since"):
        autograd.grad((y + z).sum(), [x, b])
    y = x @ x
    y += b * b
    (found,) = autograd.grad((y * y).sum(), [b], create_graph=True)
    found.sum().backward()
    assert b.grad is not None
    (other,) = autograd.grad(((x @ x + b * b) ** 2).sum(), [b])
    assert T.allclose(found, other)
