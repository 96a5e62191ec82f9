"""Traced numbers, which stand for plain floats and ints while a step is traced.

`number_types(recorder)` makes the classes for one trace.  Their instances pass for floats and ints
(`isinstance(x, float)`), so that code that knows nothing of tracing computes with them: other people's autograd
classes, optimisers, loss functions.  They do not hold a number, so nothing that needs one is answered by mistake:
`float(x)`, `math.exp(x)` and `if x > 0:` raise, where a subclass of float would silently use the number it holds.

Operations that do not change their operand are not recorded: `1 * x`, `x ** 1`, `x - 0`, and `0 + x` if x cannot be
-0.0 (which would become 0.0).  Autograd classes are full of these.  (They are recorded if they may be nodes of a graph
that is differentiated later: `Recorder.keeps_neutral`.)
"""

from __future__ import annotations

import functools
import math
from typing import Any, Callable, NamedTuple

from ...base.lookup import has
from ...engine.kinds import NUMPY_FLOAT
from ...engine.leaks import Symbol, Traced, is_traced, leaked
from ...engine.operations import OPERATIONS
from ...engine.value import Value
from ...errors import TraceError, described, is_describing, user_location
from ...ir import opcodes as ops
from ...tensor.tensor import Tensor
from .counters import Counted
from .mixed import MixedTypes, Numbers, mixed_types
from .numpy_functions import numpy_methods
from .numpy_numbers import NumpyTypes, numpy_types
from .recorder import Recorder
from .refused import REFUSED, attribute_of_number, not_implemented, refuse
from .rounding import rounding_methods


class NumberTypes(NamedTuple):
    """The classes of traced numbers of one trace, and the conversions between references and numbers."""

    number: type
    integer: type
    boolean: type
    operand: Callable[[Any], int]
    constant: Callable[[Any], int]
    from_operand: Callable[[int], Any]
    integer_from_operand: Callable[[int], Any]
    boolean_from_operand: Callable[[int], Any]
    from_memory: Callable[[int], Any]
    when_used: Callable[..., Any]
    is_current: Callable[[Any, int], bool]
    mixed: MixedTypes
    of_numpy: Callable[[], NumpyTypes]
    close: Callable[[], None]


UNARY_METHODS = {one.method: ops.OPERATIONS.index(name) for name, one in OPERATIONS.items() if one.method}
COMPARISONS = {  # name: (opcode, operands swapped)
    "__lt__": (ops.LESS, False), "__le__": (ops.LESS_EQUAL, False),
    "__gt__": (ops.LESS, True), "__ge__": (ops.LESS_EQUAL, True),
}  # fmt: skip
#: Modules whose number types are immutable.
_OF_CONSTANTS = ("numpy", "decimal", "fractions")
_BINARY = {"add": ops.ADD, "sub": ops.SUBTRACT, "mul": ops.MULTIPLY, "truediv": ops.DIVIDE, "pow": ops.POWER}
_COMMUTATIVE = ops.opcodes(lambda one: one.commutes)
#: The second operand (of commutative operations: any) that gives the first one back, exactly.  Sums: see the module.
_NEUTRAL = {ops.ADD: 0.0, ops.SUBTRACT: 0.0, ops.MULTIPLY: 1.0, ops.DIVIDE: 1.0, ops.POWER: 1.0}
_NEVER_NEGATIVE_ZERO = frozenset(
    code | ops.NUMBER for code in (ops.LESS, ops.LESS_EQUAL, ops.EQUAL, ops.NOT_EQUAL, ops.ABSOLUTE, ops.EXP)
)


