"""What a traced index chooses from tables of rows and objects: they are those in the table, not copies."""

from __future__ import annotations

import operator
from typing import Any

import pytest

import mgjit
from mgjit.errors import TraceError


class Weight:
    """A parameter of somebody's own autograd, with whatever else hangs on it."""

    __slots__ = ("data", "grad", "operands", "push")

    def __init__(self, data: float, operands: Any = (), push: Any = None) -> None:
        self.data, self.grad, self.operands = data, 0.0, operands
        self.push = push or (lambda: None)


class Box:
    """As Weight, with a dict of attributes, and names of its own."""

    label = "box"

    def __init__(self, content: float) -> None:
        self.content = content

    @property
    def twice(self) -> float:
        return self.content * 2.0

    @twice.setter
    def twice(self, number: float) -> None:
        self.content = number / 2.0

    def added(self, number: float) -> float:
        self.content += number
        return self.content


def both_ways(make: Any, calls: list[tuple[Any, ...]]) -> Any:
    """A step and what it changes, undecorated; compared with the compiled step after each call."""
    (plain, plain_state), (step, state) = make(), make()
    compiled = mgjit.compile(step, backend="python")
    for arguments in calls:
        assert compiled(*arguments) == plain(*arguments)
        assert state() == plain_state()
    return compiled


def test_01_an_element_of_a_row_is_assigned() -> None:
    """`table[index][k] = ...` changes the table, not a copy of the row."""

    def make() -> Any:
        table = [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]

        def step(index: int, x: float) -> float:
            table[index][1] -= x
            table[index][0] = table[index][1] * x
            return table[index][0] + table[0][1]

        return step, lambda: table

    assert both_ways(make, [(0, 2.0), (2, 3.0), (0, 0.5), (1, -1.0)]).stats.traces == 1


def test_02_a_row_is_the_row_that_is_in_the_table() -> None:
    """What is assigned by another way is seen, too."""

    def make() -> Any:
        table = [[0.0, 1.0], [2.0, 3.0]]

        def step(i: int, j: int, x: float) -> Any:
            first, second = table[i], table[j]
            first[0] += x
            second[0] *= 2.0
            table[1][1] = x
            sums = operator.add(first, [x]), operator.add([x], second), first + second, first * 2
            return [*first, *second], sum(first), first[::-1], sums, len(first), list(zip(first)), list(reversed(first))

        return step, lambda: table

    both_ways(make, [(0, 0, 1.0), (0, 1, 2.0), (1, 0, 3.0), (1, 1, 4.0)])


def test_03_rows_of_constants_and_of_integers() -> None:
    """Tables that nothing assigns; numbers that are ints stay ints."""

    def make() -> Any:
        table = ((1, 2.5, True), (3, 4.5, False))

        def step(i: int) -> Any:
            a, b, c = table[i]
            return a, b, c, a * 2, [type(part) for part in (a, b)], table[i][0:2], table[i]

        return step, lambda: None

    compiled = both_ways(make, [(0,), (1,)])
    assert [type(part) for part in compiled(1)[:4]] == [int, float, bool, int]
    assert type(compiled(0)[-1]) is tuple


def test_04_rows_of_rows_and_two_traced_indices() -> None:
    """Look-ups nest."""

    def make() -> Any:
        table = [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]

        def step(i: int, j: int, x: float) -> Any:
            row = table[i][j]
            row[0] += x
            table[i][0][j] *= 2.0
            return row[1] + table[0][j][0]

        return step, lambda: table

    both_ways(make, [(0, 0, 1.0), (0, 1, 2.0), (1, 0, 3.0), (1, 1, 4.0)])


@pytest.mark.parametrize("count", [3, 40])
def test_05_attributes_of_a_parameter(count: int) -> None:
    """Few parameters are copied in and out, many live in the kernel's memory."""

    def make() -> Any:
        weights = [Weight(0.5 * k) for k in range(count)]

        def step(index: int, x: float) -> Any:
            chosen = weights[index]
            for operand in chosen.operands:
                operand.grad += 1.0
            chosen.push()
            chosen.grad += chosen.data * x
            weights[1].grad += 1.0
            chosen.data -= 0.1 * chosen.grad
            return chosen.grad, isinstance(chosen, Weight), type(chosen) is Weight

        return step, lambda: [(w.data, w.grad) for w in weights]

    assert both_ways(make, [(0, 1.0), (2, 2.0), (1, 3.0), (2, 4.0)]).stats.traces == 1


