"""Numba: loops written by hand, compiled with fastmath; a call a step and many in a loop.

The layers of a network are loops over samples, outputs and inputs; the innermost is over contiguous numbers, which
LLVM vectorises.
"""

from __future__ import annotations

import math
from typing import Any, Callable

import numba
import numpy as np

from bench.peers import models
from bench.peers.common import Form, Problem, Unsupported, in_loop, per_call

PACKAGES = ("numba", "numpy")

EPSILON, L2 = 1e-8, 1e-4


def version() -> str:
    """Of the library."""
    return f"numba {numba.__version__}"


def forms(problem: Problem) -> dict[str, Callable[[], Form]]:
    """A call a step, and a compiled loop of steps."""
    return {"numba": lambda: _per_call(problem), "numba loop": lambda: _loop(problem)}


def _per_call(problem: Problem) -> Form:
    step, state = _step(problem)
    return per_call(lambda *arguments: step(state, *arguments), _calls(problem))


def _loop(problem: Problem) -> Form:
    step, state = _step(problem)
    calls = _calls(problem)
    if len({call[0].shape for call in calls}) > 1:
        raise Unsupported("the columns of a loop need rows of one shape")

    @numba.njit(error_model="numpy")
    def run(state: Any, x: Any, y: Any, rates: Any, corrections: Any, losses: Any) -> None:
        for k in range(len(x)):
            losses[k] = step(state, x[k], y[k], rates[k], corrections[k])

    def loop(rows: list[tuple[Any, ...]]) -> Any:
        columns = [np.ascontiguousarray(np.stack(column)) for column in zip(*rows)]
        losses = np.zeros(len(rows))

        def timed() -> Any:
            run(state, *columns, losses)
            return losses

        run(state, *(column[:0] for column in columns), losses[:0])  # compiled outside of the clock
        return timed

    return in_loop(loop, calls)


def _calls(problem: Problem) -> list[tuple[Any, ...]]:
    """Arrays, then both rates as numbers of the workload's type."""
    number = np.float32 if problem.single else np.float64
    return [
        (x, y, number(rates[0]), number(rates[1] if len(rates) > 1 else 1.0))
        for x, y, *rates in models.arguments(problem)
    ]


def _step(problem: Problem) -> tuple[Any, Any]:
    """A compiled (state, x, y, rate, correction) -> loss, and its state."""
    parameters = models.unflatten(problem)
    if problem.sizes:
        return _network(problem, parameters)
    states = [tuple(parameters), *(tuple(map(np.zeros_like, parameters)) for _ in range(3))]
    return _microgpt(problem.single), tuple(states)


# ---- networks ------------------------------------------------------------------------------------------


def _network(problem: Problem, arrays: list[Any]) -> tuple[Any, Any]:
    """Every layer has functions of its own, whose loops have constant lengths: LLVM then keeps sums in registers.

    The state has for each layer the weights, [output][input] and the bias, and their moments; then outputs and deltas
    of all samples.  They are arrays apart, so that none seems to overlap another.
    """
    jit = numba.njit(fastmath=True, error_model="numpy")
    name, sizes = problem.name, problem.sizes
    batch = len(models.arguments(problem)[0][0])
    number = np.float32 if problem.single else np.float64
    images, decay = name in ("W3", "W4"), name == "W2"
    zero, scale, l2 = number(0.0), number(255.0), number(L2)
    last = jit(_LAST[name])
    made = [_Layer(problem, batch, k) for k in range(len(sizes) - 1)]
    two, first, second, third = len(made) == 2, made[0], made[1], made[-1]
    first_up, second_up, third_up = first.forward, second.forward, third.forward
    second_down, third_down = second.down, third.down
    first_move, second_move, third_move = first.move, second.move, third.move

    weights = [np.column_stack([w, b]) for w, b in zip(arrays[::2], arrays[1::2])]
    moments = [[np.zeros_like(w) for w in weights] for _ in range(2)]
    samples = [[np.zeros((batch, n), number) for n in sizes] for _ in range(2)]
    sums = (np.zeros(max(sizes), number),)
    if two:  # as if there were a third layer, which nothing calls
        for group in (weights, *moments, *samples):
            group.append(group[-1])

    @jit
    def step(state: Any, inputs: Any, targets: Any, rate: Any, correction: Any) -> Any:
        w, m, v, a, d, sums = state
        x = a[0]
        for s in range(batch):
            for i in range(x.shape[1]):
                x[s, i] = inputs[s, i] / scale if images else inputs[s, i]
        squares = zero
        first_up(w[0], x, a[1])
        second_up(w[1], a[1], a[2])
        if not two:
            third_up(w[2], a[2], a[3])
        loss = last(a[3], targets, d[3])
        if not two:
            third_down(w[2], a[2], d[3], d[2])
            squares += third_move(w[2], m[2], v[2], a[2], d[3], rate, correction, sums[0])
        second_down(w[1], a[1], d[2], d[1])
        squares += second_move(w[1], m[1], v[1], a[1], d[2], rate, correction, sums[0])
        squares += first_move(w[0], m[0], v[0], x, d[1], rate, correction, sums[0])
        return loss + l2 * squares if decay else loss

    return step, (*map(tuple, (weights, *moments, *samples)), sums)


