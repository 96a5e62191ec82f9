"""Tensors that a step leaves in objects and variables, and finds there in its next call."""

from __future__ import annotations

import random
import warnings
from typing import Any, Callable

import pytest

import mgjit
from mgjit import nn
from mgjit import tensor as T

#: A variable that a step rebinds.
mean = T.zeros(4)


class Net:
    """What steps change."""

    def __init__(self) -> None:
        random.seed(1)
        self.w, self.u = (T.randn(shape).requires_grad_() for shape in ((3, 4), (4, 4)))
        self.h, self.c, self.other = (T.zeros((2, 4)) for _ in range(3))
        self.state = T.zeros((2, 4)), {"c": T.ones((2, 4))}
        self.mask = T.ones((2, 4)) > 0.0
        self.extra: Any = None

    def cell(self, x: Any, h: Any) -> Any:
        """The next hidden state."""
        return T.tanh(x @ self.w + h @ self.u)

    def train(self, loss: Any) -> Any:
        """One update."""
        self.w.grad, self.u.grad = None, None
        loss.backward()
        with mgjit.no_grad():
            self.w -= 0.1 * self.w.grad
            self.u -= 0.1 * self.u.grad
        return loss


Step = Callable[[Any, Any], Any]
COMPILED: dict[str, Step] = {}
PLAIN: dict[str, Step] = {}


def step(into: dict[str, Step]) -> Callable[[Step], Step]:
    """Put a step into a table."""
    return lambda function: into.setdefault(function.__name__, function)


@step(COMPILED)
def hidden_state(net: Net, x: Any) -> Any:
    h = net.cell(x, net.h)
    loss = net.train((h * h).sum())
    net.h = h.detach()
    return loss


@step(COMPILED)
def with_a_graph_that_ends_in_the_next_call(net: Net, x: Any) -> Any:
    h = net.cell(x, net.h.detach())
    net.train((h * h).sum())
    net.h = h


@step(COMPILED)
def that_is_returned(net: Net, x: Any) -> Any:
    with mgjit.no_grad():
        h = net.cell(x, net.h)
        net.h = h
    return h, h.T, net.h


@step(COMPILED)
def in_containers(net: Net, x: Any) -> Any:
    h, more = net.state
    c = 0.5 * more["c"] + net.cell(x, h)
    loss = net.train((c * c).sum())
    net.state = T.tanh(c).detach(), {"c": c.detach()}
    return loss


@step(COMPILED)
def over_one_memory(net: Net, x: Any) -> Any:
    with mgjit.no_grad():
        net.h = net.c = net.cell(x, net.h)
        net.extra = net.c[0], net.c.T
        both = T.cat([net.h, x @ net.w])
        net.left, net.right = both[:2], both[2:, 1:]
    return net.h.sum()


@step(COMPILED)
def none_at_first(net: Net, x: Any) -> Any:
    with mgjit.no_grad():
        net.extra = net.cell(x, T.ones((2, 4)) if net.extra is None else net.extra)
    return net.extra.sum()


@step(COMPILED)
def of_another_shape_at_first(net: Net, x: Any) -> Any:
    with mgjit.no_grad():
        net.h = 0.9 * net.h + 0.1 * (x @ net.w).mean(0, keepdim=True).expand_dims(0)
    return net.h.sum()


@step(COMPILED)
def average_of_parameters(net: Net, x: Any) -> Any:
    loss = net.train(((x @ net.w) ** 2).sum())
    with mgjit.no_grad():
        net.extra = net.w.copy() if net.extra is None else 0.9 * net.extra + 0.1 * net.w
    return loss


@step(COMPILED)
def a_variable(net: Net, x: Any) -> Any:
    global mean
    with mgjit.no_grad():
        mean = 0.9 * mean + 0.1 * (x @ net.w).mean(0)
    return mean.sum()


@step(COMPILED)
def bools_ints_and_the_argument(net: Net, x: Any) -> Any:
    with mgjit.no_grad():
        y = T.where(net.mask, x @ net.w, 0.0)
        net.mask, net.best, net.extra = y > 0.0, y.argmax(1), x
    return y.sum()


