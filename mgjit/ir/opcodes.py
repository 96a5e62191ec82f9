"""The operations of a trace, and how a record refers to its operands.

A record has an opcode and operands.  An operand is an int: `>= 0` is the position of an earlier record;
negative is a leaf, `~(kind << 26 | index)`, where `kind` says which memory and `index` where in it.
The kind sits in the top byte, so that the kinds of a whole trace are one `bytes.translate` away, and
equal steps between leaves of one kind are equal steps between their codes.

Tensors may have more elements than such an index can number.  The leaves of those beyond are codes of more than 32
bits, which only nests name (see `Place` in trace.py): what a record names is copied to a small tensor first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..engine.library import FUNCTIONS as LIBRARY
from ..engine.operations import OPERATIONS as TABLE
from ..engine.operations import Operation

# ---- operations -----------------------------------------------------------------------------------

OPERATIONS = tuple(TABLE)
(
    ADD, SUBTRACT, MULTIPLY, DIVIDE, POWER, MAXIMUM, MINIMUM,
    LESS, LESS_EQUAL, EQUAL, NOT_EQUAL,
    NEGATE, ABSOLUTE, RELU, EXP, LOG, TANH, SQRT, COPY,
    SELECT, LINK, LINK_DIVIDED, STORE, BACKWARD,
) = range(len(OPERATIONS) - len(LIBRARY) - 1)  # fmt: skip

#: The opcodes of functions of the C library, by name.
LIBRARY_CODES = {name: OPERATIONS.index(name) for name in LIBRARY}
TAKE = len(OPERATIONS) - 1

# Opcodes from TAKE on are look-ups; each table layout (stride, count) of a trace has its own opcode.

#: Added to the opcode of arithmetic on plain numbers (as opposed to Values), through which no gradient flows.
NUMBER = 1 << 16
#: Added to the opcode of a look-up, with NUMBER, for an assignment to the element that the look-up would find: the
#: operands are the first element, the number that is assigned, and as the third one the index.
PUT = NUMBER << 1
#: The opcode of an operation on tensors, a loop nest (record/nests.py); the first operand says which.  It is below all
#: others, and has none of their bits.
NEST = -2 * PUT
UNARY = frozenset(code for code, name in enumerate(OPERATIONS) if TABLE[name].arity == 1)


def opcodes(has: Callable[[Operation], object]) -> frozenset[int]:
    """The opcodes of the operations that have a property."""
    return frozenset(code for code, name in enumerate(OPERATIONS) if has(TABLE[name]))


# ---- operands -------------------------------------------------------------------------------------

KINDS = (
    "temporary",
    "constant",
    "parameter",
    "gradient",
    "state",
    "input",
    "output",
    "local",
    "local_gradient",
    "adjoint",
    "tensor",
    "tensor_gradient",
    "nested",
)
(
    TEMPORARY, CONSTANT, PARAMETER, GRADIENT, STATE, INPUT, OUTPUT, LOCAL, LOCAL_GRADIENT, ADJOINT,
    TENSOR, TENSOR_GRADIENT, NESTED,
) = range(len(KINDS))  # fmt: skip
KIND_SHIFT = 26
INDEX_MASK = (1 << KIND_SHIFT) - 1
#: A leaf with a greater index is `~(_WIDE | kind << _WIDE_SHIFT | index)`.
_WIDE_SHIFT = 48
_WIDE = 1 << 60
_WIDE_INDEX_MASK = (1 << _WIDE_SHIFT) - 1

#: Stands for a missing operand of a record.
NO_OPERAND = -1

#: Kinds whose memory a step may write: a number read from them may be out of date later.
MUTABLE = frozenset({PARAMETER, GRADIENT, STATE, LOCAL, LOCAL_GRADIENT})


def leaf(kind: int, index: int) -> int:
    """The operand that stands for element `index` of the memory `kind`."""
    return ~(kind << KIND_SHIFT | index) if index <= INDEX_MASK else ~(_WIDE | kind << _WIDE_SHIFT | index)


def is_wide(operand: int) -> bool:
    """Whether a leaf does not fit into a record."""
    return ~operand >= _WIDE


def leaf_kind(operand: int) -> int:
    """The kind of an operand; TEMPORARY for an earlier record."""
    if operand >= 0:
        return TEMPORARY
    return ~operand >> KIND_SHIFT if ~operand < _WIDE else (~operand ^ _WIDE) >> _WIDE_SHIFT


def leaf_index(operand: int) -> int:
    """The index of a leaf operand."""
    return ~operand & (INDEX_MASK if ~operand < _WIDE else _WIDE_INDEX_MASK)


#: Maps the top byte of an operand (two's complement, 32 bits) to its kind.
KIND_OF_TOP_BYTE = bytes(0 if byte < 128 else (~byte & 0xFF) >> 2 for byte in range(256))


def operation_name(opcode: int) -> str:
    """The name of the operation of an opcode."""
    if opcode == NEST:
        return "nest"
    return OPERATIONS[min(opcode & (NUMBER - 1), TAKE)]


class TableLayout(NamedTuple):
    """The layout of a look-up table: `count` elements, `stride` apart."""

    stride: int
    count: int  # type: ignore[assignment]  # shadows tuple.count, which nobody calls on a layout
