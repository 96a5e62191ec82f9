"""`mgjit.ensemble(step, n)`: many copies of what a step trains, on many cores."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Callable, TypeVar

from ..base.interruption import with_cleanup
from ..base.tracebacks import with_short_tracebacks
from ..errors import (
    ArgumentError,
    ArgumentValueError,
    ColumnError,
    IndexRangeError,
    PhaseError,
    described,
    user_location,
)
from ..kernels.side_by_side.pool import checked_threads
from ..kernels.side_by_side.worlds import World
from ..runtime.loop import reporting
from ..runtime.stats import Stats
from ..step.inside import Inside
from ..step.step import CompiledStep
from ..tracing.call.collected import collect_results
from ..tracing.call.columns import Columns
from .calls import Calls
from .course import Course
from .each import Each
from .member import MemberState, Visit

T = TypeVar("T")


def ensemble(
    step: Any,
    n: int,
    *,
    init: Callable[[int], Any] | None = None,
    threads: int | None = None,
) -> Ensemble:
    """`n` copies of everything that a step trains, which run at the same time on several cores.

    Each member has its own copy of everything that the step can reach: parameters, gradients, State, the numbers in its
    objects and variables, and the states of random generators. Its numbers are, bit for bit, those of the step run
    alone. What the step knows by itself (`model`) is not changed by the members.

    Args:
        step: a compiled step, or a compiled method.
        n: how many members there are.
        init: is called once for each member, with its number. Meanwhile your objects are those of the member, so it may
            seed generators, assign numbers, or replace models.
        threads: how many threads run members at the same time; None: as many as there are processors.

    Raises:
        ArgumentError: the step is not compiled, or an argument has the wrong type.
        ArgumentValueError: there are no members, or no threads.

    Examples:
        >>> w = mgjit.Value(1.0)
        >>> @mgjit.compile
        ... def step(x, lr):
        ...     w.data -= lr * x
        ...     return w.data
        >>> sweep = mgjit.ensemble(step, 3)
        >>> sweep(1.0, mgjit.each([0.5, 0.25, 0.0])).tolist()
        [0.5, 0.75, 1.0]
    """
    if not isinstance(step, CompiledStep):
        raise ArgumentError(
            f"{user_location()}: an ensemble needs a compiled step, not {described(step)}. Decorate it: "
            "mgjit.ensemble(mgjit.compile(step), n)."
        )
    if type(n) is not int:
        raise ArgumentError(f"{user_location()}: the number of members must be an int, not {described(n)}.")
    if n < 1:
        raise ArgumentValueError(f"{user_location()}: an ensemble needs at least one member, not {n}.")
    if init is not None and not callable(init):
        raise ArgumentError(f"{user_location()}: init must be a function of a member's number, not {described(init)}.")
    return Ensemble(step, n, init, checked_threads(threads))


class Ensemble:
    """The copies; call it like the step.

    Attributes:
        step: the step.
        calls: how many steps each member has made since it was made.
    """

    def __init__(self, step: CompiledStep[..., Any], n: int, init: Callable[[int], Any] | None, threads: int) -> None:
        self._inside = Inside(step, "ensemble")
        self.step = self._inside.step
        self._threads, self.calls = threads, 0
        self._world = World([self._inside.function, *([] if init is None else [init])])
        self._visiting: int | None = None
        self._calls: Calls | None = None
        self._members: list[MemberState] = []
        self._inside.in_turn(self._make, n, init)

    def _make(self, n: int, init: Callable[[int], Any] | None) -> None:
        before = self._world.prototype = self._world.save()

        def work() -> None:
            for number in range(n):
                contents = before
                if init is not None:
                    before.load()
                    init(number)
                    contents = self._world.save_member()
                self._members.append(MemberState(contents))

        with_cleanup(work, before.load)

    def __len__(self) -> int:
        return len(self._members)

    def __getitem__(self, number: int) -> Member:
        if type(number) is not int:
            raise ArgumentError(f"{user_location()}: a member is chosen by an int, not by {described(number)}.")
        if not -len(self) <= number < len(self):
            raise IndexRangeError(f"{user_location()}: member {number} of an ensemble of {len(self)}.")
        return Member(self, number % len(self))

    def __iter__(self) -> Iterator[Member]:
        return (Member(self, number) for number in range(len(self)))

    def __repr__(self) -> str:
        return f"<ensemble of {len(self)} x {self.step.__qualname__}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise ArgumentError(
            f"{user_location()}: an ensemble cannot be copied or pickled, as its members live in the objects of this "
            "program. Keep what they have: [member.copy(model) for member in ensemble]."
        )

    @property
    def threads(self) -> int:
        """How many threads run members at the same time; may be assigned."""
        return self._threads

    @threads.setter
    def threads(self, threads: int | None) -> None:
        self._threads = checked_threads(threads)

    @property
    def stats(self) -> Stats:
        """Those of the step, whose kernels all members use."""
        return self.step.stats

    # ---- running ----------------------------------------------------------------------------------------

    @with_short_tracebacks
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the step once in each member.

        Args:
            args, kwargs: of the step, the same for all members; or `mgjit.each([...])`, one for each.

        Returns:
            The result of the step, with an `array('d')`, one element for each member, in place of each number.
        """
        return self._inside.run("ensemble", self._call, args, kwargs)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._refuse_inside("called")
        given = self._inside.arguments(args, kwargs)
        own = [place for place, argument in enumerate(given) if _has_each(argument)]
        rows = [_of_member(given, k) for k in range(len(self))] if self._checked(given, own) else [given] * len(self)
        if self._calls is not None and self._calls.threads == self._threads:
            self._inside.forget_phase()
            found = self._calls.run(rows, self.step.stats.counter, self._noting(self.calls, 1))
            if found is not None:
                return found
        names = self._inside.parameters
        tables = {id(row): self._inside.one_row(row) for row in rows}
        course = self._run([tables[id(row)] for row in rows], frozenset(names[place] for place in own), False)
        self._calls = course.calls()
        return collect_results(map(course.result, range(len(self))))

    @with_short_tracebacks
    def loop(self, *columns: Any, progress: bool = False, **named: Any) -> list[Any]:
        """Run many steps in each member; compiled members run many of them in one call into C.

        Args:
            columns, named: as for `.loop` of the step, the same for all members; or `mgjit.each([...])`, with what each
                member gets for this argument: a column, or what is the same for all its steps.
            progress: whether to show a progress bar.

        Returns:
            For each member, what `.loop` of the step returns.

        Raises:
            ColumnError: columns differ in length, also between members; nothing was computed.
        """
        return self._inside.run("ensemble", self._loop, columns, named, progress)

    def _loop(self, columns: Sequence[Any], named: dict[str, Any], progress: bool) -> list[Any]:
        self._refuse_inside("called")
        bound = self._inside.bound_columns(columns, named)
        own = frozenset(name for name, argument in bound.items() if _has_each(argument))
        self._checked(bound.values(), own)

        def table(number: int) -> Columns:
            given = dict(zip(named, _of_member(named.values(), number)))
            return self._inside.columns(_of_member(columns, number), given)

        tables = list(map(table, range(len(self)))) if own else [table(0)] * len(self)
        for number, other in enumerate(tables):
            if other.length != tables[0].length:
                raise ColumnError(
                    f"{user_location()}: the columns of member 0 have {tables[0].length} rows, those of member "
                    f"{number} have {other.length}. All members make the same number of steps."
                )
        if not tables[0].length:
            return [self._inside.no_rows() for _ in tables]
        return list(map(self._run(tables, own, progress).columns, range(len(self))))

    def _checked(self, arguments: Iterable[Any], own: Collection[Any]) -> bool:
        """Whether there are arguments with an item for each member, as many as there are members."""
        for argument in arguments if own else ():
            for part in _parts(argument):
                if type(part) is Each and len(part.items) != len(self):
                    raise ArgumentValueError(
                        f"{user_location()}: each() has {len(part.items)} items for {len(self)} members."
                    )
        return bool(own)

    def _run(self, tables: list[Columns], own: frozenset[str], progress: bool) -> Course:
        """Run all rows; in a turn of the step."""
        self._inside.forget_phase()
        course = Course(self._inside, self._world, self._members, tables, own, self._threads, self._noting(self.calls))
        with reporting(tables[0].length, self.step.__name__, progress) as report:
            course.run(report)
        return course

    def _noting(self, before: int, more: int = 0) -> Callable[..., None]:
        """What counts the steps that have been made since there were so many."""

        def note(rows: int = more) -> None:
            self.calls = before + rows

        return note

    def _refuse_inside(self, what: str) -> None:
        if self._visiting is not None:
            raise PhaseError(
                f"{user_location()}: the ensemble cannot be {what} inside of `with ensemble[{self._visiting}]:`. "
                "Leave that block first."
            )


