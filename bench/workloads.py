"""The six workloads that mgjit is measured on, written as a user would write them.

    from bench import workloads
    instance = workloads.WORKLOADS["W3"].make(workloads.Sources())         # plain Python, seeded
    step = workloads.compiled(instance, workloads.WORKLOADS["W3"], compiler="gcc")
    loss = step(*instance.calls[0])

1. `Sources` reads MNIST images and names where it is given them, and makes numbers of the same shape otherwise.
2. A maker draws the initial weights and the arguments of all calls from seeds of its own: every call of it gives
   an equal, independent `Instance` (a step, its parameters, its states, the arguments of its calls).
3. `WORKLOADS` gives each maker its name, the options of `mgjit.compile` that it is measured with, and its targets.

The makers take their sizes as arguments, so that tests run the same text small.  Weights and data of the float32
workloads are float32 numbers from the start: then every program that runs them begins with the same numbers.
"""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mgjit
from mgjit import data as datasets
from mgjit import nn
from mgjit.errors import UnsupportedError
from tests.workload import Instance

Vector = list[Any]
Matrix = list[list[mgjit.Value]]

LETTERS = "abcdefghijklmnopqrstuvwxyz"
BOUNDARY = len(LETTERS)  # the token before and after every name
VOCABULARY = len(LETTERS) + 1

#: How many of 1,000 given names have 2, 3, ... 15 letters.
NAME_LENGTHS = (5, 19, 76, 183, 225, 208, 149, 80, 33, 12, 6, 2, 1, 1)


@dataclass
class Sources:
    """Where the data comes from; what is None is made up.

    Attributes:
        mnist: folder with MNIST IDX files.
        names: text file with one name a line.
    """

    mnist: Path | None = None
    names: Path | None = None

    def images(self, count: int) -> list[tuple[bytes, int]]:
        """Images of 784 bytes with their labels."""
        if self.mnist is not None:
            train = datasets.mnist(self.mnist).train
            return list(zip(train.images[:count], train.labels[:count]))
        draw = random.Random(784)
        return [(_scribble(draw), draw.randrange(10)) for _ in range(count)]

    def documents(self) -> list[str]:
        """Names of at most 15 letters, in an order shuffled once."""
        draw = random.Random(42)
        if self.names is not None:
            lines = self.names.read_text(encoding="utf-8").split()
            found = [line.lower() for line in lines if len(line) <= 15 and set(line.lower()) <= set(LETTERS)]
            return sorted(found, key=lambda _: draw.random())
        lengths = draw.choices(range(2, 16), NAME_LENGTHS, k=4096)
        return ["".join(draw.choice(LETTERS) for _ in range(length)) for length in lengths]


def _scribble(draw: random.Random) -> bytes:
    """About as many pixels above zero as an MNIST image has (19 %)."""
    return bytes(draw.randrange(1, 256) if draw.random() < 0.19 else 0 for _ in range(784))


@dataclass(frozen=True)
class Workload:
    """How a step is made, compiled and measured.

    Attributes:
        make: Sources -> Instance.
        options: of `mgjit.compile` for the measurement.
        samples: examples in one step.
        target: what the issue asks for, in words.
    """

    name: str
    title: str
    make: Callable[[Sources], Instance]
    options: dict[str, Any] = field(default_factory=dict)
    samples: int = 1
    target: str = ""


def compiled(instance: Instance, workload: Workload, **options: Any) -> Any:
    """The step of an instance, compiled with the workload's options; `options` win over them."""
    chosen = {"background": False, **workload.options, "dtype": number_type(workload), **options}
    return mgjit.compile(**chosen)(instance.step)


def number_type(workload: Workload) -> str:
    """The dtype of the workload, or float64 in a version of mgjit that has no other; tables must say so."""
    try:
        mgjit.compile(dtype=workload.options["dtype"])
    except UnsupportedError:
        return "float64"
    return str(workload.options["dtype"])


# ---- parts of several steps ------------------------------------------------------------------------------


