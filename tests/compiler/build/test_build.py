"""From a trace to code: which compiler, which cache, and what happens without either."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit.compiler.build import build
from mgjit.compiler.build.choices import optimisation_for
from mgjit.compiler.cache.key import entry_key
from mgjit.compiler.lift import folded
from mgjit.compiler.toolchain import compilers
from mgjit.errors import ArgumentError, BackendWarning, CompilerError, DefectWarning

ROOT = Path(__file__).resolve().parent.parent.parent.parent


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing shared with other tests in memory or on disk."""
    monkeypatch.setattr(build, "_shared", {})
    monkeypatch.setattr(build, "_warned", set())
    monkeypatch.setattr(build, "_memory_store", build.Store(memory_only=True))
    monkeypatch.setenv("MGJIT_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("MGJIT_CC", "MGJIT_CFLAGS"):
        monkeypatch.delenv(name, raising=False)


def make(**options: Any) -> tuple[Any, mgjit.Value]:
    """A small step and its parameter."""
    w = mgjit.Value(2.0)

    def step(x: float) -> Any:
        loss = (w * x - 1.0) ** 2
        w.grad = 0.0
        loss.backward()
        w.data -= 0.125 * w.grad
        return loss

    return mgjit.compile(**options)(step), w


def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty PATH and no packaged compiler."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(compilers, "_packaged", lambda *parts: None)
    assert compilers.candidates() == []


def needs_compiler() -> None:
    if compilers.find() is None:
        pytest.skip("no C compiler is installed")


def script(path: Path, body: str) -> str:
    """A fake compiler."""
    path.write_text(f"#!{sys.executable}\nimport sys\n{body}\n")
    path.chmod(0o755)
    return str(path)


# ---- no compiler ------------------------------------------------------------


def test_01_no_compiler_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python runs the step, with exactly one warning however many steps there are, at the line of the call."""
    no_compiler(monkeypatch)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = [make()[0](3.0) for _ in range(3)]
    assert [float(x) for x in results] == [25.0] * 3
    found = [warning for warning in caught if warning.category is BackendWarning]
    assert len(found) == 1
    assert "no C compiler was found" in str(found[0].message)
    assert "doctor" in str(found[0].message)
    assert found[0].filename == __file__


def test_02_c_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """backend='c' without a compiler is an error that says what to install; the parameter is as it was."""
    no_compiler(monkeypatch)
    step, w = make(backend="c")
    for _ in range(2):
        with pytest.raises(CompilerError, match="Install gcc, clang or tcc"):
            step(3.0)
    assert (w.data, w.grad, step.stats.traces) == (2.0, 0.0, 0)


def test_03_the_python_backend_needs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """And warns about nothing, because it was asked for."""
    no_compiler(monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step, w = make(backend="python")
        assert step(3.0) == 25.0
    assert (step.stats.backend, step.stats.compiler, step.stats.cache, w.data) == ("python", "", "off", -1.75)


# ---- compilers that fail ------------------------------------------------------------

FAKES = {
    "fails": "sys.stderr.write('internal compiler error: out of cheese'); sys.exit(1)",
    "prints garbage": "sys.stdout.write('\\x00\\xff garbage' * 1000)",
    "writes garbage": "open(sys.argv[sys.argv.index('-o') + 1], 'wb').write(b'no library') if '-o' in sys.argv else 0",
    "kills itself": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
}


@pytest.mark.parametrize("body", FAKES.values(), ids=list(FAKES))
def test_10_a_compiler_that_was_asked_for_and_fails(tmp_path: Path, body: str) -> None:
    """A CompilerError with its name; nothing in memory has changed and nothing is cached."""
    fake = script(tmp_path / "fakecc", body)
    step, w = make(compiler=fake)
    for _ in range(2):
        with pytest.raises(CompilerError, match="fakecc"):
            step(3.0)
    assert (w.data, w.grad, step.stats.calls) == (2.0, 0.0, 0)
    assert not [p for p in tmp_path.rglob("*") if p.suffix == ".so"]


@pytest.mark.parametrize("body", FAKES.values(), ids=list(FAKES))
def test_11_a_compiler_that_is_found_and_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str) -> None:
    """When mgjit may choose it goes on without it: Python, and the numbers are right."""
    tools = tmp_path / "bin"
    tools.mkdir()
    script(tools / "gcc", body)
    monkeypatch.setattr(compilers, "_packaged", lambda *parts: None)
    monkeypatch.setenv("PATH", str(tools))
    step, w = make()
    with pytest.warns(BackendWarning):
        assert step(3.0) == 25.0
    assert w.data == -1.75


def test_12_works_in_the_probe_and_fails_later(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A compiler that fails at the real source only: the reason is in the warning, and Python runs."""
    needs_compiler()
    real = shutil.which("gcc") or shutil.which("clang") or shutil.which("tcc")
    if real is None:
        pytest.skip("neither gcc, clang nor tcc is installed")
    tools = tmp_path / "bin"
    tools.mkdir()
    script(
        tools / "gcc",
        "import os\n"
        "sources = [a for a in sys.argv[1:] if a.endswith('.c')]\n"
        "if any('mgjit_step' in open(s).read() for s in sources): sys.exit('broken at line 1')\n"
        f"os.execv({real!r}, [{real!r}, *sys.argv[1:]])",
    )
    monkeypatch.setattr(compilers, "_packaged", lambda *parts: None)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(compilers, "FAMILIES", ("gcc",))
    step, w = make()
    with pytest.warns(BackendWarning, match="broken at line 1"):
        assert step(3.0) == 25.0
    assert w.data == -1.75


def test_13_unknown_compiler() -> None:
    """Named, with what was looked for."""
    step, _ = make(compiler="no-such-compiler")
    with pytest.raises(CompilerError, match="no-such-compiler"):
        step(3.0)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of Linux")
def test_14_no_more_file_descriptors() -> None:
    """Plain Python with a warning, or a CompilerError where C was asked for; later it is compiled."""
    needs_compiler()
    code = """
        import os, resource, sys, warnings
        import mgjit
        from mgjit import Value  # which imports the public names

        def run(factor, **options):
            w = Value(2.0)

            @mgjit.compile(**options)
            def step(x):
                w.data = w.data - factor * x
                return w

            try:
                assert (step(3.0), w.data) == (2.0 - 3.0 * factor, 2.0 - 3.0 * factor)
                return step.stats.backend or "plain"
            except mgjit.errors.CompilerError as error:
                assert "Too many open files" in str(error), error
                assert w.data == 2.0
                return "refused"

        resource.setrlimit(resource.RLIMIT_NOFILE, (50, 50))
        kept = []
        try:
            while True:
                kept.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = [run(1.0), run(2.0, backend="c")]
        assert "Too many open files" in str(caught[0].message), caught[0]
        for descriptor in kept:
            os.close(descriptor)
        print(*found, run(2.0, backend="c"), run(3.0))
    """
    child = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert child.stdout.split() == ["plain", "refused", "c", "c"], child.stderr


# ---- the cache ------------------------------------------------------------


def test_19_a_process_that_finds_its_code_imports_no_code_generator(tmp_path: Path) -> None:
    """Passes and backends are a third of what there is to import."""
    needs_compiler()
    code = """
        import sys
        import mgjit

        weights = [mgjit.Value(0.25 * k) for k in range(200)]

        @mgjit.compile(verify="never")
        def step(x):
            return sum(w * x for w in weights)

        step(0.5)
        rooms = ("compiler.roll", "compiler.codegen.c", "ir.program")
        print(step.stats.cache, *("mgjit." + name in sys.modules for name in rooms))
    """
    argv = [sys.executable, "-c", textwrap.dedent(code)]
    environment = {**os.environ, "MGJIT_CACHE_DIR": str(tmp_path)}
    made = [subprocess.run(argv, env=environment, capture_output=True, text=True, check=True) for _ in range(2)]
    assert [child.stdout.split() for child in made] == [["miss", *["True"] * 3], ["hit", *["False"] * 3]]


def test_20_shared_in_memory_and_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second step of the same structure compiles nothing; a new process would find the file."""
    needs_compiler()
    first, _ = make()
    first(3.0)
    assert first.stats.cache == "miss"
    code = first._kernels.last.code
    second, w = make()
    assert second(3.0) == 25.0
    assert second._kernels.last.code is code
    monkeypatch.setattr(build, "_shared", {})
    monkeypatch.setattr(build.toolchain, "compile_shared", _must_not_run)
    third, w = make()
    assert third(3.0) == 25.0
    assert (third.stats.cache, third.stats.compile_seconds, w.data) == ("hit", 0.0, -1.75)


def _must_not_run(*_: Any, **__: Any) -> Any:
    raise AssertionError("a compiler was run")


def test_21_no_cache(tmp_path: Path) -> None:
    """cache=False leaves no file."""
    needs_compiler()
    step, _ = make(cache=False)
    assert step(3.0) == 25.0
    assert step.stats.cache == "off"
    assert not (tmp_path / "cache").exists() or not list((tmp_path / "cache").rglob("*.so*"))


def test_22_the_directory_is_deleted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """While kernels run, and before the next build: both go on."""
    needs_compiler()
    step, _ = make()
    assert step(3.0) == 25.0
    shutil.rmtree(tmp_path / "cache")
    assert step(3.0) == 39.0625
    monkeypatch.setattr(build, "_shared", {})
    again, _ = make()
    assert again(3.0) == 25.0
    assert again.stats.cache == "miss"


@pytest.mark.parametrize("damage", [lambda p: p.write_bytes(b""), lambda p: p.write_bytes(b"junk" * 999)])
def test_23_damaged_entries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, damage: Callable[[Path], Any]) -> None:
    """Are built again, quietly and rightly."""
    needs_compiler()
    cc = compilers.find()
    assert cc is not None
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); "
        "from tests.compiler.build.test_build import make; print(make()[0](3.0))"
    )
    environment = {**os.environ, "MGJIT_CACHE_DIR": str(tmp_path / "cache")}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True)
    files = [path for path in (tmp_path / "cache").rglob("*") if path.is_file() and path.stat().st_size > 2000]
    assert files
    for path in files:
        path.chmod(0o600)
        damage(path)
    step, _ = make()
    assert step(3.0) == 25.0
    assert step.stats.cache == "miss"


def test_24_other_options_are_other_code() -> None:
    """Mode and optimisation are part of what is shared."""
    needs_compiler()
    steps = [make(**options)[0] for options in ({}, {"mode": "fast"}, {"optimisation": "-O0"})]
    assert [float(step(3.0)) for step in steps] == [25.0] * 3
    assert len({id(step._kernels.last.code) for step in steps}) == 3
    assert [step.stats.cache for step in steps] == ["miss"] * 3


def test_25_an_unusable_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file in its place: a warning, and the step runs."""
    needs_compiler()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MGJIT_CACHE_DIR", str(tmp_path / "file" / "cache"))
    step, _ = make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert step(3.0) == 25.0


def test_26_a_salt_of_one_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """cache_key= separates entries, in memory and on disk; only a text is one."""
    needs_compiler()
    seen = []
    for salt in ("", "a", "b", "a", ""):
        step, _ = make(cache_key=salt)
        assert step(3.0) == 25.0
        seen.append(step._kernels.last.code)
    assert len({id(code) for code in seen}) == 3
    monkeypatch.setattr(build, "_shared", {})
    found = []
    for salt in ("a", "c"):
        step, _ = make(cache_key=salt)
        step(3.0)
        found.append(step.stats.cache)
    assert found == ["hit", "miss"]
    with pytest.raises(ArgumentError, match=r"cache_key must be a str.*not int"):
        make(cache_key=7)


def test_27_an_entry_says_what_it_is() -> None:
    """Who made it, when, with what, and the parts of which its key is the hash."""
    needs_compiler()
    step, _ = make(cache_key="seven")
    step(3.0)
    store = build.open_store()
    (key,) = store.keys()
    entry = store.get(key)
    assert entry is not None
    about = entry.metadata["about"]
    assert entry_key(about["key"]) == key
    assert about["key"]["cache_key"] == "seven"
    assert about["step"].endswith("make.<locals>.step")
    assert abs(about["created"] - time.time()) < 1000
    assert about["mgjit"] == mgjit.__version__
    assert about["compiler"] == step.stats.compiler
    assert about["version"]
    assert about["processor"]["model"]


def test_28_an_entry_that_does_not_load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whole, and of no use here: it is built again, and the good one takes its place."""
    needs_compiler()
    # Another process builds the good one: this one's loader would remember it by its name.
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); "
        "from tests.compiler.build.test_build import make; print(make()[0](3.0))"
    )
    environment = {**os.environ, "MGJIT_CACHE_DIR": str(tmp_path / "cache")}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True)
    (path,) = (tmp_path / "cache").glob("*.so")
    entry = build.open_store().get(path.stem)
    assert entry is not None
    path.unlink()
    build.open_store().put(path.stem, build.Entry(entry.metadata, entry.source, b"\x7fELF no library"))
    for expected in ("miss", "hit"):
        monkeypatch.setattr(build, "_shared", {})
        monkeypatch.setattr("mgjit.compiler.cache.store._stores", {})
        step, _ = make()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if expected == "miss" else "error")
            assert step(3.0) == 25.0
        assert step.stats.cache == expected


# ---- building once ------------------------------------------------------------


def test_30_threads_build_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of one structure that are called for the first time at once; with the disk cache and without."""
    needs_compiler()
    for cache in (True, False):
        built: list[str] = []
        real = build.toolchain.compile_shared

        def counted(compiler: Any, source: str, built: list[str] = built, real: Any = real, **rest: Any) -> Any:
            if "mgjit_step" in source:
                built.append(source)
            return real(compiler, source, **rest)

        monkeypatch.setattr(build.toolchain, "compile_shared", counted)
        steps = [make(cache=cache)[0] for _ in range(6)]
        barrier, results = threading.Barrier(6), []

        def call(step: Any, barrier: threading.Barrier = barrier, results: list[float] = results) -> None:
            barrier.wait()
            results.append(float(step(3.0)))

        threads = [threading.Thread(target=call, args=(step,)) for step in steps]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [25.0] * 6
        assert len(built) == 1
        assert len({id(step._kernels.last.code) for step in steps}) == 1


def test_31_processes_build_once(tmp_path: Path) -> None:
    """They start at once with an empty cache; one builds, the others wait for its entry."""
    needs_compiler()
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from tests.compiler.build.test_build import make; step = make()[0]\n"
        "print('ready', flush=True); sys.stdin.readline(); print(float(step(3.0)), step.stats.cache)"
    )
    environment = {**os.environ, "MGJIT_CACHE_DIR": str(tmp_path / "cache")}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    said = sorted(process.communicate()[0].strip() for process in processes)
    assert said == ["25.0 hit"] * 3 + ["25.0 miss"]


