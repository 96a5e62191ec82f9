"""Random programs: every compiled form of a step gives the bits of the undecorated step.

`pytest tests/fuzz --fuzz-examples 2000` hunts: more programs, other ones in every run.
"""

from __future__ import annotations

import os
import shutil
import sys

import pytest
from hypothesis import HealthCheck, Phase, assume, given, note, settings

from tests.fuzz import oracle
from tests.fuzz.programs import programs, random_program

pytestmark = pytest.mark.fuzz

DEFAULT_EXAMPLES = {"c": 12, "python": 10, "interpreter": 8, "phases": 10, "float32": 6, "loop-python": 5}

#: The oracle of float32 adds numbers with a `sum` of its own from Python 3.12 on, which is not compensated.
FLOAT32 = pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python's sum of floats is compensated")


def run(request: pytest.FixtureRequest, name: str, way: str) -> None:
    """Compare random programs run one way with the undecorated ones."""
    wanted = request.config.getoption("fuzz_examples", default=None)

    @settings(
        max_examples=wanted or DEFAULT_EXAMPLES[name],
        derandomize=wanted is None,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(programs())
    def agree(text: str) -> None:
        note(text)
        expected = oracle.expected(text, way)
        assume(expected is not None)
        difference = oracle.difference(expected, oracle.WAYS[way](text))
        assert not difference, f"{way}: {difference}"

    agree()


def test_compiled(request: pytest.FixtureRequest) -> None:
    run(request, "c", "tcc" if shutil.which("tcc") else "default")


@pytest.mark.parametrize("way", ["python", "interpreter", "phases", "loop-python"])
def test_without_a_compiler(request: pytest.FixtureRequest, way: str) -> None:
    run(request, way, way)


@FLOAT32
def test_compiled_in_float32(request: pytest.FixtureRequest) -> None:
    run(request, "float32", "tcc32" if shutil.which("tcc") else "default32")


@FLOAT32
@pytest.mark.parametrize("way", ["python32", "interpreter32"])
def test_float32_without_a_compiler(request: pytest.FixtureRequest, way: str) -> None:
    run(request, "float32", way)


@pytest.mark.skipif(os.name != "posix", reason="code is built in the background on POSIX only")
@pytest.mark.parametrize("seed", range(3))
def test_kernels_that_come_at_random_moments(seed: int) -> None:
    """Built by other processes, quickly and then well; `hunt.py --ways swapped` tries more."""
    assert oracle.check(random_program(seed), "swapped") == ""


def test_seeds() -> None:
    """Without Hypothesis, whose programs are small; `hunt.py --seed N --programs 1` shortens one that fails."""
    failed = {seed: oracle.check(random_program(seed), "python") for seed in range(12)}
    assert not any(failed.values()), {seed: text for seed, text in failed.items() if text}
