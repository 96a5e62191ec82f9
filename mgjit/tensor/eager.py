"""Run nests outside of a compiled step: by a small function in C for each form, or by Python loops.

1. The form of a nest (loops.py) does not contain its sizes, so there are few; each is compiled once in a process, and
   once on a machine where the disk cache works: quickly at first (tcc), and well when it has done much work.
2. Where there is no C compiler, and with MGJIT_DISABLE=1, the same loops run in Python: the definition of everything.
"""

from __future__ import annotations

import functools
from array import array
from collections.abc import Callable, Sequence
from typing import Any

import xxhash

from ..base import ffi, settings
from ..compiler.cache.about import NAME as ABOUT
from ..compiler.cache.about import about
from ..compiler.cache.entry import Entry
from ..compiler.cache.key import entry_key, key_parts
from ..compiler.cache.store import open_store
from ..compiler.toolchain import build as toolchain
from ..compiler.toolchain import compilers
from ..engine.state import zero_array
from ..errors import CompilerError
from ..ir.trace import NestRecord
from .dtypes import refuse_overflow
from .memory import Memory
from .nests import Access, Form, Nest
from .shapes import size_of

Function = Callable[[Sequence[Any]], Any]
#: For so many scalar operations, a form is worth better code than what is compiled quickly.
_MUCH = 30_000_000
#: Seconds that it takes to compile a form quickly.
_SECONDS_OF_FORM = 0.012


def run(nest: Nest) -> None:
    """Compute a nest into its target.

    Raises:
        IntegerOverflowError: it is of whole numbers, and one is not exact.
    """
    if not nest.is_empty():
        form = form_of(nest)
        buffers = [_buffer(operand, nest) for operand in nest.operands]
        if _call(form, [_numbers(nest), *buffers, nest.target.memory.data], nest):  # type: ignore[union-attr]
            refuse_overflow(nest.name)


def run_backward(nest: Nest, adjoints: dict[int, Any]) -> None:
    """Add what a nest contributes to the adjoints of its operands.

    Args:
        adjoints: a buffer for each memory, by identity.
    """
    if nest.is_empty() or 0 in nest.inner:
        return
    form = form_of(nest, backward=True)
    own = nest.precision
    nothing = zero_array(1, own)
    buffers = [_buffer(operand, nest) for operand in nest.operands]
    gradients = [adjoints[id(one.memory)] if flows else nothing for one, flows in zip(nest.operands, form.flows)]
    is_scan = bool(nest.body.initial) and not nest.body.is_sum
    scratch = zero_array(size_of(nest.inner), own) if is_scan else nothing
    _call(form, [_numbers(nest), *buffers, adjoints[id(nest.target.memory)], *gradients, scratch], nest)


def seconds_to_compile(nests: Sequence[NestRecord]) -> float:
    """About how long a plain call of operations that were traced takes to compile what this process does not have."""
    known = {(form.body, form.outer, form.inner, bool(form.flows)) for form in _functions}
    needed = {
        (nest.body, len(nest.outer), len(nest.inner), backward)
        for nest in nests
        for backward in (False, True)[: 1 + nest.flows]
    }
    return _SECONDS_OF_FORM * len(needed - known)


def form_of(nest: Nest, backward: bool = False) -> Form:
    """What decides the text of the functions of a nest."""
    formats = [nest.precision.format if one.memory is None else one.memory.dtype.format for one in nest.operands]
    assert nest.target.memory is not None
    return Form(
        nest.body, len(nest.outer), len(nest.inner), (*formats, nest.target.memory.dtype.format),
        tuple(-1 if one.chosen is None else one.chosen.operand for one in (*nest.operands, nest.target)),
        tuple(one.flows for one in nest.operands) if backward else (), nest.precision.name, nest.adds,
    )  # fmt: skip


