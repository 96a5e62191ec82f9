"""numpy: whole arrays, gradients by hand."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from bench.peers import models
from bench.peers.common import ADAM_EPSILON, HEADS, L2, Form, Problem, per_call

PACKAGES = ("numpy",)


def version() -> str:
    """Of the library."""
    return f"numpy {np.__version__}"


def forms(problem: Problem) -> dict[str, Callable[[], Form]]:
    """A call a step."""
    return {"numpy": lambda: _form(problem)}


def _form(problem: Problem) -> Form:
    parameters = models.unflatten(problem)
    gradient = Transformer(problem).gradient if not problem.sizes else Network(problem).gradient
    moments = [(np.zeros_like(p), np.zeros_like(p)) for p in parameters]

    def step(x: Any, y: Any, rate: Any, correction: Any = None) -> Any:
        loss, grads = gradient(parameters, x, y)
        if problem.adam is None:
            for p, g in zip(parameters, grads):
                p -= rate * g
            return loss
        beta1, beta2 = problem.adam
        for p, g, (m, v) in zip(parameters, grads, moments):
            m *= beta1
            m += (1 - beta1) * g
            v *= beta2
            v += (1 - beta2) * (g * g)
            p -= rate * m / (np.sqrt(v * correction) + ADAM_EPSILON)
        return loss

    return per_call(step, models.arguments(problem))


class Network:
    """Loss and gradients of a multi-layer perceptron."""

    def __init__(self, problem: Problem) -> None:
        self.name = problem.name
        self.scale = np.asarray(255.0, problem.dtype)[()]
        self.dtype = problem.dtype

    def gradient(self, p: list[Any], x: Any, y: Any) -> tuple[Any, list[Any]]:
        """Of the loss of a batch."""
        if self.name in ("W3", "W4"):
            x = x / self.scale if self.dtype == "float64" else x.astype(self.dtype) / self.scale
        outputs = [x]
        for k in range(0, len(p), 2):
            z = outputs[-1] @ p[k].T
            z += p[k + 1]
            if k + 2 < len(p):
                z = np.tanh(z, out=z) if self.name == "W5" else np.maximum(z, 0.0, out=z)
            outputs.append(z)
        loss, d = self._last(outputs[-1], y)
        grads = []
        for k in range(len(p) - 2, -1, -2):
            below = outputs[k // 2]
            grads += [d.sum(axis=0), d.T @ below]
            if k:
                slope = 1.0 - below * below if self.name == "W5" else below > 0
                d = (d @ p[k]) * slope
        grads.reverse()
        if self.name == "W2":
            loss += L2 * sum((a * a).sum() for a in p)
            grads = [g + 2 * L2 * a for a, g in zip(p, grads)]
        return loss, grads

    def _last(self, scores: Any, y: Any) -> tuple[Any, Any]:
        """The loss and the gradient of the scores."""
        if self.name == "W2":
            margins = 1.0 - y * scores
            return np.maximum(margins, 0.0).sum() / len(y), -y * (margins > 0) / len(y)
        if self.name == "W4":
            return _softmax(scores, y, 1.0 / len(y))
        if self.name == "W3":
            scores = scores.copy()
            scores[0, y[0]] -= 1.0
            return (scores * scores).sum(), 2.0 * scores
        difference = scores - y
        factor = 1.0 / (2 * len(y)) if self.name == "W5" else 1.0
        return (difference * difference).sum() * factor, difference * np.asarray(2.0 * factor, self.dtype)[()]


def _softmax(scores: Any, labels: Any, factor: float) -> tuple[Any, Any]:
    """Summed cross-entropy times a factor, and its gradient."""
    shifted = scores - scores.max(-1, keepdims=True)
    powers = np.exp(shifted)
    total = powers.sum(-1, keepdims=True)
    chosen = labels[..., None]
    loss = (np.log(total) - np.take_along_axis(shifted, chosen, -1)).sum() * factor
    powers /= total
    np.put_along_axis(powers, chosen, np.take_along_axis(powers, chosen, -1) - 1.0, -1)
    powers *= factor
    return loss, powers


class Transformer:
    """Loss and gradients of microgpt."""

    def __init__(self, problem: Problem) -> None:
        self.masks = {n: np.tril(np.ones((n, n), bool)) for n in range(1, 17)}

    def gradient(self, p: list[Any], tokens: Any, targets: Any) -> tuple[Any, list[Any]]:
        """Of the loss of some documents of one length."""
        letters, places, out, query, key, value, mix, expand, contract = p
        documents, n = tokens.shape
        shape = documents, n, HEADS, 4

        x0 = letters[tokens] + places[:n]
        x1, scale0 = _normalized(x0)
        inner, scale1 = _normalized(x1)
        q, k, v = ((inner @ w.T).reshape(shape).swapaxes(1, 2) for w in (query, key, value))
        z = (q @ k.swapaxes(2, 3)) * 0.5
        z[..., ~self.masks[n]] = -np.inf
        weights = np.exp(z - z.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        attended = (weights @ v).swapaxes(1, 2).reshape(documents, n, 16)
        x2 = x1 + attended @ mix.T
        above, scale2 = _normalized(x2)
        grown = np.maximum(above @ expand.T, 0.0)
        x3 = x2 + grown @ contract.T
        loss, d_scores = _softmax(x3 @ out.T, targets, 1.0 / (documents * n))

        d3 = d_scores @ out
        d_grown = (d3 @ contract) * (grown > 0)
        d2 = d3 + _normalized_back(x2, scale2, d_grown @ expand)
        d_attended = (d2 @ mix).reshape(shape).swapaxes(1, 2)
        d_weights = d_attended @ v.swapaxes(2, 3)
        d_z = weights * (d_weights - (weights * d_weights).sum(-1, keepdims=True)) * 0.5
        d_parts = [
            part.swapaxes(1, 2).reshape(documents, n, 16)
            for part in (d_z @ k, d_z.swapaxes(2, 3) @ q, weights.swapaxes(2, 3) @ d_attended)
        ]
        d_inner = d_parts[0] @ query + d_parts[1] @ key + d_parts[2] @ value
        d0 = _normalized_back(x0, scale0, d2 + _normalized_back(x1, scale1, d_inner))
        d_letters, d_places = np.zeros_like(letters), np.zeros_like(places)
        np.add.at(d_letters, tokens, d0)
        d_places[:n] = d0.sum(axis=0)
        products = [_product(d_scores, x3), *(_product(d, inner) for d in d_parts)]
        products += [_product(d2, attended), _product(d_grown, above), _product(d3, grown)]
        return loss, [d_letters, d_places, *products]


def _product(d: Any, x: Any) -> Any:
    """The gradient of a matrix: outputs times inputs, summed over all positions."""
    return d.reshape(-1, d.shape[-1]).T @ x.reshape(-1, x.shape[-1])


def _normalized(x: Any) -> tuple[Any, Any]:
    scale = ((x * x).mean(-1, keepdims=True) + 1e-5) ** -0.5
    return x * scale, scale


def _normalized_back(x: Any, scale: Any, d: Any) -> Any:
    return d * scale - x * ((x * d).mean(-1, keepdims=True) * scale**3)
