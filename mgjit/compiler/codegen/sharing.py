"""Loops whose iterations several threads share, with the same bits for any number of threads.

1. From the outside in, a loop is shared if no iteration accesses what another one writes, so that their order does not
   matter.  A scratch array that each iteration fills before it reads it, such as the tile of a product, is no tie: each
   thread has one of its own.
2. Each thread runs one stretch of the iterations, which the count alone decides.  No sum is split.
3. The threads of a call begin with it and end with it: nothing is left that a fork, or the end of the process, would
   have to know of.  Between shared loops, the others wait.  Where fewer can be made, those that are there do all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Union

from ...ir.dependence import independent, plain
from ...ir.program import (
    Array,
    Index,
    Loop,
    Node,
    Program,
    Reference,
    Statement,
    arrays_read,
    arrays_written,
    has_blocks,
    reads,
    statements,
    writes,
)
from .layout import Layout

#: The least operations of a loop that is shared, of one in another loop, where threads meet again and again, and of all
#: of them, which take about a millisecond.
_LEAST, _LEAST_INSIDE, _LEAST_IN_ALL = 10_000, 200_000, 2_000_000
#: The most accesses to an array that are followed.
_MOST_FOLLOWED = 1_000_000
#: Elements by which the arrays of threads are apart, so that they share no cache line.
_APART = 16


def shared_loops(program: Program) -> dict[Loop, list[Array]]:
    """The loops that are worth sharing, with the arrays of which each thread needs its own."""
    if program.is_straight:
        return {}
    every = Counter(array for _, nodes in program.phases for array in _accesses(nodes))
    found: dict[Loop, list[Array]] = {}
    for _, nodes in program.phases:
        _collect(nodes, every, found, _LEAST)
    return found if sum(map(work, found)) >= _LEAST_IN_ALL else {}


def work(node: Node, times: int = 1) -> int:
    """The operations of a node, those on vectors counted once."""
    if isinstance(node, Loop):
        return times * (1 if node.lanes else node.count) * sum(map(work, node.body))
    return 1


def give_threads_their_own(layout: Layout, shared: dict[Loop, list[Array]], threads: int) -> None:
    """Make room for what each thread needs."""
    layout.shared.update(dict.fromkeys(shared))
    for array in (array for arrays in shared.values() for array in arrays):
        start, size = (-(-number // _APART) * _APART for number in (layout.scratch_size, array.size))
        layout.offset_of[array], layout.own[array] = start, size
        layout.scratch_size = start + threads * size + 1


def _accesses(nodes: Sequence[Node]) -> Iterator[Array]:
    for statement in statements(nodes):
        yield from arrays_read(statement)
        yield from arrays_written(statement)


def _collect(nodes: Sequence[Node], every: Counter[Array], found: dict[Loop, list[Array]], least: int) -> None:
    for loop in nodes:
        if not isinstance(loop, Loop) or loop.lanes or loop.beside or work(loop) < least or has_blocks([loop]):
            continue
        inside = Counter(_accesses([loop]))
        local = (a for a in inside if a.space == "scratch" and inside[a] == every[a] and _is_filled_first(a, loop))
        own = list(local)
        if loop.count > 1 and independent(loop, own=own):
            found[loop] = own
        else:
            _collect(loop.body, every, found, _LEAST_INSIDE)


#: The accesses of a nest to an array: of a statement what it reads and writes, of a loop those in it.
_Tree = list[Union[tuple[list[Index], list[Index]], tuple[Loop, "_Tree"]]]


def _is_filled_first(array: Array, loop: Loop) -> bool:
    """Whether each iteration writes every element of an array that it reads, but for padding, before it reads it."""
    tree = _tree(loop.body, array)
    if tree is None:
        return False
    varying = {one for _, index in _indices(loop, array) for one, _ in index.terms}
    padding = (
        row.place + row.pitch * number + place
        for row in array.padded_rows
        for number in range(row.count)
        for place in range(row.used, row.pitch)
    )
    return varying <= set(_loops(tree)) and _Following(varying, padding).follow(tree)


def _indices(loop: Loop, array: Array) -> Iterator[Reference]:
    for statement in statements([loop]):
        for one, index in (*reads(statement), *writes(statement)):
            if one is array and index is not None:
                yield Reference(one, index)


def _tree(nodes: Sequence[Node], array: Array) -> _Tree | None:
    """The accesses of nodes to an array; None if which elements they are, or whether they are, is not plain."""
    found: _Tree = []
    for node in nodes:
        if isinstance(node, Loop):
            inner = _tree(node.body, array)
            if inner is None or (inner and node.bound is not None):
                return None
            found += [(node, inner)] if inner else []
        elif isinstance(node, Statement):
            # What adds to an element that nobody has written leaves it so: such lanes lie beyond the end of a row.
            read = [index for one, index in reads(Statement("", node.operands, node.target)) if one is array]
            written = [index for one, index in writes(node) if one is array]
            if any(plain(index) is None for index in (*read, *written)):
                return None
            if written and not isinstance(node.target, Reference):
                return None
            found += [(read, [] if node.update else written)] if read or written else []  # type: ignore[list-item]
    return found


def _loops(tree: _Tree) -> Iterator[Loop]:
    for one in tree:
        if isinstance(one[0], Loop):
            yield one[0]
            yield from _loops(one[1])


class _Following:
    """Goes through the accesses to an array, one by one; loops that do not choose its elements run once."""

    def __init__(self, varying: set[Loop], known: Iterable[int]) -> None:
        self._varying = varying
        self._places: dict[Loop, int] = {}
        self._written = set(known)
        self._left = _MOST_FOLLOWED

    def follow(self, tree: _Tree) -> bool:
        """Whether nothing is read that was not written before."""
        for head, tail in tree:
            if isinstance(head, Loop):
                order = range(head.count) if head in self._varying else range(1)
                for place in reversed(order) if head.reverse else order:
                    self._places[head] = place
                    if not self.follow(tail):  # type: ignore[arg-type]
                        return False
            else:
                self._left -= 1
                if self._left < 0 or any(self._element(index) not in self._written for index in head):
                    return False
                self._written.update(map(self._element, tail))  # type: ignore[arg-type]
        return True

    def _element(self, index: Index) -> int:
        return index.base + sum(step * self._places[loop] for loop, step in index.terms)


#: `PREPARE` and `RESTORE` are what the entry points of a mode do.  No header is needed: a pthread_t is a word.
SOURCE = """\
extern int pthread_create(unsigned long *, const void *, void *(*)(void *), void *);
extern int pthread_join(unsigned long, void **);
extern int sched_yield(void);
struct share;
typedef void stretch(const struct share *, long, long, long);
struct share {{ stretch *work; void *const *m; const real *u; const long *l; long count; }};
struct team;
struct member {{ struct team *team; long me; unsigned long thread; }};
struct team {{ const struct share *share; long size, turn, busy; struct member members[{threads}]; }};
static __thread struct team *team;
static void rest(long *times)
{{
    if (++*times > 4000) sched_yield();
#if defined(__x86_64__) || defined(__i386__)
    else __builtin_ia32_pause();
#endif
}}
static void work_on(const struct share *s, long me, long size)
{{
    s->work(s, me, s->count * me / size, s->count * (me + 1) / size);
}}
static void *member(void *of)
{{
    struct team *const t = ((struct member *)of)->team;
    PREPARE
    for (long turn = 0;;) {{
        for (long times = 0; __atomic_load_n(&t->turn, __ATOMIC_ACQUIRE) == turn;) rest(&times);
        turn++;
        if (!t->share) break;
        work_on(t->share, ((struct member *)of)->me, t->size);
        __atomic_fetch_sub(&t->busy, 1, __ATOMIC_RELEASE);
    }}
    RESTORE
    return 0;
}}
static void begin_turn(struct team *t, const struct share *s)
{{
    t->share = s;
    __atomic_store_n(&t->busy, t->size - 1, __ATOMIC_RELAXED);
    __atomic_store_n(&t->turn, t->turn + 1, __ATOMIC_RELEASE);
}}
static NOINLINE void share(stretch *work, void *const *m, const real *u, const long *l, long count)
{{
    struct team *const t = team;
    const struct share s = {{ work, m, u, l, count }};
    begin_turn(t, &s);
    work_on(&s, 0, t->size);
    for (long times = 0; __atomic_load_n(&t->busy, __ATOMIC_ACQUIRE);) rest(&times);
}}
static NOINLINE void begin_team(struct team *t)
{{
    t->turn = t->busy = 0;
    for (t->size = 1; t->size < {threads}; t->size++) {{
        struct member *const one = &t->members[t->size];
        one->team = t;
        one->me = t->size;
        if (pthread_create(&one->thread, 0, member, one)) break;
    }}
    team = t;
}}
static NOINLINE void end_team(struct team *t)
{{
    begin_turn(t, 0);
    for (long k = 1; k < t->size; k++) pthread_join(t->members[k].thread, 0);
    team = 0;
}}
#define ENTER PREPARE struct team here; begin_team(&here);
#define LEAVE end_team(&here); RESTORE
"""
