"""autograd/chosen_gradients.py and chosen_backward.py: backward passes in which a traced index chooses nodes."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit.errors import TraceError
from tests.tracing.autograd.nodes import Factors

CLASSES, WIDTH = 5, 4


def classifier(loss_of: Callable[[list[Any], Any, int], Any], seed: int = 0) -> tuple[list[Any], Callable[..., Any]]:
    """A step over a layer, and its parameters."""
    draw = random.Random(seed)
    rows = [[Factors(draw.uniform(-1, 1)) for _ in range(WIDTH)] for _ in range(CLASSES)]
    first = [[Factors(draw.uniform(-1, 1)) for _ in range(WIDTH)] for _ in range(WIDTH)]
    weights = [w for row in rows + first for w in row]

    def dot(row: list[Any], xs: list[Any]) -> Any:
        return sum((a * b for a, b in zip(row, xs)), Factors(0))

    def step(xs: list[float], target: int, again: int = 0) -> Any:
        hidden = [dot(row, [Factors(x) for x in xs]).sine() for row in first]
        outputs = [dot(row, hidden) for row in rows]
        loss, seen = loss_of(outputs, target, again)
        loss.backward()
        result = [loss.value, *[node.grad for node in seen], hidden[1].grad]
        for weight in weights:
            weight.value -= 0.05 * weight.grad
            weight.grad = 0
        return result

    return weights, step


def shared_total(outputs: list[Any], target: int, again: int) -> Any:
    squares = [o * o for o in outputs]
    total = sum(squares, Factors(1.0))
    return squares[target] / total * -1, []  # type: ignore[index]


def chosen_alone(outputs: list[Any], target: int, again: int) -> Any:
    return outputs[target] * outputs[target], []


def used_before(outputs: list[Any], target: int, again: int) -> Any:
    return sum((o * 0.5 for o in outputs), Factors(0)) * outputs[target], []


def gradients_are_seen(outputs: list[Any], target: int, again: int) -> Any:
    total = sum(outputs, Factors(0.5))
    return outputs[target] / (total * total + 1.0), [outputs[0], outputs[3], outputs[target], total]


def used_twice(outputs: list[Any], target: int, again: int) -> Any:
    chosen = outputs[target]
    return chosen * chosen + chosen * 0.3 + sum((o * o for o in outputs), Factors(0)) * 0.1, [chosen]


def two_lists(outputs: list[Any], target: int, again: int) -> Any:
    squares = [o * o + 0.1 for o in outputs]
    cubes = [o * o * o for o in outputs]
    return squares[target] * 2.0 + cubes[again] * 0.5 + sum(cubes, Factors(0)), []


LOSSES = [shared_total, chosen_alone, used_before, gradients_are_seen, used_twice]


@pytest.mark.parametrize("loss_of", LOSSES)
@pytest.mark.parametrize("symbolic", [True, False])
def test_01_every_target(loss_of: Any, symbolic: bool) -> None:
    """Equal bit for bit, whichever is chosen; also when all operations are recorded."""
    mine, undecorated = classifier(loss_of)
    theirs, plain = classifier(loss_of)
    step = mgjit.compile(plain)
    if not symbolic:
        step._kernels.maker.knowledge.no_flow = "so that it is not tried"
    draw = random.Random(1)
    for target in [*range(CLASSES), *range(CLASSES)]:
        xs = [draw.uniform(-1, 1) for _ in range(WIDTH)]
        assert step(xs, target) == undecorated(xs, target)
        assert [(w.value, w.grad) for w in mine] == [(w.value, w.grad) for w in theirs]
    assert step.stats.traces == (2 if loss_of is chosen_alone else 1)  # which returns a gradient that was an int


def test_02_two_indices() -> None:
    """Into nodes that depend on the same others: right, or an error that says why."""
    mine, undecorated = classifier(two_lists)
    theirs, plain = classifier(two_lists)
    step = mgjit.compile(plain)
    for target, again in ((0, 1), (2, 2), (4, 0)):
        try:
            found = step([0.5, -0.25, 1.0, 0.75], target, again)
        except TraceError as error:
            assert "two traced indices" in str(error)  # noqa: PT017 - one of two outcomes
            return
        assert found == undecorated([0.5, -0.25, 1.0, 0.75], target, again)
        assert [w.value for w in mine] == [w.value for w in theirs]


def recurrent(
    loss_of: Callable[[list[list[Any]], list[list[Any]], list[int]], Any], seed: int = 0
) -> tuple[list[Any], Callable[..., Any]]:
    """A step over a sequence, with a choice at each time, and its parameters."""
    draw = random.Random(seed)
    rows = [[Factors(draw.uniform(-1, 1)) for _ in range(WIDTH)] for _ in range(CLASSES)]
    first = [[Factors(draw.uniform(-1, 1)) for _ in range(WIDTH)] for _ in range(WIDTH)]
    weights = [w for row in rows + first for w in row]

    def step(letters: list[int], rate: float) -> Any:
        hidden = [Factors(0.0) for _ in range(WIDTH)]
        times = []
        for letter in letters[:-1]:
            hidden = [
                (sum(w * h for w, h in zip(row, hidden)) + x).sine()  # type: ignore[misc]
                for row, x in zip(first, rows[letter])
            ]
            times.append(hidden)
        loss, seen = loss_of(rows, times, letters[1:])
        loss.backward()
        result = [loss.value, *[node.grad for node in seen], times[0][1].grad]
        for weight in weights:
            weight.value -= rate * weight.grad
            weight.grad = 0.0
        return result

    return weights, step


def scores_of(rows: list[list[Any]], hidden: list[Any]) -> list[Any]:
    return [sum(w * h for w, h in zip(row, hidden)) for row in rows]


def at_each_time(rows: list[list[Any]], times: list[list[Any]], targets: list[int]) -> Any:
    losses = []
    for hidden, target in zip(times, targets):
        squares = [s * s + 0.1 for s in scores_of(rows, hidden)]
        losses.append(squares[target] / sum(squares))
    return sum(losses) * -0.25, []


def scores_are_seen(rows: list[list[Any]], times: list[list[Any]], targets: list[int]) -> Any:
    scores = [scores_of(rows, hidden) for hidden in times]
    losses = [s[target] * s[target] + sum(s) * 0.3 for s, target in zip(scores, targets)]
    return sum(losses), [scores[0][1], scores[-1][targets[-1]]]


def with_decay(rows: list[list[Any]], times: list[list[Any]], targets: list[int]) -> Any:
    decay = sum(w * w for row in rows for w in row)
    losses = [scores_of(rows, hidden)[target] * decay for hidden, target in zip(times, targets)]
    return sum(losses) + decay * 0.1, [decay]


def with_a_square(rows: list[list[Any]], times: list[list[Any]], targets: list[int]) -> Any:
    loss = at_each_time(rows, times, targets)[0]
    return loss * loss, []


@pytest.mark.parametrize("loss_of", [at_each_time, scores_are_seen, with_decay, with_a_square])
def test_03_choices_that_add_to_gradients_in_turn_with_others(loss_of: Any) -> None:
    """A loss at each time of a recurrent network: its gradients take turns with those of the next time."""
    mine, undecorated = recurrent(loss_of)
    theirs, plain = recurrent(loss_of)
    step = mgjit.compile(plain)
    draw = random.Random(2)
    for _ in range(6):
        letters = [draw.randrange(CLASSES) for _ in range(5)]
        assert step(letters, 0.1) == undecorated(letters, 0.1)
        assert [(w.value, w.grad) for w in mine] == [(w.value, w.grad) for w in theirs]
    assert (step.stats.plain_calls, step.stats.traces) == (0, 1)


def test_04_choices_of_a_recurrent_network_are_one_pass() -> None:
    """And its times are a loop: the records of a time are the same, whichever it is."""
    _, plain = recurrent(at_each_time)
    lowered = {length: mgjit.compile(plain).lower([1] * length, 0.1) for length in (12, 20)}
    assert "symbolically" in lowered[12].explain()
    assert lowered[20].lowered.statements <= lowered[12].lowered.statements + 10
