"""`save` and `load`: a whole run in one file, such as the states of a model, its optimiser, a schedule and a generator.

What is saved is made of dicts, lists, tuples, numbers, text, None and tensors; what has a `state_dict()` is saved by
it, and a `random.Random` by its state.  The file has all tensors by name (nn/storage.py), as other libraries read them,
and beside them, as JSON, what they are parts of.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Mapping
from typing import Any

from ..errors import ArgumentError, ArgumentValueError, described, user_location
from ..nn import storage
from ..tensor.creation import asarray, is_array
from ..tensor.tensor import Tensor


def save(run: Any, path: Any) -> None:
    """Write a run to a file; an old one is replaced once that is complete.

    Args:
        run: see above.
        path: with .safetensors the file has that format, otherwise, whatever it ends with, that of .npz.

    Raises:
        ArgumentError: there is something in it that cannot be saved.
    """
    tensors: dict[str, Tensor] = {}
    about = json.dumps(_described(run, "", tensors), separators=(",", ":"))
    storage.write(tensors, os.fspath(path), about)


def load(path: Any, map_location: Any = None, weights_only: bool = True) -> Any:
    """What `save` has written; of a file of tensors alone, a dict of them.

    Args:
        map_location, weights_only: PyTorch's arguments, which change nothing: there is no other device, and no code in
            the file.

    Raises:
        ArgumentValueError: the file is damaged, or of another program.
    """
    tensors, about = storage.read(os.fspath(path))
    if not about:
        return tensors
    try:
        return _made(json.loads(about), tensors)
    except (KeyError, TypeError, ValueError) as reason:
        raise ArgumentValueError(f"{user_location()}: {path} cannot be read: {reason!r}.") from None


def _described(thing: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    """What stands for something in JSON."""
    if thing is None or isinstance(thing, (bool, int, float, str)):
        return thing
    if isinstance(thing, Tensor) or is_array(thing):
        name = path or "tensor"
        while name in tensors:
            name += "_"
        tensors[name] = asarray(thing)
        return {"tensor": name}
    if isinstance(thing, random.Random):
        return _described(thing.getstate(), path, tensors)
    if hasattr(thing, "state_dict"):
        return _described(thing.state_dict(), path, tensors)
    if isinstance(thing, Mapping):
        return {"dict": [
            [_described(key, path, tensors), _described(part, f"{path}.{key}" if path else str(key), tensors)]
            for key, part in thing.items()
        ]}  # fmt: skip
    if isinstance(thing, (list, tuple)):
        parts = [_described(part, f"{path}.{k}" if path else str(k), tensors) for k, part in enumerate(thing)]
        return {"list" if isinstance(thing, list) else "tuple": parts}
    raise ArgumentError(
        f"{user_location()}: {path or 'this'} is a {described(thing)}, which is not saved: numbers, text, tensors, and "
        "dicts, lists and tuples of them are, and what has a state_dict()."
    )


def _made(found: Any, tensors: Mapping[str, Tensor]) -> Any:
    if not isinstance(found, dict):
        return found
    ((kind, content),) = found.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "dict":
        return {_made(key, tensors): _made(part, tensors) for key, part in content}
    parts = [_made(part, tensors) for part in content]
    return parts if kind == "list" else tuple(parts)
