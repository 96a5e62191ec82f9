"""export/scratch.py: scratch arrays share memory, except those that are in use at the same time."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit.export import exporter, scratch
from mgjit.ir.program import arrays_read, arrays_written, statements
from tests.export.compiling import checked
from tests.export.steps import classifier


def frozen_layers() -> tuple[Any, list[Any]]:
    """Four layers, of which each needs the results of the one before only."""
    draw = random.Random(1)
    layers = [[[draw.gauss(0.0, 0.5) for _ in range(20)] for _ in range(20)] for _ in range(4)]

    def forward(xs: Any) -> Any:
        for rows in layers:
            xs = [mgjit.tanh(sum(w * x for w, x in zip(row, xs))) for row in rows]
        return xs[0]

    calls = [([0.1 * k - call for k in range(20)],) for call in range(3)]
    return mgjit.freeze(mgjit.compile(forward, dtype="float32"), *calls[0]), calls


@pytest.mark.parametrize("make", [frozen_layers, lambda: classifier()[::2]], ids=["inference", "training"])
def test_01_what_lives_at_the_same_time_lies_apart(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For each outermost node, the arrays that it uses, and those that are used before and after it."""
    seen: list[Any] = []

    def watched(program: Any, layout: Any) -> None:
        before = layout.scratch_size
        scratch.share_scratch(program, layout)
        seen.append((program, layout, before))

    monkeypatch.setattr(exporter, "share_scratch", watched)
    step, calls = make()
    step.export(tmp_path, "net", calls=calls)
    ((program, layout, before),) = seen
    assert layout.scratch_size < 0.8 * before
    nodes = [node for _, nodes in program.phases for node in nodes]
    used = [
        {one for s in statements([node]) for one in (*arrays_read(s), *arrays_written(s)) if one in layout.offset_of}
        for node in nodes
    ]
    for position in range(len(nodes)):
        alive = set().union(*used[: position + 1]) & set().union(*used[position:])
        places = sorted((layout.offset_of[array], array.size) for array in alive)
        assert all(one + size <= other for (one, size), (other, _) in zip(places, places[1:]))
        assert all(one + size < layout.scratch_size for one, size in places)
    assert "all bits as recorded" in checked(tmp_path, "net")
