"""The row of a table chosen by a traced index: `table[index]`, where the table is a list of lists.

In Python this is the row in the table, not a copy: assigning to `table[index][k]` changes the table, and changes to the
table are seen in the row.  So it is a view:

1. Reading an element chooses among the elements that the rows have there now.
2. Assigning one assigns it in every row: the new number in the chosen one, its old number in the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...engine.leaks import TracedView, is_traced_number
from ...errors import TraceError, user_location


class Row(TracedView):
    """One of several lists of equal lengths."""

    __slots__ = ("_candidates", "_gatherer", "_index")
    __hash__ = None  # type: ignore[assignment]

    #: For isinstance.
    __class__ = property(lambda self: list)

    def __init__(self, gatherer: Any, candidates: list[Any], index: Any) -> None:
        self._gatherer, self._candidates, self._index = gatherer, candidates, index

    def __len__(self) -> int:
        return len(self._candidates[0])

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return [self[k] for k in range(*position.indices(len(self)))]
        if is_traced_number(position):
            return self._gatherer.element(list(self), position)
        return self._gatherer.choose([candidate[position] for candidate in self._candidates], self._index)

    def __setitem__(self, position: Any, content: Any) -> None:
        if isinstance(position, slice):
            self._assign_slice(range(*position.indices(len(self))), list(content))
        elif is_traced_number(position):
            position._check_index(len(self))
            for k, old in enumerate(self):
                self[k] = (position == k)._select(position == k, content, old)
        elif not self._gatherer.put(
            [(row, range(len(self))[position]) for row in self._candidates], self._index, content
        ):
            for k, candidate in enumerate(self._candidates):
                test = self._gatherer.test(self._index, k)
                candidate[position] = test._select(test, _number(content), _number(candidate[position]))

    def _assign_slice(self, positions: range, contents: list[Any]) -> None:
        if len(contents) != len(positions):
            self._refuse()
        for k, content in zip(positions, contents):
            self[k] = content

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def __reversed__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self) - 1, -1, -1))

    def __add__(self, other: Any) -> Any:
        return [*self, *other]

    def __radd__(self, other: Any) -> Any:
        return [*other, *self]

    def __mul__(self, times: int) -> Any:
        return list(self) * times

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return "<a row that is chosen while a step is traced>"

    def choice(self) -> tuple[list[Any], Any]:
        """The lists of which it is one, and the index."""
        return self._candidates, self._index

    def copy(self) -> list[Any]:
        """As of a list."""
        return list(self)

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TraceError(
            f"{user_location()}: a traced index chooses this row of a table. Its elements can be read and assigned, "
            "but its length stays, and it cannot be compared with other lists."
        )

    append = extend = insert = pop = remove = clear = sort = reverse = index = count = _refuse
    __iadd__ = __imul__ = __delitem__ = __eq__ = __ne__ = __contains__ = __lt__ = _refuse


def _number(content: Any) -> Any:
    if is_traced_number(content) or isinstance(content, (int, float)):
        return content
    raise TraceError(
        f"{user_location()}: in a row that a traced index has chosen, numbers can be assigned in place of numbers, "
        f"not a {type(content).__name__}."
    )
