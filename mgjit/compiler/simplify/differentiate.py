"""Replace every Backward node by the statements of its backward pass.

Reverse mode over loop nests: the engine visits nodes in reverse creation order, and a Program executes in
creation order, so the backward pass is the Program read backwards, which reproduces the engine's order of
accumulation exactly.

1. A backward pass covers what precedes it: the earlier items of its body, then those of the body around it, and so on.
   (Reaching into an earlier iteration of a loop around it cannot be expressed; a `DifferentiateError` then makes the
   caller keep backward passes out of loops.)
2. Every array of results that the pass reaches and that matters for a gradient gets an adjoint array, set
   to 0.0; the root's adjoint is 1.0.
3. Loops run in reverse; each statement adds its contributions to the adjoints of its operands, first
   operand first: to adjoint arrays, to the gradients of parameters, to the gradients of Values made in the
   step.  Operands are read where they are *then*, as the engine does.
4. Links, whose derivatives are operands, become copies.
5. Reads of gradients of interior nodes are connected to the adjoint arrays of the last pass that reached them.

The derivative rules are those of derivatives.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...engine.precision import Precision
from ...ir.builders import nested
from ...ir.derivatives import RULES, Emitter
from ...ir.program import (
    Array,
    Backward,
    Choice,
    Constant,
    Load,
    Loop,
    Mixed,
    Node,
    Operand,
    Origin,
    Program,
    Reference,
    Register,
    Statement,
    Target,
    TargetChoice,
    TargetMixed,
    leaf_targets,
    statements,
)
from ...ir.rewrite import operand_arrays, rewrite_operands
from ...ir.substitute import Substitution
from ..lift.memory import Memory

_LINKS = ("link", "link_divided")


class DifferentiateError(Exception):
    """A backward pass inside a loop reaches an earlier iteration, or different iterations reach different things."""


def differentiate(program: Program, memory: Memory) -> None:
    """Expand all Backward nodes of `program.forward` and cut it into phases, in place.

    The backward phase runs from the first top-level node with a backward pass in it to the last.

    Raises:
        DifferentiateError: a backward pass cannot be expressed inside its loop.
    """
    context = _Context(program, memory)
    for path in context.paths:
        _check_instances(context, path)
    expansions = {}
    for path in context.paths:
        body, position = path[-1]
        node = body[position]
        assert isinstance(node, Backward)
        expansions[node] = _Pass(context, path, node).expand()
    nodes = program.forward
    having = [path[0][1] for path in context.paths]
    start, end = (having[0], having[-1] + 1) if having else (len(nodes), len(nodes))
    program.forward, program.backward, program.update = nodes[:start], nodes[start:end], nodes[end:]
    _splice(program.backward, expansions)
    _connect_adjoint_reads(program, context)
    _cut_links(program)


#: The bodies from the top to a node, each with the position of the next one in it.
_Path = "list[tuple[list[Node], int]]"


class _Context:
    """The state shared by all backward passes of a Program."""

    def __init__(self, program: Program, memory: Memory) -> None:
        self.program, self.memory = program, memory
        self.paths: list[list[tuple[list[Node], int]]] = []
        self.producers: defaultdict[Array, list[tuple[Statement, tuple[Loop, ...]]]] = defaultdict(list)
        self.adjoints: dict[tuple[Array, int], Array] = {}
        self.first_instance: dict[int, int] = {}
        self._survey(program.forward, [], ())
        self.needed = self._needed()

    def _survey(self, body: list[Node], path: list[tuple[list[Node], int]], loops: tuple[Loop, ...]) -> None:
        for position, node in enumerate(body):
            here = [*path, (body, position)] if not isinstance(node, Statement) else path
            if isinstance(node, Loop):
                self._survey(node.body, here, (*loops, node))
            elif isinstance(node, Backward):
                self.paths.append(here)
                self.first_instance.update((instance, node.number) for instance in node.instances)
            elif isinstance(node, Statement):
                for place in leaf_targets(node.target):
                    if isinstance(place, Reference) and place.array.space == "scratch" and not node.update:
                        self.producers[place.array].append((node, loops))

    def _needed(self) -> set[Array]:
        """Arrays whose adjoints lead to a gradient that is read or visible."""
        reached = [s for s in statements(self.program.forward) if s.passes]
        read = {a for s in statements(self.program.forward) for o in s.operands for a in operand_arrays(o)}
        gradients = (self.memory.gradient(a) for s in reached for o in s.operands for a in operand_arrays(o))
        self.live_gradients = {g for g in gradients if g is not None and (g.space == "gradient" or g in read)}
        needed = {result for result, _ in self.memory.adjoint_reads}
        changed = True
        while changed:
            changed = False
            for statement in reached:
                target = statement.target
                if isinstance(target, Reference) and target.array not in needed and self._leads(statement, needed):
                    needed.add(target.array)
                    changed = True
        return needed

    def _leads(self, statement: Statement, needed: set[Array]) -> bool:
        for operand in differentiable_operands(statement):
            for array in operand_arrays(operand):
                if array in needed or self.memory.gradient(array) in self.live_gradients:
                    return True
        return False

    def adjoint(self, array: Array, number: int) -> Array:
        """The adjoint array of `array` in pass `number`."""
        key = array, number
        if key not in self.adjoints:
            name = f"d{array.name}" if number == 0 else f"d{array.name}_{number}"
            self.adjoints[key] = Array(name, "scratch", array.size, shape=array.shape)
        return self.adjoints[key]


def differentiable_operands(statement: Statement) -> tuple[Operand, ...]:
    """The operands to which a gradient flows."""
    if statement.operation == "power":
        return statement.operands[:1]
    if statement.operation == "select":
        return statement.operands[1:]
    if statement.operation in _LINKS:
        return statement.operands[:2]
    return statement.operands


def _check_instances(context: _Context, path: list[tuple[list[Node], int]]) -> None:
    """Check that the pass reaches the same statements in all of its iterations, and none of an earlier iteration."""
    body, position = path[-1]
    node = body[position]
    assert isinstance(node, Backward)
    enclosing = {id(b) for b, _ in path}
    inner_body = path[-1][0]
    for statement, loops in (producer for found in context.producers.values() for producer in found):
        mine = statement.passes & node.instances
        if not mine:
            continue
        shared = any(id(loop.body) in enclosing for loop in loops)
        if shared and (mine != {node.number} or not _in_innermost(loops, inner_body, enclosing)):
            raise DifferentiateError("a backward pass reaches an earlier iteration of the loop around it")
        if not shared and mine != node.instances:
            raise DifferentiateError("the iterations of a backward pass reach different records")


def _in_innermost(loops: tuple[Loop, ...], inner_body: list[Node], enclosing: set[int]) -> bool:
    """Whether the deepest loop shared with the backward pass is the one that directly contains it."""
    shared = [loop for loop in loops if id(loop.body) in enclosing]
    return not shared or shared[-1].body is inner_body


@dataclass
class _Pass:
    """One backward pass being expanded."""

    context: _Context
    path: list[tuple[list[Node], int]]
    node: Backward
    nodes: list[Node] = field(default_factory=list)

    def expand(self) -> list[Node]:
        """The statements that replace the node."""
        self.enclosing = {id(body) for body, _ in self.path}
        for array, producers in self.context.producers.items():
            for statement, loops in producers if array in self.context.needed else ():
                if self.node.number in statement.passes:
                    self.nodes += self._zero(array, statement, loops)
        self._seed()
        for body, position in reversed(self.path):
            self.nodes += self._reversed(body[:position], Substitution())
        return self.nodes

    def _zero(self, array: Array, statement: Statement, loops: tuple[Loop, ...]) -> list[Node]:
        """0.0 into every adjoint of `array` that belongs to this iteration of the loops around the pass."""
        assert isinstance(statement.target, Reference)
        substitution = Substitution()
        fresh = [substitution.loop_copy(loop) for loop in loops if id(loop.body) not in self.enclosing]
        index = substitution.index(statement.target.index)
        target = Reference(self.context.adjoint(array, self.node.number), index)
        for loop in fresh:
            loop.reverse = False
        return nested(fresh, [Statement("copy", (Constant(0.0),), target, origin=_gradient_of(statement))])

    def _seed(self) -> None:
        target = self._adjoint_target(self.node.root)
        if target is not None:
            self.nodes.append(Statement("copy", (Constant(1.0),), target, origin=self.node.origin))

    # ---- reading the Program backwards ----------------------------------------------------------------

    def _reversed(self, nodes: Sequence[Node], loops: Substitution) -> list[Node]:
        done: list[Node] = []
        for node in reversed(nodes):
            if isinstance(node, Loop):
                loop = loops.loop_copy(node)
                loop.reverse = not node.reverse
                loop.body = self._reversed(node.body, loops)
                if loop.body:
                    done.append(loop)
            elif isinstance(node, Statement) and self.node.number in node.passes:
                done += self._contributions(node, loops)
        return done

    def _contributions(self, statement: Statement, substitution: Substitution) -> list[Node]:
        assert isinstance(statement.target, Reference)
        array = statement.target.array
        if array not in self.context.needed:
            return []
        result = Load(Reference(array, substitution.index(statement.target.index)))
        adjoint = Load(result.reference._replace(array=self.context.adjoint(array, self.node.number)))
        operands = [substitution.operand(operand) for operand in statement.operands]
        targets = [self._adjoint_target(operand) for operand in operands]
        emitter = _Emitter(self.context.program.precision, _gradient_of(statement))
        if statement.update:
            # The adjoint of an accumulator is that of the total, and the same for every term.
            sign = statement.operation == "subtract"
            contributions: list[Operand | None] = [emitter.negate(adjoint) if sign else adjoint]
        else:
            contributions = RULES[statement.operation](emitter, operands, result, adjoint)
        for target, contribution in zip(targets, contributions):
            if target is not None and contribution is not None:
                emitter.add(target, contribution)
        return emitter.useful()

    def _adjoint_target(self, operand: Operand) -> Target:
        """Where contributions to an operand go; None if it has no gradient."""
        if isinstance(operand, Load):
            array = self._adjoint_array(operand.reference.array)
            return None if array is None else operand.reference._replace(array=array)
        if isinstance(operand, Choice):
            first, rest = self._adjoint_target(operand.first), self._adjoint_target(operand.rest)
            return None if first is None and rest is None else TargetChoice(operand.loop, first, rest)
        if isinstance(operand, Mixed):
            arrays = tuple(self._adjoint_array(array) for array in operand.arrays)
            if any(array is not None for array in arrays):
                return TargetMixed(arrays, operand.selector, operand.position)
        return None

    def _adjoint_array(self, array: Array) -> Array | None:
        gradient = self.context.memory.gradient(array)
        if gradient is not None:
            return gradient if gradient in self.context.live_gradients else None
        if array not in self.context.producers or array not in self.context.needed:
            return None
        reached = any(self.node.number in statement.passes for statement, _ in self.context.producers[array])
        return self.context.adjoint(array, self.node.number) if reached else None


def _gradient_of(statement: Statement) -> Origin:
    return statement.origin._replace(is_gradient=True)


class _Emitter(Emitter):
    """Builds the statements of one rule."""

    def __init__(self, precision: Precision, origin: Origin) -> None:
        self.precision, self.origin = precision, origin
        self.nodes: list[Node] = []

    def emit(self, operation: str, *operands: Operand) -> Operand:
        """A statement; returns its result."""
        statement = Statement(operation, operands, origin=self.origin)
        self.nodes.append(statement)
        return Register(statement)

    def add(self, target: Target, x: Operand) -> None:
        """target += x"""
        self.nodes.append(Statement("add", (x,), target, update=True, origin=self.origin))

    def useful(self) -> list[Node]:
        """The statements whose results are used (a rule also emits those for operands without a gradient)."""
        used: set[int] = set()
        kept: list[Node] = []
        for node in reversed(self.nodes):
            assert isinstance(node, Statement)
            if node.target is not None or id(node) in used:
                kept.append(node)
                used.update(id(o.statement) for o in node.operands if isinstance(o, Register))
        return kept[::-1]


# ---- afterwards --------------------------------------------------------------------------------------------


def _splice(body: list[Node], expansions: dict[Backward, list[Node]]) -> None:
    """Put the statements of each backward pass in place of its node."""
    flat: list[Node] = []
    for node in body:
        if isinstance(node, Backward):
            flat += expansions[node]
        else:
            flat.append(node)
            if isinstance(node, Loop):
                _splice(node.body, expansions)
    body[:] = flat


def _cut_links(program: Program) -> None:
    """Turn links into copies: with the gradients in place, the dependences that they declare are no longer needed."""
    for _, nodes in program.phases:
        for statement in statements(nodes):
            if statement.operation in _LINKS:
                statement.operation, statement.operands = "copy", statement.operands[:1]


def _connect_adjoint_reads(program: Program, context: _Context) -> None:
    """Replace the stand-ins for gradients of interior nodes by adjoint arrays, or by 0.0 where none was computed."""
    real: dict[Array, Array | None] = {}
    for (result, number), stand_in in context.memory.adjoint_reads.items():
        passes = {statement.passes for statement, _ in context.producers[result]}
        if len(passes) > 1:
            raise DifferentiateError("gradients are read of interior nodes that different backward passes reach")
        numbers = sorted(n for n in passes.pop() if n < number)
        real[stand_in] = context.adjoints.get((result, context.first_instance[numbers[-1]])) if numbers else None

    def connect(operand: Operand) -> Operand:
        if isinstance(operand, Load) and operand.reference.array in real:
            array = real[operand.reference.array]
            return Constant(0.0) if array is None else Load(operand.reference._replace(array=array))
        if isinstance(operand, Mixed) and any(array in real for array in operand.arrays):
            found = [real[array] for array in operand.arrays]
            arrays = [array for array in found if array is not None]
            if not arrays:
                return Constant(0.0)
            if len(arrays) < len(found):
                raise DifferentiateError("one statement reads gradients of interior nodes that no pass has reached")
            return operand._replace(arrays=tuple(arrays))
        return operand

    if real:
        for _, nodes in program.phases:
            for statement in statements(nodes):
                rewrite_operands(statement, connect)
