"""Whether iterations depend on each other: by hand, and against brute force."""

from __future__ import annotations

import random
from itertools import product

import pytest

from mgjit.ir.dependence import independent, injective, never_meet, ranges_apart, separable
from mgjit.ir.domain import full_range
from mgjit.ir.program import (
    Array,
    Block,
    Choice,
    Constant,
    Dynamic,
    Index,
    Load,
    Loop,
    Mixed,
    Operand,
    Reference,
    TableEntry,
    TargetChoice,
)
from tests.handmade import around, at, define, load, update

P, X = Array("p", "parameter", 100), Array("x", "input", 100)
Y = Array("y", "state", 100)
ONE = Constant(1.0)


def copies(count: int, write: tuple[int, int], read: tuple[int, int]) -> Loop:
    """`for j: p[step * j + base] = p[step * j + base]`, of (base, step)."""
    j = Loop(count, [])
    return around(j, define(at(P, (j, write[1]), base=write[0]), "copy", load(P, (j, read[1]), base=read[0])))


@pytest.mark.parametrize(
    ("count", "write", "read", "expected"),
    [
        (10, (0, 1), (0, 1), True),  # its own element
        (10, (0, 1), (1, 1), False),  # the next one's
        (10, (1, 1), (0, 1), False),  # the last one's
        (10, (0, 2), (1, 2), True),  # within the step
        (10, (0, 2), (2, 2), False),
        (10, (0, 1), (10, 1), True),  # ranges that just do not meet
        (11, (0, 1), (10, 1), False),  # and just do
        (10, (9, -1), (9, -1), True),  # downwards
        (10, (0, 1), (9, -1), False),  # in opposite directions
        (10, (0, 1), (19, -1), True),
        (10, (0, 0), (5, 0), False),  # one element, written by all
        (10, (0, 1), (3, 0), False),  # one element, read by all
        (10, (0, 1), (10, 0), True),  # one element, that nobody writes
        (10, (0, 3), (2, 3), True),
        (10, (0, 3), (0, 2), False),  # different steps
    ],
)
def test_01_two_accesses(count: int, write: tuple[int, int], read: tuple[int, int], expected: bool) -> None:
    """One write and one read by affine functions of the loop."""
    assert independent(copies(count, write, read)) is expected


def test_02_rows() -> None:
    """Rows that fit into the step of the outer loop are apart; longer ones are not."""
    for columns, expected in ((5, True), (6, False)):
        j, i = Loop(4, []), Loop(columns, [])
        around(j, around(i, update(at(P, (j, 5), (i, 1)), "add", load(X, (i, 1)))))
        assert independent(j) is expected
        assert independent(i)


def test_03_a_sum_depends_on_itself() -> None:
    """The loop that is summed over is not independent, that of the sums is."""
    j, i = Loop(4, []), Loop(5, [])
    around(j, around(i, update(at(P, (j, 1)), "add", load(X, (i, 1)))))
    assert independent(j)
    assert not independent(i)


def test_04_interleaved_columns() -> None:
    """`p[j + 4 i]` takes each value once; with one row too many it does not."""
    for rows, expected in ((4, True), (5, False)):
        j, i = Loop(rows, []), Loop(5, [])
        around(j, around(i, update(at(P, (j, 1), (i, 4)), "add", ONE)))
        assert independent(j) is expected


def test_05_other_loops_of_the_same_shape() -> None:
    """Two inner loops of one shape are the same function; of another count, the outer loop is a digit of both."""
    for count in (5, 6):
        j, i, k = Loop(4, []), Loop(5, []), Loop(count, [])
        first = around(i, define(at(P, (j, 1), (i, 4)), "copy", ONE))
        second = around(k, update(at(P, (j, 1), (k, 4)), "add", ONE))
        assert independent(around(j, first, second))


def test_06_loops_around() -> None:
    """Loops around must have the same part in both accesses."""
    for other, expected in ((7, True), (8, False)):
        outer, j = Loop(3, []), Loop(4, [])
        around(outer, around(j, define(at(P, (outer, 7), (j, 1)), "copy", load(P, (outer, other), (j, 1)))))
        assert independent(j) is expected


