"""Traced numbers whose type is known only at run time: `x if x > 0 else 0` is a float or an int.

The number itself is an operand, like any other traced number; an int zero is 0.0, never -0.0.  Its type is recorded
only if it is needed, which is rare: the result of an operation with a float is a float, whatever the type.

1. `like` makes a number that stands for one of several: a float, int or bool if all are, otherwise a mixed number.
2. Arithmetic of a mixed number with an int is mixed again.  Ints have no -0.0, so products and negatives of a number
   that is an int at run time lose the sign of zero.
3. A mixed number that a step returns is two outputs: the number, and the code of its type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, NamedTuple

from ...ir import opcodes as ops
from .counters import Counted
from .numpy_numbers import NumpyTypes, give_up, has_float64
from .recorder import Recorder

#: The type of a number, by its code.
TYPES: tuple[type, ...] = (float, int, bool)
_FLOAT, _INTEGER, _BOOLEAN = range(len(TYPES))
#: Instead of a code, for what is of one of numpy's types.
_OF_NUMPY = -1

#: A function that returns the operand with the code of a type, recording what is needed to compute it.
Kind = Callable[[], int]


class Numbers(NamedTuple):
    """The classes of numbers whose type is known, and the functions that make them."""

    number: type
    integer: type
    boolean: type
    operand: Callable[[Any], int]
    from_operand: Callable[[int], Any]
    integer_from_operand: Callable[[int], Any]
    boolean_from_operand: Callable[[int], Any]
    of_numpy: Callable[[], NumpyTypes]


class MixedTypes(NamedTuple):
    """What `mixed_types` makes.

    Attributes:
        number: the class of mixed numbers.
        from_operand: a mixed number, given its operand and the code of its type.
        like: what stands for one of several numbers, given those, the operand, and the code of the type.
        choice: the code of the type of one of two numbers, given the condition and both.
        code: the code of the type of a number, as a number that may be traced.
        in_memory: what stands for a number that lies in memory, as the code of its type does.
    """

    number: type
    from_operand: Callable[[int, Kind], Any]
    like: Callable[[Sequence[Any], int, Kind], Any]
    choice: Callable[[Callable[[], int], Any, Any], Kind]
    code: Callable[[Any], Any]
    in_memory: Callable[[int, int], Any]


def mixed_types(recorder: Recorder, numbers: Numbers) -> MixedTypes:
    """The classes of mixed numbers for one trace."""
    Number: Any = numbers.number
    Integer: Any = numbers.integer
    operand_of, from_operand = numbers.operand, numbers.from_operand
    new = object.__new__
    floats = frozenset({id(float), id(Number)})

    class MixedNumber(Number):  # type: ignore[misc]
        """A float or an int.  `_kind` gives the code of its type."""

        __slots__ = ("_kind", "_leaf")

        def __pos__(self) -> Any:
            return mixed(self._leaf, lambda: is_integer(self))

        def __neg__(self) -> Any:
            negative = emit(ops.NEGATE, self._leaf)
            return mixed(without_sign(negative, is_integer(self)), lambda: is_integer(self))

        def __abs__(self) -> Any:
            return mixed(emit(ops.ABSOLUTE, self._leaf), lambda: is_integer(self))

    class MixedInteger(Integer):  # type: ignore[misc]
        """An int or a bool."""

        __slots__ = ("_kind", "_leaf")

    def emit(code: int, a: int, b: int = ops.NO_OPERAND) -> int:
        return recorder.emit(code | ops.NUMBER, a, b)

    def mixed(operand: int, kind: Kind, cls: Any = MixedNumber) -> Any:
        number = new(cls)
        number._leaf, number._kind = operand, kind
        recorder.integer_results.append(operand)
        return number

    def without_sign(operand: int, is_int: int) -> int:
        """The number, with 0.0 instead of -0.0 if it is an int at run time."""
        recorder.integer_results.append(operand)
        positive = emit(ops.ADD, operand, recorder.constant(0.0))
        recorder.integer_results.append(positive)
        return recorder.select(is_int, positive, operand, ops.NUMBER)

    # ---- types --------------------------------------------------------------------------------------

    usual_kinds: dict[type, int | None] = {float: _FLOAT, int: _INTEGER, Number: _FLOAT, MixedNumber: None}
    #: By the identities of classes, to which there must be no more references (tracer/remains.py).
    kinds_of: dict[frozenset[int], frozenset[int | None]] = {}

    def kind_of_class(cls: type) -> int | None:
        if cls in usual_kinds:
            return usual_kinds[cls]
        if hasattr(cls, "_kind"):
            return None
        if getattr(cls, "of_numpy", "") or has_float64(cls):
            return _OF_NUMPY
        if issubclass(cls, (bool, numbers.boolean)):
            return _BOOLEAN
        return _INTEGER if issubclass(cls, (int, Integer, Counted)) else _FLOAT

    def known_kind(number: Any) -> int | None:
        """The code of the type of a number; None if it is known only at run time."""
        return kind_of_class(type(number))

    def code_of(number: Any) -> Any:
        code = known_kind(number)
        return from_operand(number._kind()) if code is None else float(code)

    def kind_of(number: Any) -> int:
        code = known_kind(number)
        if code and type(number) is not Counted:
            recorder.used_as_integers.add(operand_of(number))
        return int(number._kind()) if code is None else recorder.constant(code)

    def is_integer(number: Any) -> int:
        """The operand that is 1.0 where a number is an int or bool, and 0.0 where it is a float."""
        code = known_kind(number)
        if code is None:
            return emit(ops.NOT_EQUAL, number._kind(), recorder.constant(0.0))
        return recorder.constant(1.0 if code else 0.0)

    def both_integers(a: Any, b: Any) -> int:
        known = known_kind(a), known_kind(b)
        if None in known and any(known):  # one is known to be an int
            return is_integer(a if known[0] is None else b)
        return emit(ops.MULTIPLY, is_integer(a), is_integer(b))

    def like(candidates: Sequence[Any], operand: int, kind: Kind) -> Any:
        classes = frozenset(map(id, map(type, candidates)))
        if floats.issuperset(classes):
            return from_operand(operand)
        kinds = kinds_of.get(classes)
        if kinds is None:
            kinds = kinds_of[classes] = frozenset(map(kind_of_class, map(type, candidates)))
        if kinds == {_FLOAT}:
            return from_operand(operand)
        if _OF_NUMPY in kinds:
            return numbers.of_numpy().one_of(candidates, operand)
        if kinds == {_BOOLEAN}:
            return numbers.boolean_from_operand(operand)
        if _FLOAT not in kinds and all(isinstance(number, int) for number in candidates):
            recorder.used_as_integers.update(operand_of(n) for n in candidates if type(n) is not Counted)
            recorder.integer_results.append(operand)
            return numbers.integer_from_operand(operand) if kinds == {_INTEGER} else mixed(operand, kind, MixedInteger)
        return mixed(operand, kind)

    def choice(condition: Callable[[], int], chosen: Any, other: Any) -> Kind:
        return lambda: recorder.select(condition(), kind_of(chosen), kind_of(other), ops.NUMBER)

    # ---- arithmetic with ints -------------------------------------------------------------------------

    def binary(name: str, code: int) -> Callable[[Any, Any], Any]:
        of_floats = getattr(Number, name)
        reflected = name.startswith("__r")

        def method(self: Any, other: Any) -> Any:
            if type(other) is Number:
                mine, its = self._leaf, other._leaf
                return from_operand(emit(code, its, mine) if reflected else emit(code, mine, its))
            if not isinstance(other, (int, float)) or known_kind(other) in (_FLOAT, _OF_NUMPY):
                if type(other).__module__ == "numpy":
                    give_up("a number that is an int in some calls and a float in others meets one of numpy's")
                return of_floats(from_operand(self._leaf), other)
            a, b = self._leaf, operand_of(other)
            result = emit(code, b, a) if reflected else emit(code, a, b)
            if code == ops.MULTIPLY:
                result = without_sign(result, both_integers(self, other))
            return mixed(result, lambda: both_integers(self, other))

        return method

    def power(name: str) -> Callable[[Any, Any], Any]:
        of_floats = getattr(Number, name)

        def method(self: Any, other: Any) -> Any:
            base, exponent = (other, self) if name.startswith("__r") else (self, other)
            result = of_floats(from_operand(self._leaf), other)
            if result is NotImplemented or known_kind(other) == _FLOAT or (type(exponent) is int and exponent < 0):
                return result

            def kind() -> int:
                is_natural = emit(ops.LESS_EQUAL, recorder.constant(0.0), operand_of(exponent))
                return emit(ops.MULTIPLY, both_integers(base, exponent), is_natural)

            return mixed(operand_of(result), kind)

        return method

    for name, code in (("add", ops.ADD), ("sub", ops.SUBTRACT), ("mul", ops.MULTIPLY)):
        setattr(MixedNumber, f"__{name}__", binary(f"__{name}__", code))
        setattr(MixedNumber, f"__r{name}__", binary(f"__r{name}__", code))
    setattr(MixedNumber, "__pow__", power("__pow__"))  # noqa: B010 - as the others
    setattr(MixedNumber, "__rpow__", power("__rpow__"))  # noqa: B010
    for name in ("__truediv__", "__rtruediv__"):
        of_floats = getattr(Number, name)
        setattr(MixedNumber, name, lambda self, other, of=of_floats: of(from_operand(self._leaf), other))

    def in_memory(operand: int, code: int) -> Any:
        return mixed(operand, lambda: code)

    return MixedTypes(MixedNumber, mixed, like, choice, code_of, in_memory)