def descend(parameters: Sequence[mgjit.Value], rate: Any) -> None:
    """Plain gradient descent."""
    for p in parameters:
        p.data -= rate * p.grad


class Adam:
    """The moments of Adam; the caller passes what depends on the step count as ordinary arguments."""

    def __init__(self, parameters: Sequence[mgjit.Value], beta1: float, beta2: float, epsilon: float = 1e-8) -> None:
        self.parameters = parameters
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon
        self.m, self.v = mgjit.zeros(len(parameters)), mgjit.zeros(len(parameters))

    def update(self, rate: Any, correction: Any) -> None:
        """`rate` is lr / (1 - beta1**t), `correction` is 1 / (1 - beta2**t)."""
        m, v, beta1, beta2 = self.m, self.v, self.beta1, self.beta2
        for i, p in enumerate(self.parameters):
            g = p.grad
            m[i] = beta1 * m[i] + (1.0 - beta1) * g
            v[i] = beta2 * v[i] + (1.0 - beta2) * (g * g)
            p.data -= rate * m[i] / (mgjit.sqrt(v[i] * correction) + self.epsilon)

    def corrections(self, lr: float, t: int) -> tuple[float, float]:
        """The arguments of `update` in step t, counted from 1."""
        return lr / (1.0 - self.beta1**t), 1.0 / (1.0 - self.beta2**t)


def single(number: float) -> float:
    """The float32 nearest to a number."""
    return array("f", [number])[0]


def to_single(parameters: Sequence[mgjit.Value]) -> None:
    """Round weights to float32."""
    for p in parameters:
        p.data = single(p.data)


def shifted(scores: Vector) -> Vector:
    """Scores less the greatest of them, so that exp cannot overflow."""
    top = scores[0].data
    for s in scores[1:]:
        top = mgjit.maximum(top, s.data)
    return [s - top for s in scores]


def surprise(scores: Vector, label: Any) -> Any:
    """Softmax cross-entropy: minus the logarithm of the probability of a label."""
    found = shifted(scores)
    return mgjit.log(sum(mgjit.exp(s) for s in found)) - mgjit.dot(found, mgjit.one_hot(label, len(found)))


# ---- W1: XOR ---------------------------------------------------------------------------------------------


def xor(_: Sources, hidden: int = 4, calls: int = 64) -> Instance:
    """2-4-1, one sample a step, squared error."""
    model = nn.MLP(2, [hidden, 1], seed=5)
    parameters = model.parameters()

    def step(x: Any, y: Any, lr: Any) -> Any:
        loss = (model(x) - y) ** 2
        model.zero_grad()
        loss.backward()
        descend(parameters, lr)
        return loss

    points = [([float(a), float(b)], float(a ^ b)) for a in (0, 1) for b in (0, 1)]
    return Instance(step, [(*points[k % 4], 0.05) for k in range(calls)], parameters)


# ---- W2: moons -------------------------------------------------------------------------------------------


def moons(_: Sources, batch: int = 100, hidden: int = 16, calls: int = 8) -> Instance:
    """2-16-16-1, a batch a step, hinge loss and L2."""
    model = nn.MLP(2, [hidden, hidden, 1], seed=11)
    parameters = model.parameters()

    def step(xs: Any, ys: Any, lr: Any) -> Any:
        scores = [model(xs[2 * k : 2 * k + 2]) for k in range(batch)]
        losses = [(1 + -y * score).relu() for y, score in zip(ys, scores)]
        loss = sum(losses) * (1.0 / batch) + 1e-4 * sum(p * p for p in parameters)
        model.zero_grad()
        loss.backward()
        descend(parameters, lr)
        return loss

    return Instance(step, [(*half_circles(batch, 40 + k), 0.5 - 0.4 * k / calls) for k in range(calls)], parameters)


