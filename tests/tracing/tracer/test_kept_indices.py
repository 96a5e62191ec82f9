"""tracer/kept_indices.py: ints that a step leaves for its next call, which uses them as indices."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit import tensor as T
from mgjit.errors import IndexRangeError, TraceError
from tests.export.compiling import checked, compiled

_random = random.Random(3)
TABLE = [[_random.gauss(0.0, 1.0) for _ in range(5)] for _ in range(5)]


class Chain:
    """Each letter depends on the one before, which is kept in an attribute, a list, or a variable."""

    def __init__(self) -> None:
        self.last, self.letters, self.seen = 0, [0, 4], [0.0] * 5

    def in_attribute(self, heat: float) -> Any:
        self.last = random.choices(range(5), weights=[mgjit.exp(x / heat) for x in TABLE[self.last]])[0]
        return self.last

    def in_list(self, heat: float) -> Any:
        before, now = self.letters
        weights = [mgjit.exp((x + y) / heat) for x, y in zip(TABLE[before], TABLE[now])]
        drawn = random.choices(range(5), weights=weights)[0]
        self.letters[0], self.letters[1] = now, 0 if drawn == 3 else drawn
        self.seen[now] += 1.0
        return drawn


def in_variable() -> Any:
    last = 2

    def step(heat: float) -> Any:
        nonlocal last
        row = TABLE[last]
        last = random.randrange(5)
        return sum(row) * heat

    return step


def results(step: Any, calls: int = 9) -> list[Any]:
    random.seed(7)
    return [step(0.5) for _ in range(calls)]


def looped(step: Any, calls: int = 9) -> list[Any]:
    random.seed(7)
    return list(step.loop([0.5] * calls))


@pytest.mark.parametrize("kind", ["in_attribute", "in_list", "in_variable"])
@pytest.mark.parametrize("how", ["compile", "freeze"])
def test_01_the_letters_of_plain_python(kind: str, how: str) -> None:
    """By calls and by `.loop`, compiled and frozen."""

    def made() -> Any:
        return in_variable() if kind == "in_variable" else getattr(Chain(), kind)

    def fast() -> Any:
        step = made()
        return mgjit.freeze(step, 0.5) if how == "freeze" else mgjit.compile(step, background=False, verify="never")

    expected = results(made())
    step = fast()
    assert results(step) == expected
    assert looped(fast()) == expected
    assert step.stats.plain_calls == 0


@pytest.mark.parametrize("wrong", [5, -1, 10**6])
@pytest.mark.parametrize("how", ["compile", "freeze"])
def test_02_what_the_program_leaves_there_is_checked(wrong: int, how: str) -> None:
    """Before anything is changed; the next call is right."""
    chain = Chain()
    step = mgjit.freeze(chain.in_list, 0.5) if how == "freeze" else mgjit.compile(chain.in_list, background=False)
    results(step)
    before, state = list(chain.seen), random.getstate()
    chain.letters[1] = wrong
    for call in (lambda: step(0.5), lambda: step.loop([0.5, 0.5])):
        with pytest.raises(IndexRangeError, match=rf"test_kept_indices.py:\d+: the index is {wrong}, in .*letters"):
            call()
        assert (chain.seen, chain.letters[1]) == (before, wrong)
        assert random.getstate() == state
    chain.letters[1] = 1
    plain = Chain()
    plain.letters[:], plain.seen[:] = chain.letters, chain.seen
    assert results(step) == results(plain.in_list)
    assert (chain.letters, chain.seen) == (plain.letters, plain.seen)


def test_03_what_may_be_no_index_is_refused() -> None:
    """A number that is computed in a way that says nothing about its range."""
    chain = Chain()

    def step(k: int) -> Any:
        row = TABLE[chain.last]
        chain.last = k * k
        return row[0]

    with pytest.raises(TraceError, match=r"left in .*last, and what .* not known to be in range\(5\)"):
        mgjit.compile(step, background=False)(2)
    assert chain.last == 0


def greedy(kept: Any, table: Any) -> Any:
    def step(heat: float) -> Any:
        scores = T.take(table, kept.last).detach() * heat
        kept.last = scores.argmax().item()
        return kept.last

    return step


def test_04_the_place_of_a_maximum(tmp_path: Path) -> None:
    """Of a tensor: greedy decoding, frozen and exported, where the caller's memory is checked as well."""
    table = T.asarray([[TABLE[i][(2 * i + j) % 5] for j in range(5)] for i in range(5)])
    expected = results(greedy(Chain(), table))
    kept = Chain()
    frozen = mgjit.freeze(greedy(kept, table), 0.5)
    assert results(frozen) == expected
    kept.last = 0
    frozen.export(tmp_path, "net", calls=[(0.5,)] * 9)
    assert "all bits as recorded" in checked(tmp_path, "net")
    (tmp_path / "net_check.c").write_text(
        '#include "net.h"\nint main(void)\n{\n    static net_memory memory;\n    double result[1];\n'
        "    net_init(&memory);\n    if (net_run(&memory, 0.5, result) != NET_OK) return 1;\n"
        "    memory.state[0] = 7;\n    return net_run(&memory, 0.5, result) != NET_INDEX_ERROR;\n}\n"
    )

    assert subprocess.run([str(compiled(tmp_path, "net"))], check=False).returncode == 0
    kept.last = 9
    with pytest.raises(IndexRangeError):
        frozen.export(tmp_path / "other", "net", calls=[(0.5,)])
