"""What a step finds of what the call before has built (building.py): the same, with traced numbers in place of others.

1. Containers are made anew, of the same form, with traced numbers in place of floats.
2. A tensor is the copy of its elements that is made when the call begins.  So the step must not assign to them, nor
   reach the memory under another name.
3. What the step leaves in its turn must have this form, too.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import is_
from typing import TYPE_CHECKING, Any

from ...engine.leaks import is_traced_number
from ...tensor.apply import recording
from ...tensor.dtypes import int64
from ...tensor.tensor import Tensor
from ..record.values import TracedTypes
from ..surroundings.places import Place

if TYPE_CHECKING:
    from ...tensor.memory import Memory

#: What is as it was.
ATOMS = frozenset({float, int, bool, str, bytes, complex, type(None)})
#: So many levels of containers are looked into.
DEPTH = 20


class Standing:
    """Containers of traced numbers in place of those of floats.

    Args:
        place: where they lie.
        before: the containers.
        leaf: of the first number.
        knows: whether an object is reached in another way: what changes it there would not be seen.
        is_linked: whether the step leaves tensors with a graph there, through which no gradient flows a second time.

    Attributes:
        thing: what stands there; None if that cannot be.
        identities: of the containers, tensors and memories. count: how many numbers there are.
    """

    def __init__(
        self, place: Place, before: Any, types: TracedTypes, leaf: int, knows: Callable[[Any], bool], is_linked: bool
    ) -> None:
        self.place, self.count = place, 0
        self._types, self._leaf, self._knows, self._is_linked = types, leaf, knows, is_linked
        self._tensors: list[tuple[Tensor, int, Memory]] = []  # each with its version, and the memory that it stands for
        self._met: set[int] = set()
        self._held: list[tuple[Any, list[Any]]] = []
        self._fits = type(before) in (list, tuple, dict) or isinstance(before, Tensor)
        self.thing = self._of(before, DEPTH) if self._fits else None
        self.thing = self.thing if self._fits else None
        tensors = [tensor for tensor, _, _ in self._tensors]
        parts = [*(container for container, _ in self._held), *tensors, *(one._memory for one in tensors)]
        self.identities = list(map(id, parts))

    def _of(self, before: Any, depth: int) -> Any:
        kind = type(before)
        if kind is float:
            self.count += 1
            return self._types.number_at(self._leaf - self.count + 1, False)
        if kind in ATOMS:
            return before
        if isinstance(before, Tensor):
            return self._of_tensor(before)
        if kind not in (list, tuple, dict) or id(before) in self._met or self._knows(before) or not depth:
            self._fits = False
            return None
        self._met.add(id(before))
        parts = [self._of(part, depth - 1) for part in (before.values() if kind is dict else before)]
        made = dict(zip(before, parts)) if kind is dict else kind(parts)
        self._held.append((made, parts if kind is dict else list(parts)))
        return made

    def _of_tensor(self, before: Tensor) -> Tensor | None:
        memory = before._memory
        is_other = memory.trace is not None or memory.is_leaf or before.dtype is int64
        if is_other or id(memory) in self._met or self._knows(before):
            self._fits = False
            return None
        self._met.add(id(memory))
        made = recording().copied_in(self._leaf - self.count, before.shape, before.dtype)
        self.count += before.size
        if self._is_linked:
            made._memory.made_by = None
        self._tensors.append((made, made._memory.version, memory))
        return made  # type: ignore[no-any-return]

    def has_changed(self) -> bool:
        """Whether the step has changed them, or uses the memory of a tensor under another name as well."""
        uses = recording().uses
        for tensor, version, memory in self._tensors:
            if tensor._memory.version != version or tensor._memory.is_leaf or uses(memory):
                return True
        return any(
            len(container) != len(parts)
            or not all(map(is_, container.values() if type(container) is dict else container, parts))
            for container, parts in self._held
        )


def is_of_form(content: Any, before: Any) -> bool:
    """Whether something has containers of the same form, and traced floats where there are floats."""
    kind = type(before)
    if isinstance(before, Tensor):
        is_alike = isinstance(content, Tensor) and (content.shape, content.dtype) == (before.shape, before.dtype)
        return is_alike and recording().is_made(content)
    if kind is float:
        return is_traced_number(content) and isinstance(content, float) and not hasattr(type(content), "_kind")
    if kind in ATOMS:
        return type(content) is kind and bool(content == before)
    if kind is not type(content) or len(content) != len(before):
        return False
    if kind is dict:
        return list(content) == list(before) and all(map(is_of_form, content.values(), before.values()))
    return all(map(is_of_form, content, before))
