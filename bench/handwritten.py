"""Networks with derivatives by hand, in 25 manners: share of calls that are compiled, speed over plain Python, and why.

    python bench/handwritten.py               all of them, as a table
    python bench/handwritten.py --calls 200 lstm_lists conv_by_hand

What such a network's `forward` keeps for its `backward` differs more than anything else: tuples, dicts, lists that are
filled anew, objects, arguments.  Each runs 1,000 calls beside its undecorated self; after each call all that it returns
and keeps is compared bit for bit, with which names mean one object.  Then both are timed alternately, and the median of
their ratios is shown.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
import warnings
from collections import deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import mgjit
from mgjit.runtime import vectorcall

#: Rounds of timed calls, and calls in each.
ROUNDS, CALLS = 9, 20
Made = Any  # a step of a row and a target, and what holds all that it keeps


def matrix(draw: random.Random, rows: int, columns: int) -> list[list[float]]:
    return [[draw.uniform(-0.5, 0.5) for _ in range(columns)] for _ in range(rows)]


def sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


# ---- dense layers -------------------------------------------------------------------------------------------------


def cache_tuple() -> Made:
    class Dense:
        def __init__(self, draw: random.Random, inputs: int, outputs: int) -> None:
            self.w, self.b, self.cache = matrix(draw, outputs, inputs), [0.0] * outputs, None

        def forward(self, x: Any) -> Any:
            a = [math.tanh(sum(w * v for w, v in zip(row, x)) + b) for row, b in zip(self.w, self.b)]
            self.cache = (x, a)
            return a

        def backward(self, grad: Any, lr: float) -> Any:
            x, a = self.cache
            d = [g * (1.0 - v * v) for g, v in zip(grad, a)]
            back = [sum(self.w[i][j] * d[i] for i in range(len(d))) for j in range(len(x))]
            for i in range(len(d)):
                for j in range(len(x)):
                    self.w[i][j] -= lr * d[i] * x[j]
                self.b[i] -= lr * d[i]
            return back

    class Network:
        def __init__(self) -> None:
            draw = random.Random(1)
            self.layers = [Dense(draw, 8, 12), Dense(draw, 12, 1)]

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                x = layer.forward(x)
            return x

        def backward(self, grad: Any) -> None:
            for layer in reversed(self.layers):
                grad = layer.backward(grad, 0.1)

    net = Network()

    def step(x: list[float], y: float) -> Any:
        out = net.forward(x)
        net.backward([2.0 * (out[0] - y)])
        return (out[0] - y) ** 2

    return step, net


def cache_dict() -> Made:
    class Network:
        def __init__(self) -> None:
            draw = random.Random(1)
            self.params = {"W1": matrix(draw, 10, 8), "b1": [0.0] * 10, "W2": matrix(draw, 1, 10), "b2": [0.0]}
            self.velocity = {"W1": [[0.0] * 8 for _ in range(10)], "b1": [0.0] * 10}
            self.cache: dict[str, Any] = {}
            self.grads: dict[str, Any] = {}

        def forward(self, x: Any) -> Any:
            p = self.params
            z1 = [sum(w * v for w, v in zip(row, x)) + b for row, b in zip(p["W1"], p["b1"])]
            a1 = [max(0.0, z) for z in z1]
            out = sum(w * a for w, a in zip(p["W2"][0], a1)) + p["b2"][0]
            self.cache = {"x": x, "z1": z1, "a1": a1, "out": out}
            return out

        def backward(self, d: Any) -> None:
            c = self.cache
            dz = [d * w if z > 0 else 0.0 for w, z in zip(self.params["W2"][0], c["z1"])]
            self.grads["W2"] = [[d * a for a in c["a1"]]]
            self.grads["b2"] = [d]
            self.grads["W1"] = [[g * v for v in c["x"]] for g in dz]
            self.grads["b1"] = dz

        def update(self, lr: float) -> None:
            for name, grad in self.grads.items():
                target = self.params[name]
                for i, g in enumerate(grad):
                    if name.startswith("W"):
                        for j, part in enumerate(g):
                            if name in self.velocity:
                                self.velocity[name][i][j] = 0.9 * self.velocity[name][i][j] + part
                                target[i][j] -= lr * self.velocity[name][i][j]
                            else:
                                target[i][j] -= lr * part
                    else:
                        target[i] -= lr * g

    net = Network()

    def step(x: list[float], y: float) -> Any:
        out = net.forward(x)
        net.backward(out - y)
        net.update(0.05)
        return 0.5 * (out - y) ** 2

    return step, net


def inputs_and_outputs() -> Made:
    class Linear:
        def __init__(self, draw: random.Random, n: int, m: int) -> None:
            self.weights, self.bias = matrix(draw, m, n), [0.0] * m

        def forward(self, inputs: Any) -> Any:
            self.inputs = inputs
            self.outputs = [sum(w * x for w, x in zip(row, inputs)) + b for row, b in zip(self.weights, self.bias)]
            return self.outputs

        def backward(self, grad: Any) -> Any:
            self.grad_w = [[0.0] * len(self.inputs) for _ in range(len(grad))]
            self.grad_b = [0.0] * len(grad)
            below = [0.0] * len(self.inputs)
            for i, g in enumerate(grad):
                self.grad_b[i] += g
                for j, x in enumerate(self.inputs):
                    self.grad_w[i][j] += g * x
                    below[j] += g * self.weights[i][j]
            return below

        def update(self, lr: float) -> None:
            for i, row in enumerate(self.grad_w):
                self.bias[i] -= lr * self.grad_b[i]
                for j, g in enumerate(row):
                    self.weights[i][j] -= lr * g

    class ReLU:
        def forward(self, inputs: Any) -> Any:
            self.mask = [1.0 if x > 0 else 0.0 for x in inputs]
            return [x * m for x, m in zip(inputs, self.mask)]

        def backward(self, grad: Any) -> Any:
            return [g * m for g, m in zip(grad, self.mask)]

        def update(self, lr: float) -> None:
            pass

    draw = random.Random(2)
    net: list[Any] = [Linear(draw, 8, 10), ReLU(), Linear(draw, 10, 1)]

    def step(x: list[float], y: float) -> Any:
        out: Any = x
        for layer in net:
            out = layer.forward(out)
        grad = [out[0] - y]
        for layer in net[::-1]:
            grad = layer.backward(grad)
        for layer in net:
            layer.update(0.05)
        return (out[0] - y) ** 2

    return step, net


def activations_appended() -> Made:
    """The network of a well-known book: all activations and weighted sums in lists that begin anew."""

    class Network:
        def __init__(self, sizes: list[int]) -> None:
            draw = random.Random(3)
            self.num_layers = len(sizes)
            self.biases = [[draw.gauss(0, 1) for _ in range(n)] for n in sizes[1:]]
            self.weights = [matrix(draw, n, m) for m, n in zip(sizes[:-1], sizes[1:])]

        def feedforward(self, a: Any) -> Any:
            self.activations = [a]
            self.zs = []
            for b, w in zip(self.biases, self.weights):
                z = [sum(p * q for p, q in zip(row, a)) + c for row, c in zip(w, b)]
                self.zs.append(z)
                a = [sigmoid(v) for v in z]
                self.activations.append(a)
            return a

        def backprop(self, y: Any) -> Any:
            nabla_b: list[Any] = [None] * len(self.biases)
            nabla_w: list[Any] = [None] * len(self.weights)
            delta = [(a - y) * a * (1 - a) for a in self.activations[-1]]
            nabla_b[-1] = delta
            nabla_w[-1] = [[d * a for a in self.activations[-2]] for d in delta]
            for k in range(2, self.num_layers):
                s = [sigmoid(z) * (1 - sigmoid(z)) for z in self.zs[-k]]
                w = self.weights[-k + 1]
                delta = [sum(w[i][j] * delta[i] for i in range(len(delta))) * s[j] for j in range(len(s))]
                nabla_b[-k] = delta
                nabla_w[-k] = [[d * a for a in self.activations[-k - 1]] for d in delta]
            return nabla_b, nabla_w

    net = Network([8, 8, 6, 1])

    def step(x: list[float], y: float) -> Any:
        net.feedforward(x)
        nabla_b, nabla_w = net.backprop(y)
        net.weights = [
            [[w - 0.5 * g for w, g in zip(row, grads)] for row, grads in zip(m, nabla)]
            for m, nabla in zip(net.weights, nabla_w)
        ]
        net.biases = [[b - 0.5 * g for b, g in zip(bs, gs)] for bs, gs in zip(net.biases, nabla_b)]
        return net.activations[-1][0]

    return step, net


def cleared_lists() -> Made:
    class Tape:
        def __init__(self) -> None:
            draw = random.Random(4)
            self.w1, self.w2 = matrix(draw, 10, 8), [draw.uniform(-0.5, 0.5) for _ in range(10)]
            self.acts: list[Any] = []
            self.grads: list[float] = []

        def forward(self, x: Any) -> Any:
            self.acts.clear()
            self.acts.append(x)
            self.acts.append([math.tanh(sum(w * v for w, v in zip(row, x))) for row in self.w1])
            return sum(w * h for w, h in zip(self.w2, self.acts[-1]))

        def backward(self, d: Any, lr: float) -> None:
            x, h = self.acts
            self.grads.clear()
            for i in range(len(h)):
                self.grads.append(d * self.w2[i] * (1.0 - h[i] ** 2))
                self.w2[i] -= lr * d * h[i]
            for i, g in enumerate(self.grads):
                for j, v in enumerate(x):
                    self.w1[i][j] -= lr * g * v

    net = Tape()

    def step(x: list[float], y: float) -> Any:
        error = net.forward(x) - y
        net.backward(error, 0.1)
        return error * error

    return step, net


def dataclass_cache() -> Made:
    @dataclass
    class Cache:
        x: Any
        z: Any
        a: Any

    class Perceptron:
        def __init__(self) -> None:
            draw = random.Random(5)
            self.w, self.v, self.cache = matrix(draw, 12, 8), [draw.uniform(-0.5, 0.5) for _ in range(12)], None

    net = Perceptron()

    def forward(x: Any) -> Any:
        z = [sum(w * v for w, v in zip(row, x)) for row in net.w]
        a = [sigmoid(value) for value in z]
        net.cache = Cache(x, z, a)
        return sum(p * q for p, q in zip(net.v, a))

    def backward(d: Any) -> None:
        c: Any = net.cache
        for i, a in enumerate(c.a):
            g = d * net.v[i] * a * (1.0 - a)
            net.v[i] -= 0.1 * d * a
            net.w[i] = [w - 0.1 * g * x for w, x in zip(net.w[i], c.x)]

    def step(x: list[float], y: float) -> Any:
        error = forward(x) - y
        backward(error)
        return error

    return step, net


def list_of_dicts() -> Made:
    """The tutorial's: a network is a list of layers, a layer a list of dicts."""
    draw = random.Random(6)
    network: list[list[dict[str, Any]]] = [
        [{"weights": [draw.random() - 0.5 for _ in range(9)]} for _ in range(8)],
        [{"weights": [draw.random() - 0.5 for _ in range(9)]}],
    ]

    def activate(weights: Any, inputs: Any) -> Any:
        activation = weights[-1]
        for i in range(len(weights) - 1):
            activation += weights[i] * inputs[i]
        return activation

    def forward_propagate(row: Any) -> Any:
        inputs = row
        for layer in network:
            new_inputs = []
            for neuron in layer:
                neuron["output"] = sigmoid(activate(neuron["weights"], inputs))
                new_inputs.append(neuron["output"])
            inputs = new_inputs
        return inputs

    def backward_propagate_error(expected: Any) -> None:
        for i in reversed(range(len(network))):
            layer = network[i]
            errors = []
            if i != len(network) - 1:
                for j in range(len(layer)):
                    error = 0.0
                    for neuron in network[i + 1]:
                        error += neuron["weights"][j] * neuron["delta"]
                    errors.append(error)
            else:
                for j in range(len(layer)):
                    errors.append(layer[j]["output"] - expected[j])  # noqa: PERF401 - as people write it
            for j in range(len(layer)):
                neuron = layer[j]
                neuron["delta"] = errors[j] * neuron["output"] * (1.0 - neuron["output"])

    def update_weights(row: Any, l_rate: float) -> None:
        for i in range(len(network)):
            inputs = row
            if i != 0:
                inputs = [neuron["output"] for neuron in network[i - 1]]
            for neuron in network[i]:
                for j in range(len(inputs)):
                    neuron["weights"][j] -= l_rate * neuron["delta"] * inputs[j]
                neuron["weights"][-1] -= l_rate * neuron["delta"]

    def step(x: list[float], y: float) -> Any:
        outputs = forward_propagate(x)
        backward_propagate_error([y])
        update_weights(x, 0.3)
        return sum((y - out) ** 2 for out in outputs)

    return step, network