# ---- mathematical functions -----------------------------------------------------------


@pytest.mark.parametrize("of_values", [True, False], ids=["of Values", "of numbers"])
def test_40_functions_that_are_called_often_are_checked_for_vectors(
    monkeypatch: pytest.MonkeyPatch, of_values: bool
) -> None:
    """Those of plain numbers, such as an optimiser's square roots, count like those of Values."""
    needs_compiler()
    checked: set[str] = set()

    def verified(compiler: Any, optimisation: str, name: str, store: Any = None) -> bool:
        checked.add(name)
        return False

    monkeypatch.setattr("mgjit.compiler.codegen.mathematics.verification.verified", verified)
    numbers = [mgjit.Value(k + 1.0) for k in range(64)]

    def step(x: Any) -> Any:
        total = 0.0
        for number in numbers:
            total += (number if of_values else number.data * x) ** 0.5
        return total

    wanted = step(1.0)
    assert mgjit.compile(step)(1.0) == getattr(wanted, "data", wanted)
    assert checked == {"power"}


@pytest.mark.parametrize("family", ["gcc", "clang"])
@pytest.mark.parametrize("statements", [1, 201, 1_001, 20_001, 100_001])
def test_41_what_is_asked_of_the_optimiser(family: str, statements: int) -> None:
    """Less for longer code; the compiler knows all of it, and the cache key is the same for any length."""
    compiler = compilers._of_family(family)
    if compiler is None:
        pytest.skip(f"{family} is not installed")
    of_gcc = ["-O3 -fno-loop-unroll-and-jam -fno-loop-interchange", "-O2", "-O1 -fgcse -fno-tree-bit-ccp", "-O1", "-O0"]
    levels = {"gcc": of_gcc, "clang": ["-O2", "-O2", "-O2", "-O1", "-O0"]}[family]
    chosen = optimisation_for(compiler, build.Options(), statements)
    assert chosen == f"{levels[[1, 201, 1_001, 20_001, 100_001].index(statements)]} {build.toolchain.native()}"
    assert build.toolchain.compile_shared(compiler, "int one(void) { return 1; }", optimisation=chosen).binary
    assert optimisation_for(compiler, build.Options(optimisation="-O0"), statements) == "-O0"
    if statements == 1_001:
        assert "-O2" in optimisation_for(compiler, build.Options(mode="fast"), statements).split()


