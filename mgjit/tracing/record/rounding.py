"""C library functions of traced numbers, and the operations based on them: rounding, `//`, `%` and `divmod`.

`x % y` is fmod(x, y), plus y if the signs differ; `x // y` follows from it.  For ints both are exact,
and an int has no -0.0.  For floats they are what CPython computes (Objects/floatobject.c), operation by operation.
"""

from __future__ import annotations

from typing import Any, Callable

from ...engine.library import is_exact
from ...engine.value import Value
from ...errors import TraceError, user_location
from ...ir import opcodes as ops
from .mixed import Numbers
from .ranges import range_of_quotient, range_of_remainder
from .recorder import Recorder

_CODES = {name: code | ops.NUMBER for name, code in ops.LIBRARY_CODES.items()}


def rounding_methods(
    recorder: Recorder, numbers: Numbers, is_integer: Callable[[Any], bool]
) -> dict[str, Callable[..., Any]]:
    """The methods of traced numbers for one trace.

    Args:
        is_integer: whether something is known to be an int.
    """
    operand_of, from_operand = numbers.operand, numbers.from_operand
    zero = recorder.constant

    def emit(code: int, a: int, b: int = ops.NO_OPERAND) -> int:
        return recorder.emit(code | ops.NUMBER, a, b)

    def select(condition: int, chosen: int, other: int) -> int:
        return recorder.select(condition, chosen, other, ops.NUMBER)

    def is_less(a: int, b: int) -> int:
        return emit(ops.LESS, a, b)

    # ---- functions ----------------------------------------------------------------------------------

    def called(name: str, *operands: Any) -> int:
        if not is_exact(name):
            raise TraceError(
                f"{user_location()}: this Python computes math.{name} in its own way, so that a compiled step would "
                "not give the same bits. Compute it outside of the step and pass the number as an argument."
            )
        return emit(_CODES[name], *map(operand_of, operands))

    def library(self: Any, name: str, operands: tuple[Any, ...]) -> Any:
        if any(isinstance(operand, Value) for operand in operands):
            raise TraceError(
                f"{user_location()}: math.{name} has no derivative here. Take it of the number, math.{name}(x.data), "
                "or write it with exp, log, tanh and sqrt."
            )
        return from_operand(called(name, *operands))

    def whole(name: str) -> Callable[..., Any]:
        def method(self: Any, digits: Any = None) -> Any:
            if is_integer(self) and (digits is None or (type(digits) is int and digits >= 0)):
                return +self
            if digits is not None:
                raise TraceError(
                    f"{user_location()}: round(x, digits) rounds decimal digits, which compiled steps do not. Round "
                    "the number that the step returns, outside of it."
                )
            recorder.has_undefined_integers = True
            rounded = called(name, self)
            result = emit(ops.ADD, rounded, zero(0.0))  # an int is never -0.0
            recorder.integer_results += [rounded, result]
            return numbers.integer_from_operand(result)

        return method

    # ---- division -----------------------------------------------------------------------------------

    def signs_differ(a: int, b: int) -> int:
        return emit(ops.NOT_EQUAL, is_less(a, zero(0.0)), is_less(b, zero(0.0)))

    def note(result: int, found: range | None) -> None:
        if found is not None:
            recorder.known_integers[result] = found

    def remainder(a: int, b: int, of_integers: bool) -> int:
        rest = emit(_CODES["fmod"], a, b)
        moved = emit(ops.ADD, rest, b)
        chosen = select(signs_differ(b, rest), moved, rest)
        result = select(rest, chosen, zero(0.0) if of_integers else emit(_CODES["copysign"], zero(0.0), b))
        if of_integers:
            recorder.integer_results += [rest, moved, chosen, result]
            note(result, range_of_remainder(recorder, a, b))
        return result

    def quotient(a: int, b: int, of_integers: bool) -> int:
        if of_integers:
            whole = emit(ops.SUBTRACT, a, remainder(a, b, True))
            exact = emit(ops.DIVIDE, whole, b)
            result = emit(ops.ADD, exact, zero(0.0))
            recorder.integer_results += [whole, exact, result]
            note(result, range_of_quotient(recorder, a, b))
            return result
        rest = emit(_CODES["fmod"], a, b)
        ratio = emit(ops.DIVIDE, emit(ops.SUBTRACT, a, rest), b)
        ratio = select(rest, select(signs_differ(b, rest), emit(ops.SUBTRACT, ratio, zero(1.0)), ratio), ratio)
        floor = emit(_CODES["floor"], ratio)
        is_above = is_less(zero(0.5), emit(ops.SUBTRACT, ratio, floor))
        floor = select(is_above, emit(ops.ADD, floor, zero(1.0)), floor)
        return select(ratio, floor, emit(_CODES["copysign"], zero(0.0), emit(ops.DIVIDE, a, b)))

    def divided(compute: Callable[[int, int, bool], int], reflected: bool) -> Callable[[Any, Any], Any]:
        def method(self: Any, other: Any) -> Any:
            if isinstance(other, Value) or not isinstance(other, (int, float)):
                return NotImplemented
            if any(hasattr(type(number), "_kind") for number in (self, other)):
                raise TraceError(
                    f"{user_location()}: // and % of a number that is an int or a float, depending on the numbers of "
                    "the step, are not available. Write 0.0 instead of 0, so that it is a float in both cases."
                )
            of_integers = is_integer(self) and is_integer(other)
            operands = (operand_of(other), operand_of(self)) if reflected else (operand_of(self), operand_of(other))
            for name in ("fmod",) if of_integers else ("fmod", "floor", "copysign"):
                if not is_exact(name):
                    raise TraceError(f"{user_location()}: this Python computes // and % of floats in its own way.")
            result = compute(*operands, of_integers)
            if not of_integers:
                return from_operand(result)
            recorder.has_undefined_integers = True
            recorder.used_as_integers.update(operands)
            return numbers.integer_from_operand(result)

        return method

    def both(reflected: bool) -> Callable[[Any, Any], Any]:
        first, second = divided(quotient, reflected), divided(remainder, reflected)

        def method(self: Any, other: Any) -> Any:
            found = first(self, other)
            return found if found is NotImplemented else (found, second(self, other))

        return method

    return {
        "_library": library,
        "__floor__": whole("floor"), "__ceil__": whole("ceil"), "__trunc__": whole("trunc"), "__round__": whole("rint"),
        "_as_integer": whole("trunc"),
        "__mod__": divided(remainder, False), "__rmod__": divided(remainder, True),
        "__floordiv__": divided(quotient, False), "__rfloordiv__": divided(quotient, True),
        "__divmod__": both(False), "__rdivmod__": both(True),
    }  # fmt: skip
