"""Replace loads by registers: use what the same iteration has just computed or loaded, without another load.

1. A load of an element that an earlier statement has written, in the same body or one around it, becomes that
   statement's register, as long as nothing in between may have written the element again.
2. Conversely, before loops are rearranged, a register that only holds a copy of what is still in memory becomes a load
   again, so that its users are independent of each other.
3. What is never read is not stored.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from ...ir.dependence import plain
from ...ir.program import (
    Array,
    Block,
    Constant,
    Load,
    Loop,
    Node,
    Operand,
    Program,
    Reference,
    Register,
    Statement,
    arrays_read,
    arrays_written,
    statements,
)
from ...ir.rewrite import operand_arrays, rewrite_operands


class _Known:
    """The known contents of memory: which statement has last written each element."""

    def __init__(self, outside: _Known | None = None, changed: frozenset[Array] = frozenset()) -> None:
        self._outside, self._changed = outside, changed
        self._writers: dict[Array, dict[Reference, Statement]] = {}

    def find(self, reference: Reference) -> Statement | None:
        """The statement whose result is in an element, if known."""
        known = self._writers.get(reference.array)
        if known is not None and reference in known:
            return known[reference]
        if self._outside is None or known is not None or reference.array in self._changed:
            return None
        return self._outside.find(reference)

    def forget(self, arrays: Iterable[Array]) -> None:
        """Forget these arrays: something may have been written anywhere in them."""
        for array in arrays:
            self._writers[array] = {}

    def note(self, statement: Statement) -> None:
        """A statement has been executed."""
        place = statement.target
        if not isinstance(place, Reference) or plain(place.index) is None:
            self.forget(arrays_written(statement))
            return
        terms = set(place.index.terms)
        others = self._writers.get(place.array, {})
        kept = {r: s for r, s in others.items() if set(r.index.terms) == terms and r.index.base != place.index.base}
        if not statement.update:
            kept[place] = statement
        self._writers[place.array] = kept


def use_registers(program: Program, across_loops: bool) -> None:
    """Replace loads of a value by the statement that has just computed it.

    Args:
        program: changed in place.
        across_loops: also if a loop is between the two, or around the load; not before loops are rearranged.
    """
    for _, nodes in program.phases:
        _use_registers(nodes, _Known(), across_loops)
    read = {array for _, nodes in program.phases for s in statements(nodes) for array in arrays_read(s)}
    for _, nodes in program.phases:
        for statement in statements(nodes):
            target = statement.target
            unread = isinstance(target, Reference) and target.array.space == "scratch" and target.array not in read
            if unread and not statement.update:
                statement.target = None


def _use_registers(nodes: Sequence[Node], known: _Known, across_loops: bool) -> None:
    def replace(operand: Operand) -> Operand:
        statement = known.find(operand.reference) if isinstance(operand, Load) else None
        return operand if statement is None else Register(statement)

    for node in nodes:
        if isinstance(node, Statement):
            rewrite_operands(node, replace)
            known.note(node)
        elif isinstance(node, (Loop, Block)):
            written = frozenset(array for s in statements(node.body) for array in arrays_written(s))
            inside = across_loops and isinstance(node, Loop)
            _use_registers(node.body, _Known(known, written) if inside else _Known(), across_loops)
            if across_loops:
                known.forget(written)
            else:
                known = _Known()


def forward_copies(nodes: Sequence[Node]) -> None:
    """Replace registers that only hold a copy of memory by loads, so that their users are independent."""
    copied: dict[Statement, Operand] = {}
    holders: defaultdict[Array, set[Statement]] = defaultdict(set)  # for each array, the copies taken from it

    def replace(operand: Operand) -> Operand:
        return copied.get(operand.statement, operand) if isinstance(operand, Register) else operand

    for node in nodes:
        if isinstance(node, (Loop, Block)):
            forward_copies(node.body)
        elif isinstance(node, Statement):
            rewrite_operands(node, replace)
        changed = {array for statement in statements([node]) for array in arrays_written(statement)}
        for array in changed & holders.keys():
            for statement in holders.pop(array):
                copied.pop(statement, None)
        if isinstance(node, Statement) and node.operation == "copy" and not node.update:
            source = node.operands[0]
            sources = set(operand_arrays(source))
            if isinstance(source, (Load, Constant)) and not changed & sources:
                copied[node] = source
                for array in sources:
                    holders[array].add(node)
