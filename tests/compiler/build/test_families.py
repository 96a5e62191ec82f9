"""Kernels of different lengths share their code: numbers, what is built, and what other processes find."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit.compiler.build import build, relatives
from mgjit.compiler.build.families import FAMILY
from mgjit.compiler.toolchain import compilers
from tests.lowering import bits
from tests.workload import values

ROOT = Path(mgjit.__file__).parent.parent


def make() -> tuple[Any, list[Any]]:
    """A recurrent step and its parameters."""
    w = values(random.Random(1), 40)

    def step(xs: Any, y: Any) -> Any:
        h: Any = w[0] * 0.0
        for x in xs:
            h = (h * w[1] + w[2] * x).tanh()
        loss = (h - y) ** 2 * (1.0 / len(xs))
        for p in w:
            p.grad = 0.0
        loss.backward()
        for p in w:
            p.data -= 0.1 * p.grad
        return loss

    return step, w


@pytest.fixture(autouse=True)
def compiler() -> None:
    """All of this is about machine code."""
    if compilers.find() is None:
        pytest.skip("no C compiler is installed")


def run(lengths: list[int], monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[Any, list[bool]]:
    """Call a compiled step beside the undecorated one, and compare every bit.

    Returns:
        The step, and for each call whether its kernel shares its code.
    """
    monkeypatch.setattr(build, "_shared", {})
    monkeypatch.setattr(relatives, "_families", {})
    monkeypatch.setattr(relatives, "_families_of", {})
    (plain, expected), (other, found) = make(), make()
    step = mgjit.compile(other, backend="c", background=False, verify="never", **options)
    draw = random.Random(2)
    shares = []
    for length in lengths:
        xs, y = [draw.uniform(-1.0, 1.0) for _ in range(length)], draw.uniform(-1.0, 1.0)
        assert bits(step(xs, y).data) == bits(plain(xs, y).data)
        for p, q in zip(found, expected):
            assert (bits(p.data), bits(p.grad)) == (bits(q.data), bits(q.grad))
        shares.append(FAMILY in step._kernels.last.code.facts)
    return step, shares


def test_01_all_but_the_first_share_their_code(monkeypatch: pytest.MonkeyPatch) -> None:
    step, shares = run([6, 8, 5, 7, 4, 3, 6, 8, 5], monkeypatch)
    assert shares == [False, True, True, True, True, True, False, True, True]
    libraries = {id(kernel.code.library) for kernel in step._kernels._kernels.values()}
    assert len(libraries) == 2


def test_02_a_longer_one_gets_a_family_with_more_room(monkeypatch: pytest.MonkeyPatch) -> None:
    step, shares = run([6, 8, 20, 7, 19, 32, 5], monkeypatch)
    assert shares == [False, *[True] * 6]
    assert len(step._kernels.maker.kin.families) == 2


def test_03_what_is_too_short_gets_code_of_its_own_and_is_told_why(monkeypatch: pytest.MonkeyPatch) -> None:
    step, shares = run([6, 8, 1, 7], monkeypatch)
    assert shares == [False, True, False, True]
    said = step.lower([0.5] * 7, 0.5).explain().splitlines()
    assert any(re.fullmatch(r"\(xs: 8 numbers, y: number\): it shares code .* [0-9a-f]{12}", one) for one in said)
    assert any(re.fullmatch(r"\(xs: 1 number in a list, y: number\): it shares no code .*", one) for one in said)


def test_03b_after_short_ones_that_are_no_family_longer_ones_found_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few iterations show no loop; how many of them have failed says nothing about a trace that does."""
    monkeypatch.setattr("mgjit.compiler.build.families._MOST_FAILURES", 1)
    _, shares = run([2, 1, 7, 9, 8], monkeypatch)
    assert shares == [False, False, True, True, True]


def test_04_without_a_cache_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run([6, 8, 7], monkeypatch, cache=False)[1] == [False, True, True]


def test_04b_very_long_traces_are_built_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not kept for others, which would take longer than to trace them."""
    monkeypatch.setattr("mgjit.compiler.build.families._MOST_RECORDS", 10)
    step, shares = run([26, 28, 27], monkeypatch)  # which no other test has built
    assert shares == [False, False, False]
    assert step._kernels.maker.kin.alone == []


def test_05_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_shared", {})
    step = mgjit.compile(make()[0], backend="c", background=False, verify="never", dtype="float32")
    for length in (6, 8, 7):
        step([0.5] * length, 0.25)
    assert FAMILY in step._kernels.last.code.facts


_CHILD = """
import sys
from tests.compiler.build.test_families import make
import mgjit
step = mgjit.compile(make()[0], backend="c", background=False, verify="never")
for length in map(int, sys.argv[1:]):
    number = step([0.25 * k for k in range(length)], 0.5).data.hex()
    print(number, step.stats.cache, "family" in step._kernels.last.code.facts)
"""


def test_06_other_processes_find_all_lengths_on_disk_in_any_order(tmp_path: Path) -> None:
    def child(*lengths: int) -> list[list[str]]:
        environment = {**os.environ, "MGJIT_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", _CHILD, *map(str, lengths)],
            env=environment, capture_output=True, text=True, check=True, cwd=ROOT,
        )  # fmt: skip
        return [line.split() for line in done.stdout.splitlines()]

    assert [how for _, how, _ in child(6, 8, 7, 5)] == ["miss"] * 4
    assert [how for _, how, _ in child(6, 5, 7, 8)] == ["hit"] * 4
    assert [how for _, how, _ in child(6, 7, 4)] == ["hit", "hit", "miss"]  # the last one only needs its numbers
    assert child(6, 3)[1][1:] == ["miss", "True"]  # of a family that the code of the first one does not name
    for entry in tmp_path.rglob("*"):
        if entry.is_file() and entry.stat().st_size > 20_000:
            entry.unlink()  # a library that others name
    assert len(child(6, 5, 7)) == 3
