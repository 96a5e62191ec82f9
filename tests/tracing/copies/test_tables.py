"""Tables of which a call copies only the rows that its indices choose."""

from __future__ import annotations

import warnings
from array import array
from collections.abc import Callable
from typing import Any

import pytest

import mgjit
from mgjit.errors import UnsupportedError
from mgjit.tracing.copies import copies, tables
from mgjit.tracing.copies.copies import Copied, Copies
from mgjit.tracing.copies.tables import Table
from mgjit.tracing.surroundings.places import Element, Entry

ROWS = 9
BACKENDS: dict[str, dict[str, Any]] = {"python": {"backend": "python"}, "tcc": {"compiler": "tcc"}}


class Words:
    """Vectors of words, their counts, and a step that changes both."""

    def __init__(self) -> None:
        self.vectors = [[0.25 * k - 0.5 * c for c in range(4)] for k in range(ROWS)]
        self.counts = [0.5 * k for k in range(ROWS)]

    def step(self, word: Any, other: Any, rate: Any) -> Any:
        """Move one vector towards another."""
        row = self.vectors[word]
        total = 0.0
        for c in range(4):
            change = rate * (self.vectors[other][c] - row[c])
            total = total + change
            row[c] += change
        self.counts[word] += 1.0
        return total

    def column(self, word: Any, other: Any, rate: Any) -> Any:
        """Changes one number of a row."""
        self.vectors[word][2] = self.vectors[other][1] * rate
        return rate * 2.0

    def contents(self) -> str:
        """All numbers."""
        return repr((self.vectors, self.counts))


