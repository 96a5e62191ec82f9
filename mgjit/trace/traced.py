"""The traced types: what parameters, inputs and intermediate results are while a step is traced.

`traced_types(recorder)` makes two classes for one trace: `TracedValue`, a `Value` whose arithmetic
appends records, and `TracedNumber`, which stands for a plain float.  They are made anew for every trace,
closing over its lists, for three reasons: an operation costs three list appends and no look-up of "the
current trace"; two threads can trace at once; and a value that leaks out of its trace is recognised by
its class, and after `close()` refuses with a LeakError.
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

from ..engine import arithmetic
from ..engine.value import Value, restore
from ..errors import LeakError, TraceError, described, user_location
from . import opcodes as ops
from .leaks import is_traced, leaked
from .recorder import Recorder


class TracedTypes(NamedTuple):
    """The classes of one trace, how operands are turned into refs, and what ends their life."""

    value: type
    number: type
    integer: type
    lift: Callable[[Any], int]
    number_operand: Callable[[Any], int]
    leaf_number: Callable[[int], Any]
    input_number: Callable[..., Any]
    binary_on_value: Callable[[int, bool], Callable[[Any, Any], Any]]
    close: Callable[[], None]


_EXPLANATIONS = {
    "bool": "a traced value has no truth value: its number is known only when the compiled step runs. "
    "Write mgjit.where(condition, a, b), mgjit.maximum, mgjit.minimum or .relu() instead of if/and/or/max/min",
    "float": "float() and math functions need a real number. Use mgjit.exp, log, tanh, sqrt, or plain arithmetic",
    "int": "int() and rounding need a real number. Compute the integer outside of the step and pass it as an argument",
    "index": "a run-time number cannot be a list index, a key, a length or a range. Use mgjit.take(table, index), "
    "or name the argument in @mgjit.compile(static=(...)) when few different values occur",
    "format": "a traced value has no digits to print. Return it from the step and print the result",
    "pickle": "a traced value cannot be pickled. Return it from the step and pickle the result",
    "floor": "//, %, divmod and bit operations are not available on traced values. Compute them outside of the step",
}


#: Where classes of numbers come from that never change.
_OF_CONSTANTS = ("numpy", "decimal", "fractions")


def refuse(reason: str) -> Callable[..., Any]:
    """A method that raises a TraceError saying why a traced value cannot answer, and what to write."""

    def method(self: Any, *_: Any) -> Any:
        raise TraceError(f"{user_location()}: {_EXPLANATIONS[reason]}.")

    return method


_REFUSED = {
    "__bool__": "bool", "__float__": "float", "__complex__": "float", "__int__": "int", "__round__": "int",
    "__trunc__": "int", "__floor__": "int", "__ceil__": "int", "__index__": "index", "__format__": "format",
    "__floordiv__": "floor", "__rfloordiv__": "floor", "__mod__": "floor", "__rmod__": "floor",
    "__divmod__": "floor", "__rdivmod__": "floor", "__and__": "floor", "__rand__": "floor", "__or__": "floor",
    "__ror__": "floor", "__xor__": "floor", "__rxor__": "floor", "__lshift__": "floor", "__rlshift__": "floor",
    "__rshift__": "floor", "__rrshift__": "floor", "__invert__": "floor",
}  # fmt: skip

_VALUE_BINARY = {"add": ops.ADD, "sub": ops.SUBTRACT, "mul": ops.MULTIPLY}
_NUMBER_BINARY = {**_VALUE_BINARY, "truediv": ops.DIVIDE, "pow": ops.POWER}
_UNARY_METHODS = {
    "__neg__": ops.NEGATE, "__abs__": ops.ABSOLUTE, "relu": ops.RELU, "exp": ops.EXP, "log": ops.LOG,
    "tanh": ops.TANH, "sqrt": ops.SQRT, "_copied": ops.COPY,
}  # fmt: skip
_COMPARISONS = {  # name: (opcode, operands swapped)
    "__lt__": (ops.LESS, False), "__le__": (ops.LESS_EQUAL, False),
    "__gt__": (ops.LESS, True), "__ge__": (ops.LESS_EQUAL, True),
}  # fmt: skip


def traced_types(recorder: Recorder) -> TracedTypes:
    """The two traced classes of one trace."""
    append_op, append_a, append_b = recorder.op.append, recorder.a.append, recorder.b.append
    records = recorder.op
    new = object.__new__

    class TracedNumber:
        """Stands for a plain number while a step is traced."""

        __slots__ = ("_leaf",)
        _leaf: int

        def __repr__(self) -> str:
            return "<a number that is being traced>"

        def __pos__(self) -> Any:
            return self

        def __eq__(self, other: Any) -> Any:
            return number_comparison(ops.EQUAL, False)(self, other)

        def __ne__(self, other: Any) -> Any:
            return number_comparison(ops.NOT_EQUAL, False)(self, other)

        __hash__ = refuse("index")

        __reduce__ = refuse("pickle")

        def __copy__(self) -> Any:
            return self  # as of a float

        def __deepcopy__(self, memo: dict[int, Any]) -> Any:
            return self

        def _lifted(self, number: Any) -> Any:
            return number_from(number_operand(number))

        def _select(self, condition: Any, chosen: Any, other: Any) -> Any:
            return select(condition, chosen, other)

        def _one_hot(self, n: int) -> list[Any]:
            operand = number_operand(self)
            recorder.check_index(operand, n)
            return [number_from(emit(ops.EQUAL | ops.NUMBER, operand, recorder.constant(k))) for k in range(n)]

        def _take(self, table: Any) -> Any:
            operand = number_operand(self)
            recorder.check_index(operand, len(table))
            return take(list(table), operand)

    class LeafNumber(TracedNumber):
        """A number read from memory that the step may overwrite: checks that it is still current when used."""

        __slots__ = ("_operand", "_read_at")
        _operand: int
        _read_at: int

        @property
        def _leaf(self) -> int:  # type: ignore[override]
            operand, read_at = self._operand, self._read_at
            if recorder.last_store.get(operand, -1) >= read_at or (
                recorder.last_backward >= read_at and ops.leaf_kind(operand) in (ops.GRADIENT, ops.LOCAL_GRADIENT)
            ):
                return recorder.late_read(operand, read_at)
            return operand

    class DataNumber(TracedNumber):
        """The `.data` of a computed Value."""

        __slots__ = ()

    class IntegerNumber(TracedNumber):
        """A number that is an int or bool in Python: a comparison, an element of a byte buffer.  Never -0.0."""

        __slots__ = ()

        def __neg__(self) -> Any:
            return integer_from(emit(ops.SUBTRACT | ops.NUMBER, recorder.constant(0.0), self._leaf))

        def __mul__(self, other: Any) -> Any:
            product: Any = TracedNumber.__mul__(self, other)  # type: ignore[operator]
            if product is NotImplemented or not (isinstance(other, int) or other.__class__ is IntegerNumber):
                return product
            # 0 * -2 is 0, but 0.0 * -2.0 is -0.0
            return integer_from(emit(ops.ADD | ops.NUMBER, product._leaf, recorder.constant(0.0)))

        __rmul__ = __mul__

    class TracedValue(Value):
        """A Value that is being computed while a step is traced."""

        __slots__ = ()

        # What the engine computes with; asked for only when this outlives its trace.
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

    def emit(op: int, a: int, b: int) -> int:
        position = len(records)
        append_op(op)
        append_a(a)
        append_b(b)
        return position

    def number_from(operand: int) -> Any:
        number = new(TracedNumber)
        number._leaf = operand
        return number

    def integer_from(operand: int) -> Any:
        number = new(IntegerNumber)
        number._leaf = operand
        return number

    def leaf_number(operand: int) -> Any:
        number = new(LeafNumber)
        number._operand = operand
        number._read_at = len(records)
        return number

    def value_from(operand: int) -> Any:
        value = new(TracedValue)
        value._leaf = operand
        return value

    # ---- operands: an object of the user's program -> ref ------------------------------------------

    def lift(operand: Any) -> int:
        """As an operand of Value arithmetic.  A computed number enters as a copy that no gradient crosses."""
        kind = operand.__class__
        if kind is TracedValue:
            return operand._leaf  # type: ignore[no-any-return]
        if isinstance(operand, Value):
            if is_traced(operand):
                leaked()
            if operand._trace is recorder:
                return operand._leaf
            return recorder.parameter(operand)
        if kind is TracedNumber or kind is IntegerNumber:
            return operand._leaf  # type: ignore[no-any-return]
        if isinstance(operand, TracedNumber):  # read from a Value: a copy that no gradient crosses
            return emit(ops.COPY | ops.NUMBER, operand._leaf, ops.NO_OPERAND)
        return constant(operand)

    def number_operand(operand: Any) -> int:
        """As an operand of plain-number arithmetic."""
        kind = operand.__class__
        if kind is TracedNumber or isinstance(operand, TracedNumber):
            return operand._leaf  # type: ignore[no-any-return]
        return constant(operand)

    def constant(operand: Any) -> int:
        if type(operand) is float or isinstance(operand, (int, float)):
            return recorder.constant(operand)
        if is_traced(operand):
            leaked()
        kind = type(operand)
        has_number = hasattr(operand, "__float__") and not isinstance(operand, (type, complex))
        if has_number and kind.__module__ in _OF_CONSTANTS and kind.__name__ != "ndarray":
            return recorder.constant(operand)
        if has_number:
            raise TraceError(
                f"{user_location()}: the number of the {described(operand)} would be frozen into the step, and not be "
                "seen when it changes. Write float(...) outside of the step and pass the number as an argument."
            )
        raise TraceError(
            f"{user_location()}: a number or a Value is needed here, not the {described(operand)}. Pass numbers, or "
            "lists, tuples, dicts and arrays whose elements the step uses one by one."
        )

    def is_number(operand: Any) -> bool:
        return isinstance(operand, (int, float, TracedNumber)) or is_traced(operand) or hasattr(operand, "__float__")

    # ---- arithmetic -------------------------------------------------------------------------------

    def binary_on_value(code: int, reflected: bool) -> Callable[[Any, Any], Any]:
        def method(self: Any, other: Any) -> Any:
            kind = other.__class__
            if kind is TracedValue or ((kind is Value or kind is bound_type) and other._trace is recorder):
                operand = other._leaf
            else:
                operand = lift(other)
            mine = self._leaf if self.__class__ is TracedValue or self._trace is recorder else lift(self)
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
        # The same for a receiver that is known to be a TracedValue: the hottest function of tracing.
        def method(self: Any, other: Any) -> Any:
            kind = other.__class__
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
            return value_from(emit(code, lift(self), ops.NO_OPERAND))

        return method

    def number_binary(code: int, reflected: bool) -> Callable[[Any, Any], Any]:
        code |= ops.NUMBER

        def method(self: Any, other: Any) -> Any:
            kind = other.__class__
            if kind is TracedNumber:
                operand = other._leaf
            elif isinstance(other, (list, tuple, str, bytes)):
                return self.__index__()  # repeating a sequence
            elif isinstance(other, Value) or not is_number(other):
                return NotImplemented
            else:
                operand = number_operand(other)
            mine = self._leaf
            number = new(TracedNumber)
            number._leaf = len(records)
            append_op(code)
            if reflected:
                append_a(operand)
                append_b(mine)
            else:
                append_a(mine)
                append_b(operand)
            return number

        return method

    def number_unary(code: int) -> Callable[[Any], Any]:
        def method(self: Any) -> Any:
            return number_from(emit(code | ops.NUMBER, number_operand(self), ops.NO_OPERAND))

        return method

    def number_comparison(code: int, swapped: bool) -> Callable[[Any, Any], Any]:
        def method(self: Any, other: Any) -> Any:
            if isinstance(other, Value):
                return NotImplemented
            a, b = number_operand(self), number_operand(other)
            return integer_from(emit(code | ops.NUMBER, b, a) if swapped else emit(code | ops.NUMBER, a, b))

        return method

    def value_comparison(code: int, swapped: bool) -> Callable[[Any, Any], Any]:
        def method(self: Any, other: Any) -> Any:
            a = plain(self)
            b = plain(other)
            return integer_from(emit(code | ops.NUMBER, b, a) if swapped else emit(code | ops.NUMBER, a, b))

        return method

    def plain(operand: Any) -> int:
        """The number behind a Value or a number, without a copy."""
        return lift(operand) if isinstance(operand, Value) else number_operand(operand)

    def value_power(self: Any, exponent: Any) -> Any:
        if isinstance(exponent, Value):
            raise TraceError(f"{user_location()}: Value ** Value is not defined: write mgjit.exp(b * mgjit.log(a)).")
        power = emit(ops.POWER, lift(self), operand := lift(exponent))
        if operand not in exponents_of_values:
            exponents_of_values.add(operand)
            recorder.note_power()
        return value_from(power)

    def number_power(self: Any, exponent: Any) -> Any:
        power = power_without_note(self, exponent)
        if recorder.b[-1] not in exponents_of_numbers and power is not NotImplemented:
            exponents_of_numbers.add(recorder.b[-1])
            recorder.note_power()
        return power

    exponents_of_values: set[int] = set()
    exponents_of_numbers: set[int] = set()
    power_without_note = number_binary(ops.POWER, False)

    def value_divide(self: Any, other: Any) -> Any:
        if isinstance(other, Value):
            return self * other**-1
        if isinstance(other, TracedNumber):
            return self * power_without_note(other, -1)
        number = recorder.precision.rounded(recorder.constants[ops.leaf_index(constant(other))])
        return self * arithmetic.power(number, -1.0)

    def value_divide_reflected(self: Any, other: Any) -> Any:
        return other * self**-1

    def value_maximum(self: Any, other: Any) -> Any:
        return value_from(emit(ops.MAXIMUM, lift(self), lift(other)))

    def value_minimum(self: Any, other: Any) -> Any:
        return value_from(emit(ops.MINIMUM, lift(self), lift(other)))

    def number_extreme(code: int) -> Callable[[Any, Any], Any]:
        def method(self: Any, other: Any) -> Any:
            if isinstance(other, Value):
                return value_from(emit(code, lift(self), lift(other)))
            return number_from(emit(code | ops.NUMBER, number_operand(self), number_operand(other)))

        return method

    # ---- selection and look-up --------------------------------------------------------------------

    def select(condition: Any, chosen: Any, other: Any) -> Any:
        test = plain(condition)
        if isinstance(chosen, Value) or isinstance(other, Value):
            if ops.leaf_kind(test) in ops.MUTABLE:  # the engine decides once, the backward pass comes later
                test = emit(ops.COPY | ops.NUMBER, test, ops.NO_OPERAND)
            return value_from(recorder.select(test, lift(chosen), lift(other)))
        return number_from(recorder.select(test, number_operand(chosen), number_operand(other), ops.NUMBER))

    def input_number(index: int, integer: bool = False) -> Any:
        """What stands for an input."""
        return (integer_from if integer else number_from)(ops.leaf(ops.INPUT, index))

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
        if all(isinstance(x, Value) for x in table):
            return value_from(recorder.take([lift(x) for x in table], index, True))
        if all(isinstance(x, TracedNumber) for x in table):
            return number_from(recorder.take([x._leaf for x in table], index, False))
        return number_from(recorder.take(constants(table), index, False))

    def close() -> None:
        nonlocal append_op, closed
        append_op = leaked
        recorder.emit = recorder.adjoint = leaked  # type: ignore[method-assign, assignment]
        closed = True

    from ..runtime.buffers import BoundValue as bound_type

    for name, code in _VALUE_BINARY.items():
        setattr(TracedValue, f"__{name}__", traced_binary(code, False))
        setattr(TracedValue, f"__r{name}__", traced_binary(code, True))
    for name, code in _NUMBER_BINARY.items():
        setattr(TracedNumber, f"__{name}__", number_binary(code, False))
        setattr(TracedNumber, f"__r{name}__", number_binary(code, True))
    setattr(TracedNumber, "__pow__", number_power)  # noqa: B010 - as the others
    for name, code in _UNARY_METHODS.items():
        setattr(TracedValue, name, unary_on_value(code))
        setattr(TracedNumber, name, number_unary(code))
    for name, (code, swapped) in _COMPARISONS.items():
        setattr(TracedValue, name, value_comparison(code, swapped))
        setattr(TracedNumber, name, number_comparison(code, swapped))
    for name, reason in _REFUSED.items():
        setattr(TracedValue, name, refuse(reason))
        setattr(TracedNumber, name, refuse(reason))
    value_methods = {
        "__pow__": value_power, "__truediv__": value_divide, "__rtruediv__": value_divide_reflected,
        "maximum": value_maximum, "minimum": value_minimum,
    }  # fmt: skip
    for name, method in value_methods.items():
        setattr(TracedValue, name, method)
    number_methods = {"maximum": number_extreme(ops.MAXIMUM), "minimum": number_extreme(ops.MINIMUM)}
    for name, extreme in number_methods.items():
        setattr(TracedNumber, name, extreme)
    TracedValue._lifted = staticmethod(  # type: ignore[method-assign]
        lambda number: value_from(lift(number))
    )
    return TracedTypes(
        TracedValue,
        TracedNumber,
        IntegerNumber,
        lift,
        number_operand,
        leaf_number,
        input_number,
        binary_on_value,
        close,
    )
