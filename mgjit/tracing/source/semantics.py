"""The functions that rewritten code calls where it may meet a traced number.

Rewritten functions (source/rewriting.py) find these under one name.  Each does exactly what the syntax or builtin that
it stands for does, unless an operand is traced; then it records the operation with the same result, or raises a
TraceError that says how to write it.
"""

from __future__ import annotations

import builtins
import contextlib
import math
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import get_ident
from types import FrameType, SimpleNamespace
from typing import Any

from ...base.lookup import package_of
from ...engine import hook
from ...engine.arithmetic import to_degrees
from ...engine.leaks import PlainCall, TracedView, is_numeric, is_traced, is_traced_number
from ...engine.library import FUNCTIONS as LIBRARY
from ...errors import TraceError, user_location
from ...memory.live import original_class
from ..record.current import current_recorder
from ..record.traced_array import TracedArray
from ..record.uniform import EachIndex
from ..record.uniform_loops import CALLS, Use
from ..record.unread import note_read
from ..surroundings.ownership import is_of_user
from . import effects, outside
from .contributions import contributed, contributing, observes
from .handlers import Attempt, Suppressing
from .implicit import ANYTHING, NEW, Doing
from .sides import ONE_SIDE, both_sides
from .stores import NO_CHANGES, select_changes, store_attribute, store_element
from .untaken import Reached, Untaken

_INPLACE: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.iadd, "Sub": operator.isub, "Mult": operator.imul, "Div": operator.itruediv,
    "Pow": operator.ipow, "FloorDiv": operator.ifloordiv, "Mod": operator.imod, "MatMult": operator.imatmul,
    "BitAnd": operator.iand, "BitOr": operator.ior, "BitXor": operator.ixor, "LShift": operator.ilshift,
    "RShift": operator.irshift,
}  # fmt: skip


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq, "NotEq": operator.ne, "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt,
    "GtE": operator.ge, "In": lambda a, b: a in b, "NotIn": lambda a, b: a not in b,
}  # fmt: skip
_NEVER_TRACED = frozenset({bool, int, tuple, list, str, type(None)})
#: So deep may both sides of conditions be inside of one another, before ints that decide are fixed for the trace.
_DEPTH = 30


def _select(condition: Any, chosen: Any, other: Any, are_new: bool = False) -> Any:
    """`chosen if condition else other` of numbers, of lists, tuples and dicts of equal structure, and of nodes.

    Args:
        are_new: whether nothing else means these two.
    """
    if chosen is other:
        return chosen
    if is_numeric(type(chosen)) and is_numeric(type(other)):
        return condition._select(condition, chosen, other)
    if type(chosen) is dict and type(other) is dict and list(chosen) == list(other):

        def make() -> Any:
            return {key: _select(condition, part, other[key]) for key, part in chosen.items()}

        return make() if are_new else condition._recorder.selections.made_of(condition, chosen, other, make)
    if type(chosen) in (list, tuple) and type(chosen) is type(other) and len(chosen) == len(other):

        def made() -> Any:
            return type(chosen)(_select(condition, a, b) for a, b in zip(chosen, other))

        is_new = are_new or type(chosen) is tuple
        return made() if is_new else condition._recorder.selections.made_of(condition, chosen, other, made)
    if not all(isinstance(x, (int, float)) or hasattr(x, "_select") for x in (chosen, other)):
        if is_of_user(type_of(chosen)) and hasattr(condition, "_choose_object"):
            return condition._choose_object(chosen, other)
        raise TraceError(
            f"{user_location()}: which of two objects is meant ({type(chosen).__name__}, {type(other).__name__}) "
            "depends on a traced number. Only numbers, Values, and lists of them can be selected; compute both, "
            "and select the numbers."
        )
    return condition._select(condition, chosen, other)