def neuron_objects() -> Made:
    class Neuron:
        count = 0

        def __init__(self, draw: random.Random, n: int) -> None:
            Neuron.count += 1
            self.name = f"n{Neuron.count}"
            self.w, self.b = [draw.uniform(-0.5, 0.5) for _ in range(n)], 0.0
            self.inputs: Any = None
            self.out = self.delta = 0.0

        def fire(self, inputs: Any) -> Any:
            self.inputs = inputs
            self.out = sigmoid(sum(w * x for w, x in zip(self.w, inputs)) + self.b)
            return self.out

        def learn(self, lr: float) -> None:
            for i, x in enumerate(self.inputs):
                self.w[i] -= lr * self.delta * x
            self.b -= lr * self.delta

    draw = random.Random(7)
    hidden = [Neuron(draw, 8) for _ in range(6)]
    output = Neuron(draw, 6)

    def step(x: list[float], y: float) -> Any:
        out = output.fire([n.fire(x) for n in hidden])
        output.delta = (out - y) * out * (1.0 - out)
        for i, n in enumerate(hidden):
            n.delta = output.delta * output.w[i] * n.out * (1.0 - n.out)
        for n in [output, *hidden]:
            n.learn(0.5)
        return out

    return step, (hidden, output)


# ---- sequences ----------------------------------------------------------------------------------------------------


