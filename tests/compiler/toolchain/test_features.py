"""What this processor is: read once, from whatever the system says."""

from __future__ import annotations

from pathlib import Path

import pytest

from mgjit.compiler.toolchain import features
from mgjit.compiler.toolchain.features import Features, read_features

X86 = "processor\t: 0\nmodel name\t: A Processor\nflags\t\t: fpu sse2 avx2\nbugs\t\t: many\n\n"


def test_01_the_first_processor_counts(tmp_path: Path) -> None:
    """The others are not even read."""
    info = tmp_path / "cpuinfo"
    info.write_text(X86 + X86.replace("A Processor", "Another").replace("avx2", "avx512f"))
    assert read_features(str(info)) == Features("A Processor", ("avx2", "fpu", "sse2"))


def test_02_arm(tmp_path: Path) -> None:
    """It has numbers for a name."""
    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\n")
    assert read_features(str(info)) == Features("0x41 0xd0c", ("asimd", "fp"))


@pytest.mark.parametrize("content", [None, "", "nonsense\n\n\nmore: of it\n"])
def test_03_a_system_that_does_not_say(content: str | None, tmp_path: Path) -> None:
    """What Python knows then stands for the model."""
    info = tmp_path / "cpuinfo"
    if content is not None:
        info.write_text(content)
    found = read_features(str(info))
    assert found.model
    assert found.flags == ()


def test_04_identities_differ() -> None:
    """In the model, and in one flag."""
    made = [Features("a", ("x", "y")), Features("b", ("x", "y")), Features("a", ("x",)), Features("a", ("xy",))]
    assert len({one.identity for one in made}) == 4
    assert features.cpu_features().identity == features.cpu_features().identity
