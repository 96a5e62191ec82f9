"""One of several objects of the user's, chosen by a traced index.

`table[index]` with a traced index: an embedding `wte[token]`, the probability of a target `probs[target]`.  Of numbers
it is a look-up.  Of objects (parameters, nodes of an autograd graph) it is a `Gathered`: an object of a class derived
from theirs, so that their methods run on it, whose attributes are

1. read by choosing among those of the candidates: numbers are looked up, of lists the row is meant (chosen_rows.py),
   objects are gathered in turn; what is the same for all candidates is simply that;
2. assigned by assigning each candidate what it had, or the new number if it is the one that is meant.

The same choice among the same candidates is the same object, as it is in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from operator import attrgetter, is_
from types import FunctionType
from typing import Any

from ...base.lookup import has
from ...engine.leaks import is_numeric
from ...errors import TraceError, user_location
from ...memory.live import original_class
from ..surroundings.ownership import is_of_user
from ..surroundings.shapes import attributes
from .chosen_rows import Row
from .graph_style import GraphStyle
from .node_class import node_class

#: What to write instead of a choice among nodes.
SELECT_NUMBERS = (
    "Select with a sum of products with mgjit.one_hot(index, n), also in the undecorated program, whose last bits may "
    "then be others."
)

_classes: dict[type, type] = {}
_TUPLES = frozenset({tuple})
gathered_kinds: set[type] = set()


class Gatherer:
    """The gathered objects of one trace.

    Attributes:
        is_known: whether an object existed before the trace.
        backward: what `backward()` of a class is among whose nodes a number chooses.
        when_used: makes a number that is worked out when it is used.
    """

    def __init__(self) -> None:
        self.is_known: Callable[[Any], bool] = lambda thing: False
        self.backward: Callable[[GraphStyle, Any], None] = backward
        self.when_used: Callable[[Callable[[], Any]], Any] = lambda number: number()
        #: Assigns a number to one of several places, given as lists and positions, if that is a single record.
        self.put: Callable[[Sequence[tuple[Any, int]], Any, Any], bool] = lambda places, index, content: False
        #: Whether some choice was made by a test, as in `a if test else b`, where no index could be an argument.
        self.chooses_by_test = False
        #: The rows among which indices have chosen.
        self.rows: list[list[Any]] = []
        self._replaced: dict[type, Any] = {}
        self._known: dict[tuple[int, tuple[int, ...]], Any] = {}
        self._alike: set[frozenset[type]] = set()  # the types of objects that were found to be of one class
        self._attributes: dict[tuple[int, str], tuple[list[Any], Any]] = {}
        self._tests: dict[tuple[int, int], Any] = {}
        self._kept: list[Any] = []  # so that no id is used again

    def element(self, container: Any, index: Any) -> Any:
        """`container[index]` of a list or tuple.

        Raises:
            TraceError: the elements have nothing in common.
        """
        index._check_index(len(container))
        return self.choose(list(container), index)

    def choose(self, candidates: list[Any], index: Any) -> Any:
        """The candidate at a traced index, which is known to be in range."""
        first = candidates[0]
        if all(map(is_, candidates, repeat(first))):
            return first
        kinds = frozenset(map(type, candidates))
        if kinds in self._alike:
            return self._object(candidates, index)
        if kinds == _TUPLES and len(set(map(len, candidates))) == 1:
            return self._row(candidates, index)
        if all(map(is_numeric, kinds)):
            return index._take_number(candidates)
        if all(_is_same(candidate, first) for candidate in candidates):
            return first
        if all(isinstance(x, (int, float)) for x in candidates):
            return index._take_number(candidates)
        if all(isinstance(x, (list, tuple)) for x in candidates):
            # Of tuples with names, all have to have the same ones; of other classes nothing but the elements is known.
            named = {kind for kind in kinds if issubclass(kind, tuple)} - {tuple}
            are_alike = not named or (len(kinds) == 1 and not any(getattr(x, "__dict__", None) for x in candidates))
            if are_alike and len(set(map(len, candidates))) == 1:
                return self._row(candidates, index)
        elif has(first, "_lifted"):  # Values of mgjit
            return index._take(candidates)
        elif len(set(map(original_class, kinds))) == 1 and is_of_user(type(first)):
            self._alike.add(kinds)
            return self._object(candidates, index)
        raise TraceError(
            f"{user_location()}: which of {len(candidates)} objects is meant depends on a traced number, and they are "
            f"not alike ({', '.join(sorted(kind.__name__ for kind in kinds))}; their lengths may differ). Look up "
            "numbers, parameters, or lists of them with equal lengths."
        )

    def attribute(self, thing: Any, name: str) -> Any:
        """An attribute of a gathered object.  Operands, which are tuples of objects, are gathered once."""
        _, candidates, index = choice_of(thing)
        parts = list(map(attrgetter(name), candidates))
        before, known = self._attributes.get((id(thing), name), (None, None))
        if before is not None and all(map(is_, parts, before)):
            return known
        found = self.choose(parts, index)
        if type(found) is tuple and all(map(is_gathered, found)):
            self._attributes[id(thing), name] = parts, found
        return found

    def _row(self, candidates: list[Any], index: Any) -> Any:
        if isinstance(candidates[0], list):
            self.rows.append(candidates)
            return _chosen(Row(self, candidates, index), index)
        parts = [self.choose(list(column), index) for column in zip(*candidates)]
        return _chosen(tuple.__new__(type(candidates[0]), parts), index)

    def _object(self, candidates: list[Any], index: Any) -> Any:
        key = (index._leaf, tuple(map(id, candidates)))
        known = self._known.get(key)
        if known is None:
            self._allow(candidates)
            made: Any = object.__new__(
                _gathered_class(original_class(type(candidates[0])), attributes(_single(candidates[:1])[0]))
            )
            object.__setattr__(made, "_mgjit_choice", (self, candidates, index))
            self._kept.append(candidates)
            is_node = hasattr(made, "backward")  # which looks through the graph by identity, where this is a new node
            known = self._known[key] = made if is_node else _chosen(made, index)
        return known

    def _allow(self, candidates: list[Any]) -> None:
        """Objects can be gathered that are from before the trace, in no graph, or of one that is understood."""
        kind, is_nested = original_class(type(candidates[0])), any(map(is_gathered, candidates))
        if kind in self._replaced and not is_nested:
            return
        if all(map(self.is_known, _single(candidates))) or _differ_in_numbers(candidates):
            return
        if is_nested:
            raise TraceError(
                f"{user_location()}: a traced index chooses among nodes of a graph ({kind.__name__}) that another one "
                "has chosen, so that the order of backward() cannot be told. Choose once, with one index. "
                f"{SELECT_NUMBERS}"
            )
        known = node_class(kind)
        style = known.style if known is not None and known.kind is kind else None
        if style is None:
            raise TraceError(
                f"{user_location()}: which {kind.__name__} is meant depends on a traced number, and {kind.__name__} "
                "does not keep its graph in a way that is known (operands and local derivatives in tuples), so its "
                f"backward() could not be followed. {SELECT_NUMBERS}"
            )
        if kind not in self._replaced:
            self._replaced[kind] = kind.backward  # type: ignore[attr-defined]
            kind.backward = lambda node: self.backward(style, node)  # type: ignore[attr-defined]

    def close(self) -> None:
        """Give the user's classes back what was replaced, and let go of all objects."""
        for kind, original in self._replaced.items():
            kind.backward = original  # type: ignore[attr-defined]
        for kept in (self._known, self._alike, self._attributes, self._tests, self._kept, self.rows):
            kept.clear()

    def test(self, index: Any, k: int) -> Any:
        """Whether the index is k."""
        key = (index._leaf, k)
        test = self._tests.get(key)
        if test is None:
            test = self._tests[key] = index == k
        return test

    def assign(self, candidates: list[Any], index: Any, name: str, content: Any) -> None:
        """Assign an attribute of the candidate that is meant."""
        is_number = _is_number(content)
        for k, candidate in enumerate(candidates):
            old = getattr(candidate, name)
            if not (is_number and _is_number(old)):
                raise TraceError(
                    f"{user_location()}: .{name} of an object that a traced index has chosen can be assigned a number "
                    f"in place of a number, not {type(content).__name__} in place of {type(old).__name__}."
                )
            test = self.test(index, k)
            setattr(candidate, name, test._select(test, content, old))


