"""Numbers in the user's objects that are copied into a State before each call, and back after it.

This is for numbers that cannot live in a kernel's memory: variables, elements of lists, fields of single objects.
Two functions are generated for the places of a kernel (placewriter.py):

1. `fill` checks all places, then copies their numbers into the State.  It returns False if something there is not what
   it was when the step was traced; no harm is done, because only the State was written.
2. The code runs, and increments its counter.
3. `show` writes back what the code has assigned.  A long list of which no bit has changed is left alone.

A call that runs the code without a transaction notes in `owed` what the counter was before.  While a number is there,
the results of the code may not have been written back yet.  `recover` makes up for it: after an exception that came in
between, before the next call, and in the child of a fork.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...base.cached import cached_property
from ...base.interruption import recover_after_fork
from ...engine.kinds import is_float64
from ...engine.leaks import PlainCall
from ...errors import ArgumentError, IndexRangeError, user_location
from ...ir.trace import IndexCheck
from ...memory.buffers import Moved
from ...memory.live import Home
from ..record.integers import IntegerLimit
from ..record.mixed import TYPES
from .built import Built
from .packers import are_plain
from .placewriter import EXACT, Told, copying_functions, indices_of, lists_on_their_own
from .tables import Table

if TYPE_CHECKING:
    from ..call.given import GivenPath


@dataclass
class Copied:
    """One number, or a list of numbers.

    Attributes:
        place: where it is in the user's objects.
        offset: of the first number in the State.
        size: the length of the list; 0 for a single number.
        assigned: whether it is copied back.
        replaced: whether the step puts another list there instead of assigning elements.
        given: where that list lies among the arguments; None for one that the step makes.
        positions: of the elements that are copied back; None for all.  Others belong to whoever assigns them, such as
            another step in another thread.
        integers: offsets of the numbers that are ints in Python after the step.
        given_integers: offsets of the numbers that were ints before it.
        given_floats: offsets of the numbers that were floats before it, where an int would make a difference.
        numpy_floats: offsets of the numbers that are of numpy's type float64, before the step and after it.
        mixed: whether the numbers may be ints or floats; the codes of their types follow in the state.
        limit: how large ints may be, so that all that is computed from them is exact.
        allowed: by offset, which ints a number may be that the step uses as an index (tracer/kept_indices.py).
    """

    place: Any
    offset: int
    size: int = 0
    assigned: bool = False
    replaced: bool = False
    given: GivenPath | None = None
    positions: tuple[int, ...] | None = None
    integers: frozenset[int] = frozenset()
    given_integers: frozenset[int] = frozenset()
    given_floats: frozenset[int] = frozenset()
    numpy_floats: frozenset[int] = frozenset()
    mixed: bool = False
    limit: int = EXACT
    allowed: dict[int, IndexCheck] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many numbers there are."""
        return self.size or 1

    @property
    def offsets(self) -> range:
        """The offsets of its numbers in the State."""
        return range(self.offset, self.offset + self.count)

    def read(self) -> Sequence[Any]:
        """The numbers that are there now.

        Raises:
            ArgumentError: it is not a list of this length any more.
        """
        content = self.place.read()
        if self.size and (type(content) is not list or len(content) != self.size):
            raise ArgumentError(
                f"{user_location()}: {self.place.describe()} was a list of {self.size} numbers when the step was "
                "traced. Keep its length, or call step.clear() to trace anew."
            )
        return content if self.size else (content,)

    def check_indices(self, numbers: Sequence[Any]) -> None:
        """Check those of some numbers, which may come here, that the step uses as indices.

        Raises:
            IndexRangeError: one is out of range.
        """
        for offset, check in self.allowed.items():
            number = numbers[offset - self.offset]
            if isinstance(number, (int, float)) and number not in check.allowed:
                raise IndexRangeError(
                    f"{check.location}: the index is {number}, in {self.place.describe()}, and the table has "
                    f"{check.count} elements."
                )

    def changed_kind(self) -> str:
        """The first number that is none any more, or no int, or no float where that can be told, in words; or empty."""
        try:
            numbers = self.read()
        except ArgumentError:
            return f"{self.place.describe()} was a list of {self.size} numbers, and is not any more"
        except (LookupError, AttributeError, ValueError):
            return f"{self.place.describe()} is gone"
        if set(map(type, numbers)) == {float} and not (self.given_integers or self.numpy_floats):
            return ""  # as most often
        if self.has_other_floats(numbers):
            return f"{self.place.describe()} has numbers of numpy's type float64 now, or has them no more"
        if not self.numpy_floats and not are_plain(numbers):
            return f"{self.place.describe()} was {'a list of numbers' if self.size else 'a number'}, is something else"
        for given, was, now in ((self.given_integers, "an int", float), (self.given_floats, "a float", int)):
            found = [numbers[k - self.offset] for k in sorted(given)]
            other = next((number for number in found if type(number) is now), None)
            if other is not None:
                return f"{self.place.describe()} was {was} when the step was traced, is {other!r:.40}"
        return ""

    def has_other_floats(self, numbers: Sequence[Any]) -> bool:
        """Whether the numbers that are of numpy's float64 now are not those that were when the step was traced."""
        now = {k for k, kind in enumerate(map(type, numbers), self.offset) if kind is not float and is_float64(kind)}
        return now != self.numpy_floats


