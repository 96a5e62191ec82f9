"""The losses of all workloads as array programs, written once for the libraries that differentiate them.

`xp` is the library's namespace: it has `exp, log, tanh, sqrt, maximum, where, max_of` (over the last axis, kept),
`arange, one_hot`.  Parameters are a list of arrays, see `unflatten`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.peers.common import HEADS, L2, MATRICES, Problem


def unflatten(problem: Problem) -> list[Any]:
    """Weights and biases of each layer, or the matrices of microgpt, as numpy arrays."""
    flat = np.array(problem.parameters, problem.dtype)
    arrays = []
    if problem.sizes:
        for inputs, outputs in zip(problem.sizes, problem.sizes[1:]):
            rows, flat = flat[: outputs * (inputs + 1)].reshape(outputs, inputs + 1), flat[outputs * (inputs + 1) :]
            arrays += [rows[:, :-1].copy(), rows[:, -1].copy()]
        return arrays
    for rows, columns in MATRICES.values():
        arrays.append(flat[: rows * columns].reshape(rows, columns).copy())
        flat = flat[rows * columns :]
    return arrays


def arguments(problem: Problem) -> list[tuple[Any, ...]]:
    """The calls as numpy arrays: inputs, targets, then one or two rates."""
    return [_arrays(problem, *call) for call in problem.calls]


def _arrays(problem: Problem, inputs: Any, *others: Any) -> tuple[Any, ...]:
    name, dtype = problem.name, problem.dtype
    if not problem.sizes:
        tokens = np.frombuffer(inputs, np.uint8).astype(np.int32).reshape(problem.documents, -1)
        return tokens[:, :-1].copy(), tokens[:, 1:].copy(), *(np.asarray(rate, dtype) for rate in others)
    targets, rates = others[0], others[1:]
    if name in ("W3", "W4"):
        x: Any = np.frombuffer(inputs, np.uint8).reshape(-1, 784)
        y: Any = np.frombuffer(targets, np.uint8).astype(np.int32) if name == "W4" else np.array([targets], np.int32)
    else:
        x = np.array(inputs, dtype).reshape(-1, problem.sizes[0])
        y = np.array(targets, dtype).reshape(-1, problem.sizes[-1])
    return x, y, *(np.asarray(rate, dtype) for rate in rates)


def loss_of(problem: Problem, xp: Any) -> Any:
    """A function (parameters, inputs, targets) -> loss."""

    def xor(p: Any, x: Any, y: Any) -> Any:
        difference = network(xp, p, x) - y
        return (difference * difference).sum()

    def moons(p: Any, x: Any, y: Any) -> Any:
        margins = xp.maximum(1.0 - y * network(xp, p, x), 0.0)
        return margins.sum() / x.shape[0] + L2 * sum((a * a).sum() for a in p)

    def image(p: Any, x: Any, y: Any) -> Any:
        difference = network(xp, p, xp.number(x) / 255.0) - xp.one_hot(y, 10)
        return (difference * difference).sum()

    def image_batch(p: Any, x: Any, y: Any) -> Any:
        return surprise(xp, network(xp, p, xp.number(x) / 255.0), y).sum() / x.shape[0]

    def policy(p: Any, x: Any, y: Any) -> Any:
        difference = network(xp, p, x, xp.tanh) - y
        return (difference * difference).sum() / (2 * x.shape[0])

    def microgpt(p: Any, x: Any, y: Any) -> Any:
        return surprise(xp, transformer(xp, p, x), y).sum() / (x.shape[0] * x.shape[1])

    named = {"W1": xor, "W2": moons, "W3": image, "W4": image_batch, "W5": policy, "W6": microgpt, "W6x16": microgpt}
    return named[problem.name]


def network(xp: Any, p: Any, x: Any, activation: Any = None) -> Any:
    """Scores of a multi-layer perceptron; relu unless another activation is given."""
    for k in range(0, len(p), 2):
        x = x @ p[k].T + p[k + 1]
        if k + 2 < len(p):
            x = activation(x) if activation else xp.maximum(x, 0.0)
    return x


def surprise(xp: Any, scores: Any, labels: Any) -> Any:
    """Softmax cross-entropy of every row."""
    shifted = scores - xp.max_of(scores)
    return xp.log(xp.exp(shifted).sum(-1)) - (shifted * xp.one_hot(labels, 27 if scores.ndim == 3 else 10)).sum(-1)


def normalized(x: Any) -> Any:
    """rmsnorm without weights."""
    return x * ((x * x).mean(-1)[..., None] + 1e-5) ** -0.5


def transformer(xp: Any, p: Any, tokens: Any) -> Any:
    """Scores of microgpt: [document, position, letter]."""
    letters, places, out, query, key, value, mix, expand, contract = p
    documents, n = tokens.shape
    x = normalized(letters[tokens] + places[:n])
    inner = normalized(x)

    def heads(matrix: Any) -> Any:
        return (inner @ matrix.T).reshape((documents, n, HEADS, 4)).swapaxes(1, 2)

    q, k, v = heads(query), heads(key), heads(value)
    z = (q @ k.swapaxes(2, 3)) * 0.5
    place = xp.arange(n)
    z = xp.where(place[None, :] <= place[:, None], z, -1e30)
    powers = xp.exp(z - xp.max_of(z))
    weights = powers / powers.sum(-1)[..., None]
    attended = (weights @ v).swapaxes(1, 2).reshape((documents, n, 16))
    x = x + attended @ mix.T
    x = x + xp.maximum(normalized(x) @ expand.T, 0.0) @ contract.T
    return x @ out.T
