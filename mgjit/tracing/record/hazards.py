"""Where a traced step could raise in plain Python, and a compiled one goes on with an infinity or nan.

1. Division by a number that is not constant, powers, exp, log, sqrt and the functions of the C library can raise.
   Wherever one of them does, its result is infinite or nan in compiled code.
2. Most operations hand on what is infinite or nan, so that many results can be seen in one that is computed from them:
   it is followed through these operations to the last one.
3. The sum of all these, times 0.0, is 0.0 if they are finite, and nan otherwise.  It becomes one more result.  In a
   `try` whose handler goes on, an assumption says that they are finite (answers.py).

The records include what a class's own `backward()` has computed with numbers.  A number that is infinite without an
error, or is not used in the end, makes the sum nan as well: then a call is undone that need not have been.
"""

from __future__ import annotations

from typing import Any

from ...ir.opcodes import (
    ADD,
    CONSTANT,
    COPY,
    DIVIDE,
    LINK,
    LOG,
    MULTIPLY,
    NEGATE,
    NUMBER,
    SQRT,
    SUBTRACT,
    leaf_index,
    leaf_kind,
    opcodes,
)
from .recorder import Recorder

_RAISING = opcodes(lambda one: one.raises)
#: The results of these are infinite or nan where an operand is; of a link and a quotient: the first operand.
_HANDING_ON = frozenset({ADD, SUBTRACT, MULTIPLY, NEGATE, COPY, SQRT, LOG, DIVIDE, LINK})
_FIRST_ONLY = frozenset({DIVIDE, LINK})


def hazards(recorder: Recorder, start: int = 0) -> list[int]:
    """The records whose results are infinite or nan if something recorded so far raises in plain Python.

    Args:
        start: the first record that counts.
    """
    codes = [code & (NUMBER - 1) for code in recorder.op[start:]]
    found = [k for k, code in enumerate(codes, start) if code in _RAISING and not _is_harmless(recorder, k, code)]
    if not found:
        return []
    first, end = found[0], dict[int, int]()  # by record: the one that it is followed to
    a, b = recorder.a, recorder.b
    for k in range(len(recorder.op) - 1, first, -1):
        code = codes[k - start]
        if code in _HANDING_ON:
            for operand in (a[k],) if code in _FIRST_ONLY else (a[k], b[k]):
                if operand >= first and operand not in end:
                    end[operand] = end.get(k, k)
    return sorted({end.get(k, k) for k in found})


def _is_harmless(recorder: Recorder, record: int, code: int) -> bool:
    """Whether an operation cannot raise: a division by a constant that is not zero."""
    divisor = recorder.b[record]
    if code != DIVIDE or leaf_kind(divisor) != CONSTANT or divisor >= 0:
        return False
    return recorder.constants[leaf_index(divisor)] != 0.0


def verdict(recorder: Recorder) -> int:
    """Append records whose result is 0.0 where nothing can have raised, and nan otherwise; returns its operand."""
    zero = recorder.constant(0.0)
    total = zero
    for record in hazards(recorder):
        product = recorder.emit(MULTIPLY | NUMBER, record, zero)
        total = recorder.emit(ADD | NUMBER, total, product)
    return total


def as_number(recorder: Recorder) -> Any:
    """`verdict` as a traced number; 0.0 where nothing can raise."""
    operand = verdict(recorder)
    return recorder.number_of(operand) if operand >= 0 else 0.0
