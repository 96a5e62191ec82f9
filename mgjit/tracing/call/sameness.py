"""Which containers, arrays and tensors among the arguments are the same object: `a is b` in a step.

While a step is traced, each of them has a stand-in, and each argument one of its own, so that no `is` could be true.

1. Rewritten code (source/semantics.py) asks `Sameness` where a stand-in is compared with another one, or with an object
   that existed before the call.
2. A question that was not known when the arguments were planned is noted, and the call is traced again.
3. The answers belong to the structure of the arguments: a call with other answers needs another trace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...engine.leaks import PlainCall
from .given import GivenContainers, GivenPath

#: What `find` raises for arguments of another structure.
_NOT_THERE = (LookupError, AttributeError, TypeError)


class Question(NamedTuple):
    """Whether a part of the arguments is another part of them, or an object that existed before.

    Attributes:
        path: where the part lies.
        other: where the other one lies; None if it is `thing`.
        thing: an object that existed before the call.
    """

    path: GivenPath
    other: GivenPath | None
    thing: Any = None

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for the same question."""
        return self.path, self.other, id(self.thing)

    def answer(self, arguments: Sequence[Any]) -> bool | None:
        """The answer for the arguments of a call; None if they do not have such parts."""
        try:
            return self.path.find(arguments) is (self.thing if self.other is None else self.other.find(arguments))
        except _NOT_THERE:
            return None

    def condition(self, answer: bool, names: Sequence[str], name_of: Callable[[Any], str]) -> str:
        """Python source of the condition that arguments of this structure give that answer."""
        other = name_of(self.thing) if self.other is None else self.other.expression(names, name_of)
        return f"{self.path.expression(names, name_of)} {'is' if answer else 'is not'} {other}"


class Sameness:
    """Answers the questions of one trace.

    Args:
        given: the stand-ins.
        known: the questions that the plan of the arguments has, by their keys, with their answers.
        existed: whether an object existed before the call.
        note: takes a question that is not known; the call is traced again.
        refuse: takes what is compared and may stand for something else; the call is traced again then.
    """

    def __init__(
        self,
        given: GivenContainers,
        known: dict[tuple[Any, ...], bool | None],
        existed: Callable[[Any], bool],
        note: Callable[[Question], None],
        refuse: Callable[[Any], None] = lambda thing: None,
    ) -> None:
        self._refuse = refuse
        self._given, self._known, self._existed, self._note = given, known, existed, note

    def __call__(self, one: Any, other: Any) -> bool:
        """`one is other` for the objects that these stand for."""
        if one is other:
            return True
        if isinstance(one, type) or isinstance(other, type):
            return False
        self._refuse(one)
        self._refuse(other)
        first, second = self._given.path(one), self._given.path(other)
        if first is not None and second is not None:
            question = Question(*sorted((first, second), key=repr))
        elif first is not None and self._existed(other):
            question = Question(first, None, other)
        elif second is not None and self._existed(one):
            question = Question(second, None, one)
        else:
            return False
        if question.key not in self._known:
            self._note(question)
        return bool(self._known[question.key])

    def identity(self, thing: Any) -> int:
        """`id(thing)`.

        Raises:
            PlainCall: it is an argument, whose identity is another number in each call.
        """
        self._refuse(thing)
        if self._given.path(thing) is not None:
            raise PlainCall("it asks for the id() of an argument, which is another number in each call")
        return id(thing)