def backward(style: GraphStyle, root: Any) -> None:
    """The `backward()` of a class among whose objects a traced index chooses."""
    from .chosen_backward import backward as of_gathered

    of_gathered(style, root)


def is_gathered(thing: Any) -> bool:
    """Whether an object stands for one of several."""
    return type(thing) in gathered_kinds


def choice_of(thing: Any) -> tuple[Gatherer, list[Any], Any]:
    """The candidates and the index behind a gathered object."""
    found: tuple[Gatherer, list[Any], Any] = thing.__dict__["_mgjit_choice"]
    return found


def _chosen(thing: Any, index: Any) -> Any:
    """What stands for the element at an index, while the step runs."""
    selections = index._recorder.selections
    return thing if selections is None else selections.choose(thing)


def _is_same(a: Any, b: Any) -> bool:
    """Whether two things are interchangeable."""
    if isinstance(a, FunctionType) and isinstance(b, FunctionType):  # made anew for each object: `lambda: None`
        return a is b or (a.__code__ is b.__code__ and not a.__closure__ and a.__defaults__ == b.__defaults__)
    if type(a) in (set, frozenset, dict) and type(a) is type(b) and not a and not b:
        return True  # the operands of leaves
    return a is b


def _differ_in_numbers(candidates: list[Any]) -> bool:
    """Whether objects hold numbers, and besides only what is the same in all of them."""
    first, *others = map(attributes, _single(candidates))
    return all(
        other.keys() == first.keys() and all(_is_like(part, first[name]) for name, part in other.items())
        for other in others
    )


