"""A run in a file goes on as if it had not been interrupted."""

from __future__ import annotations

import math
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit import nn
from mgjit import tensor as T
from mgjit.errors import ArgumentError, ArgumentValueError


@pytest.mark.parametrize("name", ["run.pt", "run.npz", "run.safetensors"])
def test_what_is_saved_comes_back(name: str, tmp_path: Path) -> None:
    run = {
        "model": {"a.b": T.asarray([[1.5, -0.0]]), "mask": T.asarray([True, False])}, 3: (1, "two", None, [math.inf]),
        "rates": [T.asarray(2.0, dtype="float32")], "is": True,
    }  # fmt: skip
    mgjit.save(run, tmp_path / name)
    found = mgjit.load(str(tmp_path / name), map_location="cpu")
    assert list(found) == ["model", 3, "rates", "is"]
    assert repr(found["model"]) == repr(run["model"])
    assert found[3] == (1, "two", None, [math.inf])
    assert (found["rates"][0].dtype, found["rates"][0].item(), found["is"]) == (T.float32, 2.0, True)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_one_tensor_and_objects_with_a_state(tmp_path: Path) -> None:
    mgjit.save(T.asarray([1, 2]), tmp_path / "one")
    assert mgjit.load(tmp_path / "one").tolist() == [1, 2]
    model = nn.Linear(2, 1)
    mgjit.save(model, tmp_path / "model.npz")
    assert mgjit.load(tmp_path / "model.npz").keys() == {"weight", "bias"}
    with pytest.raises(ArgumentError, match=r"what\.0 is a set"):
        mgjit.save({"what": [{1}]}, tmp_path / "none")


def test_files_of_tensors_alone(tmp_path: Path) -> None:
    nn.save({"x": T.asarray([1.0])}, tmp_path / "plain.npz")
    assert mgjit.load(tmp_path / "plain.npz")["x"].tolist() == [1.0]
    mgjit.save({"x": T.asarray([1.0]), "y": 2}, tmp_path / "run.npz")
    assert list(nn.load(tmp_path / "run.npz")) == ["x"]
    with zipfile.ZipFile(tmp_path / "torch.pt", "w") as archive:
        archive.writestr("archive/data.pkl", b"")
    with pytest.raises(ArgumentValueError, match=r"torch\.save.*safetensors"):
        mgjit.load(tmp_path / "torch.pt")


def parts() -> tuple[Any, Any, Any, random.Random, Any]:
    draw = random.Random(3)
    model = nn.Sequential(nn.Linear(2, 3, generator=draw), nn.BatchNorm1d(3), nn.Dropout(0.3, generator=draw))
    optimizer = mgjit.optim.AdamW(model.parameters(), lr=0.1)
    schedule = mgjit.optim.lr_scheduler.CosineAnnealingLR(optimizer, 9)

    @mgjit.compile
    def step(x: Any) -> Any:
        loss = (model(x) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return model, optimizer, schedule, draw, step


def trained(made: Any, steps: int) -> list[float]:
    _, _, schedule, draw, step = made
    losses = []
    for _ in range(steps):
        losses.append(step(T.randn(4, 2, generator=draw)).item())
        schedule.step()
    return losses


@pytest.mark.parametrize("place", [1, 3, 6])
def test_a_run_goes_on_with_the_same_bits(place: int, tmp_path: Path) -> None:
    whole = trained(parts(), 8)
    made = parts()
    assert trained(made, place) == whole[:place]
    model, optimizer, schedule, draw, _ = made
    path = tmp_path / "run.pt"
    mgjit.save({"model": model, "optimizer": optimizer, "schedule": schedule, "random": draw}, path)
    made = model, optimizer, schedule, draw, _ = parts()
    saved = mgjit.load(path)
    for name, part in (("model", model), ("optimizer", optimizer), ("schedule", schedule)):
        part.load_state_dict(saved[name])
    draw.setstate(saved["random"])
    assert trained(made, 8 - place) == whole[place:]
