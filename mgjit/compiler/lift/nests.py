"""Operations on tensors as statements: a loop nest of the trace (record/nests.py) becomes a nest of the Program.

Nothing here depends on how often the loops run.

1. Each step of the body is a statement with an array of results, one for each iteration, as if it had been lifted from
   single records; the passes remove most of them again.
2. A sum is what simplify/reductions.py makes of one: `target = 0.0` in front of the inner loops, and an update inside.
3. What else is carried from one iteration to the next is read from the results of the one before, the first one
   finding the initial value.
4. In loops around it, found by rolling, it has a place for each of its operands in each iteration (nest_places.py).
5. Loops of one iteration are left out: passes and compilers do not expect them (gcc 12 gets some wrong at -O3).
6. Of a nest that adds, the results are terms of a sum that another nest has begun.
7. An operand through which no gradient may flow is copied by a statement that no backward pass reaches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.bodies import Element, Result, Source, Step
from ...ir.builders import nested, row_major
from ...ir.derivatives import RULES
from ...ir.opcodes import CONSTANT, leaf_index, leaf_kind
from ...ir.program import Array, Choice, Constant, Dynamic, Index, Load, Loop, Node, Operand, Reference, Statement
from ..roll.forest import LiftError
from .nest_places import Around, Column, spans_of

if TYPE_CHECKING:
    from ...ir.bodies import Body
    from .lift import _Lifter


def lift_nest(lifter: _Lifter, around: Around, passes: frozenset[int]) -> list[Node]:
    """The nodes of a nest, to be put into the loops around it.

    Args:
        lifter: knows the arrays behind leaves.
        around: the loops.
        passes: the numbers of the backward passes that reach it.

    Raises:
        LiftError: an operand is in several arrays.
    """
    return _Lifted(lifter, around, passes).nodes()


class _Lifted:
    def __init__(self, lifter: _Lifter, around: Around, passes: frozenset[int]) -> None:
        self._lifter, self._position, self._passes = lifter, around.position, passes
        self._dimensions, self._nests = around.dimensions, around.nests(lifter.trace)
        self._nest = nest = self._nests[0]
        self._around = [d.loop for d in around.dimensions]
        self._outer = [Loop(count, []) for count in nest.outer]
        self._inner = [Loop(count, []) for count in nest.inner]
        self._loops = [*self._outer, *self._inner]
        self._counts = (*nest.outer, *nest.inner)
        self._statements: list[Node] = []
        self._results: list[Reference] = []  # of all steps
        self._elements: dict[int, Operand] = {}

    def nodes(self) -> list[Node]:
        """The loops, outermost first."""
        nest, body = self._nest, self._nest.body
        found = self._place(len(nest.operands))
        if not isinstance(found, Load):
            raise LiftError("an operation on tensors writes to several arrays")
        target = found.reference
        before: list[Node] = []
        after: list[Node] = []
        is_sum = bool(body.initial) and body.is_sum
        if is_sum:
            before.append(Statement("copy", (Constant(body.initial[0]),), target, passes=self._passes))
        last = -1 if body.initial or nest.adds else len(body.steps) - 1
        self._results = [target if k == last else self._scratch(f"r{k}") for k in range(len(body.steps))]
        differentiated = _differentiated(body)
        for number, step in enumerate(body.steps if 0 not in nest.inner else ()):
            if is_sum and number == len(body.steps) - 1:
                term = self._operand(step.operands[1])
                self._statements.append(Statement("add", (term,), target, update=True, passes=self._passes))
                break
            operands = tuple([self._operand(one) for one in step.operands])
            passes = self._passes if number in differentiated and self._leads(step) else frozenset[int]()
            self._statements.append(Statement(step.operation, operands, self._results[number], passes=passes))
        if nest.adds:
            total = Load(self._results[-1])
            self._statements.append(Statement("add", (total,), target, update=True, passes=self._passes))
        if body.initial and not is_sum and 0 in nest.inner:
            after.append(Statement("copy", (Constant(body.initial[body.result]),), target, passes=self._passes))
        elif body.initial and not is_sum:
            array, index = self._results[body.carried[body.result]]
            final = Load(Reference(array, _at_last(index, self._inner[0])))
            after.append(Statement("copy", (final,), target, passes=self._passes))
        inner = nested(_repeated(self._inner), self._statements) if 0 not in nest.inner else []
        return list(nested(_repeated(self._outer), [*before, *inner, *after]))

    def _scratch(self, name: str) -> Reference:
        """A new array with an element for each iteration."""
        loops = [*self._around, *_repeated(self._loops)]
        terms, size = row_major(loops)
        array = Array(f"n{self._position}{name}", "scratch", size, shape=tuple(loop.count for loop in loops))
        return Reference(array, Index(0, terms))

    # ---- operands -------------------------------------------------------------------------------------

    def _operand(self, source: Source) -> Operand:
        """Where a step finds an operand (see ir/bodies.py)."""
        if isinstance(source, float):
            return Constant(self._lifter.trace.precision.rounded(source))
        number = source.number
        if isinstance(source, Result):
            return Load(self._results[number])
        if isinstance(source, Element):
            if number not in self._elements:
                self._elements[number] = self._element(number)
            return self._elements[number]
        loop, step = self._inner[0], self._nest.body.carried[number]
        initial = Constant(self._lifter.trace.precision.rounded(self._nest.body.initial[number]))
        if loop.count == 1:
            return initial
        array, index = self._results[step]
        back = index._replace(base=index.base - dict(index.terms)[loop])
        return Choice(loop, initial, Load(Reference(array, back)))

    def _leads(self, step: Step) -> bool:
        """Whether a gradient flows through a step."""
        return step.operation in RULES and any(map(self._flows, step.operands))

    def _flows(self, source: Source) -> bool:
        if isinstance(source, Element):
            return self._nest.operands[source.number].flows
        if isinstance(source, Result):
            return self._leads(self._nest.body.steps[source.number])
        return not isinstance(source, float)

    def _element(self, number: int) -> Operand:
        place = self._nest.operands[number]
        if place.column:
            column = self._lifter.trace.b if place.column == 1 else self._lifter.trace.c
            assert column is not None
            return self._lifter.operand(column, self._position, self._dimensions)
        leaves = {nest.operands[number].leaf for nest in self._nests}
        if leaf_kind(place.leaf) == CONSTANT and not any(place.strides) and len(leaves) == 1:
            return Constant(self._lifter.program.constants[leaf_index(place.leaf)])
        found = self._place(number)
        if not (place.cut and self._passes):
            return found
        copy = self._scratch(f"x{len(self._elements)}")
        self._statements.append(Statement("copy", (found,), copy))
        return Load(copy)

    def _place(self, number: int) -> Operand:
        """The element of an operand, or of the target as the last one, in each iteration."""
        places = [(*nest.operands, nest.target)[number] for nest in self._nests]
        place = places[0]
        terms = tuple((loop, stride) for loop, stride in zip(self._loops, place.strides) if stride and loop.count > 1)
        dynamic = None
        if place.chosen is not None:
            choosing, stride, extent = place.chosen
            dynamic = Dynamic(self._element(choosing), stride, extent)
        own = Index(0, terms, None, dynamic)
        before, behind = spans_of(place, self._counts)
        elements = []
        for one in places:
            first = leaf_index(one.leaf)
            found = self._lifter.leaf_place(leaf_kind(one.leaf), first + before, first + behind)
            assert found is not None
            elements.append((found[0], first - found[1]))
        operand = Column(elements, self._dimensions, self._lifter.table).operand(own)
        if operand is None:
            raise LiftError("an operation on tensors reads from several arrays")
        return operand


def _differentiated(body: Body) -> set[int]:
    """The numbers of the steps whose adjoints get something: those from which derivatives lead to the result.

    The others are left out: an adjoint of 0.0 becomes nan where it is divided by 0.0, or multiplied by an infinity.
    """
    found = set(body.carried) if body.initial else {len(body.steps) - 1}
    for number in range(len(body.steps) - 1, -1, -1):
        step = body.steps[number]
        if number in found and step.operation in RULES:
            without = _WITHOUT_DERIVATIVE.get(step.operation)
            found |= {one.number for k, one in enumerate(step.operands) if isinstance(one, Result) and k != without}
    return found


#: The operand of an operation by which there is no derivative.
_WITHOUT_DERIVATIVE = {"select": 0, "power": 1, "link": 2, "link_divided": 2}


def _repeated(loops: list[Loop]) -> list[Loop]:
    """The loops that are not run just once."""
    return [loop for loop in loops if loop.count != 1]


def _at_last(index: Index, loop: Loop) -> Index:
    """An index in the last iteration of a loop."""
    step = dict(index.terms).get(loop, 0)
    return Index(index.base + step * (loop.count - 1), tuple(term for term in index.terms if term[0] is not loop))
