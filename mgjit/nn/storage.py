"""Files of tensors: `.npz`, which NumPy reads, and `.safetensors`; neither needs a library.

An `.npz` is a zip archive with a `.npy` for each tensor: a line of text that describes it, and its numbers.  A
`.safetensors` has the descriptions of all tensors as JSON, and then all numbers.
"""

from __future__ import annotations

import ast
import json
import os
import struct
import sys
from array import array
from collections.abc import Mapping
from typing import Any

from ..errors import ArgumentError, ArgumentValueError, described, user_location
from ..tensor.creation import asarray, from_flat
from ..tensor.dtypes import DType, bool_, float32, float64, int64
from ..tensor.shapes import size_of
from ..tensor.tensor import Tensor

#: The name of the text that is kept with tensors.
_ABOUT = "mgjit.json"
_MAGIC = b"\x93NUMPY\x01\x00"
_NUMPY = {float64: "<f8", float32: "<f4", int64: "<i8", bool_: "|b1"}
_SAFE = {float64: "F64", float32: "F32", int64: "I64", bool_: "BOOL"}
#: The codes of `array` for element types of files, and what they become.
_READ = {
    "f8": ("d", float64), "f4": ("f", float32), "i8": ("q", int64), "i4": ("i", int64), "i2": ("h", int64),
    "i1": ("b", int64), "u1": ("B", int64), "b1": ("B", bool_), "F64": ("d", float64), "F32": ("f", float32),
    "I64": ("q", int64), "I32": ("i", int64), "I16": ("h", int64), "I8": ("b", int64), "U8": ("B", int64),
    "BOOL": ("B", bool_),
}  # fmt: skip


def save(state: Mapping[str, Any], path: Any) -> None:
    """Write tensors by name, such as `model.state_dict()`, to a file. An old file stays until the new one is complete.

    Args:
        state: tensors, or what `mgjit.tensor.asarray` takes.
        path: ends with .npz or .safetensors.

    Raises:
        ArgumentValueError: it ends otherwise.
        ArgumentError: these are no tensors by name.
    """
    if not isinstance(state, Mapping):
        raise ArgumentError(
            f"{user_location()}: tensors by name are saved, such as model.state_dict(), not the {described(state)}."
        )
    name = os.fspath(path)
    _of_suffix(name, None, None)
    write({str(key): asarray(tensor) for key, tensor in state.items()}, name)


def write(tensors: dict[str, Tensor], name: str, about: str = "") -> None:
    """Write tensors to a file: a .safetensors if it ends so, otherwise a .npz.

    Args:
        about: text that is kept with them.
    """
    unfinished = f"{name}.{os.getpid()}.new"
    try:
        (_write_safetensors if name.endswith(".safetensors") else _write_npz)(tensors, unfinished, about)
        os.replace(unfinished, name)
    finally:
        if os.path.exists(unfinished):
            os.unlink(unfinished)


def load(path: Any) -> dict[str, Tensor]:
    """The tensors of a file, by name, for `model.load_state_dict`.

    Args:
        path: ends with .npz or .safetensors.

    Raises:
        ArgumentValueError: it ends otherwise, or is damaged, or has elements that tensors cannot hold.
    """
    name = os.fspath(path)
    _of_suffix(name, None, None)
    return read(name)[0]


def read(name: str) -> tuple[dict[str, Tensor], str]:
    """The tensors of a file, by name, and the text that was kept with them.

    Raises:
        ArgumentValueError: it is damaged, or has elements that tensors cannot hold.
    """
    try:
        return _read_safetensors(name) if name.endswith(".safetensors") else _read_npz(name)
    except (KeyError, ValueError, SyntaxError, struct.error) as reason:
        if isinstance(reason, ArgumentValueError):
            raise
        raise ArgumentValueError(f"{user_location()}: {name} cannot be read: {reason!r}.") from None


def _of_suffix(name: Any, npz: Any, safetensors: Any) -> Any:
    if not isinstance(name, str):
        raise ArgumentError(f"{user_location()}: a path is text, not bytes.")
    for suffix, function in ((".npz", npz), (".safetensors", safetensors)):
        if name.endswith(suffix):
            return function
    raise ArgumentValueError(f"{user_location()}: {name!r} must end with .npz or .safetensors.")