def half_circles(count: int, seed: int) -> tuple[array[float], array[float]]:
    """Points of two half circles, one after the other, and their labels -1 and 1."""
    draw = random.Random(seed)
    xs, ys = array("d"), array("d")
    for k in range(count):
        angle = math.pi * draw.random()
        x, y = math.cos(angle), math.sin(angle)
        if k % 2:
            x, y = 1.0 - x, 0.5 - y
        xs.extend((x + draw.gauss(0.0, 0.1), y + draw.gauss(0.0, 0.1)))
        ys.append(1.0 if k % 2 else -1.0)
    return xs, ys


# ---- W3 and W4: images -----------------------------------------------------------------------------------


def image(sources: Sources, hidden: int = 50, calls: int = 64) -> Instance:
    """784-50-10, one image a step, squared error against one-hot labels."""
    model = nn.MLP(784, [hidden, 10])
    parameters = model.parameters()

    def step(pixels: Any, label: Any, lr: Any) -> Any:
        scores = model([pixel / 255.0 for pixel in pixels])
        loss = sum((s - y) ** 2 for s, y in zip(scores, mgjit.one_hot(label, 10)))
        model.zero_grad()
        loss.backward()
        descend(parameters, lr)
        return loss

    return Instance(step, [(*example, 0.01) for example in sources.images(calls)], parameters)


def image_batch(sources: Sources, batch: int = 128, hidden: int = 50, calls: int = 4, pixels: int = 784) -> Instance:
    """784-50-10, a batch of images a step, softmax cross-entropy."""
    model = nn.MLP(pixels, [hidden, 10])
    parameters = model.parameters()
    to_single(parameters)

    def step(images: Any, labels: Any, lr: Any) -> Any:
        inputs = [pixel / 255.0 for pixel in images]
        losses = [surprise(model(inputs[pixels * k : pixels * (k + 1)]), label) for k, label in enumerate(labels)]
        loss = sum(losses) * (1.0 / batch)
        model.zero_grad()
        loss.backward()
        descend(parameters, lr)
        return loss

    examples = sources.images(batch * calls)
    batches = [examples[k : k + batch] for k in range(0, len(examples), batch)]
    arguments = [(b"".join(p[:pixels] for p, _ in part), bytes(label for _, label in part), 0.125) for part in batches]
    return Instance(step, arguments, parameters)


# ---- W5: a policy ----------------------------------------------------------------------------------------


def policy(_: Sources, batch: int = 32, hidden: int = 64, calls: int = 16) -> Instance:
    """4-64-64-2 with tanh, a batch a step, mean squared error, Adam."""
    generator = random.Random(21)
    layers = [nn.Layer(n, m, False, generator) for n, m in ((4, hidden), (hidden, hidden), (hidden, 2))]
    parameters = [p for layer in layers for p in layer.parameters()]
    to_single(parameters)
    adam = Adam(parameters, 0.9, 0.999)

    def act(x: Any) -> Any:
        for layer in layers[:-1]:
            x = [mgjit.tanh(h) for h in layer(x)]
        return layers[-1](x)

    def step(observations: Any, goals: Any, rate: Any, correction: Any) -> Any:
        total: Any = 0.0
        for k in range(batch):
            for action, goal in zip(act(observations[4 * k : 4 * k + 4]), goals[2 * k : 2 * k + 2]):
                difference = action - goal
                total = total + difference * difference
        loss = total * (1.0 / (2 * batch))
        for p in parameters:
            p.grad = 0.0
        loss.backward()
        adam.update(rate, correction)
        return loss

    arguments = [(*_episode(batch, 60 + t), *adam.corrections(0.003, t)) for t in range(1, calls + 1)]
    return Instance(step, arguments, parameters, [adam.m, adam.v])


def _episode(batch: int, seed: int) -> tuple[array[float], array[float]]:
    """Observations of four numbers and what the two actions should be."""
    draw = random.Random(seed)
    observations, goals = array("f"), array("f")
    for _ in range(batch):
        a, b, c, d = (draw.uniform(-1.0, 1.0) for _ in range(4))
        observations.extend((a, b, c, d))
        goals.extend((math.sin(2.0 * a) * b, 0.5 * c - d * a))
    return observations, goals


