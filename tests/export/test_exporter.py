"""Exported steps compute, in C compiled by anybody, what the step computes in Python."""

from __future__ import annotations

import copy
import re
from array import array
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit import errors
from tests.export.compiling import COMPILERS, checked
from tests.export.steps import classifier, momentum, prediction

pytestmark = pytest.mark.once

MAKERS = {"training": classifier, "forward": prediction, "with state": momentum}


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", MAKERS)
def test_recorded_bits_under_each_compiler(name: str, dtype: str, compiler: str, tmp_path: Path) -> None:
    step, _, calls = MAKERS[name](dtype=dtype)
    step.export(tmp_path, "net", calls=calls)
    said = checked(tmp_path, "net", compiler, ["-O2"])
    assert said == f"net: {len(calls)} call{'s' if len(calls) > 1 else ''}, all bits as recorded\n"


def test_what_is_recorded_is_what_the_undecorated_step_computes(tmp_path: Path) -> None:
    step, _, calls = classifier()
    step.export(tmp_path, "net", calls=calls)
    text = (tmp_path / "net_check.c").read_text("ascii")
    recorded = [float.fromhex(x) for x in re.findall(r"\{(\S+)\}", text.split("results[CALLS]")[1].split("};")[0])]
    undecorated = [step._function(*call).data for call in calls]
    assert [x.hex() for x in recorded] == [x.hex() for x in undecorated]


def test_numbers_and_stats_stay_as_they_were(tmp_path: Path) -> None:
    step, w, calls = momentum()
    other, v, _ = momentum()
    step(*copy.deepcopy(calls[0]))
    other(*copy.deepcopy(calls[0]))
    step.export(tmp_path, "net", calls=calls)
    assert [p.data for p in w] == [p.data for p in v]
    assert [p.grad for p in w] == [p.grad for p in v]
    assert step(*calls[1]) == other(*copy.deepcopy(calls[1]))


def test_the_last_call_is_what_is_recorded_by_default(tmp_path: Path) -> None:
    step, _, calls = classifier()
    step(*calls[0])
    step(*calls[1])
    step.export(tmp_path)
    assert checked(tmp_path, "train_step") == "train_step: 1 call, all bits as recorded\n"


def test_training_goes_on_where_it_was(tmp_path: Path) -> None:
    step, _, calls = momentum()
    for call in calls:
        step(*call)
    step.export(tmp_path, "net", calls=calls)
    assert "all bits" in checked(tmp_path, "net")


def test_the_text_is_the_same_before_and_after_compiled_calls(tmp_path: Path) -> None:
    step, model, calls = classifier()
    numbers = [p.data for p in model.parameters()]
    step.export(tmp_path / "before", "net", calls=calls)
    for call in calls:
        step(*call)
    for p, number in zip(model.parameters(), numbers):
        p.data, p.grad = number, 0.0
    step.export(tmp_path / "after", "net", calls=calls)
    for name in ("net.c", "net.h", "net_check.c"):
        assert (tmp_path / "before" / name).read_text() == (tmp_path / "after" / name).read_text()


@pytest.mark.parametrize("compiler", COMPILERS)
def test_buffers_of_all_formats(compiler: str, tmp_path: Path) -> None:
    w = mgjit.Value(0.3)

    @mgjit.compile
    def step(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, raw: Any) -> Any:
        return [w * x for row in (a, b, c, d, e, f, g, raw) for x in row]

    rows = [array("b", [-128, 127]), array("H", [0, 65535]), array("i", [-(2**31), 7]), array("I", [2**32 - 1])]
    rows += [array("q", [-(2**63), 2**63 - 1]), array("Q", [2**64 - 1, 2**63 + 1025]), array("f", [0.1, -0.0])]
    step.export(tmp_path, "net", calls=[(*rows, b"\x00\xff")])
    assert "all bits" in checked(tmp_path, "net", compiler)


def test_library_functions_and_powers(tmp_path: Path) -> None:
    @mgjit.compile
    def step(xs: Any, y: Any) -> Any:
        found = []
        for x in xs:
            found += [mgjit.exp(x), mgjit.log(x), mgjit.tanh(x), mgjit.sqrt(x), x**2, x**0.5, x**y, abs(-x), 2.0**x]
        return found

    for dtype in ("float64", "float32"):
        made = mgjit.compile(dtype=dtype)(step._function)
        made.export(tmp_path, "net", calls=[([0.1 * k + 0.01 for k in range(40)], 1.7)])
        for compiler in COMPILERS:
            assert "all bits" in checked(tmp_path, "net", compiler, ["-O2"])