def number_types(recorder: Recorder) -> NumberTypes:
    """The classes of traced numbers for one trace."""
    append_op, append_a, append_b = recorder.op.append, recorder.a.append, recorder.b.append
    records, left, right = recorder.op, recorder.a, recorder.b
    constant_before = recorder.constant_before
    new = object.__new__

    class TracedNumber(Traced):
        """Stands for a plain number while a step is traced."""

        __slots__ = ("_leaf",)
        _leaf: int
        #: Which of numpy's types it has in Python, if any.
        of_numpy = ""

        #: Makes isinstance succeed; `type(x)` still gives the real class.
        __class__ = property(lambda self: float)

        def __pos__(self) -> Any:
            return self

        def __eq__(self, other: Any) -> Any:
            return comparison(ops.EQUAL, False)(self, other)

        def __ne__(self, other: Any) -> Any:
            return comparison(ops.NOT_EQUAL, False)(self, other)

        __hash__ = refuse("index")

        __reduce__ = refuse("pickle")

        def __repr__(self) -> str:
            return "<a number that is being traced>" if is_describing() else refuse("format")(self)

        real = property(lambda self: +self)
        imag = property(lambda self: 0.0 if self.__class__ is float else 0)

        def conjugate(self) -> Any:
            return +self

        def __getattr__(self, name: str) -> Any:
            return attribute_of_number(self, name)

        def is_integer(self) -> Any:
            """As of a float, False for infinities."""
            is_finite: Any = binary(ops.SUBTRACT, False)(self, self) == 0.0
            return is_finite._select(is_finite, self._library("trunc", (self,)) == self, False)

        def __copy__(self) -> Any:
            return self  # as of a float

        def __deepcopy__(self, memo: dict[int, Any]) -> Any:
            return self

        def _lifted(self, number: Any) -> Any:
            return mixed.like([number], operand_of(number), lambda: ops.NO_OPERAND)

        def _as_float(self) -> Any:
            return from_operand(self._leaf)

        def _as_numpys(self) -> Any:
            return of_numpy().from_operand(self._leaf)

        _recorder = recorder

        def _fix(self, also_arguments: bool) -> None:
            """Start the trace again with the numbers behind this one fixed, if they can be."""
            recorder.asked_for(self._leaf, also_arguments)

        def _truth(self) -> bool | None:
            """Whether it is not zero in the call that is traced; None if Python cannot be told."""
            return None if recorder.answers is None else recorder.answers.truth(self._leaf)

        def __bool__(self) -> bool:
            self._fix(False)
            answer = self._truth()
            return refuse("bool")(self) if answer is None else answer

        def __index__(self) -> int:
            self._fix(True)  # an int among floats
            return refuse("index")(self)  # type: ignore[no-any-return]

        def _check_index(self, n: int) -> None:
            recorder.check_index(operand_of(self), n)

        def _one_hot(self, n: int) -> list[Any]:
            index = operand_of(self)
            recorder.check_index(index, n)
            return [from_operand(recorder.emit(ops.EQUAL | ops.NUMBER, index, recorder.constant(k))) for k in range(n)]

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

    class NumberWhenUsed(TracedNumber):
        """A number that is recorded only when it is used, because nearly all of its kind never are."""

        __slots__ = ("_arguments", "_operand")
        _operand: Callable[..., int]
        _arguments: tuple[int, ...]

        _leaf = property(lambda self: self._operand(*self._arguments))

    class IntegerNumber(TracedNumber):
        """A number that is an int in Python, such as an element of a byte buffer.  Never -0.0."""

        __slots__ = ()
        __class__ = property(lambda self: int)

        def _as_integer(self) -> Any:
            return integer_from(self._leaf)

        def __pos__(self) -> Any:
            return integer_from(self._leaf)

        is_integer = property(lambda self: attribute_of_number(self, "is_integer"))
        numerator = property(lambda self: +self)
        denominator = property(lambda self: 1)

        def __abs__(self) -> Any:
            return integer_result(recorder.emit(ops.ABSOLUTE | ops.NUMBER, self._leaf, ops.NO_OPERAND))

        def __index__(self) -> int:
            recorder.asked_for(self._leaf)
            answer = None if recorder.answers is None else recorder.answers.integer(self._leaf)
            return TracedNumber.__index__(self) if answer is None else answer

        def __hash__(self) -> int:
            return hash(self.__index__())

    class BooleanNumber(IntegerNumber):
        """A number that is a bool in Python: a comparison."""

        __slots__ = ()
        __class__ = property(lambda self: bool)

    class IntegerLeaf(LeafNumber, IntegerNumber):
        """A number read from memory that the step may overwrite, where an int is now."""

        __slots__ = ()

    def from_operand(operand: int) -> Any:
        number = new(TracedNumber)
        number._leaf = operand
        return number

    def integer_from(operand: int) -> Any:
        number = new(IntegerNumber)
        number._leaf = operand
        return number

    def boolean_from(operand: int) -> Any:
        number = new(BooleanNumber)
        number._leaf = operand
        return number

    def integer_result(operand: int) -> Any:
        recorder.integer_results.append(operand)
        return integer_from(operand)

    def from_memory(operand: int, kind: int = 0) -> Any:
        if kind == NUMPY_FLOAT:
            note_numpys()
        number: Any = new(of_numpy().leaf if kind == NUMPY_FLOAT else (LeafNumber, IntegerLeaf)[kind])
        number._operand = operand
        number._read_at = len(records)
        return number

    def when_used(operand: Callable[..., int], *arguments: int) -> Any:
        number: Any = new(NumberWhenUsed)
        number._operand, number._arguments = operand, arguments
        return number

    def is_current(number: Any, operand: int) -> bool:
        return issubclass(type(number), LeafNumber) and number._operand == operand and number._leaf == operand

    def operand_of(operand: Any) -> int:
        """The reference for an operand of plain-number arithmetic."""
        kind = type(operand)
        if kind is TracedNumber or issubclass(kind, TracedNumber):
            return operand._leaf  # type: ignore[no-any-return]
        return constant(operand)

    def constant(operand: Any) -> int:
        kind = type(operand)
        if kind is float or issubclass(kind, (int, float)):
            return recorder.constant(operand)
        if kind is Counted:
            return recorder.constant(int(operand))
        if is_traced(operand):
            leaked()
        has_number = has(operand, "__float__") and not isinstance(operand, (type, complex))
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
        return isinstance(operand, (int, float)) or is_traced(operand) or has(operand, "__float__")

    def is_integer(operand: Any) -> bool:
        return issubclass(type(operand), (IntegerNumber, int))

    def never_negative_zero(operand: int) -> bool:
        if operand < 0:
            return False
        code = records[operand]
        if code == ops.ADD | ops.NUMBER:
            a, b = left[operand], right[operand]
            return (a < 0 and recorder.is_zero(a)) or (b < 0 and recorder.is_zero(b))
        return code in _NEVER_NEGATIVE_ZERO

    def is_neutral(code: int, mine: Any, other: Any) -> bool:
        """Whether `mine op other` is `mine`, whatever its number is, where other equals the neutral element."""
        if math.copysign(1.0, other) < 0.0:
            return False
        return code != ops.ADD or never_negative_zero(mine._leaf)

    # ---- operators --------------------------------------------------------------------------------

    def binary(code: int, reflected: bool) -> Callable[[Any, Any], Any]:
        neutral = _NEUTRAL.get(code) if code in _COMMUTATIVE or not reflected else None
        plain_code, product = code, ops.MULTIPLY | ops.NUMBER
        code |= ops.NUMBER

        def method(self: Any, other: Any) -> Any:
            kind = type(other)
            if kind is TracedNumber:
                operand = other._leaf
            elif kind is float or kind is int:
                if other == neutral and not recorder.keeps_neutral and is_neutral(plain_code, self, other):
                    return self
                found = constant_before(other)
                operand = recorder.constant(other) if found is None else found
                if plain_code == ops.ADD and other == 0:  # as the sums that it begins go on: the total first
                    number = new(TracedNumber)
                    number._leaf = recorder.emit(code, operand, self._leaf)
                    return number
            elif issubclass(kind, TracedNumber):
                if kind.of_numpy:
                    return NotImplemented
                operand = other._leaf
            elif issubclass(kind, Symbol):
                return other.times(self) if code == product and not reflected else NotImplemented
            elif isinstance(other, (list, tuple, str, bytes)):
                return repeated(self, other, plain_code)
            elif isinstance(other, (Value, Tensor)) or not is_number(other):
                return not_implemented(other)
            elif kind.__module__ == "numpy":
                return of_numpy().beside(self, other, method)
            else:
                operand = operand_of(other)
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

    def repeated(self: Any, sequence: Any, code: int) -> Any:
        """A sequence so many times."""
        return sequence * self.__index__() if code == ops.MULTIPLY else NotImplemented

    def integer_binary(code: int, reflected: bool) -> Callable[[Any, Any], Any]:
        of_floats = binary(code, reflected)

        def method(self: Any, other: Any) -> Any:
            if isinstance(other, (list, tuple, str, bytes)):
                return repeated(self, other, code)
            if type(other) is mixed.number or getattr(type(other), "of_numpy", "") == "integer":
                return NotImplemented
            if type(other).__module__ == "numpy":
                return of_numpy().beside(self, other, of_floats)
            if not is_integer(other):
                return of_floats(from_operand(self._leaf), other)
            a, b = self._leaf, operand_of(other)
            recorder.used_as_integers.update((a, b))
            result = recorder.emit(code | ops.NUMBER, b, a) if reflected else recorder.emit(code | ops.NUMBER, a, b)
            if code == ops.MULTIPLY:  # 0 * -2 is 0, but 0.0 * -2.0 is -0.0
                recorder.integer_results.append(result)
                result = recorder.emit(ops.ADD | ops.NUMBER, result, recorder.constant(0.0))
            return integer_result(result)

        return method

    def integer_negative(self: Any) -> Any:
        recorder.used_as_integers.add(self._leaf)
        return integer_result(recorder.emit(ops.SUBTRACT | ops.NUMBER, recorder.constant(0.0), self._leaf))

    def integer_power(self: Any, exponent: Any) -> Any:
        """A product of ints, as far as the exponent is known; its sign decides whether it is an int at all."""
        if issubclass(type(exponent), IntegerNumber):
            exponent = exponent.__index__()
        if not isinstance(exponent, int) or exponent < 0:
            return from_operand(self._leaf) ** exponent
        result: Any = None
        for bit in bin(exponent)[2:]:
            result = result if result is None else result * result
            if bit == "1":
                result = self * 1 if result is None else result * self
        return integer_from(recorder.constant(1.0)) if result is None else result

    def integer_exponent(self: Any, base: Any) -> Any:
        if type(base) is int and base in (-1, 0, 1):  # a float where the exponent is negative
            result = recorder.emit(ops.POWER | ops.NUMBER, recorder.constant(base), self._leaf)
            return mixed.like([base, 1.0], result, lambda: operand_of(self >= 0))
        if isinstance(base, int):
            return base ** self.__index__()
        return base ** from_operand(self._leaf)

    def fixed_or_refused(reason: str) -> Callable[..., Any]:
        refused = refuse(reason)

        def method(self: Any, *operands: Any) -> Any:
            recorder.asked_for(self._leaf, also_arguments=False)  # a size that an object keeps, such as self.heads
            return refused(self, *operands)

        return method

    def unary(code: int) -> Callable[[Any], Any]:
        def method(self: Any) -> Any:
            return from_operand(recorder.emit(code | ops.NUMBER, operand_of(self), ops.NO_OPERAND))

        return method

    def comparison(code: int, swapped: bool) -> Callable[[Any, Any], Any]:
        def method(self: Any, other: Any) -> Any:
            if isinstance(other, (Value, Tensor)) or not is_number(other):
                return not_implemented(other)
            if issubclass(type(other), TracedNumber):
                if other.of_numpy and not self.of_numpy:
                    return NotImplemented
            elif type(other).__module__ == "numpy":
                return of_numpy().beside(self, other, method)
            a, b = operand_of(self), operand_of(other)
            return boolean_from(recorder.emit(code | ops.NUMBER, *((b, a) if swapped else (a, b))))

        return method

    def note_power(method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        seen: set[int] = set()

        def power(self: Any, exponent: Any) -> Any:
            result = method(self, exponent)
            if result is not NotImplemented and result is not self and right[-1] not in seen:
                seen.add(right[-1])
                recorder.note_power()
            return result

        return power

    for name, code in _BINARY.items():
        setattr(TracedNumber, f"__{name}__", binary(code, False))
        setattr(TracedNumber, f"__r{name}__", binary(code, True))
    for name in ("add", "sub", "mul"):
        setattr(IntegerNumber, f"__{name}__", integer_binary(_BINARY[name], False))
        setattr(IntegerNumber, f"__r{name}__", integer_binary(_BINARY[name], True))
    setattr(TracedNumber, "__pow__", note_power(binary(ops.POWER, False)))  # noqa: B010 - as the others
    for name, code in UNARY_METHODS.items():
        setattr(TracedNumber, name, unary(code))
    for name, (code, swapped) in COMPARISONS.items():
        setattr(TracedNumber, name, comparison(code, swapped))
    for name, reason in REFUSED.items():
        if name not in vars(TracedNumber):
            setattr(TracedNumber, name, refuse(reason))
        if reason == "bits":
            setattr(IntegerNumber, name, fixed_or_refused(reason))

    def as_floats(name: str) -> Callable[[Any, Any], Any]:
        of_floats = getattr(TracedNumber, name)
        return lambda self, other: of_floats(from_operand(self._leaf), other)

    of_floats = {name: as_floats(name) for name in ("__truediv__", "__rtruediv__")}
    integer_methods = {
        "__neg__": integer_negative, "__pow__": integer_power, "__rpow__": integer_exponent, **of_floats,
    }  # fmt: skip
    for name, method in integer_methods.items():
        setattr(IntegerNumber, name, method)

    @functools.lru_cache(maxsize=1)
    def of_numpy() -> NumpyTypes:
        return numpy_types(known, LeafNumber, note_numpys)

    def note_numpys() -> None:
        recorder.has_numpys = True

    known = Numbers(
        TracedNumber, IntegerNumber, BooleanNumber, operand_of, from_operand, integer_from, boolean_from, of_numpy
    )  # fmt: skip
    mixed = mixed_types(recorder, known)
    for name, method in numpy_methods(recorder, from_operand, of_numpy).items():
        setattr(TracedNumber, name, method)
    for name, method in rounding_methods(recorder, known, is_integer).items():
        if name not in vars(TracedNumber) or name in REFUSED:
            setattr(TracedNumber, name, method)

    def close() -> None:
        nonlocal append_op
        append_op = leaked
        recorder.emit = recorder.select = leaked  # type: ignore[method-assign, assignment]

    return NumberTypes(
        TracedNumber,
        IntegerNumber,
        BooleanNumber,
        operand_of,
        constant,
        from_operand,
        integer_from,
        boolean_from,
        from_memory,
        when_used,
        is_current,
        mixed,
        of_numpy,
        close,
    )
