"""Execute a nest in register blocks: some rows and some vectors at a time, whose sums stay in registers.

    for i: for j:                       for i in steps of 4: for j in steps of 16:
        r[i,j] = c[j]                       for rows, vectors, side by side: r[i,j] = c[j]
        for k:                      ->      for k: for rows, vectors, side by side: r[i,j] += a[i,k] * b[k,j]
        t[i,j] = relu(r[i,j])               for rows: for vectors: t[i,j] = relu(r[i,j])

1. The loops of the rows and of the vectors are split into blocks and remainders.
2. The body is taken apart where a loop begins or ends.  Sums are executed for all rows and vectors side by side, and so
   are a few statements beside them.  More statements are loops over rows and vectors, which is less code, unless a
   register crosses to another part.
3. What is side by side is a loop (`Loop.beside`) around each stretch of statements, of which generated code has a copy
   for each iteration.  It is written out here where a number of one stretch may stay in a register until another one.

A strict sum is a chain of dependent additions: a processor waits several cycles for each.  Several chains side by side
keep it busy and share what they read, and no sum changes its order.  schedule/cost.py decides which loops these are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...ir.builders import nested
from ...ir.program import Array, Loop, Node, Statement, arrays_read, arrays_written, count_statements, statements
from ...ir.substitute import Substitution, copy_nodes
from .expand import crossing_registers
from .jam import side_by_side
from .lanes import step
from .plan import pieces

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
    in_loops = not _crosses(done)
    if column is not None:
        done = step(done, list(_vectors(width, lanes, in_loops)), column)
    if row is None:
        return done
    if in_loops and row.count > 1:
        return side_by_side(done, [Substitution(row, _beside(row.count), 1, 0)])
    return side_by_side(done, [Substitution(row, None, 1, k) for k in range(row.count)])


def _vectors(width: int, lanes: int, in_loops: bool) -> Iterator[tuple[int, int, Loop | None]]:
    """So many columns in vectors, as for `step`."""
    start = 0
    for size, count in pieces(width, lanes):
        if in_loops and count > 1:
            yield size, start, _beside(count)
        else:
            yield from ((size, start + size * k, None) for k in range(count))
        start += size * count


def _beside(count: int) -> Loop:
    loop = Loop(count, [])
    loop.beside = True
    return loop


def _crosses(nodes: Sequence[Node]) -> bool:
    """Whether one stretch of statements computes what another one uses, so that it may stay in a register."""
    part_of = dict(_numbered(nodes, [0]))
    if crossing_registers(list(nodes), part_of):
        return True
    defined: dict[Array, set[int]] = {}
    for statement, part in part_of.items():
        for array in arrays_written(statement):
            defined.setdefault(array, set()).add(-1 if statement.update else part)
    return any(
        -1 not in parts and parts != {part}
        for statement, part in part_of.items()
        for array in arrays_read(statement)
        for parts in [defined.get(array, {part})]
    )


def _numbered(nodes: Sequence[Node], part: list[int]) -> Iterator[tuple[Statement, int]]:
    """The statements, each with the number of its stretch without a loop."""
    for node in nodes:
        if isinstance(node, Loop):
            part[0] += 1
            yield from _numbered(node.body, part)
            part[0] += 1
        elif isinstance(node, Statement):
            yield node, part[0]


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
        inner = step(nodes, [(width, start, vectors)], column)
        done += inner if vectors is None else nested([vectors], inner)
        start += width * count
    return done
