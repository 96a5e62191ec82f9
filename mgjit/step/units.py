"""Decide when a step gets a function compiled by itself: when its calls have ever new lengths, so none earns a kernel.

1. Plain calls are counted, with the structures of their arguments.
2. When nearly all of them are new, and each takes long enough, one plain call is watched (unit_choice.py).
3. From then on, the function that was found is compiled by itself (unit.py), in the plain calls that remain.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from ..base import settings
from ..compiler.build.options import StepOptions
from ..engine.precision import FLOAT64
from ..kernels.first_calls.earnings import RAGGED_CALLS
from ..kernels.kernels import Kernels

T = TypeVar("T")

#: So many plain calls come first, of which such a part must have had new structures.
_CALLS, _PART = RAGGED_CALLS, 0.75
#: A plain call has to take so many seconds.
_SECONDS = 2e-3
#: What a trace of the whole step is expected to take, in plain calls.
_TRACE = 20.0


class Units:
    """What becomes of the plain calls of a step.

    Args:
        function: the step. options: of the step.

    Attributes:
        unit: the function that is compiled by itself, if any.
    """

    def __init__(self, function: Callable[..., Any], options: StepOptions) -> None:
        self._function, self._options = function, options
        self._is_open = options.precision is FLOAT64 and options.lock and options.code.mode == "strict"
        self._structures: set[Hashable] = set()
        self._calls = 0
        self.unit: Any = None

    def during(self, key: Hashable, kernels: Kernels, call: Callable[[], T]) -> T:
        """Return what a plain call returns.

        Args:
            key: of the structure of its arguments. kernels: of the step.
        """
        if self.unit is not None:
            return self.unit.during(call)  # type: ignore[no-any-return]
        if not self._is_open:
            return call()
        self._structures.add(key)
        self._calls += 1
        kernels.earnings.is_choosing = self._calls <= _CALLS or not kernels.earnings.may_trace()
        if kernels.earnings.is_choosing:
            return call()
        self._is_open = False
        if kernels.earnings.plain_seconds() < _SECONDS or len(self._structures) < _PART * self._calls:
            return call()
        from .unit_choice import watched

        result, choice = watched(self._function, call)
        if choice is not None:
            from .unit import NAME_OF_UNITS, UNITS, Unit

            setattr(builtins, NAME_OF_UNITS, UNITS)
            self.unit = Unit(choice, self._options)
            kernels.stats.units[self.unit.name] = self.unit.forward.stats, self.unit.backward.stats
            kernels.give_up()  # code for one combination of lengths
            kernels.earnings.expect_trace(_TRACE * kernels.earnings.plain_seconds())
            settings.LOGGER.info("%s is compiled by itself", choice.function.__name__)
        return result  # type: ignore[no-any-return]

    def wait(self, seconds: float | None) -> bool:
        """Wait until all code is there that is being built; returns whether it is."""
        return self.unit is None or all(step.wait(seconds) for step in (self.unit.forward, self.unit.backward))
