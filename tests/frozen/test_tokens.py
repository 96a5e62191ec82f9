"""A token at a time: keys and values in lists that grow, in states, or inside of the step: howto/freeze.md."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit.errors import ArgumentError, FreezeError
from tests.frozen.models import numbers


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
        scores = numbers(step(token, *(caches if caches else (position,))))
        found.append(scores)
        token = int(abs(float.fromhex(scores[0])) * 1000) % 6
    return [*found, numbers(list(caches))]


def test_01_keys_and_values_in_lists_that_grow() -> None:
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


def test_02_keys_and_values_in_a_state() -> None:
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
    assert numbers([list(row) for row in zip(*frozen.loop(tokens, range(4)))]) == [
        numbers(frozen(token, position)) for position, token in enumerate(tokens)
    ]


def test_03_a_whole_sample_in_one_call() -> None:
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
