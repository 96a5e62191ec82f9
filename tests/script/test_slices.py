"""Which slices a step gets in place of a list, and which bits of ints."""

from __future__ import annotations

import ast

import pytest

from mgjit.script.find import candidates, knowledge_of
from mgjit.script.interface import Outline
from mgjit.script.outline import outlined
from mgjit.script.rewrite import StepSource
from mgjit.script.section import Off
from mgjit.script.trying import Trying

HEAD = "for start in range(0, len(data), 4):\n"


def only(text: str) -> Outline:
    """The only step of a module."""
    tree = ast.parse(text)
    known = knowledge_of(tree)
    (found,) = (outline for candidate in candidates(tree, known) for outline in outlined(candidate, known))
    return found


def test_01_a_slice_in_place_of_its_list_and_ends() -> None:
    used = "f(data[start:start + 4]) + g(data[start:start + 4], data[:start])"
    found = only(f"{HEAD}    loss = {used}\n    loss.backward()\n")
    assert [len(places) for places in found.attributes.values()] == [2, 1]
    assert found.arguments == []


@pytest.mark.parametrize(
    "expression",
    ["f(data[start])", "f(data[start:]) + len(data)", "f(data[start:h(start)])", "f(data[:4])", "f(data.rows[start:])",
     "[f(data[start:k]) for k in range(9)]", "f(data[start:]) + data[0]"],
)  # fmt: skip
def test_02_lists_that_it_needs_as_a_whole(expression: str) -> None:
    found = only(f"{HEAD}    loss = {expression}\n    loss.backward()\n")
    assert not found.attributes


def test_03_slices_of_anything_else_are_not_taken() -> None:
    """Whose `__getitem__` may be noticed."""

    class Data(list):  # type: ignore[type-arg]
        def __getitem__(self, index: object) -> object:
            raise AssertionError

    section = Trying(StepSource("", "", "", 1, 1, 1), {})
    assert section.cut([1, 2, 3], 1, None, None) == [2, 3]
    assert section.cut((1, 2, 3), None, -1, None) == (1, 2)
    assert not section.lacks
    for things, *ends in ((Data(), 0, 1, None), ([1], 0.5, None, None), ([1], None, None, 0), ([1], True, None, None)):
        assert section.cut(things, *ends) is None
        assert section.lacks
    assert section.called(None) == ()
    assert type(section) is Off


def test_04_bits_of_arguments_are_looked_at_in_front_of_the_step() -> None:
    head = "for k in range(9):\n    a, b = data[k]\n    "
    updates = head + "w -= 0.1 * f(a, {})\n    v -= w * w\n    u -= v * v\n"
    for text in (updates, head + "loss = f(a, {})\n    loss.backward()\n"):
        found = only(text.format("float(a ^ b), (a >> 1) & 1, a ^ b"))
        assert [len(places) for places in found.attributes.values()] == [2, 1]
        assert {"a", "b"} & set(found.arguments) == {"a"}
    for expression in ("h(a) ^ b", "a ^ b % 2", "a << b", "a ^ 0.5", "[a ^ c for c in cs]", "3 ^ 1", "w ^ a"):
        assert not only(updates.format(expression)).attributes, expression


def test_05_bits_of_anything_else_are_not_taken() -> None:
    section = Trying(StepSource("", "", "", 1, 1, 1), {})
    assert section.are_ints(3, True)
    assert not section.lacks
    assert not section.are_ints(3, {1})
    assert section.lacks