class Copies:
    """Everything that a kernel copies.

    Attributes:
        fill: copies into the State and returns True, or returns False if something does not fit.  With indices, in
            the order of `inputs`, only those rows of tables are copied that they choose.
        show: copies back what was assigned.
        inputs: the places of these indices among the packed numbers of a call; empty without tables.
        owed: one number: the counter before a call that is under way, or -1.
        told: what a call tells, and is told, while its numbers are copied.
        numbers: the contents of the State. parts: what lies where in it. built: what is made of the rest.
    """

    def __init__(
        self,
        state: Any,
        parts: Sequence[Copied],
        counter: array[int],
        tables: Sequence[Table] = (),
        has_containers: bool = False,
        built: Built | None = None,
    ) -> None:
        self.built = Built() if built is None else built
        self.numbers: array[float] = state._buffer
        self.parts, self._counter = parts, counter
        self._kept: list[bytes] = []
        self.told = Told(parts, has_containers, self.built)
        self.owed = [-1]
        self.inputs = indices_of(tables)
        if tables:
            self._fill_chosen, self._show_chosen = copying_functions(self.numbers, parts, [], tables, self.told)
            self.fill, self.show = self._fill_in_either_way, self._show_in_the_same_way
            self._has_chosen = False
        else:
            self.fill, self.show = self._of_all
        recover_after_fork(self)

    @cached_property
    def _of_all(self) -> tuple[Callable[..., bool], Callable[[], None]]:
        """The functions that copy everything, which may be long."""
        return copying_functions(self.numbers, self.parts, self._kept, (), self.told)

    def _fill_in_either_way(self, indices: Sequence[float] | None = None) -> bool:
        """Copy in everything, or of tables the rows that these indices choose."""
        self._has_chosen = indices is not None
        return self._of_all[0]() if indices is None else self._fill_chosen(indices)

    def _show_in_the_same_way(self) -> None:
        (self._show_chosen if self._has_chosen else self._of_all[1])()

    def copy_in(self, packed: Sequence[float] | None = None) -> None:
        """Fill the State.

        Args:
            packed: the numbers of a call that is a whole step; of tables, only what it needs is copied.

        Raises:
            ArgumentError: something there is not a number any more; nothing was changed.
            Moved: a number lives in the memory of another kernel by now, or is of numpy's type float64 or is not.
            PlainCall: an int is too large for the step to be exact.
            IndexRangeError: an int that the step uses as an index is out of range.
        """
        self.recover()
        if packed is not None and self.inputs and self.fill([packed[place] for place in self.inputs]):
            return
        if not self.fill():
            self._fill_slowly()

    def keep(self, arguments: Sequence[Any]) -> None:
        """Tell the arguments of a call that has copied its numbers in: what it keeps of them, it keeps itself."""
        self.told.given[:] = [path.find(arguments) for path in self.told.paths]

    def lists(self) -> set[int]:
        """The identities of the lists in variables, attributes and entries to whose elements the step assigns now.

        They are told only if an argument may be one of them.
        """
        found = set()
        for part in self.told.changed:
            with suppress(LookupError, AttributeError, ValueError):  # which copying it will raise
                found.add(id(part.place.read()))
        return found

    def all_lists(self) -> set[int]:
        """The identities of all lists to whose elements the step assigns now, or in which it puts others."""
        places = [part.place for part in self.parts if part.assigned and part.size]
        around = [place.container for place in (*places, *self.built.places)]
        found = set()
        for place in (*places, *filter(None, around)):
            with suppress(LookupError, AttributeError, ValueError):
                found.add(id(place.read()))
        return found

    def recover(self) -> None:
        """Write back what a finished call still owes; may be called at any time, and repeatedly."""
        before = self.owed[0]
        if before >= 0:
            if self._counter[0] != before:
                self.show()
            self.owed[0] = -1

    def places(self) -> list[Any]:
        """Where the user has what is copied."""
        return [*(part.place for part in self.parts), *self.built.places]

    def difference(self) -> str:
        """The first number whose type has changed where that can be told, in words; or two lists that have become one.

        Empty when there is no difference.
        """
        changed = next(filter(None, (part.changed_kind() for part in self.parts)), "")
        return changed or self._same_list() or self.built.difference()

    def _same_list(self) -> str:
        found: dict[int, Copied] = {}
        for part in lists_on_their_own(self.parts):
            try:
                other = found.setdefault(id(part.place.read()), part)
            except (LookupError, AttributeError, ValueError):
                continue  # copying it will raise this error
            if other is not part:
                return f"{other.place.describe()} and {part.place.describe()} are one list now"
        return ""

    def stay_exact(self, calls: int, integers: IntegerLimit) -> bool:
        """Whether ints cannot grow beyond the limit in so many calls that nobody looks at."""
        numbers = [n for part in self.parts if part.limit == integers.limit for n in part.read() if type(n) is int]
        largest = max(map(abs, numbers), default=0)
        return max(largest, integers.least) + calls * integers.growth <= integers.limit

    def _fill_slowly(self) -> None:
        """As `fill`, but raises an error that says what is wrong."""
        code = self.numbers.typecode
        self.told.given[:] = [None] * len(self.told.given)
        if any(part.has_other_floats(part.read()) for part in self.parts):
            raise Moved
        for part in self.parts:
            part.check_indices(part.read() if part.allowed else ())
        found = [(part, self._numbers(part, code)) for part in self.parts]
        if self.built.difference():
            raise ArgumentError(f"{user_location()}: {self.built.difference()}. Call step.clear() to trace anew.")
        self._kept[:] = [b""] * len(self._kept)
        for part, numbers in found:
            self.numbers[part.offset : part.offset + len(numbers)] = numbers
        for one in self.built.carried:
            self.numbers[one.offset : one.offset + one.count] = one.numbers(code) or array(code)

    def _numbers(self, part: Copied, code: str) -> array[float]:
        numbers = part.read()
        if any(type(number) is Home for number in numbers):
            raise Moved
        for number in numbers if part.mixed else [numbers[k - part.offset] for k in sorted(part.given_integers)]:
            if type(number) is int and not -part.limit <= number <= part.limit:
                raise PlainCall(
                    f"{part.place.describe()} is so large an int that ints above 2**53 may be computed, which float64 "
                    "does not hold"
                )
        try:
            return array(code, [*numbers, *(TYPES.index(type(n)) for n in numbers)] if part.mixed else numbers)
        except (TypeError, OverflowError) as reason:
            raise ArgumentError(f"{user_location()}: {part.place.describe()}: {reason}") from None
