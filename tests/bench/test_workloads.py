"""The measured steps, small: the same numbers undecorated and compiled; the data as it should be."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from bench import workloads
from bench.workloads import Sources
from tests.workload import Instance, compare, missing, run

pytestmark = pytest.mark.once


def short_documents() -> Instance:
    """Two sequence lengths, small."""
    instance = workloads.microgpt(Sources(), width=8, heads=2, calls=3)
    names = ("ab", "x", "cd")
    instance.calls = [(workloads.spelled(name), *call[1:]) for name, call in zip(names, instance.calls)]
    return instance


SMALL: dict[str, Callable[[], Instance]] = {
    "W1": lambda: workloads.xor(Sources()),
    "W2": lambda: workloads.moons(Sources(), batch=6, hidden=5),
    "W3": lambda: workloads.image(Sources(), hidden=3),
    "W4": lambda: workloads.image_batch(Sources(), batch=4, hidden=5, pixels=30),
    "W5": lambda: workloads.policy(Sources(), batch=3, hidden=6),
    "W6": short_documents,
    "W6x16": lambda: workloads.microgpt_batch(Sources(), documents=2, letters=2, width=8, heads=2, calls=3),
    "ragged": lambda: workloads.microgpt_ragged(longest=3, width=4, heads=2),
}


@pytest.mark.parametrize("backend", ["c", "python"])
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.sampled
def test_the_compiled_step_is_bit_for_bit_the_undecorated_one(name: str, backend: str) -> None:
    if backend == "c" and missing("gcc"):
        pytest.skip("no gcc")
    calls = 3
    compared, differences = compare(run(SMALL[name], calls), run(SMALL[name], calls, backend=backend, cache=False))
    assert compared > 0
    assert differences == []


@pytest.mark.parametrize("name", workloads.WORKLOADS)
def test_makers_repeat_themselves(name: str) -> None:
    make = functools.partial(workloads.WORKLOADS[name].make, Sources())
    one, two = make(), make()
    assert one.observe() == two.observe()
    assert one.calls == two.calls
    assert len(one.calls) >= 4


def test_microgpt_has_the_published_number_of_parameters() -> None:
    assert len(workloads.MicroGPT().parameters()) == 4192


def test_single_precision_workloads_begin_with_single_precision_numbers() -> None:
    for name, workload in workloads.WORKLOADS.items():
        if workload.options["dtype"] == "float32":
            parameters = workload.make(Sources()).parameters
            assert all(p.data == workloads.single(p.data) for p in parameters), name


def test_names_are_read_and_those_that_do_not_fit_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "names.txt"
    path.write_text("Emma\nzoë\nav\naverylongnameindeed\n", encoding="utf-8")
    assert sorted(Sources(names=path).documents()) == ["av", "emma"]
    assert workloads.spelled("ab") == bytes([26, 0, 1, 26])


def test_made_up_images_are_as_dark_as_mnist() -> None:
    images = Sources().images(5)
    assert {len(pixels) for pixels, _ in images} == {784}
    assert all(0.1 < sum(map(bool, pixels)) / 784 < 0.3 for pixels, _ in images)


def test_images_are_read_and_updated_as_the_c_by_hand_does_it() -> None:
    """One pass over the weights for two rows of a loop, no division, and nothing for pixels that are zero."""
    instance = workloads.image(Sources(), calls=1)
    lowering = workloads.compiled(instance, workloads.WORKLOADS["W3"]).lower(*instance.calls[0])
    assert lowering.lowered.program.rotation is not None
    between = re.split(r"between_rows_on\(|mgjit_step", lowering.c_source)[1]
    assert "for (long" in between
    assert "/ 255.0" not in lowering.c_source
    assert "!= 0.0) {" in between