def special_operands(j: Loop) -> list[Operand]:
    """Reads of `p` that are not affine."""
    entry = TableEntry(0, ((j, 1),))
    return [
        Load(Reference(P, Index(0, (), entry))),
        Load(Reference(P, Index(0, (), None, Dynamic(load(X, (j, 1)), 1, 4)))),
        Choice(j, load(P, (j, 1)), ONE),
        Mixed((P, X), entry, entry),
    ]


def test_07_what_is_not_affine() -> None:
    """Tables, run-time indices and mixed operands of a written array are dependences; of a choice both sides count."""
    for number in range(4):
        j = Loop(4, [])
        around(j, define(at(P, (j, 1)), "copy", special_operands(j)[number]))
        assert independent(j) is (number == 2)
    j = Loop(4, [])
    around(j, define(at(P, (j, 1)), "copy", Choice(j, load(P, (j, 1), base=1), ONE)))
    assert not independent(j)


def test_08_tables_of_what_is_only_read() -> None:
    """Nothing that is only read connects iterations."""
    for number in range(2):
        j = Loop(4, [])
        around(j, define(at(Array("q", "parameter", 4), (j, 1)), "copy", special_operands(j)[number]))
        assert independent(j)


def test_09_targets_and_blocks() -> None:
    """A choice of targets and a block inside are refused."""
    j = Loop(4, [])
    around(j, update(TargetChoice(j, None, at(P, (j, 1))), "add", ONE))
    assert not independent(j)
    j = Loop(4, [])
    plain = define(at(P, (j, 1)), "copy", ONE)
    assert independent(around(j, plain))
    assert not independent(around(j, Block([plain])))


def _elements(index: Index, loops: list[Loop], values: tuple[int, ...]) -> int:
    return index.base + sum(c * values[loops.index(loop)] for loop, c in index.terms)


def _meet(j: Loop, writes: tuple[Index, Loop], reads: tuple[Index, Loop], both_ways: bool) -> bool:
    """Whether different iterations of j meet in an element that at least one of them writes."""
    touched = []
    for index, inner in (writes, reads):
        values = product(range(j.count), range(inner.count))
        touched.append([(v[0], _elements(index, [j, inner], v)) for v in values])
    pairs = [(touched[0], touched[1])] + ([(touched[0], touched[0])] if both_ways else [])
    return any(a == b and m != n for one, other in pairs for m, a in one for n, b in other)


@pytest.mark.parametrize("seed", range(4))
def test_10_against_brute_force(seed: int) -> None:
    """Whatever is called independent or separable is, element by element; and it is not always refused."""
    draw = random.Random(seed)
    found = {True: 0, False: 0}
    for _ in range(400):
        j, i, k = Loop(draw.randint(2, 5), []), Loop(draw.randint(1, 4), []), Loop(draw.randint(1, 4), [])

        def access(inner: Loop, j: Loop = j) -> Index:
            return Index(30 + draw.randint(0, 8), ((j, draw.randint(-5, 5)), (inner, draw.randint(-3, 3))))

        one = access(i)
        other = Index(one.base, ((j, one.terms[0][1]), (k, one.terms[1][1]))) if draw.random() < 0.4 else access(k)
        first = around(i, define(Reference(P, one), "copy", ONE))
        second = around(k, define(at(Array("q", "parameter", 9)), "copy", Load(Reference(P, other))))
        around(j, first, second)
        apart_ = separable([first], [second], j)
        assert not (apart_ and _meet(j, (one, i), (other, k), both_ways=False))
        second.body = [define(Reference(X, Index(0, ((j, 10), (k, 1)))), "copy", Load(Reference(P, other)))]
        alone = independent(j)
        assert not (alone and _meet(j, (one, i), (other, k), both_ways=True))
        assert apart_ or not alone
        found[alone] += 1
    assert min(found.values()) > 20


