"""Indices beyond those that records can name: large tensors of a step get them, and the numbers stay the same."""

from __future__ import annotations

import random
from typing import Any

import pytest

import mgjit
from mgjit import nn, optim
from mgjit import tensor as T
from mgjit.errors import TraceError
from mgjit.ir import opcodes as ops
from mgjit.tracing.record import room
from mgjit.tracing.record.room import Room


def test_leaves_beyond_32_bits_say_kind_and_index() -> None:
    for index in (0, ops.INDEX_MASK, ops.INDEX_MASK + 1, 1 << 40):
        for kind in range(len(ops.KINDS)):
            leaf = ops.leaf(kind, index)
            assert (ops.leaf_kind(leaf), ops.leaf_index(leaf)) == (kind, index)
            assert ops.is_wide(leaf) == (index > ops.INDEX_MASK)
            assert ops.leaf(kind, index + 5) == leaf - 5 or index == ops.INDEX_MASK


def test_large_tensors_leave_half_of_the_indices_to_what_records_name() -> None:
    taken = Room(100)
    assert taken.take(10) == 100
    assert taken.take(ops.INDEX_MASK) == ops.INDEX_MASK + 1
    assert taken.take(10, is_tensor=False) == 110
    assert taken.take(1 << 40) == 2 * ops.INDEX_MASK + 1
    with pytest.raises(TraceError, match="small tensors"):
        taken.take(ops.INDEX_MASK, is_tensor=False)


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors of more than one element are large, and the first half of the indices is taken."""
    monkeypatch.setattr(room, "_SMALL", 1)
    initialise = Room.__init__

    def without_half(self: Room, first: int = 0) -> None:
        initialise(self, first)
        self._half = 0

    monkeypatch.setattr(Room, "__init__", without_half)


def _trained(decorate: bool) -> list[Any]:
    random.seed(3)
    model = nn.Sequential(nn.Linear(6, 5), nn.LayerNorm(5), nn.Tanh(), nn.Linear(5, 3))
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    kept = T.zeros((4, 3))

    def step(x: Any, labels: Any, k: int) -> Any:
        scores = model(x)
        loss = nn.functional.cross_entropy(scores, labels) + (scores * scores)[1, 2]
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        (scores * 2.0)[0, 1].backward()
        optimizer.step()
        kept[...] = kept * 0.5 + scores.detach()
        return loss, scores[3, 0].item() * 2.0, scores

    run: Any = mgjit.compile(step, background=False) if decorate else step
    x, labels = T.asarray([[0.1 * i - 0.2 * j for i in range(6)] for j in range(4)]), T.asarray([0, 2, 1, 1])
    found: list[Any] = []
    for k in range(3):
        loss, number, scores = run(x, labels, k)
        found += [float(loss).hex(), float(number).hex(), [v.hex() for row in scores.tolist() for v in row]]
    if decorate:
        assert run.stats.calls > 0, run.stats.plain_reasons
    return [
        *found,
        kept.tolist(),
        [p.tolist() for p in model.parameters()],
        [p.grad.tolist() for p in model.parameters()],
    ]


def test_a_step_whose_tensors_are_far_gives_the_same_bits(far: None) -> None:
    assert repr(_trained(True)) == repr(_trained(False))
