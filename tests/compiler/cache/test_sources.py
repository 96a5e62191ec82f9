"""The digest of mgjit's sources: it covers all that decides code, and is not computed in every process."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mgjit.base.directories import Directory
from mgjit.compiler.cache import key, sources

PACKAGE = Path(sources.package())
#: What makes code of a trace, from what it is told to the kernel that calls it.
MAKERS = ("kernels.building.worker", "kernels.building.background", "kernels.factory", "compiler.build.build")
#: The module of the flags of compilers.
CHANGED = "compiler/build/choices.py"


# ---- what counts ------------------------------------------------------------------------------------


def modules() -> dict[str, Path]:
    """All modules of the package, by their name in it."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        found[name[: -len(".__init__")] if name.endswith(".__init__") else name] = path
    return found


def imported(name: str, known: dict[str, Path]) -> Iterator[str]:
    """The modules of the package that a module imports when it runs, also in its functions."""
    pending: list[ast.AST] = [ast.parse(known[name].read_text("utf-8"))]
    parents = name.split(".") if known[name].name == "__init__.py" else name.split(".")[:-1]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            pending += node.orelse
            continue
        pending += ast.iter_child_nodes(node)
        if isinstance(node, ast.ImportFrom):
            module = (node.module or "").split(".") if node.module else []
            if node.level:
                module = [*parents[: len(parents) - node.level + 1], *module]
            elif module[:1] == ["mgjit"]:
                module = module[1:]
            else:
                continue
            for one in (module, *([*module, alias.name] for alias in node.names)):
                if ".".join(one) in known:
                    yield ".".join(one)
        elif isinstance(node, ast.Import):
            names = (alias.name.partition("mgjit.")[2] for alias in node.names if alias.name.startswith("mgjit."))
            yield from (one for one in names if one in known)


def reached() -> set[str]:
    """Everything that what makes code imports, and what that imports."""
    known = modules()
    pending = [*MAKERS, *(name for name in known if name.startswith(("compiler", "runtime")))]
    found: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += imported(name, known)
    return found


def test_01_everything_that_what_makes_code_imports_is_covered() -> None:
    known, covered = modules(), {name for name, _ in sources.read_sources(str(PACKAGE))}
    found = reached()
    assert len(found) > 200
    assert {"compiler.codegen.rows", "compiler.schedule.superwords", "base.settings", "engine.precision"} <= found
    missing = {name for name in found if known[name].relative_to(PACKAGE).as_posix() not in covered}
    assert not missing, f"these may decide what code is made, and are not in the key: {sorted(missing)}"


def test_02_every_module_is_covered_or_in_a_folder_that_is_named() -> None:
    covered = {name for name, _ in sources.read_sources(str(PACKAGE))}
    others = {path.relative_to(PACKAGE).as_posix() for path in modules().values()} - covered
    assert {name.partition("/")[0] for name in others} == sources.APART


STEP = """
import mgjit
from mgjit import Value
w = Value(0.5)
@mgjit.compile(background=False)
def step(x):
    loss = (w * x) ** 2
    w.grad = 0.0
    loss.backward()
    w.data -= 0.1 * w.grad
    return loss
step(1.0)
print(step.stats.cache)
"""


def copied(tmp_path: Path) -> Path:
    """A copy of the package, to be changed."""
    made = tmp_path / "place" / "mgjit"
    shutil.copytree(PACKAGE, made, ignore=shutil.ignore_patterns("__pycache__"))
    return made


def said(code: str, package: Path, tmp_path: Path) -> list[str]:
    """What a process prints that imports mgjit from there."""
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "MGJIT_CACHE_DIR": str(tmp_path / "kept")}
    words = [sys.executable, "-c", code]
    return subprocess.run(
        words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    ).stdout.splitlines()


VERSION = "from mgjit.compiler.cache import key; import mgjit; print(mgjit.__file__); print(key.generator_version())"


def version_of(package: Path, tmp_path: Path) -> str:
    """The version of the generator as a process sees it."""
    where, version = said(VERSION, package, tmp_path)
    assert where.startswith(str(package.parent))
    return version


@pytest.mark.parametrize(
    ("changed", "matters"),
    [
        (CHANGED, True), ("base/settings.py", True), ("errors.py", True), ("nn/new.py", True),
        ("compiler/roll/roll.py", True), ("compiler/codegen/mathematics/parts.py", True), ("compiler/new.py", True),
        ("new.py", True), ("rooms/__init__.py", True),
        ("cli/demo.py", False), ("distributed/sums.py", False), ("compiler/notes.txt", False),
        ("compiler/roll/__pycache__/roll.cpython-311.pyc", False),
    ],
)  # fmt: skip
def test_03_what_changes_the_digest(changed: str, matters: bool, tmp_path: Path) -> None:
    for name in ("compiler/roll/roll.py", CHANGED, "cli/demo.py", "distributed/sums.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a = 1\n")
    before = sources.digest_of_sources(str(tmp_path))
    (tmp_path / changed).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / changed).write_text("a = 2\n")
    assert (sources.digest_of_sources(str(tmp_path)) != before) == matters


