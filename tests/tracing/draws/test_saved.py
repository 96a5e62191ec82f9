"""States that are saved are those that `getstate` tells, of generators of all kinds."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mgjit.tracing.draws import saved
from mgjit.tracing.draws.plan import state_of
from mgjit.tracing.draws.saved import SavedStates


class Own(random.Random):
    """With more in it."""

    __slots__ = ("more",)


class Counting(random.Random):
    """Whose state is more than that of its base class."""

    count = 0

    def random(self) -> float:
        self.count += 1
        return super().random()

    def getstate(self) -> Any:
        return self.count, super().getstate()

    def setstate(self, state: Any) -> None:
        self.count = state[0]
        super().setstate(state[1])


@pytest.mark.parametrize("kind", [random.Random, Own, Counting, "default_rng", "RandomState"])
@pytest.mark.parametrize("way", ["not known", "save", "saving"])
def test_a_state_is_restored(kind: Any, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever in its words it was, with half of a pair of normal numbers, and as often as is asked for."""
    if way == "not known":
        monkeypatch.setattr(saved, "_offset", lambda: 0)
    if isinstance(kind, str):
        kind = getattr(pytest.importorskip("numpy").random, kind)
    generator = kind(5)
    draw = getattr(generator, "gauss", None) or generator.normal
    states, names = SavedStates([generator]), dict[str, Any]()

    def name_of(thing: Any) -> str:
        names[f"n{id(thing)}"] = thing
        return f"n{id(thing)}"

    save = "\n".join(states.saving(name_of)) if way == "saving" else "save()"
    for count in (0, 1, 3, 311, 700):
        for _ in range(count):
            draw(0.0, 1.0)
        before = str(state_of(generator))
        exec(save, {"save": states.save, **names})  # noqa: S102 - our own text
        drawn = [draw(0.0, 1.0) for _ in range(5)]
        for _ in range(2):
            states.restore()
            assert str(state_of(generator)) == before
        assert [draw(0.0, 1.0) for _ in range(5)] == drawn