def rnn_states() -> Made:
    class RNN:
        def __init__(self, hidden: int) -> None:
            draw = random.Random(8)
            self.hidden = hidden
            self.wx, self.wh = [draw.uniform(-1, 1) for _ in range(hidden)], matrix(draw, hidden, hidden)
            self.wy = [draw.uniform(-1, 1) for _ in range(hidden)]

        def forward(self, xs: Any) -> Any:
            h = [0.0] * self.hidden
            self.last_inputs = xs
            self.last_hs = {0: h}
            for t, x in enumerate(xs):
                h = [math.tanh(self.wx[i] * x + sum(w * v for w, v in zip(self.wh[i], h))) for i in range(self.hidden)]
                self.last_hs[t + 1] = h
            return sum(w * v for w, v in zip(self.wy, h))

        def backward(self, d: Any, lr: float) -> None:
            n, size = len(self.last_inputs), self.hidden
            d_wx, d_wh = [0.0] * size, [[0.0] * size for _ in range(size)]
            d_wy = [d * v for v in self.last_hs[n]]
            d_h = [d * w for w in self.wy]
            for t in reversed(range(n)):
                temp = [(1 - v**2) * g for v, g in zip(self.last_hs[t + 1], d_h)]
                for i in range(size):
                    d_wx[i] += temp[i] * self.last_inputs[t]
                    for j in range(size):
                        d_wh[i][j] += temp[i] * self.last_hs[t][j]
                d_h = [sum(self.wh[i][j] * temp[i] for i in range(size)) for j in range(size)]
            for grads in (d_wx, d_wy, *d_wh):
                for i in range(len(grads)):
                    grads[i] = max(-1.0, min(1.0, grads[i]))
            for i in range(size):
                self.wx[i] -= lr * d_wx[i]
                self.wy[i] -= lr * d_wy[i]
                for j in range(size):
                    self.wh[i][j] -= lr * d_wh[i][j]

    net = RNN(5)

    def step(x: list[float], y: float) -> Any:
        error = net.forward(x) - y
        net.backward(error, 0.05)
        return error**2

    return step, net


