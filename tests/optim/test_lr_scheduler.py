"""Schedules: their formulas, put together, taken up again, and inside of a compiled step."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit import optim
from mgjit import tensor as T
from mgjit.errors import ArgumentError, ArgumentValueError
from mgjit.optim import lr_scheduler as schedules

Make = Callable[[optim.Optimizer], schedules.LRScheduler]
CASES: dict[str, tuple[Make, Callable[[int], float]]] = {
    "LambdaLR": (lambda o: schedules.LambdaLR(o, lambda t: 1 / (1 + t)), lambda t: 0.5 / (1 + t)),
    "StepLR": (lambda o: schedules.StepLR(o, 3, gamma=0.2), lambda t: 0.5 * 0.2 ** (t // 3)),
    "MultiStepLR": (lambda o: schedules.MultiStepLR(o, [2, 5], 0.2), lambda t: 0.5 * 0.2 ** ((t >= 2) + (t >= 5))),
    "ExponentialLR": (lambda o: schedules.ExponentialLR(o, 0.9), lambda t: 0.5 * 0.9**t),
    "CosineAnnealingLR": (
        lambda o: schedules.CosineAnnealingLR(o, 6, eta_min=0.1),
        lambda t: 0.1 + 0.4 * (1 + math.cos(math.pi * t / 6)) / 2,
    ),
    "LinearLR": (lambda o: schedules.LinearLR(o, 0.2, total_iters=4), lambda t: 0.5 * (0.2 + 0.8 * min(t, 4) / 4)),
    "SequentialLR": (
        lambda o: schedules.SequentialLR(
            o,
            [schedules.LinearLR(o, 0.2, total_iters=2), schedules.ExponentialLR(o, 0.9), schedules.StepLR(o, 1)],
            [2, 5],
        ),
        lambda t: 0.5 * ((0.2 + 0.8 * t / 2) if t < 2 else 0.9 ** (t - 2) if t < 5 else 0.1 ** (t - 5)),
    ),
}


def optimizer_of_one() -> tuple[T.Tensor, optim.Optimizer]:
    x = T.ones(1, requires_grad=True)
    return x, optim.SGD([x], lr=0.5)


@pytest.mark.parametrize("name", CASES)
def test_the_learning_rates_are_those_of_the_formula(name: str) -> None:
    make, formula = CASES[name]
    _, optimizer = optimizer_of_one()
    scheduler = make(optimizer)
    for t in range(9):
        assert optimizer.param_groups[0]["lr"] == pytest.approx(formula(t), rel=1e-12)
        assert scheduler.get_last_lr() == [optimizer.param_groups[0]["lr"]]
        scheduler.step()


@pytest.mark.parametrize("name", CASES)
def test_a_schedule_in_a_compiled_step_gives_the_bits_of_an_undecorated_one(name: str) -> None:
    def trained(decorate: Any) -> tuple[list[Any], Any]:
        x, optimizer = optimizer_of_one()
        scheduler = CASES[name][0](optimizer)

        @decorate
        def step() -> Any:
            loss = (x * x * 0.1).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            return loss

        found = [(step().item().hex(), optimizer.param_groups[0]["lr"].hex(), scheduler.last_epoch) for _ in range(8)]
        return found, step

    found, step = trained(mgjit.compile(background=False, backend="python"))
    assert found == trained(lambda f: f)[0]
    assert step.stats.traces == 1


def test_a_schedule_goes_on_from_a_saved_state() -> None:
    _, optimizer = optimizer_of_one()
    scheduler = schedules.ExponentialLR(optimizer, 0.9)
    for _ in range(3):
        scheduler.step()
    _, other = optimizer_of_one()
    resumed = schedules.ExponentialLR(other, 0.9)
    resumed.load_state_dict(scheduler.state_dict())
    assert other.param_groups[0]["lr"] == optimizer.param_groups[0]["lr"]
    _, third = optimizer_of_one()
    assert schedules.ExponentialLR(third, 0.9, last_epoch=2).get_last_lr() == scheduler.get_last_lr()


def test_each_group_has_its_own_rate() -> None:
    x, y = T.ones(1, requires_grad=True), T.ones(1, requires_grad=True)
    optimizer = optim.SGD([{"params": [x], "lr": 1.0}, {"params": [y]}], lr=0.1)
    scheduler = schedules.ExponentialLR(optimizer, 0.5)
    scheduler.step()
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.05]


def test_each_group_has_its_own_function_also_in_a_sequence_and_in_a_compiled_step() -> None:
    def trained(decorate: Any) -> list[list[str]]:
        x, y = T.ones(1, requires_grad=True), T.ones(1, requires_grad=True)
        optimizer = optim.SGD([{"params": [x], "lr": 1.0}, {"params": [y]}], lr=0.1)
        rules = schedules.LambdaLR(optimizer, [lambda t: 0.5**t, lambda t: 1 / (1 + t)])
        scheduler = schedules.SequentialLR(optimizer, [rules, schedules.ExponentialLR(optimizer, 0.9)], [3])

        @decorate
        def step() -> Any:
            loss = (x * y).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            return loss

        return [[step().item().hex(), *(rate.hex() for rate in scheduler.get_last_lr())] for _ in range(5)]

    plain = trained(lambda f: f)
    assert trained(mgjit.compile(background=False, backend="python")) == plain
    assert [row[1:] for row in plain[:3]] == [[(0.5).hex(), (0.05).hex()], [(0.25).hex(), (0.1 * (1 / 3)).hex()],
                                              [(1.0).hex(), (0.1).hex()]]  # fmt: skip


def test_what_does_not_go_together_is_refused() -> None:
    _, optimizer = optimizer_of_one()
    _, other = optimizer_of_one()
    one = schedules.ExponentialLR(optimizer, 0.5)
    with pytest.raises(ArgumentError, match="needs an optimiser, not the"):
        schedules.ExponentialLR(one, 0.5)  # type: ignore[arg-type]
    with pytest.raises(ArgumentValueError, match="need 1 milestones, not 2"):
        schedules.SequentialLR(optimizer, [one, one], [1, 2])
    with pytest.raises(ArgumentValueError, match="of another optimiser"):
        schedules.SequentialLR(other, [one, one], [1])
    with pytest.raises(ArgumentValueError, match="a schedule of 2 groups, for 1"):
        one.load_state_dict({"last_epoch": 1, "base_lrs": [1.0, 2.0]})
    with pytest.raises(ArgumentValueError, match=r"no state of a schedule: it has \['epoch'\]"):
        one.load_state_dict({"epoch": 1})
    for rules in (3, [lambda t: 1.0, lambda t: 1.0]):
        with pytest.raises(ArgumentError, match="a function, or a list of 1, one for each group"):
            schedules.LambdaLR(optimizer, rules)
    for make in (schedules.StepLR, schedules.CosineAnnealingLR, lambda o, n: schedules.LinearLR(o, total_iters=n)):
        with pytest.raises(ArgumentValueError, match="=0; it must be at least 1"):
            make(optimizer, 0)


@pytest.mark.parametrize("strategy", ["cos", "linear"])
def test_one_cycle_goes_up_and_down(strategy: str) -> None:
    _, optimizer = optimizer_of_one()
    schedule = schedules.OneCycleLR(optimizer, 1.0, epochs=2, steps_per_epoch=10, anneal_strategy=strategy)
    rates = [optimizer.param_groups[0].lr]
    for _ in range(19):
        schedule.step()
        rates.append(optimizer.param_groups[0].lr)
    assert (rates[0], rates[5]) == (pytest.approx(1 / 25), 1.0)
    assert rates[-1] == pytest.approx(1 / 25 / 1e4)
    assert rates[:6] == sorted(rates[:6])
    assert rates[5:] == sorted(rates[5:], reverse=True)
    for wrong in ({"cycle_momentum": True}, {"anneal_strategy": "up"}):
        with pytest.raises(ArgumentValueError, match="leaves the momentum"):
            schedules.OneCycleLR(optimizer, 1.0, 20, **wrong)  # type: ignore[arg-type]


def test_a_plateau_lowers_the_rate_and_goes_on_as_saved() -> None:
    losses = [3.0, 2.0, 2.0, 2.5, 1.0, 1.0, 1.0, 1.0, 0.5, math.nan, math.nan, math.nan, math.nan]
    for place in (0, 4, 7):
        _, optimizer = optimizer_of_one()
        rate = optimizer.param_groups[0].lr
        schedule = schedules.ReduceLROnPlateau(optimizer, factor=0.5, patience=1, cooldown=1, min_lr=rate / 7)
        rates = []
        for k, loss in enumerate(losses):
            if k == place:
                saved, schedule = schedule.state_dict(), schedules.ReduceLROnPlateau(
                    optimizer, factor=0.5, patience=1, cooldown=1, min_lr=rate / 7
                )
                schedule.load_state_dict(saved)
            schedule.step(T.asarray(loss))
            rates.append(schedule.get_last_lr()[0] / rate)
        assert rates == pytest.approx([1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 1 / 7, 1 / 7, 1 / 7])
    with pytest.raises(ArgumentValueError, match="'down'"):
        schedules.ReduceLROnPlateau(optimizer, "down")
    with pytest.raises(ArgumentValueError, match="no state of this schedule"):
        schedule.load_state_dict({"best": 1.0})