class Member:
    """One member of an ensemble.

    In `with ensemble[k]:`, the step's objects are those of member k: `model` has its parameters, the step and other
    steps work on them, and what is changed there is changed in the member. After it, they are what they were before.
    """

    def __init__(self, ensemble: Ensemble, number: int) -> None:
        self._ensemble, self.number = ensemble, number
        self._visit: Visit | None = None

    def __repr__(self) -> str:
        return f"<member {self.number} of {self._ensemble!r}>"

    def __enter__(self) -> Member:
        ensemble = self._ensemble
        ensemble._refuse_inside("entered")
        visit = Visit(ensemble._world)
        self._visit, ensemble._visiting = visit, self.number
        try:
            ensemble._inside.in_turn(lambda: visit.load(self._state()))
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        ensemble = self._ensemble

        def work() -> None:
            self._state().become(ensemble._world.save_member())

        with_cleanup(lambda: ensemble._inside.in_turn(work), self._leave)

    def _leave(self) -> None:
        if self._visit is not None:
            self._visit.end()
        self._visit = self._ensemble._visiting = None

    def _state(self) -> MemberState:
        return self._ensemble._members[self.number]

    @with_short_tracebacks
    def copy(self, thing: T) -> T:
        """A deep copy of something that the step can reach, such as a model, as this member has it."""
        return self._loaded(lambda: copy.deepcopy(thing))

    @with_short_tracebacks
    def load(self) -> None:
        """Let the step's objects be, from now on, what they are in this member."""
        ensemble = self._ensemble
        ensemble._refuse_inside("loaded")
        ensemble._inside.in_turn(self._state().load)

    def _loaded(self, work: Callable[[], T]) -> T:
        """Return `work()`, while the step's objects are those of this member."""
        ensemble = self._ensemble
        if ensemble._visiting == self.number:
            return work()
        ensemble._refuse_inside("read")
        visit = Visit(ensemble._world)

        def run() -> T:
            visit.load(self._state())
            return work()

        return ensemble._inside.in_turn(lambda: with_cleanup(run, visit.end))


def _of_member(arguments: Iterable[Any], number: int) -> list[Any]:
    """The arguments of a member; those of `*rest` and `**named` are in a tuple and a dict."""
    return [_one_of(argument, number) if _has_each(argument) else argument for argument in arguments]


def _one_of(argument: Any, number: int) -> Any:
    if type(argument) is Each:
        return argument.items[number]
    if type(argument) is dict:
        return dict(zip(argument, _of_member(argument.values(), number)))
    return tuple(_of_member(argument, number))


def _parts(argument: Any) -> Iterable[Any]:
    return argument.values() if type(argument) is dict else argument if type(argument) is tuple else (argument,)


def _has_each(argument: Any) -> bool:
    """Whether the argument for a parameter is one of each(), or one of those of `*rest` or `**named` is."""
    kind = type(argument)
    return kind is Each or (kind in (tuple, dict) and any(type(part) is Each for part in _parts(argument)))