class _Layer:
    """The loops of one layer."""

    def __init__(self, problem: Problem, batch: int, k: int) -> None:
        jit = numba.njit(fastmath=True, error_model="numpy")
        number = np.float32 if problem.single else np.float64
        zero, one = number(0.0), number(1.0)
        inputs, outputs = problem.sizes[k], problem.sizes[k + 1]
        top, tanh, decay, adam = (
            k + 2 == len(problem.sizes),
            problem.name == "W5",
            problem.name == "W2",
            problem.name == "W5",
        )
        beta1, beta2 = (number(beta) for beta in problem.adam or (0.0, 0.0))
        epsilon, twice = number(EPSILON), number(2 * L2)

        @jit
        def forward(w: Any, x: Any, z: Any) -> None:
            for s in range(batch):
                for j in range(outputs):
                    total = zero
                    for i in range(inputs):
                        total += w[j, i] * x[s, i]
                    total += w[j, inputs]
                    z[s, j] = total if top else (math.tanh(total) if tanh else max(total, zero))

        @jit
        def down(w: Any, x: Any, d: Any, dx: Any) -> None:
            for s in range(batch):
                for i in range(inputs):
                    dx[s, i] = zero
                for j in range(outputs):
                    g = d[s, j]
                    for i in range(inputs):
                        dx[s, i] += w[j, i] * g
                for i in range(inputs):
                    h = x[s, i]
                    dx[s, i] *= (one - h * h) if tanh else (one if h > zero else zero)

        @jit
        def apply(w: Any, m: Any, v: Any, j: int, i: int, g: Any, rate: Any, correction: Any) -> Any:
            squares = zero
            if decay:
                squares = w[j, i] * w[j, i]
                g += twice * w[j, i]
            if adam:
                m[j, i] = beta1 * m[j, i] + (one - beta1) * g
                v[j, i] = beta2 * v[j, i] + (one - beta2) * (g * g)
                w[j, i] -= rate * m[j, i] / (math.sqrt(v[j, i] * correction) + epsilon)
            else:
                w[j, i] -= rate * g
            return squares

        @jit
        def move(w: Any, m: Any, v: Any, x: Any, d: Any, rate: Any, correction: Any, sums: Any) -> Any:
            squares = zero
            for j in range(outputs):  # a row's gradient is complete before it is used: none is stored
                bias = zero
                if batch == 1:
                    g = d[0, j]
                    for i in range(inputs):
                        squares += apply(w, m, v, j, i, g * x[0, i], rate, correction)
                    bias = g
                else:
                    for i in range(inputs):
                        sums[i] = zero
                    for s in range(batch):
                        g = d[s, j]
                        bias += g
                        for i in range(inputs):
                            sums[i] += g * x[s, i]
                    for i in range(inputs):
                        squares += apply(w, m, v, j, i, sums[i], rate, correction)
                squares += apply(w, m, v, j, inputs, bias, rate, correction)
            return squares

        self.forward, self.down, self.move = forward, down, move


def _squared(scores: Any, targets: Any, d: Any) -> Any:
    loss = scores[0, 0] * 0
    for s in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            difference = scores[s, j] - targets[s, j]
            loss += difference * difference
            d[s, j] = 2 * difference
    return loss


def _squared_label(scores: Any, targets: Any, d: Any) -> Any:
    loss = scores[0, 0] * 0
    for j in range(scores.shape[1]):
        difference = scores[0, j] - (1.0 if targets[0] == j else 0.0)
        loss += difference * difference
        d[0, j] = 2 * difference
    return loss