# ---- W6: microgpt ----------------------------------------------------------------------------------------


class MicroGPT(nn.Module):
    """One transformer layer over single letters: rmsnorm without weights, no biases, a relu MLP.

    Args:
        width: of the residual stream. heads: of the attention. block: longest sequence. The MLP is
            four times as wide.
    """

    def __init__(self, width: int = 16, heads: int = 4, block: int = 16, seed: int = 42) -> None:
        draw = random.Random(seed)
        self.heads, self.block = heads, block
        self.matrices: list[Matrix] = []

        def matrix(rows: int, columns: int) -> Matrix:
            made = [[mgjit.Value(draw.gauss(0.0, 0.08)) for _ in range(columns)] for _ in range(rows)]
            self.matrices.append(made)
            return made

        self.letters, self.places = matrix(VOCABULARY, width), matrix(block, width)
        self.out = matrix(VOCABULARY, width)
        self.query, self.key, self.value, self.mix = (matrix(width, width) for _ in range(4))
        self.expand, self.contract = matrix(4 * width, width), matrix(width, 4 * width)

    def parameters(self) -> list[mgjit.Value]:
        return [p for matrix in self.matrices for row in matrix for p in row]

    def __call__(self, tokens: Sequence[Any]) -> list[Vector]:
        """The scores of the next letter at every position."""
        keys: list[Vector] = []
        values: list[Vector] = []
        scores = []
        for place, token in enumerate(tokens):
            x = [a + b for a, b in zip(mgjit.take(self.letters, token), self.places[place])]
            x = normalized(x)
            x = add(x, linear(self.mix, self.attend(normalized(x), keys, values)))
            grown = [h.relu() for h in linear(self.expand, normalized(x))]
            x = add(x, linear(self.contract, grown))
            scores.append(linear(self.out, x))
        return scores

    def attend(self, x: Vector, keys: list[Vector], values: list[Vector]) -> Vector:
        """Causal attention: to this position and those before it, each head on its part of the vectors."""
        query = linear(self.query, x)
        keys.append(linear(self.key, x))
        values.append(linear(self.value, x))
        size = len(query) // self.heads
        mixed: Vector = []
        for begin in range(0, len(query), size):
            part = slice(begin, begin + size)
            scale = size**-0.5
            weights = softmax([mgjit.dot(query[part], key[part]) * scale for key in keys])
            mixed += [mgjit.dot(weights, column) for column in zip(*(value[part] for value in values))]
        return mixed


def linear(matrix: Matrix, x: Vector) -> Vector:
    """The product of a matrix and a vector."""
    return [mgjit.dot(row, x) for row in matrix]


def add(x: Vector, y: Vector) -> Vector:
    """The sum of two vectors."""
    return [a + b for a, b in zip(x, y)]


def normalized(x: Vector) -> Vector:
    """A vector over the root of the mean of its squares."""
    scale = (mgjit.dot(x, x) / len(x) + 1e-5) ** -0.5
    return [element * scale for element in x]


def softmax(scores: Vector) -> Vector:
    """Probabilities from scores."""
    powers = [mgjit.exp(s) for s in shifted(scores)]
    inverse = sum(powers) ** -1
    return [power * inverse for power in powers]


def spelled(name: str) -> bytes:
    """The tokens of a name, between two boundaries."""
    return bytes([BOUNDARY, *map(LETTERS.index, name), BOUNDARY])


def microgpt_step(model: MicroGPT, adam: Adam, documents: int) -> Callable[..., Any]:
    """A step over documents of equal length, whose tokens follow one another."""
    ragged_step = microgpt_ragged_step(model, adam)

    def step(tokens: Any, rate: Any, correction: Any) -> Any:
        length = len(tokens) // documents
        return ragged_step([tokens[length * k : length * (k + 1)] for k in range(documents)], rate, correction)

    return step


