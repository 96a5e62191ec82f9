"""What imports what: no circles among modules, and each folder imports only from those below it.

For circles, what runs when a module is imported counts.  For the order of folders, every import does: also inside of
functions, and under TYPE_CHECKING.
"""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import mgjit

ROOT = Path(mgjit.__file__).parent
NAMES = {
    ".".join((path.relative_to(ROOT.parent).with_suffix("")).parts).replace(".__init__", ""): path
    for path in sorted(ROOT.rglob("*.py"))
}
Graph = Mapping[str, set[str]]


@functools.cache
def _tree(path: Path) -> ast.AST:
    return ast.parse(path.read_text(encoding="utf-8"))


def _imports(tree: ast.AST, everywhere: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """All imports of a module, or those that run when it is imported."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif everywhere:
            pending += ast.iter_child_nodes(node)
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            pending += node.orelse
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            pending += ast.iter_child_nodes(node)


def _imported(name: str, path: Path, everywhere: bool) -> set[str]:
    """The modules of the package that a module imports."""
    parents = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    found: set[str] = set()
    for node in _imports(_tree(path), everywhere):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        else:
            base = parents[: len(parents) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            inner = {f"{module}.{alias.name}" for alias in node.names} & NAMES.keys()
            found |= inner if len(inner) == len(node.names) else inner | {module}
    return (found & NAMES.keys()) - {name}


def _circle(graph: Graph) -> list[str]:
    """The names of a circle, if there is one: depth first, with the way from the start."""
    done: set[str] = set()

    def visit(name: str, way: list[str]) -> list[str]:
        if name in way:
            return [*way[way.index(name) :], name]
        if name in done:
            return []
        for after in sorted(graph.get(name, ())):
            found = visit(after, [*way, name])
            if found:
                return found
        done.add(name)
        return []

    return next(filter(None, (visit(name, []) for name in sorted(graph))), [])



@functools.cache
def _graph(everywhere: bool) -> Graph:
    return {name: _imported(name, path, everywhere) for name, path in NAMES.items()}


#: All folders, and the files at the top, bottom up: each imports only from those before it (docs/architecture.md).
ORDER = (
    "_typing", "_version", "errors", "base", "engine", "ir", "memory",
    "compiler/toolchain", "compiler/cache", "compiler/roll", "compiler/lift", "compiler/lengths", "compiler/simplify",
    "compiler/schedule", "compiler/pipeline", "compiler/codegen/mathematics", "compiler/codegen", "compiler/build",
    "compiler", "tensor", "distributions", "optim", "nn",
    "tracing/record", "tracing/surroundings", "tracing/source", "tracing/draws", "tracing/autograd", "tracing/call",
    "tracing/copies", "tracing/tracer", "tracing",
    "runtime", "verification", "kernels/building", "kernels/first_calls", "kernels", "kernels/side_by_side",
    "export", "report", "step", "parallel", "frozen", "distributed", "script", "data", "public", "__init__", "cli",
    "__main__",
)  # fmt: skip


def _place(name: str) -> str:
    """The folder of a module, or itself where it lies at the top."""
    path = NAMES[name].relative_to(ROOT)
    return path.parent.as_posix() if len(path.parts) > 1 else path.stem


def test_01_modules_import_without_circles() -> None:
    graph = _graph(everywhere=False)
    assert len(graph) > 150
    assert graph["mgjit.step.step"] >= {"mgjit.kernels.kernels", "mgjit.runtime.kernel"}
    assert _circle(graph) == []


def test_02_each_folder_imports_only_from_those_below_it() -> None:
    """At import time, inside of functions, and under TYPE_CHECKING."""
    later, at_once = (_graph(everywhere)["mgjit.step.looking"] for everywhere in (True, False))
    assert "mgjit.export.exporter" in later - at_once
    wrong = [
        f"{name} -> {other}"
        for name, imported in _graph(everywhere=True).items()
        for other in imported
        if ORDER.index(_place(other)) > ORDER.index(_place(name))
    ]
    assert wrong == []


def test_02_all_folders_have_their_place() -> None:
    assert sorted(ORDER) == sorted({*map(_place, NAMES)})


def test_03_circles_are_found() -> None:
    assert _circle({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert _circle({"a": {"b"}, "b": {"c", "d"}, "c": set(), "d": {"b"}}) == ["b", "d", "b"]


@pytest.mark.once
@pytest.mark.parametrize("folder", sorted({place.split("/")[0] for place in ORDER} - {"__init__", "__main__"}))
def test_04_a_folder_can_be_imported_first(folder: str) -> None:
    """In a process that has imported nothing else of the package, its last module first."""
    modules = [module for module in NAMES if f"{module}.".startswith(f"mgjit.{folder}.")]
    assert modules
    work = "; ".join(f"importlib.import_module({module!r})" for module in reversed(modules))
    subprocess.run([sys.executable, "-c", f"import importlib; {work}"], check=True, cwd=ROOT.parent)


def test_05_products_use_nothing_private_of_a_step() -> None:
    products = [ROOT / name for name in ("cli", "distributed", "export", "parallel", "report", "script")]
    found = []
    for path in sorted(file for folder in products for file in folder.rglob("*.py")):
        if path == ROOT / "script" / "step.py":  # which defines a kind of step
            continue
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
                owner = ast.unparse(node.value)
                if owner.split(".")[-1].strip("_") in ("step", "inside"):
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {owner}.{node.attr}")
    assert not found


def test_06_what_a_program_puts_in_place_of_a_name_stays() -> None:
    """Also when the other names are imported later, with the first of them that is used."""
    work = "mgjit.compile = print; assert mgjit.Value(1.0).data and mgjit.compile is print and mgjit.nn.MLP"
    subprocess.run([sys.executable, "-c", f"import mgjit; {work}"], check=True, cwd=ROOT.parent)


def test_07_what_most_steps_do_without_is_imported_when_it_is_used() -> None:
    rooms = ("frozen", "optim", "parallel.each", "parallel.ensemble", "script.notebook")
    work = (
        f"later = {{'mgjit.' + room for room in {rooms}}}; mgjit.compile(lambda x: x)(1.0); import sys; "
        "assert not later & sys.modules.keys(), later & sys.modules.keys(); names = dir(mgjit); "
        "assert mgjit.freeze and mgjit.each and mgjit.Ensemble and mgjit.optim.SGD and mgjit.load_ipython_extension; "
        "assert {*mgjit.__all__} <= {*names}, names; assert later <= sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", f"import mgjit; {work}"], check=True, cwd=ROOT.parent)
