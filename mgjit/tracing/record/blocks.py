"""Whole layers of `mgjit.nn`, appended to a trace at once.

A layer knows its loops.  So what its neurons would record, operation by operation, is appended as slices, at the speed
of C:

1. Look whether the loops of nn/scalar.py would do nothing else here: parameters and inputs are what they usually are,
   and nobody has replaced a function that these loops call.  Otherwise the loops themselves run.
2. Register the parameters, and Values among the inputs, in the order in which the loops would meet them.
3. Append the records, which are those of the loops.  Operands that are results of the same layer lie at fixed
   distances, so they are slices of the numbers 0, 1, 2, ...
4. Note the block, for the passes: they need not look for its loops again (roll/roll.py).
"""

from __future__ import annotations

import builtins
import functools
import sys
from array import array
from collections import deque
from collections.abc import Iterable, Sequence
from operator import attrgetter, is_
from types import BuiltinFunctionType
from typing import Any, NamedTuple

from ...engine.value import Value
from ...ir import opcodes as ops
from ...ir.trace import Block
from ...nn import scalar as nn
from .recorder import Recorder
from .traced_array import TracedArray
from .values import TracedTypes

_leaf_of, _trace_of, _backward_of = attrgetter("_leaf"), attrgetter("_trace"), attrgetter("_backward")
_plain_numbers = frozenset({float, int, bool})
#: What the loops of nn/scalar.py call, as it is before anybody replaces it.
_NEURON_CALL, _MULTIPLY, _GRADIENT = nn.Neuron.__call__, Value.__mul__, Value.__dict__["grad"]
#: Consecutive numbers are made in chunks of so many.
_CHUNK = 1 << 16
#: So many are made at first: most traces are short.
_FEW = 1 << 10
_BUILTINS = {name: getattr(builtins, name) for name in ("hasattr", "len", "zip")}


class _Rows(NamedTuple):
    """The parameters of some neurons, and their leaves."""

    inputs: int
    values: list[Any]
    weights: list[array[int]]
    biases: list[int]
    nonlinear: bool


