"""The C written by hand computes what the step computes: strict files bit for bit, fast ones nearly."""

from __future__ import annotations

import platform

import pytest

from bench import references, workloads
from bench.workloads import WORKLOADS, Sources
from tests.workload import Instance, missing

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(
        bool(missing("gcc")) or platform.python_implementation() == "PyPy",
        reason="the references are built with gcc; once, on CPython, is enough",
    ),
]

STEPS = 3


@pytest.fixture(params=["", "-mno-avx512f", "-march=x86-64-v2"], ids=["native", "avx2", "sse4"])
def flags(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The widths that the files are written for, as far as this machine has them."""
    if request.param and platform.machine() != "x86_64":
        pytest.skip("vectors of another width are for x86-64")
    monkeypatch.setenv("MGJIT_CFLAGS", request.param)


def undecorated(instance: Instance, steps: int = STEPS) -> list[float]:
    return [float(instance.step(*arguments).data) for arguments in instance.calls[:steps]]


@pytest.mark.usefixtures("flags")
@pytest.mark.parametrize("name", ["W1", "W2", "W3", "W6"])
@pytest.mark.sampled(one_of=3)
def test_strict_references_are_bit_for_bit_the_undecorated_step(name: str) -> None:
    workload = WORKLOADS[name]
    instance = workload.make(Sources())
    reference = references.Reference(workload, instance)
    assert reference.calls(STEPS) == undecorated(instance)
    assert reference.parameters() == [p.data for p in instance.parameters]


@pytest.mark.usefixtures("flags")
@pytest.mark.parametrize("letters", [0, 1, 2, 7, 15])
@pytest.mark.sampled(one_of=3)
def test_the_reference_of_microgpt_takes_short_and_long_sequences(letters: int) -> None:
    workload = WORKLOADS["W6"]
    instance = workloads.microgpt(Sources(), calls=1)
    instance.calls = [(workloads.spelled(workloads.LETTERS[:letters]), *instance.calls[0][1:])]
    reference = references.Reference(workload, instance)
    assert reference.calls(1) == undecorated(instance, 1)
    assert reference.parameters() == [p.data for p in instance.parameters]


@pytest.mark.usefixtures("flags")
@pytest.mark.parametrize("name", ["W1", "W3"])
def test_loop_forms_equal_the_calls(name: str) -> None:
    workload = WORKLOADS[name]
    instance = workload.make(Sources())
    one, other = (references.Reference(workload, instance) for _ in range(2))
    assert one.has_loop
    assert one.calls(5) == other.loop(5)
    assert one.parameters() == other.parameters()


@pytest.mark.usefixtures("flags")
@pytest.mark.sampled(one_of=3)
def test_the_fast_reference_of_the_policy_is_nearly_the_undecorated_step() -> None:
    workload = WORKLOADS["W5"]
    instance = workload.make(Sources())
    reference = references.Reference(workload, instance)
    assert reference.calls(STEPS) == pytest.approx(undecorated(instance), rel=1e-5)
    assert reference.parameters() == pytest.approx([p.data for p in instance.parameters], abs=1e-5)


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_workload_has_a_file_that_says_how_it_was_tuned(name: str) -> None:
    text = (references.FOLDER / references.FILES[name]).read_text(encoding="utf-8")
    assert "How it was tuned" in text.partition("*/")[0]
