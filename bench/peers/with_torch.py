"""PyTorch: eager, and `torch.compile` of the whole step (loss, gradient and update)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Callable

import torch

from bench.peers import models
from bench.peers.common import ADAM_EPSILON, Form, Problem, Unsupported, per_call

PACKAGES = ("torch", "numpy")


def version() -> str:
    """Of the library."""
    return f"torch {torch.__version__}"


def forms(problem: Problem) -> dict[str, Callable[[], Form]]:
    """Eager and compiled."""
    torch.set_num_threads(1)
    return {"torch eager": lambda: _eager(problem), "torch.compile": lambda: _compiled(problem)}


def _namespace(problem: Problem) -> Any:
    dtype = getattr(torch, problem.dtype)
    return SimpleNamespace(
        exp=torch.exp, log=torch.log, tanh=torch.tanh, where=torch.where, arange=torch.arange,
        maximum=lambda x, _: torch.relu(x),  # the models compare with zero only
        max_of=lambda x: x.detach().amax(-1, keepdim=True),
        one_hot=lambda labels, n: torch.nn.functional.one_hot(labels, n).to(dtype),
        number=lambda x: x.to(dtype),
    )  # fmt: skip


def _calls(problem: Problem) -> list[tuple[Any, ...]]:
    """Tensors; integers as the library's indices are."""
    return [
        tuple(t.long() if t.dtype == torch.int32 else t for t in (torch.tensor(a) for a in call))
        for call in models.arguments(problem)
    ]


def _move(problem: Problem, parameters: Any, m: Any, v: Any, grads: Any, rate: Any, correction: Any = None) -> None:
    if not problem.adam:
        for p, g in zip(parameters, grads):
            p -= rate * g
        return
    beta1, beta2 = problem.adam
    for p, a, b, g in zip(parameters, m, v, grads):
        a.mul_(beta1).add_(g, alpha=1 - beta1)
        b.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        p -= rate * a / ((b * correction).sqrt_() + ADAM_EPSILON)


def _eager(problem: Problem) -> Form:
    loss_of = models.loss_of(problem, _namespace(problem))
    parameters = [torch.tensor(a, requires_grad=True) for a in models.unflatten(problem)]
    m, v = ([torch.zeros_like(p) for p in parameters] for _ in range(2))

    def step(x: Any, y: Any, *rates: Any) -> Any:
        loss = loss_of(parameters, x, y)
        grads = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            _move(problem, parameters, m, v, grads, *rates)
        return loss.detach()

    return per_call(step, _calls(problem))


def _compiled(problem: Problem) -> Form:
    calls = _calls(problem)
    if len({call[0].shape for call in calls}) > 1:
        raise Unsupported("about ten seconds for each of the sequence lengths")
    gradient = torch.func.grad_and_value(models.loss_of(problem, _namespace(problem)))
    parameters = [torch.tensor(a) for a in models.unflatten(problem)]
    m, v = ([torch.zeros_like(p) for p in parameters] for _ in range(2))

    @torch.compile(fullgraph=True)
    def whole(parameters: Any, m: Any, v: Any, x: Any, y: Any, *rates: Any) -> Any:
        grads, loss = gradient(parameters, x, y)
        _move(problem, parameters, m, v, grads, *rates)
        return loss

    def step(*arguments: Any) -> Any:
        with torch.no_grad():
            return whole(parameters, m, v, *arguments)

    return per_call(step, calls)