def test_06_methods_and_properties_of_the_chosen_object() -> None:
    """They run on it, as on any other."""

    def make() -> Any:
        boxes = [Box(1.0), Box(2.0), Box(3.0)]

        def step(index: int, x: float) -> Any:
            chosen = boxes[index]
            chosen.twice = chosen.twice + x
            return chosen.added(x), chosen.twice, chosen.label, hasattr(chosen, "nothing")

        return step, lambda: [box.content for box in boxes]

    both_ways(make, [(0, 1.0), (2, 2.0), (1, 3.0)])


def test_07_rows_of_parameters() -> None:
    """An embedding: a list of lists of objects."""

    def make() -> Any:
        table = [[Weight(0.1 * i + j) for j in range(3)] for i in range(7)]

        def step(token: int, other: int, x: float) -> Any:
            a, b = table[token], table[other]
            total = sum(p.data * q.data for p, q in zip(a, b))
            for p, q in zip(a, b):
                p.grad += q.data * x
                q.grad += p.data * x
            for row in table:
                for p in row:
                    p.data -= 0.1 * p.grad
                    p.grad = 0.0
            return total

        return step, lambda: [(p.data, p.grad) for row in table for p in row]

    assert both_ways(make, [(0, 1, 1.0), (6, 6, 2.0), (3, 0, 3.0)]).stats.traces == 1


@pytest.mark.usefixtures("no_paths")
def test_08_what_cannot_be_chosen() -> None:
    """Each is refused where it is used, with what to write."""
    rows = [[1.0], [2.0, 3.0]]
    numbers = [[1.0], [2.0]]
    weights = [Weight(1.0), Weight(2.0)]
    functions = [weights[0].push, test_01_an_element_of_a_row_is_assigned]
    steps: list[tuple[Any, str]] = [
        (lambda i: rows[i][0], "not alike"),
        (lambda i: [weights[0], 1.0][i], "not alike"),
        (lambda i: ["a", "b"][i], "not alike"),
        (lambda i: numbers[i].append(1.0), "its length stays"),
        (lambda i: numbers[i] == [1.0], "compared"),
        (lambda i: functions[i](), "not alike"),
        (lambda i: setattr(weights[i], "data", None), "not NoneType in place of"),
        (lambda i: setattr(weights[i], "operands", 1.0), "not float in place of tuple"),
    ]
    for step, message in steps:
        with pytest.raises(TraceError, match=message):
            mgjit.compile(step, backend="python")(1)
    assert numbers == [[1.0], [2.0]]


@pytest.mark.usefixtures("no_paths")
def test_09_nodes_that_the_step_has_made() -> None:
    """Their numbers can be chosen, but not their operands: a backward pass would take another way for each index."""

    def numbers(index: int, x: float) -> Any:
        made = [Weight(x * k) for k in range(3)]
        made[index].grad += 1.0
        return made[index].data, [w.grad for w in made]

    def operands(index: int, x: float) -> Any:
        made = [Weight(x * k, (Weight(x),)) for k in range(3)]
        return [operand.data for operand in made[index].operands]

    def closures(index: int, x: float) -> Any:
        made = [Weight(x * k, push=lambda k=k: k * x) for k in range(3)]
        other = [Weight(x * k, push=lambda: index * x) for k in range(3)]
        return made[index].push(), other[index].push()

    both_ways(lambda: (numbers, lambda: None), [(0, 1.0), (2, 2.0)])
    for step in (operands, closures):
        with pytest.raises(TraceError, match="which Weight is meant depends on a traced number"):
            mgjit.compile(step, backend="python")(1, 2.0)


def test_10_comparisons_are_bools_and_choices_among_ints_ints() -> None:
    """The types of results are Python's."""

    def step(x: float, k: int) -> Any:
        big = x > 2.0
        return big, not big, big and x < 9.0, 1 if big else 2, 1.0 if big else 2, big + big, int(big), max(k, 3), -k

    compiled = mgjit.compile(step, backend="python")
    for x in (1.0, 3.0, 10.0):
        assert [(type(a), a) for a in compiled(x, 4)] == [(type(a), a) for a in step(x, 4)]
