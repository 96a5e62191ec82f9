"""Value: micrograd's results, gradients of every operation, deep graphs, copies, errors."""

from __future__ import annotations

import copy
import math
import operator
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import mgjit
from mgjit import Value
from tests.gradients import assert_gradient
from tests.workload import BACKENDS, missing

#: name: (function, points); away from the kinks, which have no derivative to compare with.
OPERATIONS: dict[str, tuple[Callable[..., Any], list[tuple[float, ...]]]] = {
    "a + b": (lambda a, b: a + b, [(0.3, -2.0)]),
    "a - b": (lambda a, b: a - b, [(0.3, -2.0)]),
    "a * b": (lambda a, b: a * b, [(0.3, -2.0), (0.0, 1.5)]),
    "a / b": (lambda a, b: a / b, [(0.3, -2.0), (-1.0, 0.25)]),
    "-a": (lambda a: -a, [(0.3,)]),
    "+a": (lambda a: +a, [(0.3,)]),
    "a + 2": (lambda a: a + 2, [(0.3,)]),
    "2 + a": (lambda a: 2 + a, [(0.3,)]),
    "a - 2": (lambda a: a - 2, [(0.3,)]),
    "2 - a": (lambda a: 2 - a, [(0.3,)]),
    "a * 2": (lambda a: a * 2, [(0.3,)]),
    "2 * a": (lambda a: 2 * a, [(0.3,)]),
    "a / 2": (lambda a: a / 2, [(0.3,)]),
    "2 / a": (lambda a: 2 / a, [(0.3,), (-0.7,)]),
    "a ** 2": (lambda a: a**2, [(0.3,), (-1.5,)]),
    "a ** 3": (lambda a: a**3, [(0.3,), (-1.5,)]),
    "a ** -1": (lambda a: a**-1, [(0.5,), (-1.5,)]),
    "a ** 0.5": (lambda a: a**0.5, [(0.5,), (2.0,)]),
    "a ** 0": (lambda a: a**0, [(0.5,)]),
    "a ** 1": (lambda a: a**1, [(-0.5,)]),
    "abs": (abs, [(0.3,), (-1.5,)]),
    "relu": (lambda a: a.relu(), [(0.3,), (-1.5,)]),
    "exp": (mgjit.exp, [(0.3,), (-3.0,)]),
    "log": (mgjit.log, [(0.3,), (4.0,)]),
    "tanh": (mgjit.tanh, [(0.3,), (-1.5,)]),
    "sqrt": (mgjit.sqrt, [(0.3,), (4.0,)]),
    "maximum": (mgjit.maximum, [(0.3, 0.9), (0.9, 0.3)]),
    "minimum": (mgjit.minimum, [(0.3, 0.9), (0.9, 0.3)]),
    "maximum with a number": (lambda a: mgjit.maximum(0.5, a), [(0.3,), (0.9,)]),
    "minimum with a number": (lambda a: mgjit.minimum(a, 0.5), [(0.3,), (0.9,)]),
    "where": (lambda a, b: mgjit.where(a > b, a * b, a), [(0.3, 0.9), (0.9, 0.3)]),
    "where, one number": (lambda a, b: mgjit.where(a > b, 2.0, b * b), [(0.3, 0.9), (0.9, 0.3)]),
    "dot": (lambda a, b, c: mgjit.dot([a, b, 2.0], [b, c, a]), [(0.3, 0.9, -1.0)]),
    "sum": (lambda a, b, c: sum([a, b * c, a]), [(0.3, 0.9, -1.0)]),
    "a + a": (lambda a: a + a, [(0.3,)]),
    "a * a * a": (lambda a: a * a * a, [(0.3,)]),
    "a / a": (lambda a: a / a, [(0.3,)]),
    "reused twice": (lambda a, b: (a * b) * (a * b + a) - mgjit.tanh(a * b), [(0.3, 0.9)]),
}
CASES = [
    pytest.param(f, point, id=f"{name} at {point}") for name, (f, points) in OPERATIONS.items() for point in points
]


@pytest.mark.parametrize(("function", "point"), CASES)
@pytest.mark.parametrize("backend", ["gcc", "tcc", "python"])
@pytest.mark.sampled
def test_gradient(function: Callable[..., Any], point: tuple[float, ...], backend: str) -> None:
    if missing(backend):
        pytest.skip(f"{missing(backend)} is not installed")
    assert_gradient(function, point, **BACKENDS[backend])


