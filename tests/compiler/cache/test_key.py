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
from mgjit.compiler.cache import key
from mgjit.compiler.toolchain import features
from mgjit.engine.precision import FLOAT64
from mgjit.errors import CompilerError
from mgjit.ir.parameters import Layouts, ParameterBlock, ParameterLayout
from mgjit.memory.buffers import Move
from tests.lowering import Example

ROOT = Path(__file__).resolve().parents[3]


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


def test_03_the_layout_of_parameters_that_another_kernel_has_moved() -> None:
    """Code for one layout is not used for another; without one, the structure is what it always was."""

    def example(layout: ParameterLayout | None) -> str:
        values = [mgjit.Value(float(k)) for k in range(6)]
        move = Move(values, range(6), 6, (), FLOAT64, Layouts(layout))
        move.fill()
        move.commit()
        return structure(Example(lambda x: sum(v * x for v in values), 1.0))

    layouts = [
        ParameterLayout((ParameterBlock(0, 2, 3, 3, place, 1, 8),), place + 24) for place in (0, 8)
    ]  # the same numbers in other places
    assert len({example(layout) for layout in (None, *layouts)}) == 3
    assert example(layouts[0]) == example(layouts[0])


def made(structure: str = "s", compiler: str = "gcc", flags: str = "-O2", **chosen: str) -> str:
    """The key of an entry."""
    return key.entry_key(key.key_parts(structure, compiler, flags.split(), **chosen))


def test_04_everything_else_is_in_the_entry_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mode, flags, compiler, generator version, machine, how the interpreter squares; no two parts run together."""
    first = made(mode="strict")
    assert made(mode="strict") == first
    others = [
        made("t", mode="strict"), made(mode="fast"), made(mode="strict", more=""), made(compiler="tcc", mode="strict"),
        made(flags="-O3", mode="strict"), made(compiler="gcc-O2", flags="", mode="strict"), made(cache_key="strict"),
    ]  # fmt: skip
    changes = {"generator_version": lambda: "another", "machine": lambda: "another", "SQUARE_IS_PRODUCT": None}
    for name, value in changes.items():
        with monkeypatch.context() as patch:
            patch.setattr(key, name, value or not key.SQUARE_IS_PRODUCT)
            others.append(made(mode="strict"))
    assert len({first, *others}) == 1 + len(others)


@pytest.mark.parametrize(
    ("flags", "matters"),
    [
        ("-O2", False), ("-O2 -m64 -msse2 -mfpmath=sse", False), ("-mcpu=baseline", False),
        ("-O2 -march=native", True), ("-mcpu=native", True), ("-mavx512f", True), ("-march=x86-64-v4", True),
    ],
)  # fmt: skip
def test_05_the_processor_matters_where_flags_name_it(
    flags: str, matters: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Portable code is shared between processors; what uses AVX-512 is not, in either direction."""
    keys = []
    for names in (("avx2",), ("avx2", "avx512f"), ("avx2",)):
        monkeypatch.setattr(features, "cpu_features", lambda names=names: features.Features("a processor", names))
        keys.append(made(flags=flags))
    assert keys[0] == keys[2]
    assert (keys[0] != keys[1]) == matters
    monkeypatch.setattr(features, "cpu_features", lambda: features.Features("another", ("avx2",)))
    assert (made(flags=flags) != keys[0]) == matters


def test_06_the_same_in_another_process() -> None:
    """Nothing depends on hashing, addresses or order of import."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from tests.compiler.cache.test_key import network, structure, key\n"
        "made = structure(network()); print(made, key.entry_key(key.key_parts(made, 'gcc', ['-march=native'])))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "5"}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    made = structure(network())
    assert found.stdout.split() == [made, key.entry_key(key.key_parts(made, "gcc", ["-march=native"]))]


def test_07_the_precision_is_part_of_the_structure() -> None:
    """Also of a step without inputs."""
    for made in (network(), Example(lambda: mgjit.exp(mgjit.Value(1.0)))):
        assert structure(made) != structure(made.in_float32())


def test_20_sources_that_cannot_be_read_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has given up its rights since it started keys by the version; what may pass is an error."""
    monkeypatch.setattr(key, "digest_of_sources", lambda root: "")
    assert key.generator_version.__wrapped__() == key.generator_version.__wrapped__() != ""

    def refuse(root: str) -> str:
        raise OSError(24, "too many open files")

    monkeypatch.setattr(key, "digest_of_sources", refuse)
    with pytest.raises(CompilerError, match="cannot be read"):
        key.generator_version.__wrapped__()
