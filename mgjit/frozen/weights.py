"""The numbers that a step can reach, as they were when it was frozen.

1. Parameters of `mgjit.Value`, states and tensors are engine objects: they are found in all that the survey has met.
2. Numbers in the user's objects are those that surroundings/roles.py takes for memory, of objects, lists and variables.
3. They are copied at once; where each of them is, by identity, is only worked out when it is asked for.

What is not there was made after the step was frozen, so that a trace that needs it is refused.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from ..base.cached import cached_property
from ..engine.state import State
from ..engine.value import Value
from ..errors import FreezeError
from ..memory.buffers import ParameterStorage
from ..memory.live import Field, Home
from ..tensor.memory import Memory
from ..tensor.tensor import Tensor
from ..tracing.copies.copies import Copied
from ..tracing.record.mixed import TYPES
from ..tracing.surroundings.places import Place
from ..tracing.surroundings.roles import Roles
from ..tracing.surroundings.shapes import content_of
from ..tracing.surroundings.survey import Survey


class Weights:
    """Numbers around a step, as they are now.

    Args:
        survey: what surrounds the step.
        roles: of the places in it.
        name: of the step, for messages.

    Attributes:
        is_open: whether what was not met is read where it is, as long as the step is being frozen.
    """

    def __init__(self, survey: Survey, roles: Roles, name: str) -> None:
        self._name = name
        self.is_open = True
        engine = {id(thing): thing for thing in _engine_things(survey)}
        self._values = [thing for thing in engine.values() if isinstance(thing, Value)]
        self._data = array("d", [value._data for value in self._values])
        self._grad = array("d", [value._grad for value in self._values])
        self._states = {key: (thing, thing._buffer[:]) for key, thing in engine.items() if isinstance(thing, State)}
        self._tensors: dict[int, tuple[Memory, Memory]] = {}
        for thing in engine.values():
            if isinstance(thing, Tensor) and thing.dtype.is_floating and thing._memory.data is not None:
                self._copy_of(thing._memory)
        self._columns: list[tuple[list[Any], Field, list[Any]]] = [
            (things, field, [_number(content_of(field, thing)) for thing in things])
            for things, fields in roles.objects
            for field in fields
        ]
        self._scalars = [(place, place.read()) for place in roles.scalars]
        self._lists = [(place, list(content)) for place, content in roles.lists]

    @cached_property
    def _of_values(self) -> dict[int, tuple[float, float]]:
        return dict(zip(map(id, self._values), zip(self._data, self._grad)))

    @cached_property
    def _of_places(self) -> dict[Any, Sequence[Any]]:
        """The numbers at places of the user's, by key."""
        found: dict[Any, Sequence[Any]] = {place.key: numbers for place, numbers in self._lists}
        found.update((place.key, (number,)) for place, number in self._scalars)
        for things, field, numbers in self._columns:
            found.update((field.key(thing), (number,)) for thing, number in zip(things, numbers))
        return found

    # ---- what a kernel gets -----------------------------------------------------------------------------------

    def of_parameters(self, parameters: Sequence[tuple[int, Any]]) -> tuple[list[float], list[float]]:
        """Data and gradients of parameters that no kernel has moved, by number from the first one on.

        Args:
            parameters: the number of each, and what it is.
        """
        first, last = parameters[0][0], parameters[-1][0]
        data, grad = [0.0] * (last - first + 1), [0.0] * (last - first + 1)
        for number, thing in parameters:
            if isinstance(thing, Value):
                data[number - first], grad[number - first] = self._of_value(thing)
            else:
                for field, numbers in zip(thing.fields, (data, grad)):
                    numbers[number - first] = self._of_field(thing.owner, field) or 0.0
        return data, grad

    def of_storage(self, storage: ParameterStorage) -> tuple[list[float], list[float]]:
        """The same of parameters that live in the memory of another step."""
        data, grad = storage.data, storage.grad
        if not self.is_open:
            data, grad = array("d", bytes(8 * len(data))), array("d", bytes(8 * len(grad)))
            for value in self._values:
                if value._is_bound and value._storage is storage:
                    data[value._index], grad[value._index] = self._of_values[id(value)]
            for things, field, numbers in self._columns:
                homes = [(content_of(field, thing), number) for thing, number in zip(things, numbers)]
                for home, number in homes:
                    if type(home) is Home and home.storage is storage:
                        (data if home.array is storage.data else grad)[home.index] = number or 0.0
        places = storage.places(range(len(storage)))
        return [data[place] for place in places], [grad[place] for place in places]

    def of_state(self, state: State) -> Any:
        """The numbers of a state."""
        if id(state) not in self._states:
            if not self.is_open:
                raise self._unknown("an mgjit.state")
            self._states[id(state)] = state, state._buffer[:]
        return self._states[id(state)][1]

    def of_tensor(self, memory: Memory) -> Memory:
        """The numbers of tensors that are views of a memory, in a memory that nobody else has."""
        if id(memory) not in self._tensors and not self.is_open:
            raise self._unknown("a tensor")
        return self._copy_of(memory)

    def _copy_of(self, memory: Memory) -> Memory:
        known = self._tensors.get(id(memory))
        if known is None:
            copied = Memory(len(memory), memory.dtype)
            copied.data[:] = memory.data
            if memory.has_gradient:
                copied.grad[:] = memory.grad
            known = self._tensors[id(memory)] = memory, copied  # the first one keeps its identity from being used again
        return known[1]

    def of_place(self, copied: Copied) -> list[float]:
        """What a place held, as a kernel expects it."""
        numbers = self._of_places.get(copied.place.key)
        if numbers is None or len(numbers) != copied.count:
            if not self.is_open:
                raise self._unknown(copied.place.describe())
            numbers = list(map(_number, copied.read()))
        copied.check_indices(numbers)
        kinds = [TYPES.index(type(number)) for number in numbers] if copied.mixed else []
        return [*map(float, numbers), *map(float, kinds)]

    def changed(self, places: Iterable[tuple[Place, Any]]) -> str:
        """The first of some places that held another number, in words; empty if there is none."""
        known = ((place, now, self._of_places.get(place.key)) for place, now in places)
        return next((place.describe() for place, now, held in known if held is not None and held[0] is not now), "")

    def _of_value(self, value: Value) -> tuple[float, float]:
        found = self._of_values.get(id(value))
        if found is None:
            if not self.is_open:
                raise self._unknown("a parameter")
            self._values.append(value)  # which also keeps its identity from being used again
            found = self._of_values[id(value)] = value._data, value._grad
        return found

    def _of_field(self, owner: Any, field: Field) -> Any:
        found = self._of_places.get(field.key(owner))
        if found is None:
            if not self.is_open:
                raise self._unknown(f"{type(owner).__name__}.{field.name}")
            return _number(field.read(owner))
        return found[0]

    def _unknown(self, what: str) -> FreezeError:
        return FreezeError(
            f"{self._name}: these arguments need {what} that was not there, or not reachable, when the step was "
            "frozen. Freeze it again."
        )


def _number(content: Any) -> Any:
    return content.number if type(content) is Home else content


def _engine_things(survey: Survey) -> Iterator[Any]:
    """The parameters, states and tensors of the engine that lie anywhere around a step."""
    return (thing for thing in chain.from_iterable(_contents(survey)) if isinstance(thing, (Value, State, Tensor)))


def _contents(survey: Survey) -> Iterator[Iterable[Any]]:
    yield [content for _, content in survey.variables.values()]
    for _, thing, copied, _ in survey.containers():
        yield copied.values() if isinstance(copied, dict) else copied
        if not isinstance(copied, (dict, list, tuple)):
            yield [thing]
    for group in survey.groups.values():
        for own in group.copies:
            yield () if own is None else own.values()
        for _, contents in group.slots:
            yield contents
    for members in survey.classes.values():
        yield members.values()
    for function in survey.functions:
        yield (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values(), *vars(function).values())
