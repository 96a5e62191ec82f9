"""Keys: equal for equal structures, different for anything that changes the machine code."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit.cache import key
from tests.lowering import Example

ROOT = Path(__file__).resolve().parents[2]


def network(sizes: tuple[int, ...] = (3, 4, 1), seed: int = 1, x: float = 0.5, factor: float = 2.0) -> Example:
    """A step whose structure depends on sizes and factor only."""
    model = mgjit.nn.MLP(sizes[0], list(sizes[1:]), seed=seed)

    def step(xs: Any, rate: Any) -> Any:
        loss = model(xs) ** 2 * factor
        loss.backward()
        for p in model.parameters():
            p.data -= rate * p.grad
        return loss

    return Example(step, [x * k for k in range(sizes[0])], 0.1 * seed)


def structure(made: Example) -> str:
    return key.structure_hash(made.trace, made.regions)


def test_01_values_do_not_matter() -> None:
    """Weights, inputs, learning rates, how many Values were made before."""
    first = structure(network())
    mgjit.Value(1.0)
    assert structure(network(seed=7, x=-3.0)) == first
    assert len(first) == 32


@pytest.mark.parametrize(
    "other",
    [
        lambda: network((3, 5, 1)), lambda: network((4, 4, 1)), lambda: network(factor=2.0000000000000004),
        lambda: network(factor=-2.0),
    ],
)  # fmt: skip
def test_02_structure_and_constants_matter(other: Callable[[], Example]) -> None:
    """Sizes, and constants to the last bit."""
    assert structure(other()) != structure(network())


def test_03_small_differences() -> None:
    """Pairs of steps that differ in one thing only."""
    w, v = mgjit.Value(1.0), mgjit.Value(2.0)
    s, t = mgjit.zeros(2), mgjit.zeros(3)
    made = [
        Example(lambda x: w * x, 1.0),
        Example(lambda x: x * w, 1.0),
        Example(lambda x: w + x, 1.0),
        Example(lambda x: w.data * x, 1.0),
        Example(lambda x: (w * x, w), 1.0),
        Example(lambda x: w * x[0], b"1"),
        Example(lambda x: w * x[0], [1.0, 2.0]),
        Example(lambda x: w * x[0], b"12"),
        Example(lambda x: w * s[0], 1.0),
        Example(lambda x: w * t[0], 1.0),
        Example(lambda x: w * s[1], 1.0),
        Example(lambda x: w * v * x, 1.0),
        Example(lambda x: v * w * x, 1.0),
        Example(lambda x: w * 0.0, 1.0),
        Example(lambda x: w * -0.0, 1.0),
        Example(lambda x: w * float("nan"), 1.0),
        Example(lambda x: mgjit.take([1.0, 2.0, 3.0], x), 1),
        Example(lambda x: mgjit.take([1.0, 2.0], x), 1),
    ]
    hashes = [structure(one) for one in made]
    assert len(set(hashes)) == len(hashes)


def test_04_everything_else_is_in_the_entry_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mode, flags, compiler, generator version, processor, how the interpreter squares."""
    first = key.entry_key("s", "strict", "gcc", "-O2")
    assert key.entry_key("s", "strict", "gcc", "-O2") == first
    others = [
        key.entry_key("t", "strict", "gcc", "-O2"),
        key.entry_key("s", "fast", "gcc", "-O2"),
        key.entry_key("s", "strict", "gcc", "-O3"),
        key.entry_key("s", "strict", "gcc-O2"),
    ]
    with monkeypatch.context() as patch:
        patch.setattr(key, "generator_version", lambda: "another")
        others.append(key.entry_key("s", "strict", "gcc", "-O2"))
    with monkeypatch.context() as patch:
        patch.setattr(key, "SQUARE_IS_PRODUCT", not key.SQUARE_IS_PRODUCT)
        others.append(key.entry_key("s", "strict", "gcc", "-O2"))
    assert len({first, *others}) == 1 + len(others)


def test_05_the_processor_matters_only_for_native_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Portable code is shared between processors."""
    portable, native = (key.entry_key("s", flags) for flags in ("-O2", "-O2 -march=native"))
    monkeypatch.setattr(key, "cpu_features", lambda: "another processor")
    assert key.entry_key("s", "-O2") == portable
    assert key.entry_key("s", "-O2 -march=native") != native


def test_06_the_same_in_another_process() -> None:
    """Nothing depends on hashing, addresses or order of import."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from tests.cache.test_key import network, structure, key\n"
        "made = structure(network()); print(made, key.entry_key(made, 'strict', '-march=native'))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "5"}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    made = structure(network())
    assert found.stdout.split() == [made, key.entry_key(made, "strict", "-march=native")]


def test_07_the_precision_is_part_of_the_structure() -> None:
    """Also of a step without inputs."""
    for made in (network(), Example(lambda: mgjit.exp(mgjit.Value(1.0)))):
        assert structure(made) != structure(made.in_float32())
