"""Compute once what a body computes twice: the same operation on the same operands.

    %1 = power(x[i], 2.0)                     %1 = power(x[i], 2.0)
    t[i] = add(%1, 1.0)                       t[i] = add(%1, 1.0)
    %3 = power(x[i], 2.0)            ->
    u[i] = multiply(%3, y[i])                 u[i] = multiply(%1, y[i])

1. Walk each function in order and number every operation by what it is and by its operands, registers of equal
   statements being equal.  Constants are compared by their bits: 0.0 is not -0.0.
2. A statement whose number is known, from the same body or one around it, is replaced by the register of the
   first; if it has a target, it becomes a copy.
3. A number is forgotten when something may have written an element that one of its operands reads.

A compiler does this with arithmetic, but must call pow as often as the source does.

Source: local value numbering, J. Cocke, J. Schwartz, "Programming languages and their compilers", 1970.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Iterable, Mapping, Sequence

from ...ir.dependence import plain
from ...ir.program import (
    Array,
    Block,
    Bound,
    Choice,
    Constant,
    Index,
    Load,
    Loop,
    Node,
    Operand,
    Program,
    Reference,
    Register,
    Statement,
    TableEntry,
    arrays_written,
    statements,
)
from ...ir.rewrite import operand_arrays, rewrite_operands

_NO_NAMES: Mapping[object, Hashable] = {}


def share(program: Program) -> None:
    """Compute what is common once, in place."""
    for _, nodes in program.phases:
        nodes[:] = _share(nodes, _Known(), {})


def operand_key(operand: Operand, names: Mapping[object, Hashable] = _NO_NAMES) -> Hashable:
    """A key that is equal for operands that have the same value as long as memory does not change.

    Args:
        operand: of a statement.
        names: keys for loops and statements that are not to be compared by identity.
    """
    if isinstance(operand, Constant):
        return struct.pack("<d", operand.value)
    if isinstance(operand, Load):
        return operand.reference.array, _index_key(operand.reference.index, names)
    if isinstance(operand, Register):
        return names.get(operand.statement, operand.statement)
    if isinstance(operand, Choice):
        loop = names.get(operand.loop, operand.loop)
        return loop, operand_key(operand.first, names), operand_key(operand.rest, names)
    return operand.arrays, _entry_key(operand.selector, names), _entry_key(operand.position, names)


def _index_key(index: Index, names: Mapping[object, Hashable]) -> Hashable:
    table = None if index.table is None else _entry_key(index.table, names)
    dynamic = index.dynamic and (operand_key(index.dynamic.operand, names), index.dynamic.stride)
    return index.base, frozenset((names.get(loop, loop), step) for loop, step in index.terms), table, dynamic


def bound_key(bound: Bound | None, names: Mapping[object, Hashable] = _NO_NAMES) -> Hashable:
    """A key that is equal for bounds that are the same, names being given as for `operand_key`."""
    return bound and _index_key(Index(*bound), names)


def _entry_key(entry: TableEntry, names: Mapping[object, Hashable]) -> Hashable:
    return entry.offset, frozenset((names.get(loop, loop), step) for loop, step in entry.terms)


def _share(nodes: Sequence[Node], known: _Known, first_of: dict[Statement, Statement]) -> list[Node]:
    done: list[Node] = []

    def replace(operand: Operand) -> Operand:
        if isinstance(operand, Register) and operand.statement in first_of:
            return Register(first_of[operand.statement])
        return operand

    for node in nodes:
        if isinstance(node, (Loop, Block)):
            written = frozenset(array for s in statements(node.body) for array in arrays_written(s))
            inside = _Known(known, written) if isinstance(node, Loop) else _Known()
            node.body = _share(node.body, inside, first_of)
            known.forget(written)
        elif isinstance(node, Statement):
            rewrite_operands(node, replace)
            key = _statement_key(node)
            first = None if key is None else known.find(key)
            if first is not None:
                first_of[node] = first
                node.operation, node.operands = "copy", (Register(first),)
                key = None
                if node.target is None:
                    continue
            known.written_by(node)
            if key is not None:
                known.note(key, node)
        done.append(node)
    return done


def _statement_key(statement: Statement) -> Hashable | None:
    """The value number of a statement; None for statements that are not shared."""
    if statement.update or statement.operation == "copy":
        return None
    return statement.operation, tuple([operand_key(operand) for operand in statement.operands])


class _Known:
    """The statements whose results are available, by value number, and where they read memory."""

    def __init__(self, outside: _Known | None = None, changed: frozenset[Array] = frozenset()) -> None:
        self._outside, self._changed = outside, changed
        self._first: dict[Hashable, Statement] = {}
        self._readers: dict[Array, dict[int | None, list[Hashable]]] = {}  # by element; None: not a fixed element

    def find(self, key: Hashable) -> Statement | None:
        """The statement that has already computed this, in this body or one around it."""
        first = self._first.get(key)
        if first is None and self._outside is not None:
            first = self._outside.find(key)
            if first is not None and not self._changed.isdisjoint(_arrays(first)):
                return None
        return first

    def note(self, key: Hashable, statement: Statement) -> None:
        """A statement has been executed."""
        written = set(arrays_written(statement))
        if not written.isdisjoint(_arrays(statement)):
            return  # it may have changed its own operand
        self._first[key] = statement
        for operand in statement.operands:
            place = _element(operand.reference) if isinstance(operand, Load) else None
            for array in operand_arrays(operand):
                self._readers.setdefault(array, {}).setdefault(place, []).append(key)

    def written_by(self, statement: Statement) -> None:
        """Forget what reads an element that the statement may have written."""
        place = _element(statement.target) if isinstance(statement.target, Reference) else None
        if place is None:
            self.forget(arrays_written(statement))
            return
        for array in arrays_written(statement):
            readers = self._readers.get(array, {})
            for element in (place, None):
                for key in readers.pop(element, ()):
                    self._first.pop(key, None)

    def forget(self, arrays: Iterable[Array]) -> None:
        """Forget what reads any element of these arrays."""
        for array in arrays:
            for keys in self._readers.pop(array, {}).values():
                for key in keys:
                    self._first.pop(key, None)


def _arrays(statement: Statement) -> list[Array]:
    return [array for operand in statement.operands for array in operand_arrays(operand)]


def _element(reference: Reference) -> int | None:
    """The element number, if it is the same in all iterations."""
    index = reference.index
    return index.base if plain(index) is not None and not index.terms else None
