"""What the records of a trace in progress come to for the call that is traced: numbers that a step asks for.

1. Records are worked out in their order, when a number behind them is first asked for, and only once.
2. A leaf has the number that it had before the call (`content`), until a record writes it: what is read late is what it
   was then.
3. A backward pass follows the rules of ir/derivatives.py, with numbers.
4. Operations on tensors are not worked out: what they write is unknown, and what comes from it, and gradients after
   a backward pass.

What comes out decides which way a trace goes, and nothing else: the kernel tests each answer (answers.py).
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ...engine.operations import OPERATIONS
from ...ir import opcodes as ops
from ...ir.derivatives import RULES, Emitter
from ...ir.operations import compute
from ...ir.program import Constant
from ...ir.trace import LATE
from .answers import Unknown

if TYPE_CHECKING:
    from .recorder import Recorder

_GRADIENTS = (ops.GRADIENT, ops.LOCAL_GRADIENT, ops.ADJOINT, ops.TENSOR_GRADIENT)
#: This object stands for a number that is unknown.
_UNKNOWN = float("nan")
_GRADIENT_OF = {ops.PARAMETER: ops.GRADIENT, ops.LOCAL: ops.LOCAL_GRADIENT}


class _Rules(Emitter):
    """Applies the rules of derivatives to numbers."""

    def __init__(self, recorder: Recorder) -> None:
        self.precision = recorder.precision

    def emit(self, operation: str, *operands: Any) -> float:
        numbers = [x.value if isinstance(x, Constant) else x for x in operands]
        return compute(operation, numbers, self.precision)


class Evaluation:
    """The numbers of one trace in progress.

    Args:
        content: the number in a leaf before the call; raises Unknown.
    """

    def __init__(self, recorder: Recorder, content: Callable[[int], float]) -> None:
        self._recorder, self._content = recorder, content
        self._numbers: dict[int, float] = {}  # by record
        self._count = 0  # so many records have been worked out
        self._written: dict[int, tuple[list[int], list[float]]] = {}  # by leaf: by which records, and what
        self._adjoints: list[tuple[int, dict[int, float]]] = []  # of each backward pass: of which record, and of nodes
        self._before: dict[int, float] = {}
        #: What operations on tensors have written, as far as has been worked out: kind, first and last index.
        self._unknown: set[tuple[int, int, int]] = set()
        self._rules = _Rules(recorder)

    def number(self, operand: int) -> float:
        """The number of an operand, as of now.

        Raises:
            Unknown: it cannot be worked out.
        """
        numbers, count = self._numbers, len(self._recorder.op)
        try:
            while self._count < count:
                if self._count not in numbers:
                    numbers[self._count] = self._result_if_known(self._count)
                self._count += 1
            return self._read(operand, count)
        except RecursionError:
            raise Unknown from None

    def _result_if_known(self, k: int) -> float:
        """The number of a record, which changes no memory if that is unknown."""
        code = self._recorder.op[k]
        if code == ops.NEST:
            return self._result(k)
        try:
            return self._result(k)
        except Unknown:
            if not self._unknown or code >= ops.PUT or code & (ops.NUMBER - 1) in (ops.STORE, ops.BACKWARD):
                raise
            return _UNKNOWN

    def _read(self, operand: int, at: int) -> float:
        """The number of an operand in front of a record."""
        found = self._read_or_unknown(operand, at)
        if found is _UNKNOWN:
            raise Unknown
        return found

    def _read_or_unknown(self, operand: int, at: int) -> float:
        if operand >= 0:
            if operand not in self._numbers:  # a record that comes first in another order (Recorder.rearrange)
                self._numbers[operand] = self._result_if_known(operand)
            return self._numbers[operand]
        kind, index = ops.leaf_kind(operand), ops.leaf_index(operand)
        if any(kind == one and first <= index <= last for one, first, last in self._unknown):
            return _UNKNOWN
        if kind == ops.CONSTANT:
            return self._recorder.constants[index]
        if kind == LATE:
            return self._read(*self._recorder.late[index])
        if kind == ops.ADJOINT:
            record, end = self._recorder.adjoint_reads[index]
            passes = [nodes for position, nodes in self._adjoints if position < end and record in nodes]
            return passes[-1][record] if passes else 0.0
        positions, numbers = self._written.get(operand, ((), ()))
        found = bisect_right(positions, at - 1)
        if found:
            return numbers[found - 1]
        if operand not in self._before:
            self._before[operand] = self._recorder.precision.rounded(self._content(operand))
        return self._before[operand]

    def _write(self, leaf: int, record: int, number: float) -> None:
        positions, numbers = self._written.setdefault(leaf, ([], []))
        positions.append(record)
        numbers.append(number)

    def _result(self, k: int) -> float:
        """The number of a record, in front of which all are known that change memory."""
        recorder = self._recorder
        code, a, b = recorder.op[k], recorder.a[k], recorder.b[k]
        plain = code & (ops.NUMBER - 1)
        if code == ops.NEST:
            self._unknown.add(self._stretch_of(recorder.nests[ops.leaf_index(a)].target.leaf))
            return _UNKNOWN
        if code >= ops.PUT:
            self._write(self._element(code, a, recorder.third[k], k), k, self._read(b, k))
        elif plain == ops.STORE:
            self._write(a, k, self._read_or_unknown(b, k))
        elif plain == ops.BACKWARD and self._unknown:
            self._unknown.update((kind, 0, sys.maxsize) for kind in _GRADIENTS)
        elif plain == ops.BACKWARD:
            self._differentiate(k)
        elif plain >= ops.TAKE:
            return self._read(self._element(code, a, b, k), k)
        elif plain == ops.SELECT:
            return self._read(a if self._read(recorder.third[k], k) else b, k)
        elif plain in (ops.LINK, ops.LINK_DIVIDED):
            return self._read(a, k)
        else:
            operands = [self._read(a, k)] if plain in ops.UNARY else [self._read(a, k), self._read(b, k)]
            return compute(ops.OPERATIONS[plain], operands, recorder.precision)
        return 0.0

    def _stretch_of(self, leaf: int) -> tuple[int, int, int]:
        """The kind of a leaf, and the first and last index of the memory that it is part of."""
        kind, index = ops.leaf_kind(leaf), ops.leaf_index(leaf)
        if kind in (ops.PARAMETER, ops.GRADIENT):
            for base, storage in self._recorder.bound_storages:
                if base <= index < base + len(storage):
                    return kind, base, base + len(storage) - 1
        return kind, 0, sys.maxsize

    def _element(self, code: int, first: int, index: int, at: int) -> int:
        """The leaf that a look-up means."""
        elements, number = self._recorder.elements(first, code), self._read(index, at)
        if not (0 <= number < len(elements) and number == int(number)):
            raise Unknown
        return elements[int(number)]

    # ---- backward passes ----------------------------------------------------------------------------

    def _differentiate(self, k: int) -> None:
        recorder, root = self._recorder, self._recorder.a[k]
        nodes, leaves = {root: 1.0}, dict[int, float]()
        for record in range(root, -1, -1):
            gradient = nodes.get(record)
            if gradient is None or recorder.op[record] & ops.NUMBER:
                continue
            for operand, part in self._contributions(record, gradient):
                if operand >= 0:
                    nodes[operand] = nodes.get(operand, 0.0) + part
                elif ops.leaf_kind(operand) in _GRADIENT_OF:
                    leaf = recorder.gradient_leaf(operand)
                    leaves[leaf] = leaves.get(leaf, self._read(leaf, k)) + part
        for leaf, number in leaves.items():
            self._write(leaf, k, number)
        self._adjoints.append((k, nodes))

    def _contributions(self, k: int, gradient: float) -> Iterator[tuple[int, float]]:
        """What a node adds to the gradients of its operands."""
        recorder = self._recorder
        code, operands = recorder.op[k], [recorder.a[k], recorder.b[k]]
        if code == ops.NEST:
            raise Unknown
        if code >= ops.TAKE:
            yield self._element(code, recorder.a[k], recorder.b[k], k), gradient
            return
        name = ops.OPERATIONS[code]
        if code in ops.UNARY:
            del operands[1]
        if code == ops.SELECT:
            operands.insert(0, recorder.third[k])
        elif code in (ops.LINK, ops.LINK_DIVIDED):
            operands.append(recorder.third[k])
        if name not in RULES or OPERATIONS[name].arity > len(operands):
            raise Unknown
        numbers = [self._read(operand, k) for operand in operands]
        parts = RULES[name](self._rules, [*numbers], self._numbers[k], gradient)
        for operand, part in zip(operands, parts):
            if part is not None and operand != ops.NO_OPERAND:
                yield operand, part if not isinstance(part, Constant) else part.value