class Blocks:
    """Appends blocks to the records of one trace.

    Attributes:
        parameters: the classes of parameters.
    """

    def __init__(self, recorder: Recorder, types: TracedTypes) -> None:
        from ...memory.buffers import BoundValue

        self._recorder, self._types = recorder, types
        self.parameters = frozenset({Value, BoundValue})
        self._known: dict[int, tuple[Any, _Rows]] = {}  # by the identity of a layer or a neuron
        self._values: list[Any] = []  # all parameters of the layers
        self._leaves = array("i")
        self._gradients = array("i")  # the leaves of as many of their gradients as were asked for
        self._last_inputs = array("i")
        self._numbers = array("i")
        self._sum: Any = None

    def begin(self, original_sum: Any) -> None:
        """Note the function `sum` that the step finds, and the one that it takes the place of."""
        self._sum = builtins.sum if type(original_sum) is BuiltinFunctionType else None

    def layer(self, layer: Any, x: Any) -> list[Any] | None:
        """The results of a layer; None if its loops have to run."""
        neurons = layer.neurons
        if type(neurons) is not list or not neurons:
            return None
        return self._results(layer, neurons, x)

    def neuron(self, neuron: Any, x: Any) -> Any:
        """The result of one neuron; None if its loop has to run."""
        results = self._results(neuron, [neuron], x)
        return None if results is None else results[0]

    def zero_grad(self, parameters: Any) -> bool:
        """Whether the gradients of these parameters have been set to zero here."""
        if not is_sequence(type(parameters)) or not parameters or Value.__dict__["grad"] is not _GRADIENT:
            return False
        targets = self.leaves_before(parameters, of_gradients=True)
        if targets is None:
            if not self.are_parameters(parameters):
                return False
            targets = self._recorder.gradient_leaves(array("i", self._recorder.parameters(parameters)))
        recorder = self._recorder
        start, count = len(recorder.op), len(parameters)
        recorder.op.extend(array("i", [ops.STORE]) * count)
        recorder.a.extend(targets)
        recorder.b.extend(array("i", [recorder.constant(0.0)]) * count)
        recorder.last_store.update(zip(targets, range(start, start + count)))
        return True

    # ---- 1: is everything as usual? -----------------------------------------------------------------

    def _results(self, owner: Any, neurons: list[Any], x: Any) -> list[Any] | None:
        if not is_sequence(type(x)) or not len(x) or not self._is_unchanged():
            return None
        rows = self._rows_before(owner, neurons)
        if rows is None:
            shape = self._shape(neurons)
            if shape is None or shape[0] != len(x) or not self._are_operands(x):
                return None
            rows = self._registered(neurons, x, *shape)
            if rows is None:
                return None
            self._known[id(owner)] = owner, rows
        elif rows.inputs != len(x) or not self._are_operands(x):
            return None
        return self._append(rows, self._operands(x))

    def _is_unchanged(self) -> bool:
        """Whether the functions that the loops call are the original ones."""
        return (
            builtins.sum is self._sum
            and nn.Neuron.__call__ is _NEURON_CALL
            and Value.__mul__ is _MULTIPLY
            and all(getattr(builtins, name) is function for name, function in _BUILTINS.items())
            and vars(nn).keys().isdisjoint(("sum", *_BUILTINS))
        )

    def _rows_before(self, owner: Any, neurons: list[Any]) -> _Rows | None:
        """The rows of an earlier call, if the neurons have the same parameters as then."""
        known = self._known.get(id(owner))
        if known is None or self._shape(neurons) != (known[1].inputs, known[1].nonlinear):
            return None
        values = _parameters_of(neurons)
        before = known[1].values
        return known[1] if len(values) == len(before) and all(map(is_, values, before)) else None

    def _shape(self, neurons: list[Any]) -> tuple[int, bool] | None:
        """How many inputs the neurons have, and whether they apply relu; None if they are not alike."""
        if any(kind.__call__ is not _NEURON_CALL for kind in set(map(type, neurons))):
            return None
        first = neurons[0]
        for neuron in neurons:
            if type(neuron.w) is not list or len(neuron.w) != len(first.w) or neuron.nonlin is not first.nonlin:
                return None
        return (len(first.w), first.nonlin) if type(first.nonlin) is bool else None

    def are_parameters(self, values: Iterable[Any]) -> bool:
        """Whether these are parameters, or other Values made by `Value(...)`."""
        if not set(map(type, values)) <= self.parameters:
            return False
        return not any(map(_backward_of, values)) or all(
            value._trace is self._recorder or value._backward is None for value in values
        )

    def are_registered(self, values: Iterable[Any]) -> bool:
        """Whether all of them have a leaf in this trace."""
        return set(map(_trace_of, values)) == {self._recorder}

    def _are_operands(self, x: Sequence[Any]) -> bool:
        kinds = set(map(type, x))
        if kinds <= self._types.computed or kinds <= _plain_numbers:
            return True
        known = self._types.computed | _plain_numbers
        return kinds <= known | self.parameters and self.are_parameters([v for v in x if type(v) not in known])

    # ---- 2: operands ----------------------------------------------------------------------------------

    def _registered(self, neurons: list[Any], x: Sequence[Any], inputs: int, nonlinear: bool) -> _Rows | None:
        """Register the parameters of neurons that are called with `x` for the first time."""
        values = _parameters_of(neurons)
        if not self.are_parameters(values):
            return None
        w, b = neurons[0].w, neurons[0].b  # the first one registers Values among the inputs
        met = [x[0], w[0], b]
        for pair in zip(x[1:], w[1:]):
            met += pair
        deque(map(self._types.lift, met), maxlen=0)
        rest: list[Any] = []
        for neuron in neurons[1:]:
            rest += (neuron.w[0], neuron.b, *neuron.w[1:])
        leaves = array("i", self._recorder.parameters(rest))
        weights, biases = [array("i", map(_leaf_of, w))], [b._leaf]
        for first in range(0, len(leaves), inputs + 1):
            weights.append(leaves[first : first + 1] + leaves[first + 2 : first + inputs + 1])
            biases.append(leaves[first + 1])
        for row, bias in zip(weights, biases):
            self._leaves += row
            self._leaves.append(bias)
        self._values += values
        return _Rows(inputs, values, weights, biases, nonlinear)

    def leaves_before(self, values: Sequence[Any], of_gradients: bool = False) -> array[int] | None:
        """The leaves of the parameters of layers, or of their gradients; None if these are not in that order."""
        if len(values) > len(self._values) or not all(map(is_, values, self._values)):
            return None
        if not of_gradients:
            return self._leaves[: len(values)]
        if len(self._gradients) < len(values):
            self._gradients = self._recorder.gradient_leaves(self._leaves)
        return self._gradients[: len(values)]

    def _operands(self, x: Sequence[Any]) -> array[int]:
        if self._types.computed.issuperset(map(type, x)):
            return array("i", map(_leaf_of, x))
        return array("i", map(self._types.lift, x))

    # ---- 3: records -----------------------------------------------------------------------------------

    def _append(self, rows: _Rows, x: array[int]) -> list[Any]:
        """Append products and additions in turn, and relu, for one neuron after the other.

        Of a neuron whose first record is s, the products are s, s + 2, ..., and the additions s + 1, s + 3, ...
        """
        recorder = self._recorder
        start, count, width = len(recorder.op), len(rows.weights), 2 * len(x)
        period = width + rows.nonlinear
        codes = array("i", [ops.MULTIPLY, ops.ADD]) * len(x) + array("i", [ops.RELU] * rows.nonlinear)
        left = self.consecutive(start - 2, period * count)  # the first operand of an addition: the one before
        right = self.consecutive(start - 1, period * count)  # the second one: the product
        for at, weights, bias in zip(range(0, period * count, period), rows.weights, rows.biases):
            end = at + width
            left[at:end:2], left[at + 1] = weights, bias
            right[at:end:2] = x
            if rows.nonlinear:
                left[end], right[end] = start + end - 1, ops.NO_OPERAND
        recorder.op.extend(codes * count)
        recorder.a.extend(left)
        recorder.b.extend(right)
        self._note(Block(start, len(x), count, rows.nonlinear), x)
        return list(map(self._types.value_from, range(start + period - 1, start + period * count, period)))

    def consecutive(self, first: int, count: int) -> array[int]:
        """The numbers from `first` on; what is below 0 may be anything."""
        if first < 0:
            return array("i", range(first, first + count))
        known, needed = len(self._numbers), first + count
        if known < needed and known < _CHUNK:
            self._numbers.extend(range(known, min(max(2 * needed, _FEW), _CHUNK)))
        while len(self._numbers) < needed:
            self._numbers.frombytes(_numbers_from(len(self._numbers)))
        return self._numbers[first : first + count]

    # ---- 4: what the passes need not look for -----------------------------------------------------------

    def _note(self, block: Block, x: array[int]) -> None:
        """Note a block; neurons that follow each other and have the same inputs are one."""
        blocks = self._recorder.blocks
        before = blocks[-1] if blocks else None
        if before is not None and before.is_continued_by(block) and self._last_inputs == x:
            blocks[-1] = before._replace(neurons=before.neurons + block.neurons)
        else:
            blocks.append(block)
        self._last_inputs = x


def is_sequence(kind: type) -> bool:
    """Whether the elements of an object of this class are those of a list, tuple or buffer."""
    if kind is TracedArray:
        return True
    base = list if issubclass(kind, list) else tuple
    return issubclass(kind, base) and kind.__iter__ == base.__iter__ and kind.__len__ == base.__len__


def _parameters_of(neurons: list[Any]) -> list[Any]:
    values: list[Any] = []
    for neuron in neurons:
        values += neuron.w
        values.append(neuron.b)
    return values


def _numbers_from(first: int) -> memoryview:
    """The next numbers from `first` on: they differ from the first ones only in their upper halves."""
    halves = array("H", _first_numbers().tobytes())
    upper = 1 if sys.byteorder == "little" else 0
    halves[upper::2] = array("H", [first // _CHUNK]) * _CHUNK
    return memoryview(halves).cast("B")


@functools.cache
def _first_numbers() -> array[int]:
    return array("i", range(_CHUNK))
