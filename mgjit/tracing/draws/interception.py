"""Intercept random draws while a step is traced: they are recorded (draws/recorded.py), or refused if that fails.

1. During a trace, the methods of `random.Random` have other code, so `random.gauss`, `rng.gauss` and any name bound to
   either are all intercepted.  The two methods written in C are shadowed by attributes of the class; where the user's
   objects hold bound methods of these, they are replaced meanwhile (tracer/memory.py).
2. Generators that the step makes itself from a constant seed draw the same numbers in every call, and are left alone.
   Seeding another generator in the step, seeding from the system, and the system's generator are refused.
3. The states of all generators that a step can reach are compared before and after the trace.  If something was drawn
   that was not intercepted (by numpy's generators, or `functools.partial(random.random)`), the states are restored, and
   the step is refused.

Draws in other threads are not affected.
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

from ...base.interruption import with_cleanup
from ...base.lookup import copy_of, has, is_bound_draw, receiver, variables
from ...errors import RandomnessError, user_location
from ..surroundings.code import codes
from ..surroundings.places import Entry, Place
from .plan import followers, restore_state, state_of
from .recorded import Drawing

T = TypeVar("T")

#: The name by which the replaced code finds the function that it calls.
_NAME_OF_HELPER = "__mgjit_draw__"
#: The file name of the replaced code: inside the package, so that error locations skip its frames.
_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "<draws>")
#: Methods that get or set the state of a generator.
_OF_STATE = frozenset({"seed", "getstate", "setstate"})
_IN_C = ("random", "getrandbits")


class _Trace:
    """The draws of the trace in progress."""

    def __init__(self, drawing: Drawing | None, location: str) -> None:
        self.location = location
        self._drawing = drawing
        #: Generators that draw the same numbers in every call; kept alive, so that no id is reused.
        self._own: dict[int, Any] = {} if drawing is None else {id(drawing.trial): drawing.trial}

    def call(self, name: str, original: Callable[..., Any], generator: Any, given: Any, options: Any) -> Any:
        """Handle the call of a generator's method in the thread of the trace."""
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
        """The error about what the step did."""
        return RandomnessError(
            f"{user_location()}: {what} while it was traced, which would not happen in later calls. Do it outside of "
            f"the step that begins at {self.location}, and pass numbers in as arguments."
        )


_originals: dict[str, Callable[..., Any]] = {}


def _called(name: str, generator: Any, given: Any, options: Any) -> Any:
    """The function that the replaced code calls; `name` distinguishes methods of different classes."""
    trace, original = followers.get(get_ident()), _originals[name]
    if trace is None:
        return original(generator, *given, **options)
    return trace.call(name.rpartition(".")[2], original, generator, given, options)


def _is_overridden(generator: Any) -> bool:
    """Whether a subclass of Random has its own source of numbers; its code is then traced like any other."""
    before = type(generator).__mro__[: type(generator).__mro__.index(random.Random)]
    return any(name in vars(kind) for kind in before for name in (*_IN_C, "_randbelow"))


def places_in_module(called: Collection[str]) -> list[Place]:
    """The places in the module `random` that a step depends on: functions it called, and what the user put there."""
    entries, own = vars(random), random.seed.__self__  # type: ignore[attr-defined]
    methods = {name for kind in random.Random.__mro__ for name in vars(kind) if not name.startswith("_")}
    replaced = {name for name in methods & entries.keys() if receiver(entries[name]) is not own}
    return [Entry(entries, name, f"random.{name}") for name in sorted(replaced.union(called))]


# ---- 1: the methods -----------------------------------------------------------------------------------------


def _in_python() -> dict[str, FunctionType]:
    """The methods whose code is replaced."""
    found = {}
    for kind in (random.Random, random.SystemRandom):
        for name, method in vars(kind).items():
            if isinstance(method, FunctionType) and (name == "__init__" or not name.startswith("_")):
                found[f"{kind.__name__}.{name}"] = method
    return {name: method for name, method in found.items() if method.__code__.co_filename != _FILE}


@functools.cache
def _calling_code(name: str, free: tuple[str, ...]) -> CodeType:
    """Code of a method that calls `_called`, with the same free variables as the original."""
    function = f"def {name.rpartition('.')[2]}(self, *given, **options):\n"
    body = f"{''.join(f'{variable}; ' for variable in free)}return {_NAME_OF_HELPER}({name!r}, self, given, options)"
    text = f"def around({', '.join(free)}):\n {function}  {body}\n"
    return next(code for code in codes(compile(text, _FILE, "exec")) if "given" in code.co_varnames)


def followed(thing: Any) -> Any:
    """An interceptable stand-in for a bound method written in C; anything else is returned as it is."""
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
    """The changes made to the process during a trace; `put_back` may be called more than once."""

    def __init__(self) -> None:
        self._changed: list[tuple[FunctionType, CodeType]] = []
        self._replaced: list[tuple[Any, str, Any]] = []  # a module or class, a name, and the original or _NOTHING

    def begin(self) -> None:
        setattr(builtins, _NAME_OF_HELPER, _called)  # never removed: other threads may still run replaced code
        methods = _in_python()
        _originals.update({name: copy_of(method) for name, method in methods.items()})
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


def with_draws(
    drawing: Drawing | None,
    location: str,
    reachable: Iterable[Any],
    functions: Iterable[FunctionType],
    work: Callable[[], T],
) -> T:
    """Return `work()`, run while its draws are recorded.

    Args:
        drawing: records the draws; None if nothing may be drawn.
        location: `file:line` of the step.
        reachable: objects that may be generators or bound methods of generators.
        functions: of the user's that may run.

    Raises:
        RandomnessError: something was drawn that cannot be recorded; the generators are as they were.
    """
    generators = _generators([*_of_numpy(functions), *reachable])
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
        """Restore the states of the generators; returns whether something was drawn without being intercepted."""
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


def _of_numpy(functions: Iterable[FunctionType]) -> list[Any]:
    """The functions of numpy.random that have its generator.

    numpy imports that module only when it is asked for, which takes a while, and which these functions have to do
    first, unless it is there already.
    """
    module = sys.modules.get("numpy.random")
    if module is None and any("random" in inner.co_names for one in functions for inner in codes(one.__code__)):
        module = getattr(sys.modules.get("numpy"), "random", None)
    return [] if module is None else [module.rand]


def _generators(reachable: Iterable[Any]) -> list[Any]:
    """The generators whose states can be compared, including those of the module random."""
    found: dict[int, Any] = {}
    for thing in [random.random, random.gauss, *reachable]:
        for generator in (thing, receiver(thing)):
            if isinstance(generator, type):
                continue
            is_of_python = isinstance(generator, random.Random) and not isinstance(generator, random.SystemRandom)
            of_numpy = has(generator, "bit_generator") or "bit_generator" in variables(generator)
            if is_of_python or of_numpy or _is_random_state(generator):
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
    """The state with bytes in place of arrays, whose `repr` would be abbreviated."""
    if isinstance(state, dict):
        return {name: _plain(part) for name, part in state.items()}
    if isinstance(state, (tuple, list)):
        return [_plain(part) for part in state]
    return state.tobytes() if hasattr(state, "tobytes") else state
