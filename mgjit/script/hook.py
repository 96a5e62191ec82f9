"""Rewrite modules when they are imported: those below a folder, apart from installed packages.

The finder asks the others for the module, and exchanges the loader of a source file by one whose code is rewritten.
What Python keeps in `__pycache__` is the plain code, as always.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .report import Report

_OURS = os.path.realpath(os.path.dirname(os.path.dirname(__file__))) + os.sep
_INSTALLED = ("site-packages", "dist-packages")


class Hook:
    """Finds the modules that are rewritten.

    Args:
        folder: where they are. lines: of the loops that the user has named, by file; None for a search.
        report: gets what becomes of each loop. main: the module that `-m` names.
    """

    def __init__(
        self, folder: str, lines: dict[str, list[int]] | None, report: Report, main: str | None = None
    ) -> None:
        self._folder, self._lines, self._report = os.path.realpath(folder) + os.sep, lines, report
        self._main = (main, f"{main}.__main__")

    def install(self) -> None:
        """Let it find modules from now on."""
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """As of finders: None for all that are not rewritten."""
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or type(spec.loader) is not SourceFileLoader or not spec.origin:
            return None
        place = os.path.realpath(spec.origin)
        if (
            not place.startswith(self._folder)
            or place.startswith(_OURS)
            or any(part in _INSTALLED for part in place.split(os.sep))
        ):
            return None
        spec.loader = _Loader(spec.loader.name, spec.loader.path, self._lines, self._report, name in self._main)
        return spec


class _Loader(SourceFileLoader):
    def __init__(
        self, name: str, path: str, lines: dict[str, list[int]] | None, report: Report, may_be_main: bool
    ) -> None:
        super().__init__(name, path)
        self._lines, self._report, self._may_be_main = lines, report, may_be_main
        self._has_run = False

    def get_code(self, fullname: str) -> CodeType | None:
        """The code of the module; what Python asks for when it runs the module is rewritten.

        It is Python that runs it, so that tracebacks of errors in the module have no frame of ours.
        """
        code = super().get_code(fullname)  # also keeps the plain code, and complains as always
        module = sys.modules.get(fullname)
        if module is None and self._may_be_main:  # `-m` asks for the code of what is not imported
            module = sys.modules["__main__"]
        elif getattr(getattr(module, "__spec__", None), "loader", None) is not self:
            module = None
        if code is None or module is None or self._has_run:
            return code
        from .load import prepared

        self._has_run = True
        return prepared(code, self.get_data(self.path), vars(module), self._lines, self._report)
