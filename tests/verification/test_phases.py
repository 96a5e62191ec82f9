"""The phases of a step, and what runs them for many rows, are compared: a defect put into one of them is noticed."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mgjit.compiler.build import build
from mgjit.compiler.cache.store import Store
from mgjit.distributed import data_parallel
from mgjit.errors import MismatchWarning, UnsupportedError
from mgjit.verification import trial
from tests.distributed.job import Classifier, Dropout
from tests.verification.test_loops import ROWS, WANTED, compiled, made, pytestmark, verifying

__all__ = ["pytestmark", "verifying"]
Patch = pytest.MonkeyPatch

# ---- phases -----------------------------------------------------------------------------------------


PHASES = ["forward", "backward", "update"]


def put_into_phase(phase: str, patch: Patch) -> None:
    """Put a defect of 1e-3 into a phase: into a result, a gradient, or a parameter."""
    compile_shared, emitted = build.toolchain.compile_shared, build.emitted
    slots: dict[str, int] = {}

    def emit(*given: Any) -> Any:
        lowered, layout, source = emitted(*given)
        slots.update({slot.space: number for number, slot in reversed([*enumerate(layout.slots)])})
        return lowered, layout, source

    def compile_wrong(compiler: Any, source: str, **options: Any) -> Any:
        head = f"int mgjit_{phase}(void *const *m)\n{{ ENTER {phase}(m);"
        if head in source.replace(") {", ")\n{"):
            source = source.replace(") {", ")\n{")
            slot = slots[{"forward": "output", "backward": "gradient", "update": "parameter"}[phase]]
            source = source.replace(head, f"{head} ((real *)m[{slot}])[0] += 1e-3;")
            found.append(phase)
        return compile_shared(compiler, source, **options)

    found: list[str] = []
    patch.setattr(build, "emitted", emit)
    patch.setattr(build.toolchain, "compile_shared", compile_wrong)


def by_phases(step: Any, row: Any, wanted: float) -> float:
    loss = step.forward(row, wanted)
    step.backward()
    step.update()
    return float(loss)


@pytest.mark.filterwarnings("always::mgjit.errors.MismatchWarning")
@pytest.mark.parametrize("phase", PHASES)
def test_20_a_defect_in_a_phase(phase: str, monkeypatch: Patch) -> None:
    """It is noticed before the second call; the phases are refused from then on, and nothing more is changed."""
    put_into_phase(phase, monkeypatch)
    network, function = made("plain", monkeypatch)
    step = compiled(function, refuse="error")
    by_phases(step, ROWS[0], WANTED[0])
    before = network.left()
    with (
        pytest.warns(MismatchWarning, match="the kernel for the phases of step is wrong"),
        pytest.raises(UnsupportedError, match="needs a kernel"),
    ):
        step.forward(ROWS[1], WANTED[1])
    assert network.left() == before
    with pytest.raises(UnsupportedError, match="needs a kernel"):
        step.forward(ROWS[1], WANTED[1])


@pytest.mark.filterwarnings("error::mgjit.errors.MismatchWarning")
@pytest.mark.parametrize("kind", ["plain", "drawing"])
def test_21_phases_without_a_defect(kind: str, monkeypatch: Patch) -> None:
    """What is compared leaves nothing: neither numbers nor draws; a program may do anything between the phases."""
    monkeypatch.setattr(trial, "_EARLIEST", 8)
    monkeypatch.setattr(trial, "_LATEST", 8)
    network, function = made(kind, monkeypatch)
    plain, undecorated = made(kind, monkeypatch)
    step = compiled(function)
    for number, (row, wanted) in enumerate(zip(ROWS, WANTED)):
        if number % 3 == 2:
            step.forward(row, wanted)
            step.backward()
            for p in network.model.parameters():
                p.grad = 0.0
            step.update()
            loss = undecorated(row, wanted)
            for p, other in zip(network.model.parameters(), plain.model.parameters()):
                other.data = p.data
        else:
            loss = undecorated(row, wanted)
            assert by_phases(step, row, wanted) == loss.data
        assert network.left() == plain.left()
    assert network.noise is None or network.noise.getstate() == plain.noise.getstate()  # type: ignore[union-attr]
    assert step.stats.compared_calls == 2


# ---- batches ----------------------------------------------------------------------------------------

IN_BATCHES = {
    "rows": ("sum[k] += from[k];", "sum[k] += from[k] + (row == 1 ? 1e-3 : 0);"),
    "add": ("sum[k] += other[k];", "sum[k] += other[k] + 1e-3;"),
    "mean": ("to[k] = sum[k] / count;", "to[k] = sum[k] / (count + 1e-3);"),
}


def trained(step: Any, program: Any, calls: int) -> list[Any]:
    """What some batches of four rows return."""
    data = random.Random(5)
    found = []
    for _ in range(calls):
        returned = step(*program.rows(4, data), 0.1)
        found.append({name: float(number) for name, number in returned.items()})
    return found


@pytest.mark.filterwarnings("always::mgjit.errors.MismatchWarning")
@pytest.mark.parametrize("place", [None, *IN_BATCHES])
@pytest.mark.parametrize("kind", [Classifier, Dropout])
def test_30_batches_of_data_parallel(kind: Any, place: str | None, monkeypatch: Patch) -> None:
    """What adds up gradients is compared with the phases and sums in Python, which take its place."""
    program, same = kind(), kind()
    expected = trained(data_parallel(compiled(same.step)), same, 6)
    monkeypatch.setattr(build, "_shared", {})
    monkeypatch.setattr(build, "_memory_store", Store(memory_only=True))
    compile_shared = build.toolchain.compile_shared

    def compile_wrong(compiler: Any, source: str, **options: Any) -> Any:
        if place is not None and "int mgjit_rows" in source:
            before, after = IN_BATCHES[place]
            assert before in source
            source = source.replace(before, after)
        return compile_shared(compiler, source, **options)

    monkeypatch.setattr(build.toolchain, "compile_shared", compile_wrong)
    step = data_parallel(compiled(program.step))
    assert trained(step, program, 6) == expected
    assert program.numbers() == same.numbers()
    assert len(step.step.stats.mismatches) == (place is not None)
    assert step.step.stats.compared_calls == 1


@pytest.mark.filterwarnings("always::mgjit.errors.MismatchWarning")
@pytest.mark.parametrize("phase", PHASES)
def test_31_a_phase_of_data_parallel(phase: str, monkeypatch: Patch) -> None:
    """Its kernel is refused before it has changed anything."""
    put_into_phase(phase, monkeypatch)
    program = Classifier()
    step = data_parallel(compiled(program.step))
    before = program.numbers()
    message = "the kernel for the phases of step is wrong"
    with pytest.warns(MismatchWarning, match=message), pytest.raises(UnsupportedError, match="needs a kernel"):
        trained(step, program, 1)
    assert program.numbers() == before
