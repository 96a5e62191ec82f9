"""`step.export(directory, name=...)`: a compiled step as C files.

1. Check the name and the directory, and trace the step as for any call.
2. Refuse what C cannot do: random numbers, strings, elements of arguments that are assigned.
3. Lower the trace without vectors, with parameters in their natural order, each argument a region of its own.
4. Run the compiled step on copies of its memory, to record calls.
5. Write the files: each first to a temporary name, so that an interrupted export leaves no half of one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .._version import __version__
from ..base.garbage import without_garbage_collection
from ..compiler.codegen.layout import lay_out
from ..compiler.pipeline.pipeline import lower
from ..compiler.toolchain.target import Processor
from ..engine.leaks import PlainCall
from ..errors import ArgumentError, ArgumentValueError, ExportError, RandomnessError, UnsupportedError, user_location
from ..kernels.factory import Maker
from ..kernels.kernels import Kernels
from ..tracing.call.node import Frame
from ..tracing.call.plan import ArgumentPlan
from ..tracing.tracer.knowledge import Again
from ..tracing.tracer.sites import Sites
from ..tracing.tracer.tracer import TracedCall
from .arguments import c_arguments
from .check import check_text
from .cmake import CMAKE, cmake_text, exports_of
from .design import Design, data_of, kept_indices
from .gradients import contract
from .guide import example_text, page_text
from .header import header_text
from .memory import contents
from .names import require_identifier
from .naming import known
from .numbers import little_endian
from .recording import record
from .results import describe_outputs
from .scratch import share_scratch
from .source import source_text

#: No vectors, and few sums side by side: code of half the size for a few percent of the speed.
_PROCESSOR = Processor(lanes=1, registers=12, slack=1.4)
_WEIGHTS = ("inside", "file")
#: What the first lines of all files say.
_MARK = "exported by mgjit"


class Request:
    """What a user has asked for.

    Args:
        directory: where the files go; it is made if it does not exist.
        name: the prefix of all names in C.
        weights: "inside" the C file, or in a "file".

    Raises:
        ArgumentValueError: the name is no C identifier, or there is no such way to keep weights.
        ExportError: the directory cannot be written.
    """

    def __init__(self, directory: str | os.PathLike[str], name: str, weights: str) -> None:
        self.name = require_identifier(name)
        if weights not in _WEIGHTS:
            raise ArgumentValueError(
                f"{user_location()}: weights={weights!r} is not one of {', '.join(map(repr, _WEIGHTS))}: they lie "
                "inside of the C file, or in a data file."
            )
        self.in_file = weights == "file"
        try:
            self.directory = Path(directory)
        except TypeError:
            raise ArgumentError(
                f"{user_location()}: the directory is {directory!r:.40}, which is no path. Pass a string or a Path."
            ) from None
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            probe = self.directory / f".{name}.{os.getpid()}"
            probe.write_bytes(b"")
            probe.unlink()
        except (OSError, ValueError) as reason:  # ValueError: there is a null byte in it
            raise _not_written(self.directory, reason) from None

    def write(self, files: dict[str, bytes]) -> list[Path]:
        """Write files into the directory, whose CMake file then has all exports that lie there.

        Raises:
            ExportError: it cannot be done, or somebody else has written files of these names.
        """
        for path in (self.directory / name for name in (*files, CMAKE)):
            if path.suffix != ".bin" and path.exists() and _MARK not in _beginning(path).lower():
                raise ExportError(
                    f"{user_location()}: {path} was not written by an export, and would be lost. Nothing was exported: "
                    "pass another directory, or move that file."
                )
        others = exports_of(_beginning(self.directory / CMAKE)) if (self.directory / CMAKE).exists() else []
        needed = (".c", "_check.c", "_example.c")
        present = [one for one in others if all((self.directory / f"{one}{end}").exists() for end in needed)]
        files = {**files, CMAKE: cmake_text({*present, self.name}).encode("ascii")}
        written = []
        for name, content in files.items():
            path, temporary = self.directory / name, self.directory / f".{name}.{os.getpid()}"
            try:
                temporary.write_bytes(content)
                temporary.replace(path)
            except OSError as reason:
                raise _not_written(path, reason) from None
            written.append(path)
        return written


def _beginning(path: Path) -> str:
    try:
        with path.open(encoding="ascii", errors="replace") as file:
            return file.read(4000)
    except OSError as reason:
        raise _not_written(path, reason) from None


def _not_written(path: Path, reason: OSError | ValueError) -> ExportError:
    why = getattr(reason, "strerror", None) or reason
    return ExportError(
        f"{user_location()}: {path} cannot be written: {why}. Nothing was exported: pass a directory in which you may "
        "create files."
    )


def export_step(
    kernels: Kernels, directory: Any, name: str, calls: Sequence[Sequence[Any]] | None, weights: str
) -> list[Path]:
    """Export a step; see `CompiledStep.export`.

    Args:
        kernels: of the step.
        calls: the arguments of the recorded calls; None for those of the last call.

    Returns:
        The files that were written.
    """
    request = Request(directory, name, weights)
    if calls is None:
        plan, frames = _last_call(kernels)
    while True:
        if calls is not None:
            plan = kernels.maker.plan(_first(calls))
            frames = [_packed(plan, call, number) for number, call in enumerate(calls)]
        try:
            traced, sites = _traced(kernels.maker, plan)
            break
        except Again:
            if calls is None:
                raise _without_calls(kernels) from None
    return request.write(_files(kernels.maker, plan, traced, sites, frames, request))


def listed_calls(calls: Iterable[Sequence[Any]]) -> list[Sequence[Any]]:
    """The arguments of the calls to be recorded.

    Raises:
        ArgumentError: they are no tuples of arguments.
    """
    try:
        found = list(calls)
    except TypeError:
        found = [calls]  # type: ignore[list-item]
    for number, call in enumerate(found):
        if not isinstance(call, (list, tuple)):
            what = f"calls={calls!r:.40}" if call is calls else f"calls[{number}], which is {call!r:.40},"
            raise ArgumentError(
                f"{user_location()}: {what} is no tuple of arguments. Pass a list with such a tuple for each call: "
                "calls=[(x, y, 0.1)], or calls=[(x,)] if there is one argument."
            )
    return found


def _first(calls: Sequence[Sequence[Any]]) -> Sequence[Any]:
    if not calls:
        raise ArgumentValueError(
            f"{user_location()}: calls=[] has no call, and the structure of the arguments is that of the first one. "
            "Pass at least one tuple of arguments."
        )
    return calls[0]


def _packed(plan: ArgumentPlan, call: Sequence[Any], number: int) -> Frame:
    frame = plan.frame()
    if not plan.pack(call, frame):
        raise ArgumentError(
            f"{user_location()}: calls[{number}] has arguments of another structure than calls[0] (such as other "
            "lengths), for which exported C is not made. Export each structure with a name of its own."
        )
    return frame


def _last_call(kernels: Kernels) -> tuple[ArgumentPlan, list[Frame]]:
    """The plan and the arguments of the last call that a kernel has made."""
    kernel = kernels.last
    if kernel is None or kernel.plan.values or kernel.plan.objects or None in kernel.frame.buffers:
        raise _without_calls(kernels)
    plan, frame = kernel.plan, kernel.plan.frame()
    frame.packed[:] = kernel.frame.packed
    frame.buffers = list(kernel.frame.buffers)
    return plan, [frame]


def _without_calls(kernels: Kernels) -> ArgumentError:
    names = ", ".join(kernels.maker.names) + ("," if len(kernels.maker.names) == 1 else "")
    return ArgumentError(
        f"{user_location()}: there is no compiled call whose arguments the export could be made for and check itself "
        f"with. Pass arguments: step.export(directory, name=..., calls=[({names})])."
    )


def _traced(maker: Maker, plan: ArgumentPlan) -> tuple[TracedCall, Sites]:
    """A trace and the lines that its records come from: none of them where noting lines gets in its way."""
    try:
        noted = maker.noted(plan)
    except PlainCall:
        return maker.traced(plan), Sites()
    return noted.traced, noted.sites


def _files(
    maker: Maker, plan: ArgumentPlan, traced: TracedCall, sites: Sites, frames: Sequence[Frame], request: Request
) -> Any:
    code = getattr(maker.function, "__code__", None)
    location = f"{code.co_filename}:{code.co_firstlineno}" if code else maker.qualname
    _refuse(traced, location)
    arguments = c_arguments(plan, maker.options.static, location, request.name)
    found = without_garbage_collection(lambda: contents(traced, maker))
    # Nobody reads gradients between the calls, so only those are kept that the step itself reads.
    lowered = lower(found.trace, arguments.regions, _PROCESSOR, False, name=f"{maker.qualname}.export", natural=True)
    contract(lowered.program, lowered.memory, traced.trace)
    layout = lay_out(lowered.program, lowered.memory)
    share_scratch(lowered.program, layout)
    design = Design(
        prefix=request.name,
        title=f"{maker.qualname.rpartition('.')[2]}({', '.join(plan.names)})",
        mode=maker.options.code.mode,
        in_file=request.in_file,
        program=lowered.program,
        layout=layout,
        arguments=arguments,
        checks=found.trace.checks,
        outputs=found.trace.outputs,
        results=describe_outputs(traced.result),
        plan=plan,
        recording=record(maker, plan, traced, frames),
        sites=sites,
        kept=kept_indices(lowered.memory, traced),
        data=data_of(lowered.program, lowered.memory, found, known(maker.function, traced), request.name),
    )
    return _texts(design)


def _texts(design: Design) -> dict[str, bytes]:
    """The contents of all files but the CMake file, by name."""
    header, source = header_text(design), source_text(design)
    weights = b"".join(little_endian(one.numbers) for one in design.data) if design.in_file else b""
    digest = hashlib.sha256("\0".join([header, source]).encode() + weights).hexdigest()[:16]
    kept = "in a data file" if design.in_file else "inside"
    top = (
        f"/* {design.prefix}: {design.title}, exported by mgjit {__version__}.\n"
        f"   Options: dtype {design.program.precision.name}, mode {design.mode}, weights {kept}.\n"
        f"   Checksum: {digest} */\n"
    )
    files = {
        f"{design.prefix}.h": f"{top}{header}",
        f"{design.prefix}.c": f"{top}{source}",
        f"{design.prefix}_check.c": check_text(design),
        f"{design.prefix}_example.c": example_text(design),
        f"{design.prefix}_readme.md": page_text(design, __version__),
    }
    made = {name: text.encode("ascii", "replace") for name, text in files.items()}
    return {**made, f"{design.prefix}_weights.bin": weights} if design.in_file else made


def _refuse(traced: TracedCall, location: str) -> None:
    """Raise an error about what a step does that C cannot do."""
    if traced.draws.size:
        raise RandomnessError(
            f"{traced.draws.first_line}: the step at {location} {traced.draws.describe()}, and "
            "exported C has no generator. Draw outside of the step and pass what was drawn as an argument."
        )
    if traced.writes:
        raise UnsupportedError(
            f"{user_location()}: the step at {location} assigns elements of argument {traced.writes.path()}, and an "
            "exported step changes no argument. Let it return these numbers instead."
        )
    if traced.heap.valid_once:
        raise UnsupportedError(
            f"{user_location()}: the first call of the step at {location} makes numbers that later calls use, so that "
            "it differs from them. Call the step once, then export it."
        )
