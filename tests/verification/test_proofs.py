"""verification/proofs.py: what has been compared in one process is known in the next."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit.compiler.cache.store import open_store
from mgjit.errors import MismatchWarning
from mgjit.runtime.kernel import Kernel
from mgjit.verification import proofs

Program = Callable[..., Any]


@pytest.fixture(autouse=True)
def verifying(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As users have it, in a cache of their own."""
    monkeypatch.delenv("MGJIT_VERIFY")
    monkeypatch.setenv("MGJIT_CACHE_DIR", str(tmp_path))


def made(rate: float = 0.5, **options: Any) -> Any:
    """A step, as another process makes it."""
    model = nn.MLP(2, [3, 1], seed=3)

    def step(xs: list[float], target: float) -> Any:
        loss = (model(xs) - target) ** 2
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= rate * p.grad
        return loss

    return mgjit.compile(step, **options)


def compared(step: Any, calls: int = 4) -> int:
    """How many of the first calls were compared."""
    for k in range(calls):
        step([0.5, -0.25 * k], 1.0)
    return int(step.stats.compared_calls)


def test_01_the_second_call_is_compared_once() -> None:
    assert [compared(made()) for _ in range(3)] == [1, 0, 0]


def test_02_a_later_call_is_still_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mgjit.verification.trial._EARLIEST", 8)
    monkeypatch.setattr("mgjit.verification.trial._LATEST", 10)
    assert compared(made()) == 1
    assert compared(made(), 12) == 1


def test_02_numbers_of_numpys_are_always_compared() -> None:
    """A list of them has the structure of a list of floats, of which there is a proof."""
    numpy = pytest.importorskip("numpy")
    floats, numpys = [0.5, -0.25], [numpy.float64(0.5), numpy.float64(-0.25)]

    def compared_with(row: list[Any]) -> int:
        step = made()
        for _ in range(4):
            step(row, 1.0)
        return int(step.stats.compared_calls)

    assert [compared_with(row) for row in (floats, floats, numpys, numpys, floats)] == [1, 0, 1, 1, 0]


def test_03_always_is_always() -> None:
    assert [compared(made(verify="always")) for _ in range(2)] == [1, 1]


def test_04_other_bytecode_or_another_constant_is_compared() -> None:
    assert compared(made()) == 1
    model = nn.MLP(2, [3, 1], seed=3)

    @mgjit.compile
    def step(xs: list[float], target: float) -> Any:
        error = model(xs) - target
        loss = error**2
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= 0.5 * p.grad
        return loss

    assert compared(step) == 1
    assert proofs.digest_of(step.__wrapped__.__code__) != proofs.digest_of(made().__wrapped__.__code__)


def test_05_without_a_cache_nothing_is_known() -> None:
    assert [compared(made(cache=False)) for _ in range(2)] == [1, 1]


def test_06_what_fails_later_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mgjit.verification.trial._EARLIEST", 8)
    monkeypatch.setattr("mgjit.verification.trial._LATEST", 10)
    assert compared(made()) == 1
    step = made()
    perform = Kernel.perform

    def wrong(kernel: Kernel, *arguments: Any) -> None:
        perform(kernel, *arguments)
        kernel.parameters[0].data[0] += 1.0

    with monkeypatch.context() as patch:
        patch.setattr(Kernel, "perform", wrong)
        with pytest.warns(MismatchWarning):
            compared(step, 12)
    assert step.stats.mismatches
    assert compared(made()) == 1


def test_07_an_entry_without_a_library() -> None:
    compared(made())
    store = open_store()
    entries = [store.get(key) for key in store.keys()]  # noqa: SIM118 - it is no dict
    assert len([entry for entry in entries if entry is not None and not entry.binary]) == 1


SCRIPT = """
import mgjit

weight = mgjit.Value(0.5)

def step(x):
    chosen = x if x in {{"red", "green", "blue"}} else 0.5
    loss = (weight * 2.0 - {number}) ** 2
    weight.grad = 0.0
    loss.backward()
    weight.data -= 0.01 * weight.grad
    return loss

step = mgjit.compile(step, static=("x",))
for k in range(4):
    step("red")
print(step.stats.compared_calls)
"""


def test_08_another_process_knows_it(tmp_path: Path) -> None:
    """Whatever the order of its sets; and the same function elsewhere in its file."""

    def run(text: str, seed: int) -> int:
        script = tmp_path / "script.py"
        script.write_text(text, encoding="utf-8")
        environment = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": os.pathsep.join(sys.path)}
        return int(subprocess.run([sys.executable, script], env=environment, capture_output=True, check=True).stdout)

    text = SCRIPT.format(number=3.0)
    assert [run(text, 1), run(text, 2), run("# a comment" + text, 3), run(SCRIPT.format(number=4.0), 4)] == [1, 0, 0, 1]


def test_09_better_code_that_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is known as well, without a comparison with plain Python."""
    monkeypatch.setenv("MGJIT_BACKGROUND", "1")
    step = made()
    for k in range(40):
        step([0.5, -0.25 * k], 1.0)
        step.wait()
    first = step.stats.compared_calls
    monkeypatch.setenv("MGJIT_BACKGROUND", "0")
    assert (first, compared(made())) == (1, 0)