def lstm_lists() -> Made:
    class LSTM:
        def __init__(self, n: int) -> None:
            draw = random.Random(9)
            self.n = n
            self.w = {gate: matrix(draw, n, n + 2) for gate in "ifog"}
            self.wy = [draw.uniform(-1, 1) for _ in range(n)]
            self.reset()

        def reset(self) -> None:
            self.h, self.c = [[0.0] * self.n], [[0.0] * self.n]
            self.gates: list[Any] = []
            self.z: list[Any] = []

        def forward(self, xs: Any) -> Any:
            self.reset()
            for x in xs:
                z = [*self.h[-1], x, 1.0]
                g = {}
                for gate in "ifog":
                    f = math.tanh if gate == "g" else sigmoid
                    g[gate] = [f(sum(w * v for w, v in zip(row, z))) for row in self.w[gate]]
                c = [a * b + p * q for a, b, p, q in zip(g["f"], self.c[-1], g["i"], g["g"])]
                self.z.append(z)
                self.gates.append(g)
                self.c.append(c)
                self.h.append([o * math.tanh(v) for o, v in zip(g["o"], c)])
            return sum(w * v for w, v in zip(self.wy, self.h[-1]))

        def backward(self, d: Any, lr: float) -> None:
            n = self.n
            dw = {gate: [[0.0] * (n + 2) for _ in range(n)] for gate in "ifog"}
            dh, dc = [d * w for w in self.wy], [0.0] * n
            for i in range(n):
                self.wy[i] -= lr * d * self.h[-1][i]
            for t in reversed(range(len(self.gates))):
                g, z = self.gates[t], self.z[t]
                back = [0.0] * n
                for k in range(n):
                    tc = math.tanh(self.c[t + 1][k])
                    dck = dc[k] + dh[k] * g["o"][k] * (1 - tc * tc)
                    deltas = {
                        "o": dh[k] * tc * g["o"][k] * (1 - g["o"][k]),
                        "f": dck * self.c[t][k] * g["f"][k] * (1 - g["f"][k]),
                        "i": dck * g["g"][k] * g["i"][k] * (1 - g["i"][k]),
                        "g": dck * g["i"][k] * (1 - g["g"][k] ** 2),
                    }
                    dc[k] = dck * g["f"][k]
                    for gate, delta in deltas.items():
                        for j in range(n + 2):
                            dw[gate][k][j] += delta * z[j]
                            if j < n:
                                back[j] += delta * self.w[gate][k][j]
                dh = back
            for gate in "ifog":
                for k in range(n):
                    for j in range(n + 2):
                        self.w[gate][k][j] -= lr * dw[gate][k][j]

    net = LSTM(4)

    def step(x: list[float], y: float) -> Any:
        error = net.forward(x) - y
        net.backward(error, 0.05)
        return error * error

    return step, net


def gru_stateful() -> Made:
    """The state goes on from call to call, as a tuple of two lists."""

    class GRU:
        def __init__(self, n: int) -> None:
            draw = random.Random(10)
            self.n = n
            self.wz, self.wr, self.wn = (matrix(draw, n, n + 1) for _ in range(3))
            self.out = [draw.uniform(-1, 1) for _ in range(n)]
            self.state = ([0.0] * n, [0.0] * n)

        def cell(self, x: Any) -> Any:
            h, _ = self.state
            v = [*h, x]
            z = [sigmoid(sum(w * a for w, a in zip(row, v))) for row in self.wz]
            r = [sigmoid(sum(w * a for w, a in zip(row, v))) for row in self.wr]
            u = [*(a * b for a, b in zip(r, h)), x]
            n = [math.tanh(sum(w * a for w, a in zip(row, u))) for row in self.wn]
            self.state = ([(1 - a) * b + a * c for a, b, c in zip(z, n, h)], z)
            return sum(w * a for w, a in zip(self.out, self.state[0]))

    net = GRU(5)

    def step(x: list[float], y: float) -> Any:
        total = 0.0
        for value in x[:4]:
            error = net.cell(value) - y
            net.out = [w - 0.05 * error * h for w, h in zip(net.out, net.state[0])]
            total += error * error
        return total / 4

    return step, net


