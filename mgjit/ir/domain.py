"""Which iterations a nest executes, when some of its loops have bounds.

A nest without bounds executes a box: every iteration of a loop in every iteration of those around it.  Bounds take a
part of it.

1. The loops that matter are those with a bound, and those that bounds refer to.  They are executed here, but for the
   innermost one: what it adds to a number is least or greatest in its first or its last iteration.
2. All other loops are independent of them and of each other, so each adds its own least and greatest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .program import Bound, Index, Loop, Node, TableEntry, Term, walk

#: What has to list iterations or elements looks at no nests with more of them, of loops that matter, or larger arrays.
MOST_ITERATIONS, MOST_ELEMENTS = 1 << 12, 1 << 16
_NOTHING: Mapping[Loop, int] = {}


def loops_of_bound(bound: Bound) -> set[Loop]:
    """The loops that a bound refers to."""
    return {loop for loop, _ in (*bound.terms, *(bound.table.terms if bound.table is not None else ()))}


def bounding(loops: Sequence[Loop]) -> set[Loop]:
    """The loops that the bounds of some loops refer to."""
    return {other for loop in loops if loop.bound is not None for other in loops_of_bound(loop.bound)}


def that_matter(loops: Sequence[Loop], bounded: Sequence[Loop] | None = None) -> list[Loop]:
    """Of some loops those that have bounds, and those that bounds refer to.

    Args:
        loops: of which.
        bounded: the loops whose bounds they are; by default the same.
    """
    bounds = bounding(loops if bounded is None else bounded)
    return [loop for loop in loops if loop.bound is not None or loop in bounds]


def has_bounds(nodes: Sequence[Node]) -> bool:
    """Whether there is a loop with a bound."""
    return any(isinstance(node, Loop) and node.bound is not None for node in walk(nodes))


def fewest(loop: Loop, tables: Sequence[int]) -> int:
    """A number of iterations that a loop always has; it may have more even where it has the fewest."""
    if loop.bound is None:
        return loop.count
    least, _ = full_range(Index(loop.bound.base, loop.bound.terms))
    if loop.bound.table is not None:
        least += min((tables[place] for place in _box(loop.bound.table) if 0 <= place < len(tables)), default=0)
    return max(0, least)


def _box(entry: TableEntry) -> list[int]:
    places = [entry.offset]
    for loop, coefficient in entry.terms:
        places = [place + coefficient * i for place in places for i in range(loop.count)]
    return places


def full_range(index: Index) -> tuple[int, int]:
    """Least and greatest element of a plain access over the whole box of all loops."""
    spans = [c * (loop.count - 1) for loop, c in index.terms]
    return index.base + sum(s for s in spans if s < 0), index.base + sum(s for s in spans if s > 0)


def extent(base: int, terms: Sequence[Term], loops: Sequence[Loop], tables: Sequence[int]) -> tuple[int, int] | None:
    """The least and the greatest value of `base + sum of coefficient * variable`; None if nothing is executed.

    Args:
        base, terms: what is computed.
        loops: all loops around it, outermost first.
        tables: the index tables of the Program.
    """
    matter = that_matter(loops)
    steps = dict(terms)
    low = high = base
    for loop, coefficient in terms:
        if loop not in matter:
            span = coefficient * (loop.count - 1)
            low, high = low + min(0, span), high + max(0, span)
    if not matter:
        return low, high
    *outer, last = matter
    found = None
    for variables in iterations(outer, tables):
        count = last.count if last.bound is None else value(last.bound, variables, tables)
        if count > 0:
            here = sum(coefficient * variables[loop] for loop, coefficient in terms if loop in variables)
            span = steps.get(last, 0) * (count - 1)
            least, most = low + here + min(0, span), high + here + max(0, span)
            found = (least, most) if found is None else (min(found[0], least), max(found[1], most))
    return found


def elements(index: Index, loops: Sequence[Loop], tables: Sequence[int], known: Mapping[Loop, int] = _NOTHING) -> int:
    """The elements that a plain access visits, a bit for each.

    Those before the array are left out: they are alternatives that are not taken.

    Args:
        index: of the access.
        loops: the loops around it, outermost first; others are executed whatever these do.
        tables: the index tables of the Program.
        known: the iterations of loops that are executed only once.
    """
    matter = that_matter(loops)
    steps = dict(index.terms)
    base = index.base + sum(step * known[loop] for loop, step in steps.items() if loop in known)
    others = [(step, loop.count) for loop, step in steps.items() if loop not in matter and loop not in known]
    found = 0
    for variables in iterations(matter[:-1], tables, known):
        runs = list(others)
        if matter:
            last = matter[-1]
            runs.append(
                (steps.get(last, 0), last.count if last.bound is None else value(last.bound, variables, tables))
            )
        first = base + sum(steps.get(loop, 0) * variables[loop] for loop in matter[:-1])
        first += sum(min(0, step * (count - 1)) for step, count in runs)
        if all(count > 0 for _, count in runs):
            bits = 1
            for step, count in runs:
                bits = _repeated(bits, abs(step), count)
            found |= bits << first if first >= 0 else bits >> -first
    return found


def _repeated(bits: int, step: int, count: int) -> int:
    """The bits `count` times, `step` apart."""
    done = 1
    while done < count and step:
        more = min(done, count - done)
        bits |= bits << step * more
        done += more
    return bits


def iterations(
    loops: Sequence[Loop], tables: Sequence[int], known: Mapping[Loop, int] = _NOTHING
) -> Iterator[dict[Loop, int]]:
    """Every iteration of nested loops, given outermost first; the same dictionary each time.

    Args:
        loops: what is executed.
        tables: the index tables of the Program.
        known: the iterations of loops around them.
    """
    variables = dict(known)

    def execute(depth: int) -> Iterator[dict[Loop, int]]:
        if depth == len(loops):
            yield variables
            return
        loop = loops[depth]
        for i in range(loop.count if loop.bound is None else value(loop.bound, variables, tables)):
            variables[loop] = i
            yield from execute(depth + 1)

    return execute(0)


def value(bound: Bound, variables: dict[Loop, int], tables: Sequence[int]) -> int:
    """How often a loop with this bound is executed in an iteration of those around it."""
    found = bound.base + sum(coefficient * variables[loop] for loop, coefficient in bound.terms)
    if bound.table is not None:
        offset, terms = bound.table
        found += tables[offset + sum(coefficient * variables[loop] for loop, coefficient in terms)]
    return found
