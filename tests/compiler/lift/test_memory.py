"""The memory map: which array a leaf is in."""

from __future__ import annotations

from typing import Any

import mgjit
from mgjit.compiler.lift.memory import Memory
from mgjit.ir.opcodes import GRADIENT, INPUT, LOCAL, OUTPUT, PARAMETER, STATE
from mgjit.ir.trace import InputRegion
from tests.lowering import Example, numbers


def example() -> Example:
    """Everything once."""
    ws = [mgjit.Value(v) for v in numbers(3)]
    s, z = mgjit.state([1.0, 2.0]), mgjit.zeros(4)

    def step(x: Any, raw: Any) -> Any:
        made = mgjit.Value(x)
        loss = sum(w * r for w, r in zip(ws, raw)) + made * s[1]
        loss.backward()
        z[3] = made.grad
        return loss, x

    return Example(step, 0.5, bytes([1, 2, 3]))


def test_01_regions() -> None:
    """One array for each storage, state, buffer; sizes and formats are theirs."""
    made = example()
    regions = made.memory.regions
    sizes = {kind: [array.size for _, array in found] for kind, found in regions.items()}
    assert sizes[PARAMETER] == sizes[GRADIENT] == [3]
    assert sizes[STATE] == [2, 4]
    assert sizes[INPUT] == [1, 3]
    assert [array.format for _, array in regions[INPUT]] == ["d", "B"]
    assert sizes[OUTPUT] == [2]
    assert sizes[LOCAL] == [1]


def test_02_place() -> None:
    """A range of leaves inside of one region; None across two."""
    memory = example().memory
    first, second = (array for _, array in memory.regions[STATE])
    assert memory.place(STATE, 0, 1) == (first, 0)
    assert memory.place(STATE, 2, 5) == (second, 2)
    assert memory.place(STATE, 1, 2) is None


def test_03_gradients_belong_to_parameters() -> None:
    """And to nothing else."""
    memory = example().memory
    (_, data), (_, gradient) = memory.regions[PARAMETER][0], memory.regions[GRADIENT][0]
    assert memory.gradient(data) is gradient
    assert memory.gradient(memory.regions[STATE][0][1]) is None
    assert memory.gradient(gradient) is None


def test_04_bound_storages_follow_new_parameters() -> None:
    """Parameters of an earlier kernel keep their storage; new ones get one of their own."""
    old = [mgjit.Value(v) for v in numbers(4)]
    mgjit.compile(backend="python")(lambda x: sum(w * x for w in old))(1.0)
    new = [mgjit.Value(v) for v in numbers(2)]
    made = Example(lambda x: sum(w * x for w in [*new, *old]), 0.5)
    sizes = [array.size for _, array in Memory(made.trace, [InputRegion(0, 1, "d")]).regions[PARAMETER]]
    assert sizes == [2, 4]
    made.check(made.lower())


def test_05_holes_between_parameters() -> None:
    """Values that were created in between are holes of a small storage, and cut out of a large one."""
    near = [mgjit.Value(0.1), mgjit.Value(0.2)]
    mgjit.Value(0.0)
    near.append(mgjit.Value(0.3))
    made = Example(lambda x: sum(w * x for w in near), 0.5)
    assert [array.size for _, array in made.memory.regions[PARAMETER]] == [4]
    far = [mgjit.Value(0.1)]
    for _ in range(5000):
        mgjit.Value(0.0)
    far.append(mgjit.Value(0.2))
    apart = Example(lambda x: sum(w * x for w in far), 0.5)
    assert [array.size for _, array in apart.memory.regions[PARAMETER]] == [2]
    for one in (made, apart):
        one.check(one.lower())
