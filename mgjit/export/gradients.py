"""Gradients that a step clears before it uses them: they take no memory from call to call, and little during one.

1. Gradients are forgotten if each call assigns all of them (`zero_grad`) before its first backward pass, and reads none
   before that.  This is read from the trace, whose records are in the order of the program.
2. An update of an element that the same iteration has just defined becomes a definition; so loads of the element
   become registers, and what is then never read is not stored.  Where the update of parameters was fused with the
   backward pass, nothing is left.
3. Elements that are left fall into groups whose accesses never meet.  Each group becomes a scratch array of its own, in
   which they follow each other.

This is array contraction: V. Sarkar, G. R. Gao, "Optimization of array accesses by collective loop transformations",
International Conference on Supercomputing, 1991.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from math import gcd

from ..compiler.lift.memory import Memory
from ..compiler.simplify.registers import use_registers
from ..compiler.simplify.simplify import delete_dead_statements, forget_gradients
from ..ir.dependence import never_meet, plain
from ..ir.domain import full_range
from ..ir.opcodes import BACKWARD, GRADIENT, NUMBER, PARAMETER, STORE, TAKE, leaf, leaf_index, leaf_kind
from ..ir.program import (
    Array,
    Block,
    Index,
    Load,
    Loop,
    Node,
    Operand,
    Program,
    Reference,
    Register,
    Statement,
    Target,
    TargetChoice,
    arrays_written,
    reads,
    statements,
    writes,
)
from ..ir.rewrite import rewrite_operands
from ..ir.trace import Trace
from ..tracing.record.regions import Regions

#: More elements than this are not told apart: each is compared with each.
_MOST_ELEMENTS = 256


def contract(program: Program, memory: Memory, trace: Trace) -> None:
    """Make scratch arrays of gradients that are forgotten between calls, as small as possible, in place."""
    if not are_cleared(trace):
        return
    arrays = {array for _, array in memory.regions[GRADIENT]}
    for _, nodes in program.phases:
        _define(nodes, arrays)
    use_registers(program, across_loops=True)
    forget_gradients(program)
    delete_dead_statements(program)
    for array in arrays:
        _pack(program, array)
        array.space = "scratch"


# ---- 1: the trace -----------------------------------------------------------------------------------------------


def are_cleared(trace: Trace) -> bool:
    """Whether each call assigns all gradients that it uses before its first backward pass, and before it reads any."""
    codes = trace.op
    first = codes.index(BACKWARD) if BACKWARD in codes else len(codes)
    is_store = [code == STORE for code in codes[:first]]
    stored = set(compress(trace.a[:first], is_store))
    columns = [trace.b] if trace.c is None else [trace.b, trace.c]
    read = set(compress(trace.a[:first], [not one for one in is_store])).union(*(column[:first] for column in columns))
    if any(operand < 0 and leaf_kind(operand) == GRADIENT for operand in read):
        return False
    regions = Regions(trace)
    if not _of_tensors_are_cleared(regions, first):
        return False
    used = set(trace.a).union(*columns)
    tables = {a for code, a in zip(codes, trace.a) if code & (NUMBER - 1) >= TAKE or code >= 2 * NUMBER}
    kinds = (PARAMETER, GRADIENT)
    numbers = {leaf_index(x) for x in used if x < 0 and leaf_kind(x) in kinds and not regions.is_of_tensor(x)}
    if any(leaf_kind(a) in kinds for a in tables if a < 0):  # a look-up may be of any element
        numbers.update(number for number, _ in trace.new_parameters)
        for base, storage in trace.bound_storages:
            if not regions.is_of_tensor(leaf(PARAMETER, base)):
                numbers.update(range(base, base + len(storage)))
    return {leaf(GRADIENT, number) for number in numbers} <= stored


def _of_tensors_are_cleared(regions: Regions, first: int) -> bool:
    """The same of tensors: operations before the first backward pass, `first`, assign all elements of a gradient."""
    cleared: set[int] = set()
    for position, nest in regions.nests.items():
        target = regions.of(nest.target.leaf)
        read = {region for region in regions.read_by(nest) if leaf_kind(region) == GRADIENT}
        if not read <= cleared:
            return False
        if position < first and leaf_kind(target) == GRADIENT and regions.fills(nest):
            cleared.add(target)
    wanted = {leaf(GRADIENT, leaf_index(place)) for place, memory in regions.memories.items() if memory.is_leaf}
    return wanted <= cleared


# ---- 2: definitions ---------------------------------------------------------------------------------------------


def _define(nodes: Sequence[Node], arrays: set[Array]) -> None:
    """Turn updates of elements that have just been defined into definitions."""
    known: dict[Reference, Statement] = {}
    for node in nodes:
        if isinstance(node, (Loop, Block)):
            _define(node.body, arrays)
            written = {array for s in statements(node.body) for array in arrays_written(s)}
            known = {place: s for place, s in known.items() if place.array not in written}
        elif isinstance(node, Statement):
            target = node.target
            before = known.get(target) if isinstance(target, Reference) else None
            if before is not None and node.update:
                node.operands, node.update = (Register(before), *node.operands), False
            for array, index in writes(node):
                if array in arrays:
                    known = {place: s for place, s in known.items() if place.array is not array or _apart(place, index)}
            if _is_defined(node, arrays) and len(known) < _MOST_ELEMENTS:
                known[target] = node  # type: ignore[index]  # the target is a Reference


def _is_defined(statement: Statement, arrays: set[Array]) -> bool:
    """Whether a statement defines an element of these arrays at a place that can be told."""
    target = statement.target
    is_one = isinstance(target, Reference) and target.array in arrays and plain(target.index) is not None
    return is_one and not statement.update


def _apart(place: Reference, index: Index | None) -> bool:
    return index is not None and plain(index) is not None and never_meet(place.index, index)


# ---- 3: packing -------------------------------------------------------------------------------------------------


def _pack(program: Program, array: Array) -> None:
    """Distribute what is left of an array on arrays in which elements follow each other, where this can be told."""
    places: dict[Index, None] = {}
    for _, nodes in program.phases:
        for statement in statements(nodes):
            for other, index in (*reads(statement), *writes(statement)):
                if other is array:
                    if index is None or plain(index) is None or len(places) > _MOST_ELEMENTS:
                        return
                    places[index] = None
    new: dict[Index, Reference] = {}
    for number, group in enumerate(_groups(list(places))):
        low = min(full_range(index)[0] for index in group)
        high = max(full_range(index)[1] for index in group)
        step = 0
        for index in group:
            step = gcd(step, index.base - low, *(c for _, c in index.terms))
        step = step or 1
        made = Array(f"{array.name}_{number}", "scratch", (high - low) // step + 1)
        for index in group:
            terms = tuple((loop, c // step) for loop, c in index.terms)
            new[index] = Reference(made, Index((index.base - low) // step, terms))

    def moved(reference: Reference) -> Reference:
        return new[reference.index] if reference.array is array else reference

    def operand(one: Operand) -> Operand:
        return Load(moved(one.reference)) if isinstance(one, Load) else one

    for _, nodes in program.phases:
        for statement in statements(nodes):
            rewrite_operands(statement, operand)
            statement.target = _moved_target(statement.target, moved)


def _moved_target(target: Target, moved: Callable[[Reference], Reference]) -> Target:
    if isinstance(target, Reference):
        return moved(target)
    if isinstance(target, TargetChoice):
        return TargetChoice(target.loop, _moved_target(target.first, moved), _moved_target(target.rest, moved))
    return target


def _groups(places: Sequence[Index]) -> list[list[Index]]:
    """The places in groups that have no element in common."""
    groups: list[list[Index]] = []
    for place in places:
        near = [group for group in groups if not all(never_meet(place, other) for other in group)]
        groups = [group for group in groups if group not in near]
        groups.append([other for group in near for other in group] + [place])
    return groups