def micrograd_example(a: Any, b: Any) -> Any:
    """The example of micrograd's README."""
    c = a + b
    d = a * b + b**3
    c += c + 1
    c += 1 + c + (-a)
    d += d * 2 + (b + a).relu()
    d += 3 * d + (b - a).relu()
    e = c - d
    f = e**2
    g = f / 2.0
    g += 10.0 / f
    return g


def test_micrograd_example() -> None:
    a, b = Value(-4.0), Value(2.0)
    g = micrograd_example(a, b)
    assert f"{g.data:.4f}" == "24.7041"
    g.backward()
    assert (f"{a.grad:.4f}", f"{b.grad:.4f}") == ("138.8338", "645.5773")
    assert_gradient(micrograd_example, (-4.0, 2.5))


def test_micrograd_example_compiled() -> None:
    a, b = Value(-4.0), Value(2.0)

    @mgjit.compile
    def step() -> Any:
        g = micrograd_example(a, b)
        g.backward()
        return g

    assert f"{step():.4f}" == "24.7041"
    assert (f"{a.grad:.4f}", f"{b.grad:.4f}") == ("138.8338", "645.5773")


@pytest.mark.parametrize("x", [0.1, 1 / 3, -7.3, 1e-300, 1e300])
@pytest.mark.parametrize("y", [0.2, -1 / 7, 3.0])
def test_results_are_those_of_float_arithmetic(x: float, y: float) -> None:
    a, b = Value(x), Value(y)
    for operation in (operator.add, operator.sub, operator.mul):
        assert operation(a, b).data == operation(a, y).data == operation(x, b).data == operation(x, y)
    assert (a / b).data == (x / b).data == (a / y).data == x * y**-1.0
    assert (a**3).data == (x**3 if abs(x) < 1e100 else math.copysign(math.inf, x))
    assert (-a).data == -x
    assert abs(a).data == abs(x)


def test_order_of_operands_decides_the_order_of_accumulation() -> None:
    """0.1, then 1e16, then -1e16 into one gradient: another order gives another float."""
    a = Value(1.0)
    (a * 0.1 + (a * 1e16 + a * -1e16)).backward()
    # Reverse creation order: the last product first.
    assert a.grad == ((0.0 + -1e16) + 1e16) + 0.1
    b = Value(1.0)
    ((b * 1e16 + b * -1e16) + b * 0.1).backward()
    assert b.grad == ((0.0 + 0.1) + -1e16) + 1e16
    assert a.grad != b.grad


def test_first_operand_receives_its_gradient_first() -> None:
    a = Value(3.0)
    a.grad = 1e16
    (a * a).backward()
    assert a.grad == (1e16 + 3.0) + 3.0 != 1e16 + (3.0 + 3.0)


def test_the_same_value_twice() -> None:
    a = Value(3.0)
    b = a + a
    b.backward()
    assert (b.data, a.grad) == (6.0, 2.0)


def test_leaves_accumulate_over_backward_calls_and_interior_nodes_start_anew() -> None:
    a = Value(2.0)
    square = a * a
    cube = square * a
    cube.backward()
    assert (a.grad, square.grad) == (12.0, 2.0)
    cube.backward()
    assert (a.grad, square.grad, cube.grad) == (24.0, 2.0, 1.0)


def test_backward_from_a_leaf_sets_its_gradient_to_one() -> None:
    a = Value(2.0)
    a.grad = 5.0
    a.backward()
    assert a.grad == 1.0


def test_backward_sees_the_data_of_now() -> None:
    """As micrograd: data that was changed after the forward pass takes part in the backward pass."""
    a, b = Value(2.0), Value(3.0)
    product = a * b
    b.data = 10.0
    product.backward()
    assert a.grad == 10.0


def test_unreached_values_keep_their_gradients() -> None:
    a, b = Value(2.0), Value(3.0)
    b.grad = 7.0
    a * b
    (a * 2).backward()
    assert (a.grad, b.grad) == (2.0, 7.0)


@pytest.mark.parametrize("n", [100_000])
def test_deep_chain(n: int) -> None:
    a = Value(1.0)
    node = a
    for _ in range(n):
        node = node + 1.0
    node.backward()
    assert (node.data, a.grad) == (1.0 + n, 1.0)


