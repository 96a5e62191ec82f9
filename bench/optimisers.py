"""Compare mgjit.optim with torch.optim: 20 steps with the same gradients, in float64.

Each optimiser, with several options, and each schedule, changes a matrix and a vector.  The greatest relative
difference of the parameters, and of the learning rates, has to be below 1e-12.  Needs torch; not part of the tests.

Run: python bench/optimisers.py
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

import mgjit
from mgjit import optim
from mgjit import tensor as T

STEPS = 20
LIMIT = 1e-12
SHAPES = ((4, 3), (3,))
CASES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.2}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.01, "initial_accumulator_value": 0.5}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "weight_decay": 0.01}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9, "centered": True, "weight_decay": 0.01}),
    ("Adam", {"lr": 0.01}),
    ("Adam", {"lr": 0.01, "betas": (0.8, 0.99), "weight_decay": 0.1, "amsgrad": True}),
    ("AdamW", {"lr": 0.01}),
    ("AdamW", {"lr": 0.01, "weight_decay": 0.3, "amsgrad": True}),
]
SCHEDULES: dict[str, Callable[[Any, Any], Any]] = {
    "StepLR": lambda s, o: s.StepLR(o, step_size=3, gamma=0.5),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, milestones=[2, 7, 8], gamma=0.3),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, gamma=0.9),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, T_max=12, eta_min=0.001),
    "LinearLR": lambda s, o: s.LinearLR(o, start_factor=0.1, total_iters=6),
    "LambdaLR": lambda s, o: s.LambdaLR(o, lambda t: 1.0 / (1 + t)),
    "SequentialLR": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, total_iters=4), s.CosineAnnealingLR(o, 8), s.StepLR(o, 2, 0.5)], milestones=[4, 12]
    ),
}


def difference(found: list[float], wanted: list[float]) -> float:
    """The greatest relative difference."""
    return max(abs(a - b) / max(abs(b), 1e-300) for a, b in zip(found, wanted))


def numbers(shape: tuple[int, ...], draw: random.Random) -> Any:
    if not shape:
        return draw.gauss(0.0, 1.0)
    return [numbers(shape[1:], draw) for _ in range(shape[0])]


def trained(
    name: str, options: dict[str, Any], schedule: str, norm: float, value: float
) -> Iterator[tuple[float, ...]]:
    """The greatest difference of the parameters after each step, and that of the learning rates."""
    draw = random.Random(7)
    start = [numbers(shape, draw) for shape in SHAPES]
    ours = [T.asarray(one, requires_grad=True) for one in start]
    theirs = [torch.tensor(one, dtype=torch.float64, requires_grad=True) for one in start]
    one, other = getattr(optim, name)(ours, **options), getattr(torch.optim, name)(theirs, **options)
    rates = SCHEDULES[schedule](optim.lr_scheduler, one), SCHEDULES[schedule](torch.optim.lr_scheduler, other)

    @mgjit.compile(background=False)
    def step(gradients: list[T.Tensor]) -> None:
        one.zero_grad()
        sum((p * g).sum() for p, g in zip(ours, gradients)).backward()  # type: ignore[union-attr]
        optim.clip_grad_norm_(ours, norm)
        optim.clip_grad_value_(ours, value)
        one.step()

    for _ in range(STEPS):
        gradients = [numbers(shape, draw) for shape in SHAPES]
        step([T.asarray(g) for g in gradients])
        for p, g in zip(theirs, gradients):
            p.grad = torch.tensor(g, dtype=torch.float64)
        torch.nn.utils.clip_grad_norm_(theirs, norm)
        torch.nn.utils.clip_grad_value_(theirs, value)
        other.step()
        found = [x for p in ours for x in p.tolist_flat()]
        wanted = [x for p in theirs for x in p.detach().flatten().tolist()]
        for each in rates:
            each.step()
        learning = [group["lr"] for group in one.param_groups], [group["lr"] for group in other.param_groups]
        yield difference(found, wanted), difference(*learning)
    assert step.stats.traces == 1, step.stats.retraces


def main() -> int:
    worst = 0.0
    print(f"{'optimiser or schedule':40} {'parameters':>12} {'rates':>12}")
    cases = [(name, options, "ExponentialLR", 2.0, 0.8) for name, options in CASES]
    cases += [("SGD", {"lr": 0.1, "momentum": 0.9}, schedule, 1e9, 1e9) for schedule in SCHEDULES]
    for name, options, schedule, norm, value in cases:
        found = list(trained(name, options, schedule, norm, value))
        of_parameters, of_rates = (max(column) for column in zip(*found))
        worst = max(worst, of_parameters, of_rates)
        text = ", ".join(f"{key}={content}" for key, content in options.items())
        shown = f"{name}({text})" if norm < 1e9 else schedule
        print(f"{shown[:40]:40} {of_parameters:12.1e} {of_rates:12.1e}")
    print(f"greatest difference {worst:.1e}; {'below' if worst < LIMIT else 'NOT BELOW'} {LIMIT:.0e}")
    return worst >= LIMIT


if __name__ == "__main__":
    sys.exit(main())