def _numbers(nest: Nest) -> array[int]:
    rank = len(nest.outer) + len(nest.inner)
    numbers = array("q", (*nest.outer, *nest.inner))
    for access in (*nest.operands, nest.target):
        numbers.append(access.offset)
        numbers.extend(access.strides + (0,) * (rank - len(access.strides)))
    numbers.extend(one.chosen.stride for one in (*nest.operands, nest.target) if one.chosen is not None)
    return numbers


def _buffer(access: Access, nest: Nest) -> Any:
    memory: Memory | None = access.memory
    return array(nest.precision.format, [access.number]) if memory is None else memory.data


def _call(form: Form, buffers: list[Any], nest: Nest) -> int:
    """What the function of a form returns."""
    compiled = None if settings.disabled() else _compiled(form)
    if compiled is None:
        return _python(form)(buffers)  # type: ignore[no-any-return]
    if compiled.is_quick:
        compiled.work += size_of(nest.outer) * size_of(nest.inner) * len(nest.body.steps)
        if compiled.work > _MUCH:
            compiled.is_quick = False
            compiled = _functions[form] = _compile(form, quickly=False) or compiled
    block = ffi.PointerBlock(len(buffers))
    for number, buffer in enumerate(buffers):
        if len(buffer):
            block.set(number, buffer)
    return compiled.function(block)


class _Compiled:
    """The code of a form.

    Attributes:
        is_quick: whether it was compiled quickly, and better code could be had.
        work: how many scalar operations it has been asked for.
    """

    __slots__ = ("function", "is_quick", "work")

    def __init__(self, function: Callable[[ffi.PointerBlock], int], is_quick: bool) -> None:
        self.function, self.is_quick, self.work = function, is_quick, 0


#: By form; None where there is no code.
_functions: dict[Form, _Compiled | None] = {}


def _compiled(form: Form) -> _Compiled | None:
    """The code of a form: what compiles quickly first."""
    if form not in _functions:
        _functions[form] = _compile(form, quickly=True) or _compile(form, quickly=False)
    return _functions[form]


@functools.lru_cache(maxsize=4096)
def _python(form: Form) -> Function:
    from ..compiler.codegen.python import names_of_operations
    from .loops import python_source

    names = names_of_operations()
    exec(compile(python_source(form), "<generated by mgjit>", "exec"), names)  # noqa: S102 - this is the oracle
    function: Function = names["kernel"]
    return function


def _compile(form: Form, quickly: bool) -> _Compiled | None:
    """The code of a form in C; None where there is no compiler for it.

    Args:
        quickly: by a compiler that does not optimise, and takes a few milliseconds.
    """
    from .loops import c_source

    try:
        compiler = _quick_compiler() if quickly else compilers.find(None)
        if compiler is None:
            return None
        return _Compiled(_library(compiler, c_source(form)).function("kernel"), quickly)
    except CompilerError as reason:
        settings.LOGGER.info("tensors compute in Python: %s", reason)
        return None


def _quick_compiler() -> compilers.Compiler | None:
    """A compiler that does not optimise; None if there is none, or another one was asked for."""
    if settings.compiler():
        return None
    quick = (one for one in compilers.candidates(None) if not one.kind.optimises)
    return next((one for one in quick if compilers.probe(one) is None), None)


def _library(compiler: compilers.Compiler, source: str) -> ffi.Library:
    """The library of a source: from the disk cache, or compiled.

    Raises:
        CompilerError: the compiler fails, or its library does not load.
    """
    optimisation = f"-O2 {toolchain.native()}"
    parts = key_parts(
        f"tensor {xxhash.xxh3_128_hexdigest(source.encode())}",
        compiler.identity,
        toolchain.flags(compiler, "strict", optimisation),
    )
    key = entry_key(parts)
    store = open_store()
    if store.get(key) is None:
        with store.building(key):
            if store.get(key, again=True) is None:
                built = toolchain.compile_shared(compiler, source, optimisation=optimisation)
                store.put(key, Entry({ABOUT: about("an operation on tensors", parts, built)}, source, built.binary))
    library = store.load(key, ffi.load)
    if library is None:
        raise CompilerError("the library of an operation on tensors does not load")
    return library
