"""Stochastic gradient descent, with momentum (Sutskever et al. 2013, in PyTorch's form)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import ArgumentValueError, user_location
from .group import Group
from .optimizer import Optimizer


class SGD(Optimizer):
    """x - lr * v, where v is `momentum * v + (1 - dampening) * g`; the first v is g.

    Args:
        params, further: see `Optimizer`.
        lr: the learning rate.
        momentum: the share of v that stays; at 0.0 nothing is remembered.
        dampening: see above.
        weight_decay: this share of x is added to its gradient.
        nesterov: whether the step is `g + momentum * v` instead of v.
    """

    counts = 1  # of steps: 0.0 before the first one, then 1.0

    def __init__(
        self, params: Any, lr: float = 0.001, momentum: float = 0.0, dampening: float = 0.0, weight_decay: float = 0.0,
        nesterov: bool = False, **further: Any,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
        }, further)  # fmt: skip

    def check(self, options: Mapping[str, Any]) -> None:
        super().check(options)
        if options["nesterov"] and (options["momentum"] <= 0 or options["dampening"] != 0):
            raise ArgumentValueError(f"{user_location()}: nesterov needs a momentum, and no dampening.")

    def state_names(self, options: Mapping[str, Any]) -> list[str]:
        return ["momentum_buffer"] if options["momentum"] else []

    def prepare(self, group: Group) -> Any:
        if not group["dampening"] or not group["momentum"]:
            return group.lr, 1.0
        share = 1.0 - group["dampening"] * group.counts[0]
        group.counts[0] = 1.0
        return group.lr, share

    def update(self, group: Group, prepared: Any, x: Any, g: Any, *state: Any) -> tuple[Any, ...]:
        rate, share = prepared
        if group["weight_decay"]:
            g = g + group["weight_decay"] * x
        if not state:
            return (x - rate * g,)
        v = group["momentum"] * state[0] + (share * g if group["dampening"] else g)
        return x - rate * (g + group["momentum"] * v if group["nesterov"] else v), v
