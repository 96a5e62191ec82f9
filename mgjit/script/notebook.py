"""`mgjit.install()`: training loops in notebooks, and in modules imported from now on, try compiled steps.

    import mgjit                          %load_ext mgjit
    mgjit.install()                       %%mgjit
    for step in range(1000): ...          for step in range(1000): ...

1. Modules below the current folder that are imported after it are rewritten (hook.py).
2. In IPython and Jupyter, so is every cell that is run after it; `%%mgjit` runs one cell so, and says what has become
   of its loops.
3. Other cells may read what a loop has assigned: everything is a result of its step, apart from the variables of loops
   inside of it.  A node of a graph comes back with its numbers, and without the graph.
"""

from __future__ import annotations

import ast
import os
import sys
from types import FunctionType
from typing import Any

from .hook import Hook
from .report import Report
from .rewrite import rewrite
from .section import Section
from .versions import placeholder
from .watching import sections_of

_installed: list[Hook] = []


def install() -> None:
    """Let training loops try compiled steps: in cells that are run, and modules that are imported, from now on.

    Calling it again does nothing.
    """
    if _installed:
        return
    _installed.append(Hook(os.getcwd(), None, Report()))
    _installed[0].install()
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    if shell is not None:
        Cells(shell).start()
        load_ipython_extension(shell)


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext mgjit`: define `%%mgjit`."""

    def run_cell(line: str, cell: str) -> None:
        """Run a cell whose training loops try compiled steps, and say what has become of them."""
        cells = Cells(shell)
        cells.start()
        try:
            shell.run_cell(cell).raise_error()
        finally:
            cells.stop()
            print(cells.report.text())

    shell.register_magic_function(run_cell, "cell", "mgjit")


class Cells(ast.NodeTransformer):
    """Rewrites the cells of a notebook.

    Args:
        shell: IPython's.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._text = ""
        self.report = Report()

    def start(self) -> None:
        """Rewrite the cells that are run from now on."""
        self._shell.input_transformers_post.append(self._note)
        self._shell.ast_transformers.append(self)

    def stop(self) -> None:
        """Leave later cells as they are."""
        self._shell.input_transformers_post.remove(self._note)
        self._shell.ast_transformers.remove(self)

    def _note(self, lines: list[str]) -> list[str]:
        self._text = "".join(lines)
        return lines

    def visit(self, tree: ast.AST) -> Any:
        """The tree of a cell, rewritten."""
        if not isinstance(tree, ast.Module) or "import mgjit" in self._text:
            return tree
        variables = self._shell.user_ns
        used = {
            name
            for thing in list(variables.values())
            if isinstance(thing, FunctionType)
            for name in thing.__code__.co_names
        }
        steps, notes = rewrite(tree, self._text, "<cell>", None, used.__contains__)
        sections = sections_of(steps, variables)
        self.report.add(notes, sections)
        return _Named(sections, variables).visit(tree)


class _Named(ast.NodeTransformer):
    """Lets a cell find its sections under names that IPython does not list."""

    def __init__(self, sections: list[Section], variables: dict[str, Any]) -> None:
        self._names = {}
        for number, section in enumerate(sections):
            name = f"_mgjit_section_{id(section)}"
            variables[name] = section
            self._names[placeholder(number)] = name

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """A placeholder becomes a name."""
        name = self._names.get(node.value) if isinstance(node.value, str) else None
        return node if name is None else ast.copy_location(ast.Name(name, ast.Load()), node)
