"""Found a family: the Program that two traces of different lengths share (steps 1 to 3 of lengths/family.py)."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import gcd

from ...errors import VerificationError
from ...ir.opcodes import BACKWARD, INPUT, LOCAL, LOCAL_GRADIENT, OUTPUT
from ...ir.program import (
    Array,
    Backward,
    Bound,
    Choice,
    Constant,
    Given,
    Index,
    Load,
    Loop,
    Mixed,
    Node,
    Operand,
    Program,
    Reference,
    Statement,
    TableEntry,
    TargetMixed,
    Term,
    arrays_read,
    leaf_operands,
    leaf_targets,
    reads,
    statements,
    walk,
    writes,
)
from ...ir.substitute import Substitution, copy_nodes
from ...ir.verify import verify
from ..lift.memory import Memory
from ..roll.forest import LiftError, all_counts
from ..roll.growing import Rolled
from ..roll.holes import size_of
from .family import Boxed, Family, Member, outline
from .grammar import Repeated, Rule, parsed
from .lengths import Part, Shape, Unlike, counts_of, shapes_of, tree_of
from .longest import Scale, longest_inputs
from .numbers import Numbers, Pattern, loaded_constants, table_entries, table_offsets
from .varying import HOLE, Rows, Varying, continued, ways, without_holes

#: The longest member that there is room for at least, in iterations of the loop that has most of them.
_FEWEST = 16
#: A padded trace has at most so many places for each record of the longest known member.
_MOST_PLACES = 16
#: The longest member is guessed if it has at most so many records: to prove it takes about a second then.
_MOST_GUESSED = 500_000


@dataclass
class Shared:
    """The Program of a family, with the memory it works on."""

    family: Family
    program: Program
    memory: Memory


# ---- 1: forests ---------------------------------------------------------------------------------------------------


def found_family(one: Member, other: Member, roll: Callable[[Member], Rolled]) -> Shared:
    """The family of two members.

    Args:
        roll: finds the loops of a trace.

    Raises:
        Unlike: they are not alike enough.
        LiftError: they cannot be lifted in this way.
    """
    if len(one.trace) == len(other.trace):
        raise Unlike("both have the same number of records")
    members = sorted((one, other), key=lambda member: len(member.trace))
    if outline(one) != outline(other):
        raise Unlike("they work on different memory")
    if set(one.trace.op) != set(other.trace.op):
        raise Unlike("they have other operations")
    family = Family((), [], [], memory=outline(one))
    family.tree = _tree(family, members, roll)
    unit = gcd(*(shape.length.given for shape in shapes_of(family.tree)))
    if not unit:
        raise Unlike("no loop is longer in one of them than in the other")
    family.tree = _divided(family.tree, unit)
    _make_room(family, unit, len(members[1].trace))
    return _unify(family, members, unit)


def _tree(family: Family, members: Sequence[Member], roll: Callable[[Member], Rolled]) -> tuple[Part, ...]:
    """The loops of both: those of the longer one, or of the shorter one, in which something may be left over."""
    traces = [(member.trace, member.reach) for member in members]
    rolled = roll(members[1])
    try:
        return _taken(family, rolled, parsed(rolled, traces[1], traces[0]), 1)
    except Unlike:
        family.operations, family.marks = [], []
        rolled = roll(members[0])
        return _taken(family, rolled, parsed(rolled, traces[0], traces[1]), 0)


def _taken(family: Family, rolled: Rolled, rules: Sequence[Rule], number: int) -> tuple[Part, ...]:
    """Parsed loops as those of the family.

    Args:
        number: 1 if the known trace is the longer one, 0 if it is the shorter one.
    """
    found: list[Part] = []
    for rule in rules:
        if isinstance(rule, Repeated):
            if rule.other is None:
                raise Unlike("one of them is so short that some of their loops are missing")
            short, long = (rule.other, rule.known) if number else (rule.known, rule.other)
            length = short._replace(given=long.base - short.base)
            found.append(Shape(length, _taken(family, rolled, rule.body, number), rule.grows))
        else:
            reach = rolled.reach
            family.operations.append(rolled.trace.op[rule])
            family.marks.append(frozenset() if reach.marks is None else reach.meanings[reach.marks[rule]])
            found.append(len(family.operations) - 1)
    return tuple(found)


def _divided(parts: Sequence[Part], unit: int) -> tuple[Part, ...]:
    """The tree, where members that were one apart are `unit` apart."""
    return tuple(
        part
        if isinstance(part, int)
        else part._replace(length=part.length._replace(given=part.length.given // unit), body=_divided(part.body, unit))
        for part in parts
    )


# ---- 2: boxes -----------------------------------------------------------------------------------------------------


def _make_room(family: Family, number: int, records: int) -> None:
    """Choose how long members may be, and give all loops room for the longest.

    Args:
        number: of the longest known member.
        records: of its trace.
    """
    while _is_possible(family.tree, family.least - 1):
        family.least -= 1
    longest = _longest(family.tree, number)
    wanted = max(_FEWEST, 1 << (longest - 1).bit_length())
    family.most = number
    while _is_possible(family.tree, family.most + 1) and longest < _longest(family.tree, family.most + 1) <= wanted:
        family.most += 1
    for most in range(family.most, number - 1, -1):
        family.most = most
        tree = _with_room(family.tree, family.least, most, ())
        if sum(size_of(tree_of(part, most, ())) for part in tree) <= _MOST_PLACES * records or most == number:
            family.tree = tree
            return


def _is_possible(parts: Sequence[Part], number: int) -> bool:
    """Whether there may be a member with this number: loops do not vanish, and have no negative counts."""
    return _is_possible_at(parts, number, ())


def _is_possible_at(parts: Sequence[Part], number: int, point: tuple[int, ...]) -> bool:
    for part in parts:
        if isinstance(part, int):
            continue
        count = part.length.at(number, point)
        if count < (0 if any(part.length.steps) else 1):
            return False
        points = [(*point, k) for k in range(count)] if part.grows else [point]
        if not all(_is_possible_at(part.body, number, inner) for inner in points):
            return False
    return True


def _longest(parts: Sequence[Part], number: int) -> int:
    """The most iterations of a loop whose count depends on the number."""
    return max((shape.length.at(number, ()) for shape in shapes_of(parts) if shape.length.given), default=0)


def _with_room(parts: Sequence[Part], least: int, most: int, around: tuple[Shape, ...]) -> tuple[Part, ...]:
    found: list[Part] = []
    for part in parts:
        if isinstance(part, int):
            found.append(part)
            continue
        counts = (all_counts(counts_of(part.length, around, number, ())) for number in (least, most))
        room = max((count for some in counts for count in some), default=0)
        inner = (*around, part) if part.grows else around
        found.append(part._replace(room=max(room, 1), body=_with_room(part.body, least, most, inner)))
    return tuple(found)


# ---- 3: Programs --------------------------------------------------------------------------------------------------


def _unify(family: Family, members: Sequence[Member], unit: int) -> Shared:
    """The Program of a family, from that of its two known members, whose numbers are 0 and `unit`."""
    boxed = [family.boxed(member, number) for member, number in zip(members, (0, unit))]
    for one in boxed:
        family.require_all(one)
    program, memory = boxed[1].lifted(members[1], family.guide)  # which guides the shorter one
    family.loaded = loaded_constants(program)
    shorter, _ = boxed[0].lifted(members[0], family.guide)
    found = [Numbers.of(one, member.inputs) for one, member in zip((shorter, program), members)]
    tables = [shorter.tables, program.tables]
    family.pattern = Pattern.of(found[0], found[1], unit)
    _write_numbers(family, program)
    regions = _write_tables(family, program, tables, unit)
    _make_room_in_memory(family, members, memory, unit)
    _note_precedent(family, members, boxed, program, regions)
    _leave_out_impossible(family, program, unit)
    _note_longest(family, members, boxed, unit)
    return Shared(family, program, memory)


def _note_precedent(
    family: Family,
    members: Sequence[Member],
    boxed: Sequence[Boxed],
    program: Program,
    regions: Mapping[int, tuple[int, int]],
) -> None:
    """Let later members be compared with the longer one, if few statements depend on the number.

    Args:
        regions: see `_write_tables`.
    """
    last = boxed[1]
    bounds = [node.bound for node in walk(program.forward) if isinstance(node, Loop) and node.bound is not None]
    if last.trace.nests or any(bound.table is not None for bound in bounds):
        return
    numbers = family.statement_numbers(last.number)
    pairs = zip(last.folded(members[1]).places(), statements(program.forward))
    dependent = {
        numbers[place]: statement for place, statement in pairs if _depends(family, program.given[0], statement)
    }
    family.dependent = frozenset({*dependent, *(k for k, op in enumerate(family.operations) if op == BACKWARD)})
    backwards = [node for node in walk(program.forward) if isinstance(node, Backward)]
    family.used = sorted(map(regions.__getitem__, table_offsets([*dependent.values(), *backwards])))
    try:
        other, one = (family.partly_lifted(*pair) for pair in zip(reversed(boxed), reversed(members)))
        family.partial = Pattern.of(one, other, last.number)
    except (Unlike, LiftError):
        return
    for pair in zip(boxed, members):
        family.note(*pair)


def _note_longest(family: Family, members: Sequence[Member], boxed: Sequence[Boxed], unit: int) -> None:
    """Let later members be compared with the longest one that there may be, if these two tell what it is like."""
    if family.precedent is None or family.most == unit or family.longest() > _MOST_GUESSED:
        return
    scale = Scale(unit, family.most)
    found = family.imagined(boxed[0], boxed[1], scale)
    if found is None:
        return
    member = replace(members[1], inputs=longest_inputs(members[0].inputs, members[1].inputs, scale))
    with suppress(Unlike, LiftError, LookupError):  # it is a guess
        family.prove(found, member, is_guess=True)


def _depends(family: Family, given: Given, statement: Statement) -> bool:
    """Whether operands depend on the number, or are constants that each member has for itself."""
    terms: list[Term] = []
    parts = [part for operand in statement.operands for part in leaf_operands(operand)]
    for one in (*parts, *leaf_targets(statement.target)):
        if isinstance(one, (Mixed, TargetMixed)):
            terms += (*one.selector.terms, *one.position.terms)
    for used, index in (*reads(statement), *writes(statement)):
        if index is not None:
            if used.space == "constant" and index.base >= family.loaded:
                return True
            terms += (*index.terms, *(() if index.table is None else index.table.terms))
    return any(loop is given for loop, _ in terms)


def _leave_out_impossible(family: Family, program: Program, known: int) -> None:
    """Leave out members whose indices would be outside of arrays; these two are not among them."""
    (given,) = program.given
    before = family.least
    if not (_is_well_formed(program, -before) and _is_well_formed(program, known - before)):
        raise Unlike("their indices do not follow from the lengths of their loops")
    family.least = _last(0, family.least, lambda number: _is_well_formed(program, number - before))
    family.most = _last(known, family.most, lambda number: _is_well_formed(program, number - before))
    given.count = family.most - family.least + 1
    shift = Substitution(given, given, 1, family.least - before)
    for node in walk(program.forward):
        if isinstance(node, Loop) and node.bound is not None:
            node.bound = Bound(*shift.index(Index(*node.bound))[:3])
        elif isinstance(node, Backward):
            node.root = shift.operand(node.root)
        elif isinstance(node, Statement):
            node.operands = tuple([shift.operand(operand) for operand in node.operands])
            node.target = shift.target(node.target)


def _last(good: int, end: int, is_good: Callable[[int], bool]) -> int:
    """The last good number between one that is and `end`."""
    bad = end + (1 if end >= good else -1)
    while abs(bad - good) > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if is_good(middle) else (good, middle)
    return good


def _is_well_formed(program: Program, number: int) -> bool:
    """Whether there is such an element wherever the Program looks, when this number is given."""

    def check(nodes: list[Node]) -> None:
        verify(Program(nodes, constants=program.constants, tables=program.tables, precision=program.precision))

    nodes = copy_nodes(program.forward, Substitution(program.given[0], None, 1, number))
    try:
        check(nodes)
        check(_at_edges(_with_choices(nodes)))
    except VerificationError:
        return False
    return True


def _at_edges(nodes: Sequence[Node]) -> list[Node]:
    """The first and last iterations, in which choices are what is taken there."""
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop):
            for k in () if node.bound is not None else sorted({0, 1, node.count - 1} & {*range(node.count)}):
                found += _at_edges(copy_nodes(node.body, Substitution(node, None, 1, k)))
        elif isinstance(node, Statement):
            found.append(node)
    return found


def _with_choices(nodes: Sequence[Node]) -> list[Node]:
    """Only statements that choose among elements of memory, and the loops around them, which lose all others."""
    for node in nodes:
        if isinstance(node, Loop):
            node.body = _with_choices(node.body)
    return [node for node in nodes if (node.body if isinstance(node, Loop) else _chooses(node))]


def _chooses(node: Node) -> bool:
    return isinstance(node, Statement) and any(
        isinstance(operand, Choice)
        and any(isinstance(part, Load) and part.reference.array.space != "scratch" for part in leaf_operands(operand))
        for operand in node.operands
    )


def _write_tables(
    family: Family, program: Program, tables: Sequence[Sequence[int]], unit: int
) -> dict[int, tuple[int, int]]:
    """Let the Program of a family have the tables of all members: those that vary get one for each number.

    Returns:
        For each table, by its place in that Program, where it is among those of one member, from .. to.
    """
    (given,) = program.given
    one, family.tables = tables[0], list(tables[1])
    entries, pairs = table_entries(program)
    ends = dict(zip([entry.offset for entry in entries], [*(entry.offset for entry in entries[1:]), len(one)]))
    varying: dict[int, Varying | None] = {}
    for entry in entries:
        here = slice(entry.offset, ends[entry.offset])
        if any(x != y and HOLE not in (x, y) for x, y in zip(one[here], family.tables[here])):
            varying[entry.offset] = _way(family, entry, one[here], given, unit)
        else:
            family.tables[here] = _for_all(family, entry, one[here], given, unit)
    family.varying = [way for way in varying.values() if way is not None]
    for pair in pairs:  # both have the same loops
        if not varying.keys().isdisjoint(pair):
            for offset in pair:
                varying.setdefault(offset, None)
    moved: dict[int, tuple[int, int]] = {}
    contents = list[int]()
    for offset, way in varying.items():
        size = ends[offset] - offset
        moved[offset] = len(one) + len(contents), size
        for number in range(family.least, family.most + 1):
            here = slice(offset, offset + size)
            contents += without_holes(family.tables[here] if way is None else way.at(number, family.tables))
    program.tables = array("i", [*without_holes(family.tables), *contents])

    def table(entry: TableEntry) -> TableEntry:
        if entry.offset not in moved:
            return entry
        offset, size = moved[entry.offset]
        return TableEntry(offset, ((given, size), *entry.terms))

    Numbers(lambda base: (base, ()), Constant, table).rewrite(program)
    return {moved.get(offset, (offset, 0))[0]: (offset, end) for offset, end in ends.items()}


def _for_all(family: Family, entry: TableEntry, one: Sequence[int], given: Given, unit: int) -> list[int]:
    """A table that is the same for all members, also where only longer ones look."""
    found = [y if x == HOLE else x for x, y in zip(one, family.tables[entry.offset :])]
    if HOLE in found:
        way = next(ways(entry, found, found, given, unit, family.least))
        if isinstance(way, Rows) and not way.last:
            more = way._replace(offset=0, end=len(found)).at(family.most, found)
            return [y if x == HOLE else x for x, y in zip(found, more)]
        return continued(entry, found, given, family.least)
    return found


def _way(family: Family, entry: TableEntry, one: Sequence[int], given: Given, unit: int) -> Varying:
    """How a table varies.

    Args:
        one: its contents for number 0; those for number `unit` are among the tables of the family.
    """
    other = family.tables[entry.offset : entry.offset + len(one)]
    for way in ways(entry, one, other, given, unit, family.least):
        known = zip((*one, *other), (*way.at(0, family.tables), *way.at(unit, family.tables)))
        if all(x in (y, HOLE) for x, y in known):
            return way
    raise Unlike("some of their indices follow no rule, and are other ones")


def _write_numbers(family: Family, program: Program) -> None:
    """Let a lifted Program have the numbers of the family."""
    given = Given(family.most - family.least + 1)
    numbers, constants = iter(family.pattern.numbers), iter(family.pattern.constants)
    read = (used for statement in statements(program.forward) for used in arrays_read(statement))
    own = next((used for used in read if used.space == "constant"), None) or Array("constants", "constant", 0)
    own.size = family.loaded

    def number(_: int) -> tuple[int, tuple[Term, ...]]:
        base, step = next(numbers)
        return base + step * family.least, (((given, step),) if step else ())

    def constant(_: float) -> Operand:
        same = next(constants)
        if same is not None:
            return Constant(same)
        own.size += 1
        return Load(Reference(own, Index(own.size - 1)))

    Numbers(number, constant).rewrite(program)
    program.given = (given,)
    program.constants = array(program.precision.format, [0.0] * own.size)


def _make_room_in_memory(family: Family, members: Sequence[Member], memory: Memory, unit: int) -> None:
    """Let arrays that are longer for longer members have the size of the longest one, and know that of the shortest."""
    shortest = Memory(members[0].trace, members[0].inputs)
    for kind in (INPUT, OUTPUT, LOCAL, LOCAL_GRADIENT):
        for (_, mine), (_, theirs) in zip(memory.regions[kind], shortest.regions[kind]):
            more, rest = divmod(mine.size - theirs.size, unit)
            if rest:
                raise Unlike("the lengths of their arguments follow no progression")
            sizes = [theirs.size + more * number for number in (family.least, family.most)]
            mine.size, mine.least = max(sizes), min(sizes)
