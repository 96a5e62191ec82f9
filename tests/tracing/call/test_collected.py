"""The columns of results that exist already."""

from __future__ import annotations

from array import array

import pytest

from mgjit.tracing.call.collected import collect_results


class Loss:
    """An object of a class of one's own."""

    def __init__(self, data: float) -> None:
        self.data, self.name = data, "loss"


def test_01_columns_of_results_that_differ() -> None:
    """Nothing is lost: of what has another structure in each call, there is a list."""
    assert collect_results([True, False, True]) == array("d", [1.0, 0.0, 1.0])
    assert collect_results([False, False]) == collect_results([0, False]) == array("d", [0.0, 0.0])
    assert collect_results([1.5, None]) == [1.5, None]
    assert collect_results([None, 1.5]) == [None, 1.5]
    assert collect_results([(1.0, "a"), (2.0, "b")]) == (array("d", [1.0, 2.0]), ["a", "b"])
    assert collect_results([[1.0], [2.0, 3.0]]) == [[1.0], [2.0, 3.0]]
    assert collect_results([{"a": 1.0}, {"b": 1.0}]) == [{"a": 1.0}, {"b": 1.0}]
    assert collect_results([[1.0], (1.0,)]) == [[1.0], (1.0,)]
    losses = collect_results([Loss(1.0), Loss(2.0)])
    assert (type(losses), losses.data, losses.name) == (Loss, array("d", [1.0, 2.0]), "loss")


@pytest.mark.parametrize("rows", [1, 2])
def test_02_columns_of_one_row(rows: int) -> None:
    """Are columns as well, not the result itself."""
    found = collect_results((0.5 + k, [1.0, k], "text", None) for k in range(rows))
    assert found == (array("d", [0.5, 1.5][:rows]), [array("d", [1.0] * rows), array("d", range(rows))], "text", None)
