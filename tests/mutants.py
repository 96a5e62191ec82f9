"""How many small defects the tests notice: `python -m tests.mutants --sample 60 mgjit/tracing/record`.

1. A mutant is a module in which one place is another: an operator, a number, a condition, or a call that is left out.
2. A sample of them, the same one for the same `--seed`, is tried in a copy of the checkout, each with the tests that
   mirror its module: the file of its name, or else those of its folder.  `--tests` names others.
3. A mutant is noticed if these tests fail, or take ten times as long.
4. Printed are those that nothing notices, and how many there are.  A few of them are no defects.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
_OTHER = {
    "Lt": "LtE", "LtE": "Lt", "Gt": "GtE", "GtE": "Gt", "Eq": "NotEq", "NotEq": "Eq", "Is": "IsNot", "IsNot": "Is",
    "In": "NotIn", "NotIn": "In", "And": "Or", "Or": "And", "Add": "Sub", "Sub": "Add", "Mult": "Add",
    "FloorDiv": "Mult", "BitAnd": "BitOr",
}  # fmt: skip


class Mutant(NamedTuple):
    """A place of a module, in bytes, and what stands there instead."""

    path: Path
    line: int
    start: int
    end: int
    text: str

    def source(self) -> bytes:
        """The module with the defect."""
        source = (ROOT / self.path).read_bytes()
        return source[: self.start] + self.text.encode() + source[self.end :]

    def __str__(self) -> str:
        before = (ROOT / self.path).read_bytes()[self.start : self.end].decode()
        return f"{self.path}:{self.line}: {' '.join(before.split())[:70]}  ->  {' '.join(self.text.split())[:70]}"


def mutants(path: Path) -> Iterator[Mutant]:
    """All mutants of a module, whose path begins at the root."""
    source = (ROOT / path).read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in _code(ast.parse(source)):
        changed = _changed(node)
        if changed is not None:
            place, text = changed
            start = starts[place.lineno - 1] + place.col_offset
            end = starts[(place.end_lineno or place.lineno) - 1] + (place.end_col_offset or 0)
            yield Mutant(path, place.lineno, start, end, text)


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """What is computed: no types, no docstrings, and no texts, which have no places before Python 3.12."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                yield child
                yield from _code(child)


def _changed(node: ast.AST) -> tuple[ast.expr | ast.stmt, str] | None:
    """Where a defect is put, and as what."""
    if isinstance(node, ast.Compare):
        other = _other(node.ops[0])
        return other and (node, ast.unparse(ast.Compare(node.left, [other, *node.ops[1:]], node.comparators)))
    if isinstance(node, ast.BinOp):
        other = _other(node.op)
        return other and (node, f"({ast.unparse(ast.BinOp(node.left, other, node.right))})")
    if isinstance(node, ast.BoolOp):
        return node, f"({ast.unparse(ast.BoolOp(_other(node.op), node.values))})"
    if isinstance(node, ast.Constant) and type(node.value) in (bool, int, float):
        return node, repr(not node.value if isinstance(node.value, bool) else node.value + 1)  # type: ignore[operator]
    if isinstance(node, (ast.If, ast.IfExp)) and not isinstance(node.test, ast.Compare):
        return node.test, f"(not {ast.unparse(node.test)})"
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return node, "pass"
    return None


def _other(operator: ast.AST) -> ast.AST | None:
    name = _OTHER.get(type(operator).__name__)
    return name and getattr(ast, name)()


def mirrored(path: Path) -> list[Path]:
    """The tests of a module."""
    folder = Path("tests", *path.parts[1:-1])
    named = folder / f"test_{path.name}"
    if (ROOT / named).exists():
        return [named]
    return sorted(file.relative_to(ROOT) for file in (ROOT / folder).glob("test_*.py"))


class Trial:
    """Runs tests in a copy of the checkout, with one module after the other changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)  # noqa: S607
        for name in filter(None, listed.stdout.split("\0")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
        self._environment = {**os.environ, "MGJIT_TEST_COMPILED": str(folder / "compiled"), "PYTHONPATH": str(folder)}
        self._seconds: dict[tuple[Path, ...], float] = {}
        self._writes = 0

    def is_noticed(self, mutant: Mutant, tests: Sequence[Path]) -> bool:
        """Whether the tests fail with it; without it they must pass."""
        if tuple(tests) not in self._seconds:
            start = time.monotonic()
            if not self._passes(tests, 3600.0):
                raise SystemExit(f"these fail as it is: {' '.join(map(str, tests))}")
            self._seconds[tuple(tests)] = time.monotonic() - start
        self._write(mutant.path, mutant.source())
        try:
            return not self._passes(tests, 30.0 + 10.0 * self._seconds[tuple(tests)])
        finally:
            self._write(mutant.path, (ROOT / mutant.path).read_bytes())

    def _write(self, path: Path, source: bytes) -> None:
        """With a time of its own each, since Python tells by it whether it has to compile a file."""
        self._writes += 1
        (self._folder / path).write_bytes(source)
        os.utime(self._folder / path, (self._writes, self._writes))

    def _passes(self, tests: Iterable[Path], patience: float) -> bool:
        command = [sys.executable, "-m", "pytest", "-qx", "-n", "0", "--assert=plain", "-p", "no:cacheprovider"]
        command += map(str, tests)
        with subprocess.Popen(
            command, cwd=self._folder, env=self._environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            try:
                return process.wait(patience) == 0
            except subprocess.TimeoutExpired:
                process.kill()
                return False


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="+", type=Path, help="files or folders of mgjit")
    parser.add_argument("--sample", type=int, default=40, help="how many are tried (40)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tests", nargs="+", type=Path, help="instead of those that mirror the module")
    options = parser.parse_args()
    modules = [ROOT / module for module in options.modules]
    paths = sorted(path for one in modules for path in (one.rglob("*.py") if one.is_dir() else [one]))
    found = [mutant for path in paths for mutant in mutants(path.relative_to(ROOT))]
    sample = random.Random(options.seed).sample(found, min(options.sample, len(found)))
    outcomes = Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(Path(folder))
        for mutant in sorted(sample):
            tests = options.tests or mirrored(mutant.path)
            outcome = "without tests" if not tests else "noticed" if trial.is_noticed(mutant, tests) else "not noticed"
            outcomes[outcome] += 1
            if outcome != "noticed":
                print(f"{outcome}: {mutant}", flush=True)
    print(f"{len(found)} mutants; of a sample of {len(sample)}: {', '.join(f'{n} {k}' for k, n in outcomes.items())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
