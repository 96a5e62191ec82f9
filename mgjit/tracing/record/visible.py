"""Find the floats whose type is visible: if they were ints instead, the step would leave or return ints.

Nearly everything that a step reads is multiplied by some float, after which the type no longer matters.  But
`o.best = min(o.best, x)` keeps an int if there was one, and so does `a, b = b, a`.

1. An operand may be an int if its operation returns ints for ints, and its operands may be ints.
2. The leaves behind everything that is returned or assigned, through operands that may be ints, are visible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...ir import opcodes as ops
from .recorder import Recorder

_OF_BOTH = frozenset(code | ops.NUMBER for code in (ops.ADD, ops.SUBTRACT, ops.MULTIPLY, ops.POWER))
_OF_EITHER = frozenset(code | ops.NUMBER for code in (ops.MAXIMUM, ops.MINIMUM, ops.SELECT))
_OF_ONE = frozenset(code | ops.NUMBER for code in (ops.NEGATE, ops.ABSOLUTE, ops.COPY))


def visible_types(recorder: Recorder, seen: Iterable[int], may_be_integer: Callable[[int], bool]) -> set[int]:
    """The leaves whose types can be told from operands.

    Args:
        seen: the operands.
        may_be_integer: of leaves other than constants.
    """
    known: dict[int, bool] = {}

    def of_leaf(leaf: int) -> bool:
        if ops.leaf_kind(leaf) == ops.CONSTANT:
            return recorder.constants[ops.leaf_index(leaf)].is_integer()
        return may_be_integer(recorder.read_at_last(leaf))

    def parts(record: int) -> list[int]:
        code = recorder.op[record]
        if code in _OF_ONE:
            return [recorder.a[record]]
        if code in _OF_BOTH or code in _OF_EITHER:
            return [recorder.a[record], recorder.b[record]]
        if code & (ops.NUMBER - 1) >= ops.TAKE:
            return list(recorder.elements(recorder.a[record], code))
        return []

    op, a, b, get = recorder.op, recorder.a, recorder.b, known.get
    found, pending = set(), list(seen)
    while pending:  # depth first: an operand stays until what it is made of is known
        operand = pending[-1]
        if operand in known:
            pending.pop()
        elif operand < 0:
            known[operand] = of_leaf(operand)
        elif op[operand] in _OF_BOTH:
            first, second = a[operand], b[operand]
            for part in (second, first):  # the shorter side of sums comes first
                if part not in known:
                    if part < 0:
                        known[part] = of_leaf(part)
                    elif op[part] in _OF_BOTH and (get(a[part]) is False or get(b[part]) is False):
                        known[part] = False  # as of a product with a fraction, which need not be put off
                if get(part) is False:
                    known[pending.pop()] = False
                    break
            else:
                if second not in known:
                    pending.append(second)
                elif first not in known:
                    pending.append(first)
                else:
                    known[operand] = True
        else:
            operands = parts(operand)
            unknown = [part for part in operands if part not in known]
            if unknown:
                pending.append(unknown[-1])
            else:
                known[operand] = any(known[part] for part in operands)
    pending, reached = [operand for operand in seen if known[operand]], set()
    while pending:
        operand = pending.pop()
        if operand in reached:
            continue
        reached.add(operand)
        if operand < 0:
            found.add(recorder.read_at_last(operand))
        else:
            pending += [part for part in parts(operand) if known.get(part)]
    return found
