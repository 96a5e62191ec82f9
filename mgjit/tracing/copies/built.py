"""What a step builds and leaves in the user's objects: made in each call from the numbers that its kernel has stored.

Layers keep `self.cache = (x, h)` for `backward`, networks `self.acts = [x, h1, h2]`: containers and objects that are
new in each call.  Where each lies, and what it is made of, is found by a trace (tracer/building.py):

1. Its numbers follow those that are copied, in one State.
2. `show` makes everything anew, in plain code where no part has two places, and puts it where it belongs.
3. A list or array that the call was given is put there itself, if the call has told it.
4. Where the next call reads what this one has left, such as `self.state = (h, c)`, it must be of the same form: its
   floats, and the elements of its tensors, are copied in, to where the new ones will be.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ...tensor.dtypes import DType
from ...tensor.shapes import Shape, row_major
from ...tensor.tensor import Tensor
from ..call.given import GivenPath
from ..call.results import CompositeResult, ConstantResult, GivenResult, ResultTree
from ..surroundings.places import Contents, Place


class ToldResult(ResultTree):
    """A container that the call was given, and has told; or one of the same contents, if it has not.

    Args:
        number: of it among those that are told.
        parts: its contents.
    """

    def __init__(self, number: int, parts: ResultTree) -> None:
        self.number, self._parts = number, parts

    def __call__(self, outputs: Any, arguments: Sequence[Any] = ()) -> Any:
        told = arguments[self.number]
        return self._parts(outputs, arguments) if told is None else told

    def expression(self, outputs: str, name_of: Callable[[Any], str], names: Sequence[str] = ()) -> str:
        told = names[self.number]
        return f"({self._parts.expression(outputs, name_of, names)} if {told} is None else {told})"


Take = Callable[[Any, "array[float]"], bool]


@dataclass
class Carried:
    """Containers of floats that are copied in.

    Attributes:
        place: where they lie.
        offset, count: where the floats are in the State.
        take: adds the floats of what lies there to an array, and returns whether it has the form that it had.
    """

    place: Place
    offset: int
    count: int
    take: Take

    def numbers(self, code: str = "d") -> array[float] | None:
        """The floats that are there now, of a type of arrays; None if it has another form."""
        found: array[float] = array(code)
        return found if not self.place.is_empty() and self.take(self.place.read(), found) else None


def taking(example: Any, written: Collection[int]) -> Take:
    """What takes floats out of lists, tuples, dicts and tensors of the form of one.

    Args:
        written: the identities of memories that the step writes: those have other numbers when they are read.
    """
    kind = type(example)
    if kind is float:
        return _take_float
    if isinstance(example, Tensor):
        return partial(_take_tensor, example.shape, example.dtype, written)
    if kind not in (list, tuple, dict):
        return lambda thing, found: type(thing) is kind and bool(thing == example)
    count = len(example)
    if kind is not dict and {*map(type, example)} == {float}:

        def take_row(thing: Any, found: array[float]) -> bool:
            if type(thing) is not kind or len(thing) != count or {*map(type, thing)} != {float}:
                return False
            found.extend(thing)
            return True

        return take_row
    keys = list(example) if kind is dict else None
    inside = [taking(part, written) for part in (example.values() if kind is dict else example)]

    def take(thing: Any, found: array[float]) -> bool:
        if type(thing) is not kind or len(thing) != count or (keys is not None and list(thing) != keys):
            return False
        return all(take(part, found) for take, part in zip(inside, thing.values() if keys is not None else thing))

    return take


def _take_float(thing: Any, found: array[float]) -> bool:
    if type(thing) is not float:
        return False
    found.append(thing)
    return True


def _take_tensor(shape: Shape, dtype: DType, written: Collection[int], thing: Any, found: array[float]) -> bool:
    if not isinstance(thing, Tensor) or thing.shape != shape or thing.dtype is not dtype:
        return False
    memory, view = thing._memory, thing._view
    if memory.trace is not None or memory.is_leaf or id(memory) in written:
        return False
    if dtype.format == found.typecode and view.strides == row_major(shape):
        found.frombytes(memoryview(memory.data)[view.offset : view.offset + thing.size].cast("B"))
    else:
        found.extend(thing.tolist_flat())
    return True


@dataclass
class Built:
    """All that a step builds and leaves.

    Attributes:
        places: where it leaves something.
        trees: how that is made of the numbers of the State.
        is_shared: whether a container has several places in them.
        lengths: of lists that are filled anew, by place, when the step begins.
        given: where containers lie among the arguments that the step leaves somewhere.
        carried: what it reads of the call before.
        written: the identities of memories of tensors that the step writes.
    """

    places: list[Place] = field(default_factory=list)
    trees: list[ResultTree] = field(default_factory=list)
    is_shared: bool = False
    lengths: list[tuple[Contents, int]] = field(default_factory=list)
    given: list[GivenPath] = field(default_factory=list)
    carried: list[Carried] = field(default_factory=list)
    written: set[int] = field(default_factory=set)

    def difference(self) -> str:
        """What is not as it was when the step was traced, in words; empty when all is."""
        for contents, length in self.lengths:
            if len(contents.holder) != length:
                return f"{contents.describe()} had {length} elements when the step was traced"
        other = next((one.place for one in self.carried if one.numbers() is None), None)
        if other is not None:
            return f"{other.describe()} has another form than when the step was traced"
        gone = next((place for place in self.places if place.is_empty()), None)
        return "" if gone is None else f"{gone.describe()} is gone"

    def add(self, place: Place, tree: ResultTree) -> None:
        """Something is left at a place."""
        self.places.append(place)
        self.trees.append(self._told(tree))

    def _told(self, tree: ResultTree) -> ResultTree:
        """The same, with containers of the arguments as they are told.

        Raises:
            ValueError: an argument cannot be told from its parts.
        """
        if isinstance(tree, GivenResult):
            if isinstance(tree.parts, ConstantResult):
                raise ValueError
            self.given.append(tree.path)
            return ToldResult(len(self.given) - 1, _made(tree.parts))
        if type(tree) is CompositeResult:
            tree.parts[:] = map(self._told, tree.parts)
        return tree


def _made(tree: ResultTree) -> ResultTree:
    """The same, with contents in place of what the call was given."""
    if isinstance(tree, GivenResult):
        return _made(tree.parts)
    if type(tree) is CompositeResult:
        tree.parts[:] = map(_made, tree.parts)
    return tree
