"""frozen/step.py: frozen steps, compared with plain Python bit for bit, before and after the model has changed."""

from __future__ import annotations

import copy
import math
import pickle
import random
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit.errors import ArgumentError, FreezeError, PhaseError
from mgjit.ir.interpreter import Interpreter
from tests.export.compiling import checked

XS = [0.3, -1.2, 0.7]


def _numbers(result: Any) -> Any:
    """The bits of a result: Values, floats, or lists of them."""
    if isinstance(result, (list, tuple)):
        return [_numbers(x) for x in result]
    return float(getattr(result, "data", result)).hex()


def _training(model: Any) -> Any:
    @mgjit.compile(background=False, verify="never")
    def train(xs: Any, ys: Any, lr: float) -> Any:
        scores = model(xs)
        loss = sum((s - y) ** 2 for s, y in zip(scores, ys))
        for p in model.parameters():
            p.grad = 0.0
        loss.backward()
        for p in model.parameters():
            p.data -= lr * p.grad
        return loss, [s.data for s in scores]

    return train


def _model(seed: int = 1) -> Any:
    random.seed(seed)
    return nn.MLP(3, [5, 2])


# ---- the numbers of the forward part, as the model was ----------------------------------------------------


@pytest.mark.parametrize("moved", [False, True], ids=["before any step", "after a compiled step"])
def test_01_later_changes_do_not_reach_it(moved: bool) -> None:
    """A model, a function over it, and a training step: the same bits as before, after the model has been trained."""
    model = _model()
    train = _training(model)
    if moved:
        train(XS, [1.0, 0.0], 0.1)
    scores = _numbers(model(XS))
    loss = _numbers(train.forward(XS, [1.0, 0.0], 0.1)) if moved else None
    frozen = [mgjit.freeze(model, XS), mgjit.freeze(lambda xs: [s * 1.0 for s in model(xs)], XS)]
    step = mgjit.freeze(train, XS, [1.0, 0.0], 0.1)
    loss = loss or _numbers(train.forward(XS, [1.0, 0.0], 0.1))
    for _ in range(6):
        assert [_numbers(one(XS)) for one in frozen] == [scores, scores]
        assert _numbers(step(XS, [1.0, 0.0], 0.1)) == loss
        train(XS, [1.0, 0.0], 0.1)
    assert _numbers(model(XS)) != scores
    assert _numbers(mgjit.freeze(model, XS)(XS)) == _numbers(model(XS))


def test_02_other_lengths_are_traced_with_the_old_numbers() -> None:
    """Also when the parameters have moved into the memory of another step in the meantime."""
    weights = [mgjit.Value(0.1 * k + 0.3) for k in range(8)]

    def forward(xs: Any) -> Any:
        return sum(w * x for w, x in zip(weights, xs))

    @mgjit.compile(background=False)
    def train(xs: Any) -> Any:
        loss = forward(xs) ** 2
        loss.backward()
        for w in weights:
            w.data -= 0.1 * w.grad
        return loss

    expected = {n: _numbers(forward((XS * 2)[:n])) for n in range(1, 7)}
    frozen = mgjit.freeze(forward, XS)
    train(XS * 2)
    for n in (3, 1, 6, 2, 3):
        assert _numbers(frozen((XS * 2)[:n])) == expected[n]
    assert frozen.stats.traces == 4


def test_03_nothing_of_backward_is_lowered() -> None:
    """The Program of a frozen training step is that of its forward function, and it says what was left out."""
    model = _model()
    step = mgjit.freeze(_training(model), XS, [1.0, 0.0], 0.1)
    lowering = step.lower(XS, [1.0, 0.0], 0.1)
    assert "backward" not in lowering.graph

    def forward(xs: Any, ys: Any) -> Any:
        scores = model(xs)
        return sum((s - y) ** 2 for s, y in zip(scores, ys)), [s.data for s in scores]

    other = mgjit.freeze(forward, XS, [1.0, 0.0]).lower(XS, [1.0, 0.0])
    assert lowering.lowered.records == other.lowered.records
    assert "records belong to training" in lowering.explain()
    assert "32 numbers as they were when it was frozen" in repr(step)
    assert "later changes of it do not reach this step" in step.explain()


