"""One step of a loop over rows, with independent statements as lanes of vectors ("superwords").

    %0 = multiply(p0[0], x0[0])               for i in 0 .. 3, as lanes:
    %1 = add(p0[2], %0)                           %0 = multiply(p0[i], x0[0])
    %2 = multiply(p0[3], x0[0])         ->        %1 = add(p0[4 + i], %0)
    %3 = add(p0[5], %2)
    ...                                       (p0[0], p0[3], p0[6], p0[9] are side by side now)

Straight-line code needs a register for each number.  The units of a layer do the same to different numbers: as lanes,
they take a fourth of the instructions and of the registers.

1. The phases of a straight step become one list, in which everything computed is a register.
2. Statements that were the same one in the iterations of a loop are candidates, as many at a time as a vector has
   lanes, and so are statements that use the lanes of a pack.
3. Candidates are a pack if they do the same operation, each operand is the same number for all of them, elements of an
   array side by side, or the lanes of another pack in order, and no lane needs another.  The order of elements in an
   array that is local to the loop (codegen/rows.py) is free, so the first pack that reads some of them decides it.
4. Packs of which nobody uses whole vectors are none.  A row takes as long as its operations, or as its longest chain,
   where single numbers become lanes or lanes single numbers: unless the estimate is less, everything stays as it is.
5. All packs that are ready become a loop over lanes, then all statements that are, and so on.  What only outputs need
   comes last: it may call functions, for which all registers are stored.
6. What is needed of a vector outside of its loop goes through an array of scratch memory, which compilers keep in
   registers.

Source: S. Larsen, S. Amarasinghe, "Exploiting superword level parallelism with multimedia instruction sets", 2000.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from ...engine.operations import operations
from ...ir.dependence import plain
from ...ir.program import (
    Array,
    Index,
    Load,
    Loop,
    Node,
    Operand,
    Program,
    Reference,
    Register,
    Row,
    Statement,
    reads,
    statements,
    writes,
)
from ...ir.rewrite import registers_used, rewrite_operands
from ...ir.substitute import Substitution, copy_nodes
from ..simplify.common import operand_key
from ..simplify.registers import forward_copies, use_registers
from ..simplify.simplify import delete_dead_statements

#: Statements that do the same to different numbers, in the order of their lanes.
Pack = tuple[Statement, ...]

#: Vectors of two numbers cost what they save.
_FEWEST_LANES = 4
#: Cycles of an operation, and of a number that is taken out of a vector or put into all its lanes.
_LATENCY, _MOVE = 4, 3
#: What vectors must save, since that is an estimate.
_MOST = 0.9
#: Longer arrays stay where they are: copying them would take longer than a few short rows.
_MOST_ELEMENTS = 128
#: What is one instruction for a vector, too.
_OPERATIONS = operations(lambda one: one.is_instruction)


def pack_statements(program: Program, alike: Iterable[Pack], lanes: int) -> None:
    """Give a straight Program the form of a step for a loop over rows, if it is faster.

    Args:
        alike: for each loop that was unrolled, outer ones first, each statement in all iterations.
        lanes: numbers in a vector.
    """
    if lanes < _FEWEST_LANES:
        return
    copies = Substitution()
    one = Program([node for _, phase in program.phases for node in copy_nodes(phase, copies)])
    _simplify(one)
    packing = _Packing([*statements(one.forward)])
    candidates = [tuple(copies.registers.get(s, s) for s in pack) for pack in alike]
    packing.find([part for pack in candidates for part in _cut(pack, lanes)])
    if packing.cycles() < _MOST * _Packing(packing.statements).cycles():
        program.row = packing.row()


def local_arrays(nodes: Sequence[Node]) -> list[Array]:
    """The arrays that can be local to a loop over rows, in the order of their first use."""
    found: dict[Array, bool] = {}
    for statement in statements(nodes):
        for array, index in (*reads(statement), *writes(statement)):
            found[array] = found.get(array, array.joined is None) and plain(index) is not None
    stays = ("parameter", "gradient", "state", "scratch")
    return [array for array, known in found.items() if known and array.space in stays and array.size <= _MOST_ELEMENTS]


def _simplify(program: Program) -> None:
    """What is computed becomes a register, and what is a copy becomes the original, in place."""
    use_registers(program, across_loops=True)
    forward_copies(program.forward)
    sources: dict[Statement, Operand] = {}

    def original(operand: Operand) -> Operand:
        return sources.get(operand.statement, operand) if isinstance(operand, Register) else operand

    for statement in statements(program.forward):
        rewrite_operands(statement, original)
        if statement.operation == "copy" and isinstance(statement.operands[0], Register):
            sources[statement] = statement.operands[0]
    delete_dead_statements(program)


def _cut(pack: Pack, lanes: int) -> Iterator[Pack]:
    """As many lanes at a time as there are, by powers of two."""
    start = 0
    while lanes >= _FEWEST_LANES:
        while len(pack) - start >= lanes:
            yield pack[start : start + lanes]
            start += lanes
        lanes //= 2


class _Packing:
    """The packs of a list of statements.

    Attributes:
        packs: by each of their statements.
        runs: the elements of a local array that are side by side, by each of them.
    """

    def __init__(self, nodes: list[Statement]) -> None:
        self.statements = nodes
        self.local = {*local_arrays(nodes)}
        self.packs: dict[Statement, Pack] = {}
        self.runs: dict[tuple[Array, int], tuple[int, ...]] = {}
        self._refused: set[Pack] = set()
        self._needs = _needs(nodes)
        self._users: defaultdict[Statement, list[tuple[Statement, int]]] = defaultdict(list)
        for statement in nodes:
            for place, operand in enumerate(statement.operands):
                if isinstance(operand, Register):
                    self._users[operand.statement].append((statement, place))

    # ---- 2 to 4: which statements are packs ---------------------------------------------------------

    def find(self, candidates: Sequence[Pack]) -> None:
        """Find packs, until there are no more."""
        candidates = [pack for pack in candidates if all(s in self._needs for s in pack)]
        while True:
            found = [pack for pack in candidates if self._take(pack)]
            while found:
                found = [pack for known in found for pack in self._using(known) if self._take(pack)]
                found += [pack for pack in candidates if self._take(pack)]
            useless = [pack for pack in self._all() if not self._is_used(pack)]
            if not useless:
                return
            self._refused |= {*useless}
            self.packs, self.runs = {}, {}

    def _all(self) -> list[Pack]:
        return [*dict.fromkeys(self.packs[s] for s in self.statements if s in self.packs)]

    def _using(self, pack: Pack) -> Iterator[Pack]:
        """Candidates: what uses all lanes of a pack in the same way."""
        ways: list[defaultdict[tuple[str, int], list[Statement]]] = [defaultdict(list) for _ in pack]
        for lane, statement in enumerate(pack):
            for user, place in self._users[statement]:
                ways[lane][user.operation, place].append(user)
        for way in ways[0]:
            users = [found[way] for found in ways]
            if len({*map(len, users)}) == 1:
                yield from zip(*users)

    def _take(self, pack: Pack) -> bool:
        """Make statements a pack, if they can be one."""
        if pack in self._refused or len({*pack}) < len(pack) or any(s in self.packs for s in pack):
            return False
        if pack[0].operation not in _OPERATIONS or len({s.operation for s in pack}) > 1 or any(s.update for s in pack):
            return False
        before = dict(self.runs)
        operands = [*zip(*(s.operands for s in pack))]
        vectors = [part for part in operands if not _are_same(part)]
        targets = [s.target for s in pack]
        fits = targets == [None] * len(pack) or (None not in targets and self._is_run(targets))
        if vectors and fits and all(map(self._are_lanes, vectors)) and not self._need_each_other(pack):
            self.packs.update(dict.fromkeys(pack, pack))
            return True
        self.runs = before
        return False

    def _are_lanes(self, operands: Sequence[Operand]) -> bool:
        """Whether operands are those of lanes, in order."""
        registers = tuple(operand.statement for operand in operands if isinstance(operand, Register))
        if registers:
            return len(registers) == len(operands) and self.packs.get(registers[0]) == registers
        return self._is_run([operand.reference if isinstance(operand, Load) else None for operand in operands])

    def _is_run(self, places: Sequence[object]) -> bool:
        """Whether elements are side by side, or can be."""
        found = [one for one in places if isinstance(one, Reference) and plain(one.index) is not None]
        if len(found) < len(places) or len({one.array for one in found}) > 1:
            return False
        array, run = found[0].array, tuple(one.index.base for one in found)
        if array not in self.local:
            return run == (*range(run[0], run[0] + len(run)),)
        known = {self.runs.get((array, element)) for element in run}
        if known == {None} and len({*run}) == len(run):
            self.runs.update({(array, element): run for element in run})
            return True
        return known == {run}

    def _need_each_other(self, pack: Pack) -> bool:
        """Whether a lane cannot be executed before another one has been, if packs are executed at once."""
        inside, seen = {*pack}, set[Statement]()
        work = [needed for statement in pack for needed in self._needs[statement]]
        while work:
            statement = work.pop()
            if statement in inside:
                return True
            if statement not in seen:
                together = self.packs.get(statement, (statement,))
                seen.update(together)
                work += [needed for one in together for needed in self._needs[one]]
        return False

    def _is_used(self, pack: Pack) -> bool:
        """Whether a pack is more than numbers that are loaded at once and used one by one."""
        return (
            pack[0].target is not None
            or any(isinstance(operand, Register) and operand.statement in self.packs for operand in pack[0].operands)
            or any(user in self.packs and not _is_same(user, place, self.packs) for user, place in self._users[pack[0]])
        )

    def cycles(self) -> int:
        """How long a row takes, in cycles: that of its operations, or that of the longest chain from row to row."""
        ends: dict[Statement, int] = {}
        work, taken = 0, set[object]()
        for unit in self._in_turns():
            start = 0
            for operands in zip(*(s.operands for s in unit)):
                is_vector = len(unit) > 1 and not _are_same(operands)
                for operand in operands:
                    if isinstance(operand, Register):
                        crosses = (operand.statement in self.packs) != is_vector
                        start = max(start, ends[operand.statement] + crosses * _MOVE)
                    single = None if is_vector else self._in_vector(operand)
                    if single is not None:
                        taken.add(single)
                        start = max(start, _MOVE)
            takes = unit[0].operation != "copy"
            work += takes
            ends.update(dict.fromkeys(unit, start + takes * _LATENCY))
        kept = (ends[s] for s in self.statements if any(array.space != "output" for array, _ in writes(s)))
        return max(work + len(taken), *kept, 0)

    def _in_vector(self, operand: Operand) -> object:
        """What has to be taken out of a vector for an operand; None if nothing has."""
        if isinstance(operand, Register):
            return operand.statement if operand.statement in self.packs else None
        if isinstance(operand, Load) and plain(operand.reference.index) is not None:
            place = operand.reference.array, operand.reference.index.base
            return place if place in self.runs else None
        return None

    # ---- 5 and 6: the step ---------------------------------------------------------------------------

    def row(self) -> Row:
        """The statements in another order, packs as loops over lanes."""
        places = {}
        for array in dict.fromkeys(array for array, _ in self.runs):
            first = [element for (one, _), run in self.runs.items() if one is array for element in run]
            order = [*dict.fromkeys([*first, *range(array.size)])]
            places[array] = tuple(map(order.index, range(array.size)))
        row = _Row(self.packs, self._needs, places)
        for unit in self._in_turns():
            row.add(unit)
        return Row(row.nodes, places)

    def _in_turns(self) -> Iterator[Pack]:
        """Packs and single statements as they are ready."""
        waiting = [*dict.fromkeys(self.packs.get(s, (s,)) for s in self.statements)]
        unit_of = {statement: unit for unit in waiting for statement in unit}
        needs = {unit: {unit_of[needed] for s in unit for needed in self._needs[s]} - {unit} for unit in waiting}
        late = _late(waiting, needs)
        done: set[Pack] = set()
        vectors = True
        while waiting:
            rest = []
            may_be_late = len(waiting) == len(late - done)
            for unit in waiting:
                if (len(unit) > 1) == vectors and needs[unit] <= done and (may_be_late or unit not in late):
                    done.add(unit)
                    yield unit
                else:
                    rest.append(unit)
            waiting, vectors = rest, not vectors


def _needs(nodes: Sequence[Statement]) -> dict[Statement, list[Statement]]:
    """What must be executed before each statement: what it uses, and what reads or writes the same elements."""
    needs = {}
    touched: defaultdict[Array, list[tuple[Statement, Index | None, bool]]] = defaultdict(list)
    for statement in nodes:
        found = dict.fromkeys(registers_used(statement))
        mine = [(array, plain(index), False) for array, index in reads(statement)]
        mine += [(array, plain(index), True) for array, index in writes(statement)]
        for array, index, writing in mine:
            found.update(
                (other, None)
                for other, place, written in touched[array]
                if (writing or written) and (index is None or place is None or index.base == place.base)
            )
        for array, index, writing in mine:
            touched[array].append((statement, index, writing))
        needs[statement] = [*found]
    return needs


def _late(units: Sequence[Pack], needs: dict[Pack, set[Pack]]) -> set[Pack]:
    """Units on which nothing but outputs depends."""
    late: set[Pack] = set()
    users: defaultdict[Pack, list[Pack]] = defaultdict(list)
    for unit in units:
        for needed in needs[unit]:
            users[needed].append(unit)
    for unit in reversed(units):
        spaces = {array.space for s in unit for array, _ in writes(s)}
        if spaces <= {"output"} and all(user in late for user in users[unit]):
            late.add(unit)
    return late


def _are_same(operands: Sequence[Operand]) -> bool:
    return len({operand_key(operand) for operand in operands}) == 1


def _is_same(user: Statement, place: int, packs: dict[Statement, Pack]) -> bool:
    """Whether an operand of a statement is the same for all lanes of its pack."""
    return _are_same([s.operands[place] for s in packs.get(user, (user,))])


class _Row:
    """The nodes of a step; its statements are changed in place."""

    def __init__(
        self,
        packs: dict[Statement, Pack],
        needs: dict[Statement, list[Statement]],
        places: dict[Array, tuple[int, ...]],
    ) -> None:
        self.nodes: list[Node] = []
        self._packs, self._needs, self._places = packs, needs, places
        #: Each pack as a statement, and the loop that it is in.
        self._vectors: dict[Pack, tuple[Statement, Loop]] = {}
        self._memory: dict[Pack, Array] = {}

    def add(self, unit: Pack) -> None:
        """The next statement or pack."""
        if len(unit) == 1:
            rewrite_operands(unit[0], self._single)
            if isinstance(unit[0].target, Reference):
                unit[0].target = self._moved(unit[0].target)
            self.nodes.append(unit[0])
            return
        loop = self.nodes[-1] if self.nodes else None
        if not isinstance(loop, Loop) or loop.count != len(unit) or self._crosses(unit, loop):
            loop = Loop(len(unit), [], lanes=True)
            self.nodes.append(loop)
        first = unit[0]
        operands = [self._operand([s.operands[k] for s in unit], loop) for k in range(len(first.operands))]
        target = self._vector(first.target, loop) if isinstance(first.target, Reference) else None
        vector = Statement(first.operation, tuple(operands), target, passes=first.passes, origin=first.origin)
        loop.body.append(vector)
        self._vectors[unit] = vector, loop

    def _crosses(self, unit: Pack, loop: Loop) -> bool:
        """Whether a lane needs another lane of a pack in the loop."""
        return any(
            needed in self._packs
            and self._packs[needed] in self._vectors
            and self._vectors[self._packs[needed]][1] is loop
            and self._packs[needed].index(needed) != lane
            for lane, statement in enumerate(unit)
            for needed in self._needs[statement]
        )

    def _operand(self, operands: Sequence[Operand], loop: Loop) -> Operand:
        """An operand of a pack."""
        first = operands[0]
        if isinstance(first, Register) and not _are_same(operands):
            pack = self._packs[first.statement]
            vector, where = self._vectors[pack]
            return Register(vector) if where is loop else Load(Reference(self._stored(pack), Index(0, ((loop, 1),))))
        if isinstance(first, Load) and not _are_same(operands):
            return Load(self._vector(first.reference, loop))
        return self._single(first)

    def _single(self, operand: Operand) -> Operand:
        """An operand that is one number."""
        if isinstance(operand, Register) and operand.statement in self._packs:
            pack = self._packs[operand.statement]
            return Load(Reference(self._stored(pack), Index(pack.index(operand.statement))))
        return Load(self._moved(operand.reference)) if isinstance(operand, Load) else operand

    def _stored(self, pack: Pack) -> Array:
        """The array that holds the lanes of a pack."""
        if pack not in self._memory:
            vector, loop = self._vectors[pack]
            array = self._memory[pack] = Array(f"lanes{len(self._memory)}", "scratch", len(pack))
            place = Reference(array, Index(0, ((loop, 1),)))
            if vector.target is None:
                vector.target = place
            else:
                loop.body.append(Statement("copy", (Register(vector),), place))
        return self._memory[pack]

    def _moved(self, one: Reference) -> Reference:
        """An element where it lies now."""
        places = self._places.get(one.array)
        return one if places is None else Reference(one.array, Index(places[one.index.base]))

    def _vector(self, first: Reference, loop: Loop) -> Reference:
        """The elements of all lanes."""
        return Reference(first.array, Index(self._moved(first).index.base, ((loop, 1),)))