def _bytes(tensor: Tensor) -> bytes:
    """The numbers in row-major order, the lowest byte of each first."""
    code = "B" if tensor.dtype is bool_ else tensor.dtype.format
    numbers = array(code, tensor.tolist_flat())
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def _tensor(kind: str, shape: Any, data: bytes, name: str, reverse: bool = False) -> Tensor:
    if kind not in _READ:
        raise ArgumentValueError(f"{user_location()}: {name} has elements of type {kind}, which tensors cannot hold.")
    code, dtype = _READ[kind]
    extents: tuple[int, ...] = tuple(map(int, shape))
    numbers = array(code)
    numbers.frombytes(data)
    if sys.byteorder == "big":
        numbers.byteswap()
    if len(numbers) != size_of(extents):
        raise ValueError(f"{name} has {len(numbers)} numbers for the shape {extents}")
    if reverse:  # columns first
        return _tensor_of(numbers, extents[::-1], dtype).T.copy()
    return _tensor_of(numbers, extents, dtype)


def _tensor_of(numbers: Any, shape: tuple[int, ...], dtype: DType) -> Tensor:
    return from_flat(numbers, shape, dtype)


# ---- .npz ---------------------------------------------------------------------------------------------------


def _write_npz(tensors: dict[str, Tensor], path: str, about: str) -> None:
    import zipfile  # which takes longer to import than all layers

    with zipfile.ZipFile(path, "w") as archive:
        for name, tensor in tensors.items():
            text = repr({"descr": _NUMPY[tensor.dtype], "fortran_order": False, "shape": tensor.shape})
            space = -(len(_MAGIC) + 2 + len(text) + 1) % 64
            header = f"{text}{' ' * space}\n".encode("latin1")
            archive.writestr(f"{name}.npy", _MAGIC + struct.pack("<H", len(header)) + header + _bytes(tensor))
        if about:
            archive.writestr(_ABOUT, about)


def _read_npz(path: str) -> tuple[dict[str, Tensor], str]:
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.namelist()
            if any(name.endswith("data.pkl") for name in members):
                raise ArgumentValueError(
                    f"{user_location()}: {path} was written by torch.save, as a pickle. Write its tensors with "
                    "safetensors.torch.save_file(state, 'name.safetensors')."
                )
            names = [name for name in members if name.endswith(".npy")]
            found = {name[: -len(".npy")]: _of_npy(archive.read(name), name) for name in names}
            return found, archive.read(_ABOUT).decode() if _ABOUT in members else ""
    except zipfile.BadZipFile as reason:
        raise ValueError(str(reason)) from None


def _of_npy(data: bytes, name: str) -> Tensor:
    if not data.startswith(_MAGIC[:6]):
        raise ValueError(f"{name} is no .npy")
    form, start = ("<H", 10) if data[6] == 1 else ("<I", 12)
    (length,) = struct.unpack(form, data[8:start])
    header = ast.literal_eval(data[start : start + length].decode("utf-8"))
    kind = header["descr"]
    if kind[0] == ">":
        raise ValueError(f"{name} has the highest byte first")
    return _tensor(kind[1:], header["shape"], data[start + length :], name, header["fortran_order"])


# ---- .safetensors -------------------------------------------------------------------------------------------


def _write_safetensors(tensors: dict[str, Tensor], path: str, about: str) -> None:
    header: dict[str, Any] = {"__metadata__": {_ABOUT: about}} if about else {}
    parts, place = [], 0
    # Larger elements first, so that all lie at multiples of their size.
    for name, tensor in sorted(tensors.items(), key=lambda one: -one[1].dtype.size):
        data = _bytes(tensor)
        header[name] = {
            "dtype": _SAFE[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [place, place + len(data)],
        }  # fmt: skip
        parts.append(data)
        place += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def _read_safetensors(path: str) -> tuple[dict[str, Tensor], str]:
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length].decode())
    numbers = data[8 + length :]
    found = {}
    for name, about in header.items():
        if name != "__metadata__":
            low, high = about["data_offsets"]
            found[name] = _tensor(about["dtype"], about["shape"], numbers[low:high], name)
    return found, header.get("__metadata__", {}).get(_ABOUT, "")
