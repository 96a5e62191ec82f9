"""Tensors among the arguments and results of a step: what is an input, and what is the very tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit import nn, optim
from mgjit import tensor as T


class Recurrent:
    """A step with a state of its own, which may also be its argument.

    Args:
        options: of the step; None for plain Python.
    """

    def __init__(self, **options: Any) -> None:
        self.state = state = T.zeros(2)

        def step(x: Any, h: Any) -> Any:
            state[...] = state * 0.5 + x
            return (h * x).sum()

        self.plain, self.step = step, mgjit.compile(step, **options)


def pair() -> tuple[Recurrent, Recurrent, Callable[[], Any], Callable[[], Any]]:
    """Two of them, compiled after a few calls with other tensors, and how each is called."""
    plain, compiled = Recurrent(), Recurrent(background=False)
    for one, step in ((plain, plain.plain), (compiled, compiled.step)):
        for _ in range(4):
            step(T.ones(2), T.ones(2))
        assert one.state.shape == (2,)
    return plain, compiled, plain.plain, compiled.step


@pytest.mark.filterwarnings("ignore::mgjit.errors.BackendWarning")
@pytest.mark.parametrize(
    "alias",
    [lambda t: t, lambda t: t.detach(), lambda t: t[...], lambda t: t[:1], lambda t: t[:1].broadcast_to(2)],
)
def test_01_an_argument_that_shares_memory_with_state(alias: Callable[[Any], Any]) -> None:
    """It is read after it has been assigned."""
    plain, compiled, run_plain, run_compiled = pair()
    for k in range(5):
        x = T.asarray([1.0 + k, 2.0])
        assert run_compiled(x, alias(compiled.state)).tolist() == run_plain(x, alias(plain.state)).tolist()
        assert run_compiled(x, T.ones(2)).tolist() == run_plain(x, T.ones(2)).tolist()
    assert compiled.state.tolist() == plain.state.tolist()


def test_02_it_is_so_in_the_first_call_as_well() -> None:
    """The trace is what shows that the step assigns the tensor."""
    plain, compiled = Recurrent(), Recurrent(background=False)
    for _ in range(4):
        assert compiled.step(T.ones(2), compiled.state).tolist() == plain.plain(T.ones(2), plain.state).tolist()
    assert compiled.step.stats.plain_calls <= 1


@pytest.mark.filterwarnings("ignore::mgjit.errors.BackendWarning")
def test_03_a_part_of_the_state_is_left_to_plain_python() -> None:
    """And says why."""
    _, compiled, _, step = pair()
    step(T.ones(2), compiled.state[:1])
    assert "is a part of a tensor that the step assigns" in str(compiled.step.stats.plain_reasons)


def test_04_a_parameter_and_its_gradient() -> None:
    """The optimiser assigns the one, the backward pass the other."""

    def run(compiled: bool) -> list[float]:
        w = T.ones(2, requires_grad=True)
        optimizer = optim.SGD([w], lr=0.1)

        def step(h: Any) -> Any:
            optimizer.zero_grad()
            (w * w).sum().backward()
            optimizer.step()
            return h.sum()

        call = mgjit.compile(step, background=False) if compiled else step
        found = [call(T.ones(2)).tolist() for _ in range(4)]
        found += [call(w.detach()).tolist() for _ in range(3)]
        return found + [call(w.grad).tolist() for _ in range(3)]

    assert run(True) == run(False)


def test_05_in_containers_and_loops() -> None:
    """Wherever the tensor lies."""

    def run(compiled: bool) -> list[Any]:
        state = T.zeros(2)

        def step(batch: Any, scale: float) -> Any:
            state[...] = state + batch["x"]
            return (batch["h"][0] * scale).sum()

        call: Any = mgjit.compile(step, background=False) if compiled else step
        found = [call({"x": T.ones(2), "h": [T.ones(2)]}, 2.0).tolist() for _ in range(4)]
        found += [call({"x": T.ones(2), "h": [state]}, 2.0).tolist() for _ in range(3)]
        rows = [{"x": T.ones(2), "h": [state]} for _ in range(3)]
        looped = call.loop(rows, 2.0).tolist() if compiled else [step(row, 2.0).item() for row in rows]
        return [found, looped]

    assert run(True) == run(False)


def test_06_another_step_only_reads_it() -> None:
    """Then it is an input like others, whichever tensor it is."""
    plain, compiled, _, _ = pair()
    reader = mgjit.compile(lambda x: (x * 2.0).sum(), background=False)
    for state in (plain.state, compiled.state, T.ones(2)):
        assert reader(state).item() == 2.0 * sum(state.tolist())
    assert reader.stats.traces == 1


def test_07_tensors_that_existed_before_are_returned_themselves() -> None:
    """Assigned or not; views of them share their memory."""
    state, constant, w = T.zeros(2), T.ones(2), nn.Parameter(T.ones(2))
    norm = nn.BatchNorm1d(2)

    @mgjit.compile(background=False)
    def step(x: Any) -> Any:
        state[...] = state + x
        norm(T.ones((3, 2)) * x)
        return state, {"c": constant}, w, state[:1], norm.running_mean, x

    for k in range(5):
        x = T.ones(2)
        whole, held, parameter, view, mean, given = step(x)
        assert whole is state
        assert held["c"] is constant
        assert parameter is w
        assert mean is norm.running_mean
        assert given is x
        view += 1.0
        assert state.tolist() == [2.0 * (k + 1), 1.0 + k]


@pytest.mark.filterwarnings("ignore::mgjit.errors.BackendWarning")
def test_08_an_array_over_the_memory_of_state() -> None:
    """It shares the memory, too."""
    numpy = pytest.importorskip("numpy")

    def run(compiled: bool) -> list[Any]:
        state = T.zeros(2)

        def step(x: Any, h: Any) -> Any:
            state[...] = state + x
            return h[0] + h[1]

        call: Any = mgjit.compile(step, background=False) if compiled else step
        found = [float(call(T.ones(2), numpy.ones(2))) for _ in range(4)]
        for array in (state.numpy(), numpy.asarray(state), state.numpy()[:], memoryview(state.numpy())):
            found += [float(call(T.ones(2), array)) for _ in range(2)]
        assert not compiled or "is the memory of a tensor that the step assigns" in str(call.stats.plain_reasons)
        return found

    assert run(True) == run(False)
