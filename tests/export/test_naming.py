"""Exported C calls numbers as the user does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit import nn, optim
from mgjit import tensor as T

from .compiling import checked

pytestmark = pytest.mark.once


def members(folder: Path, name: str) -> list[str]:
    """What the memory has: the declaration of each member, and the comment that belongs to it."""
    text = (folder / f"{name}.h").read_text("ascii").split("typedef struct {")[1].split("}")[0]
    return [
        " ".join(line.split()) for line in re.findall(r"(?:/\*.*?\*/\s*)?\w+ \w+[^;]*;(?: /\*.*?\*/)?", text, re.DOTALL)
    ]


def test_2_tensors_have_their_names_and_shapes(tmp_path: Path) -> None:
    mgjit.manual_seed(2)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    optimizer = optim.Adam(model.parameters(), lr=0.1)

    @mgjit.compile(background=False)
    def step(x: Any) -> Any:
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    step.export(tmp_path, calls=[(T.randn((5, 3)),)])
    found = members(tmp_path, "step")
    assert found[0] == "double model_0_weight[4][3]; /* model.0.weight: learned numbers */"
    assert "double model_2_bias[2]; /* model.2.bias: learned numbers */" in found
    assert any("optimizer_param_groups_0_state_exp_avg_0[4][3]" in line for line in found)
    assert "all bits" in checked(tmp_path, "step", "gcc")
    assert "all bits" in checked(tmp_path, "step", "clang")


class Neuron:
    """A class of the user's."""

    def __init__(self, count: int) -> None:
        self.w = [mgjit.Value(0.1 * k) for k in range(count)]
        self.b = mgjit.Value(0.5)


@pytest.mark.parametrize("calls_before", [0, 3])
def test_3_single_numbers_are_named_in_comments(calls_before: int, tmp_path: Path) -> None:
    """Whether or not a kernel has moved them."""
    net, rates, seen = [Neuron(3), Neuron(2)], [0.5, 0.25], {"calls": 0.0}

    @mgjit.compile(background=False)
    def step(x: Any) -> Any:
        loss = sum((a * x for n in net for a in n.w), net[0].b * net[1].b) ** 2
        for p in [*net[0].w, net[0].b, *net[1].w, net[1].b]:
            p.grad = 0.0
        loss.backward()
        for n in net:
            for p in [*n.w, n.b]:
                p.data -= rates[0] * p.grad
        rates[0] *= 0.5
        rates[1] += 1.0
        seen["calls"] += 1.0
        return loss

    for _ in range(calls_before):
        step(0.3)
    step.export(tmp_path, calls=[(0.3,), (0.2,)])
    parameters, state = [
        line for line in members(tmp_path, "step") if "scratch" not in line and "gradients" not in line
    ]
    assert "double parameters[7];" in parameters
    assert sorted(re.findall(r"net\[\d\]\.\w", parameters)) == ["net[0].b", "net[0].w", "net[1].b", "net[1].w"]
    lengths = [int(last) - int(first) + 1 for first, last in re.findall(r"\[(\d)\.\.(\d)\] net", parameters)]
    assert sorted(lengths) == [2, 3]
    assert re.search(r"\[\d\.\.\d\] rates", state)
    assert re.search(r"\[\d\] seen\['calls'\]", state)
    assert "all bits" in checked(tmp_path, "step")