def _hinge(scores: Any, targets: Any, d: Any) -> Any:
    loss, each = 0.0, 1.0 / scores.shape[0]
    for s in range(scores.shape[0]):
        margin = 1.0 - targets[s, 0] * scores[s, 0]
        loss += max(margin, 0.0)
        d[s, 0] = -targets[s, 0] * each if margin > 0.0 else 0.0
    return loss * each


def _cross_entropy(scores: Any, targets: Any, d: Any) -> Any:
    loss = scores[0, 0] * 0
    count = scores.shape[0]
    for s in range(count):
        top = scores[s, 0]
        for j in range(1, scores.shape[1]):
            top = max(top, scores[s, j])
        total = scores[0, 0] * 0
        for j in range(scores.shape[1]):
            d[s, j] = math.exp(scores[s, j] - top)
            total += d[s, j]
        loss += math.log(total) - (scores[s, targets[s]] - top)
        for j in range(scores.shape[1]):
            d[s, j] /= total * count
        d[s, targets[s]] -= 1.0 / count
    return loss / count


def _mean_squared(scores: Any, targets: Any, d: Any) -> Any:
    loss = scores[0, 0] * 0
    count = scores.size
    for s in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            difference = scores[s, j] - targets[s, j]
            loss += difference * difference
            d[s, j] = 2 * difference / count
    return loss / count


_LAST = {"W1": _squared, "W2": _hinge, "W3": _squared_label, "W4": _cross_entropy, "W5": _mean_squared}


# ---- microgpt ------------------------------------------------------------------------------------------


