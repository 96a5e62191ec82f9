"""Traced elements of numpy's arrays of ints and bools.

In plain Python they are `numpy.uint8`, `numpy.int64`, `numpy.bool`.  Next to a float, or in a division, they become
`numpy.float64`; computed with among themselves and with ints, they wrap around and keep their types.  So

1. arithmetic with floats, and division, is that of the float64 with their number;
2. comparisons give numpy's bools, indices and keys are as of ints;
3. a class that is not numpy's gets what numpy gives to it: the int;
4. all else (arithmetic with ints, bits, results and assignments) ends the trace with a PlainCall.  `int(x)` and
   `float(x)` are numbers of Python's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ...engine.kinds import INTEGER_FORMATS
from ...engine.leaks import Symbol, Traced
from ...engine.value import Value
from ...tensor.tensor import Tensor

if TYPE_CHECKING:
    from .mixed import Numbers

_BINARY = ("add", "sub", "mul", "truediv")
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_SWAPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
#: What numpy computes with its ints, in as many bits as they have.
_OF_NUMPY = (
    *("floordiv", "rfloordiv", "mod", "rmod", "divmod", "rdivmod", "matmul", "rmatmul"),
    *("pow", "rpow", "neg", "pos", "abs", "round"),
    *("invert", "and", "rand", "or", "ror", "xor", "rxor", "lshift", "rlshift", "rshift", "rrshift"),
)
#: Modules whose numbers, and whatever is made of numbers, numpy knows.
_WITH_NUMBERS = ("builtins", "numpy", "fractions", "decimal")
_BOOLEAN = INTEGER_FORMATS.index("?")


def numpy_integers(
    numbers: Numbers,
    float64: Callable[[int], Any],
    boolean: Callable[[int], Any],
    give_up: Callable[[str], Any],
    of_numpy: Callable[[str], Any],
) -> tuple[type, Callable[[int, int], Any]]:
    """The class for one trace, and the function that makes one of an operand and a place in `INTEGER_FORMATS`.

    Args:
        float64, boolean: make those of an operand.
    """
    Integer: Any = numbers.integer
    integer_from = numbers.integer_from_operand
    new = object.__new__

    class Whole(Integer):  # type: ignore[misc]
        """An element of an array of ints or bools."""

        __slots__ = ("_format",)
        __class__ = property(lambda self: of_numpy("dtype")(INTEGER_FORMATS[self._format]).type)
        of_numpy = "integer"
        is_certain, may_be_int = True, True

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or not hasattr(self.__class__, name):
                raise AttributeError(name)
            return self.item if name == "tolist" else give_up(f"it asks for .{name} of {named(self)}")

        def item(self) -> Any:
            """As an int or bool."""
            return plain(self)

        numerator = property(lambda self: give_up(f"it asks for .numerator of {named(self)}"))
        real = property(lambda self: give_up(f"it asks for .real of {named(self)}"))

    def whole(operand: int, format: int) -> Any:
        number = new(Whole)
        number._leaf, number._format = operand, format
        return number

    def named(number: Any) -> str:
        return f"a numpy.{number.__class__.__name__}"

    def plain(number: Any) -> Any:
        return (numbers.boolean_from_operand if number._format == _BOOLEAN else integer_from)(number._leaf)

    def is_float(other: Any) -> bool:
        return isinstance(other, float) and not getattr(other, "may_be_int", hasattr(type(other), "_kind"))

    def binary(name: str, is_reflected: bool) -> Callable[[Any, Any], Any]:
        method_name = f"__{'r' * is_reflected}{name}__"

        def method(self: Any, other: Any) -> Any:
            kind = type(other)
            if is_float(other):
                result = getattr(float64(self._leaf), method_name)(other)
                if result is NotImplemented:  # of a Value's data
                    result = getattr(float64(self._leaf), method_name)(other._as_float())
                return result
            if issubclass(kind, Symbol):
                return getattr(integer_from(self._leaf), method_name)(other)
            if issubclass(kind, (Value, Tensor)):
                return NotImplemented
            if name == "mul" and isinstance(other, (list, tuple, str, bytes)) and self._format != _BOOLEAN:
                return other * self.__index__()
            if name == "truediv" and kind in (int, Integer, Whole):
                mine, its = float64(self._leaf), float64(other._leaf) if kind is Whole else other
                return getattr(mine, method_name)(its)
            is_known = issubclass(kind, Traced) or isinstance(other, (int, float, complex, list, tuple, str, bytes))
            if is_known or kind.__module__ == "numpy" or is_reflected:
                return give_up(
                    f"it computes with {named(self)} and {described(other)}, in as many bits as that has. Write int(x) "
                    "or float(x), or pass x.tolist()"
                )
            return by_other(f"__{name}__", self, plain(self), other)

        return method

    def comparison(name: str) -> Callable[[Any, Any], Any]:
        def method(self: Any, other: Any) -> Any:
            its = integer_from(other._leaf) if type(other) is Whole else other
            if type(its).__module__ == "numpy":
                return give_up(f"it compares {named(self)} with {described(other)}. Write int(x)")
            result = getattr(integer_from(self._leaf), f"__{name}__")(its)
            if result is NotImplemented and isinstance(its, float):  # one of numpy's
                result = getattr(its, f"__{_SWAPPED[name]}__")(integer_from(self._leaf))
            return result if result is NotImplemented else boolean(result._leaf)

        return method

    def refused(name: str) -> Callable[..., Any]:
        return lambda self, *others: give_up(f"numpy computes __{name}__ of {named(self)} in its own way. Write int(x)")

    for name in _BINARY:
        setattr(Whole, f"__{name}__", binary(name, False))
        setattr(Whole, f"__r{name}__", binary(name, True))
    for name in _COMPARISONS:
        setattr(Whole, f"__{name}__", comparison(name))
    for name in _OF_NUMPY:
        setattr(Whole, f"__{name}__", refused(name))
    setattr(Whole, "__hash__", Integer.__hash__)  # noqa: B010 - as the others
    return Whole, whole


def by_other(name: str, mine: Any, plain: Any, other: Any) -> Any:
    """What an operator of a scalar of numpy's does with an object of another class: that gets a number of Python's.

    Args:
        mine: the scalar. plain: the number of Python's.
    """
    kind = type(other)
    if issubclass(kind, (Value, Tensor, Traced)) or kind.__module__ in _WITH_NUMBERS:
        return NotImplemented
    reflected: Any = getattr(kind, f"__r{name[2:]}", None)
    if reflected is None:
        return NotImplemented
    is_asked = hasattr(kind, "__array_ufunc__") or hasattr(kind, "__array_priority__")
    return reflected(other, mine if is_asked else plain)


def described(other: Any) -> str:
    """The type of an operand, for people."""
    name = other.__class__.__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
