"""The syntax of scalar C, shared by the C of kernels (c.py) and exported C (export/emitter.py).

Numbers are assigned to variables of the number type before they are used, so that functions that return a double are
rounded.  Floating-point constants are hexadecimal: no locale and no decimal rounding is involved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from ...engine.operations import COMPARISONS, OPERATIONS
from ...engine.precision import FLOAT64, Precision
from ...ir.program import Array, Loop
from .emitter import Emitter

LONG_INTEGERS = frozenset("lLqQ")
"""The struct codes of integers that a float64 may not hold: they are rounded to it first."""

BINARY = {name: one.symbol for name, one in OPERATIONS.items() if one.symbol and not one.compares}


def expression(
    operation: str,
    operands: Sequence[str],
    precision: Precision,
    call: Callable[[str, Sequence[str]], str],
    number: str = "real",
) -> str:
    """The C text of an operation.

    Args:
        call: makes the text of the call of a function. number: the C type of all numbers.
    """
    zero = float_literal(0.0, precision)
    if operation in BINARY:
        return f"{operands[0]} {BINARY[operation]} {operands[1]}"
    if operation in COMPARISONS:
        return f"({number})({operands[0]} {COMPARISONS[operation]} {operands[1]})"
    if OPERATIONS[operation].called:
        return call(operation, operands)
    if operation == "copy":
        return operands[0]
    if operation == "negate":
        return f"-({operands[0]})"
    if operation == "relu":
        return f"({operands[0]} < {zero} ? {zero} : {operands[0]})"
    if operation == "maximum":
        return f"({operands[1]} > {operands[0]} ? {operands[1]} : {operands[0]})"
    if operation == "minimum":
        return f"({operands[1]} < {operands[0]} ? {operands[1]} : {operands[0]})"
    assert operation == "select", operation
    return f"({operands[0]} != {zero} ? {operands[1]} : {operands[2]})"


class ScalarEmitter(Emitter):
    """Emits statements and loops as scalar C.

    Attributes:
        number: the C type of all numbers of the step.
        types: the C types of the elements of buffers, by struct code.
    """

    number = "real"
    types: Mapping[str, str]

    def call(self, operation: str, operands: Sequence[str]) -> str:
        """The text of the call of a mathematical function."""
        raise NotImplementedError

    def from_unsigned(self, text: str) -> str:
        """The text of a 64-bit unsigned integer converted to double."""
        raise NotImplementedError

    def expression(self, operation: str, operands: Sequence[str]) -> str:
        if operation == "select":
            # What is chosen from is read before: gcc before 12.4 and 13.3 vectorises conditional reads of memory with
            # the masks of other elements (PR tree-optimization/114375).
            operands = [operands[0], *(self.read(text) for text in operands[1:])]
        return expression(operation, operands, self.program.precision, self.call, self.number)

    def read(self, text: str) -> str:
        """A variable with the number of an operand, if that is an element of an array."""
        if "[" not in text:
            return text
        name = self.fresh("e")
        self.define(name, text)
        return name

    def constant(self, value: float) -> str:
        return float_literal(value, self.program.precision)

    def element(self, array: Array, index: str) -> str:
        text = f"{array.name}[{index}]"
        if self.type_of(array) == self.number:
            return text
        # Integers that do not fit a double are rounded to double first, as float(n) does in Python.
        if array.format in LONG_INTEGERS:
            text = self.from_unsigned(text) if array.format.isupper() else f"(double){text}"
        return f"({self.number}){text}"

    def type_of(self, array: Array) -> str:
        """The C type of the elements of an array."""
        other = array.space == "input" and array.format != self.program.precision.format
        return self.types[array.format] if other else self.number

    def place(self, array: Array, index: str) -> str:
        return f"{array.name}[{index}]"

    def choice(self, condition: str, first: str, rest: str) -> str:
        return f"({condition} ? {first} : {rest})"

    def define(self, name: str, value: str) -> None:
        self.line(f"{self.number} {name} = {value};")

    def assign(self, place: str, value: str) -> None:
        self.line(f"{place} = {value};")

    def open_loop(self, name: str, loop: Loop) -> None:
        count = self.iterations(loop)
        if loop.reverse:
            last = f"{count} - 1" if loop.bound is not None else str(loop.count - 1)
            self.line(f"for (long {name} = {last}; {name} >= 0; {name}--) {{")
        elif loop.bound is not None and loop.bound.table is not None:  # looked up once
            self.line(f"for (long {name} = 0, {name}_end = {count}; {name} < {name}_end; {name}++) {{")
        else:
            self.line(f"for (long {name} = 0; {name} < {count}; {name}++) {{")
        self.depth += 1

    def open_if(self, condition: str) -> None:
        self.line(f"if ({condition}) {{")
        self.depth += 1

    def open_else(self) -> None:
        self.depth -= 1
        self.line("} else {")
        self.depth += 1

    def close(self) -> None:
        self.depth -= 1
        self.line("}")

    def integer(self, text: str) -> str:
        return f"(long)({text})"


def float_literal(value: float, precision: Precision = FLOAT64) -> str:
    """A C literal with exactly this value, which must be representable in the precision."""
    suffix = "" if precision is FLOAT64 else "f"
    if value != value:
        return f"(0.0{suffix} / 0.0{suffix})"
    if math.isinf(value):
        return f"({'' if value > 0 else '-'}1.0{suffix} / 0.0{suffix})"
    if value == int(value) and abs(value) < 1e15:
        text = f"{int(value)}.0{suffix}"
        return f"-{text.lstrip('-')}" if math.copysign(1.0, value) < 0 else text
    return value.hex() + suffix