def _microgpt(single: bool) -> Any:
    jit = numba.njit(fastmath=True, error_model="numpy")
    number = np.float32 if single else np.float64
    zero, half, tiny = number(0.0), number(0.5), number(1e-5)
    beta1, beta2, epsilon = number(0.85), number(0.99), number(EPSILON)
    one, width = number(1.0), number(16.0)
    kind = numba.float32 if single else numba.float64

    @jit
    def linear(w: Any, x: Any, y: Any, n: int) -> None:
        for t in range(n):
            for j in range(w.shape[0]):
                total = zero
                for i in range(w.shape[1]):
                    total += w[j, i] * x[t, i]
                y[t, j] = total

    @jit
    def linear_back(w: Any, x: Any, d: Any, dx: Any, dw: Any, n: int) -> None:
        for t in range(n):
            for j in range(w.shape[0]):
                g = d[t, j]
                for i in range(w.shape[1]):
                    dw[j, i] += g * x[t, i]
                    dx[t, i] += g * w[j, i]

    @jit
    def normalize(x: Any, y: Any, scale: Any, n: int) -> None:
        for t in range(n):
            total = zero
            for i in range(16):
                total += x[t, i] * x[t, i]
            scale[t] = one / math.sqrt(total / width + tiny)
            for i in range(16):
                y[t, i] = x[t, i] * scale[t]

    @jit
    def normalize_back(x: Any, scale: Any, d: Any, dx: Any, n: int) -> None:
        for t in range(n):
            total = zero
            for i in range(16):
                total += x[t, i] * d[t, i]
            total *= scale[t] * scale[t] * scale[t] / width
            for i in range(16):
                dx[t, i] += d[t, i] * scale[t] - x[t, i] * total

    @jit
    def attend(q: Any, k: Any, v: Any, weights: Any, y: Any, n: int) -> None:
        for t in range(n):
            for h in range(4):
                top = -number(1e30)
                for u in range(t + 1):
                    z = zero
                    for e in range(4 * h, 4 * h + 4):
                        z += q[t, e] * k[u, e]
                    weights[h, t, u] = z * half
                    top = max(top, z * half)
                total = zero
                for u in range(t + 1):
                    weights[h, t, u] = math.exp(weights[h, t, u] - top)
                    total += weights[h, t, u]
                for e in range(4 * h, 4 * h + 4):
                    y[t, e] = zero
                for u in range(t + 1):
                    weights[h, t, u] /= total
                    for e in range(4 * h, 4 * h + 4):
                        y[t, e] += weights[h, t, u] * v[u, e]

    @jit
    def attend_back(q: Any, k: Any, v: Any, weights: Any, d: Any, dq: Any, dk: Any, dv: Any, n: int) -> None:
        dw = np.empty(16, kind)
        for t in range(n):
            for h in range(4):
                common = zero
                for u in range(t + 1):
                    total = zero
                    for e in range(4 * h, 4 * h + 4):
                        total += d[t, e] * v[u, e]
                        dv[u, e] += weights[h, t, u] * d[t, e]
                    dw[u] = total * weights[h, t, u]
                    common += dw[u]
                for u in range(t + 1):
                    g = (dw[u] - weights[h, t, u] * common) * half
                    for e in range(4 * h, 4 * h + 4):
                        dq[t, e] += g * k[u, e]
                        dk[u, e] += g * q[t, e]

    @jit
    def surprise(scores: Any, targets: Any, n: int, each: Any) -> Any:
        loss = zero
        for t in range(n):
            top = scores[t, 0]
            for j in range(1, 27):
                top = max(top, scores[t, j])
            chosen = scores[t, targets[t]] - top
            total = zero
            for j in range(27):
                scores[t, j] = math.exp(scores[t, j] - top)
                total += scores[t, j]
            loss += math.log(total) - chosen
            for j in range(27):
                scores[t, j] *= each / total
            scores[t, targets[t]] -= each
        return loss * each

    @jit
    def document(p: Any, g: Any, tokens: Any, targets: Any, each: Any) -> Any:
        letters, places, out, query, key, value, mix, expand, contract = p
        n = len(tokens)
        x0, x1, x2, x3, n1, n2, q, k, v, attended = np.empty((10, n, 16), kind)
        scores, grown, scale = np.empty((n, 27), kind), np.empty((n, 64), kind), np.empty((3, n), kind)
        weights = np.empty((4, n, n), kind)
        for t in range(n):
            for i in range(16):
                x0[t, i] = letters[tokens[t], i] + places[t, i]
        normalize(x0, x1, scale[0], n)
        normalize(x1, n1, scale[1], n)
        linear(query, n1, q, n)
        linear(key, n1, k, n)
        linear(value, n1, v, n)
        attend(q, k, v, weights, attended, n)
        linear(mix, attended, x2, n)
        x2 += x1
        normalize(x2, n2, scale[2], n)
        linear(expand, n2, grown, n)
        grown[:] = np.maximum(grown, zero)
        linear(contract, grown, x3, n)
        x3 += x2
        linear(out, x3, scores, n)
        loss = surprise(scores, targets, n, each)

        d3, d2, d1, d0, d_n2, d_n1, d_q, d_k, d_v, d_attended = np.zeros((10, n, 16), kind)
        d_grown = np.zeros((n, 64), kind)
        linear_back(out, x3, scores, d3, g[2], n)
        linear_back(contract, grown, d3, d_grown, g[8], n)
        d_grown[:] = np.where(grown > zero, d_grown, zero)
        linear_back(expand, n2, d_grown, d_n2, g[7], n)
        d2 += d3
        normalize_back(x2, scale[2], d_n2, d2, n)
        linear_back(mix, attended, d2, d_attended, g[6], n)
        attend_back(q, k, v, weights, d_attended, d_q, d_k, d_v, n)
        linear_back(query, n1, d_q, d_n1, g[3], n)
        linear_back(key, n1, d_k, d_n1, g[4], n)
        linear_back(value, n1, d_v, d_n1, g[5], n)
        d1 += d2
        normalize_back(x1, scale[1], d_n1, d1, n)
        normalize_back(x0, scale[0], d1, d0, n)
        for t in range(n):
            for i in range(16):
                g[0][tokens[t], i] += d0[t, i]
                g[1][t, i] += d0[t, i]
        return loss

    @jit
    def move(p: Any, g: Any, m: Any, v: Any, rate: Any, correction: Any) -> None:
        for r in range(p.shape[0]):
            for c in range(p.shape[1]):
                m[r, c] = beta1 * m[r, c] + (one - beta1) * g[r, c]
                v[r, c] = beta2 * v[r, c] + (one - beta2) * (g[r, c] * g[r, c])
                p[r, c] -= rate * m[r, c] / (math.sqrt(v[r, c] * correction) + epsilon)
                g[r, c] = zero

    @jit
    def step(state: Any, tokens: Any, targets: Any, rate: Any, correction: Any) -> Any:
        p, g, m, v = state
        loss = zero
        each = one / (tokens.shape[0] * tokens.shape[1])
        for k in range(tokens.shape[0]):
            loss += document(p, g, tokens[k], targets[k], each)
        for k in range(9):
            move(p[k], g[k], m[k], v[k], rate, correction)
        return loss

    return step
