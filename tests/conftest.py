"""Options of the whole test suite, and a cache directory of its own."""

from __future__ import annotations

import faulthandler
import gc
import math
import os
import shutil
import threading
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from mgjit.base.ffi import PYPY
from mgjit.compiler.toolchain import build
from mgjit.engine.progress import NO_THREAD, tracing_threads
from mgjit.memory import live
from mgjit.runtime import fastcall, vectorcall
from mgjit.runtime.detached import attach_all
from mgjit.tracing.surroundings import guard
from mgjit.verification import trial
from tests import compiled, remains, sampling, strict_c


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--exhaustive",
        action="store_true",
        help="compare every workload on every backend (gcc -O0/-O2/-O3, clang, tcc, Python), 20 calls each; "
        "without it: gcc, tcc and Python, a few calls",
    )
    parser.addoption(
        "--strict-c",
        action="store_true",
        help="also check every C source that the tests generate with -Wall -Wextra -Werror, by gcc and clang",
    )
    parser.addoption(
        "--part",
        metavar="K/N",
        help="only part K of N, which mix all files: together, N interpreters run every test (tests/sampling.py)",
    )
    parser.addoption(
        "--whole", metavar="GLOB", action="append", default=[], help="of --part: what is below it runs in every part"
    )


_strict = strict_c.StrictC()
#: The longest that a test may take, in seconds.
_PATIENCE = 600.0
_terminal = pytest.StashKey[int]()


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # one of several processes (pytest-xdist)
        session.config.workeroutput["checked sources"] = _strict.checked


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    _strict.checked += getattr(node, "workeroutput", {}).get("checked sources", 0)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if config.getoption("--strict-c"):
        names = " and ".join(compiler.family for compiler in _strict.compilers) or "no compiler"
        terminalreporter.write_line(f"strict C: {_strict.checked} different sources checked by {names}")


@pytest.fixture
def no_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Traces follow no path of several, so that what asks for a number is refused."""
    monkeypatch.setattr("mgjit.kernels.factory.Maker.has_paths", False)


@pytest.fixture(scope="session", autouse=True)
def checked_sources(request: pytest.FixtureRequest) -> Iterator[None]:
    """The sources that tests compile, where --strict-c was given."""
    with pytest.MonkeyPatch.context() as patch:
        if request.config.getoption("--strict-c"):
            patch.setattr(build, "_compile", _strict.compile)
        yield


@pytest.fixture(scope="session")
def compiled_before(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, checked_sources: None
) -> compiled.Compiled:
    """What compilers have made, kept for all processes of this session, or for several sessions."""
    if request.config.getoption("--strict-c"):
        return compiled.Compiled(tmp_path_factory.mktemp("compiled"), build._compile)
    own = tmp_path_factory.getbasetemp()
    of_session = own.parent if hasattr(request.config, "workerinput") else own
    return compiled.Compiled(Path(os.environ.get("MGJIT_TEST_COMPILED") or of_session / "compiled"), build._compile)


@pytest.fixture(scope="module", autouse=True)
def nothing_compiled_twice(request: pytest.FixtureRequest, compiled_before: compiled.Compiled) -> Iterator[None]:
    """No compiler runs again on the same source, but in the tests of compilers."""
    with pytest.MonkeyPatch.context() as patch:
        if request.path.parent.name not in compiled.ABOUT_COMPILERS:
            patch.setattr(build, "_compile", compiled_before)
        yield


def _is_whole(item: pytest.Item) -> bool:
    """Whether a test is below one of --whole."""
    path = item.path.relative_to(item.config.rootpath).as_posix()
    return any(fnmatch(path, one) or fnmatch(path, f"{one}/*") for one in item.config.option.whole)


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What is long is left out, unless it is asked for, and what belongs to another part."""
    sampling.mark_long(items)
    if config.option.part:
        others = [item for item in items if not sampling.in_part(item, config.option.part) and not _is_whole(item)]
        config.hook.pytest_deselected(items=others)
        left_out = set(others)
        items[:] = [item for item in items if item not in left_out]
    if config.option.markexpr or any("::" in argument for argument in config.args):
        return
    long = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if not item.get_closest_marker("long")]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    """A test that hangs ends the run, which says what every thread does.

    A process that a test forks must end by `os._exit`: elsewhere, faulthandler waits for a thread that is not there.
    """
    faulthandler.dump_traceback_later(_PATIENCE, exit=True, file=item.config.stash[_terminal])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="session")