class Both:
    """A compiled and a plain one, which agree."""

    def __init__(self, name: str = "step", warm: int = 6, **options: Any) -> None:
        self.mine, self.plain = Words(), Words()
        self.name = name
        self.step = mgjit.compile(getattr(self.mine, name), background=False, **options)
        for k in range(warm):
            self.agree(k, (3 * k + 1) % ROWS)

    def agree(self, word: int, other: int, rate: float = 0.125) -> None:
        """One more call of both."""
        assert repr(self.step(word, other, rate)) == repr(getattr(self.plain, self.name)(word, other, rate))
        assert self.mine.contents() == self.plain.contents()

    def change(self, change: Callable[[Words], Any]) -> None:
        """Of both."""
        change(self.mine)
        change(self.plain)


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The indices for which tables were copied in."""
    seen: list[list[int]] = []
    made = copies.copying_functions

    def watched(*given: Any) -> Any:
        fill, show = made(*given)

        def fill_chosen(indices: Any) -> bool:
            seen.append([int(k) for k in indices])
            return fill(indices)

        return (fill_chosen if given[3] else fill), show

    monkeypatch.setattr(copies, "copying_functions", watched)
    return seen


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["step", "column"])
def test_01_only_what_is_chosen(name: str, backend: str, chosen: list[list[int]]) -> None:
    """On the general path and on the generated one, and the same as in Python."""
    both = Both(name, 0, **BACKENDS[backend])
    calls = [(k, (5 * k + 2) % ROWS) for k in range(ROWS)]
    for word, other in calls:
        both.agree(word, other)
    assert list(dict.fromkeys((word, other) for word, other, *_ in chosen)) == calls
    assert both.step.stats.traces == 1


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "change",
    [
        lambda words: words.vectors[3].__setitem__(1, 4),
        lambda words: words.vectors[3].__setitem__(1, True),
        lambda words: words.vectors.__setitem__(3, [1.0, 2.0, 3.0, 4.0]),
        lambda words: words.vectors.reverse(),
        lambda words: words.vectors.append([1.0, 2.0, 3.0, 4.0]),
        lambda words: words.vectors.__setitem__(3, words.vectors[2]),
        lambda words: words.counts.__setitem__(3, 2),
        lambda words: words.counts.append(1.0),
        lambda words: setattr(words, "counts", [0.25] * ROWS),
        lambda words: setattr(words, "vectors", [[0.25] * 4 for _ in range(ROWS)]),
    ],
)
def test_02_changes_between_calls(change: Callable[[Words], Any], backend: str) -> None:
    """Whatever is chosen is what is there now."""
    both = Both(**BACKENDS[backend])
    both.change(change)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for word, other in [(3, 2), (2, 3), (4, 3), (3, 3), (0, 8), (3, 1)]:
            both.agree(word, other)


def test_03_an_error_in_the_chosen_row() -> None:
    """Nothing is written."""
    both = Both(backend="python")
    both.change(lambda words: words.vectors[3].__setitem__(0, "no number"))
    before = both.mine.contents()
    with pytest.raises(TypeError):
        both.step(3, 1, 0.5)
    assert both.mine.contents() == before


def test_04_all_of_it(chosen: list[list[int]]) -> None:
    """`.loop` copies the tables, once; phases cannot be told apart, and the attempt changes nothing."""
    both = Both(warm=1, compiler="tcc")
    chosen.clear()
    columns = [[k % ROWS for k in range(12)], [(k * 2 + 1) % ROWS for k in range(12)], [0.25] * 12]
    assert list(both.step.loop(*columns)) == [both.plain.step(*row) for row in zip(*columns)]
    assert both.mine.contents() == both.plain.contents()
    both.agree(1, 2)
    with pytest.raises(UnsupportedError, match="cannot run its forward part alone"):
        both.step.forward(1, 2, 0.5)
    assert both.mine.contents() == both.plain.contents()
    both.agree(1, 2)


def test_05_what_is_owed() -> None:
    """After an exception between the code and the copying, the rows of that call are written back, and no others."""
    holder: dict[str, Any] = {"it": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]}
    rows = [
        Copied(Element(Entry(holder, "it", "it"), holder["it"], k), 2 * k, 2, assigned=True) for k in range(3)
    ]  # fmt: skip
    state, counter = mgjit.zeros(6), array("d", [0.0])
    copied = Copies(state, rows, counter, [Table(rows, 3, 2, (0, 2))])
    copied.copy_in([2.0, 99.0, 0.0])
    copied.owed[0] = 0.0  # type: ignore[call-overload]
    state._buffer[:] = array("d", [10.0, 20.0, 30.0, 40.0, 50.0, 60.0])
    counter[0] = 1.0
    copied.recover()
    assert holder["it"] == [[10.0, 20.0], [3.0, 4.0], [50.0, 60.0]]
    copied.copy_in()
    assert list(state) == [10.0, 20.0, 3.0, 4.0, 50.0, 60.0]


def test_06_a_defect_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that copies nothing back is found out by verification."""
    made = tables._of_rows
    monkeypatch.setattr(tables, "_of_rows", lambda *given: (made(*given)[0], lambda rows: None))
    monkeypatch.setenv("MGJIT_VERIFY", "always")
    words = Words()
    step = mgjit.compile(words.step, backend="python", background=False)
    step(0, 1, 0.5)
    with pytest.warns(UserWarning, match="is wrong"):
        step(1, 2, 0.5)


def sums(words: Words, i: Any, j: Any) -> Any:
    """Reads a whole table."""
    words.counts[i] = sum(words.counts)


def constant(words: Words, i: Any, j: Any) -> Any:
    """Reads a row that no argument chooses."""
    words.vectors[i][0] = words.vectors[3][1]


@pytest.mark.parametrize("function", [sums, constant])
def test_07_what_is_copied_as_a_whole(function: Callable[..., Any], chosen: list[list[int]]) -> None:
    """Tables that are read in other ways as well."""
    mine, plain = Words(), Words()
    step = mgjit.compile(lambda i, j: function(mine, i, j), backend="python", background=False)
    for k in range(5):
        step(k, k + 1)
        function(plain, k, k + 1)
        assert mine.contents() == plain.contents()
    assert not chosen
