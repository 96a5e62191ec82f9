"""Putting pieces of C in order."""

from __future__ import annotations

from mgjit.compiler.codegen.mathematics.parts import Part, assemble, for_lanes


def test_01_a_template_knows_its_lanes() -> None:
    assert for_lanes("double@ x = {EACH(t[row[#]])};", 2) == "double2 x = {t[row[0]], t[row[1]]};"


def test_02_calls_inside_each_are_repeated_whole() -> None:
    assert for_lanes("{EACH(f(a[#], g(b[#])))}", 2) == "{f(a[0], g(b[0])), f(a[1], g(b[1]))}"


def test_03_requirements_stand_first_and_once() -> None:
    table = Part(once=lambda: "table")
    helper = Part("helper@", requires=(table,))
    first, second = Part("first@", requires=(helper,)), Part("second@", requires=(helper, table))
    text = assemble([(first, [4, 2]), (second, [8, 4])])
    assert text.split("\n") == ["table", "helper2", "helper4", "helper8", "first2", "first4", "second4", "second8"]


def test_04_what_nobody_wants_is_left_out() -> None:
    assert assemble([(Part("some@"), []), (Part("other@"), [2])]) == "other2"
