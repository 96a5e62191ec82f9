"""Functions with derivatives of their own, and functions that are called along an axis."""

from __future__ import annotations

from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit import tensor as T
from mgjit.errors import ArgumentError, GradientError, ShapeError
from tests.tensor.cases import numbers


@mgjit.custom_gradient
def rounded(x: Any) -> Any:
    """Straight through."""
    return T.round(x), lambda g: g


@mgjit.custom_gradient
def product(x: Any, y: Any, scale: float = 1.0) -> Any:
    """x @ y, with what differentiating would give."""
    return x @ y * scale, lambda g: (g @ y.mT * scale, x.mT @ g * scale)


class Cube(T.autograd.Function):
    """In the manner of PyTorch."""

    @staticmethod
    def forward(ctx: Any, x: Any, scale: float) -> Any:
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x * x * x * scale

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (x,) = ctx.saved_tensors
        return gradient * 3.0 * x * x * ctx.scale, None


def network() -> Any:
    """A model whose parameters are known."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    for number, p in enumerate(model.parameters()):
        p.data = (T.arange(int(p.size), dtype="float64") * (0.3 + number)).cos().reshape(p.shape)
    return model


def test_gradients_are_those_that_the_function_says() -> None:
    x = T.asarray([1.2, -2.6], requires_grad=True)
    loss = (rounded(x) * x).sum() + rounded(x).sum()
    loss.backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1.0 + 1.2 + 1.0, -3.0 - 2.6 + 1.0]
    a, b = T.asarray([[1.0, 2.0]], requires_grad=True), T.asarray([[3.0], [0.5]], requires_grad=True)
    usual = T.autograd.grad(((a @ b) ** 2).sum() * 4.0, [a, b])
    own = T.autograd.grad((product(a, b, scale=2.0) ** 2).sum(), [a, b])
    assert numbers(own) == numbers(usual)
    slope = mgjit.grad(lambda x: Cube.apply(x, 2.0).sum())
    assert slope(T.asarray([1.0, 2.0])).tolist() == [6.0, 24.0]
    assert mgjit.jacobian(slope)(T.asarray([1.0, 2.0])).tolist() == [[12.0, 0.0], [0.0, 24.0]]
    assert not rounded(T.asarray([1.5])).requires_grad
    with mgjit.no_grad():
        assert not rounded(x).requires_grad


@pytest.mark.parametrize("options", [{"backend": "python"}, {}])
def test_compiled_steps_take_them(options: dict[str, Any]) -> None:
    def course(compiles: bool) -> Any:
        model = network()

        def step(x: Any, y: Any) -> Any:
            hidden = Cube.apply(model[1](model[0](x)), 0.5)
            loss = ((product(hidden, model[2].weight.mT) - rounded(y * 3.0)) ** 2).mean()
            model.zero_grad()
            loss.backward()
            with mgjit.no_grad():
                for p in model.parameters():
                    p -= 0.1 * p.grad  # noqa: PLW2901
            return loss

        made: Any = mgjit.compile(step, background=False, **options) if compiles else step
        given = T.asarray([[0.5, -1.0, 2.0], [1.0, 0.25, 0.0]]), T.asarray([[1.0, 0.2], [0.4, -0.9]])
        found = [numbers(made(*given)) for _ in range(4)]
        if compiles:
            assert made.stats.plain_calls == 0
        return found, numbers(list(model.parameters())), numbers([p.grad for p in model.parameters()])

    assert course(True) == course(False)


def test_wrong_gradients_are_refused() -> None:
    x = T.asarray([1.0, 2.0], requires_grad=True)
    for result, gradients, words in (
        (lambda x: x * 1.0, lambda g: (g, g), "2 gradients for 1 tensors"),
        (lambda x: x * 1.0, lambda g: 1.0, "returns the float 1.0, not a tensor"),
        (lambda x: x.sum(), lambda g: g, "shape .* for tensor 0, of shape"),
    ):
        function = mgjit.custom_gradient(lambda x, result=result, gradients=gradients: (result(x), gradients))
        with pytest.raises((GradientError, ShapeError), match=words):
            function(x).sum().backward()
    y = x * 2.0
    z = Cube.apply(y, 1.0).sum()
    y += 1.0
    with pytest.raises(GradientError, match="Cube needs an operand to which something has been assigned since"):
        z.backward()
    with pytest.raises(GradientError, match="a tensor and a function that returns gradients are needed"):
        mgjit.custom_gradient(lambda x: x)(x)


def test_functions_are_called_along_an_axis() -> None:
    model = network()

    def loss(x: Any, y: Any) -> Any:
        return ((model(x) - y) ** 2).sum()

    def per_sample(x: Any, y: Any) -> Any:
        slopes = mgjit.vmap(mgjit.grad(loss), in_dims=(1, None))(x, y)
        values, doubled = mgjit.vmap(lambda x: (model(x), x * 2.0), in_dims=1, out_dims=1)(x)
        return slopes, values, doubled

    x, y = (T.arange(18, dtype="float64") * 0.1).sin().reshape(3, 6), T.asarray([0.5, -0.5])
    expected = numbers(per_sample(x, y))
    slopes, values, doubled = per_sample(x, y)
    assert numbers(slopes[3]) == numbers(mgjit.grad(loss)(x[:, 3], y))
    assert numbers(values) == numbers(model(x.T).T)
    assert numbers(doubled) == numbers(x * 2.0)
    compiled = mgjit.compile(per_sample, background=False, backend="python")
    assert numbers(compiled(x, y)) == numbers(compiled(x, y)) == expected
    assert compiled.stats.plain_calls == 0


def test_what_has_no_axis_is_refused() -> None:
    double, x = mgjit.vmap(lambda x, y: x * y), T.ones((2, 3))
    with pytest.raises(ShapeError, match="2 and 3 places"):
        double(x, x.T)
    with pytest.raises(ArgumentError, match=r"axis 0 of argument 1, the float 2.0.*in_dims=None"):
        double(x, 2.0)
    with pytest.raises(ArgumentError, match="1 in_dims and 2 arguments"):
        mgjit.vmap(lambda x, y: x, in_dims=(0,))(x, x)
    with pytest.raises(ShapeError, match="no places"):
        mgjit.vmap(lambda x: x, in_dims=None)(x)
    with pytest.raises(ArgumentError, match=r"returns the float 1\.0"):
        mgjit.vmap(lambda x: 1.0)(x)
