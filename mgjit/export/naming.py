"""What the user calls the numbers of a step: names and comments in exported C.

1. Walk what the step can reach, as a comparison does (verification/snapshot.py), and note where each tensor, each
   object with a number, and each number in the memory of a kernel was found.  Parameters of a module are called as in
   its `state_dict`.
2. Memory that is one tensor gets its name, as a C identifier, and its shape: `model.0.weight` becomes
   `model_0_weight[8][4]`.
3. Memory of single numbers, such as Values, keeps a general name; a comment says which of them lie where.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

from ..ir.opcodes import PARAMETER, STATE
from ..ir.trace import Trace
from ..memory.live import raw_attributes
from ..memory.parameter import Parameter
from ..nn.module import Module
from ..tensor.memory import Memory
from ..tensor.tensor import Tensor
from ..tracing.tracer.knowledge import HeapPlan
from ..tracing.tracer.tracer import TracedCall
from ..verification.holders import Path, Storage, described
from ..verification.snapshot import Found, Snapshot

#: So many parts of a memory are listed in its comment.
_MOST = 32


class Known(NamedTuple):
    """What the user knows about a region of memory.

    Attributes:
        path: of the tensor that it is; empty if it is no tensor.
        shape: of that tensor.
        parts: which numbers lie where, in words.
    """

    path: str = ""
    shape: tuple[int, ...] = ()
    parts: str = ""


class _Walk(Snapshot):
    """Everything with numbers that a function can reach, with the tensors by their memory."""

    def __init__(self, function: Any) -> None:
        self.tensors: dict[int, tuple[str, Tensor]] = {}
        self._of_modules: dict[int, str] = {}
        super().__init__([("", function)], with_gradients=False)

    def _tensor(self, thing: Any, path: Path) -> Found:
        memory = id(thing._memory)
        self.tensors.setdefault(memory, (_plain(path), thing))
        return ()

    def _object(self, thing: Any, path: Path) -> Found:
        if isinstance(thing, Module):
            for name, parameter in thing.named_parameters():
                if isinstance(parameter, Tensor):
                    self._of_modules.setdefault(id(parameter._memory), f"{_plain(path)}.{name}")
        return super()._object(thing, path)

    def path_of(self, memory: Memory) -> str:
        """The name of the tensor in this memory."""
        return self._of_modules.get(id(memory)) or self.tensors[id(memory)][0]


def known(function: Any, traced: TracedCall) -> dict[int, list[Known]]:
    """What is known about each region of the parameters, and of the state, in the order of the memory (lift/memory.py).

    Args:
        function: what was traced.
    """
    walk = _Walk(function)
    of_state = _parts(_paths_of_state(walk, traced.heap))
    states = [Known(parts=of_state if state is traced.heap.state else "") for _, state in traced.trace.states]
    return {PARAMETER: _parameters(walk, traced.trace), STATE: states}


def _parameters(walk: _Walk, trace: Trace) -> list[Known]:
    found = []
    if trace.new_parameters:
        found.append(Known(parts=_parts(_paths_of_new(walk, trace.new_parameters))))
    for _, storage in trace.bound_storages:
        if id(storage) in walk.tensors:
            tensor = walk.tensors[id(storage)][1]
            shape = tensor.shape if tensor.numel() == len(storage) else (len(storage),)
            found.append(Known(walk.path_of(storage), tuple(shape)))
        elif isinstance(storage, Memory):
            found.append(Known())
        else:
            found.append(Known(parts=_parts(_paths_of_bound(walk, storage))))
    return found


def _paths_of_state(walk: _Walk, heap: HeapPlan) -> dict[int, str]:
    """The paths of numbers that are copied before and after a call, by their places."""
    holders = {id(holder.thing): holder for holder in walk.holders}
    found: dict[int, str] = {}
    for one in heap.copied:
        identity, name = one.place.key
        holder = holders.get(identity)
        path = one.place.describe() if holder is None else _plain((holder.path, holder.label(name)))
        found.update({one.offset + k: f"{path}[{k}]" for k in range(one.size)} if one.size else {one.offset: path})
    return found


def _paths_of_new(walk: _Walk, parameters: Sequence[tuple[int, Any]]) -> dict[int, str]:
    """The paths of numbers that no kernel has moved yet, by their places."""
    paths = {id(holder.thing): holder.path for holder in walk.holders}
    found, start = {}, parameters[0][0]
    for index, value in parameters:
        owner = value.owner if isinstance(value, Parameter) else value
        path = paths.get(id(owner)) or paths.get(id(raw_attributes(owner)))
        if path is not None:
            found[index - start] = _plain(path)
    return found


def _paths_of_bound(walk: _Walk, storage: Any) -> dict[int, str]:
    """The paths of numbers in the memory of a kernel, by their places in natural order."""
    places = storage.places(range(len(storage)))
    known = next((one.known for one in walk.holders if isinstance(one, Storage) and one.thing is storage), {})
    paths = {number: known.get((place, False)) for number, place in enumerate(places)}
    return {number: re.sub(r"\.data$", "", _plain(path)) for number, path in paths.items() if path is not None}


def _parts(paths: dict[int, str]) -> str:
    """Which numbers lie where: `[0..2] w, [3] b`; those that follow each other in a list are one part."""

    def key(one: tuple[int, str]) -> tuple[str, int]:
        place, path = one
        inner = re.fullmatch(r"(.*)\[(\d+)\]", path)
        return (inner[1], place - int(inner[2])) if inner else (path, place)

    parts = []
    for (path, _), group in groupby(sorted(paths.items()), key):
        numbers = list(group)
        first, last = numbers[0], numbers[-1]
        if len(numbers) == 1:
            parts.append(f"[{first[0]}] {first[1]}")
        else:
            start = first[1][len(path) :].strip("[]")
            parts.append(f"[{first[0]}..{last[0]}] {path}" + (f" from {start} on" if start != "0" else ""))
    return ", ".join(parts[:_MOST]) + (" ..." if len(parts) > _MOST else "")


def _plain(path: Path) -> str:
    """A path without what only messages say."""
    return described(path).replace("the variable ", "").replace("._modules", "")
