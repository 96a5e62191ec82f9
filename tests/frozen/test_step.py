"""frozen/step.py: frozen steps, compared with plain Python bit for bit, before and after the model has changed."""

from __future__ import annotations

import copy
import math
import pickle
import random
from array import array
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit.errors import ArgumentError, FreezeError, PhaseError
from tests.export.compiling import checked
from tests.frozen.models import XS, mlp, numbers, training

# ---- the numbers of the forward part, as the model was ----------------------------------------------------


@pytest.mark.parametrize("moved", [False, True], ids=["before any step", "after a compiled step"])
def test_01_later_changes_do_not_reach_it(moved: bool) -> None:
    """A model, a function over it, and a training step: the same bits as before, after the model has been trained."""
    model = mlp()
    train = training(model)
    if moved:
        train(XS, [1.0, 0.0], 0.1)
    scores = numbers(model(XS))
    loss = numbers(train.forward(XS, [1.0, 0.0], 0.1)) if moved else None
    frozen = [mgjit.freeze(model, XS), mgjit.freeze(lambda xs: [s * 1.0 for s in model(xs)], XS)]
    step = mgjit.freeze(train, XS, [1.0, 0.0], 0.1)
    loss = loss or numbers(train.forward(XS, [1.0, 0.0], 0.1))
    for _ in range(6):
        assert [numbers(one(XS)) for one in frozen] == [scores, scores]
        assert numbers(step(XS, [1.0, 0.0], 0.1)) == loss
        train(XS, [1.0, 0.0], 0.1)
    assert numbers(model(XS)) != scores
    assert numbers(mgjit.freeze(model, XS)(XS)) == numbers(model(XS))


def test_02_other_lengths_are_traced_with_the_oldnumbers() -> None:
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

    expected = {n: numbers(forward((XS * 2)[:n])) for n in range(1, 7)}
    frozen = mgjit.freeze(forward, XS)
    train(XS * 2)
    for n in (3, 1, 6, 2, 3):
        assert numbers(frozen((XS * 2)[:n])) == expected[n]
    assert frozen.stats.traces == 4


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


def test_03_plain_floats_are_weights() -> None:
    """Wherever the step reads them; ints decide about its shape, and stay constants."""
    model = _Plain()
    expected = numbers(model(XS))
    frozen = mgjit.freeze(model, XS)
    model.rows[0][0], model.bias, model.gain, model.size = 9.0, [0.0] * 4, 2.0, 3
    model.more["eps"] = 1.0
    for _ in range(5):
        assert numbers(frozen(XS)) == expected
    assert numbers(model(XS)) != expected


def test_04_no_weight_is_in_the_code() -> None:
    """Models with other numbers share their code; where weights are constants, the code is kept in no cache."""
    first, second = _Plain(), _Plain()
    second.rows = [[x + 0.125 for x in row] for row in second.rows]
    second.gain, second.more = 0.75, {"eps": 2e-3}
    frozen = [mgjit.freeze(model, XS) for model in (first, second)]
    assert len({one.stats.members[0].structure for one in frozen}) == 1
    assert [numbers(one(XS)) for one in frozen] == [numbers(first(XS)), numbers(second(XS))]
    constants = tuple(0.1 * k + 0.01 for k in range(40))
    tuples = mgjit.freeze(lambda xs: sum(c * x for c, x in zip(constants, xs)), XS * 10)
    assert tuples.stats.cache == "off"
    assert "constants of the code" in tuples.explain()
    buffer = array("d", [0.3, 0.7, 0.9])
    of_array = mgjit.freeze(lambda xs: sum(x * buffer[k] for k, x in enumerate(xs)), XS)
    assert of_array.stats.cache == "off"


def test_05_float32_is_that_of_the_step() -> None:
    """Also where the step computes with its own numbers in double precision, before they enter."""
    model = _Plain()

    def scaled(xs: Any) -> Any:
        return [x * (model.gain / 3.0 * model.slope) for x in xs] + model(xs)

    for function in (model, scaled):
        step = mgjit.compile(dtype="float32", background=False)(function)
        frozen = mgjit.freeze(step, XS)
        assert numbers(frozen(XS)) == numbers(step(XS))


# ---- what is assigned ---------------------------------------------------------------------------------------


def test_06_state_that_is_assigned_is_shared() -> None:
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


def test_07_what_a_further_trace_assigns_is_read_by_the_others() -> None:
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


def test_08_random_numbers_are_drawn_as_in_python() -> None:
    """From the generators of the program, in the same order."""
    weights = [1.0, 2.0, 3.0]

    def sample(temperature: float) -> int:
        return random.choices(range(3), weights=[w / temperature for w in weights])[0]

    frozen = mgjit.freeze(sample, 0.5)
    random.seed(3)
    expected = [sample(0.5) for _ in range(20)]
    random.seed(3)
    assert [frozen(0.5) for _ in range(10)] + [int(x) for x in frozen.loop([0.5] * 10)] == expected


# ---- refusals -----------------------------------------------------------------------------------------------


def test_09_what_is_no_kernel_is_refused() -> None:
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


def test_10_a_model_that_has_changed_is_not_traced_again() -> None:
    """Arguments of another structure would be computed by another model; those that are known still work."""
    model = mlp()
    frozen = mgjit.freeze(lambda xs, k: [s * k for s in model(xs)], XS, 2.0)
    expected = numbers(frozen(XS, 2.0))
    model.layers[1] = nn.MLP(5, [2])
    with pytest.raises(FreezeError, match="has changed"):
        frozen(XS, 2)
    assert numbers(frozen(XS, 2.0)) == expected


# ---- for code that is used elsewhere ------------------------------------------------------------------------


def test_11_exported_and_reported(tmp_path: Path) -> None:
    """As any step: C with the weights as they were, which gives the recorded bits; a page about the forward part."""
    model = mlp()
    frozen = mgjit.freeze(model, XS)
    model.parameters()[0].data = 9.0
    frozen.export(tmp_path, "net", calls=[(XS,), ([0.5, 0.25, -1.0],)])
    assert "all bits" in checked(tmp_path, "net")
    frozen(XS)
    assert "MLP" in str(frozen.report())