def exhaustive(request: pytest.FixtureRequest) -> bool:
    """Whether --exhaustive was given."""
    return bool(request.config.getoption("--exhaustive"))


@pytest.fixture(scope="session", autouse=True)
def private_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or fills the cache of the user who runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MGJIT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))  # the next candidate
        yield


@pytest.fixture(scope="module", autouse=True)
def little_to_collect() -> None:
    """No collection looks again through what other modules have left: tests collect often, and it becomes much."""
    if hasattr(gc, "freeze"):  # PyPy has none
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def patient_steps() -> Iterator[None]:
    """Every call is compiled, the first and slow ones as well; those of kernels/building and first_calls differ."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MGJIT_BACKGROUND", "0")
        patch.setattr("mgjit.kernels.first_calls.earnings._BEFORE_FIRST", 0.0)  # on PyPy, too
        patch.setattr("mgjit.kernels.first_calls.earnings._FIRST_SECONDS", 0.0)
        patch.setattr("mgjit.step.leaving.Leaving._is_weighed", False)
        yield


@pytest.fixture(scope="session", autouse=True)
def errors_of_refusals() -> Iterator[None]:
    """What cannot be compiled is an error, as with `refuse="error"`; test_refusals.py differs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MGJIT_REFUSE", "error")
        yield


@pytest.fixture(scope="session", autouse=True)
def own_comparisons() -> Iterator[None]:
    """Kernels do not prove themselves: that would hide their defects from the tests, which compare with plain Python.

    With MGJIT_TEST_VERIFY=1, as CI sets it for one more run, they do, and a difference is an error.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MGJIT_VERIFY", "always" if os.environ.get("MGJIT_TEST_VERIFY") else "never")
        yield


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_terminal] = os.dup(2)  # where it leads now: what tests print is captured
    config.addinivalue_line("filterwarnings", "error::mgjit.errors.MismatchWarning")


@pytest.fixture(scope="module", autouse=True)
def nothing_traced_remains(request: pytest.FixtureRequest, little_to_collect: None) -> Iterator[None]:
    """After the tests of a module, nothing is alive that stands for a number or object of some trace."""
    yield
    # On PyPy an object may stay alive for a while though nothing that can be found refers to it.
    if PYPY or request.node.get_closest_marker("keeps_traced"):
        return
    for thing in remains.living_traced()[:1]:
        pytest.fail(f"{request.node.name} has left behind: {remains.path_to(thing)}", pytrace=False)


@pytest.fixture(autouse=True)
def quick_compiler(request: pytest.FixtureRequest) -> Iterator[None]:
    """tcc, where it is installed: for tests of what Python does around a step, any compiler is as good.

    It takes 3 ms where gcc takes 70; that all of them give the same bits is what other tests are for.  With
    MGJIT_TEST_OPTIMISED=1, as CI sets it for one more run, it is the compiler that users have.
    """
    path = request.path.relative_to(Path(__file__).parent).as_posix()
    is_any = not path.startswith(compiled.ABOUT_CODE) and not request.node.get_closest_marker("optimised")
    with pytest.MonkeyPatch.context() as patch:
        if is_any and shutil.which("tcc") and not os.environ.get("MGJIT_TEST_OPTIMISED"):
            patch.setenv("MGJIT_CC", "tcc")
        yield


@pytest.fixture(scope="session", autouse=True)
def early_fast_calls() -> Iterator[None]:
    """The third call of a step already takes the path that is generated for its kernel."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fastcall, "_TIMED_CALLS", 1)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_quick_calls() -> Iterator[None]:
    """However many calls a test makes: those that are about quick calls ask for them (tests/runtime/quick.py)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectorcall.extension, "is_possible", False)
        yield


@pytest.fixture(scope="session", autouse=True)
def busy_machine() -> Iterator[None]:
    """How often a guard looks at everything in its first calls does not depend on what else this machine is doing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guard, "_FIRST_SECONDS", math.inf)
        yield


@pytest.fixture(scope="session", autouse=True)
def late_comparisons() -> Iterator[None]:
    """What is compared again after it has passed is so a thousand calls later, and not after 8 to 1,000 at random.

    Tests of later comparisons set both limits (tests/verification/).
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trial, "_EARLIEST", trial._LATEST)
        yield


@pytest.fixture
def only_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parameters may be ordinary objects during plain calls, whatever threads and objects other tests have left."""
    attach_all()
    live._without_number.clear()
    tracing_threads.pop(NO_THREAD, None)
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setattr(threading, "_active", {threading.get_ident(): threading.current_thread()})  # mgjit.step.between