def test_11_separable_parts() -> None:
    """Parts are bound together by an element of another iteration, not by one of their own."""
    j = Loop(5, [])
    write = define(at(P, (j, 1)), "copy", ONE)
    for base, expected in ((0, True), (1, False), (5, True)):
        read = define(at(X, (j, 1)), "copy", load(P, (j, 1), base=base))
        assert separable([write], [read], j) is expected
        assert separable([read], [write], j) is expected


def test_12_parts_that_only_read() -> None:
    """Two readers of one array are apart, whatever their indices; sums are not kept from meeting themselves."""
    j = Loop(4, [])
    for number in range(4):
        one = define(at(X, (j, 1)), "copy", special_operands(j)[number])
        two = define(at(X, (j, 1), base=50), "copy", load(P))
        if number != 3:  # Mixed reads x as well, which the other part writes
            assert separable([one], [two], j)
        # The elements that a choice or a run-time index may read are known, and others than those.
        assert separable([one], [define(at(P, (j, 1), base=70), "copy", ONE)], j) is (number in (1, 2))
        assert not separable([one], [define(at(P, (j, 1), base=1), "copy", ONE)], j)
    assert separable([update(at(P), "add", ONE)], [update(at(P, base=1), "add", ONE)], j)
    assert not separable([Block([])], [update(at(P), "add", ONE)], j)


def test_13_ranges() -> None:
    """Least and greatest elements, with steps of both signs."""
    j, i = Loop(4, []), Loop(3, [])
    index = Index(20, ((j, -5), (i, 2)))
    assert full_range(index) == (5, 24)
    assert never_meet(index, Index(4))
    assert never_meet(Index(25), index)
    assert not never_meet(index, Index(5))
    assert not never_meet(index, Index(24))
    assert ranges_apart(Index(0, ((j, 9), (i, 1))), Index(3, ((j, 9), (i, 1))), {i})
    assert not ranges_apart(Index(0, ((j, 9), (i, 1))), Index(2, ((j, 9), (i, 1))), {i})


@pytest.mark.parametrize("seed", range(3))
def test_14_injective(seed: int) -> None:
    """Only what is injective is called so, and plain rows and columns are."""
    draw = random.Random(seed)
    for _ in range(300):
        steps = [(draw.randint(-6, 6), draw.randint(1, 4)) for _ in range(draw.randint(1, 3))]
        reached = [sum(s * v for (s, _), v in zip(steps, vs)) for vs in product(*(range(c) for _, c in steps))]
        assert not injective(steps) or len(set(reached)) == len(reached)
    assert injective([(1, 7), (-7, 9)])
    assert injective([])
    assert injective([(0, 1)])
    assert not injective([(6, 9), (1, 7)])
    assert not injective([(0, 2)])


@pytest.mark.parametrize("seed", range(3))
def test_15_accesses_that_never_meet(seed: int) -> None:
    """Against brute force, with all loops free, and with one in the same iteration for both."""
    draw = random.Random(seed)
    found = {True: 0, False: 0}
    for _ in range(300):
        j, i, k = (Loop(draw.randint(1, 4), []) for _ in range(3))
        outer = draw.choice((-6, 3, 4, 12))

        def access(inner: Loop, j: Loop = j, outer: int = outer) -> Index:
            return Index(draw.randint(0, 9), ((j, outer), (inner, draw.choice((-8, -4, -2, 1, 2, 4, 6)))))

        a, b = access(i), access(k)
        for free in (None, {i, k}):
            spans = [range(loop.count) for loop in (j, i, j, k)]
            meet = any(
                _elements(a, [j, i], values[:2]) == _elements(b, [j, k], values[2:])
                for values in product(*spans)
                if free is None or values[0] == values[2]
            )
            never = never_meet(a, b, free)
            assert not (never and meet)
            found[never] += 1
    assert min(found.values()) > 100


def test_16_rows_and_columns_that_interleave() -> None:
    """Every other element, and one column of rows: no ranges are apart, and yet nothing meets."""
    j, i = Loop(9, []), Loop(9, [])
    assert never_meet(Index(0, ((j, 2),)), Index(1, ((i, 2),)))
    assert never_meet(Index(0, ((j, 10), (i, 1))), Index(9, ((j, 10),)))
    assert not never_meet(Index(0, ((j, 10), (i, 1))), Index(8, ((j, 10),)))
    assert never_meet(Index(0, ((j, -10),)), Index(5, ((i, 10),)))


