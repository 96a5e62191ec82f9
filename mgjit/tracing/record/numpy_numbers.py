"""Traced numbers that are of numpy's type float64 in plain Python.

Elements of arrays, numpy's scalars and results of its functions are `numpy.float64`.  That is a float which computes as
floats do, with another type: `repr` shows it, comparisons give numpy's bools, and CPython's `sum` adds such numbers
one by one where it compensates for what floats lose.  So a traced number has that type wherever plain Python's has:

1. What is computed from one of them and other numbers is one of them.
2. One of a float64 and another number, as the step's numbers decide, is a `Uncertain`: what is computed from it and a
   float64 is certain again, and it has no place in what a step returns or leaves.
3. Whatever numpy computes in another way than Python does, and its other types, end the trace with a PlainCall.

The functions of numpy themselves are in numpy_functions.py, elements of arrays of ints in numpy_integers.py.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, NoReturn

from ...engine.kinds import is_float64
from ...engine.leaks import PlainCall, Symbol, Traced
from ...engine.value import Value
from ...errors import user_location
from .numpy_integers import by_other, numpy_integers

if TYPE_CHECKING:
    from .mixed import Numbers

#: Types of numpy whose numbers become float64 next to a float.
_WHOLE = ("integer", "bool", "bool_")
_BINARY = ("add", "sub", "mul", "truediv", "pow")
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
#: What numpy's float64 computes by algorithms of its own.
_OF_NUMPY = ("floordiv", "rfloordiv", "mod", "rmod", "divmod", "rdivmod", "matmul", "rmatmul")
_OF_BOOLEANS = (
    *("add", "radd", "sub", "rsub", "truediv", "rtruediv", "pow", "rpow", "and", "rand", "or", "ror", "xor", "rxor"),
    *("neg", "pos", "abs", "invert", "int", "float", "round", "lt", "le", "gt", "ge", *_OF_NUMPY),
)


class NumpyTypes(NamedTuple):
    """What `numpy_types` makes.

    Attributes:
        number: the class of traced numbers that are float64.
        boolean: that of their comparisons.
        leaf: that of float64 in memory which the step may overwrite.
        narrow: that of floats of fewer bits.
        integer: that of elements of arrays of ints and bools.
        integer_from_operand: one of those, given its operand and its format, a place in `INTEGER_FORMATS`.
        from_operand: a float64, given its operand.
        boolean_from_operand: a comparison, given its operand.
        one_of: one of several numbers, of which some are float64, given those and the operand.
        beside: the result of an operation of a float and a scalar of numpy, given those two and that of two floats.
    """

    number: type
    boolean: type
    leaf: type
    narrow: type
    integer: type
    from_operand: Callable[[int], Any]
    integer_from_operand: Callable[[int, int], Any]
    boolean_from_operand: Callable[[int], Any]
    one_of: Callable[[Any, int], Any]
    beside: Callable[[Any, Any, Callable[[Any, Any], Any]], Any]


def has_float64(kind: Any) -> bool:
    """Whether a type is numpy's float64, or that of a traced number that is one."""
    return getattr(kind, "of_numpy", "") == "float64" if issubclass(kind, Traced) else is_float64(kind)


def give_up(what: str) -> NoReturn:
    """Let the call run as plain Python.

    Raises:
        PlainCall: always.
    """
    raise PlainCall(f"{user_location()}: {what}")


def of_numpy(name: str) -> Any:
    """One of numpy's names; it has been imported wherever there is a number of its types."""
    return getattr(sys.modules["numpy"], name)


def as_plain(number: Any) -> Any:
    """The float or int that computes next to a float as a scalar of numpy does.

    Raises:
        PlainCall: it is an array, or a number that computes in another way.
    """
    kind = type(number)
    if kind.__name__ == "float64":
        return float(number)
    if any(base.__name__ in _WHOLE for base in kind.__mro__):
        return int(number)
    what = "a whole array" if getattr(number, "shape", ()) else f"a numpy.{kind.__name__}"
    return give_up(
        f"it computes with {what}, which numpy does in its own way. mgjit compiles what is computed with single "
        "floats: pass x.tolist(), or write float(x)"
    )


