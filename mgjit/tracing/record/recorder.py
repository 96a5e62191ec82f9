"""The recorder: appends the operations of one traced call to flat arrays, and numbers its leaves.

Memory is modelled as it is: reading `p.data` or `p.grad` yields the *leaf* (no record), assigning one appends a STORE
record, `loss.backward()` appends a BACKWARD record.  Records are executed in order, so a leaf operand means "the
content of the memory when this record runs".  This is not what Python means in one case: when a number is read before
a store and used after it.  `late_read` notes that, and `finish` inserts a copy in front of that store.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import compress, repeat
from operator import attrgetter, sub
from typing import Any

from ...engine.precision import FLOAT64, Precision, require_precision
from ...engine.state import State
from ...engine.value import Value
from ...errors import TraceError, user_location
from ...ir.opcodes import (
    ADJOINT,
    BACKWARD,
    CONSTANT,
    COPY,
    GRADIENT,
    INPUT,
    KIND_SHIFT,
    LINK,
    LINK_DIVIDED,
    LOCAL,
    LOCAL_GRADIENT,
    NO_OPERAND,
    NUMBER,
    OUTPUT,
    PARAMETER,
    PUT,
    SELECT,
    STATE,
    STORE,
    TAKE,
    TEMPORARY,
    TableLayout,
    is_wide,
    leaf,
    leaf_index,
    leaf_kind,
)
from ...ir.trace import BOUND_BASE, LATE, NEW_BASE, Block, IndexCheck, NestRecord, TensorRegion, Trace
from .finished import Finishing
from .ranges import affine_of_input, inputs_in, range_of
from .room import Room
from .whole_numbers import Read, Written

_backward_of, _leaf_of, _sequence_of = attrgetter("_backward"), attrgetter("_leaf"), attrgetter("_sequence")
#: By the highest byte of the leaf of a parameter, that of its gradient.
_TOP_BYTE_OF_GRADIENT = bytes((byte - (1 << KIND_SHIFT - 24)) % 256 for byte in range(256))
#: Where that byte is, and whether it is one of a leaf, and not of a record.
_HIGHEST_BYTE = 3 if sys.byteorder == "little" else 0
_IS_OF_LEAF = bytes(byte >= 128 for byte in range(256))
#: By the lowest byte of an opcode, whether it may be one of a look-up; where there are many layouts, each may.
_MAY_LOOK_UP = bytes(byte >= TAKE for byte in range(256))


class Recorder:
    """The columns of one trace in progress; the traced types append to them directly."""

    def __init__(self, precision: Precision = FLOAT64) -> None:
        self.precision = precision
        self.op, self.a, self.b = array("i"), array("i"), array("i")
        self.third: dict[int, int] = {}
        self.constants: list[float] = []
        self._constant_leaves: dict[Any, int] = {}
        #: The leaf of a constant; None if there has been none, and for zeros and nan, which have other keys.
        self.constant_before: Callable[[float], int | None] = self._constant_leaves.get
        self.layouts: list[TableLayout] = []
        self._tables: dict[tuple[int, ...], bool] = {}
        self.new_parameters: list[Any] = []
        self.bound_storages: list[tuple[int, Any]] = []
        self.kept_tensors: list[Any] = []
        self._bound_bases: dict[int, int] = {}
        self._bound_room = Room(BOUND_BASE)
        self.states: list[tuple[int, State]] = []
        self._state_size = 0
        self.local_values: list[Value] = []
        self.outputs = 0
        self.returned: list[int] = []
        #: Whether additions of 0.0 and products with 1.0 are recorded, because they may be differentiated.
        self.keeps_neutral = False
        #: Where records are put in another order, and the order: positions.
        self.arrangements: list[tuple[int, list[int]]] = []
        self.last_store: dict[int, int] = {}
        self.last_backward = -1
        #: The operands that are read late, and where they were read.
        self.late: list[tuple[int, int]] = []
        self.adjoint_reads: list[tuple[int, int]] = []
        self.checks: list[IndexCheck] = []
        #: Operands that are ints, and a range that they are known to be in.
        self.known_integers: dict[int, range] = {}
        self.power_lines: dict[tuple[int, int], str] = {}
        #: The records that layers have appended as a whole (record/blocks.py).
        self.blocks: list[Block] = []
        #: Operations on tensors, and the memory of their results (record/nests.py).
        self.nests: list[NestRecord] = []
        self.tensors: list[TensorRegion] = []
        self.tensor_room = Room()
        #: What the size of whole numbers in tensors follows from (record/whole_numbers.py).
        self.whole_numbers: list[Written | Read] = []
        #: Called with each operand whose value is needed as an index, a key or a length; may start the trace again.
        self.asked_for: Callable[..., None]
        #: Tells which arguments are the same object (call/sameness.py), where a trace is made of a call.
        self.same: Any
        #: Whether a leaf is an int that each call finds in the user's objects; and those of them that are indices, with
        #: their STATE index in place of that of an input (tracer/kept_indices.py).
        self.may_keep_index: Callable[[int], bool]
        self.kept_indices: list[IndexCheck] = []
        #: Operands of integer arithmetic, whose result would differ (in the sign of zero) if they were floats.
        self.used_as_integers: set[int] = set()
        #: Operands of which the step asks whether they are ints or floats.
        self.asked_types: list[int] = []
        #: Operands that are results of operations on ints, which are exact only up to a limit (record/integers.py).
        self.integer_results: list[int] = []
        #: Whether an int may be infinite or nan, where Python would have raised an error.
        self.has_undefined_integers = False
        #: Whether a number of the step is of numpy's type float64 in plain Python.
        self.has_numpys = False
        #: What has ended the trace, if a handler of the user's has taken it.
        self.interrupted: BaseException | None = None
        #: From which record on, which place in the program they come from, where that is noted (tracer/sites.py).
        self.sites: list[tuple[int, int]] | None = None
        #: Makes a traced number of an operand.
        self.number_of: Callable[[int], Any]
        #: Inside of how many conditions of which both sides are computed the step is.
        self.conditions = 0
        #: The files and lines of `if` statements of which both sides are computed.
        self.both_ways: dict[tuple[str, int], None] = {}
        #: What the sides of conditions must leave as it was (source/untaken.py).
        self.surroundings: Any = None
        #: Lists of which a traced number says which is meant (source/selected.py), where a trace is made of a call.
        self.selections: Any = None
        #: Answers what the step asks of numbers (answers.py), where a kernel may have assumptions.
        self.answers: Any = None
        #: Whether the last two outputs say whether what it was told is so.
        self.is_path = False
        #: Files and lines of tests that it answers because both of their sides cannot be computed; and of those whose
        #: sides are being computed, the innermost last.
        self.decided: Collection[tuple[str, int]] = ()
        self.under_way: list[tuple[str, int]] = []
        self.let_go()

    def let_go(self) -> None:
        """Let go of what is around the trace, which has ended: states and Values keep their last recorder."""
        self.same = self.surroundings = self.selections = self.answers = None
        #: What was where the sides of conditions assign (source/stores.py), the innermost last.
        self.noted: list[Any] = []
        self.asked_for = lambda operand, also_arguments=True: None
        self.may_keep_index = lambda operand: False
        self.number_of = lambda operand: operand

    def note_power(self) -> None:
        """Remember the source line of the power that was just recorded, if it is the first with its exponent."""
        exponent = self.b[-1]
        if leaf_kind(exponent) == CONSTANT:
            self.power_lines.setdefault((self.op[-1], exponent), user_location())

    # ---- leaves -------------------------------------------------------------------------------

    def constant(self, number: Any) -> int:
        """The leaf of a constant; equal floats share one (0.0 and -0.0 do not)."""
        value = float(number)
        key: Any = value
        if value == 0.0:
            key = math.copysign(1.0, value), 0.0
        elif value != value:
            key = "nan"
        operand = self._constant_leaves.get(key)
        if operand is None:
            operand = leaf(CONSTANT, len(self.constants))
            self.constants.append(value)
            self._constant_leaves[key] = operand
        return operand

    def parameter(self, value: Value) -> int:
        """Register a Value that existed before the trace (or lives in a storage); returns its leaf."""
        if value._backward is not None:
            raise TraceError(
                f"{user_location()}: the step uses a Value that was computed outside of it, so backward() could "
                "not reach what it was computed from. Compute it inside the step, or pass its .data as a number."
            )
        if not value._is_bound:
            if not self.new_parameters:
                self._first_sequence = value._sequence
            index = NEW_BASE + value._sequence - self._first_sequence
            if not 0 <= index < BOUND_BASE:
                raise TraceError(f"{user_location()}: parameters were created more than 16 million Values apart.")
            operand = leaf(PARAMETER, index)
            self.new_parameters.append(value)
        else:
            operand = leaf(PARAMETER, self.bound_number(value._storage, value._index))
        value._leaf = operand
        value._trace = self
        return operand

    def parameters(self, values: Sequence[Value]) -> list[int]:
        """Register many of them, in this order, at the speed of C where they are new; returns their leaves."""
        new = [value for value in values if value._trace is not self]
        leaves = self._leaves_of_new(new)
        if leaves is None:
            for value in new:
                if value._trace is not self:
                    self.parameter(value)
        else:
            deque(map(Value.__dict__["_leaf"].__set__, new, leaves), maxlen=0)
            deque(map(Value.__dict__["_trace"].__set__, new, repeat(self)), maxlen=0)
            self.new_parameters += new[1:]
        return leaves if leaves is not None and len(new) == len(values) else list(map(_leaf_of, values))

    def _leaves_of_new(self, new: Sequence[Value]) -> list[int] | None:
        """The leaves of parameters, of which the first one is registered; None if they are not as usual."""
        if set(map(type, new)) != {Value} or any(map(_backward_of, new)):
            return None
        self.parameter(new[0])
        first = leaf(PARAMETER, NEW_BASE - self._first_sequence)  # leaf codes count downwards
        leaves = [first - sequence for sequence in map(_sequence_of, new)]
        is_usual = leaf(PARAMETER, BOUND_BASE) < min(leaves) <= max(leaves) <= leaf(PARAMETER, 0)
        return leaves if is_usual and len(set(leaves)) == len(leaves) else None

    def value_slots(self, values: Sequence[Value], storage: Any) -> None:
        """Register argument Values as parameters in `storage`, which each call fills with their numbers."""
        base = self.bound_base(storage)
        for index, value in enumerate(values):
            value._trace = self
            value._leaf = leaf(PARAMETER, base + index)

    def bound_base(self, storage: Any, is_tensor: bool = False) -> int:
        """The index of the first parameter of a storage that other kernels already use, or of a tensor from outside."""
        base = self._bound_bases.get(id(storage))
        if base is None:
            require_precision("a parameter", storage.precision, self.precision)
            base = self._bound_bases[id(storage)] = self._bound_room.take(len(storage), is_tensor)
            before = sum(1 for other, _ in self.bound_storages if other <= base)
            self.bound_storages.insert(before, (base, storage))
        return base

    def bound_number(self, storage: Any, place: int) -> int:
        """The index of the parameter at a place of such a storage."""
        return self.bound_base(storage) + storage.number(place)  # type: ignore[no-any-return]

    def state(self, state: State) -> int:
        """The leaf of element 0 of a State; the other elements follow it."""
        if state._trace is not self:
            state._require(self.precision)
            state._trace = self
            state._leaf = leaf(STATE, self._state_size)
            self.states.append((self._state_size, state))
            self._state_size += len(state)
        return state._leaf

    def local(self, value: Value, operand: int) -> None:
        """Register a Value created inside the step: a leaf with its own memory."""
        index = len(self.local_values)
        self.local_values.append(value)
        value._trace = self
        value._leaf = leaf(LOCAL, index)
        value._backward = None
        self.store(value._leaf, operand)
        self.store(leaf(LOCAL_GRADIENT, index), self.constant(0.0))

    @staticmethod
    def gradient_leaf(data_leaf: int) -> int:
        """The gradient that belongs to a parameter or local leaf."""
        # GRADIENT follows PARAMETER and LOCAL_GRADIENT follows LOCAL, and leaf codes count downwards.
        if is_wide(data_leaf):
            return leaf(leaf_kind(data_leaf) + 1, leaf_index(data_leaf))
        return data_leaf - (1 << KIND_SHIFT)

    @staticmethod
    def gradient_leaves(leaves: array[int]) -> array[int]:
        """The same of many parameters at once: only the highest byte changes."""
        found = bytearray(leaves.tobytes())
        found[_HIGHEST_BYTE::4] = found[_HIGHEST_BYTE::4].translate(_TOP_BYTE_OF_GRADIENT)
        return array("i", bytes(found))

    @staticmethod
    def leaves_in(operands: array[int]) -> set[int]:
        """The leaves among operands, at the speed of C."""
        are_leaves = operands.tobytes()[_HIGHEST_BYTE::4].translate(_IS_OF_LEAF)
        return set(compress(operands, are_leaves))

    # ---- records ------------------------------------------------------------------------------

    def emit(self, op: int, a: int, b: int) -> int:
        """Append a record and return its position."""
        position = len(self.op)
        self.op.append(op)
        self.a.append(a)
        self.b.append(b)
        return position

    def select(self, condition: int, chosen: int, other: int, flag: int = 0) -> int:
        """Append `condition ? chosen : other`; the condition is the third operand."""
        position = len(self.op)
        self.op.append(SELECT | flag)
        self.a.append(chosen)
        self.b.append(other)
        self.third[position] = condition
        return position

    def link(self, value: int, operand: int, derivative: int, divides: bool = False) -> int:
        """Append a node whose number is `value`, and which depends on the node `operand` with a known derivative.

        Args:
            divides: whether gradients are divided by `derivative` instead of multiplied with it.
        """
        position = self.emit(LINK_DIVIDED if divides else LINK, value, operand)
        self.third[position] = derivative
        return position

    def store(self, target: int, operand: int) -> None:
        """Append an assignment to a leaf."""
        self.last_store[target] = self.emit(STORE, target, operand)

    def store_all(self, stores: Sequence[tuple[int, int]]) -> None:
        """Append assignments that happen at the same time: operands that one of them overwrites are copied first."""
        targets = {target for target, _ in stores}
        operands = [
            self.emit(COPY | NUMBER, operand, NO_OPERAND) if operand in targets else operand for _, operand in stores
        ]
        first = len(self.op)
        self.op.extend(repeat(STORE, len(stores)))
        self.a.extend(target for target, _ in stores)
        self.b.extend(operands)
        self.last_store.update((target, first + k) for k, (target, _) in enumerate(stores))

    @property
    def last_change(self) -> int:
        """The position after the last record that changes memory; records from there on may be rearranged."""
        return max(self.last_backward, max(self.last_store.values(), default=-1)) + 1

    def rearrange(self, start: int, order: list[int]) -> None:
        """Put the records from `start` on, which change no memory, in another order in the finished trace."""
        self.arrangements.append((start, order))

    def output(self, operand: int) -> int:
        """Append the assignment of the next result; returns its index."""
        index = self.outputs
        self.outputs += 1
        self.returned.append(operand)
        self.emit(STORE, leaf(OUTPUT, index), operand)
        return index

    def backward(self, root: int) -> None:
        """Append a backward pass from `root`."""
        if root < 0:
            if leaf_kind(root) in (PARAMETER, LOCAL):
                self.store(self.gradient_leaf(root), self.constant(1.0))
            return
        self.last_backward = self.emit(BACKWARD, root, NO_OPERAND)

    def is_zero(self, operand: int) -> bool:
        """Whether an operand is the constant 0.0 (and not -0.0)."""
        if leaf_kind(operand) != CONSTANT:
            return False
        number = self.constants[leaf_index(operand)]
        return number == 0.0 and math.copysign(1.0, number) > 0.0

    def adjoint(self, record: int, at: int | None = None) -> int:
        """The leaf of an interior node's gradient after the backward passes so far (or those before `at`)."""
        self.adjoint_reads.append((record, len(self.op) if at is None else at))
        return leaf(ADJOINT, len(self.adjoint_reads) - 1)

    def leaves_behind(self, operand: int) -> Iterator[int]:
        """The leaves, other than constants, from which an operand was computed; those that are near come first."""
        pending, seen = [operand], {operand}
        for part in pending:
            if part >= 0:
                fresh = {self.a[part], self.b[part], self.third.get(part, NO_OPERAND)} - seen
                pending += fresh
                seen |= fresh
            elif part != NO_OPERAND and leaf_kind(part) != CONSTANT:
                yield part

    # ---- look-ups -----------------------------------------------------------------------------

    def take(self, elements: Sequence[int], index: int, engine: bool) -> int:
        """Append the look-up of one of `elements` (leaves) by the run-time number `index`."""
        if not self.is_table(elements):
            raise TraceError(
                f"{user_location()}: a look-up by a traced index needs a table of parameters, state or plain numbers "
                "that lie at equal distances. Build the table outside of the step (rows of equal length, in order of "
                "first use). Among Values that are computed in the step, select with a sum of products with "
                "mgjit.one_hot(index, n), also in the undecorated program, whose last bits may then be others."
            )
        return self.look_up(elements, index, engine)

    def look_up(self, elements: Sequence[int], index: int, engine: bool) -> int:
        """As `take`, of what is known to be a table."""
        return self.emit(self._look_up(elements) | (0 if engine else NUMBER), elements[0], index)

    def put(self, elements: Sequence[int], index: int, operand: int) -> None:
        """Append an assignment to one of `elements` (leaves, in a table) by the run-time number `index`."""
        position = self.emit(self._look_up(elements) | NUMBER | PUT, elements[0], operand)
        self.third[position] = index
        self.last_store.update(dict.fromkeys(elements, position))

    def _look_up(self, elements: Sequence[int]) -> int:
        """The opcode of look-ups in a table."""
        first, second = leaf_index(elements[0]), leaf_index(elements[min(1, len(elements) - 1)])
        layout = TableLayout(second - first if len(elements) > 1 else 1, len(elements))
        if layout not in self.layouts:
            self.layouts.append(layout)
        return TAKE + self.layouts.index(layout)

    def look_up_before(self, record: int, first: int, index: int) -> int | None:
        """The operand of a record that is a look-up by `index` in the table beginning at the leaf `first`, or None."""
        for operand in (self.a[record], self.b[record]) if record >= 0 else ():
            is_look_up = operand >= 0 and self.op[operand] >= NUMBER + TAKE
            if is_look_up and self.a[operand] == first and self.b[operand] == index:
                return operand
        return None

    def is_table(self, elements: Sequence[int]) -> bool:
        """Whether operands are leaves of one kind at equal distances, in order as well as in memory."""
        key = tuple(elements)
        if key not in self._tables:
            self._tables[key] = self._lie_regularly(elements)
        return self._tables[key]

    def _lie_regularly(self, elements: Sequence[int]) -> bool:
        """The same of operands that have not been asked about before; leaves stay where they are."""
        kind = leaf_kind(elements[0])
        if kind == TEMPORARY or leaf_kind(elements[-1]) != kind or not _is_regular(elements):
            return False
        memories: list[tuple[int, Any, int]] = []
        if kind in (PARAMETER, GRADIENT):
            memories = [(base, storage.layout, len(storage)) for base, storage in self.bound_storages]
        elif kind == STATE:
            memories = [(base, state._layout, len(state)) for base, state in self.states]
        for base, layout, size in memories:
            if layout is not None:
                own = [index - base for index in map(leaf_index, elements) if 0 <= index - base < size]
                if own and (len(own) < len(elements) or not _is_regular([*map(layout.position, own)])):
                    return False
        return True

    def look_ups(self) -> list[int]:
        """The records that look something up in a table, or assign to one of its elements."""
        if not self.layouts:
            return []
        may_be = _MAY_LOOK_UP if TAKE + len(self.layouts) <= 256 else b"\1" * 256
        return [k for k in self.positions(may_be) if self.op[k] & (NUMBER - 1) >= TAKE]

    def positions(self, are_meant: bytes, first: int = 0) -> Iterable[int]:
        """The records from `first` on whose opcodes have certain lowest bytes, those for which there is a 1."""
        codes = self.op[first:] if first else self.op
        return compress(range(first, len(self.op)), codes.tobytes()[3 - _HIGHEST_BYTE :: 4].translate(are_meant))

    def elements(self, first: int, code: int) -> range:
        """The leaves of a look-up table.

        Args:
            first: the leaf of the first element.
            code: the opcode of look-ups.
        """
        stride, count = self.layouts[(code & (NUMBER - 1)) - TAKE]
        return range(first, first - stride * count, -stride)

    def constant_table(self, numbers: Sequence[float]) -> list[int]:
        """Leaves of consecutive constants, as a look-up table."""
        start = len(self.constants)
        self.constants.extend(float(x) for x in numbers)
        return [leaf(CONSTANT, start + i) for i in range(len(numbers))]

    def check_index(self, operand: int, count: int) -> None:
        """Require that `operand` is an integer in range(count).

        It is an input, an int that is computed from inputs, or one in a known range.
        """
        known = self.known_integers.get(operand)
        if known is not None:
            self._require_in_range(known, count)
            return
        if operand >= 0 and self._is_computed_index(operand, count):
            return
        if leaf_kind(operand) != INPUT:
            self.asked_for(operand, also_arguments=False)
            kept = self.read_at_last(operand)
            if leaf_kind(kept) == STATE and count <= self.precision.largest_integer and self.may_keep_index(kept):
                self.kept_indices.append(IndexCheck(leaf_index(kept), count, user_location()))
                return
            raise TraceError(
                f"{user_location()}: the index of table[i], mgjit.take and mgjit.one_hot must be an int argument of "
                "the step itself, a sum or product of such ints and constants, or a remainder by a constant, so that "
                "its range can be checked before anything is written, and this one is computed in another way. Take "
                "the remainder last, as in (i - 1) % n, or compute the index outside, and pass it as an argument."
            )
        if count > self.precision.largest_integer:
            raise TraceError(f"{user_location()}: float32 does not hold all indices of a table of {count} elements.")
        self._require_input(IndexCheck(leaf_index(operand), count, user_location()))

    def _require_input(self, check: IndexCheck) -> None:
        if not any(c.input_index == check.input_index and c.allowed == check.allowed for c in self.checks):
            self.checks.append(check)

    def _is_computed_index(self, operand: int, count: int) -> bool:
        """Whether an index that is computed is in range(count) once its inputs have been checked."""
        known = range_of(self, operand)
        if known is not None and known[0] >= 0 and known[-1] < count:
            return True
        affine = affine_of_input(self, operand)
        if affine is None or not affine.factor or count > self.precision.largest_integer:
            return False
        if known is not None and leaf(INPUT, affine.input_index) in self.known_integers:  # drawn, and no argument
            self._require_in_range(known, count)
        allowed = inputs_in(affine, count)
        self._require_input(IndexCheck(affine.input_index, len(allowed), user_location(), allowed.start, False))
        return True

    def _require_in_range(self, known: range, count: int) -> None:
        if known[0] < 0 or known[-1] >= count:
            raise TraceError(
                f"{user_location()}: the index is an int from {known[0]} to {known[-1]}, and the table has {count} "
                f"elements. Draw or compute it in range({count}), so that every int that it can be is an index."
            )

    # ---- reads that outlive a store ---------------------------------------------------------------

    def late_read(self, operand: int, read_at: int) -> int:
        """A number read from `operand` at `read_at` is used after a store: a leaf that `finish` resolves."""
        self.late.append((operand, read_at))
        return leaf(LATE, len(self.late) - 1)

    def read_late(self) -> set[int]:
        """The leaves that are read late."""
        return {operand for operand, _ in self.late}

    def read_at_last(self, operand: int) -> int:
        """The leaf that an operand was read from, when it is read late; otherwise the operand."""
        return self.late[leaf_index(operand)][0] if leaf_kind(operand) == LATE else operand

    def note_type(self, operand: int) -> None:
        """The step asks whether an operand is an int or a float."""
        self.asked_types.append(operand)
        self.used_as_integers.update(self.leaves_behind(operand))

    def leaves_used_as_integers(self) -> set[int]:
        """The operands that must be ints, including those of late reads."""
        return self.used_as_integers | set(map(self.read_at_last, self.used_as_integers))

    def finish(self) -> Trace:
        """The finished trace."""
        return Finishing(self).trace()


def _is_regular(places: Sequence[int]) -> bool:
    """Whether they are at equal distances."""
    return len(set(map(sub, places[1:], places))) <= 1
