"""The Program before and after each pass."""

import pytest

from mgjit.ir.program import Array, Index, Program, Reference, Statement
from mgjit.report.stages import LEFT_OUT, Stages, compared, numbers_in, without_data, without_folders


def program(*constants):
    array = Array("y", "output", 4)
    from mgjit.ir.program import Constant

    return Program([
        Statement("copy", (Constant(number),), Reference(array, Index(k))) for k, number in enumerate(constants)
    ])  # fmt: skip


def test_what_has_changed_is_known():
    stages = Stages(lambda statement: "line 3")
    stages.watch(0, "lift", program(1.0, 2.0))
    stages.watch(1, "first", program(1.0, 2.0))
    stages.watch(2, "second", program(1.0))
    assert [(stage.name, stage.changed) for stage in stages.all] == [
        ("lift", False), ("first", False), ("second", True),
    ]  # fmt: skip
    assert "# line 3" in stages.all[0].text
    stages.watch(0, "lift", program(3.0))
    assert [stage.name for stage in stages.all] == ["lift"]


def test_numbers_of_registers_are_no_change():
    rows = compared("%1 = add(a, b)\n%2 = neg(%1)\n", "%0 = sqrt(a)\n%2 = add(a, b)\n%3 = neg(%2)\n")
    assert [row.is_equal for row in rows] == [False, True, True]
    assert (rows[0].before, rows[0].after) == (None, "%0 = sqrt(a)")
    assert (rows[1].before, rows[1].after) == ("%1 = add(a, b)", "%2 = add(a, b)")


def test_equal_lines_far_from_changes_are_counted():
    before = "\n".join(f"line {k}" for k in range(50))
    rows = compared(before, before.replace("line 20\n", ""))
    assert [row.skipped for row in rows if row.skipped] == [17, 26]
    assert sum(not row.is_equal for row in rows) == 1
    kept = [row for row in rows if row.is_equal and not row.skipped]
    assert len(kept) == 6
    assert all(row.before == row.after for row in kept)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("multiply(0.9, s0[i])", "multiply(0.9, s0[i])"),
        ("multiply(0.123456, s0[785*i + 3])", f"multiply({LEFT_OUT}, s0[785*i + 3])"),
        ("add(-1.0, 2.0)", "add(-1.0, 2.0)"),
        ("add(1234.0, x)", f"add({LEFT_OUT}, x)"),
        ("copy(1.5e-07)", f"copy({LEFT_OUT})"),
        ("v = 0x1.ccccccccccccdp-1 * x;", "v = 0.9 * x;"),
        ("v = -0x1.5bf0a8b145769p+1;", f"v = {LEFT_OUT};"),
        ("v = 0x1.99999ap-4f;", f"v = {LEFT_OUT};"),
    ],
)
def test_numbers_that_may_be_data_are_left_out(text, shown):
    assert without_data(text, numbers_in(["m[i] = 0.9 * m[i]"])) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/me/my code/train.py:12: it prints", "train.py:12: it prints"),
        ("/home/me/train.py:12: it prints", "train.py:12: it prints"),
        ("at '/a/b/c.py', and /d/e.py:3", "at 'c.py', and e.py:3"),
        ("C:\\Users\\me\\train.py:12", "train.py:12"),
        ("train.py:12: a / b / c", "train.py:12: a / b / c"),
        ("x/y.py", "x/y.py"),
    ],
)
def test_folders_are_left_out(text, shown):
    assert without_folders(text) == shown