class _Plain:
    """Weights in lists, attributes, dicts, class attributes."""

    slope = 0.25

    def __init__(self) -> None:
        self.rows = [[0.1 * i - 0.2 * j for j in range(3)] for i in range(4)]
        self.bias = [0.5, -0.5, 0.0, 1.5]
        self.gain, self.size = 1.5, 4
        self.more = {"eps": 1e-3}

    def __call__(self, xs: Any) -> Any:
        sums = [sum(w * x for w, x in zip(self.rows[i], xs)) + self.bias[i] for i in range(self.size)]
        return [math.tanh(s * self.gain) * self.slope + self.more["eps"] for s in sums]


def test_04_plain_floats_are_weights() -> None:
    """Wherever the step reads them; ints decide about its shape, and stay constants."""
    model = _Plain()
    expected = _numbers(model(XS))
    frozen = mgjit.freeze(model, XS)
    model.rows[0][0], model.bias, model.gain, model.size = 9.0, [0.0] * 4, 2.0, 3
    model.more["eps"] = 1.0
    for _ in range(5):
        assert _numbers(frozen(XS)) == expected
    assert _numbers(model(XS)) != expected


def test_05_no_weight_is_in_the_code() -> None:
    """Models with other numbers share their code; where weights are constants, the code is kept in no cache."""
    first, second = _Plain(), _Plain()
    second.rows = [[x + 0.125 for x in row] for row in second.rows]
    second.gain, second.more = 0.75, {"eps": 2e-3}
    frozen = [mgjit.freeze(model, XS) for model in (first, second)]
    assert len({one.stats.members[0].structure for one in frozen}) == 1
    assert [_numbers(one(XS)) for one in frozen] == [_numbers(first(XS)), _numbers(second(XS))]
    constants = tuple(0.1 * k + 0.01 for k in range(40))
    tuples = mgjit.freeze(lambda xs: sum(c * x for c, x in zip(constants, xs)), XS * 10)
    assert tuples.stats.cache == "off"
    assert "constants of the code" in tuples.explain()
    buffer = array("d", [0.3, 0.7, 0.9])
    of_array = mgjit.freeze(lambda xs: sum(x * buffer[k] for k, x in enumerate(xs)), XS)
    assert of_array.stats.cache == "off"


def test_06_float32_is_that_of_the_step() -> None:
    """Also where the step computes with its own numbers in double precision, before they enter."""
    model = _Plain()

    def scaled(xs: Any) -> Any:
        return [x * (model.gain / 3.0 * model.slope) for x in xs] + model(xs)

    for function in (model, scaled):
        step = mgjit.compile(dtype="float32", background=False)(function)
        frozen = mgjit.freeze(step, XS)
        assert _numbers(frozen(XS)) == _numbers(step(XS))


# ---- other people's classes ---------------------------------------------------------------------------------


class Node:
    """As in micrograd."""

    def __init__(self, data: float, children: tuple[Node, ...] = ()) -> None:
        self.data, self.grad, self._children = data, 0.0, children
        self._backward: Callable[[], None] = lambda: None

    def __add__(self, other: Node) -> Node:
        out = Node(self.data + other.data, (self, other))

        def backward() -> None:
            self.grad += out.grad
            other.grad += out.grad

        out._backward = backward
        return out

    def __mul__(self, other: Any) -> Node:
        other = other if isinstance(other, Node) else Node(other)
        out = Node(self.data * other.data, (self, other))

        def backward() -> None:
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out._backward = backward
        return out

    def backward(self) -> None:
        order: list[Node] = []
        seen: set[int] = set()

        def visit(node: Node) -> None:
            if id(node) not in seen:
                seen.add(id(node))
                for child in node._children:
                    visit(child)
                order.append(node)

        visit(self)
        self.grad = 1.0
        for node in reversed(order):
            node._backward()


