"""Clipping: the norm of all gradients together, and single elements; of tensors and of scalars."""

from __future__ import annotations

import math
from typing import Any

import pytest

import mgjit
from mgjit import tensor as T
from mgjit.optim import clip_grad_norm_, clip_grad_value_

GRADIENTS = [3.0, -4.0, 12.0]
NORMS = {1.0: 19.0, 2.0: 13.0, 3.0: (27.0 + 64.0 + 1728.0) ** (1 / 3), math.inf: 12.0}


def tensors() -> list[Any]:
    """Two tensors with these gradients, and one that has none."""
    made = [T.ones(2, requires_grad=True), T.ones((1, 1), requires_grad=True), T.ones(2)]
    made[0].grad[...] = T.asarray(GRADIENTS[:2])
    made[1].grad[...] = GRADIENTS[2]
    return made


def scalars() -> list[Any]:
    made = [mgjit.Value(1.0) for _ in GRADIENTS]
    for p, g in zip(made, GRADIENTS):
        p.grad = g
    return made


def gradients(parameters: list[Any]) -> list[float]:
    found = [p.grad for p in parameters if p.grad is not None]
    return [x for g in found for x in (g.tolist_flat() if isinstance(g, T.Tensor) else [g])]


@pytest.mark.parametrize("make", [tensors, scalars])
@pytest.mark.parametrize("norm_type", NORMS)
def test_the_norm_is_returned_and_limited(make: Any, norm_type: float) -> None:
    parameters = make()
    norm = clip_grad_norm_(parameters, 6.5, norm_type)
    assert float(norm) == pytest.approx(NORMS[norm_type], rel=1e-12)
    assert gradients(parameters) == pytest.approx([g * 6.5 / NORMS[norm_type] for g in GRADIENTS], rel=1e-6)


@pytest.mark.parametrize("make", [tensors, scalars])
def test_smaller_gradients_stay_as_they_are(make: Any) -> None:
    parameters = make()
    clip_grad_norm_(parameters, 20.0)
    clip_grad_value_(parameters, 12.0)
    assert gradients(parameters) == GRADIENTS


@pytest.mark.parametrize("make", [tensors, scalars])
def test_elements_are_limited(make: Any) -> None:
    parameters = make()
    clip_grad_value_(parameters, 3.5)
    assert gradients(parameters) == [3.0, -3.5, 3.5]


def test_one_tensor_needs_no_list() -> None:
    (x, *_) = tensors()
    assert float(clip_grad_norm_(x, 1.0)) == 5.0


@pytest.mark.parametrize("over", ["tensors", "scalars"])
def test_a_compiled_step_gives_the_bits_of_an_undecorated_one(over: str) -> None:
    def trained(decorate: Any) -> list[Any]:
        x: Any = T.asarray([1.0, -2.0], requires_grad=True)
        values = [mgjit.Value(1.0), mgjit.Value(-2.0)]

        @decorate
        def step(y: float) -> Any:
            loss = (x * x * x).sum() * y if over == "tensors" else sum(v * v * v for v in values) * y
            parameters = [x] if over == "tensors" else values
            for p in parameters:
                p.grad = 0.0
            loss.backward()
            norm = clip_grad_norm_(parameters, 2.0)
            clip_grad_value_(parameters, 1.5)
            return norm

        norms = [float(step(y)).hex() for y in (0.01, 1.0, 5.0)]
        return [norms, [g.hex() for g in gradients([x, *values])]]

    assert trained(mgjit.compile(background=False, backend="python")) == trained(lambda f: f)
