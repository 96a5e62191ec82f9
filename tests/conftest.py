"""Options of the whole test suite, and a cache directory of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mgjit.runtime import fastcall


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--exhaustive",
        action="store_true",
        help="compare every workload on every backend (gcc -O0/-O2/-O3, clang, tcc, Python), 20 calls each; "
        "without it: gcc, tcc and Python, a few calls",
    )


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


@pytest.fixture(scope="session", autouse=True)
def early_fast_calls() -> Iterator[None]:
    """The third call of a step already takes the path that is generated for its kernel."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fastcall, "_TIMED_CALLS", 1)
        yield