def _sum(nodes: Any, xs: Any) -> Any:
    total = Node(0.0)
    for node, x in zip(nodes, xs):
        total = total + node * x
    return total


@pytest.mark.parametrize("count", [3, 20])
def test_07_foreign_classes(count: int) -> None:
    """Few objects, whose numbers are copied otherwise, and many, which move into the memory of a training step."""
    nodes = [Node(0.25 * k - 1.0) for k in range(count)]
    xs = [0.1 * k + 0.3 for k in range(count)]

    @mgjit.compile(background=False)
    def train(xs: Any, lr: float) -> Any:
        total = _sum(nodes, xs)
        loss = total * total
        for node in nodes:
            node.grad = 0.0
        loss.backward()
        for node in nodes:
            node.data -= lr * node.grad
        return loss.data

    def forward(xs: Any) -> Any:
        return _sum(nodes, xs).data

    expected, shorter, loss = forward(xs), forward(xs[:2]), train.forward(xs, 0.1)
    frozen, step = mgjit.freeze(forward, xs), mgjit.freeze(train, xs, 0.1)
    for _ in range(5):
        train(xs, 0.1)
        assert frozen(xs) == expected
        assert step(xs, 0.1) == loss
    assert frozen(xs[:2]) == shorter
    assert forward(xs) != expected


# ---- what is assigned ---------------------------------------------------------------------------------------


def test_08_state_that_is_assigned_is_shared() -> None:
    """What the forward part assigns is the program's: state, attributes, lists; what it only reads is frozen."""
    memory, mean = mgjit.zeros(3), mgjit.state([2.0])
    counts, log = [0.0, 0.0], {"calls": 0}

    def forward(x: float) -> float:
        for k in range(3):
            memory[k] = memory[k] * 0.5 + x * mean[0]
        counts[1] += x
        log["calls"] += 1
        return memory[0] + counts[1]

    frozen = mgjit.freeze(forward, 1.0)
    assert (list(memory), counts) == ([0.0, 0.0, 0.0], [0.0, 0.0])  # freezing runs nothing
    mean[0] = 100.0
    assert frozen(1.0) == 3.0
    memory[0] = 4.0
    counts[1] = 10.0
    assert frozen(1.0) == 4.0 + 11.0
    assert (list(memory), counts, log) == ([4.0, 3.0, 3.0], [0.0, 11.0], {"calls": 2})
    assert "an mgjit.state of 3 numbers" in frozen.explain()
    assert "counts" in frozen.explain()


def test_09_what_a_further_trace_assigns_is_read_by_the_others() -> None:
    """A kernel that has only read it is made anew."""
    memory = mgjit.zeros(1)

    def forward(x: float, reset: bool) -> float:
        if reset:
            memory[0] = x
        return memory[0] + x

    frozen = mgjit.freeze(forward, 1.0, False)
    for _ in range(6):
        assert frozen(1.0, False) == 1.0
    assert frozen(5.0, True) == 10.0
    assert frozen(1.0, False) == 6.0
    assert frozen(1.0, False) == 6.0


def test_10_random_numbers_are_drawn_as_in_python() -> None:
    """From the generators of the program, in the same order."""
    weights = [1.0, 2.0, 3.0]

    def sample(temperature: float) -> int:
        return random.choices(range(3), weights=[w / temperature for w in weights])[0]

    frozen = mgjit.freeze(sample, 0.5)
    random.seed(3)
    expected = [sample(0.5) for _ in range(20)]
    random.seed(3)
    assert [frozen(0.5) for _ in range(10)] + [int(x) for x in frozen.loop([0.5] * 10)] == expected


# ---- a token at a time ---------------------------------------------------------------------------------------


