"""The front door, in seconds: if anything here fails, look here first."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import pytest

import mgjit
from mgjit import nn

ROOT = Path(__file__).resolve().parent.parent
IMAGES = [([0.1 * k, 0.5, -0.25 * k, 1.0 / (k + 1)], k % 3) for k in range(5)]


def readme_step(decorate: Callable[[Any], Any]) -> tuple[Any, nn.MLP]:
    """The README's example at a small size."""
    model = nn.MLP(4, [5, 3])

    @decorate
    def train_step(pixels: Any, label: Any, lr: Any) -> Any:
        scores = model(pixels)
        loss = sum((s - y) ** 2 for s, y in zip(scores, mgjit.one_hot(label, 3)))
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= lr * p.grad
        return loss

    return train_step, model


def bits(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}d", *values)


def state(model: nn.MLP) -> bytes:
    return bits(*(p.data for p in model.parameters()), *(p.grad for p in model.parameters()))


@pytest.mark.parametrize("backend", ["auto", "python"])
def test_01_decorated_is_undecorated(backend: str) -> None:
    """Results, parameters and gradients, bit for bit, after every step."""
    plain, plain_model = readme_step(lambda function: function)
    step, model = readme_step(mgjit.compile(backend=backend))
    for pixels, label in IMAGES:
        expected, got = plain(pixels, label, 0.05), step(pixels, label, 0.05)
        assert bits(got) == bits(expected.data)
        assert bits(got.data) == bits(got)
        assert state(model) == state(plain_model)
    assert step.stats.traces == 1


def test_02_later_calls_are_kernel_calls() -> None:
    """The user's function does not run again, whatever the numbers are."""
    w = mgjit.Value(2.0)

    @mgjit.compile
    def step(x: float, rate: float) -> Any:
        w.data -= rate * x
        return w * x

    assert step(3.0, 0.5) == 1.5
    assert [step(float(k), 0.0) for k in range(1, 6)] == [0.5 * k for k in range(1, 6)]
    assert (step.stats.plain_calls, step.stats.calls, step.stats.traces) == (0, 6, 1)


def test_03_methods() -> None:
    """A step may be a method; instances do not share parameters."""

    class Trainer:
        def __init__(self, start: float) -> None:
            self.w = mgjit.Value(start)

        @mgjit.compile
        def step(self, x: float) -> Any:
            loss = (self.w * x - 1.0) ** 2
            self.w.grad = 0.0
            loss.backward()
            self.w.data -= 0.1 * self.w.grad
            return loss

    first, second = Trainer(1.0), Trainer(-3.0)
    assert [float(first.step(2.0)), float(second.step(2.0))] == [1.0, 49.0]
    assert [first.w.data, second.w.data] == [1.0 - 0.1 * 4.0, -3.0 - 0.1 * -28.0]


def test_04_phases() -> None:
    """forward, backward and update are the step in three parts."""
    whole, whole_model = readme_step(mgjit.compile)
    parts, parts_model = readme_step(mgjit.compile)
    pixels, label = IMAGES[1]
    before = state(parts_model)
    expected = whole(pixels, label, 0.05)
    assert bits(parts.forward(pixels, label, 0.05)) == bits(expected)
    assert state(parts_model) == before
    parts.backward()
    assert [p.grad for p in parts_model.parameters()] == [p.grad for p in whole_model.parameters()]
    assert state(parts_model) != state(whole_model)
    parts.update()
    assert state(parts_model) == state(whole_model)


def test_05_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    """MGJIT_DISABLE=1 runs the function itself; a step can be switched at any time."""
    monkeypatch.setenv("MGJIT_DISABLE", "1")
    step, _ = readme_step(mgjit.compile)
    loss = step(*IMAGES[0], 0.05)
    assert type(loss) is mgjit.Value
    assert step.stats.traces == 0
    monkeypatch.delenv("MGJIT_DISABLE")
    assert isinstance(step(*IMAGES[0], 0.05), float)
    assert step.stats.traces == 1


_CHILD = """
import sys
sys.path.insert(0, {root!r})
import mgjit
w = mgjit.Value(0.5)
@mgjit.compile
def step(x, lr):
    loss = (w * x - 1.0) ** 2
    w.grad = 0.0
    loss.backward()
    w.data -= lr * w.grad
    return loss
print(step(2.0, 0.25).hex(), step(3.0, 0.25).hex(), w.data.hex(), step.stats.cache, step.stats.compile_seconds > 0)
"""


def test_06_another_process_compiles_nothing(tmp_path: Path) -> None:
    """The second process finds the binary on disk, and a compiler that would fail is never run."""
    if not _has_compiler():
        pytest.skip("no C compiler is installed")
    environment = {**os.environ, "MGJIT_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", _CHILD.format(root=str(ROOT))]
    runs = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    ]
    assert runs[0][3:] == ["miss", "True"]
    assert runs[1][3:] == ["hit", "False"]
    assert runs[0][:3] == runs[1][:3]


def _has_compiler() -> bool:
    from mgjit.compiler.toolchain import compilers

    return compilers.find() is not None
