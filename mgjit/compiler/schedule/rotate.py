"""Rotate the loop over rows: the end of a row and the beginning of the next one share a pass over memory.

    forward:   for i: for j: r[j] += p[i,j] * x[i]                for i:
                                                           ->         for j: p[i,j] = p[i,j] - d[j] * x[i]
    update:    for i: for j: p[i,j] = p[i,j] - d[j] * x[i]            for j: r'[j] += p[i,j] * x'[i]

`.loop` may run forward for its first row, then between two rows the rest of one and forward of the next, and after the
last row the rest.  What it runs between two rows is a `Rotation`, made of what all other passes have left:

1. The rest of a row is copied, and so is forward, whose arguments, results and scratch memory are arrays of the next
   row (here with a prime).  One after the other, they are what two rows do.
2. A nest of the rest that writes elements which a nest of forward reads becomes one with it, if that saves a pass over
   memory: if they do not fit the first cache, and are more than the scratch memory that the next row has of its own.
3. Both begin with a loop of the same count.  Their bodies may be executed together if they meet only in elements of the
   same iteration, and if the iterations of the one that moves may have the order of the other.  Its other loops are
   unrolled, so that sums stay in registers, and each part of forward follows the last one that it depends on.
4. What lies between the two is executed before or after both, wherever its own dependences allow.

Source: shifting a loop before it is fused, A. Darte, G. Huard, "Loop shifting for loop compaction", IJPP 2000.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...ir.dependence import independent, may_meet, separable
from ...ir.nest import executions
from ...ir.program import (
    Array,
    Load,
    Loop,
    Mixed,
    Node,
    Program,
    Reference,
    Rotation,
    Statement,
    count_copies,
    has_blocks,
    leaf_operands,
    statements,
)
from ...ir.rewrite import with_surroundings
from ...ir.substitute import Substitution, copy_nodes
from .fuse import Part
from .plan import from_cache

#: Programs with more statements are not rotated: a compiler has to compile all of them once more.
_MOST_STATEMENTS = 400
#: Nests whose loops would become more statements are not fused.
_MOST_UNROLLED = 96
#: The memory that each row has of its own.
_OF_ROWS = frozenset({"input", "output", "scratch"})


def rotate(program: Program) -> None:
    """Give a Program a `rotation`, if that saves a pass over memory."""
    if program.separate or program.given or program.is_straight or program.asks_first or not _is_plain(program):
        return
    following: dict[Array, Array] = {}
    parts = [Part(node) for node in copy_nodes([*program.backward, *program.update], Substitution())]
    count = len(parts)
    parts += [Part(node) for node in copy_nodes(program.forward, _OfNextRow(following))]
    scratch = sum(one.size for one in following if one.space == "scratch")
    joined = _first_joined(parts, count, scratch)
    while joined is not None:
        parts, count = joined
        program.rotation = Rotation([part.node for part in parts], following)
        joined = _first_joined(parts, count, scratch)


def _is_plain(program: Program) -> bool:
    """Whether all targets are plain references, and nothing is read from one of several arrays."""
    nodes = [node for _, phase in program.phases for node in phase]
    if has_blocks(nodes) or count_copies(nodes) > _MOST_STATEMENTS:
        return False
    found = list(statements(nodes))
    operands = (part for one in found for operand in one.operands for part in leaf_operands(operand))
    return all(one.target is None or isinstance(one.target, Reference) for one in found) and not any(
        isinstance(operand, Mixed) for operand in operands
    )


class _OfNextRow(Substitution):
    """Replaces the arrays of a row by those of the next one."""

    def __init__(self, following: dict[Array, Array]) -> None:
        super().__init__()
        self.following = following

    def array(self, array: Array) -> Array:
        if array.space not in _OF_ROWS:
            return array
        if array not in self.following:
            copy = Array(f"next_{array.name}", array.space, array.size, array.region, array.format, array.shape)
            copy.padded_rows, copy.least = array.padded_rows, array.least
            self.following[array] = copy
        return self.following[array]


# ---- 2: which nests -----------------------------------------------------------------------------------------


def _first_joined(parts: list[Part], count: int, scratch: int) -> tuple[list[Part], int] | None:
    """The parts with the first pair of nests that can become one, and how many of them belong to the rest of a row.

    Args:
        parts: of the rest of a row, and of forward.
        count: how many belong to the rest.
        scratch: the size of the scratch memory of a row.
    """
    for later in range(count, len(parts)):
        for earlier in range(count):
            one, other = parts[earlier], parts[later]
            if not is_worth_it(_saved(one, other), scratch):
                continue
            order = _around(parts[earlier : later + 1])
            nest = _joined(one.node, other.node) if order is not None else None
            if order is not None and nest is not None:
                before, after = order
                return [*parts[:earlier], *before, Part(nest), *after, *parts[later + 1 :]], earlier
    return None


def is_worth_it(saved: int, scratch: int) -> bool:
    """Whether so many elements less to be read are worth a second scratch memory of that size."""
    return from_cache(saved) > 0 and saved > scratch


def _saved(one: Part, other: Part) -> int:
    """How many elements that a nest writes another one need not read again."""
    if not (isinstance(one.node, Loop) and isinstance(other.node, Loop)) or one.node.count != other.node.count:
        return 0
    found = 0
    for array in one.written & {array for array, accesses in other.accesses.items() if accesses.reads}:
        found += min(array.size, _extent(one.node, array), _extent(other.node, array))
    return found


def _extent(nest: Loop, array: Array) -> int:
    """How many elements of an array a nest accesses, at most: the largest number for one statement."""
    most = 0
    for statement, loops in with_surroundings([nest]):
        for place in _places(statement):
            if place.array is array:
                used = {loop for loop, _ in place.index.terms}
                most = max(most, executions([loop for loop in loops if loop in used]))
    return most


def _places(statement: Statement) -> Iterator[Reference]:
    for operand in statement.operands:
        for part in leaf_operands(operand):
            if isinstance(part, Load):
                yield part.reference
    if isinstance(statement.target, Reference):
        yield statement.target


# ---- 3: one nest --------------------------------------------------------------------------------------------


def _joined(one: Node, other: Node) -> Loop | None:
    """A nest that executes two, iteration by iteration; None if that is not the same."""
    if not isinstance(one, Loop) or not isinstance(other, Loop):
        return None
    if one.bound is not None or other.bound is not None or one.lanes or other.lanes:
        return None
    if one.reverse != other.reverse and not independent(one):
        return None
    loop = other.empty_copy()
    first = _unrolled(copy_nodes(one.body, Substitution(copies={one: loop})))
    second = _unrolled(copy_nodes(other.body, Substitution(copies={other: loop})))
    if first is None or second is None or not separable(first, second, loop):
        return None
    loop.body = _interleaved(first, second)
    return loop


def _unrolled(nodes: Sequence[Node]) -> list[Node] | None:
    """The nodes without loops, but those over lanes; None if they would become too many."""
    found: list[Node] = []
    for node in nodes:
        if not isinstance(node, Loop) or node.lanes:
            found.append(node)
            continue
        if node.bound is not None or node.count * count_copies(node.body) > _MOST_UNROLLED:
            return None
        for k in reversed(range(node.count)) if node.reverse else range(node.count):
            inside = _unrolled(copy_nodes(node.body, Substitution(node, None, 1, k)))
            if inside is None:
                return None
            found += inside
    return found if count_copies(found) <= _MOST_UNROLLED else None


def _interleaved(first: Sequence[Node], second: Sequence[Node]) -> list[Node]:
    """Two lists as one, in which each node of the second follows the last one of the first that it depends on."""
    found: list[Node] = []
    done = 0
    for node in second:
        needed = next((k for k in range(len(first), done, -1) if may_meet([first[k - 1]], [node])), done)
        found += [*first[done:needed], node]
        done = needed
    return [*found, *first[done:]]


# ---- 4: what is between -------------------------------------------------------------------------------------


def _around(parts: Sequence[Part]) -> tuple[list[Part], list[Part]] | None:
    """The parts between the first and the last, as those to be executed before and after both; None if there is no way.

    They are executed before both, if what stays behind allows it.
    """
    one, other = parts[0], parts[-1]
    before: list[Part] = []
    after: list[Part] = []
    for part in parts[1:-1]:
        (before if part.may_pass([one, *after]) else after).append(part)
    return (before, after) if other.may_pass(after) else None
