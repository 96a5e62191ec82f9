"""What a step draws while it is traced is recorded (draws/recorded.py), or refused where that is not possible.

1. The methods of `random.Random` get other code for the time of a trace: so `random.gauss`, `rng.gauss` and a name that
   was bound to either are followed alike.  The two methods that are C are put in front of by attributes of the class;
   what is already bound to them lies in places of the user's, where something else is put meanwhile (trace/memory.py).
2. Generators that the step makes itself from a seed draw the same numbers in every call, and are left alone.  One that
   is seeded in the step, or seeded from the system, or the system itself, is refused.
3. The states of the generators that a step can reach are compared before and after the trace: who has drawn past all
   this (a generator of another library, `functools.partial(random.random)`) is put back, and refused.

Other threads draw as ever.
"""

from __future__ import annotations

import builtins
import functools
import os
import random
import sys
from collections.abc import Collection, Iterable
from threading import get_ident
from types import CodeType, FunctionType, MethodType
from typing import Any, Callable, TypeVar

from ..errors import RandomnessError, user_location
from ..interruption import with_cleanup
from ..world.code import codes
from ..world.places import Entry, Place
from .plan import followers, is_bound_draw, restore_state, state_of
from .recorded import Drawing

T = TypeVar("T")

#: The name under which the exchanged code finds what it calls.
_NAME_OF_HELPER = "__mgjit_draw__"
#: Errors skip frames of files of the package.
_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "<draws>")
#: Methods that say or set the state of a generator.
_OF_STATE = frozenset({"seed", "getstate", "setstate"})
_IN_C = ("random", "getrandbits")


class _Trace:
    """The trace in progress, as far as draws are concerned."""

    def __init__(self, drawing: Drawing | None, location: str) -> None:
        self.location = location
        self._drawing = drawing
        #: Generators that draw the same numbers in every call; kept, so that no id is used again.
        self._own: dict[int, Any] = {} if drawing is None else {id(drawing.trial): drawing.trial}

    def call(self, name: str, original: Callable[..., Any], generator: Any, given: Any, options: Any) -> Any:
        """A call of a method of a generator in the thread of the trace."""
        if name == "__init__":
            self._own[id(generator)] = generator
        elif isinstance(generator, random.SystemRandom):
            if name in vars(random.SystemRandom) and name != "seed":
                raise self.refusal("the step asked the system for random numbers")
        elif id(generator) in self._own:
            if name == "seed" and (given or [None])[0] is None and options.get("a") is None:
                raise self.refusal("the step seeded a generator from the system")
        elif name in _OF_STATE:
            raise self.refusal(f"the step called {name}() of a generator that is not its own")
        elif self._drawing is not None and (name in _IN_C or not _is_overridden(generator)):
            return self._drawing.draw(generator, name, original, given, options)
        return original(generator, *given, **options)

    def refusal(self, what: str) -> RandomnessError:
        """The error that says what the step did."""
        return RandomnessError(
            f"{user_location()}: {what} while it was traced, which would not happen in later calls. Do it outside of "
            f"the step that begins at {self.location}, and pass numbers in as arguments."
        )


_originals: dict[str, Callable[..., Any]] = {}


def _called(name: str, generator: Any, given: Any, options: Any) -> Any:
    """What exchanged code calls; `name` tells methods of different classes apart."""
    trace, original = followers.get(get_ident()), _originals[name]
    if trace is None:
        return original(generator, *given, **options)
    return trace.call(name.rpartition(".")[2], original, generator, given, options)


def _is_overridden(generator: Any) -> bool:
    """Whether a class derived from Random has its own source of numbers: its code is traced like any other."""
    before = type(generator).__mro__[: type(generator).__mro__.index(random.Random)]
    return any(name in vars(kind) for kind in before for name in (*_IN_C, "_randbelow"))


def places_in_module(called: Collection[str]) -> list[Place]:
    """Where the module `random` has functions that a step depends on: what it called, and what the user put there."""
    entries, own = vars(random), random.seed.__self__  # type: ignore[attr-defined]
    methods = {name for kind in random.Random.__mro__ for name in vars(kind) if not name.startswith("_")}
    replaced = {name for name in methods & entries.keys() if getattr(entries[name], "__self__", None) is not own}
    return [Entry(entries, name, f"random.{name}") for name in sorted(replaced.union(called))]


# ---- 1: the methods -----------------------------------------------------------------------------------------


def _in_python() -> dict[str, FunctionType]:
    """The methods that get other code."""
    found = {}
    for kind in (random.Random, random.SystemRandom):
        for name, method in vars(kind).items():
            if isinstance(method, FunctionType) and (name == "__init__" or not name.startswith("_")):
                found[f"{kind.__name__}.{name}"] = method
    return {name: method for name, method in found.items() if method.__code__.co_filename != _FILE}


def _copied(method: FunctionType) -> FunctionType:
    """The same function, which keeps its code."""
    made = FunctionType(
        method.__code__, method.__globals__, method.__name__, method.__defaults__, method.__closure__
    )  # fmt: skip
    made.__kwdefaults__ = method.__kwdefaults__
    return made


@functools.cache
def _calling_code(name: str, free: tuple[str, ...]) -> CodeType:
    """Code of a method that calls `_called`, with the same free variables as the original."""
    function = f"def {name.rpartition('.')[2]}(self, *given, **options):\n"
    body = f"{''.join(f'{variable}; ' for variable in free)}return {_NAME_OF_HELPER}({name!r}, self, given, options)"
    text = f"def around({', '.join(free)}):\n {function}  {body}\n"
    return next(code for code in codes(compile(text, _FILE, "exec")) if "given" in code.co_varnames)


