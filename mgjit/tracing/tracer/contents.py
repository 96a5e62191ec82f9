"""The numbers that the leaves of a trace have in front of the call that is traced."""

from __future__ import annotations

from collections.abc import Mapping
from threading import get_ident
from typing import Any

from ...engine.numeric import is_number
from ...ir import opcodes as ops
from ...memory.buffers import ParameterStorage
from ...memory.live import Home
from ..call.node import Frame
from ..call.plan import ArgumentPlan
from ..draws.plan import DrawPlan, followers
from ..record.answers import Unknown
from ..record.recorder import Recorder


class Contents:
    """The numbers of one call.

    Args:
        frame: with its arguments.
        slots: the storage for Values among them, which has other numbers.
        draws: of the trace so far.
        of_objects: what was in the user's objects, by leaf.
    """

    def __init__(
        self,
        recorder: Recorder,
        plan: ArgumentPlan,
        frame: Frame,
        slots: Any,
        draws: DrawPlan,
        of_objects: Mapping[int, Any],
    ) -> None:
        self._recorder, self._plan, self._slots, self._draws = recorder, plan, slots, draws
        self._frame, self._of_objects = frame, of_objects
        self._values: dict[int, Any] = {}
        self._drawn: list[float] = []

    def __call__(self, leaf: int) -> float:
        """The number in a leaf.

        Raises:
            Unknown: it cannot be said.
        """
        kind, index = ops.leaf_kind(leaf), ops.leaf_index(leaf)
        if kind == ops.INPUT:
            return self._input(index)
        found: Any = self._of_objects.get(leaf)
        if type(found) is Home:
            found = found.number
        elif found is None and kind in (ops.PARAMETER, ops.GRADIENT):
            found = self._parameter(leaf if kind == ops.PARAMETER else leaf + (1 << ops.KIND_SHIFT), index, kind)
        elif found is None and kind == ops.STATE:
            found = self._state(index)
        if not is_number(found):
            raise Unknown
        return float(found)

    def _input(self, index: int) -> float:
        drawn = index - self._plan.input_size
        return self._number_drawn(drawn) if drawn >= 0 else self._plan.number(index, self._frame)

    def _number_drawn(self, index: int) -> float:
        """A number that the call draws, of which there are more as the trace goes on."""
        if index >= len(self._drawn):
            me = get_ident()
            follower = followers.pop(me, None)
            try:
                states = self._draws.states()
                self._drawn = list(map(float, self._draws.numbers()))
                self._draws.restore(states)
            finally:
                if follower is not None:
                    followers[me] = follower
        return self._drawn[index]

    def _parameter(self, data_leaf: int, index: int, kind: int) -> Any:
        for base, storage in self._recorder.bound_storages:
            if base <= index < base + len(storage) and isinstance(storage, ParameterStorage):
                if storage is self._slots:
                    return _number_of(self._frame.values[index - base], kind)
                memory = storage.data if kind == ops.PARAMETER else storage.grad
                return memory[storage.places([index - base])[0]]
        if data_leaf not in self._values:
            self._values = {value._leaf: value for value in self._recorder.new_parameters if hasattr(value, "_leaf")}
        value = self._values.get(data_leaf)
        return None if value is None else _number_of(value, kind)

    def _state(self, index: int) -> Any:
        for base, state in self._recorder.states:
            if base <= index < base + len(state):
                return state._buffer[index - base]
        return None


def _number_of(value: Any, kind: int) -> Any:
    return value._data if kind == ops.PARAMETER else value._grad
