"""Exported C on a Cortex-M4 under QEMU: the recorded bits, also of a training step.

Skipped where gcc-arm-none-eabi, libnewlib-arm-none-eabi or qemu-system-arm is missing; `python -m bench.embedded` also
measures.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import mgjit
from bench import cortex_m4
from bench.embedded import digits_steps

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(bool(cortex_m4.missing()), reason=f"not installed: {', '.join(cortex_m4.missing())}"),
]


def said(folder: Path, name: str) -> str:
    program = cortex_m4.built(folder, [folder / f"{name}.c", folder / f"{name}_check.c"])
    code, text = cortex_m4.ran(program)
    assert code == 0, text
    return text


def test_digits_inference_and_ten_training_steps(tmp_path: Path) -> None:
    train, predict, calls = digits_steps("float32")
    train.export(tmp_path, "train", calls=calls)
    predict.export(tmp_path, "predict", calls=[call[:1] for call in calls])
    assert said(tmp_path, "train") == "train: 10 calls, all bits as recorded\n"
    assert said(tmp_path, "predict") == "predict: 10 calls, all bits as recorded\n"


def test_functions_of_the_library_there_in_float32(tmp_path: Path) -> None:
    """Where newlib has other last bits of a double, nothing of it is left once results are rounded."""

    @mgjit.compile(dtype="float32")
    def step(xs: Any, y: Any) -> Any:
        return [f(x) for x in xs for f in (mgjit.exp, mgjit.log, mgjit.tanh, mgjit.sqrt, lambda x: x**y)]

    draw = random.Random(3)
    step.export(tmp_path, "net", calls=[([draw.uniform(0.01, 8.0) for _ in range(50)], 1.7) for _ in range(4)])
    assert said(tmp_path, "net") == "net: 4 calls, all bits as recorded\n"


def test_code_is_smaller_than_a_kilobyte_and_a_half(tmp_path: Path) -> None:
    train, predict, calls = digits_steps("float32")
    train.export(tmp_path, "train", calls=calls[:1])
    predict.export(tmp_path, "predict", calls=[calls[0][:1]])
    assert cortex_m4.sizes(tmp_path, tmp_path / "train.c")[".text"] < 2000
    assert cortex_m4.sizes(tmp_path, tmp_path / "predict.c")[".text"] < 1000