def test_04_from_a_zip_file(tmp_path: Path) -> None:
    """The same sources have the same version there, other sources another one."""
    versions = []
    for change in ("", "# changed\n"):
        archive = tmp_path / f"mgjit{len(versions)}.zip"
        with zipfile.ZipFile(archive, "w") as file:
            for source in sorted(PACKAGE.rglob("*.py")):
                name = f"mgjit/{source.relative_to(PACKAGE).as_posix()}"
                file.writestr(name, source.read_text("utf-8") + (change if name == f"mgjit/{CHANGED}" else ""))
        versions.append(version_of(archive / "mgjit", tmp_path))
    assert versions[0] == key.generator_version()
    assert versions[1] != versions[0]


def test_05_a_changed_flag_is_a_miss(tmp_path: Path) -> None:
    """Code of a process with other flags is not taken for ours; that of one with the same sources is."""
    package = copied(tmp_path)
    assert [said(STEP, package, tmp_path) for _ in range(2)] == [["miss"], ["hit"]]
    choices = package / CHANGED
    text = choices.read_text("utf-8")
    assert text.count("-fno-tree-slp-vectorize") == 1
    choices.write_text(text.replace("-fno-tree-slp-vectorize", "-fno-tree-loop-vectorize"), "utf-8")
    assert [said(STEP, package, tmp_path) for _ in range(2)] == [["miss"], ["hit"]]


# ---- digests that are kept --------------------------------------------------------------------------


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of one module that was changed some time ago, and a cache directory."""
    (tmp_path / "kept").mkdir(mode=0o700)
    monkeypatch.setenv("MGJIT_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setattr(sources, "_RESOLUTION", -60.0)
    package = tmp_path / "package"
    package.mkdir()
    (package / "choices.py").write_text("a = 1\n")
    return package


def no_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(root: str) -> Iterator[tuple[str, bytes]]:
        raise AssertionError("the sources are read")
        yield

    monkeypatch.setattr(sources, "read_sources", refuse)


def test_10_the_next_process_reads_nothing(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = sources.digest_of_sources(str(kept))
    no_reading(monkeypatch)
    assert sources.digest_of_sources(str(kept)) == found


@pytest.mark.parametrize("change", ["another size", "the same size", "the same size and time", "a new file"])
def test_11_a_change_is_noticed(change: str, kept: Path) -> None:
    path = kept / "choices.py"
    before, times = sources.digest_of_sources(str(kept)), path.stat()
    if change == "a new file":
        (kept / "more.py").write_text("")
    else:
        path.write_text("a = 22\n" if change == "another size" else "a = 2\n")
    if change.endswith("time"):
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert sources.digest_of_sources(str(kept)) != before


def test_12_files_that_have_just_been_changed_are_read(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They may be changed once more at the same time, as the file system sees it; so may those without times."""
    monkeypatch.setattr(sources, "_RESOLUTION", 3.0)
    sources.digest_of_sources(str(kept))
    assert not (kept.parent / "kept" / sources.NAME).exists()
    monkeypatch.setattr(sources, "_RESOLUTION", -60.0)
    monkeypatch.setattr(sources, "_EARLIEST", 1e11)
    sources.digest_of_sources(str(kept))
    assert not (kept.parent / "kept" / sources.NAME).exists()


def test_13_several_packages_are_kept(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as there is room for, the last ones; what is damaged is no digest."""
    packages = [shutil.copytree(kept, kept.parent / f"package{k}") for k in range(sources._MOST + 2)]
    found = [sources.digest_of_sources(str(package)) for package in packages]
    with open(kept.parent / "kept" / sources.NAME, "a") as file:
        file.write("half a line")
    assert len(set(found)) == 1
    no_reading(monkeypatch)
    for package in packages[2:]:
        assert sources.digest_of_sources(str(package)) == found[0]
    with pytest.raises(AssertionError, match="are read"):
        sources.digest_of_sources(str(packages[0]))


def test_14_without_a_directory_everything_is_read(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No directory is made for a digest, and one that others control is not believed."""
    found = sources.digest_of_sources(str(kept))

    def refuse(name: str, *, make: bool = True) -> Directory:
        assert not make
        raise PermissionError(13, "others may write to it")

    monkeypatch.setattr(Directory, "open", refuse)
    assert sources.digest_of_sources(str(kept)) == found
    no_reading(monkeypatch)
    with pytest.raises(AssertionError, match="are read"):
        sources.digest_of_sources(str(kept))


def test_15_no_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a program frozen without them, or a process that has given up its rights; other errors are errors."""
    assert sources.digest_of_sources(str(tmp_path)) == ""
    for error in (PermissionError, ModuleNotFoundError, OSError):

        def refuse(root: str, error: type[Exception] = error) -> str:
            raise error("not now")

        monkeypatch.setattr(sources, "_signature", refuse)
        if error is OSError:
            with pytest.raises(OSError, match="not now"):
                sources.digest_of_sources(str(tmp_path))
        else:
            assert sources.digest_of_sources(str(tmp_path)) == ""