class _Attention:
    """One head of attention over what has come before: keys and values in lists that grow, or in states."""

    def __init__(self) -> None:
        random.seed(5)
        self.query, self.key, self.value = ([[random.gauss(0, 1) for _ in range(4)] for _ in range(4)] for _ in "qkv")
        self.table = [[mgjit.Value(random.gauss(0, 1)) for _ in range(4)] for _ in range(6)]
        self.keys, self.values = mgjit.zeros(8 * 4), mgjit.zeros(8 * 4)

    def _vectors(self, token: int) -> list[list[Any]]:
        x = [e * 1.0 for e in self.table[token]]
        return [[sum(w * e for w, e in zip(row, x)) for row in matrix] for matrix in (self.query, self.key, self.value)]

    def growing(self, token: int, keys: Any, values: Any) -> Any:
        q, k, v = self._vectors(token)
        keys.append(k)
        values.append(v)
        powers = [mgjit.exp(sum(a * b for a, b in zip(q, key))) for key in keys]
        total = sum(powers)
        return [sum(p / total * value[j] for p, value in zip(powers, values)) for j in range(4)]

    def fixed(self, token: int, position: int) -> Any:
        q, k, v = self._vectors(token)
        for j in range(4):
            self.keys[4 * position + j] = k[j].data
        for j in range(4):
            self.values[4 * position + j] = v[j].data
        scores = [sum(q[j] * self.keys[4 * t + j] for j in range(4)) for t in range(8)]
        powers = [mgjit.exp(score) if t <= position else 0.0 for t, score in enumerate(scores)]
        total = sum(powers)
        return [sum(p / total * self.values[4 * t + j] for t, p in enumerate(powers)) for j in range(4)]


def _sampled(step: Callable[..., Any], make: Callable[[int], Any]) -> list[Any]:
    """Seven tokens, each of which depends on the last result; and what lies in the caches."""
    caches, token, found = make(0), 1, []
    for position in range(7):
        scores = _numbers(step(token, *(caches if caches else (position,))))
        found.append(scores)
        token = int(abs(float.fromhex(scores[0])) * 1000) % 6
    return [*found, _numbers(list(caches))]


def test_14_keys_and_values_in_lists_that_grow() -> None:
    """Of arguments: a kernel for each length, which appends as Python does; what it appends are floats."""
    model = _Attention()
    expected = _sampled(model.growing, lambda _: ([], []))
    frozen = mgjit.freeze(model.growing, 0, [], [])
    for _ in range(5):
        assert _sampled(frozen, lambda _: ([], [])) == expected
    assert frozen.stats.traces == 7
    keys: list[Any] = [[1.0, 2.0, 3.0, 4.0]]
    frozen(2, keys, [[0.5] * 4])
    assert (len(keys), {type(x) for x in keys[1]}) == (2, {float})
    with pytest.raises(ArgumentError, match="are one list"):
        frozen(2, keys, keys)
    with pytest.raises(FreezeError, match="adds elements"):
        mgjit.freeze(lambda x, xs: xs.insert(0, x) or x, 1.0, [1.0, 2.0])


def test_15_keys_and_values_in_a_state() -> None:
    """One kernel for all positions: the place that is written is computed from an argument."""
    model = _Attention()
    expected = _sampled(model.growing, lambda _: ([], []))[:-1]
    assert _sampled(model.fixed, lambda _: ())[:-1] == expected  # zeros behind the position change no bit
    frozen = mgjit.freeze(model.fixed, 0, 0)
    for _ in range(3):
        assert _sampled(frozen, lambda _: ())[:-1] == expected
    assert frozen.stats.traces == 1
    assert frozen.lower(0, 0).lowered.loops > 4  # two tables that are written are no reason for code without loops
    tokens = [1, 3, 2, 5]
    assert _numbers([list(row) for row in zip(*frozen.loop(tokens, range(4)))]) == [
        _numbers(frozen(token, position)) for position, token in enumerate(tokens)
    ]


