"""Traced Values, which stand for parameters and intermediate results while a step is traced.

`traced_types` makes the classes for one trace: `TracedValue`, a `Value` whose arithmetic appends records, and the
traced numbers (record/numbers.py).  They are made anew for every trace, as closures over its lists, for three reasons:
an operation costs three list appends and no look-up of "the current trace"; two threads can trace at the same time; and
a value that leaks out of its trace is recognised by its class, and raises a LeakError after `close()`.
"""

from __future__ import annotations

import operator
import sys
from typing import Any, Callable, NamedTuple

from ...engine import arithmetic
from ...engine.kinds import FLOAT, NARROW, NUMPY_FLOAT, NUMPY_INTEGER
from ...engine.leaks import PlainCall, Traced, is_traced, leaked
from ...engine.precision import FLOAT64
from ...engine.value import Value, restore
from ...errors import LeakError, TraceError, user_location
from ...ir import opcodes as ops
from .mixed import MixedTypes
from .numbers import COMPARISONS, UNARY_METHODS, number_types
from .recorder import Recorder
from .refused import REFUSED, refuse


class TracedTypes(NamedTuple):
    """The classes of one trace, the functions that turn operands into references, and the one that ends the trace."""

    value: type
    number: type
    integer: type
    boolean: type
    lift: Callable[[Any], int]
    number_operand: Callable[[Any], int]
    leaf_number: Callable[..., Any]
    number_when_used: Callable[..., Any]
    is_current: Callable[[Any, int], bool]
    mixed: MixedTypes
    input_number: Callable[..., Any]
    number_at: Callable[[int, int], Any]
    binary_on_value: Callable[[int, bool], Callable[[Any, Any], Any]]
    value_from: Callable[[int], Any]
    computed: frozenset[type]
    gatherer: Any
    close: Callable[[], None]


_VALUE_BINARY = {"add": ops.ADD, "sub": ops.SUBTRACT, "mul": ops.MULTIPLY}


