"""Files of tensors: what is written is read, NumPy reads it too, damaged files are refused."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from mgjit import nn
from mgjit import tensor as T
from mgjit.errors import ArgumentError, ArgumentValueError

STATE = {
    "a.weight": T.asarray([[1.0, -0.0, float("inf")], [1e-300, 0.1, 5.0]]),
    "b": T.asarray([0.1, 2.5], dtype="float32"),
    "c": T.asarray([[-3], [1 << 40]]),
    "flags": T.asarray([True, False]),
    "one": T.asarray(0.5),
    "none": T.zeros((0, 3)),
}


def as_text(state: dict[str, T.Tensor]) -> dict[str, tuple[str, ...]]:
    return {name: (x.dtype.name, str(x.shape), repr(x.tolist_flat())) for name, x in state.items()}


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_what_is_saved_is_loaded(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"model{suffix}"
    nn.save({"old": T.ones(3)}, path)
    nn.save(STATE, path)
    assert dict(sorted(as_text(nn.load(path)).items())) == dict(sorted(as_text(STATE).items()))
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_model_goes_through_a_file(tmp_path: Path) -> None:
    first, second = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)), nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    first(T.randn((4, 2)))
    nn.save(first.state_dict(), str(tmp_path / "model.npz"))
    second.load_state_dict(nn.load(str(tmp_path / "model.npz")))
    assert as_text(second.state_dict()) == as_text(first.state_dict())


def test_numpy_reads_and_writes_the_same_files(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    path = tmp_path / "model.npz"
    nn.save(STATE, path)
    with numpy.load(path) as found:
        assert {name: found[name].tolist() for name in found} == {name: x.tolist() for name, x in STATE.items()}
    columns_first = numpy.asfortranarray(numpy.arange(6, dtype="int32").reshape(2, 3))
    numpy.savez_compressed(path, x=columns_first, y=numpy.float32(1.5))
    assert as_text(nn.load(path)) == as_text({"x": T.arange(6).reshape(2, 3), "y": T.asarray(1.5, dtype="float32")})


def test_safetensors_has_the_layout_that_it_documents(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    nn.save({"x": T.asarray([1.0, 2.0], dtype="float32"), "k": T.asarray([7])}, path)
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    assert length % 8 == 0
    assert header["k"] == {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}
    assert header["x"] == {"dtype": "F32", "shape": [2], "data_offsets": [8, 16]}
    assert data[8 + length :] == struct.pack("<qff", 7, 1.0, 2.0)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_damaged_files_are_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"model{suffix}"
    nn.save(STATE, path)
    whole = path.read_bytes()
    for cut in (0, 4, 40, len(whole) - 5):
        path.write_bytes(whole[:cut])
        with pytest.raises(ArgumentValueError, match="cannot be read"):
            nn.load(path)


def test_other_suffixes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentValueError, match=r"must end with \.npz or \.safetensors"):
        nn.save(STATE, tmp_path / "model.pt")
    with pytest.raises(ArgumentError, match=r"such as model\.state_dict\(\), not the Linear"):
        nn.save(nn.Linear(2, 1), tmp_path / "model.npz")  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        nn.load(tmp_path / "none.npz")