def test_16_a_whole_sample_in_one_call() -> None:
    """A token that is drawn in the step is the index of the next look-up in it; `.loop` makes a sample a row."""
    model = _Attention()

    def sample(temperature: float) -> list[int]:
        keys: list[Any] = []
        values: list[Any] = []
        token, tokens = 0, []
        for _ in range(5):
            weights = [mgjit.exp(x / temperature) for x in model.growing(token, keys, values)]
            token = random.choices(range(4), weights=[w.data for w in weights])[0]
            tokens.append(token)
        return tokens

    frozen = mgjit.freeze(sample, 0.5)
    random.seed(9)
    expected = [sample(0.5) for _ in range(8)]
    random.seed(9)
    found = [frozen(0.5) for _ in range(3)]
    found += [[int(x) for x in row] for row in zip(*frozen.loop([0.5] * 5))]
    assert found == expected


# ---- refusals -----------------------------------------------------------------------------------------------


def test_21_results_of_training_are_refused() -> None:
    """Gradients, updated parameters, updates by hand; the message names the line and the advice works."""
    model = _model()

    def gradient(xs: Any) -> Any:
        loss = model(xs)[0]
        loss.backward()
        return loss, model.parameters()[0].grad

    def updated(xs: Any) -> Any:
        loss = model(xs)[0]
        loss.backward()
        for p in model.parameters():
            p.data -= 0.1 * p.grad
        return model(xs)[0]

    def by_hand(xs: Any) -> Any:
        model.parameters()[0].data -= 0.1 * xs[0]
        return model(xs)[0]

    for function, text in ((gradient, "number 2 of the 2"), (updated, "its result"), (by_hand, "without a call of")):
        with pytest.raises(FreezeError, match=text) as caught:
            mgjit.freeze(function, XS)
        assert f"{Path(__file__).name}:{function.__code__.co_firstlineno}" in str(caught.value)
    assert _numbers(mgjit.freeze(lambda xs: model(xs)[0], XS)(XS)) == _numbers(model(XS)[0])


def test_22_what_is_no_kernel_is_refused() -> None:
    """A step that Python would have to run sees the model as it is."""
    seen: list[int] = []

    def logs(x: float) -> float:
        seen.append(1)
        return x

    with pytest.raises(FreezeError, match="seen"):
        mgjit.freeze(logs, 1.0)
    with pytest.raises(ArgumentError):
        mgjit.freeze(3, 1.0)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError):
        mgjit.freeze(logs)  # type: ignore[call-arg]
    frozen = mgjit.freeze(lambda x: 2.0 * x, 1.0)
    with pytest.raises(ArgumentError, match="frozen already"):
        mgjit.freeze(frozen, 1.0)
    with pytest.raises(PhaseError):
        frozen.backward()
    with pytest.raises(PhaseError, match="pass its result"):
        mgjit.compile(lambda x: frozen(x) + 1.0, background=False)(1.0)
    with pytest.raises(TypeError):
        pickle.dumps(frozen)
    assert copy.deepcopy(frozen) is frozen
    assert frozen.forward(2.0) == 4.0


def test_23_a_model_that_has_changed_is_not_traced_again() -> None:
    """Arguments of another structure would be computed by another model; those that are known still work."""
    model = _model()
    frozen = mgjit.freeze(lambda xs, k: [s * k for s in model(xs)], XS, 2.0)
    expected = _numbers(frozen(XS, 2.0))
    model.layers[1] = nn.MLP(5, [2])
    with pytest.raises(FreezeError, match="has changed"):
        frozen(XS, 2)
    assert _numbers(frozen(XS, 2.0)) == expected


# ---- for code that is used elsewhere ------------------------------------------------------------------------


