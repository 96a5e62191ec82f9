"""Cut a Program at its backward passes: forward, backward, update.

Only a Program whose phases are to be run separately keeps all three.  For a whole step, the update becomes part of the
backward phase, so that the passes that follow treat them as one.

1. The forward phase is everything before the first top-level node that contains a backward pass; from that node up to
   the last such node is the backward phase; the rest is the update phase.
2. Gradients that are only set to constants before the first pass (`zero_grad()` at the top of a step) belong to the
   backward phase, so that the forward phase alone changes nothing that can be observed.
3. Results are written at the end of the first phase that can compute them.
"""

from __future__ import annotations

from ...ir.program import Array, Constant, Node, Program, Statement, arrays_read, arrays_written, statements
from .ask_first import ask_first


def split_phases(program: Program, separate: bool = False, outputs: int = 0) -> None:
    """Distribute `program.forward`, in which `program.backward` is already marked, over the phases, in place.

    Args:
        program: changed in place.
        separate: whether its phases are to be run separately.
        outputs: how many the step has.
    """
    if program.backward:
        program.forward = _sink_gradient_resets(program.forward, program)
    _hoist_outputs(program)
    program.separate = separate
    if not separate:
        program.backward, program.update = [*program.backward, *program.update], []
        if program.is_path:
            ask_first(program, outputs)


def _sink_gradient_resets(forward: list[Node], program: Program) -> list[Node]:
    read: set[Array] = {array for s in statements(forward) for array in arrays_read(s)}
    # If an array is also set to something computed, all writes to it stay where they are.
    read |= {a for s in statements(forward) for a in arrays_written(s) if not _is_constant(s)}

    def resets(node: Node) -> bool:
        return all(
            _is_constant(s)
            and all(a.space == "gradient" and a not in read for a in arrays_written(s))
            and any(True for _ in arrays_written(s))
            for s in statements([node])
        )

    program.backward[:0] = [node for node in forward if resets(node)]
    return [node for node in forward if not resets(node)]


def _is_constant(statement: Statement) -> bool:
    return not statement.update and all(isinstance(operand, Constant) for operand in statement.operands)


def _hoist_outputs(program: Program) -> None:
    """Move to the forward phase what outputs need and does not depend on anything that a later phase wrote."""
    if not program.backward:
        return
    written = {array for s in statements(program.backward) for array in arrays_written(s)}
    early: list[Node] = []
    for node in program.update:
        reads, writes = _accessed(node)
        if not reads & written and all(array.space in ("output", "scratch") for array in writes):
            early.append(node)
        else:
            written |= writes
    moved: set[Node] = set()
    needed: set[Array] = set()
    for node in reversed(early):
        reads, writes = _accessed(node)
        if writes & needed or any(array.space == "output" for array in writes):
            moved.add(node)
            needed |= reads
    program.forward += [node for node in program.update if node in moved]
    program.update = [node for node in program.update if node not in moved]


def _accessed(node: Node) -> tuple[set[Array], set[Array]]:
    """The arrays that a node reads, and those that it writes."""
    inside = list(statements([node]))
    return {array for s in inside for array in arrays_read(s)}, {array for s in inside for array in arrays_written(s)}
