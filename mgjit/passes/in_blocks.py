"""Execute a nest in register blocks: some rows and some vectors at a time, whose sums stay in registers.

    for i: for j:                       for i in steps of 4: for j in steps of 16:
        r[i,j] = c[j]                       r[i+0,j] = c[j] ... r[i+3,j+8] = c[j+8]
        for k:                      ->      for k: r[i+0,j] += a[i+0,k] * b[k,j] ... r[i+3,j+8] += a[i+3,k] * b[k,j+8]
        t[i,j] = relu(r[i,j])               for rows: for vectors: t[i,j] = relu(r[i,j])

1. The loops of the rows and of the vectors are split into blocks and remainders.
2. The body is taken apart where a loop begins or ends.  Sums are executed for all rows and vectors side by side, and so
   are a few statements beside them.  More statements are loops over rows and vectors, which is less code, unless a
   register crosses to another part.

A strict sum is a chain of dependent additions: a processor waits several cycles for each.  Several chains side by side
keep it busy and share what they read, and no sum changes its order.  passes/cost.py decides which loops these are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..ir.builders import nested
from ..ir.program import Loop, Node, count_statements, statements
from .expand import crossing_registers
from .jam import side_by_side
from .lanes import step
from .plan import pieces
from .substitute import Substitution, copy_nodes

#: As many statements beside a sum are executed side by side with others.
FEW = 2


def in_blocks(
    body: Sequence[Node],
    rows: Loop | None,
    row_count: int,
    vector: Loop | None = None,
    vectors: int = 1,
    lanes: int = 1,
) -> list[Node]:
    """A nest of one or two loops, whose iterations are independent, in register blocks.

    Args:
        body: of the inner loop.
        rows, row_count: the outer loop, if any, and how many of its iterations are side by side.
        vector, vectors, lanes: the loop that runs in lanes, if any; how many vectors are side by side; their length.
    """
    if rows is None:
        return _in_vectors(body, None, vector, vectors, lanes)
    done: list[Node] = []
    for outer, count, start in blocks(rows.count, row_count):
        row = Loop(count, []) if count > 1 else None
        nodes = copy_nodes(body, Substitution(rows, outer, row_count, start, lane=row))
        nodes = _in_vectors(nodes, row, vector, vectors, lanes)
        done += nodes if outer is None else nested([outer], nodes)
    return done


def _in_vectors(body: Sequence[Node], row: Loop | None, vector: Loop | None, vectors: int, lanes: int) -> list[Node]:
    if vector is None:
        return _block(body, row, None, lanes)
    done: list[Node] = []
    for outer, count, start in blocks(vector.count, vectors * lanes):
        column = Loop(count, [])
        nodes = copy_nodes(body, Substitution(vector, outer, vectors * lanes, start, lane=column))
        nodes = _block(nodes, row, column, lanes)
        done += nodes if outer is None else nested([outer], nodes)
    return done


def blocks(count: int, size: int) -> Iterator[tuple[Loop | None, int, int]]:
    """A loop in blocks: the loop over blocks, None for a single one, the iterations of each, and the first of all."""
    whole, rest = divmod(count, size)
    if whole:
        outer = Loop(whole, []) if whole > 1 else None
        if outer is not None:
            outer.at_once = size
        yield outer, size, 0
    if rest:
        yield None, rest, whole * size


# ---- 2: one block ---------------------------------------------------------------------------------------------------


def _block(body: Sequence[Node], row: Loop | None, column: Loop | None, lanes: int) -> list[Node]:
    parts = _parts(body)
    part_of = {s: number for number, (_, part) in enumerate(parts) for s in statements(part)}
    if crossing_registers(list(body), part_of):
        parts = [(False, list(body))]
    done: list[Node] = []
    for is_rolled, part in parts:
        if is_rolled:
            done += rolled(part, row, column, lanes)
        else:
            width = 0 if column is None else column.count
            done += beside(part, row, column, width, lanes)
    return done


def _parts(body: Sequence[Node]) -> list[tuple[bool, list[Node]]]:
    """The body in parts, and whether each is to be executed in loops."""
    found: list[tuple[bool, list[Node]]] = []
    has_loops = any(isinstance(node, Loop) for node in body)
    for section in sections(body):
        is_rolled = has_loops and not isinstance(section[0], Loop) and count_statements(section) > FEW
        if found and not is_rolled and not found[-1][0]:
            found[-1][1].extend(section)
        else:
            found.append((is_rolled, section))
    return found


def sections(nodes: Sequence[Node]) -> Iterator[list[Node]]:
    """Stretches of statements, and single loops."""
    run: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop):
            if run:
                yield run
                run = []
            yield [node]
        else:
            run.append(node)
    if run:
        yield run


def beside(nodes: Sequence[Node], row: Loop | None, column: Loop | None, width: int, lanes: int) -> list[Node]:
    """Nodes for all rows and columns of a block, side by side.

    Args:
        width: the number of columns; more than there are if the last vector may go beyond them.
    """
    done = list(nodes)
    if column is not None:
        vectors: list[tuple[int, int]] = []
        start = 0
        for size, count in pieces(width, lanes):
            vectors += [(size, start + size * k) for k in range(count)]
            start += size * count
        done = step(done, vectors, column, None, 1)
    return done if row is None else side_by_side(done, [Substitution(row, None, 1, k) for k in range(row.count)])


def rolled(nodes: Sequence[Node], row: Loop | None, column: Loop | None, lanes: int) -> list[Node]:
    """Nodes for all rows and columns of a block, in loops."""
    done = list(nodes) if column is None else _in_lanes(nodes, column, lanes)
    if row is None:
        return done
    again = Loop(row.count, [])
    return (
        nested([again], copy_nodes(done, Substitution(copies={row: again})))
        if row.count > 1
        else copy_nodes(done, Substitution(row, None, 1, 0))
    )


def _in_lanes(nodes: Sequence[Node], column: Loop, lanes: int) -> list[Node]:
    done: list[Node] = []
    start = 0
    for width, count in pieces(column.count, lanes):
        vectors = Loop(count, []) if count > 1 else None
        inner = step(nodes, [(width, start)], column, vectors, width)
        done += inner if vectors is None else nested([vectors], inner)
        start += width * count
    return done
