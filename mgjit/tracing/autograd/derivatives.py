"""Check whether a factor that a class computes itself is the derivative that simplify/differentiate.py would emit.

The products of factor and gradient must be equal bit for bit, so only the same operations on the same operands count:
for `x ** n`, for example, `n * x ** (n - 1)` does, but `x ** n * n / x` does not.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from ...ir import opcodes as ops
from ..record.recorder import Recorder

#: Expressions are compared up to this depth.
_DEPTH = 4
_BOTH = frozenset({ops.ADD, ops.SUBTRACT, ops.MULTIPLY})
_FIRST = frozenset({ops.POWER, ops.EXP, ops.LOG, ops.TANH, ops.NEGATE})
_COMMUTATIVE = ops.opcodes(lambda one: one.commutes)
SUM, PRODUCT, _POWER = ops.ADD | ops.NUMBER, ops.MULTIPLY | ops.NUMBER, ops.POWER | ops.NUMBER


#: Where a gradient goes: the node, the operand that is its data, what the gradient is multiplied with or divided by,
#: whether it is divided, and the number of the edge in its flow.
Edge = tuple[Any, int, int, bool, int]


class Derivatives:
    """Compares factors with derivatives, in one trace.

    Args:
        crossed: operands through which a gradient flows, or will flow.
    """

    def __init__(self, recorder: Recorder, crossed: set[int]) -> None:
        self._recorder, self._crossed = recorder, crossed
        self._one = recorder.constant_before(1.0)
        self._both = self._a, self._b = recorder.a, recorder.b
        self._op, self._first, self._second = recorder.op, (recorder.a,), (recorder.b,)

    def columns(self, record: int, edges: Sequence[Edge]) -> Sequence[array[int]] | None:
        """For each edge, the column of its operand; None if the edges are not the derivatives of the operation.

        Args:
            record: an operation on plain numbers; others never fit.
            edges: one or more.
        """
        code = self._op[record] - ops.NUMBER if record >= 0 else -1
        if code < 0:
            return None
        recorder = self._recorder
        selected = self._selected_by_relu(record) if code == ops.SELECT else None
        if selected is not None:
            _, operand, factor, divides, _ = edges[0]
            if len(edges) > 1 or divides or operand != selected or not self._is_of_relu(record, selected, factor):
                return None
            recorder.op[record], recorder.a[record], recorder.b[record] = ops.RELU, selected, ops.NO_OPERAND
            del recorder.third[record]
            return [recorder.a]
        free = [recorder.a, recorder.b] if code in _BOTH else [recorder.a] if code in _FIRST else []
        columns = []
        for _, operand, factor, divides, _ in edges:
            for column in free:
                fits = column[record] == operand and divides == (code == ops.LOG)
                if fits and self._fits(code, record, column, factor):
                    break
            else:
                return None
            columns.append(column)
            free = [other for other in free if other is not column]
        for column in free:
            if self._is_crossed(column[record]):
                return None  # a gradient would flow where there is no edge
        if code == ops.SUBTRACT and columns and columns[0] is recorder.b and edges[0][1] == edges[-1][1]:
            return None  # for `x - x`, the contribution of the first operand must come first
        return columns

    def of_usual_form(self, record: int, edges: Sequence[Edge]) -> Sequence[array[int]] | None:
        """As `columns`, at once for nearly all sums and products; None for others."""
        code = self._op[record] if record >= 0 else -1
        if code != SUM and code != PRODUCT:
            return None
        a, b, one = self._a[record], self._b[record], self._one
        _, operand, factor, divides, _ = edges[0]
        is_first = operand == a
        if divides or factor != (one if code == SUM else b if is_first else a):
            return None
        if len(edges) == 2 and is_first:
            _, operand, factor, divides, _ = edges[1]
            fits = operand == b and not divides and factor == (one if code == SUM else a)
            return self._both if fits else None
        if len(edges) > 1 or not (is_first or operand == b) or self._is_crossed(b if is_first else a):
            return None
        return self._first if is_first else self._second

    def take(self, record: int) -> None:
        """Make a record one through which gradients flow."""
        before = self._op[record]
        self._op[record] = before & ~ops.NUMBER
        if before == _POWER:
            lines, exponent = self._recorder.power_lines, self._b[record]
            if (before, exponent) in lines:
                lines.setdefault((ops.POWER, exponent), lines[before, exponent])

    def _is_crossed(self, operand: int) -> bool:
        if operand in self._crossed:
            return True
        if operand < 0:
            return ops.leaf_kind(operand) in (ops.PARAMETER, ops.LOCAL)
        return self._recorder.op[operand] < ops.NUMBER

    # ---- the derivatives --------------------------------------------------------------------------

    def _fits(self, code: int, record: int, column: array[int], factor: int) -> bool:
        recorder = self._recorder
        first, second = recorder.a[record], recorder.b[record]
        if code == ops.ADD:
            return self._is(factor, 1.0)
        if code == ops.SUBTRACT:
            return self._is(factor, 1.0 if column is recorder.a else -1.0)
        if code == ops.NEGATE:
            return self._is(factor, -1.0)
        if code == ops.MULTIPLY:
            return self._same(factor, second if column is recorder.a else first)
        if code == ops.LOG:
            return self._same(factor, first)
        if code == ops.EXP:
            return self._same(factor, record)
        if code == ops.TANH:
            return self._is_one_minus_square(factor, record)
        return self._is_of_power(factor, first, second)

    def _is_of_power(self, factor: int, base: int, exponent: int) -> bool:
        """`n * x ** (n - 1)`, and `n * x` where n is 2."""
        number = self._number(exponent)
        parts = self._parts(factor, ops.MULTIPLY)
        if number is None or parts is None:
            return False
        rounded = self._recorder.precision.rounded
        if rounded(rounded(number) - 1.0) != rounded(number - 1.0):
            return False  # in float32, the two exponents may differ
        return any(
            self._is(n, number) and self._is_power(power, base, number - 1.0) for n, power in (parts, parts[::-1])
        )

    def _is_power(self, operand: int, base: int, exponent: float) -> bool:
        parts = self._parts(operand, ops.POWER)
        if parts is None:
            return exponent == 1.0 and self._same(operand, base)
        return self._same(parts[0], base) and self._is(parts[1], exponent)

    def _is_one_minus_square(self, factor: int, record: int) -> bool:
        difference = self._parts(factor, ops.SUBTRACT)
        square = self._parts(difference[1], ops.MULTIPLY) if difference is not None else None
        if difference is None or square is None:
            return False
        return self._is(difference[0], 1.0) and all(self._same(part, record) for part in square)

    def _selected_by_relu(self, record: int) -> int | None:
        """x, if a record is `0 if x < 0 else x`."""
        recorder = self._recorder
        other = recorder.b[record]
        test = self._parts(recorder.third[record], ops.LESS)
        is_relu = recorder.is_zero(recorder.a[record]) and test is not None
        return other if is_relu and test is not None and test[0] == other and self._is(test[1], 0.0) else None

    def _is_of_relu(self, record: int, operand: int, factor: int) -> bool:
        """`result > 0`, or `operand > 0`."""
        test = self._parts(factor, ops.LESS)
        return test is not None and self._is(test[0], 0.0) and test[1] in (record, operand)

    # ---- expressions ------------------------------------------------------------------------------

    def _parts(self, operand: int, code: int) -> tuple[int, int] | None:
        """The operands of a record, if it is this operation."""
        recorder = self._recorder
        if operand < 0 or recorder.op[operand] & ~ops.NUMBER != code:
            return None
        return recorder.a[operand], recorder.b[operand]

    def _number(self, operand: int) -> float | None:
        if ops.leaf_kind(operand) != ops.CONSTANT or operand >= 0:
            return None
        return self._recorder.constants[ops.leaf_index(operand)]

    def _is(self, operand: int, number: float) -> bool:
        return self._number(operand) == number

    def _same(self, x: int, y: int, depth: int = _DEPTH) -> bool:
        """Whether two operands are certain to be the same number."""
        if x == y:
            return True
        if x < 0 or y < 0 or not depth:
            return False
        recorder = self._recorder
        code = recorder.op[x] & ~ops.NUMBER
        if code != recorder.op[y] & ~ops.NUMBER or code == ops.STORE or recorder.third.keys() & {x, y}:
            return False
        a, b, c, d = recorder.a[x], recorder.b[x], recorder.a[y], recorder.b[y]
        if self._same(a, c, depth - 1) and self._same(b, d, depth - 1):
            return True
        return code in _COMMUTATIVE and self._same(a, d, depth - 1) and self._same(b, c, depth - 1)