def microgpt_ragged_step(model: MicroGPT, adam: Adam) -> Callable[..., Any]:
    """A step over documents of any lengths."""

    def document_loss(tokens: Any) -> Any:
        losses = [surprise(scores, letter) for scores, letter in zip(model(tokens[:-1]), tokens[1:])]
        return sum(losses) * (1.0 / len(losses))

    def step(documents: Any, rate: Any, correction: Any) -> Any:
        loss = sum([document_loss(tokens) for tokens in documents]) * (1.0 / len(documents))
        for p in adam.parameters:
            p.grad = 0.0
        loss.backward()
        adam.update(rate, correction)
        return loss

    return step


def microgpt(
    sources: Sources, width: int = 16, heads: int = 4, calls: int = 64, letters: int | None = None
) -> Instance:
    """One document a step; sequences as long as names are, or all of `letters` letters."""
    model = MicroGPT(width, heads)
    adam = Adam(model.parameters(), 0.85, 0.99)
    names = sources.documents()[:calls]
    arguments = [(spelled(name), *adam.corrections(0.01, t)) for t, name in enumerate(names, 1)]
    return Instance(microgpt_step(model, adam, 1), arguments, adam.parameters, [adam.m, adam.v])  # type: ignore[arg-type]


def microgpt_batch(
    sources: Sources, documents: int = 16, letters: int = 7, width: int = 16, heads: int = 4, calls: int = 8
) -> Instance:
    """Several documents of the same length a step; 7 letters (8 positions) are a name's mean and a bit."""
    model = MicroGPT(width, heads)
    to_single(model.parameters())
    adam = Adam(model.parameters(), 0.85, 0.99)
    names = [name for name in sources.documents() if len(name) == letters][: documents * calls]
    batches = [names[k : k + documents] for k in range(0, len(names), documents)]
    arguments = [(b"".join(map(spelled, batch)), *adam.corrections(0.01, t)) for t, batch in enumerate(batches, 1)]
    step = microgpt_step(model, adam, documents)
    return Instance(step, arguments, adam.parameters, [adam.m, adam.v])  # type: ignore[arg-type]


def microgpt_ragged(longest: int = 15, width: int = 16, heads: int = 4, calls: int = 2) -> Instance:
    """A document of each length up to the longest one, in a shuffled order."""
    model = MicroGPT(width, heads)
    adam = Adam(model.parameters(), 0.85, 0.99)
    draw = random.Random(9)
    lengths = sorted(range(longest + 1), key=lambda _: draw.random())
    arguments = []
    for t in range(1, calls + 1):
        names = ["".join(draw.choices(LETTERS, k=length)) for length in lengths]
        arguments.append(([*map(spelled, names)], *adam.corrections(0.01, t)))
    return Instance(microgpt_ragged_step(model, adam), arguments, adam.parameters, [adam.m, adam.v])  # type: ignore[arg-type]


# ---- the table -------------------------------------------------------------------------------------------

STRICT = {"mode": "strict", "dtype": "float64", "grads": False}
FAST = {"mode": "fast", "dtype": "float32", "grads": False}

_ALL = (
    Workload("W1", "XOR 2-4-1, one sample", xor, STRICT, 1, "<= 0.35 µs a call; .loop <= 1.3 x C"),
    Workload("W2", "moons 2-16-16-1, batch 100, hinge and L2", moons, STRICT, 100, "<= 1.2 x C"),
    Workload("W3", "784-50-10, one image, squared error", image, STRICT, 1, "<= 1.05 x C + call; .loop <= 2.9 µs"),
    Workload("W4", "784-50-10, batch 128, softmax cross-entropy", image_batch, FAST, 128, "<= 1.1 x C"),
    Workload("W5", "policy 4-64-64-2 tanh, batch 32, Adam", policy, FAST, 32, "<= 1.2 x C"),
    Workload("W6", "microgpt, one document", microgpt, STRICT, 1, "<= 10 µs a sample"),
    Workload("W6x16", "microgpt, 16 documents", microgpt_batch, FAST, 16, "<= 3 µs a sample"),
)
WORKLOADS = {workload.name: workload for workload in _ALL}
