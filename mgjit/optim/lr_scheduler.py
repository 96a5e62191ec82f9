"""Schedules of learning rates, under PyTorch's names.

A schedule is a function of the number of steps, `at(base, t)`, where base is the learning rate that a group had at
first.  So it can be taken up at any step, and put together with others.  `step()` can be called between steps or inside
of a compiled one; what it changes is no reason to trace again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..errors import ArgumentError, ArgumentValueError, described, user_location
from .optimizer import Optimizer


class LRScheduler:
    """The base class of schedules; its own changes nothing.

    Args:
        optimizer: whose learning rates are assigned, at once and in each `step()`.
        last_epoch: after how many steps it goes on, less one.  -1 begins, with the rates that the optimiser has.

    Attributes:
        base_lrs: the learning rate of each group before it had any schedule.
        last_epoch: how many steps there were.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = _checked(optimizer)
        for group in optimizer.param_groups:
            if group.initial_lr is None:
                group.initial_lr = group.lr
        self.base_lrs = [group.initial_lr for group in optimizer.param_groups]
        self.last_epoch = last_epoch + 1
        self._assign()

    def at(self, base: Any, t: Any) -> Any:
        """The learning rate after t steps, of a group that began with `base`."""
        return base

    def step(self) -> None:
        """One step more: assign the next learning rates."""
        self.last_epoch += 1
        self._assign()

    def _assign(self) -> None:
        for group, rate in zip(self.optimizer.param_groups, self.get_last_lr()):
            group["lr"] = rate

    def rates(self, bases: Sequence[Any], t: Any) -> list[Any]:
        """The learning rates of all groups after t steps, of groups that began with `bases`."""
        return [self.at(base, t) for base in bases]

    def get_last_lr(self) -> list[Any]:
        """The learning rates that the last step has assigned."""
        return self.rates(self.base_lrs, self.last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` needs to go on: numbers in a dict."""
        return {"last_epoch": self.last_epoch, "base_lrs": list(self.base_lrs)}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Go on as the schedule from which `state_dict` is.

        Raises:
            ArgumentValueError: it is of something else.
        """
        if saved.keys() != {"last_epoch", "base_lrs"}:
            raise ArgumentValueError(f"{user_location()}: that is no state of a schedule: it has {list(saved)}.")
        if len(saved["base_lrs"]) != len(self.base_lrs):
            raise ArgumentValueError(
                f"{user_location()}: a schedule of {len(saved['base_lrs'])} groups, for {len(self.base_lrs)}."
            )
        self.last_epoch, self.base_lrs = saved["last_epoch"], list(saved["base_lrs"])
        self._assign()


class LambdaLR(LRScheduler):
    """base * lr_lambda(t).

    Args:
        optimizer, last_epoch: see `LRScheduler`.
        lr_lambda: a function of the number of steps, or a list with one for each group.
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        is_list = isinstance(lr_lambda, (list, tuple))
        groups = len(_checked(optimizer).param_groups)
        self.lr_lambdas = list(lr_lambda) if is_list else [lr_lambda] * groups
        if len(self.lr_lambdas) != groups or not all(map(callable, self.lr_lambdas)):
            raise ArgumentError(
                f"{user_location()}: lr_lambda is a function, or a list of {groups}, one for each group, and not the "
                f"{described(lr_lambda)}."
            )
        super().__init__(optimizer, last_epoch)

    def rates(self, bases: Sequence[Any], t: Any) -> list[Any]:
        return [base * rule(t) for base, rule in zip(bases, self.lr_lambdas)]


class StepLR(LRScheduler):
    """base * gamma ** (t // step_size): by the factor gamma every `step_size` steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        _require_steps("step_size", step_size)
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def at(self, base: Any, t: Any) -> Any:
        return base * self.gamma ** (t // self.step_size)


class MultiStepLR(LRScheduler):
    """By the factor gamma at each of the milestones, which are numbers of steps."""

    def __init__(
        self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = tuple(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def at(self, base: Any, t: Any) -> Any:
        for milestone in self.milestones:
            base = base * self.gamma if t >= milestone else base
        return base


class ExponentialLR(LRScheduler):
    """base * gamma ** t."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def at(self, base: Any, t: Any) -> Any:
        return base * self.gamma**t


class CosineAnnealingLR(LRScheduler):
    """From base to `eta_min` in `T_max` steps, along half a wave of a cosine (Loshchilov and Hutter 2017)."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        _require_steps("T_max", T_max)
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def at(self, base: Any, t: Any) -> Any:
        return self.eta_min + (base - self.eta_min) * ((1.0 + math.cos(math.pi * t / self.T_max)) / 2.0)


class LinearLR(LRScheduler):
    """base times a factor that goes from `start_factor` to `end_factor` in `total_iters` steps: a warm-up."""

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1.0 / 3.0, end_factor: float = 1.0, total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        _require_steps("total_iters", total_iters)
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def at(self, base: Any, t: Any) -> Any:
        share = min(t, self.total_iters) / self.total_iters
        return base * (self.start_factor + (self.end_factor - self.start_factor) * share)


class OneCycleLR(LRScheduler):
    """From max_lr / div_factor up to `max_lr`, and down to a `final_div_factor`-th of where it began (Smith 2018).

    PyTorch moves the momentum as well, unless cycle_momentum=False; here it stays.

    Args:
        optimizer, last_epoch: see `LRScheduler`.
        max_lr: of all groups.
        total_steps: of the whole cycle; or else
        epochs, steps_per_epoch: which are multiplied.
        pct_start: the share of the steps that go up.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: True is refused.
        div_factor, final_div_factor: see above.
    """

    def __init__(
        self, optimizer: Optimizer, max_lr: float, total_steps: int | None = None, epochs: int | None = None,
        steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: str = "cos",
        cycle_momentum: bool = False, div_factor: float = 25.0, final_div_factor: float = 1e4, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if total_steps is None:
            total_steps = (epochs or 0) * (steps_per_epoch or 0)
        _require_steps("total_steps", total_steps)
        if cycle_momentum or anneal_strategy not in ("cos", "linear"):
            raise ArgumentValueError(
                f"{user_location()}: OneCycleLR leaves the momentum as it is (cycle_momentum=False), and goes along a "
                f"'cos' or 'linear', not {anneal_strategy!r}."
            )
        self.max_lr, self.total_steps, self.is_linear = max_lr, total_steps, anneal_strategy == "linear"
        self.turn, self.end = pct_start * total_steps - 1.0, total_steps - 1.0
        self.first, self.last = max_lr / div_factor, max_lr / div_factor / final_div_factor
        super().__init__(optimizer, last_epoch)

    def at(self, base: Any, t: Any) -> Any:
        up = self._between(self.first, self.max_lr, t / self.turn) if self.turn > 0.0 else self.max_lr
        down = self._between(self.max_lr, self.last, (t - self.turn) / max(self.end - self.turn, 1.0))
        return up if t <= self.turn else down

    def _between(self, start: float, end: float, share: Any) -> Any:
        if self.is_linear:
            return start + (end - start) * share
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1.0)


class ReduceLROnPlateau:
    """The learning rate times `factor` when a number, such as a loss, has not become better for some steps.

    `step(number)` is called between compiled steps.

    Args:
        optimizer: whose learning rates are assigned.
        mode: "min" if smaller numbers are better, or "max".
        factor: see above.
        patience: after how many steps that are not better.
        threshold: how much better a number must be: this share of the best ("rel"), or this much ("abs").
        threshold_mode: "rel" or "abs".
        cooldown: steps after a change that do not count.
        min_lr: rates do not become smaller.
        eps: changes that are not larger are left out.

    Attributes:
        best: the best number so far.
        num_bad_epochs, cooldown_counter, last_epoch: how many steps were not better, how many do not count, and all.
    """

    def __init__(
        self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
        threshold_mode: str = "rel", cooldown: int = 0, min_lr: float = 0.0, eps: float = 1e-8,
    ) -> None:  # fmt: skip
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs") or not factor < 1.0:
            raise ArgumentValueError(
                f"{user_location()}: ReduceLROnPlateau has mode 'min' or 'max', threshold_mode 'rel' or 'abs', and a "
                f"factor below 1, not {mode!r}, {threshold_mode!r} and {factor!r}."
            )
        self.optimizer, self.mode, self.factor, self.patience = _checked(optimizer), mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown = threshold, threshold_mode, cooldown
        self.min_lr, self.eps = min_lr, eps
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0

    def step(self, metrics: Any) -> None:
        """Count an epoch with this metric; after `patience` epochs without a better one, reduce the rates."""
        number = float(metrics)
        self.last_epoch += 1
        if self._is_better(number):
            self.best, self.num_bad_epochs = number, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown_counter - 1, 0
        if self.num_bad_epochs > self.patience:
            for group in self.optimizer.param_groups:
                rate = max(group.lr * self.factor, self.min_lr)
                if group.lr - rate > self.eps:
                    group["lr"] = rate
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

    def _is_better(self, number: float) -> bool:
        sign = 1.0 if self.mode == "min" else -1.0
        far = abs(self.best) * self.threshold if self.threshold_mode == "rel" else self.threshold
        return math.isinf(self.best) or sign * number < sign * self.best - far

    def get_last_lr(self) -> list[Any]:
        """The learning rates of the groups."""
        return [group.lr for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` needs to go on."""
        names = ("best", "num_bad_epochs", "cooldown_counter", "last_epoch")
        return {name: vars(self)[name] for name in names}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Go on as the schedule from which `state_dict` is."""
        if saved.keys() != self.state_dict().keys():
            raise ArgumentValueError(f"{user_location()}: that is no state of this schedule: it has {list(saved)}.")
        vars(self).update(saved)


class SequentialLR(LRScheduler):
    """One schedule after the other: at each of the milestones the next one begins, at its step 0.

    Args:
        optimizer, last_epoch: see `LRScheduler`.
        schedulers: schedules of this optimiser.
        milestones: numbers of steps, one less than schedules.
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        if len(schedulers) != len(milestones) + 1:
            raise ArgumentValueError(
                f"{user_location()}: {len(schedulers)} schedules need {len(schedulers) - 1} milestones, not "
                f"{len(milestones)}."
            )
        if any(one.optimizer is not optimizer for one in schedulers):
            raise ArgumentValueError(f"{user_location()}: a schedule of another optimiser.")
        self.schedulers, self.milestones = tuple(schedulers), tuple(milestones)
        super().__init__(optimizer, last_epoch)

    def rates(self, bases: Sequence[Any], t: Any) -> list[Any]:
        found = self.schedulers[0].rates(bases, t)
        for scheduler, milestone in zip(self.schedulers[1:], self.milestones):
            following = scheduler.rates(bases, t - milestone)
            found = [new if t >= milestone else old for old, new in zip(found, following)]
        return found


def _checked(optimizer: Any) -> Optimizer:
    if not isinstance(optimizer, Optimizer):
        raise ArgumentError(f"{user_location()}: a schedule needs an optimiser, not the {described(optimizer)}.")
    return optimizer


def _require_steps(name: str, count: Any) -> None:
    if not count >= 1:
        raise ArgumentValueError(f"{user_location()}: a schedule with {name}={count!r}; it must be at least 1.")
