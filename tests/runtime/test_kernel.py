"""Kernels: shared code, private memory, checks before anything is written."""

from __future__ import annotations

import json
from array import array
from typing import Any

import pytest

import mgjit
from mgjit.compiler.build.code import Code
from mgjit.errors import IndexRangeError
from mgjit.runtime.kernel import Kernel

BACKENDS = pytest.mark.parametrize("backend", ["auto", "python"])


def kernel_of(step: Any) -> Kernel:
    """The kernel of a step's last call."""
    assert step._kernels.last is not None
    kernel: Kernel = step._kernels.last
    return kernel


@BACKENDS
def test_01_two_kernels_of_one_code(backend: str) -> None:
    """Neither sees the other's parameters, inputs or scratch."""
    values = [mgjit.Value(2.0), mgjit.Value(3.0)]
    steps = [mgjit.compile(backend=backend)(lambda x, w=w: w * x) for w in values]
    kernels = []
    for step, w in zip(steps, values):
        assert step(1.0, w) == w.data
        kernels.append(kernel_of(step))
    first, second = kernels
    first.frame.packed[0], second.frame.packed[0] = 10.0, 100.0
    second.run["step"]()
    first.run["step"]()
    assert [first.outputs[0], second.outputs[0]] == [20.0, 300.0]


@BACKENDS
def test_02_phases(backend: str) -> None:
    """A kernel runs whole steps, another one its phases; it is made when the first of them is called."""
    step = mgjit.compile(backend=backend)(lambda x: x * 2.0)
    step(1.0)
    assert set(kernel_of(step).run) == {"step"}
    assert step.stats.traces == 1
    assert step.forward(1.0) == 2.0
    assert step.stats.traces == 2
    assert step.stats.retraces == ["its phases are run separately"]
    separate = step._kernels.separate.last
    assert separate is not None
    assert set(separate.run) == {"forward", "backward", "update"}
    assert kernel_of(step) is not separate


def test_03_code_survives_its_metadata() -> None:
    """What goes into a cache entry is JSON, and comes back the same."""
    model = mgjit.nn.MLP(6, [8, 5])
    order = [3, 1, 4, 0, 2, 4, 3, 3, 0, 1]

    def plain(xs: Any) -> Any:
        scores = model(xs)
        return [scores[k] * 0.1 for k in order], float("inf") * xs[0]

    step = mgjit.compile(backend="python")(plain)
    step([0.1 * k for k in range(6)])
    code = kernel_of(step).code
    stored = json.loads(json.dumps(code.metadata()))
    again = Code.of_metadata(stored, None, code.source)  # type: ignore[arg-type]
    for name in ("slots", "scratch_size", "constants", "tables", "layouts", "source"):
        assert getattr(again, name) == getattr(code, name), name


@BACKENDS
def test_04_checks_come_first(backend: str) -> None:
    """An index in a packed number or in a buffer; the kernel does not run."""
    w = mgjit.Value(1.0)

    def plain(i: Any, raw: Any) -> Any:
        w.data = w.data * 2.0
        return mgjit.take([1.0, 2.0, 3.0], i) + mgjit.take([5.0, 6.0], raw[1])

    step = mgjit.compile(backend=backend)(plain)
    assert step(1, b"\x09\x01") == 8.0
    for arguments in ((3, b"\x00\x00"), (0, b"\x00\x02"), (-1, b"\x00\x00"), (0.5, b"\x00\x00")):
        with pytest.raises(IndexRangeError, match=r"test_kernel\.py:\d+: the index .* 0 \.\. [12]"):
            step(*arguments)
    assert w.data == 2.0
    assert step(0, array("B", [0, 0]).tobytes()) == 6.0


@BACKENDS
def test_05_no_inputs_outputs_or_parameters(backend: str) -> None:
    """Empty regions."""
    assert mgjit.compile(backend=backend)(lambda: None)() is None
    assert mgjit.compile(backend=backend)(lambda: 3.0)() == 3.0
    assert mgjit.compile(backend=backend)(lambda x, y: x)(2.0, b"") == 2.0


def test_06_code_of_float32_survives_its_metadata() -> None:
    """The constants keep their format."""
    step = mgjit.compile(backend="python", dtype="float32")(lambda x: [x * c for c in (0.1, 0.3, 0.7, 0.9)])
    step(1.0)
    code = kernel_of(step).code
    again = Code.of_metadata(json.loads(json.dumps(code.metadata())), None, "")  # type: ignore[arg-type]
    assert (again.constants, again.constants.typecode, again.slots) == (code.constants, "f", code.slots)