def test_fast_mode_is_compared_with_a_tolerance(tmp_path: Path) -> None:
    step, _, calls = prediction(dtype="float32", mode="fast")
    step.export(tmp_path, "net", calls=calls)
    assert "tanhf(" in (tmp_path / "net.c").read_text("ascii")
    assert checked(tmp_path, "net", "gcc") == "net: 3 calls, as recorded, but for rounding\n"


def test_a_wrong_number_is_found(tmp_path: Path) -> None:
    step, _, calls = classifier(dtype="float32")
    step.export(tmp_path, "net", calls=calls)
    path = tmp_path / "net.c"
    text = path.read_text("ascii")
    first = re.search(r"first_parameters\[\d+\] = \{\n    (\S+),", text)
    assert first is not None
    path.write_text(text.replace(f"    {first[1]},", "    0.25f,", 1), "ascii")
    with pytest.raises(AssertionError, match="differ"):
        checked(tmp_path, "net")


def test_a_data_file(tmp_path: Path) -> None:
    for make, dtype in ((classifier, "float32"), (prediction, "float64")):
        step, _, calls = make(dtype=dtype)
        step.export(tmp_path, "net", calls=calls, weights="file")
        assert (tmp_path / "net_weights.bin").stat().st_size > 100
        assert "first_parameters" not in (tmp_path / "net.c").read_text("ascii")
        assert "all bits" in checked(tmp_path, "net", "gcc")


def test_indices_are_checked(tmp_path: Path) -> None:
    step, _, calls = classifier()
    with pytest.raises(errors.IndexRangeError, match="5 is not an integer"):
        step.export(tmp_path, "net", calls=[(calls[0][0], 5, 0.1)])
    step.export(tmp_path, "net", calls=calls)
    assert "if (label < 0 || label >= 5) return NET_INDEX_ERROR;" in (tmp_path / "net.c").read_text("ascii")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_frozen_step_has_the_weights_of_then(dtype: str, tmp_path: Path) -> None:
    step, model, calls = classifier(dtype=dtype)
    step(*calls[0])
    frozen = mgjit.freeze(step, *calls[0])
    before = [frozen(*call) for call in calls]
    first = model.parameters()[0].data
    for call in calls:
        step(*call)
    assert model.parameters()[0].data != first
    frozen.export(tmp_path, "net", calls=calls)
    text = (tmp_path / "net.c").read_text("ascii")
    assert first.hex().split("p")[0][:8] in text.split("net_parameters")[1].split(",")[0]
    assert "net_backward" not in text
    assert "net_init" not in (tmp_path / "net.h").read_text("ascii")
    recorded = re.findall(
        r"\{(\S+)\}", (tmp_path / "net_check.c").read_text().split("results[CALLS]")[1].split("};")[0]
    )
    assert [float.fromhex(x.rstrip("f")) for x in recorded] == before
    for compiler in COMPILERS:
        assert "all bits" in checked(tmp_path, "net", compiler)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_sums_that_run_backwards_through_two_loops_stay_rolled(compiler: str, tmp_path: Path) -> None:
    """gcc 12 with AVX adds them up in the wrong order if it unrolls the inner loop."""
    w = mgjit.Value(0.3)

    @mgjit.compile
    def step(rows: list[list[float]]) -> mgjit.Value:
        total = mgjit.Value(0.0)
        for row in rows:
            part = mgjit.Value(0.0)
            for x in row:
                part = part + w * x * w
            total = total + part * part
        w.grad = 0.0
        total.backward()
        w.data -= 0.01 * w.grad
        return total

    calls = [([[0.5 + 0.01 * k + 0.1 * j for k in range(4)] for j in range(8)],)]
    step.export(tmp_path, "net", calls=calls)
    assert re.search(r"NET_ROLLED\n *for \(", (tmp_path / "net.c").read_text("ascii"))
    assert checked(tmp_path, "net", compiler, ["-O2"]) == "net: 1 call, all bits as recorded\n"