def test_17_any_place_in_the_nest() -> None:
    """A loop that may only be moved where the others are fixed is not independent in the nest."""
    b, j = Loop(3, []), Loop(4, [])
    around(b, around(j, define(at(P, (j, 1), (b, 1)), "copy", ONE)))
    assert independent(j)
    assert not independent(j, [b])
    b, j = Loop(3, []), Loop(4, [])
    around(b, around(j, update(at(P, (j, 1)), "add", load(X, (b, 4), (j, 1)))))
    assert independent(j, [b])
    assert not independent(b, [b])


@pytest.mark.parametrize(
    ("step", "stride", "count", "expected"),
    [(1, 1, 3, False), (3, 1, 3, True), (1, 4, 3, True), (1, 3, 3, False), (0, 4, 3, False), (2, 1, 3, False)],
)
def test_18_run_time_indices(step: int, stride: int, count: int, expected: bool) -> None:
    """Each iteration may have another number: `p[step * j + stride * n]`, n < count, written by every j < 4."""
    j = Loop(4, [])
    place = Reference(P, Index(0, ((j, step),), None, Dynamic(load(X, (j, 1)), stride, count)))
    assert independent(around(j, update(place, "add", ONE))) is expected


def test_19_one_number_for_all_rows() -> None:
    """A column that is chosen at run time, of rows that are apart; another column of the same rows may be the same."""
    i, j = Loop(4, []), Loop(3, [])
    one, two = (Reference(P, Index(0, ((i, 8),), None, Dynamic(load(X, base=base), 1, 8))) for base in (0, 1))
    around(i, update(one, "add", ONE), define(at(Y, (i, 1)), "copy", Load(two)))
    assert independent(i)
    around(j, update(one, "add", ONE))
    assert not independent(j)
    assert separable([update(one, "add", ONE)], [update(two, "add", ONE)], i)


@pytest.mark.parametrize("seed", range(3))
def test_20_run_time_indices_against_brute_force(seed: int) -> None:
    """Whatever numbers the iterations choose."""
    draw = random.Random(seed)
    found = {True: 0, False: 0}
    for _ in range(300):
        j, i = Loop(draw.randint(2, 4), []), Loop(draw.randint(1, 3), [])
        places = []
        for _ in range(2):
            step, inner, stride = draw.choice((0, 1, 3, 8, -8)), draw.choice((1, 2, 8)), draw.choice((1, 2, 4))
            base, number = 40 + draw.choice((0, 0, 1, 4)), Dynamic(load(X, (j, 1)), stride, draw.randint(1, 3))
            places.append(Index(base, ((j, step), (i, inner)), None, number))
        one, other = places
        around(
            j,
            around(i, define(Reference(P, one), "copy", ONE), define(at(Y, (j, 1)), "copy", Load(Reference(P, other)))),
        )

        def elements(index: Index, j: Loop = j, i: Loop = i) -> list[tuple[int, int]]:
            assert index.dynamic is not None
            numbers = range(index.dynamic.count)
            values = product(range(j.count), range(i.count), numbers)
            return [(a, _elements(index, [j, i], (a, b)) + index.dynamic.stride * n) for a, b, n in values]

        written, read = elements(one), elements(other)
        apart = not any(a == b and m != n for m, a in written for n, b in (*written, *read))
        assert not independent(j) or apart
        found[independent(j)] += 1
    assert min(found.values()) > 5


def test_21_one_array_in_two_ways() -> None:
    """What one operand says about an array does not speak for another."""
    j = Loop(4, [])
    entry = TableEntry(0, ((j, 1),))
    both = define(at(P, (j, 1)), "add", load(P, (j, 1)), Mixed((P, X), entry, entry))
    assert not independent(around(j, both))
    assert not separable([both], [define(at(P, (j, 1), base=70), "copy", ONE)], j)
