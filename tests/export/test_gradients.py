"""Gradients of exported steps: forgotten where each call clears them, kept where it does not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit.export import gradients
from tests.export.compiling import checked
from tests.export.steps import classifier

pytestmark = pytest.mark.once

CALLS = [([0.5, -1.0, 0.25 * k], 0.1) for k in range(6)]


def members(folder: Path) -> dict[str, int]:
    text = (folder / "net.h").read_text("ascii").split("typedef struct {")[1].split("}")[0]
    return {name: int(size) for name, size in re.findall(r"(\w+)\[(\d+)\]", text)}


def exported(body: str, folder: Path, dtype: str = "float32") -> dict[str, int]:
    """The memory of an exported step with this body, which must compute the recorded bits."""
    w = [mgjit.Value(0.3 * k + 0.1) for k in range(3)]
    for p in w:
        p.grad = 0.7
    names: dict[str, Any] = {"w": w, "mgjit": mgjit}
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    source = folder / "step.py"
    source.write_text(f"def step(x, rate):\n{lines}")
    exec(compile(source.read_text(), str(source), "exec"), names)  # noqa: S102 - a step
    mgjit.compile(dtype=dtype)(names["step"]).export(folder, "net", calls=CALLS)
    assert "all bits" in checked(folder, "net")
    return members(folder)


LOSS = "loss = sum(((a * b).tanh() for a, b in zip(w, x)), mgjit.Value(0.0))"
CLEAR = "for p in w: p.grad = 0.0"
UPDATE = "for p in w: p.data -= rate * p.grad"


def test_gradients_that_are_cleared_first_take_no_memory(tmp_path: Path) -> None:
    found = exported(f"{LOSS}\n{CLEAR}\nloss.backward()\n{UPDATE}\nreturn loss", tmp_path)
    assert "gradients" not in found


@pytest.mark.parametrize(
    "body",
    [
        f"{LOSS}\nloss.backward()\n{UPDATE}\nreturn loss",
        f"{LOSS}\nloss.backward()\n{UPDATE}\n{CLEAR}\nreturn loss",
        f"{LOSS}\nw[0].grad = 0.0\nw[1].grad = 0.0\nloss.backward()\n{UPDATE}\nreturn loss",
        f"before = w[1].grad\n{LOSS}\n{CLEAR}\nloss.backward()\n{UPDATE}\nreturn loss + before",
        f"{LOSS}\nloss.backward()\n{CLEAR}\nloss.backward()\n{UPDATE}\nreturn loss",
    ],
    ids=["never cleared", "cleared last", "some cleared", "read before", "cleared between two passes"],
)
def test_others_are_kept(body: str, tmp_path: Path) -> None:
    assert "gradients" in exported(body, tmp_path)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_reading_and_changing_them_after_the_pass(dtype: str, tmp_path: Path) -> None:
    clip = "norm = sum(p.grad * p.grad for p in w)\nfor p in w: p.grad = p.grad / (1.0 + norm)"
    found = exported(f"{LOSS}\n{CLEAR}\nloss.backward()\n{clip}\n{UPDATE}\nreturn loss, norm", tmp_path, dtype)
    assert "gradients" not in found


def test_training_needs_little_more_memory_than_the_weights(tmp_path: Path) -> None:
    step, model, calls = classifier(64, 50, 10, dtype="float32")
    step.export(tmp_path, "net", calls=calls)
    assert "all bits" in checked(tmp_path, "net")
    found = members(tmp_path)
    assert found["parameters"] == len(model.parameters())
    assert found["scratch"] < 0.1 * found["parameters"]


def test_the_same_bits_without_contraction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step, _, calls = classifier()
    step.export(tmp_path / "with", "net", calls=calls)
    monkeypatch.setattr(gradients, "are_cleared", lambda trace: False)
    step.export(tmp_path / "without", "net", calls=calls)
    for folder in ("with", "without"):
        assert "all bits" in checked(tmp_path / folder, "net")
    assert "gradients" in members(tmp_path / "without")
