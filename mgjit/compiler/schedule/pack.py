"""Copy what nests read with long steps into an array where their vector loop reads it at consecutive places.

    for b: for i: for j: e[b,i] = e[b,i] + d[b,j] * p[16 i + j]

                          ->      for j: for i: packed[j,i] = p[16 i + j]
                                  for b: for i: for j: e[b,i] = e[b,i] + d[b,j] * packed[j,i]

1. What is copied must be the same before the nest as in it: neither the elements nor the run-time indices that
   choose them are written there, or known only there; and every element of the copy must exist.
2. The array gets one element for every iteration of the loops of the nest that the access depends on, by its affine
   part, its table or its run-time index; the vector loop last, and room for whole vectors.
3. The copy is made right before the first nest that needs it; later ones that read the same elements in the same
   pattern use it as well, until something writes the elements or a run-time index that chose them.

Source: "packing", K. Goto, R. van de Geijn, "Anatomy of high-performance matrix multiplication", TOMS 2008.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set

from ...ir.builders import nested, row_major
from ...ir.dependence import plain
from ...ir.domain import full_range
from ...ir.nest import Nest, Use, executions, loops_of
from ...ir.program import (
    NOWHERE,
    Array,
    Choice,
    Constant,
    Index,
    Load,
    Loop,
    Node,
    Operand,
    Origin,
    PaddedRows,
    Reference,
    Register,
    Statement,
    Term,
    leaf_operands,
    statements,
    walk,
)
from ...ir.rewrite import operand_arrays
from ...ir.substitute import Substitution


def _by_count(loop: Loop) -> object:
    return loop.count


def pattern(reference: Reference, name: Callable[[Loop], object] = _by_count) -> object:
    """A key that is equal for reads of the same elements in the same order, whatever their loops are.

    Args:
        reference: the read.
        name: the key of a loop; loops with equal keys count as equal.
    """
    _, table, dynamic = reference.index[1:]
    return (
        reference.array,
        reference.index.base,
        _terms(reference.index.terms, name),
        table and (table.offset, _terms(table.terms, name)),
        dynamic and (dynamic.stride, dynamic.count, _number(dynamic.operand, name)),
    )


def _terms(terms: Iterable[Term], name: Callable[[Loop], object]) -> object:
    return frozenset((coefficient, name(loop)) for loop, coefficient in terms)


def _number(operand: Operand, name: Callable[[Loop], object]) -> object:
    return pattern(operand.reference, name) if isinstance(operand, Load) else operand


def can_be_packed(use: Use, nest: Nest, written: Set[Array]) -> bool:
    """Whether a read of a nest finds the same in a copy that is made in front of the nest.

    Args:
        use: the read.
        nest: where it is.
        written: the arrays that the nest writes.
    """
    index = use.reference.index
    if not written.isdisjoint(operand_arrays(Load(use.reference))):
        return False
    # The copy is of all iterations, also of those that choose something else or that a bound leaves out.
    if not use.always or any(loop.bound is not None for loop in loops_of(index)):
        low, high = full_range(index)
        return plain(index) is not None and low >= 0 and high < use.reference.array.least
    return index.dynamic is None or _known_before(index.dynamic.operand, nest)


def _known_before(operand: Operand, nest: Nest) -> bool:
    """Whether a run-time index is the same number in front of the nest, for each iteration."""
    if isinstance(operand, Load):
        dynamic = operand.reference.index.dynamic
        return dynamic is None or _known_before(dynamic.operand, nest)
    return isinstance(operand, Constant) or (isinstance(operand, Register) and operand.statement not in nest.around)


class Packer:
    """Makes packed arrays and knows which are valid."""

    def __init__(self, lanes: int, counter: list[int] | None = None) -> None:
        self._lanes = lanes
        self._counter = [0] if counter is None else counter
        #: By what was copied: the copy, and the arrays that it depends on.
        self._valid: dict[object, tuple[Array, frozenset[Array]]] = {}

    def inside(self, written: Iterable[Array]) -> Packer:
        """For the body of a loop: what is valid there, whose copies end with an iteration."""
        inner = Packer(self._lanes, self._counter)
        inner._valid = dict(self._valid)
        inner.forget(written)
        return inner

    def forget(self, written: Iterable[Array]) -> None:
        """These arrays have been written: copies of them, or of what they chose, are out of date."""
        changed = set(written)
        self._valid = {key: valid for key, valid in self._valid.items() if changed.isdisjoint(valid[1])}

    def pack(self, nest: Sequence[Node], vector: Loop, reads: Sequence[Reference]) -> list[Node]:
        """Redirect `reads` to packed arrays, in place; the loops that fill those that are new.

        Args:
            nest: the nodes that read.
            vector: the loop that gets consecutive places.
            reads: what to pack; each `can_be_packed`.
        """
        inside = [node for node in walk(nest) if isinstance(node, Loop)]
        filling: list[Node] = []
        place: dict[Reference, Reference] = {}
        for reference in dict.fromkeys(reads):
            loops = [*_others(reference, inside, vector), vector]
            key = _key(reference, loops)
            if key not in self._valid:
                array = self._new_array(loops)
                self._valid[key] = array, frozenset(operand_arrays(Load(reference)))
                filling += _fill(reference, _element(array, loops), loops, _origin(reference, nest))
            place[reference] = _element(self._valid[key][0], loops)

        def replace(operand: Operand) -> Operand:
            if isinstance(operand, Choice):
                return Choice(operand.loop, replace(operand.first), replace(operand.rest))
            if isinstance(operand, Load) and operand.reference in place:
                return Load(place[operand.reference])
            return operand

        for statement in statements(nest):
            statement.operands = tuple([replace(operand) for operand in statement.operands])
        return filling

    def _new_array(self, loops: Sequence[Loop]) -> Array:
        *others, vector = loops
        rows = executions(others)
        pitch = -(-vector.count // self._lanes) * self._lanes
        self._counter[0] += 1
        array = Array(f"packed{self._counter[0]}", "scratch", rows * pitch, shape=tuple(loop.count for loop in loops))
        array.padded_rows = (PaddedRows(0, vector.count, pitch, rows),)
        return array


def _key(reference: Reference, loops: Sequence[Loop]) -> object:
    """What is copied, whatever the loops of the nest are called; the loops around the nest are the same for all."""
    names: dict[Loop, object] = {loop: (number, loop.count) for number, loop in enumerate(loops)}
    return pattern(reference, lambda loop: names.get(loop, loop))


def _others(reference: Reference, inside: Sequence[Loop], vector: Loop) -> list[Loop]:
    """The loops of the nest, but `vector`, that a read depends on, those with the longest steps first."""
    steps = dict(reference.index.terms)
    depends = loops_of(reference.index)
    order = [*steps, *(loop for loop in inside if loop in depends and loop not in steps)]
    others = [loop for loop in order if loop in inside and loop is not vector]
    return sorted(others, key=lambda loop: (-steps.get(loop, 0), -loop.count))


def _element(array: Array, loops: Sequence[Loop]) -> Reference:
    counts = [*(loop.count for loop in loops[:-1]), array.padded_rows[0].pitch]
    return Reference(array, Index(0, row_major(loops, counts)[0]))


def _origin(reference: Reference, nest: Sequence[Node]) -> Origin:
    """Where the first statement that reads an element comes from."""
    readers = (s for s in statements(nest) for operand in s.operands for part in leaf_operands(operand)
               if isinstance(part, Load) and part.reference == reference)  # fmt: skip
    first = next(readers, None)
    return NOWHERE if first is None else first.origin


def _fill(source: Reference, place: Reference, loops: Sequence[Loop], origin: Origin) -> list[Node]:
    copies = {loop: Loop(loop.count, []) for loop in loops}
    substitution = Substitution(copies=copies)
    target = substitution.target(place)
    copy = Statement("copy", (substitution.operand(Load(source)),), target, origin=origin)
    return nested(list(copies.values()), [copy])