def followed(thing: Any) -> Any:
    """A method that cannot get other code, as one that can be followed; anything else as it is."""
    return MethodType(_method_in_front(thing.__name__), thing.__self__) if is_bound_draw(thing) else thing


@functools.cache
def _method_in_front(name: str) -> Callable[..., Any]:
    base: Any = random.Random.__base__
    key = f"C.{name}"
    _originals[key] = getattr(base, name)

    def method(self: Any, *given: Any, **options: Any) -> Any:
        return _called(key, self, given, options)

    method.__name__ = method.__qualname__ = name
    return method


class _Interception:
    """What is changed in the process for the time of a trace; `put_back` may be called more than once."""

    def __init__(self) -> None:
        self._changed: list[tuple[FunctionType, CodeType]] = []
        self._replaced: list[tuple[Any, str, Any]] = []  # a module or class, a name, what was there or _NOTHING

    def begin(self) -> None:
        setattr(builtins, _NAME_OF_HELPER, _called)  # which stays: other threads may be in exchanged code
        methods = _in_python()
        _originals.update({name: _copied(method) for name, method in methods.items()})
        for name, method in methods.items():
            self._changed.append((method, method.__code__))
            method.__code__ = _calling_code(name, method.__code__.co_freevars)
        for name in _IN_C:
            self._replace(random, name, followed(getattr(random, name)))
            self._replace(random.Random, name, _method_in_front(name))
        self._replace(os, "urandom", _refused_for_this_thread(os.urandom))

    def _replace(self, holder: Any, name: str, thing: Any) -> None:
        self._replaced.append((holder, name, vars(holder).get(name, _NOTHING)))
        setattr(holder, name, thing)

    def put_back(self) -> None:
        for holder, name, thing in self._replaced:
            if thing is not _NOTHING:
                setattr(holder, name, thing)
            elif name in vars(holder):
                delattr(holder, name)
        for method, code in self._changed:
            method.__code__ = code


_NOTHING = object()


def _refused_for_this_thread(original: Callable[..., Any]) -> Callable[..., Any]:
    def function(*given: Any, **options: Any) -> Any:
        trace = followers.get(get_ident())
        if trace is not None:
            raise trace.refusal("the step asked the system for random bytes")
        return original(*given, **options)

    return function


# ---- all of it ----------------------------------------------------------------------------------------------


def with_draws(drawing: Drawing | None, location: str, reachable: Iterable[Any], work: Callable[[], T]) -> T:
    """`work()`, whose draws are recorded.

    Args:
        drawing: records them; None when nothing may be drawn.
        location: `file:line` of the step.
        reachable: objects that may be generators or bound methods of generators.

    Raises:
        RandomnessError: something was drawn that cannot be recorded; the generators are as they were.
    """
    generators = _generators(reachable)
    before = [_comparable(generator) for generator in generators]
    states = [state_of(generator) for generator in generators]
    interception = _Interception()
    trace, me = _Trace(drawing, location), get_ident()

    def watched() -> T:
        followers[me] = trace
        interception.begin()
        return work()

    def restore() -> None:
        interception.put_back()
        followers.pop(me, None)

    def put_back() -> bool:
        """Whether something was drawn after all."""
        drawn = [k for k, generator in enumerate(generators) if _comparable(generator) != before[k]]
        for k in drawn:
            restore_state(generators[k], states[k])
        return bool(drawn)

    try:
        result = with_cleanup(watched, restore)
    except BaseException:
        put_back()
        raise
    if put_back():
        raise RandomnessError(
            f"{location}: the step drew random numbers while it was traced in a way that cannot be followed, and they "
            "would be the same in every later call. Call the methods of random, or of a random.Random, by their names; "
            "or draw outside of the step and pass the numbers in as arguments."
        )
    return result


def _generators(reachable: Iterable[Any]) -> list[Any]:
    """The generators whose states can be compared, those of the modules included."""
    found: dict[int, Any] = {}
    numpy_random = getattr(sys.modules.get("numpy"), "random", None)
    modules = [random.random, random.gauss, getattr(numpy_random, "rand", None)]
    for thing in [*modules, *reachable]:
        for generator in (thing, getattr(thing, "__self__", None)):
            if isinstance(generator, type):
                continue
            is_of_python = isinstance(generator, random.Random) and not isinstance(generator, random.SystemRandom)
            if is_of_python or hasattr(generator, "bit_generator") or _is_random_state(generator):
                found[id(generator)] = generator
    return list(found.values())


def _is_random_state(thing: Any) -> bool:
    kind = type(thing)
    return kind.__module__ == "numpy.random.mtrand" and kind.__name__ == "RandomState"


def _comparable(generator: Any) -> Any:
    """The state of a generator, for comparison."""
    state = state_of(generator)
    return state if isinstance(generator, random.Random) else repr(_plain(state))


def _plain(state: Any) -> Any:
    """With bytes in place of arrays, of which `repr` would show the ends."""
    if isinstance(state, dict):
        return {name: _plain(part) for name, part in state.items()}
    if isinstance(state, (tuple, list)):
        return [_plain(part) for part in state]
    return state.tobytes() if hasattr(state, "tobytes") else state
