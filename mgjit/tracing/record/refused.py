"""What traced numbers and Values cannot answer, and what to write instead."""

from __future__ import annotations

from typing import Any, Callable

from ...engine.leaks import PlainCall
from ...errors import TraceError, user_location

_EXPLANATIONS = {
    "bool": "a traced value has no truth value: its number is known only when the compiled step runs. "
    "Write a conditional expression (`a if test else b`), mgjit.where(test, a, b), max or min. Where numbers are "
    "sorted, searched or looked up by their value: return them, and do that outside of the step",
    "float": "a number of the step is known only when the compiled step runs. Call a function of math by a name "
    "(f(x), or map(f, xs)), not by a partial or key=; write x.data for float(x) of a Value, and do the rest outside of "
    "the step",
    "int": "int() and rounding need a real number. Compute the integer outside of the step and pass it as an argument",
    "index": "a run-time number cannot be a list index, a key, a length or a range. Use mgjit.take(table, index), "
    "or name the argument in @mgjit.compile(static=(...)) when few different values occur",
    "pickle": "a traced value cannot be pickled. Return it from the step and pickle the result",
    "format": "a traced value has no digits to print. Return it from the step and print the result",
    "floor": "//, % and divmod of Values have no derivative. Compute with their numbers, x.data",
    "bits": "bit operations are not available on traced values. Compute them outside of the step",
}


def refuse(reason: str) -> Callable[..., Any]:
    """A method that raises a TraceError saying why a traced value cannot answer, and what to write."""

    def method(self: Any, *_: Any) -> Any:
        raise TraceError(f"{user_location()}: {_EXPLANATIONS[reason]}.")

    return method


REFUSED = {
    "__bool__": "bool", "__float__": "float", "__complex__": "float", "__int__": "int", "__round__": "int",
    "__trunc__": "int", "__floor__": "int", "__ceil__": "int", "__index__": "index", "__format__": "format",
    "__floordiv__": "floor", "__rfloordiv__": "floor", "__mod__": "floor", "__rmod__": "floor",
    "__divmod__": "floor", "__rdivmod__": "floor", "__and__": "bits", "__rand__": "bits", "__or__": "bits",
    "__ror__": "bits", "__xor__": "bits", "__rxor__": "bits", "__lshift__": "bits", "__rlshift__": "bits",
    "__rshift__": "bits", "__rrshift__": "bits", "__invert__": "bits",
}  # fmt: skip


def attribute_of_number(number: Any, name: str) -> Any:
    """What floats and ints have besides what can be recorded: methods such as `n.bit_length()`.

    Args:
        number: a traced one.

    Raises:
        AttributeError: they have no such attribute.
        PlainCall: it is no method, and needs the number itself.
    """
    kind: Any = number.__class__
    if not hasattr(kind, name):
        raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")
    found = getattr(kind, name)
    if getattr(found, "__self__", None) is kind:  # a method of the class
        return found

    def need(*_: Any) -> Any:
        if issubclass(kind, int):  # of which there are as many traces as it has values
            number._fix(True)
        raise PlainCall(f"the step uses {kind.__name__}.{name}, which needs the number itself")

    return need if callable(found) else need()


def not_implemented(other: Any) -> Any:
    """What an operator of a traced number says to an operand that is no number.

    Raises:
        PlainCall: it is a complex number.
    """
    if isinstance(other, complex):
        raise PlainCall("the step computes with complex numbers")
    return NotImplemented