def test_31_the_program_with_its_weights() -> None:
    """What the interpreter computes from it is the result; also for weights that are numbers of the user's."""
    model, plain = _model(), _Plain()
    for step in (model, plain):
        expected = _numbers(step(XS))
        frozen = mgjit.freeze(step, XS)
        model.parameters()[0].data, plain.gain = 7.0, 7.0
        found = frozen.forward_program(XS)
        frame = found.plan.frame()
        assert found.plan.pack((XS,), frame)
        arrays = [array for regions in found.lowered.memory.regions.values() for _, array in regions]
        kept = {
            array: list(found.weights[key]) for array in arrays if (key := (array.space, array.region)) in found.weights
        }
        given = {array: list(frame.packed) for array in arrays if array.space == "input"}
        outputs = next(array for array in arrays if array.space == "output")
        memory = {**kept, **given, outputs: [0.0] * outputs.size}
        Interpreter(found.lowered.program, memory).run()
        assert _numbers(found.result(memory[outputs], (XS,))) == expected


def test_32_exported_and_reported(tmp_path: Path) -> None:
    """As any step: C with the weights as they were, which gives the recorded bits; a page about the forward part."""
    model = _model()
    frozen = mgjit.freeze(model, XS)
    model.parameters()[0].data = 9.0
    frozen.export(tmp_path, "net", calls=[(XS,), ([0.5, 0.25, -1.0],)])
    assert "all bits" in checked(tmp_path, "net")
    frozen(XS)
    assert "MLP" in str(frozen.report())


class _Tape:
    """Nodes whose backward pass clips gradients, so that it is recorded operation by operation."""

    def __init__(self, data: float, children: tuple[_Tape, ...] = (), local: tuple[float, ...] = ()) -> None:
        self.data, self.grad, self._children, self._local = data, 0.0, children, local

    def __add__(self, other: _Tape) -> _Tape:
        return _Tape(self.data + other.data, (self, other), (1.0, 1.0))

    def __mul__(self, other: _Tape) -> _Tape:
        return _Tape(self.data * other.data, (self, other), (other.data, self.data))

    def backward(self) -> None:
        order: list[_Tape] = []

        def visit(node: _Tape) -> None:
            if node not in order:
                for child in node._children:
                    visit(child)
                order.append(node)

        visit(self)
        self.grad = 1.0
        for node in reversed(order):
            for child, local in zip(node._children, node._local):
                child.grad += max(-1.0, min(1.0, local * node.grad))


@pytest.mark.parametrize("count", [3, 20])
def test_17_recorded_backward_passes_are_left_out(count: int) -> None:
    """Whether the numbers of parameters would be copied, or moved."""
    nodes = [_Tape(0.1 * k - 0.4) for k in range(count)]
    steps = [0.0]

    @mgjit.compile(background=False, verify="never")
    def train(xs: Any, rate: float) -> Any:
        total = _Tape(0.0)
        for node, x in zip(nodes, xs):
            total = total + node * _Tape(x)
        loss = total * total
        loss.backward()
        steps[0] += 1.0
        for node in nodes:
            node.data -= rate * node.grad
            node.grad = 0.0
        return loss.data

    xs = [0.3 * k + 0.1 for k in range(count)]
    expected = train.forward(xs, 0.0)
    frozen = mgjit.freeze(train, xs, 0.1)
    before = [(node.data, node.grad) for node in nodes], list(steps)
    assert [frozen(xs, 0.1) for _ in range(3)] == [expected] * 3
    assert ([(node.data, node.grad) for node in nodes], steps) == before
    train(xs, 0.01)
    assert frozen(xs, 0.1) == expected
    assert train.forward(xs, 0.0) != expected


class _Body:
    """An object with two numbers, of which neither is a gradient."""

    def __init__(self, k: int) -> None:
        self.mass, self.place = 0.5 * k + 1.0, 0.25 * k


def test_18_objects_with_several_numbers() -> None:
    """All of them are weights, in few objects and in many."""
    for count in (3, 20):
        bodies = [_Body(k) for k in range(count)]

        def centre(x: float, bodies: Any = bodies) -> float:
            return sum(b.mass * (b.place - x) for b in bodies) / sum(b.mass for b in bodies)

        frozen = mgjit.freeze(centre, 0.5)
        expected = centre(0.5)
        for body in bodies:
            body.place = 9.0
        assert frozen(0.5) == expected != centre(0.5)