def numpy_types(numbers: Numbers, leaf_class: type, note: Callable[[], None]) -> NumpyTypes:
    """The classes for one trace.

    Args:
        leaf_class: of numbers in memory that the step may overwrite.
        note: called when there is such a number.
    """
    Number: Any = numbers.number
    Boolean: Any = numbers.boolean
    from_operand, operand_of = numbers.from_operand, numbers.operand
    new = object.__new__

    class Float64(Number):  # type: ignore[misc]
        """A float64."""

        __slots__ = ()
        __class__ = property(lambda self: of_numpy("float64"))
        of_numpy = "float64"
        is_certain, may_be_int = True, False

        def __pos__(self) -> Any:
            return made(self._leaf, self)

        def __neg__(self) -> Any:
            return made(operand_of(-from_operand(self._leaf)), self)

        def __abs__(self) -> Any:
            return made(operand_of(abs(from_operand(self._leaf))), self)

        def __round__(self, digits: Any = None) -> Any:
            if digits is not None:
                give_up("numpy rounds to digits in its own way. Round the number that the step returns")
            return from_operand(self._leaf).__round__()

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or not hasattr(of_numpy("float64"), name):
                raise AttributeError(name)
            return self.item if name == "tolist" else give_up(f"it asks for .{name} of a numpy.float64")

        def item(self) -> Any:
            """As a float."""
            return from_operand(self._leaf)

    class Uncertain(Float64):
        """A float64 or a float."""

        __slots__ = ()
        is_certain = False

    class UncertainInteger(Uncertain):
        """A float64 or a float, or an int, which has no sign of zero."""

        __slots__ = ()
        may_be_int = True

        def __neg__(self) -> Any:
            return give_up("the sign of a number that is numpy's in some calls and an int in others")

    class Float64Leaf(leaf_class, Float64):  # type: ignore[misc]
        """One in memory that the step may overwrite."""

        __slots__ = ()

    class Narrow(Number):  # type: ignore[misc]
        """A float32: plain Python may round what is computed with it, and Values and float() take it."""

        __slots__ = ()
        __class__ = property(lambda self: of_numpy("float32"))
        of_numpy = "narrow"
        is_certain = False

    class NumpyBoolean(Boolean):  # type: ignore[misc]
        """A comparison with a float64: as a condition it is a bool, and arithmetic is numpy's."""

        __slots__ = ()
        __class__ = property(lambda self: type(of_numpy("True_")))
        of_numpy = "bool"
        is_certain, may_be_int = True, False

        def __mul__(self, other: Any) -> Any:
            if not isinstance(other, float):
                return give_up("it computes with a comparison of numpy's. Write `1.0 if test else 0.0`")
            product = from_operand(self._leaf) * other_of(self, other)
            return product if product is NotImplemented else float64(operand_of(product))

        __rmul__ = __mul__

    class UncertainBoolean(NumpyBoolean):
        """A comparison of numpy's or of Python's."""

        __slots__ = ()
        is_certain = False

    def float64(operand: int) -> Any:
        note()
        number = new(Float64)
        number._leaf = operand
        return number

    def boolean(operand: int) -> Any:
        number = new(NumpyBoolean)
        number._leaf = operand
        return number

    def made(operand: int, *parts: Any) -> Any:
        """What is computed from these, of which one is a float64 or an uncertain one."""
        if any(has_float64(type(part)) and getattr(part, "is_certain", True) for part in parts):
            return float64(operand)
        number: Any = new(Uncertain)
        number._leaf = operand
        return number

    def one_of(candidates: Any, operand: int) -> Any:
        kinds = set(map(type, candidates))
        if Whole in kinds:
            formats = {getattr(part, "_format", -1) for part in candidates}
            if len(formats) > 1:
                give_up("one of numpy's ints and of other numbers is chosen, whose types differ")
            return whole(operand, formats.pop())
        if all(has_float64(kind) and getattr(kind, "is_certain", True) for kind in kinds):
            return float64(operand)
        if all(issubclass(kind, Boolean) for kind in kinds):
            number = new(NumpyBoolean if kinds == {NumpyBoolean} else UncertainBoolean)
            number._leaf = operand
            return number
        if any(hasattr(kind, "_kind") or kind is Narrow for kind in kinds) or any(
            isinstance(part, bool) for part in candidates
        ):
            give_up("one of numpy's numbers and of others is chosen, whose types differ")
        has_int = any(isinstance(part, int) or getattr(part, "may_be_int", False) for part in candidates)
        number = new(UncertainInteger if has_int else Uncertain)
        number._leaf = operand
        return number

    def other_of(mine: Any, other: Any) -> Any:
        """The other operand, for arithmetic of floats; NotImplemented if it is for that to compute."""
        kind = type(other)
        if issubclass(kind, Float64):
            found = from_operand(other._leaf)
        elif issubclass(kind, Boolean) or kind is bool:
            return give_up("it computes with a number of numpy's and a bool. Write `1.0 if test else 0.0`")
        elif issubclass(kind, (list, tuple, str, bytes)):
            return give_up("numpy makes an array of the list that it computes with")
        elif kind.__module__ == "numpy":
            return as_plain(other)
        else:
            found = other
        whole = (
            issubclass(kind, (int, UncertainInteger))
            or hasattr(kind, "_kind")
            or (issubclass(kind, Traced) and isinstance(other, int))
        )
        if mine.may_be_int and whole:
            give_up("it computes with a number that is numpy's in some calls and an int in others")
        return found

    def binary(name: str) -> Callable[[Any, Any], Any]:
        of_floats = getattr(Number, name)

        def method(self: Any, other: Any) -> Any:
            if type(other) is float or type(other) is Number:
                result = of_floats(from_operand(self._leaf), other)
            elif issubclass(type(other), Symbol):
                return of_floats(from_operand(self._leaf), other)
            else:
                result = of_floats(from_operand(self._leaf), other_of(self, other))
            if result is NotImplemented and not name.startswith("__r"):
                return by_other(name, self, from_operand(self._leaf), other)
            return result if result is NotImplemented else made(operand_of(result), self, other)

        return method

    def comparison(name: str) -> Callable[[Any, Any], Any]:
        of_floats = getattr(Number, name)

        def method(self: Any, other: Any) -> Any:
            result = of_floats(from_operand(self._leaf), other_of(self, other))
            return result if result is NotImplemented else boolean(result._leaf)

        return method

    def refused(name: str) -> Callable[..., Any]:
        return lambda self, *others: give_up(f"numpy computes __{name}__ of its numbers in its own way")

    def rounded(self: Any, *others: Any) -> Any:
        if any(issubclass(type(other), Value) for other in others):
            return NotImplemented
        return give_up(
            "it computes with a numpy.float32, or one of fewer bits, as numpy rounds it. Pass x.astype(float) or "
            "x.tolist(), or write float(x)"
        )

    def beside(self: Any, other: Any, compute: Callable[[Any, Any], Any]) -> Any:
        plain = as_plain(other)
        if hasattr(type(self), "_kind"):
            give_up("a number that is an int in some calls and a float in others meets one of numpy's")
        result = compute(from_operand(operand_of(self)), plain)
        if result is NotImplemented:
            return result
        if issubclass(type(result), Boolean):
            return boolean(result._leaf)
        if isinstance(self, int) and type(other).__name__ != "float64":
            give_up(f"it computes with an int and a numpy.{type(other).__name__}, whose ints have few bits")
        return float64(operand_of(result))

    for name in _BINARY:
        setattr(Float64, f"__{name}__", binary(f"__{name}__"))
        setattr(Float64, f"__r{name}__", binary(f"__r{name}__"))
    for name in _COMPARISONS:
        setattr(Float64, f"__{name}__", comparison(f"__{name}__"))
    for name in _OF_NUMPY:
        setattr(Float64, f"__{name}__", refused(name))
    for name in (*_BINARY, *(f"r{name}" for name in _BINARY), *_COMPARISONS, *_OF_NUMPY, "neg", "abs", "round"):
        setattr(Narrow, f"__{name}__", rounded)
    for name in _OF_BOOLEANS:
        setattr(NumpyBoolean, f"__{name}__", refused(name))
    for kind in (Float64, NumpyBoolean, Narrow):
        setattr(kind, "__hash__", Number.__hash__)  # noqa: B010 - as the others
    Whole, whole = numpy_integers(numbers, float64, boolean, give_up, of_numpy)
    return NumpyTypes(
        Float64, NumpyBoolean, Float64Leaf, Narrow, Whole, float64, whole, boolean, one_of, beside
    )  # fmt: skip


def as_result(number: Any) -> type | None:
    """What makes of a float the number that plain Python returns or leaves; None for what is not numpy's.

    Raises:
        PlainCall: it is numpy's in some calls only.
    """
    how = getattr(type(number), "of_numpy", "")
    if not how:
        return None
    if how == "integer":
        give_up(f"it returns or keeps a numpy.{number.__class__.__name__}. Write int(x) or float(x)")
    if not getattr(number, "is_certain", True):
        give_up("what the step returns or keeps is a numpy.float64 in some calls and a float in others")
    kind: type = number.__class__
    return kind