def choose(test: Any, chosen: Callable[[], Any], other: Callable[[], Any], does: Doing = ANYTHING) -> Any:
    """`chosen if test else other`.

    Args:
        does: what both do (implicit.py).
    """
    if type(test) is bool or not is_traced_number(test):
        return chosen() if test else other()
    decided = _decided(test, sys._getframe(1))
    if decided is not None:
        return chosen() if decided else other()
    with _BothSides(test):
        with Untaken(test._recorder, does, Reached.by(chosen, other)) as side:
            first = chosen()
            changes = side.put_back()
            side.begin()
            second = other()
        select_changes(test, changes, side.changes, _select)
        return _selected(test, _select(test, first, second, NEW in does))


def _decided(test: Any, frame: FrameType) -> bool | None:
    """What a test of a frame's code is in this call, if both of its sides cannot be computed.

    Otherwise None, and the place is known to be under way until `_selected` is called.
    """
    recorder = test._recorder
    if recorder.answers is None:
        return None
    site = frame.f_code.co_filename, frame.f_lineno
    answer: bool | None = test._truth() if site in recorder.decided else None
    if answer is None:
        recorder.under_way.append(site)
    return answer


def _selected(test: Any, result: Any) -> Any:
    """The result of both sides of a test, which have been computed."""
    if test._recorder.answers is not None:
        test._recorder.under_way.pop()
    return result


class _BothSides:
    """Both sides of a condition are computed inside, which has no end where a function calls itself there."""

    def __init__(self, test: Any) -> None:
        self._test, self._recorder = test, test._recorder

    def __enter__(self) -> None:
        if self._recorder.conditions >= _DEPTH:
            self._test._fix(True)
        self._recorder.conditions += 1

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._recorder.conditions -= 1
        if kind is RecursionError and not self._recorder.conditions:
            raise TraceError(
                f"{user_location()}: both sides of a condition on a traced number are computed, and a function calls "
                "itself there without end. Let an int argument of the step decide when it ends, or write a loop."
            ) from None


def sides(test: Any, text: str, *others: Any) -> Iterable[Any]:
    """The sides of an `if` that can be taken both ways: both when the test is traced; `others`: see `both_sides`."""
    if type(test) in _NEVER_TRACED or not is_traced_number(test):
        return ONE_SIDE[bool(truth(test, text, "if"))]
    test._fix(False)
    decided = _decided(test, sys._getframe(1))
    return _sides_inside(test, *others) if decided is None else ONE_SIDE[decided]


def _sides_inside(test: Any, *others: Any) -> Iterator[Any]:
    with _BothSides(test):
        yield from both_sides(test, _select, *others)
    _selected(test, None)


def compared(
    first: Any, operators: Sequence[str], does: Doing, later: Callable[[], Any], *others: Callable[[], Any]
) -> Any:
    """`first < second < third`, with each of them evaluated once, and no further than in Python."""
    second = later()
    result = _COMPARISONS[operators[0]](first, second)
    if not others:
        return result
    if type(result) is bool or not is_traced_number(result):
        return result and compared(second, operators[1:], does, *others)
    decided = _decided(result, sys._getframe(1))
    if decided is not None:
        return compared(second, operators[1:], does, *others) if decided else result
    with Untaken(result._recorder, does, Reached.by(*others)) as side:
        rest = compared(second, operators[1:], does, *others)
    select_changes(result, side.changes, NO_CHANGES, _select)
    return _selected(result, _select(result, rest, result))


def is_none(thing: Any) -> bool:
    """`thing is None`."""
    note_read(thing)
    return thing is None


def is_some(thing: Any) -> bool:
    """`thing is not None`."""
    note_read(thing)
    return thing is not None


def same(one: Any, other: Any) -> bool:
    """`one is other`."""
    note_read(one)
    note_read(other)
    recorder = current_recorder()
    if recorder is not None:
        recorder.selections.refuse_identity(one, other)
    return one is other if recorder is None or recorder.same is None else recorder.same(one, other)


def different(one: Any, other: Any) -> bool:
    """`one is not other`."""
    return not same(one, other)


_COMPARISONS.update(Is=same, IsNot=different)


def identity(thing: Any) -> int:
    """`id(thing)`."""
    note_read(thing)
    recorder = current_recorder()
    if recorder is not None:
        recorder.selections.refuse_identity(thing)
    return id(thing) if recorder is None or recorder.same is None else recorder.same.identity(thing)