def _is_like(a: Any, b: Any) -> bool:
    if type(a) in (list, tuple) and type(b) in (list, tuple):
        return not a and not b
    return _is_number(a) or _is_same(a, b)


def _is_number(content: Any) -> bool:
    return is_numeric(type(content)) or isinstance(content, (int, float))


def _single(candidates: list[Any]) -> list[Any]:
    """The candidates, where one that was itself chosen is replaced by its own candidates."""
    found: list[Any] = []
    for candidate in candidates:
        found += _single(choice_of(candidate)[1]) if is_gathered(candidate) else [candidate]
    return found


def _gathered_class(kind: type, fields: dict[str, Any]) -> type:
    made = _classes.get(kind)
    if made is None or not set(fields) <= made._mgjit_names:  # type: ignore[attr-defined]
        members: dict[str, Any] = {name: _property(name) for name in fields}
        members.update(__module__=kind.__module__, __qualname__=kind.__qualname__)
        members.update(_mgjit_original=kind, _mgjit_names=frozenset(fields))
        equality: Any = kind.__eq__
        if equality is object.__eq__:  # which asks whether they are one object
            members.update(__eq__=_compare, __hash__=kind.__hash__)
        made = _classes[kind] = type(kind)(kind.__name__, (kind,), members)
        gathered_kinds.add(made)
    return made


def _compare(one: Any, other: Any) -> bool:
    choice_of(one)[2]._recorder.selections.refuse_identity(one)
    return one is other


def _property(name: str) -> property:
    def get(self: Any) -> Any:
        return self.__dict__["_mgjit_choice"][0].attribute(self, name)

    def set_(self: Any, content: Any) -> None:
        gatherer, candidates, index = self.__dict__["_mgjit_choice"]
        gatherer.assign(candidates, index, name, content)

    return property(get, set_)