@step(PLAIN)
def a_graph_that_goes_on(net: Net, x: Any) -> Any:
    h = net.cell(x, net.h)
    net.train((h * h).sum())
    net.h = h


@step(PLAIN)
def changed_in_place_as_well(net: Net, x: Any) -> Any:
    with mgjit.no_grad():
        net.h[0] = 1.0
        net.h = net.cell(x, net.h)
    return net.h.sum()


@step(PLAIN)
def that_moves_on(net: Net, x: Any) -> Any:
    with mgjit.no_grad():
        net.other = net.h
        net.h = net.cell(x, net.h)
    return (net.h - net.other).sum()


@step(PLAIN)
def a_view_of_a_parameter(net: Net, x: Any) -> Any:
    net.extra = net.w.detach()
    return net.train((x @ net.w).sum())


@step(PLAIN)
def a_new_parameter(net: Net, x: Any) -> Any:
    with mgjit.no_grad():
        net.w = net.w - 0.1 * x.sum()
    return (x @ net.w).sum()


def numbers(thing: Any) -> Any:
    """What can be compared."""
    if isinstance(thing, T.Tensor):
        return thing.shape, thing.dtype.name, [float(x).hex() for x in thing.tolist_flat()]
    if isinstance(thing, dict):
        return {name: numbers(part) for name, part in thing.items()}
    return list(map(numbers, thing)) if isinstance(thing, (list, tuple)) else thing


def leaves(thing: Any) -> list[T.Tensor]:
    """The tensors in something."""
    if isinstance(thing, T.Tensor):
        return [thing]
    parts = thing.values() if isinstance(thing, dict) else thing if isinstance(thing, (list, tuple)) else ()
    return [leaf for part in parts for leaf in leaves(part)]


def course(function: Step, changes: bool) -> list[Any]:
    """What six calls leave: numbers, and which tensors share their memory, also where the program changes some."""
    global mean
    mean = T.zeros(4)
    net, found = Net(), []
    random.seed(5)
    for number in range(6):
        x = T.randn((2, 3))
        try:
            returned = function(net, x)
        except mgjit.errors.GradientError:
            returned = "GradientError"
        tensors = [*leaves(vars(net)), *leaves(returned)]
        shared = [[one._memory is other._memory for other in tensors] for one in tensors]
        found.append((numbers(returned), numbers(vars(net)), numbers(mean), shared, net.extra is x))
        if changes and number == 2 and function.__name__ in ("that_is_returned", "over_one_memory", "a_variable"):
            net.h[0] = 3.0
        if changes and number == 3:
            net.h = net.c = T.ones((2, 4))
        if changes and number == 4:
            net.h = T.zeros((1, 4))
    return found


@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize("name", [*COMPILED, *PLAIN])
def test_steps_leave_what_plain_python_leaves(name: str, changes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MGJIT_REFUSE")
    function = {**COMPILED, **PLAIN}[name]
    compiled: Any = mgjit.compile(function, background=False, backend="python")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = course(function, changes)
        assert course(compiled, changes) == expected
    if not changes:
        assert compiled.stats.plain_calls <= 2 if name in COMPILED else compiled.stats.calls == 0


def test_modules_and_rows() -> None:
    class Cell(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.h = nn.Linear(5, 2), T.zeros(2)

        def forward(self, x: Any) -> Any:
            self.h = T.tanh(self.linear(T.cat([x, self.h])))
            return self.h.sum()

    def rows(is_compiled: bool) -> Any:
        random.seed(2)
        model = Cell()

        def advance(x: Any) -> Any:
            with mgjit.no_grad():
                return model(x)

        random.seed(3)
        xs = T.randn((7, 3))
        if not is_compiled:
            return [float(advance(xs[k])) for k in range(7)], model.h.tolist()
        step = mgjit.compile(advance, background=False, backend="python")
        found = step.loop(xs)
        assert step.stats.plain_calls == 0
        return found.tolist(), model.h.tolist()

    assert rows(True) == rows(False)