def test_deep_graph_with_two_paths_at_every_level() -> None:
    a = Value(1.0)
    node = a
    for _ in range(50_000):
        node = node * 0.5 + node * 0.5
    node.backward()
    assert (node.data, a.grad) == (1.0, 1.0)
    del node  # freeing a graph of this depth must not overflow the stack


def test_deep_compiled_step() -> None:
    a = Value(1.0)

    @mgjit.compile
    def step(x: Any) -> Any:
        node = a
        for _ in range(100_000):
            node = node + x
        node.backward()
        return node

    assert (step(1.0), a.grad) == (100_001.0, 1.0)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))])  # noqa: S301
@pytest.mark.parametrize("bound", [False, True])
def test_copies_and_pickles_are_independent_leaves(duplicate: Callable[[Value], Value], bound: bool) -> None:
    a = Value(1.5)
    if bound:  # its number lives in a kernel's buffer

        @mgjit.compile(backend="python")
        def step() -> Any:
            return a * 2

        step()
    a.grad = 0.25
    other = duplicate(a)
    assert type(other) is Value
    assert (other.data, other.grad) == (1.5, 0.25)
    other.data, other.grad = 9.0, 8.0
    assert (a.data, a.grad) == (1.5, 0.25)
    (other * 3).backward()
    assert (other.grad, a.grad) == (11.0, 0.25)


def test_deep_copy_of_a_result_leaves_the_graph_behind() -> None:
    a = Value(1.0)
    node = a
    for _ in range(20_000):
        node = node + 1.0
    other = copy.deepcopy(node)
    other.backward()
    assert (other.data, other.grad, a.grad) == (20_001.0, 1.0, 0.0)


def test_comparisons_are_those_of_the_data_and_equality_is_identity() -> None:
    a, b = Value(1.0), Value(2.0)
    assert a < b
    assert a <= 1.0
    assert b > a
    assert b >= 2.0
    assert not b < a
    assert operator.gt(2.0, a)
    assert operator.eq(a, a)
    assert a != Value(1.0)
    assert len({a, b, Value(1.0)}) == 3


@pytest.mark.parametrize("number", [2, 2.0, True, Fraction(1, 2)])
def test_data_becomes_a_float(number: Any) -> None:
    a = Value(number)
    assert type(a.data) is float
    assert (a.data, a.grad) == (float(number), 0.0)
    assert type((a + number).data) is float


@pytest.mark.parametrize("wrong", ["1.0", b"1", None, [1.0], 1j, {}, Value])
def test_what_is_not_a_number_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError):
        Value(wrong)
    for operation in (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow):
        with pytest.raises(TypeError):
            operation(Value(1.0), wrong)
        with pytest.raises(TypeError):
            operation(wrong, Value(1.0))


def test_a_value_of_a_value_is_refused() -> None:
    with pytest.raises(TypeError, match="Value"):
        Value(Value(1.0))


def test_power_of_two_values_says_what_to_write() -> None:
    with pytest.raises(TypeError, match="exp"):
        Value(2.0) ** Value(3.0)  # type: ignore[operator]


def test_attributes_cannot_be_misspelt() -> None:
    with pytest.raises(AttributeError):
        Value(1.0).dta = 2.0  # type: ignore[attr-defined]


def test_repr_is_that_of_micrograd() -> None:
    assert repr(Value(2)) == "Value(data=2.0, grad=0.0)"


def test_a_format_is_that_of_the_number() -> None:
    """As of what a compiled step returns, so that the line which shows a loss also runs with MGJIT_DISABLE=1."""
    assert f"{Value(0.12345):.3f} {Value(2.0)}" == "0.123 Value(data=2.0, grad=0.0)"
    compiled: Any = mgjit.compile(lambda x: Value(0.5) * x, background=False)
    assert {f"{compiled(0.25):8.4f}" for _ in range(3)} == {f"{Value(0.5) * 0.25:8.4f}"}


@pytest.mark.parametrize("x", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_flow_through(x: float) -> None:
    a = Value(x)
    results = [a + 1, a * 0.0, -a, a.relu(), a / a, mgjit.exp(a), mgjit.log(a), mgjit.tanh(a), mgjit.sqrt(a), a**2]
    for result in results:
        result.backward()
        assert isinstance(result.data, float)
    assert math.isnan((a * 0.0).data)