def both(first: Any, second: Callable[[], Any], does: Doing = ANYTHING) -> Any:
    """`first and second`."""
    if type(first) is bool or not is_traced_number(first):
        return first and second()
    decided = _decided(first, sys._getframe(1))
    if decided is not None:
        return second() if decided else first
    with Untaken(first._recorder, does, Reached.by(second)) as side:
        content = second()
    select_changes(first, side.changes, NO_CHANGES, _select)
    return _selected(first, _select(first, content, first))


def either(first: Any, second: Callable[[], Any], does: Doing = ANYTHING) -> Any:
    """`first or second`."""
    if type(first) is bool or not is_traced_number(first):
        return first or second()
    decided = _decided(first, sys._getframe(1))
    if decided is not None:
        return first if decided else second()
    with Untaken(first._recorder, does, Reached.by(second)) as side:
        content = second()
    select_changes(first, NO_CHANGES, side.changes, _select)
    return _selected(first, _select(first, first, content))


def negation(operand: Any) -> Any:
    """`not operand`."""
    return _as_float(operand) == 0 if is_traced_number(operand) else not operand


def truth(test: Any, text: str, statement: str) -> Any:
    """The test of an `if`, `while` or `assert`."""
    if type(test) not in _NEVER_TRACED and is_traced(test) and not issubclass(type(test), TracedView):
        if is_traced_number(test):
            test._fix(False)
            answer = test._truth()
            if answer is not None:
                return answer
        raise TraceError(
            f"{user_location()}: `{statement} {text}` asks for a number that is known only when the compiled step "
            "runs. Write a conditional expression (`a if test else b`, mgjit.where, max, min), which is computed both "
            "ways, or pass what decides as an argument that @mgjit.compile(static=(...)) names."
        )
    return test


# ---- elements -----------------------------------------------------------------------------------------------


def element(container: Any, index: Any) -> Any:
    """`container[index]`."""
    if type(index) is int:
        return container[index]
    if type(index) is EachIndex:
        return index.element(container)
    if not (_is_traced_integer(index) or type(index) is tuple):
        return container[index]
    if type(index) is not tuple and type(container) in (list, tuple):
        try:
            return index._gatherer.element(container, index)
        except TraceError:
            if index._recorder.answers is None:
                raise
            index = operator.index(index)
    return container[_fixed(container, index)]


def _fixed(container: Any, index: Any) -> Any:
    """An index into a numpy array, for each value of which the step is traced.

    numpy asks an index for its number itself, but takes an exception as the answer that there is none.
    """
    if package_of(type(container)) != "numpy":
        return index
    if type(index) is tuple:
        return tuple(_fixed(container, part) for part in index)
    return operator.index(index) if _is_traced_integer(index) else index


def _is_traced_integer(index: Any) -> bool:
    if not is_traced_number(index):
        return False
    return isinstance(index, int) or (index.of_numpy == "integer" and index.__class__.__name__[:4] != "bool")


def assign_element(content: Any, container: Any, index: Any) -> None:
    """`container[index] = content`."""
    if type(index) is int:
        container[index] = content
        return
    if type(index) is EachIndex:
        index.assign(container, content)
        return
    if not _is_traced_integer(index) or type(container) is not list:
        container[_fixed(container, index)] = content
        return
    try:
        index._check_index(len(container))
    except TraceError:
        if index._recorder.answers is None:
            raise
        container[operator.index(index)] = content
        return
    if index._gatherer.put([(container, k) for k in range(len(container))], index, content):
        return
    for k, old in enumerate(container):
        container[k] = _select(index == k, content, old)


def update_element(container: Any, index: Any, name: str, operand: Callable[[], Any]) -> None:
    """`container[index] += operand` and its like."""
    current = element(container, index)
    assign_element(_INPLACE[name](current, operand()), container, index)


# ---- loops --------------------------------------------------------------------------------------------------


_ITERATIONS: dict[str, Callable[..., Any]] = {"each": iter, **{name: getattr(builtins, name) for name in CALLS}}