def char_rnn_dicts() -> Made:
    """After the well-known gist: xs, hs, ys, ps in dicts by time, -1 for the state before; Adagrad."""
    draw = random.Random(11)
    size = 5
    model: Any = {
        "Wxh": matrix(draw, size, 2), "Whh": matrix(draw, size, size), "Why": matrix(draw, 2, size),
        "mxh": matrix(draw, size, 2), "hprev": [0.0] * size, "smooth": 1.0,
    }  # fmt: skip
    for row in model["mxh"]:
        row[:] = [0.0, 0.0]

    def step(x: list[float], y: float) -> Any:
        xs: Any = {}
        hs: Any = {}
        ps: Any = {}
        hs[-1] = list(model["hprev"])
        loss = 0.0
        for t in range(4):
            xs[t] = [x[t], x[t + 1]]
            hs[t] = [
                math.tanh(sum(a * b for a, b in zip(p, xs[t])) + sum(a * b for a, b in zip(q, hs[t - 1])))
                for p, q in zip(model["Wxh"], model["Whh"])
            ]
            ys = [sum(a * b for a, b in zip(row, hs[t])) for row in model["Why"]]
            exps = [math.exp(v) for v in ys]
            ps[t] = [e / sum(exps) for e in exps]
            loss += -math.log(ps[t][0])
        d_xh = [[0.0, 0.0] for _ in range(size)]
        dh_next = [0.0] * size
        for t in reversed(range(4)):
            dy = list(ps[t])
            dy[0] -= 1.0
            dh = [sum(model["Why"][k][i] * dy[k] for k in range(2)) + dh_next[i] for i in range(size)]
            raw = [(1 - h * h) * d for h, d in zip(hs[t], dh)]
            for i in range(size):
                for j in range(2):
                    d_xh[i][j] += raw[i] * xs[t][j]
            dh_next = [sum(model["Whh"][k][i] * raw[k] for k in range(size)) for i in range(size)]
        for param, grad, mem in zip(model["Wxh"], d_xh, model["mxh"]):
            for i in range(len(param)):
                mem[i] += grad[i] * grad[i]
                param[i] += -0.1 * grad[i] / math.sqrt(mem[i] + 1e-8)
        model["hprev"] = hs[3]
        model["smooth"] = model["smooth"] * 0.999 + loss * 0.001
        model["last"] = (xs, ps)
        return loss

    return step, model


# ---- other layers -------------------------------------------------------------------------------------------------