def traced_types(recorder: Recorder, gatherer: Any) -> TracedTypes:
    """The two traced classes of one trace.

    Args:
        gatherer: looks up what a traced index chooses (an autograd.chosen.Gatherer).
    """
    append_op, append_a, append_b = recorder.op.append, recorder.a.append, recorder.b.append
    records = recorder.op
    new = object.__new__

    numbers = number_types(recorder)
    TracedNumber: Any = numbers.number
    IntegerNumber: Any = numbers.integer
    BooleanNumber: Any = numbers.boolean
    number_from, integer_from, number_operand = numbers.from_operand, numbers.integer_from_operand, numbers.operand
    boolean_from, constant, like = numbers.boolean_from_operand, numbers.constant, numbers.mixed.like
    kind_of_choice = numbers.mixed.choice
    MixedNumber: Any = numbers.mixed.number
    mixed_from = numbers.mixed.from_operand

    class DataNumber(TracedNumber):  # type: ignore[misc]
        """The `.data` of a computed Value."""

        __slots__ = ()

    class TracedValue(Value, Traced):
        """A Value that is being computed while a step is traced."""

        __slots__ = ()

        # Used by the engine, which happens only if this outlives its trace.
        _data = property(leaked)
        _grad = property(leaked)

        def __init__(self, data: Any) -> None:
            raise LeakError("a traced Value cannot be made by hand")

        @property
        def data(self) -> Any:
            if closed:
                leaked()
            number = new(DataNumber)
            number._leaf = self._leaf
            return number

        @data.setter
        def data(self, number: Any) -> None:
            raise TraceError(
                f"{user_location()}: only parameters (Values that existed before the step, or were made by Value(...)) "
                "can be assigned. Write a new expression instead of changing .data of a computed Value."
            )

        @property
        def grad(self) -> Any:
            return number_from(recorder.adjoint(self._leaf))

        @grad.setter
        def grad(self, number: Any) -> None:
            raise TraceError(
                f"{user_location()}: .grad of a computed Value cannot be assigned. Each backward() resets the "
                "gradients of computed Values by itself; only parameters accumulate."
            )

        def backward(self) -> None:
            if closed:
                leaked()
            recorder.backward(self._leaf)

        def __repr__(self) -> str:
            return "<a Value that is being traced>"

        def __reduce__(self) -> Any:
            return restore, (Value, self.data, self.grad)

        def _select(self, condition: Any, chosen: Any, other: Any) -> Any:
            return select(condition, chosen, other)

    closed = False

    def value_from(operand: int) -> Any:
        value = new(TracedValue)
        value._leaf = operand
        return value

    # ---- operands: an object of the user's program -> ref ------------------------------------------

    computed = {TracedNumber, IntegerNumber, BooleanNumber, numbers.mixed.number}
    if "numpy" in sys.modules:
        computed |= {numbers.of_numpy().number, numbers.of_numpy().narrow, numbers.of_numpy().integer}

    def lift(operand: Any) -> int:
        """The reference for an operand of Value arithmetic.  A traced number enters as a copy that stops gradients."""
        kind = type(operand)
        if kind is TracedValue:
            return operand._leaf  # type: ignore[no-any-return]
        if isinstance(operand, Value):
            if is_traced(operand):
                leaked()
            if operand._trace is recorder:
                return operand._leaf
            return recorder.parameter(operand)
        if kind in computed:
            return operand._leaf  # type: ignore[no-any-return]
        if isinstance(operand, TracedNumber):  # read from a Value: a copy that stops gradients
            return recorder.emit(ops.COPY | ops.NUMBER, operand._leaf, ops.NO_OPERAND)
        return constant(operand)

    # ---- arithmetic -------------------------------------------------------------------------------

    def binary_on_value(code: int, reflected: bool) -> Callable[[Any, Any], Any]:
        def method(self: Any, other: Any) -> Any:
            kind = type(other)
            if kind is TracedValue or ((kind is Value or kind is bound_type) and other._trace is recorder):
                operand = other._leaf
            else:
                operand = lift(other)
            mine = self._leaf if type(self) is TracedValue or self._trace is recorder else lift(self)
            result = new(TracedValue)
            result._leaf = len(records)
            append_op(code)
            if reflected:
                append_a(operand)
                append_b(mine)
            else:
                append_a(mine)
                append_b(operand)
            return result

        return method

    def traced_binary(code: int, reflected: bool) -> Callable[[Any, Any], Any]:
        # As above, for a receiver that is known to be a TracedValue: the hottest function of tracing.
        def method(self: Any, other: Any) -> Any:
            kind = type(other)
            if (
                kind is TracedValue
                or kind is TracedNumber
                or ((kind is Value or kind is bound_type) and other._trace is recorder)
            ):
                operand = other._leaf
            else:
                operand = lift(other)
            result = new(TracedValue)
            result._leaf = len(records)
            append_op(code)
            if reflected:
                append_a(operand)
                append_b(self._leaf)
            else:
                append_a(self._leaf)
                append_b(operand)
            return result

        return method

    def unary_on_value(code: int) -> Callable[[Any], Any]:
        def method(self: Any) -> Any:
            return value_from(recorder.emit(code, lift(self), ops.NO_OPERAND))

        return method

    def value_comparison(code: int, swapped: bool) -> Callable[[Any, Any], Any]:
        def method(self: Any, other: Any) -> Any:
            a = plain(self)
            b = plain(other)
            return boolean_from(recorder.emit(code | ops.NUMBER, *((b, a) if swapped else (a, b))))

        return method

    def plain(operand: Any) -> int:
        """The number behind a Value or a number, without a copy."""
        return lift(operand) if issubclass(type(operand), Value) else number_operand(operand)

    exponents: set[int] = set()
    integers = frozenset({int, IntegerNumber})

    def value_power(self: Any, exponent: Any) -> Any:
        if isinstance(exponent, Value):
            raise TraceError(f"{user_location()}: Value ** Value is not defined: write mgjit.exp(b * mgjit.log(a)).")
        power = recorder.emit(ops.POWER, lift(self), operand := lift(exponent))
        if operand not in exponents:
            exponents.add(operand)
            recorder.note_power()
        return value_from(power)

    def value_divide(self: Any, other: Any) -> Any:
        if isinstance(other, Value):
            return self * other**-1
        if isinstance(other, TracedNumber):
            return self * number_from(recorder.emit(ops.POWER | ops.NUMBER, other._leaf, recorder.constant(-1.0)))
        number = recorder.precision.rounded(recorder.constants[ops.leaf_index(constant(other))])
        return self * arithmetic.power(number, -1.0)

    def value_divide_reflected(self: Any, other: Any) -> Any:
        return other * self**-1

    def value_maximum(self: Any, other: Any) -> Any:
        return value_from(recorder.emit(ops.MAXIMUM, lift(self), lift(other)))

    def value_minimum(self: Any, other: Any) -> Any:
        return value_from(recorder.emit(ops.MINIMUM, lift(self), lift(other)))

    def value_linked(self: Any, number: Any, derivative: Any) -> Any:
        return value_from(recorder.link(number_operand(number), lift(self), number_operand(derivative)))

    def number_extreme(code: int) -> Callable[[Any, Any], Any]:
        def method(self: Any, other: Any) -> Any:
            if isinstance(other, Value):
                return value_from(recorder.emit(code, lift(self), lift(other)))
            best = number_operand(self)
            if type(self) is DataNumber:
                # As where a single one enters arithmetic (`lift`): so positions of a sequence that look back at one or
                # at several others are the same operations, and become one loop.
                best = recorder.emit(ops.COPY | ops.NUMBER, best, ops.NO_OPERAND)
            result = recorder.emit(code | ops.NUMBER, best, number_operand(other))
            # As Python: the first one unless the other is greater, or less.
            compare = operator.gt if code == ops.MAXIMUM else operator.lt
            return like(
                [self, other], result, kind_of_choice(lambda: number_operand(compare(other, self)), other, self)
            )

        return method

    # ---- selection and look-up --------------------------------------------------------------------

    recorder.number_of = number_from

    def select(condition: Any, chosen: Any, other: Any) -> Any:
        if type(condition) is BooleanNumber and type(other) is TracedNumber:
            if type(chosen) is TracedNumber:
                return number_from(recorder.select(condition._leaf, chosen._leaf, other._leaf, ops.NUMBER))
            if type(chosen) is MixedNumber:
                result = recorder.select(condition._leaf, chosen._leaf, other._leaf, ops.NUMBER)
                return mixed_from(result, kind_of_choice(lambda: condition._leaf, chosen, other))
        test = condition._leaf if type(condition) is BooleanNumber else plain(condition)
        if issubclass(type(chosen), Value) or issubclass(type(other), Value):
            if ops.leaf_kind(test) in ops.MUTABLE:  # copied, because the backward pass reads the test later
                test = recorder.emit(ops.COPY | ops.NUMBER, test, ops.NO_OPERAND)
            return value_from(recorder.select(test, lift(chosen), lift(other)))
        result = recorder.select(test, number_operand(chosen), number_operand(other), ops.NUMBER)
        return like([chosen, other], result, kind_of_choice(lambda: plain(condition), chosen, other))

    def number_at(leaf: int, kind: int) -> Any:
        """The traced number of a kind (kinds.py) for a leaf that no record of the step overwrites."""
        if kind == NUMPY_FLOAT:
            return numbers.of_numpy().from_operand(leaf)
        if kind == NARROW and recorder.precision is FLOAT64:
            number: Any = new(numbers.of_numpy().narrow)
            number._leaf = leaf
            return number
        if kind >= NUMPY_INTEGER and recorder.precision is FLOAT64:
            return numbers.of_numpy().integer_from_operand(leaf, kind - NUMPY_INTEGER)
        return (number_from if kind in (FLOAT, NARROW) else integer_from)(leaf)

    def input_number(index: int, kind: int = 0) -> Any:
        """The traced number for an input."""
        return number_at(ops.leaf(ops.INPUT, index), kind)

    def constants(numbers: list[Any]) -> list[int]:
        for number in numbers:
            constant(number)  # which refuses what is no number
        return recorder.constant_table(numbers)

    def take(table: list[Any], index: int) -> Any:
        if not table:
            raise TraceError(f"{user_location()}: mgjit.take from an empty table.")
        first = table[0]
        if isinstance(first, (list, tuple)):
            width = len(first)
            if any(not isinstance(row, (list, tuple)) or len(row) != width for row in table):
                raise TraceError(f"{user_location()}: the rows of a table for mgjit.take must have equal lengths.")
            if all(not isinstance(x, (Value, TracedNumber)) for row in table for x in row):
                flat = constants([x for row in table for x in row])
                columns = [flat[c::width] for c in range(width)]
                return [number_from(recorder.take(column, index, False)) for column in columns]
            for row in table:  # register parameters row by row, so that rows are contiguous
                for element in row:
                    plain(element)
            return [take([row[c] for row in table], index) for c in range(width)]
        kinds = set(map(type, table))
        if all(issubclass(kind, Value) for kind in kinds):
            return value_from(recorder.take([lift(x) for x in table], index, True))
        if any(issubclass(kind, TracedNumber) for kind in kinds):
            operands = [number_operand(x) for x in table]
            if recorder.is_table(operands):
                return number_from(recorder.look_up(operands, index, False))
            return chosen_one(operands, index)
        return number_from(recorder.take(constants(table), index, False))

    def chosen_one(operands: list[int], index: int) -> Any:
        """One of computed numbers: compare the index with each place."""
        result, place = operands[0], number_from(index)
        for k, operand in enumerate(operands[1:], 1):
            result = recorder.select(gatherer.test(place, k)._leaf, operand, result, ops.NUMBER)
        return number_from(result)

    def close() -> None:
        nonlocal append_op, closed
        append_op = leaked
        numbers.close()
        recorder.adjoint = leaked  # type: ignore[method-assign, assignment]
        closed = True

    from ...memory.buffers import BoundValue as bound_type

    for name, code in _VALUE_BINARY.items():
        setattr(TracedValue, f"__{name}__", traced_binary(code, False))
        setattr(TracedValue, f"__r{name}__", traced_binary(code, True))
    for name, code in UNARY_METHODS.items():
        setattr(TracedValue, name, unary_on_value(code))
    for name, (code, swapped) in COMPARISONS.items():
        setattr(TracedValue, name, value_comparison(code, swapped))
    for name, reason in REFUSED.items():
        setattr(TracedValue, name, refuse(reason))
    value_methods = {
        "__pow__": value_power, "__truediv__": value_divide, "__rtruediv__": value_divide_reflected,
        "maximum": value_maximum, "minimum": value_minimum, "_linked": value_linked,
    }  # fmt: skip
    for name, method in value_methods.items():
        setattr(TracedValue, name, method)

    def take_from(self: Any, table: Any) -> Any:
        index = number_operand(self)
        recorder.check_index(index, len(table))
        return take(list(table), index)

    gatherer.when_used = lambda number: numbers.when_used(lambda: number_operand(number()))

    def take_number(self: Any, table: list[Any]) -> Any:
        operand = number_operand(take(table, number_operand(self)))
        ranges = [range_of(number) for number in table] if integers.issuperset(map(type, table)) else []
        if all(ranges) and ranges:
            lows, highs = [found[0] for found in ranges if found], [found[-1] for found in ranges if found]
            recorder.known_integers[operand] = range(min(lows), max(highs) + 1)
        return like(
            table, operand, lambda: number_operand(take(list(map(numbers.mixed.code, table)), number_operand(self)))
        )

    def range_of(number: Any) -> range | None:
        """A range that an int is known to be in."""
        if type(number) is int:
            return range(number, number + 1)
        return recorder.known_integers.get(number._leaf) if type(number) is IntegerNumber else None

    def choose_object(self: Any, chosen: Any, other: Any) -> Any:
        """One of two objects of the user's, by a test."""
        index = self if issubclass(type(self), BooleanNumber) else self != 0
        operand = number_operand(index)
        recorder.known_integers[operand] = range(2)
        gatherer.chooses_by_test = True
        try:
            return gatherer.choose([other, chosen], integer_from(operand))
        except TraceError as error:
            raise PlainCall(str(error)) from None

    number_methods: dict[str, Any] = {
        "_choose_object": choose_object,
        "_take_number": take_number, "_gatherer": gatherer,
        "maximum": number_extreme(ops.MAXIMUM), "minimum": number_extreme(ops.MINIMUM),
        "_select": staticmethod(select), "_take": take_from,
    }  # fmt: skip
    for name, of_number in number_methods.items():
        setattr(TracedNumber, name, of_number)
    TracedValue._lifted = staticmethod(  # type: ignore[method-assign]
        lambda number: value_from(lift(number))
    )
    return TracedTypes(
        TracedValue,
        TracedNumber,
        IntegerNumber,
        BooleanNumber,
        lift,
        number_operand,
        numbers.from_memory,
        numbers.when_used,
        numbers.is_current,
        numbers.mixed,
        input_number,
        number_at,
        binary_on_value,
        value_from,
        frozenset({TracedValue, *computed}),
        gatherer,
        close,
    )
