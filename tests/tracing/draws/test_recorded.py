"""What draws give while a step is traced: inputs, formulas over inputs, ints of known ranges."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mgjit.engine.precision import FLOAT32, FLOAT64, Precision
from mgjit.errors import RandomnessError, TraceError
from mgjit.ir import opcodes as ops
from mgjit.tracing.autograd.chosen import Gatherer
from mgjit.tracing.draws.recorded import Drawing
from mgjit.tracing.record.recorder import Recorder
from mgjit.tracing.record.values import traced_types

FIRST = 5
GENERATOR = random.Random(1)


class Scene:
    """A trace in which is drawn."""

    def __init__(self, precision: Precision = FLOAT64) -> None:
        self.recorder = Recorder(precision)
        self.types = traced_types(self.recorder, Gatherer())
        self.drawing = Drawing(self.recorder, self.types, FIRST)
        self.x = self.types.input_number(0)

    def draw(self, name: str, *given: Any, **options: Any) -> Any:
        """By the name of the method."""
        return self.drawing.draw(GENERATOR, name, getattr(random.Random, name), given, options)

    def names(self) -> list[tuple[str, tuple[Any, ...]]]:
        """What is drawn."""
        return [(draw.name, draw.arguments) for draw in self.drawing.plan.draws]

    def operations(self) -> list[int]:
        """What is recorded besides."""
        return [code & (ops.NUMBER - 1) for code in self.recorder.op]


def test_01_numbers_follow_one_another() -> None:
    """Inputs behind those of the arguments; nothing is recorded, nothing is drawn."""
    scene, state = Scene(), GENERATOR.getstate()
    made = [scene.draw("random"), scene.draw("choices", range(4), k=3), scene.draw("gauss", 1, 2.5)]
    flat = [made[0], *made[1], made[2]]
    assert [number._leaf for number in flat] == [ops.leaf(ops.INPUT, FIRST + k) for k in range(5)]
    assert [isinstance(number, int) for number in flat] == [False, True, True, True, False]
    assert scene.names() == [("random", ()), ("choices", (range(4),)), ("gauss", (1, 2.5))]
    assert scene.operations() == []
    assert GENERATOR.getstate() == state


@pytest.mark.parametrize(
    ("name", "given", "among"),
    [
        ("randint", (-2, 3), range(-2, 4)),
        ("randrange", (7,), range(7)),
        ("randrange", (2, 11, 4), range(2, 11, 4)),
        ("randrange", (9, 0, -2), range(1, 10, 2)),
        ("getrandbits", (4,), range(16)),
        ("choice", (range(3, 9, 2),), range(3, 9, 2)),
        ("choice", ([4, 2, 9],), range(2, 10)),
    ],
)
def test_02_ranges_of_ints(name: str, given: tuple[Any, ...], among: range) -> None:
    """Known, so that they can be indices; every number that can be drawn is among them."""
    scene = Scene()
    number = scene.draw(name, *given)
    assert scene.recorder.known_integers[number._leaf] == among
    assert {getattr(GENERATOR, name)(*given) for _ in range(300)} <= set(among)
    if among[0] >= 0:
        scene.recorder.check_index(number._leaf, among[-1] + 1)
    assert scene.recorder.checks == []
    with pytest.raises(TraceError, match="Draw or compute it in range"):
        scene.recorder.check_index(number._leaf, among[-1])


def test_03_formulas() -> None:
    """A draw with constants, and the arithmetic of the library."""
    for name, given, drawn, operations in (
        ("uniform", (0.5, None), ("random", ()), [ops.SUBTRACT, ops.MULTIPLY, ops.ADD]),
        ("gauss", (None, 2.0), ("gauss", (-0.0, 1.0)), [ops.MULTIPLY, ops.ADD]),
        ("normalvariate", (1.0, None), ("normalvariate", (-0.0, 1.0)), [ops.MULTIPLY, ops.ADD]),
        ("lognormvariate", (1.0, None), ("normalvariate", (-0.0, 1.0)), [ops.MULTIPLY, ops.ADD, ops.EXP]),
        ("expovariate", (None,), ("expovariate", (1.0,)), [ops.DIVIDE]),
    ):
        scene = Scene()
        scene.draw(name, *(scene.x if number is None else number for number in given))
        assert scene.names() == [drawn]
        assert repr(scene.names()[0][1]) == repr(drawn[1])
        assert scene.operations() == operations


def test_04_traced_weights() -> None:
    """An index is the number of cumulative weights up to a random number."""
    scene = Scene()
    (index,) = scene.draw("choices", range(4), [scene.x, 1.0, 2.0, 3.0])
    assert scene.names() == [("random", ())]
    assert scene.operations().count(ops.LESS_EQUAL) == 3
    assert scene.recorder.known_integers[index._leaf] == range(4)
    assert isinstance(index, int)
    assert not isinstance(index, bool)
    assert scene.draw("choices", ["only"], [scene.x]) == ["only"]


def test_05_refused() -> None:
    """What is not a number, too great, or cannot be told."""
    for precision, name, given, why in (
        (FLOAT64, "betavariate", ("x", 1.0), "traced numbers"),
        (FLOAT64, "gauss", ([], 1.0), "must be numbers"),
        (FLOAT64, "getrandbits", (54,), "exactly up to 9007199254740992"),
        (FLOAT32, "randrange", (1 << 25,), "exactly up to 16777216"),
        (FLOAT64, "choice", ("abc",), "from a str"),
        (FLOAT64, "randbytes", (2,), "gives bytes"),
        (FLOAT64, "sample", ({1, 2}, 1), "from a set"),
    ):
        scene = Scene(precision)
        with pytest.raises(RandomnessError, match=why):
            scene.draw(name, *(scene.x if one == "x" else one for one in given))  # type: ignore[attr-defined]
        assert scene.names() == []