def conv_by_hand() -> Made:
    class Conv:
        def __init__(self) -> None:
            draw = random.Random(12)
            self.filters = matrix(draw, 2, 3)
            self.last_input: Any = None

        def iterate(self, row: Any) -> Any:
            for i in range(len(row) - 2):
                yield row[i : i + 3], i

        def forward(self, row: Any) -> Any:
            self.last_input = row
            out = [[0.0] * 2 for _ in range(len(row) - 2)]
            for region, i in self.iterate(row):
                out[i] = [sum(a * b for a, b in zip(region, f)) for f in self.filters]
            return out

        def backprop(self, d_out: Any, lr: float) -> None:
            d_filters = [[0.0] * 3 for _ in range(2)]
            for region, i in self.iterate(self.last_input):
                for f in range(2):
                    for k in range(3):
                        d_filters[f][k] += d_out[i][f] * region[k]
            for f in range(2):
                for k in range(3):
                    self.filters[f][k] -= lr * d_filters[f][k]

    class Pool:
        def forward(self, rows: Any) -> Any:
            self.last_input = rows
            return [[max(rows[2 * i][f], rows[2 * i + 1][f]) for f in range(2)] for i in range(len(rows) // 2)]

        def backprop(self, d_out: Any) -> Any:
            rows = self.last_input
            d = [[0.0, 0.0] for _ in rows]
            for i, (grads) in enumerate(d_out):
                for f in range(2):
                    first = rows[2 * i][f] >= rows[2 * i + 1][f]
                    d[2 * i][f] = grads[f] if first else 0.0
                    d[2 * i + 1][f] = 0.0 if first else grads[f]
            return d

    class Softmax:
        def __init__(self) -> None:
            draw = random.Random(13)
            self.weights, self.biases = matrix(draw, 2, 6), [0.0, 0.0]

        def forward(self, rows: Any) -> Any:
            self.last_input_shape = (len(rows), len(rows[0]))
            flat = [v for row in rows for v in row]
            self.last_input = flat
            totals = [sum(a * b for a, b in zip(w, flat)) + c for w, c in zip(self.weights, self.biases)]
            self.last_totals = totals
            exps = [math.exp(t) for t in totals]
            return [e / sum(exps) for e in exps]

        def backprop(self, d: Any, lr: float) -> Any:
            n, m = self.last_input_shape
            back = [sum(self.weights[k][i] * d[k] for k in range(2)) for i in range(n * m)]
            for k in range(2):
                self.biases[k] -= lr * d[k]
                for i, v in enumerate(self.last_input):
                    self.weights[k][i] -= lr * d[k] * v
            return [back[i * m : (i + 1) * m] for i in range(n)]

    conv, pool, softmax = Conv(), Pool(), Softmax()

    def step(x: list[float], y: float) -> Any:
        out = softmax.forward(pool.forward(conv.forward(x)))
        gradient = [out[0] - y, out[1] - (1.0 - y)]
        gradient = softmax.backprop(gradient, 0.05)
        conv.backprop(pool.backprop(gradient), 0.05)
        return -y * math.log(out[0])

    return step, (conv, pool, softmax)


def batch_norm() -> Made:
    class BatchNorm:
        def __init__(self, n: int) -> None:
            self.gamma, self.beta = [1.0] * n, [0.0] * n
            self.running_mean, self.running_var = [0.0] * n, [1.0] * n

        def forward(self, batch: Any) -> Any:
            n = len(batch)
            columns = list(zip(*batch))
            mean = [sum(c) / n for c in columns]
            var = [sum((v - m) ** 2 for v in c) / n for c, m in zip(columns, mean)]
            self.inv_std = [1.0 / math.sqrt(v + 1e-5) for v in var]
            self.xhat = [[(v - m) * s for v, m, s in zip(row, mean, self.inv_std)] for row in batch]
            self.running_mean = [0.9 * r + 0.1 * m for r, m in zip(self.running_mean, mean)]
            self.running_var = [0.9 * r + 0.1 * v for r, v in zip(self.running_var, var)]
            return [[g * v + b for g, v, b in zip(self.gamma, row, self.beta)] for row in self.xhat]

        def backward(self, grad: Any) -> Any:
            self.dgamma = [sum(g[j] * row[j] for g, row in zip(grad, self.xhat)) for j in range(len(self.gamma))]
            self.dbeta = [sum(g[j] for g in grad) for j in range(len(self.gamma))]
            self.gamma = [g - 0.1 * d for g, d in zip(self.gamma, self.dgamma)]
            self.beta = [b - 0.1 * d for b, d in zip(self.beta, self.dbeta)]

    norm = BatchNorm(2)

    def step(x: list[float], y: float) -> Any:
        batch = [x[i : i + 2] for i in range(0, 8, 2)]
        out = norm.forward(batch)
        grad = [[0.25 * (v - y) for v in row] for row in out]
        norm.backward(grad)
        return sum(v for row in out for v in row)

    return step, norm


def attention_cache() -> Made:
    class Attention:
        def __init__(self) -> None:
            draw = random.Random(14)
            self.wq, self.wk, self.wv = matrix(draw, 2, 2), matrix(draw, 2, 2), matrix(draw, 2, 2)
            self._cache: Any = None

        def __call__(self, rows: Any) -> Any:
            maps = self.wq, self.wk, self.wv
            q, k, v = ([[sum(a * b for a, b in zip(w, r)) for w in m] for r in rows] for m in maps)
            weights = []
            for one in q:
                exps = [math.exp(sum(a * b for a, b in zip(one, other))) for other in k]
                total = sum(exps)
                weights.append([e / total for e in exps])
            self._cache = rows, q, k, v, weights
            return [[sum(w * r[j] for w, r in zip(ws, v)) for j in range(2)] for ws in weights]

        def backward(self, grads: Any, lr: float) -> None:
            rows, *_, weights = self._cache
            dv = [[sum(weights[t][s] * grads[t][j] for t in range(4)) for j in range(2)] for s in range(4)]
            for j in range(2):
                for i in range(2):
                    self.wv[j][i] -= lr * sum(dv[s][j] * rows[s][i] for s in range(4))

    attention = Attention()

    def step(x: list[float], y: float) -> Any:
        rows = [x[2 * i : 2 * i + 2] for i in range(4)]
        out = attention(rows)
        attention.backward([[v - y for v in row] for row in out], 0.1)
        return out[0][0]

    return step, attention


def sequential_stack() -> Made:
    """Layers push what they need on a stack of the network's, and pop it."""

    class Layer:
        def __init__(self, draw: random.Random, n: int, m: int) -> None:
            self.w = matrix(draw, m, n)

    class Sequential:
        def __init__(self) -> None:
            draw = random.Random(15)
            self.layers, self.stack = [Layer(draw, 8, 6), Layer(draw, 6, 4), Layer(draw, 4, 1)], []

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                self.stack.append(x)
                x = [math.tanh(sum(w * v for w, v in zip(row, x))) for row in layer.w]
                self.stack.append(x)
            return x

        def backward(self, grad: Any) -> None:
            for layer in reversed(self.layers):
                out, x = self.stack.pop(), self.stack.pop()
                d = [g * (1 - o * o) for g, o in zip(grad, out)]
                grad = [sum(layer.w[i][j] * d[i] for i in range(len(d))) for j in range(len(x))]
                for i, g in enumerate(d):
                    for j, v in enumerate(x):
                        layer.w[i][j] -= 0.1 * g * v

    net = Sequential()

    def step(x: list[float], y: float) -> Any:
        out = net.forward(x)
        net.backward([out[0] - y])
        return abs(out[0] - y)

    return step, net


def namedtuple_records() -> Made:
    Record = namedtuple("Record", "inputs pre post")

    class Net:
        def __init__(self) -> None:
            draw = random.Random(16)
            self.weights = [matrix(draw, 6, 8), matrix(draw, 1, 6)]
            self.records: list[Any] = []
            self.calls = 0

        def predict(self, x: Any) -> Any:
            self.calls += 1
            self.records = []
            for w in self.weights:
                pre = [sum(a * b for a, b in zip(row, x)) for row in w]
                post = [p if p > 0 else 0.01 * p for p in pre]
                self.records.append(Record(x, pre, post))
                x = post
            return x

        def train(self, x: Any, y: Any) -> Any:
            out = self.predict(x)
            grad = [o - y for o in out]
            for w, record in zip(reversed(self.weights), reversed(self.records)):
                d = [g if p > 0 else 0.01 * g for g, p in zip(grad, record.pre)]
                grad = [sum(w[i][j] * d[i] for i in range(len(d))) for j in range(len(record.inputs))]
                for i, g in enumerate(d):
                    for j, v in enumerate(record.inputs):
                        w[i][j] -= 0.02 * g * v
            return sum((o - y) ** 2 for o in out)

    net = Net()
    return net.train, net


def adam_in_dicts() -> Made:
    class Adam:
        def __init__(self, params: dict[str, Any]) -> None:
            self.params, self.t = params, 0
            self.m = {k: [0.0] * len(v) for k, v in params.items()}
            self.v = {k: [0.0] * len(v) for k, v in params.items()}

        def update(self, grads: dict[str, Any]) -> None:
            self.t += 1
            for k in self.params:
                for i, g in enumerate(grads[k]):
                    self.m[k][i] = 0.9 * self.m[k][i] + 0.1 * g
                    self.v[k][i] = 0.999 * self.v[k][i] + 0.001 * g * g
                    m, v = self.m[k][i] / (1 - 0.9**self.t), self.v[k][i] / (1 - 0.999**self.t)
                    self.params[k][i] -= 0.01 * m / (math.sqrt(v) + 1e-8)
            self.last = grads

    draw = random.Random(17)
    params = {"w": [draw.uniform(-1, 1) for _ in range(8)], "b": [0.0]}
    optimizer = Adam(params)

    def step(x: list[float], y: float) -> Any:
        p = sigmoid(sum(w * v for w, v in zip(params["w"], x)) + params["b"][0])
        grads = {"w": [(p - y) * v for v in x], "b": [p - y]}
        optimizer.update(grads)
        return p

    return step, optimizer


def batches() -> Made:
    """A whole batch at each call; gradients are kept and averaged, the last predictions stay on the model."""

    class Model:
        def __init__(self) -> None:
            draw = random.Random(18)
            self.w, self.b = [draw.uniform(-1, 1) for _ in range(2)], 0.0
            self.predictions: list[Any] = []
            self.errors: Any = ()

        def fit_batch(self, batch: Any, targets: Any) -> Any:
            self.predictions = [sum(w * v for w, v in zip(self.w, row)) + self.b for row in batch]
            self.errors = tuple(p - t for p, t in zip(self.predictions, targets))
            for j in range(len(self.w)):
                self.w[j] -= 0.1 * sum(e * row[j] for e, row in zip(self.errors, batch)) / len(batch)
            self.b -= 0.1 * sum(self.errors) / len(batch)
            return sum(e * e for e in self.errors) / len(batch)

    model = Model()

    def step(x: list[float], y: float) -> Any:
        return model.fit_batch([x[i : i + 2] for i in range(0, 8, 2)], [y, x[0], x[1], y])

    return step, model


def window_of_losses() -> Made:
    class Trainer:
        def __init__(self) -> None:
            self.w, self.losses, self.message = [0.1] * 8, deque(maxlen=5), ""
            self.steps = 0

        def train(self, x: Any, y: Any) -> Any:
            error = sum(w * v for w, v in zip(self.w, x)) - y
            for i, v in enumerate(x):
                self.w[i] -= 0.05 * error * v
            self.steps += 1
            self.losses.append(error * error)
            return sum(self.losses) / len(self.losses)

    trainer = Trainer()
    return trainer.train, trainer


def formatted_loss() -> Made:
    class Trainer:
        def __init__(self) -> None:
            self.w, self.log, self.status = [0.1] * 8, [], ""

        def train(self, x: Any, y: Any) -> Any:
            error = sum(w * v for w, v in zip(self.w, x)) - y
            for i, v in enumerate(x):
                self.w[i] -= 0.05 * error * v
            self.status = f"loss {error * error:.4f}"
            return error

    trainer = Trainer()
    return trainer.train, trainer


def unique_names() -> Made:
    """Nodes of the step have an id and a name, as in a well-known course."""

    class Scalar:
        count = 0

        def __init__(self, data: Any, parents: Any = ()) -> None:
            Scalar.count += 1
            self.unique_id = Scalar.count
            self.name = str(self.unique_id)
            self.label = f"node{self.unique_id}"
            self.data, self.parents = data, parents

        def __mul__(self, other: Any) -> Any:
            return Scalar(self.data * other.data, (self, other))

    weights = [0.1 * k for k in range(8)]

    def step(x: list[float], y: float) -> Any:
        products = [Scalar(w) * Scalar(v) for w, v in zip(weights, x)]
        error = sum(p.data for p in products) - y
        for i, p in enumerate(products):
            weights[i] -= 0.1 * error * p.parents[1].data
        return error

    return step, (weights, Scalar)


def overflow_caught() -> Made:
    def safe_sigmoid(x: Any) -> Any:
        try:
            return 1.0 / (1.0 + math.exp(-x))
        except OverflowError:
            return 0.0 if x < 0 else 1.0

    class Net:
        def __init__(self) -> None:
            self.w, self.z, self.a = matrix(random.Random(19), 6, 8), None, None

    net = Net()

    def step(x: list[float], y: float) -> Any:
        net.z = [sum(w * v for w, v in zip(row, x)) for row in net.w]
        net.a = [safe_sigmoid(z) for z in net.z]
        for row, a in zip(net.w, net.a):
            for j, v in enumerate(x):
                row[j] -= 0.1 * (a - y) * a * (1 - a) * v
        return sum(net.a)

    return step, net


def return_out_of_loop() -> Made:
    class Net:
        def __init__(self) -> None:
            self.w, self.seen = [[0.1] * 8, [0.2] * 8, [0.3] * 8], 0

        def winner(self, x: Any) -> Any:
            for k, row in enumerate(self.w):
                if sum(w * v for w, v in zip(row, x)) > 0.0:
                    return k
            return len(self.w)

        def train(self, x: Any, y: Any) -> Any:
            chosen = self.winner(x)
            for k, row in enumerate(self.w):
                rate = 0.1 if k == chosen else 0.01
                for j, v in enumerate(x):
                    row[j] += rate * (v * y - row[j])
            return chosen

    net = Net()
    return net.train, net


def break_at_limit() -> Made:
    class Net:
        def __init__(self) -> None:
            self.w, self.used = [0.1] * 8, 0

        def train(self, x: Any, y: Any) -> Any:
            total, used = 0.0, 0
            for w, v in zip(self.w, x):
                total += w * v
                used += 1
                if abs(total) > 0.3:
                    break
            for j, v in enumerate(x):
                self.w[j] -= 0.05 * (total - y) * v
            self.used += used
            return total

    net = Net()
    return net.train, net


NETWORKS: list[Callable[[], Made]] = [
    cache_tuple, cache_dict, inputs_and_outputs, activations_appended, cleared_lists, dataclass_cache, list_of_dicts,
    neuron_objects, rnn_states, lstm_lists, gru_stateful, char_rnn_dicts, conv_by_hand, batch_norm, attention_cache,
    sequential_stack, namedtuple_records, adam_in_dicts, batches, window_of_losses, formatted_loss, unique_names,
    overflow_caught, return_out_of_loop, break_at_limit,
]  # fmt: skip


def looked_at(thing: Any, met: dict[int, int] | None = None) -> Any:
    """What can be seen of objects, and which names mean one of them."""
    met = {} if met is None else met
    if isinstance(thing, (int, float, str, type(None))):
        return type(thing).__name__, repr(thing)
    if isinstance(thing, type):
        return thing.__name__, repr([(k, v) for k, v in vars(thing).items() if isinstance(v, (int, float, str))])
    if id(thing) in met:
        return "again", met[id(thing)]
    met[id(thing)] = len(met)
    if isinstance(thing, dict):
        return "dict", [(repr(k), looked_at(v, met)) for k, v in thing.items()]
    if isinstance(thing, (list, tuple, deque)):
        return type(thing).__name__, [looked_at(part, met) for part in thing]
    return type(thing).__name__, [(k, looked_at(v, met)) for k, v in vars(thing).items()]


def measured(make: Callable[[], Made], calls: int, options: Any) -> str:
    """One row of the table."""
    draw = random.Random(2)
    rows = [([draw.uniform(-1.0, 1.0) for _ in range(8)], draw.random()) for _ in range(calls)]
    (mine, here), (theirs, there) = make(), make()
    step = mgjit.compile(mine, background=False, verify="never", **options)
    equal = True
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for x, y in rows:
            same = repr(step(x, y)) == repr(theirs(x, y)) and looked_at([here, x]) == looked_at([there, x])
            equal = equal and same
        share = 100.0 * step.stats.calls / (step.stats.calls + step.stats.plain_calls)
        ratios, times = [], []
        for k in range(ROUNDS):
            some = rows[k % 5 :: 7][:CALLS]
            seconds = [sum(timed(one, row) for row in some) / len(some) for one in (theirs, step)]
            ratios.append(seconds[0] / seconds[1])
            times.append(seconds)
    why = next((str(w.message) for w in caught), "").replace("\n", " ")
    why = why.split("runs as plain Python: ")[-1].split(". ")[0].rpartition("/")[2][:110]
    median = [statistics.median(column) * 1e6 for column in zip(*times)]
    return (
        f"| {make.__name__} | {'yes' if equal else 'NO'} | {share:.0f} % | {median[0]:.1f} | {median[1]:.2f} "
        f"| {statistics.median(ratios):.1f} x | {why} |"
    )


def timed(call: Callable[..., Any], row: tuple[list[float], float]) -> float:
    started = perf_counter()
    call(*row)
    return perf_counter() - started


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="of the networks; all of them without")
    parser.add_argument("--calls", type=int, default=1000, help="compared calls of each step")
    parser.add_argument("--compiler", help="as of mgjit.compile")
    parser.add_argument("--backend", default="auto", help="as of mgjit.compile")
    given = parser.parse_args()
    vectorcall.extension.obtain()  # as after many calls
    print("| network | equal | compiled | plain us | mgjit us | speed-up | why not |")
    print("|---|---|---:|---:|---:|---:|---|")
    for each in NETWORKS:
        if not given.names or each.__name__ in given.names:
            print(measured(each, given.calls, {"backend": given.backend, "compiler": given.compiler}), flush=True)
