"""Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019).

The corrections of the bias, `1 - beta ** t` at step t, are kept as running means of 1.0 with the same betas:
`beta * c + (1 - beta)`.  That is the same number, and in float32 a more accurate one, without a power.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..engine.functions import maximum, sqrt
from .group import Group
from .optimizer import Optimizer


class Adam(Optimizer):
    """x - lr * m / (sqrt(v) + eps), where m and v are running means of g and g * g, corrected for their bias.

    Args:
        params, further: see `Optimizer`.
        lr: the learning rate.
        betas: the shares of m and v that stay.
        eps: see above.
        weight_decay: this share of x is added to its gradient.
        amsgrad: whether the greatest v so far is used instead of v (Reddi et al. 2018).
    """

    counts = 2  # the means of 1.0

    def __init__(
        self, params: Any, lr: float = 0.001, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, amsgrad: bool = False, **further: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad}, further
        )

    def state_names(self, options: Mapping[str, Any]) -> list[str]:
        return ["exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if options["amsgrad"] else [])]

    def prepare(self, group: Group) -> Any:
        first, second = [
            beta * count + (1.0 - beta) for beta, count in zip(group["betas"], (group.counts[0], group.counts[1]))
        ]
        group.counts[0], group.counts[1] = first, second
        return group.lr / first, 1.0 / sqrt(second)

    def update(self, group: Group, prepared: Any, x: Any, g: Any, *state: Any) -> tuple[Any, ...]:
        rate, scale = prepared
        beta1, beta2 = group["betas"]
        x, g = self.decayed(group, x, g)
        m = beta1 * state[0] + (1.0 - beta1) * g
        v = beta2 * state[1] + (1.0 - beta2) * (g * g)
        greatest = [maximum(state[2], v)] if group["amsgrad"] else []
        size = sqrt(greatest[0] if greatest else v) * scale + group["eps"]
        return (x - rate * m / size, m, v, *greatest)

    def decayed(self, group: Group, x: Any, g: Any) -> tuple[Any, Any]:
        """A parameter and its gradient with the decay of weights."""
        return x, (g + group["weight_decay"] * x if group["weight_decay"] else g)


class AdamW(Adam):
    """Adam, where the weights decay by themselves: x becomes `x - lr * weight_decay * x` before the step.

    Args:
        params, lr, betas, eps, amsgrad, further: see `Adam`.
        weight_decay: see above.
    """

    def __init__(
        self, params: Any, lr: float = 0.001, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.01, amsgrad: bool = False, **further: Any,
    ) -> None:  # fmt: skip
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **further)

    def decayed(self, group: Group, x: Any, g: Any) -> tuple[Any, Any]:
        return (x - group.lr * (group["weight_decay"] * x) if group["weight_decay"] else x), g
