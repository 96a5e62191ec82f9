"""Steps that are divided by the size of past gradients: Adagrad, Adadelta, RMSprop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..engine.functions import sqrt
from .group import Group
from .optimizer import Optimizer


class Adagrad(Optimizer):
    """x - lr * g / (sqrt(s) + eps), where s is the sum of all g * g (Duchi et al. 2011).

    Args:
        params, further: see `Optimizer`.
        lr: the learning rate, which step t divides by `1 + (t - 1) * lr_decay`.
        lr_decay: see there.
        weight_decay: this share of x is added to its gradient.
        initial_accumulator_value: s at first.
        eps: see above.
    """

    counts = 1  # of steps

    def __init__(
        self, params: Any, lr: float = 0.01, lr_decay: float = 0.0, weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0, eps: float = 1e-10, **further: Any,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "eps": eps,
        }, further)  # fmt: skip

    def state_names(self, options: Mapping[str, Any]) -> list[str]:
        return ["sum"]

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        super().add_param_group(group)
        made = self.param_groups[-1]
        for k in range(len(made.params)):
            if made.has_tensors:
                made.state["sum"][k][...] = made["initial_accumulator_value"]
            else:
                made.state["sum"][k] = made["initial_accumulator_value"]

    def prepare(self, group: Group) -> Any:
        if not group["lr_decay"]:
            return group.lr
        rate = group.lr / (1.0 + group["lr_decay"] * group.counts[0])
        group.counts[0] = group.counts[0] + 1.0
        return rate

    def update(self, group: Group, prepared: Any, x: Any, g: Any, *state: Any) -> tuple[Any, ...]:
        if group["weight_decay"]:
            g = g + group["weight_decay"] * x
        total = state[0] + g * g
        return x - prepared * g / (sqrt(total) + group["eps"]), total


class Adadelta(Optimizer):
    """x - lr * d, where d is `sqrt(u + eps) / sqrt(v + eps) * g` (Zeiler 2012).

    v and u are running means of g * g and d * d: of each, the share rho stays.

    Args:
        params, further: see `Optimizer`.
        lr: the learning rate.
        rho, eps: see above.
        weight_decay: this share of x is added to its gradient.
    """

    def __init__(
        self, params: Any, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0,
        **further: Any,
    ) -> None:
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay}, further)

    def state_names(self, options: Mapping[str, Any]) -> list[str]:
        return ["square_avg", "acc_delta"]

    def update(self, group: Group, prepared: Any, x: Any, g: Any, *state: Any) -> tuple[Any, ...]:
        rho, eps = group["rho"], group["eps"]
        if group["weight_decay"]:
            g = g + group["weight_decay"] * x
        v = rho * state[0] + (1.0 - rho) * (g * g)
        d = sqrt(state[1] + eps) / sqrt(v + eps) * g
        return x - prepared * d, v, rho * state[1] + (1.0 - rho) * (d * d)


class RMSprop(Optimizer):
    """x - lr * g / (sqrt(v) + eps), where v is a running mean of g * g, of which the share alpha stays (Tieleman 2012).

    Args:
        params, further: see `Optimizer`.
        lr: the learning rate.
        alpha, eps: see above.
        weight_decay: this share of x is added to its gradient.
        momentum: if it is not 0.0, the step is lr * b, where b is `momentum * b + g / (sqrt(v) + eps)`.
        centered: whether the square of a running mean of g is subtracted from v.
    """

    def __init__(
        self, params: Any, lr: float = 0.01, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0.0,
        momentum: float = 0.0, centered: bool = False, **further: Any,
    ) -> None:  # fmt: skip
        super().__init__(params, {
            "lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum,
            "centered": centered,
        }, further)  # fmt: skip

    def state_names(self, options: Mapping[str, Any]) -> list[str]:
        further = {"momentum_buffer": options["momentum"], "grad_avg": options["centered"]}
        return ["square_avg", *(name for name, is_used in further.items() if is_used)]

    def update(self, group: Group, prepared: Any, x: Any, g: Any, *state: Any) -> tuple[Any, ...]:
        alpha = group["alpha"]
        if group["weight_decay"]:
            g = g + group["weight_decay"] * x
        v = alpha * state[0] + (1.0 - alpha) * (g * g)
        size, means = v, []
        if group["centered"]:
            mean = alpha * state[-1] + (1.0 - alpha) * g
            size, means = v - mean * mean, [mean]
        step = g / (sqrt(size) + group["eps"])
        if not group["momentum"]:
            return (x - prepared * step, v, *means)
        b = group["momentum"] * state[1] + step
        return (x - prepared * b, v, b, *means)
