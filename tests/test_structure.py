"""What imports what: no circles among modules, and none among the rooms in which a step is traced.

Counted is what runs when a module is imported; imports inside of functions and under TYPE_CHECKING are not.
"""

from __future__ import annotations

import ast
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


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """What runs when a module is imported."""
    pending: list[ast.stmt] = list(tree.body)
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            pending += node.orelse
        elif isinstance(node, (ast.If, ast.Try, ast.With, ast.For, ast.While, ast.ClassDef)):
            for name in ("body", "orelse", "finalbody"):
                pending += getattr(node, name, [])
            for handler in getattr(node, "handlers", []):
                pending += handler.body


def _imported(name: str, path: Path) -> set[str]:
    """The modules of the package that a module imports."""
    parents = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    found: set[str] = set()
    for node in _statements(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
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


MODULES: Graph = {name: _imported(name, path) for name, path in NAMES.items()}


#: What a trace is made in: a room imports only from those before it.
ROOMS = ("record", "world", "source", "draws", "autograd", "call", "trace")


def _rooms() -> dict[tuple[str, str], set[str]]:
    """Which rooms import from which, and the modules that do."""
    found: dict[tuple[str, str], set[str]] = {}
    for name, imported in MODULES.items():
        for other in imported:
            one, two = (".".join(module.split(".")[1:2]) for module in (name, other))
            if one != two and {one, two} <= {*ROOMS}:
                found.setdefault((one, two), set()).add(f"{name} -> {other}")
    return found


def test_01_modules_import_without_circles() -> None:
    assert len(MODULES) > 150
    assert MODULES["mgjit.step"] >= {"mgjit.kernels", "mgjit.runtime.kernel"}
    assert _circle(MODULES) == []


def test_02_rooms_import_without_circles() -> None:
    """In the order in which a trace uses them."""
    found = _rooms()
    assert ("trace", "world") in found
    wrong = {pair: edges for pair, edges in found.items() if ROOMS.index(pair[0]) < ROOMS.index(pair[1])}
    assert wrong == {}


def test_03_circles_are_found() -> None:
    assert _circle({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert _circle({"a": {"b"}, "b": {"c", "d"}, "c": set(), "d": {"b"}}) == ["b", "d", "b"]


@pytest.mark.parametrize("room", ROOMS)
def test_04_a_room_can_be_imported_first(room: str) -> None:
    """In a process that has imported nothing else of the package, its last module first."""
    modules = [module for module in NAMES if module.startswith(f"mgjit.{room}.")]
    assert modules
    work = "; ".join(f"importlib.import_module({module!r})" for module in reversed(modules))
    subprocess.run([sys.executable, "-c", f"import importlib; {work}"], check=True, cwd=ROOT.parent)


def test_05_what_a_program_puts_in_place_of_a_name_stays() -> None:
    """Also when the other names are imported later, with the first of them that is used."""
    work = "mgjit.compile = print; assert mgjit.Value(1.0).data and mgjit.compile is print and mgjit.nn.MLP"
    subprocess.run([sys.executable, "-c", f"import mgjit; {work}"], check=True, cwd=ROOT.parent)


def test_06_what_most_steps_do_without_is_imported_when_it_is_used() -> None:
    rooms = ("frozen", "optim", "parallel.each", "parallel.ensemble", "script.notebook")
    work = (
        f"later = {{'mgjit.' + room for room in {rooms}}}; mgjit.compile(lambda x: x)(1.0); import sys; "
        "assert not later & sys.modules.keys(), later & sys.modules.keys(); names = dir(mgjit); "
        "assert mgjit.freeze and mgjit.each and mgjit.Ensemble and mgjit.optim.SGD and mgjit.load_ipython_extension; "
        "assert {*mgjit.__all__} <= {*names}, names; assert later <= sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", f"import mgjit; {work}"], check=True, cwd=ROOT.parent)