def uniform(
    how: str, iterables: Sequence[Any], use: Sequence[Any], captured: Sequence[Callable[[], Any]]
) -> Iterable[Any]:
    """What a `for` that does the same to each object runs through."""
    recording = hook.recording
    if recording is not None and recording.thread == get_ident():
        found: Iterable[Any] | None = recording.uniform.items(how, iterables, Use(*use), captured)
        if found is not None:
            return found
    return _ITERATIONS[how](*iterables)  # type: ignore[no-any-return]


# ---- functions ----------------------------------------------------------------------------------------------


def _extreme(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def function(*arguments: Any, **options: Any) -> Any:
        items = list(arguments[0]) if len(arguments) == 1 else list(arguments)
        key = options.get("key")
        if items and key is not None:
            keys = _keys(items, key)
            found = _told(keys, name, lambda answers, operands: answers.greatest(operands, name == "min"))
            return items[original(range(len(items)), key=keys.__getitem__) if found is None else found]
        if not any(map(is_traced, items)):
            return original(items, **options) if items or "default" in options else original(*arguments, **options)
        best = items[0]
        for item in items[1:]:
            if is_traced(best) or is_traced(item):
                traced = best if is_traced(best) else item._lifted(best)
                best = getattr(traced, "maximum" if name == "max" else "minimum")(item)
            else:
                best = original(best, item)
        return best

    return function


def _quantifier(original: Callable[[Any], bool], decisive: bool) -> Callable[[Any], Any]:
    """`any` or `all`, of which one element that is `decisive` decides."""

    def function(iterable: Any) -> Any:
        items = iter(iterable)
        for item in items:
            if is_traced_number(item):
                return _with_rest(_as_float(item) != 0, iterable, items, sys._getframe(1))
            if original((item,)) is decisive:
                return decisive
        return not decisive

    def _with_rest(result: Any, iterable: Any, items: Iterator[Any], caller: FrameType) -> Any:
        """With the elements that Python may not ask for."""
        if type(iterable) in (list, tuple) or not is_traced(result):
            return _rest(result, items)
        with Untaken(result._recorder, ANYTHING, Reached.by_iterating(iterable, caller)) as side:
            result = _rest(result, items)
        side.refuse_changes()
        return result

    def _rest(result: Any, items: Iterator[Any]) -> Any:
        for item in items:
            if is_traced_number(item):
                result = (either if decisive else both)(result, _given(_as_float(item) != 0))
            elif original((item,)) is decisive:
                return decisive
        return result

    return function


def _given(thing: Any) -> Callable[[], Any]:
    return lambda: thing


def _keys(items: list[Any], key: Callable[[Any], Any] | None) -> list[Any]:
    """What decides about the order of items."""
    keys = items if key is None else list(map(key, items))
    for number in filter(is_traced_number, keys):
        number._fix(False)
    return keys


def _told(keys: list[Any], name: str, ask: Callable[[Any, list[int]], Any]) -> Any:
    """What `ask` says about the order of numbers, which are records; None where Python can see it for itself.

    Raises:
        TraceError: nobody can.
    """
    traced = next(filter(is_traced, keys), None)
    recorder = current_recorder()
    answers = None if recorder is None else recorder.answers
    if recorder is not None and traced is not None and answers is not None and all(map(_is_number_or_value, keys)):
        found = ask(answers, [key._leaf if is_traced(key) else recorder.constant(key) for key in keys])
        if found is not None:
            return found
    elif answers is not None:  # of tuples with numbers in them, Python asks for each number that it needs
        return None
    if any(map(_has_traced, keys)):
        raise TraceError(
            f"{user_location()}: {name}() asks which of several traced numbers is greater, and all else in the step "
            "may depend on that. Return the numbers, and choose or sort outside of the step; the greatest and the "
            "least number themselves are max(xs) and min(xs)."
        )
    return None


def _is_number_or_value(key: Any) -> bool:
    return isinstance(key, (int, float)) or (is_traced(key) and not issubclass(type(key), TracedView))


def sorted_of(iterable: Any, *, key: Any = None, reverse: Any = False) -> list[Any]:
    """`sorted(xs)`."""
    items = list(iterable)
    keys = _keys(items, key)
    found = _told(keys, "sorted", lambda answers, operands: answers.order(operands, bool(reverse)))
    if found is None:
        found = sorted(range(len(items)), key=keys.__getitem__, reverse=reverse)
    return [items[k] for k in found]


def to_float(*arguments: Any) -> Any:
    """`float(x)`."""
    if len(arguments) == 1 and is_traced(arguments[0]) and hasattr(arguments[0], "_as_float"):
        return arguments[0]._as_float()
    return float(*arguments)


def _as_float(number: Any) -> Any:
    """A number of numpy's type float64 as the float that it is."""
    return number._as_float() if is_traced_number(number) and number.of_numpy else number


def to_integer(*arguments: Any, **options: Any) -> Any:
    """`int(x)`."""
    if len(arguments) == 1 and is_traced(arguments[0]) and hasattr(arguments[0], "_as_integer"):
        return arguments[0]._as_integer()
    return int(*arguments, **options)


def rounded(number: Any, *digits: Any, **options: Any) -> Any:
    """`round(x)`."""
    if is_traced_number(number) and not options:
        return number.__round__(*digits)
    return round(number, *digits, **options)


def _note_type(thing: Any) -> None:
    """The step asks whether a number is an int or a float, which in another call it may not be."""
    recorder = current_recorder()
    if recorder is None or not is_traced_number(thing) or not hasattr(thing, "_leaf"):
        return
    if hasattr(type(thing), "_kind"):
        raise PlainCall(
            f"{user_location()}: it asks for the type of a number that is an int in some calls and a float in others"
        )
    recorder.note_type(thing._leaf)


def class_of(thing: Any) -> Any:
    """`x.__class__`."""
    _note_type(thing)
    return thing.__class__


def is_instance(thing: Any, kinds: Any) -> bool:
    """`isinstance(x, kinds)`."""
    if is_traced_number(thing) and issubclass(int, kinds) != issubclass(float, kinds):
        _note_type(thing)
    return isinstance(thing, kinds)


def type_of(thing: Any) -> Any:
    """`type(x)`."""
    _note_type(thing)
    if is_traced(thing) or type(thing) is TracedArray:
        return thing.__class__
    return original_class(type(thing))  # of parameters that live in a kernel's memory


def _has_traced(argument: Any) -> bool:
    return is_traced(argument) or (type(argument) in (list, tuple) and any(map(is_traced, argument)))


def _of_number(name: str, original: Callable[..., Any], compute: Callable[..., Any]) -> Callable[..., Any]:
    def function(*arguments: Any, **options: Any) -> Any:
        if any(map(_has_traced, (*arguments, *options.values()))):
            return compute(*map(_as_float, arguments), **options)
        return original(*arguments, **options)

    function.__name__ = name
    return function


def _unknown(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def refuse(*arguments: Any, **_: Any) -> Any:
        if name in _OF_INTEGERS and all(isinstance(x, int) for x in arguments):
            return original(*map(operator.index, arguments))  # the step is traced for each value of them
        raise TraceError(
            f"{user_location()}: math.{name} of a traced number is not available{_INSTEAD.get(name, '')}. Most "
            "functions of math are; compute others outside of the step and pass the numbers as arguments."
        )

    return _of_number(name, original, refuse)


def _in_library(name: str) -> Callable[..., Any]:
    def compute(*operands: Any) -> Any:
        if len(operands) != LIBRARY[name].arity:
            return getattr(math, name)(*operands)  # which says what is wrong
        traced = next(filter(is_traced, operands))
        if not is_traced_number(traced):
            traced = traced.data
        return traced._library(name, operands)

    return compute


def _to_whole(name: str) -> Callable[[Any], Any]:
    return lambda x: getattr(type(x), f"__{name}__")(x)


def _is_close(a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> Any:
    # As CPython: equal, or both finite and near enough.
    difference = abs(b - a)
    near = either(difference <= abs(rel_tol * b), lambda: difference <= abs(rel_tol * a))
    near = either(near, lambda: difference <= abs_tol)
    return either(a == b, lambda: both(difference < math.inf, lambda: near))


def _logarithm(x: Any, base: Any = None) -> Any:
    of = math.log if not is_traced(x) else type(x).log
    if base is None:
        return of(x)
    return of(x) / (math.log(base) if not is_traced(base) else base.log())


def _product(items: Sequence[Any], *, start: Any = 1) -> Any:
    for item in items:
        start = start * item
    return start


_MATHEMATICS: dict[str, Callable[..., Any]] = {
    "exp": lambda x: x.exp(),
    "log": _logarithm,
    "sqrt": lambda x: x.sqrt(),
    "tanh": lambda x: x.tanh(),
    "fabs": lambda x: abs(to_float(x)),
    "pow": lambda x, y: to_float(x) ** to_float(y),
    "degrees": to_degrees,
    "radians": lambda x: x * (math.pi / 180.0),
    "isclose": _is_close,
    "isnan": lambda x: x != x,
    "isinf": lambda x: abs(x) == math.inf,
    "isfinite": lambda x: x - x == 0.0,
}

_MATHEMATICS.update({name: _in_library(name) for name in LIBRARY if hasattr(math, name)})
_MATHEMATICS.update({name: _to_whole(name) for name in ("floor", "ceil", "trunc")})

#: Functions of ints, whose arguments can be fixed for a trace.
_OF_INTEGERS = frozenset({"comb", "factorial", "gcd", "isqrt", "lcm", "perm"})
#: What to write instead of functions that CPython computes in its own way.
_INSTEAD = {
    "hypot": "; math.sqrt(x * x + y * y) is, also undecorated, whose last bits may differ",
    "dist": "; the square root of a sum is, also undecorated, whose last bits may differ",
    "fsum": "; sum(xs) is, also undecorated, whose last bits may differ",
    "sumprod": "; sum(x * y for x, y in zip(xs, ys)) is, also undecorated, whose last bits may differ",
    "modf": "; x - math.trunc(x) is",
    "ldexp": "; x * 2.0 ** n is",
}

#: The functions that are replaced, by the name of the replacement.
REPLACEMENTS: dict[str, Any] = {"max": max, "min": min, "float": float, "int": int, "round": round, "type": type}
REPLACEMENTS.update(isinstance=isinstance)
REPLACEMENTS.update(sorted=sorted, any=any, all=all, suppress=contextlib.suppress, id=id, print=print)
REPLACEMENTS.update({f"math_{name}": original for name, original in vars(math).items() if callable(original)})


def _helpers() -> dict[str, Any]:
    found: dict[str, Any] = {
        "max": _extreme("max", max), "min": _extreme("min", min),
        "float": to_float, "int": to_integer, "round": rounded, "type": type_of, "isinstance": is_instance,
        "id": identity, "sorted": sorted_of, "any": _quantifier(any, True), "all": _quantifier(all, False),
        "print": effects.printed, "attempt": Attempt, "suppress": Suppressing, "writing": effects.writing,
        "called": outside.called, "touched": outside.touched, "used": outside.used, "entered": outside.entered,
        "taking": outside.taking, "unseen": outside.unseen,
        "unfollowed": outside.unfollowed, "sliced": slice,
    }  # fmt: skip
    for function in (
        choose, both, either, is_none, is_some, same, different, negation, truth, sides, compared, element,
        assign_element, update_element, uniform, observes, contributed, contributing, class_of, store_attribute,
        store_element,
    ):  # fmt: skip
        found[function.__name__] = function
    for name, original in vars(math).items():
        if name == "prod":
            found["math_prod"] = _product
        elif not callable(original):
            found[f"math_{name}"] = original
        elif name in _MATHEMATICS:
            found[f"math_{name}"] = _of_number(name, original, _MATHEMATICS[name])
        else:
            found[f"math_{name}"] = _unknown(name, original)
    return found


#: Everything above, as attributes of one object.
HELPERS = SimpleNamespace(**_helpers())
