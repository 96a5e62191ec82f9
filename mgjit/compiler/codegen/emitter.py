"""The part shared by the C and the Python generator: walking a Program and addressing its arrays.

A subclass supplies the syntax.  A loop whose iterations are side by side is emitted as a copy for each of them.  Sums
whose target does not change inside a loop are kept in a local variable while the loop runs.  Nothing else is rewritten
here instead of in a pass: these make up for what a compiler does not know (that arrays do not overlap, what is best in
registers), and do not change the Program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Callable

from ...ir.domain import full_range
from ...ir.program import (
    Array,
    Block,
    Choice,
    Constant,
    Given,
    Index,
    Joined,
    Load,
    Loop,
    Mixed,
    Node,
    Operand,
    Program,
    Reference,
    Register,
    Statement,
    TableEntry,
    Target,
    TargetChoice,
    TargetMixed,
    reads,
    statements,
    writes,
)
from ...ir.substitute import Substitution, copy_nodes
from .accumulators import invariant_accumulators
from .layout import Layout, Selection


class Emitter:
    """Emits the body of one function; subclasses emit whole modules."""

    indent_unit = "    "
    #: Whether a loop over lanes is emitted as vector operations.
    has_vectors = False
    #: The operator that divides ints.
    whole = "/"

    def __init__(self, program: Program, layout: Layout) -> None:
        self.program, self.layout = program, layout
        self.lines: list[str] = []
        self.depth = 1
        self.used: dict[Array, None] = {}
        self.open_loops: list[str] = []
        self._names: dict[Statement, str] = {}
        self._loops: dict[Loop, str] = {}
        self._copies: dict[Loop, list[Node]] = {}
        self._accumulators: dict[Reference, str] = {}
        #: Whether the innermost loop that is open counts down.
        self._is_reversed = False
        self._regions: dict[tuple[Array, Index], str] = {}  # pointers to them that have names
        self._selections: dict[int, tuple[object, Selection]] = {}
        self._counter = 0
        #: Called when a node has been emitted.
        self.after_node: Callable[[Node], None] = lambda node: None

    # ---- syntax, by subclasses ------------------------------------------------------------------

    def line(self, text: str) -> None:
        """Emit one line."""
        self.lines.append(self.indent_unit * self.depth + text)

    def expression(self, operation: str, operands: Sequence[str]) -> str:
        """The text of an operation."""
        raise NotImplementedError

    def constant(self, value: float) -> str:
        """The text of a number."""
        raise NotImplementedError

    def element(self, array: Array, index: str) -> str:
        """The text of a read of an array element, converted to the step's number type."""
        raise NotImplementedError

    def place(self, array: Array, index: str) -> str:
        """The text of an array element as the target of an assignment."""
        raise NotImplementedError

    def pointer(self, slot: str) -> str:
        """The text of a pointer to numbers, from the pointer block."""
        raise NotImplementedError

    def define_pointer(self, name: str, pointer: str) -> None:
        """Emit the definition of a pointer to numbers."""
        raise NotImplementedError

    def list_of(self, numbers: Sequence[int]) -> str:
        """The text of ints, of which one is chosen when the step runs."""
        raise NotImplementedError

    def choice(self, condition: str, first: str, rest: str) -> str:
        """The text of a conditional expression."""
        raise NotImplementedError

    def define(self, name: str, value: str) -> None:
        """Emit the definition of a local variable."""
        raise NotImplementedError

    def assign(self, place: str, value: str) -> None:
        """Emit an assignment."""
        raise NotImplementedError

    def open_loop(self, name: str, loop: Loop) -> None:
        """Emit the head of a loop and go one level deeper."""
        raise NotImplementedError

    def ask_ahead(self, loop: Loop, behind: Iterable[Node]) -> None:
        """Ask memory, in front of a loop, for what the nodes behind it read; does nothing where that is not needed."""

    def keep_rolled(self) -> None:
        """Ask the compiler not to unroll the loop that is opened next; does nothing where that is not needed."""

    def open_if(self, condition: str) -> None:
        """Emit the head of a condition and go one level deeper."""
        raise NotImplementedError

    def open_else(self) -> None:
        """Emit the `else` of a condition."""
        raise NotImplementedError

    def close(self) -> None:
        """End a loop or condition."""
        raise NotImplementedError

    def integer(self, text: str) -> str:
        """The text of a float converted to an index."""
        raise NotImplementedError

    def table_element(self, index: str) -> str:
        """The text of an index table entry."""
        raise NotImplementedError

    def given_number(self, place: int) -> str:
        """The text of a number that is known when the step runs."""
        raise NotImplementedError

    def scratch_element(self, index: str) -> str:
        """The text of an element of the whole scratch memory."""
        raise NotImplementedError

    def call_block(self, block: Block) -> None:
        """Emit the call of a block's function."""
        raise NotImplementedError

    def vector_load(self, reference: Reference, lane: Loop) -> str:
        """The text of a vector that is read from memory."""
        raise NotImplementedError

    def store_vector(self, target: Reference, lane: Loop, value: str) -> None:
        """Emit the assignment of a vector to memory."""
        raise NotImplementedError

    def define_vector(self, name: str, value: str, lane: Loop) -> None:
        """Emit the definition of a local vector."""
        raise NotImplementedError

    # ---- nodes ------------------------------------------------------------------------------------

    def nodes(self, nodes: Sequence[Node]) -> None:
        """Emit a sequence of nodes."""
        for number, node in enumerate(nodes):
            if isinstance(node, Loop) and node.beside:
                self.nodes(self.copies(node))
            elif isinstance(node, Loop):
                if self.open_loops:
                    self.ask_ahead(node, self.copied(islice(nodes, number + 1, None)))
                self.loop(node)
            elif isinstance(node, Block):
                self.call_block(node)
            elif isinstance(node, Statement):
                self.statement(node)
            self.after_node(node)

    def copies(self, loop: Loop) -> list[Node]:
        """The nodes of all iterations of a loop that are side by side."""
        if loop not in self._copies:
            iterations = (copy_nodes(loop.body, Substitution(loop, None, 1, k)) for k in range(loop.count))
            self._copies[loop] = [node for nodes in iterations for node in self.copied(nodes)]
        return self._copies[loop]

    def copied(self, nodes: Iterable[Node]) -> Iterator[Node]:
        """The nodes, in place of a loop whose iterations are side by side those of all iterations."""
        for node in nodes:
            if isinstance(node, Loop) and node.beside:
                yield from self.copies(node)
            else:
                yield node

    def loop(self, loop: Loop) -> None:
        """Emit a loop, keeping its invariant accumulators in local variables."""
        name = self._loops[loop] = f"i{len(self._loops)}"
        body = list(self.copied(loop.body))
        added = []
        for target, lane in invariant_accumulators(loop, self.has_vectors, body):
            if target not in self._accumulators:
                accumulator = self.fresh("a")
                if lane is None:
                    self.define(accumulator, self.reference(target))
                else:
                    self.define_vector(accumulator, self.vector_load(target, lane), lane)
                added.append((target, accumulator, lane))
        for target, accumulator, _ in added:
            self._accumulators[target] = accumulator
        outer_is_reversed, self._is_reversed = self._is_reversed, loop.reverse
        if loop.reverse and outer_is_reversed and _adds_up(body):
            self.keep_rolled()
        self.open_loop(name, loop)
        self.open_loops.append(name)
        named = self._name_regions(body)
        self.body(loop)
        self.open_loops.pop()
        self.close()
        for key in named:
            del self._regions[key]
        self._is_reversed = outer_is_reversed
        for target, accumulator, lane in added:
            del self._accumulators[target]
            if lane is None:
                self.assign(self.reference(target), accumulator)
            else:
                self.store_vector(target, lane, accumulator)

    def _name_regions(self, body: Sequence[Node]) -> list[tuple[Array, Index]]:
        """Emit pointers to the regions of joined arrays that are used in a loop, and known where it is entered."""
        named = []
        for statement in statements(body) if self.layout.slots_of else ():
            for array, index in (*reads(statement), *writes(statement)):
                apart = in_regions(array.joined, index) if array.joined is not None and index is not None else None
                if apart is None or (array, apart[0]) in self._regions:
                    continue
                if all(self._loops.get(loop) in self.open_loops for loop, _ in apart[0].terms):
                    name, key = self.fresh("at"), (array, apart[0])
                    self.define_pointer(name, self.region(array, self.index(apart[0])).name)
                    self._regions[key] = name
                    named.append(key)
        return named

    def body(self, loop: Loop) -> None:
        """Emit what a loop contains."""
        self.nodes(loop.body)

    def statement(self, statement: Statement) -> None:
        """Emit one statement."""
        operands = [self.operand(operand) for operand in statement.operands]
        if statement.update:
            self.update(statement, statement.target, operands)
            return
        name = self._names[statement] = self.fresh("v")
        self.define(name, self.expression(statement.operation, operands))
        self.store(statement.target, name)

    def update(self, statement: Statement, target: Target, operands: list[str]) -> None:
        """Emit `target = operation(target, operands)`."""
        if isinstance(target, TargetChoice):
            self.open_if(f"{self._loops[target.loop]} == 0")
            self.update_or_pass(statement, target.first, operands)
            self.open_else()
            self.update_or_pass(statement, target.rest, operands)
            self.close()
        elif isinstance(target, TargetMixed):
            self.mixed_assign(target, lambda place: self.expression(statement.operation, [place, *operands]))
        elif target is not None:
            place = self._accumulators.get(target) or self.reference(target)
            self.assign(place, self.expression(statement.operation, [place, *operands]))

    def update_or_pass(self, statement: Statement, target: Target, operands: list[str]) -> None:
        """Emit an update, or a no-op if the target is None."""
        if target is None:
            self.assign(self.scratch_element(str(self.layout.scratch_size - 1)), self.constant(0.0))
        else:
            self.update(statement, target, operands)

    def store(self, target: Target, value: str) -> None:
        """Emit `target = value`."""
        if isinstance(target, Reference):
            self.assign(self.reference(target), value)
        elif isinstance(target, TargetChoice):
            self.open_if(f"{self._loops[target.loop]} == 0")
            self.store(target.first, value)
            self.open_else()
            self.store(target.rest, value)
            self.close()
        elif isinstance(target, TargetMixed):
            self.mixed_assign(target, lambda place: value)

    # ---- operands -----------------------------------------------------------------------------------

    def iterations(self, loop: Loop) -> str:
        """The text of the number of iterations of a loop."""
        return str(loop.count) if loop.bound is None else self.index(Index(*loop.bound))

    def operand(self, operand: Operand) -> str:
        """The text of an operand."""
        if isinstance(operand, Constant):
            return self.constant(operand.value)
        if isinstance(operand, Register):
            return self._names[operand.statement]
        if isinstance(operand, Load):
            return self.element(*self.located(operand.reference))
        if isinstance(operand, Choice):
            first, rest = self.operand(operand.first), self.operand(operand.rest)
            return self.choice(f"{self._loops[operand.loop]} == 0", first, rest)
        selection = self.selection(operand)
        position = self.entry(selection.position)
        texts = [self.base_element(base, position) for base in selection.bases]
        text = texts[-1]
        for number in range(len(texts) - 2, -1, -1):
            text = self.choice(f"{self.entry(selection.selector)} == {number}", texts[number], text)
        return text

    def mixed_assign(self, target: TargetMixed, value: Callable[[str], str]) -> None:
        """Emit an assignment to one of several arrays."""
        selection = self.selection(target)
        position = self.entry(selection.position)
        opened = 0
        for number, base in enumerate(selection.bases):
            if number < len(selection.bases) - 1:
                self.open_if(f"{self.entry(selection.selector)} == {number}")
                opened += 1
            place = self.base_place(base, position)
            self.assign(place, value(place))
            if number < len(selection.bases) - 1:
                self.open_else()
        for _ in range(opened):
            self.close()

    def selection(self, mixed: Mixed | TargetMixed) -> Selection:
        """The tables of a mixed operand, which are made once."""
        known = self._selections.get(id(mixed))
        if known is None:
            known = self._selections[id(mixed)] = mixed, self.layout.selection(mixed)
        for base in known[1].bases:
            if base is not None and base.joined is None:
                self.used[base] = None
        return known[1]

    def base_element(self, base: Array | None, position: str) -> str:
        """The text of a read from an array, or from the whole scratch memory if `base` is None."""
        return self.scratch_element(position) if base is None else self.element(*self.located_by_text(base, position))

    def base_place(self, base: Array | None, position: str) -> str:
        """The text of an assignment target in an array, or in the whole scratch memory if `base` is None."""
        return self.scratch_element(position) if base is None else self.place(*self.located_by_text(base, position))

    def reference(self, reference: Reference) -> str:
        """The text of an element as the target of an assignment."""
        return self.place(*self.located(reference))

    def located(self, reference: Reference) -> tuple[Array, str]:
        """The array of an element, or the one of the regions that it is joined of; and the text of its index there."""
        array, index = reference
        if array.joined is None:
            self.used[array] = None
            return array, self.index(index)
        apart = in_regions(array.joined, index)
        if apart is None:
            return self.located_by_text(array, self.index(index))
        name = self._regions.get((array, apart[0]))
        place = self.region(array, self.index(apart[0])) if name is None else _named(name, array)
        return place, self.index(apart[1])

    def located_by_text(self, array: Array, index: str) -> tuple[Array, str]:
        """The same for an index that is known when the step runs."""
        if array.joined is None:
            return array, index
        pitch = array.joined.pitch
        return self.region(array, f"({index}) {self.whole} {pitch}"), f"({index}) % {pitch}"

    def region(self, array: Array, number: str) -> Array:
        """The region of this number of a joined array, by a name that is the text of its pointer."""
        slots = self.layout.slots_of[array]
        step = slots[1] - slots[0]
        if number.isdigit():
            slot = str(slots[int(number)])
        elif slots == [*range(slots[0], slots[0] + step * len(slots), step)]:
            slot = f"{slots[0]} + {step} * ({number})"
        else:
            slot = f"{self.list_of(slots)}[{number}]"
        return _named(self.pointer(slot), array)

    def index(self, index: Index) -> str:
        """The text of an index."""
        parts = self.terms(index.terms)
        if index.table is not None:
            parts.append(self.entry(index.table))
        if index.dynamic is not None:
            parts.append(f"{index.dynamic.stride} * {self.integer(self.operand(index.dynamic.operand))}")
        return self.sum(parts, index.base)

    def entry(self, entry: TableEntry) -> str:
        """The text of a table entry."""
        return self.table_element(self.sum(self.terms(entry.terms), entry.offset))

    def terms(self, terms: Sequence[tuple[Loop, int]]) -> list[str]:
        """The texts of linear terms."""
        return [self._variable(loop) if c == 1 else f"{c} * {self._variable(loop)}" for loop, c in terms]

    def _variable(self, loop: Loop) -> str:
        """The text of a loop variable, or of a number that is given."""
        return self.given_number(self.layout.given[loop]) if isinstance(loop, Given) else self._loops[loop]

    @staticmethod
    def sum(parts: Sequence[str], base: int) -> str:
        """The text of a sum."""
        if not parts:
            return str(base)
        text = " + ".join(parts)
        return f"{text} {'+' if base > 0 else '-'} {abs(base)}" if base else text

    def enter_scope(self, outer: Emitter) -> None:
        """Make the loops around a block's call visible inside the block."""
        self._loops = dict(outer._loops)
        self.open_loops, self._is_reversed = list(outer.open_loops), outer._is_reversed

    def fresh(self, prefix: str) -> str:
        """A new local name."""
        self._counter += 1
        return f"{prefix}{self._counter}"


def _named(name: str, array: Array) -> Array:
    """An array of the same kind."""
    return Array(name, array.space, array.size, array.region, array.format)


def in_regions(joined: Joined, index: Index) -> tuple[Index, Index] | None:
    """The number of a region, and the index in it, of an element of a joined array; None if only both are known."""
    pitch = joined.pitch
    if index.table is not None:
        return None
    number = Index(index.base // pitch, tuple((loop, c // pitch) for loop, c in index.terms if c % pitch == 0))
    inside = index._replace(base=index.base % pitch, terms=tuple(term for term in index.terms if term[1] % pitch))
    low, high = full_range(inside)
    return (number, inside) if low >= 0 and high < joined.size else None


def _adds_up(nodes: Sequence[Node]) -> bool:
    """Whether there is an update among these statements, also as lanes."""
    return any(
        node.update if isinstance(node, Statement) else isinstance(node, Loop) and node.lanes and _adds_up(node.body)
        for node in nodes
    )