# ---- defects ---------------------------------------------------------------------------------------------------


BACKENDS = pytest.mark.parametrize("backend", ["python", "c"])


def emitter(backend: str) -> str:
    """The name of the function that emits source."""
    return f"emit_{backend}"


@BACKENDS
def test_60_code_that_cannot_be_emitted(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it is emitted for the simplest Program, with a warning."""
    if backend == "c":
        needs_compiler()
    module = importlib.import_module(f"mgjit.compiler.codegen.{backend}")
    emit = getattr(module, emitter(backend))
    programs: list[Any] = []

    def sometimes(program: Any, *rest: Any) -> Any:
        programs.append(program)
        return emit(program if len(programs) > 1 else None, *rest)

    monkeypatch.setattr(module, emitter(backend), sometimes)
    step, w = make(backend=backend)
    plain, v = make()
    with pytest.warns(DefectWarning, match="please report|Please report"):
        result = step(3.0)
    assert (result, w.data) == (plain.__wrapped__(3.0).data, v.data)
    assert len(programs) == 2


@BACKENDS
def test_61_a_defect_of_the_last_resort(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """When nothing can be lowered or emitted, the step runs as plain Python."""
    module_of_backend = importlib.import_module(f"mgjit.compiler.codegen.{backend}")
    for name, module in ((emitter(backend), module_of_backend), ("lift", folded)):
        with monkeypatch.context() as patch:
            original = getattr(module, name)
            patch.setattr(module, name, lambda _, *rest, original=original: original(None, *rest))
            step, w = make(backend=backend)
            plain, v = make()
            with pytest.warns(DefectWarning) as caught:
                results = [step(x).data for x in (3.0, 0.5)]
            assert any("runs as plain Python" in str(one.message) for one in caught)
            assert results == [plain.__wrapped__(x).data for x in (3.0, 0.5)]
            assert w.data == v.data
            assert step.stats.plain_calls == 2
