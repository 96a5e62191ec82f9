"""Operations on tensors, recorded whole: one record for a loop nest (tensor/nests.py), whatever its sizes.

1. A tensor that is computed in a step is a region of a memory of its own kind, TENSOR; a leaf among them has gradients,
   of the kind TENSOR_GRADIENT.  Tensors from outside are parameters that live in their own storage, inputs are inputs.
2. A nest is one NEST record.  Its operands are regions, addressed by strides; traced numbers among them are operands
   of the record, so that whatever moves records takes care of them.
3. `t.item()` copies an element to a traced number.  From there on, scalar code goes on as everywhere.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...engine.leaks import PlainCall, TracedView, is_traced_number, leaked
from ...errors import IndexRangeError, TraceError, user_location
from ...ir import opcodes as ops
from ...ir.trace import IndexCheck, NestRecord, Place, TensorRegion
from .recorder import Recorder
from .whole_numbers import UNKNOWN, Elements, Read, Scalar, Written, largest_of

if TYPE_CHECKING:
    from ...ir.bodies import Body
    from ...tensor.dtypes import DType
    from ...tensor.memory import Memory
    from ...tensor.nests import Access, Nest
    from ...tensor.tensor import Tensor
    from .values import TracedTypes

_COLUMNS = 2


class TensorRecording:
    """Takes the operations on tensors of one trace.

    Attributes:
        kind: the class of the tensors that exist in this trace only.
    """

    def __init__(self, recorder: Recorder, types: TracedTypes) -> None:
        self._recorder, self._types = recorder, types
        self._kind: Any = None
        self._outside: dict[int, tuple[Memory, int]] = {}
        self._arguments: set[int] = set()
        #: By the leaf of a memory of whole numbers, what has written it.
        self._writers: dict[int, list[Nest]] = {}

    @property
    def floats(self) -> str:
        """The type of the floats that the step computes with."""
        return self._recorder.precision.name

    @property
    def kind(self) -> type[Tensor]:
        """Made for each trace, so that one that outlives it is recognised."""
        if self._kind is None:
            from ...tensor.tensor import Tensor

            self._kind = type("Tensor", (Tensor, TracedView), {"__slots__": (), "__module__": Tensor.__module__})
        return self._kind  # type: ignore[no-any-return]

    # ---- memory -------------------------------------------------------------------------------------

    def memory(self, size: int, dtype: DType) -> Memory:
        """Memory for the result of an operation.

        Raises:
            PrecisionError: the step computes with other floats. TraceError: there are too many small tensors.
        """
        from ...tensor.memory import Memory

        self._require(dtype)
        recorder = self._recorder
        base = recorder.tensor_room.take(max(size, 1))
        insort(recorder.tensors, TensorRegion(base, max(size, 1)))
        return Memory.traced(size, dtype, self, ops.leaf(ops.TENSOR, base))

    def _require(self, dtype: DType) -> None:
        from ...tensor.dtypes import require_type

        require_type(dtype, self._recorder.precision)

    def make_leaf(self, memory: Memory) -> None:
        """Let the memory of a tensor of this trace have gradients, which begin with 0.0."""
        recorder = self._recorder
        index = ops.leaf_index(memory.leaf)
        number = next(k for k, region in enumerate(recorder.tensors) if region.base == index)
        recorder.tensors[number] = recorder.tensors[number]._replace(is_leaf=True)
        if memory.size:
            zero, target = Place(recorder.constant(0.0), 0, (0,)), Place(self.gradient_leaf(memory.leaf), 0, (1,))
            self._emit(NestRecord("zeros", _copy(), (memory.size,), (), (zero,), target, False))

    @staticmethod
    def gradient_leaf(leaf: int) -> int:
        """The leaf of the gradient that belongs to a leaf."""
        return Recorder.gradient_leaf(leaf)

    def input(self, place: int, size: int, dtype: DType) -> Memory:
        """The memory of an argument."""
        from ...tensor.memory import Memory

        self._require(dtype)
        self._arguments.add(ops.leaf(ops.INPUT, place))
        return Memory.traced(size, dtype, self, ops.leaf(ops.INPUT, place))

    def of_numbers(self, numbers: Sequence[Any], shape: tuple[int, ...], dtype: DType) -> Tensor:
        """A tensor of numbers that are known now, or of traced ones."""
        from ...tensor.apply import copy_into, fresh, tensor_of
        from ...tensor.memory import Memory
        from ...tensor.shapes import View, row_major

        made = fresh(shape, dtype)
        first = self._first_input(numbers)
        if first is not None:
            inputs = Memory.traced(len(numbers), dtype, self, first)
            copy_into(made._memory, made._view, tensor_of(inputs, View(0, shape, row_major(shape))), "asarray")
            return made
        known = [0.0 if is_traced_number(number) else float(number) for number in numbers]
        start = len(self._recorder.constants)
        self._recorder.constants.extend(known)
        constants = Memory.traced(len(known), dtype, self, ops.leaf(ops.CONSTANT, start))
        copy_into(made._memory, made._view, tensor_of(constants, View(0, shape, row_major(shape))), "asarray")
        for k, number in enumerate(numbers):
            if is_traced_number(number):
                copy_into(made._memory, View(k, (), ()), number, "asarray")
        return made

    def _first_input(self, numbers: Sequence[Any]) -> int | None:
        """The leaf of the first of these numbers, if they are inputs that follow each other."""
        if not numbers or not all(map(is_traced_number, numbers)):
            return None
        operands = list(map(self._types.number_operand, numbers))
        first = operands[0]
        is_row = ops.leaf_kind(first) == ops.INPUT and operands == list(range(first, first - len(operands), -1))
        return first if is_row else None

    def leaf_of(self, memory: Memory) -> int:
        """The leaf of the first element of a memory.

        Raises:
            LeakError: it is of another trace. TraceError: it cannot be used in a step.
        """
        if memory.trace is self:
            return memory.leaf
        if memory.trace is not None:
            leaked()
        if memory.gradient_of is not None:
            return self.gradient_leaf(self.leaf_of(memory.gradient_of))
        known = self._outside.get(id(memory))
        if known is None:
            if not memory.dtype.is_floating:
                return self._constants_of(memory)
            if memory.differentiates and not memory.is_leaf:
                raise TraceError(
                    f"{user_location()}: a tensor that was computed outside of the step from tensors with "
                    "requires_grad=True, which a backward pass in the step could not reach. Compute it inside, or use "
                    "its detach()."
                )
            self._require(memory.dtype)
            known = self._outside[id(memory)] = memory, ops.leaf(ops.PARAMETER, self._recorder.bound_base(memory, True))
        return known[1]

    def _constants_of(self, memory: Memory) -> int:
        """The leaf of constants with the numbers that a tensor of whole numbers or bools has now."""
        recorder, first = self._recorder, len(self._recorder.constants)
        recorder.constants.extend(map(float, memory.data))
        recorder.kept_tensors.append(memory)
        leaf = ops.leaf(ops.CONSTANT, first)
        self._outside[id(memory)] = memory, leaf
        return leaf

    # ---- records ------------------------------------------------------------------------------------

    def append(self, nest: Nest) -> None:
        """Record a nest."""
        assert nest.target.memory is not None
        target = self._place(nest.target, False)
        if ops.leaf_kind(target.leaf) == ops.INPUT:
            raise PlainCall(f"{user_location()}: the step assigns to elements of a tensor among its arguments")
        if ops.leaf_kind(target.leaf) == ops.CONSTANT and nest.target.memory.trace is None:
            raise PlainCall(
                f"{user_location()}: the step assigns to elements of a tensor of {nest.target.memory.dtype} that is no "
                "argument: kernels keep floats only. Keep x.astype('float64')"
            )
        if nest.is_empty():
            return
        if not nest.target.memory.dtype.is_floating:
            self._writers.setdefault(nest.target.memory.leaf, []).append(nest)
        scalars: list[int] = []
        operands = []
        for operand in nest.operands:
            if operand.memory is not None:
                operands.append(self._place(operand, nest.flows))
            elif type(operand.number) is float:
                operands.append(Place(self._recorder.constant(operand.number), 0, operand.strides))
            else:
                operands.append(self._of_number(operand, scalars))
        self._emit(
            NestRecord(nest.name, nest.body, nest.outer, nest.inner, tuple(operands), target, nest.flows, nest.adds),
            scalars,
        )
        self._note_bounds(nest)

    def _note_bounds(self, nest: Nest) -> None:
        """Note what the size of the numbers that a nest writes follows from."""
        memory = nest.target.memory
        assert memory is not None
        is_whole, is_exact = memory.dtype.name == "int64", nest.precision is not self._recorder.precision
        bounds = list(map(self._bound, nest.operands))
        self._note(self.leaf_of(memory), is_whole, is_exact, nest.name, nest.body, nest.inner, bounds)

    def _note(
        self, leaf: int, is_whole: bool, is_exact: bool, name: str, body: Body, inner: Sequence[int],
        bounds: Sequence[int | Elements | Scalar],
    ) -> None:  # fmt: skip
        record, location = len(self._recorder.op) - 1, user_location() if is_whole or is_exact else ""
        self._recorder.whole_numbers.append(
            Written(record, leaf, is_whole, is_exact, name, body, math.prod(inner), tuple(bounds), location)
        )

    def _bound(self, operand: Access) -> int | Elements | Scalar:
        memory = operand.memory
        if memory is None:
            if not is_traced_number(operand.number):
                return largest_of([operand.number])
            return Scalar(self._types.number_operand(operand.number)) if isinstance(operand.number, int) else UNKNOWN
        if memory.dtype.name == "bool":
            return 1
        return self._elements_of(memory)

    def _elements_of(self, memory: Memory) -> int | Elements:
        leaf = self.leaf_of(memory)
        if ops.leaf_kind(leaf) == ops.CONSTANT:
            start = ops.leaf_index(leaf)
            return largest_of(self._recorder.constants[start : start + memory.size])
        if ops.leaf_kind(leaf) == ops.TENSOR or (ops.leaf_kind(leaf) == ops.INPUT and not memory.dtype.is_floating):
            return Elements(leaf, memory.size, leaf in self._arguments)
        return UNKNOWN

    def _of_number(self, operand: Access, scalars: list[int]) -> Place:
        scalar = self._types.number_operand(operand.number)
        if scalar not in scalars and len(scalars) == _COLUMNS:
            raise TraceError(
                f"{user_location()}: an operation on tensors with more than {_COLUMNS} numbers of the step."
            )
        if scalar not in scalars:
            scalars.append(scalar)
        return Place(0, 1 + scalars.index(scalar), operand.strides)

    def _place(self, access: Access, flows: bool) -> Place:
        memory = access.memory
        assert memory is not None
        leaf = self.leaf_of(memory)
        has_gradient = ops.leaf_kind(leaf) == ops.PARAMETER or memory.differentiates
        cut = flows and not access.flows and has_gradient and ops.leaf_kind(leaf) in (ops.PARAMETER, ops.TENSOR)
        return Place(leaf - access.offset, 0, access.strides, access.flows, cut, access.chosen)

    def _emit(self, record: NestRecord, scalars: Sequence[int] = ()) -> None:
        recorder = self._recorder
        first, second = (*scalars, ops.NO_OPERAND, ops.NO_OPERAND)[:_COLUMNS]
        position = recorder.emit(ops.NEST, ops.leaf(ops.NESTED, len(recorder.nests)), first)
        if second != ops.NO_OPERAND:
            recorder.third[position] = second
        recorder.nests.append(record)

    def is_wide(self, memory: Memory) -> bool:
        """Whether records cannot name the elements of a memory, only those of a copy."""
        return ops.is_wide(self.leaf_of(memory))

    def backward(self, root: int) -> None:
        """Record a backward pass from an element, which records can name."""
        self._recorder.last_backward = self._recorder.emit(ops.BACKWARD, root, ops.NO_OPERAND)

    # ---- to and from numbers --------------------------------------------------------------------------

    def number(self, tensor: Tensor) -> Any:
        """The only element of a tensor as a traced number."""
        if self.is_wide(tensor._memory):
            return self.number(tensor.copy())
        leaf = self.leaf_of(tensor._memory) - tensor._view.offset
        operand = self._recorder.emit(ops.COPY | ops.NUMBER, leaf, ops.NO_OPERAND)
        if tensor._memory.limit is not None:
            self._recorder.known_integers[operand] = range(tensor._memory.limit)
        elif not tensor.dtype.is_floating:
            self._recorder.whole_numbers.append(Read(operand, self._elements_of(tensor._memory)))
        return self._types.number_at(operand, not tensor.dtype.is_floating)

    def output(self, tensor: Tensor) -> int:
        """Make the elements of a tensor outputs of the kernel; returns the index of the first."""
        recorder = self._recorder
        first = recorder.outputs
        recorder.outputs += tensor.size
        self.copy_out(tensor, ops.leaf(ops.OUTPUT, first))
        return first

    def copy_out(self, tensor: Tensor, leaf: int) -> None:
        """Copy the elements of a tensor, in row-major order, to a leaf and those behind it."""
        from ...tensor.shapes import row_major

        view = tensor._view
        source = Place(self.leaf_of(tensor._memory) - view.offset, 0, view.strides)
        if tensor.size:
            target = Place(leaf, 0, row_major(view.shape))
            self._emit(NestRecord("result", _copy(), view.shape, (), (source,), target, False))
            if tensor.dtype.name == "int64":
                self._note(target.leaf, True, False, "the result", _copy(), (), [self._elements_of(tensor._memory)])

    def copied_in(self, leaf: int, shape: tuple[int, ...], dtype: DType) -> Tensor:
        """A tensor of the numbers that a leaf and those behind it have now."""
        from ...tensor.apply import copy_into, fresh, tensor_of
        from ...tensor.memory import Memory
        from ...tensor.shapes import View, row_major

        self._require(dtype)
        made = fresh(shape, dtype)
        source = Memory.traced(made.size, dtype, self, leaf)
        copy_into(made._memory, made._view, tensor_of(source, View(0, shape, row_major(shape))), "asarray")
        return made

    def uses(self, memory: Memory) -> bool:
        """Whether the step has used a memory from outside, or its gradients."""
        return id(memory) in self._outside

    def is_made(self, tensor: Tensor) -> bool:
        """Whether the memory of a tensor is that of results of this trace."""
        memory = tensor._memory
        return memory.trace is self and ops.leaf_kind(memory.leaf) == ops.TENSOR and not memory.is_leaf

    def require_in_range(self, indices: Any, extent: int, start: int = 0, plain: int | None = None) -> None:
        """Require that whole numbers are in `range(start, extent)`, before anything is written.

        Args:
            plain: another number, with which the call is plain Python.

        Raises:
            TraceError: they are computed in the step.
        """
        from ...tensor.tensor import Tensor

        recorder = self._recorder
        if not isinstance(indices, Tensor):
            if is_traced_number(indices):
                recorder.check_index(self._types.number_operand(indices), extent)
            elif not 0 <= indices < extent:
                raise IndexRangeError(f"{user_location()}: take: index {indices} is not in range({extent}).")
            return
        location = user_location()
        origins = self._origins(indices._memory, _elements(*indices._view))
        if origins is None:
            if indices._memory.limit is not None:
                raise IndexRangeError(f"{location}: take: index {indices._memory.limit - 1} is not in range({extent}).")
            raise TraceError(
                f"{location}: take by indices that are computed in the step, whose range is not known. Pass them as "
                "an argument, or choose with mgjit.tensor.where or one_hot."
            )
        known = {(check.input_index, check.allowed) for check in recorder.checks}
        allowed = range(start, extent)
        places = [ops.leaf_index(leaf) for leaf in origins if ops.leaf_kind(leaf) == ops.INPUT]
        constants = (ops.leaf_index(leaf) for leaf in origins if ops.leaf_kind(leaf) != ops.INPUT)
        for number in map(recorder.constants.__getitem__, constants):
            if not start <= number < extent:
                raise IndexRangeError(f"{location}: take: index {number:g} is not in range({extent}).")
        recorder.checks += [
            IndexCheck(place, len(allowed), location, start, plain=plain)
            for place in places if (place, allowed) not in known
        ]  # fmt: skip

    def known_elements(self, tensor: Tensor) -> list[float] | None:
        """The elements of a tensor that are constants of the step; None if some are not."""
        origins = self._origins(tensor._memory, _elements(*tensor._view))
        if origins is None or any(ops.leaf_kind(leaf) != ops.CONSTANT for leaf in origins):
            return None
        return [self._recorder.constants[ops.leaf_index(leaf)] for leaf in origins]

    def _origins(self, memory: Memory, elements: Sequence[int]) -> list[int] | None:
        """The inputs and constants that are, or have been copied to, some elements of a memory; None if others are."""
        leaf = self.leaf_of(memory)
        if ops.leaf_kind(leaf) in (ops.INPUT, ops.CONSTANT):
            return [leaf - element for element in elements]
        origins: dict[int, int] = {}
        for nest in self._writers.get(leaf, ()):
            source, target = nest.operands[0], nest.target
            if nest.body is not _copy() or source.memory is None or source.memory.dtype.is_floating:
                return None
            found = self._origins(source.memory, _elements(source.offset, nest.outer, source.strides))
            if found is None:
                return None
            origins.update(zip(_elements(target.offset, nest.outer, target.strides), found))
        leaves = [origins.get(element) for element in elements]
        return None if None in leaves else leaves  # type: ignore[return-value]


def _elements(offset: int, shape: Sequence[int], strides: Sequence[int]) -> list[int]:
    """The places of the elements of a view."""
    places = [offset]
    for count, stride in zip(shape, strides):
        places = [place + k * stride for place in places for k in range(count)]
    return places


def _copy() -> Any:
    from ...ir.bodies import COPY

    return COPY
