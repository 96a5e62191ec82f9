"""The comparison with the machine's library: what it finds, and what is remembered of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mgjit.compiler.cache.store import Store
from mgjit.compiler.codegen.mathematics import checker as comparison
from mgjit.compiler.codegen.mathematics import verification
from mgjit.compiler.codegen.mathematics.source import EXACT
from mgjit.compiler.codegen.mathematics.verification import FUNCTIONS, begin, identity, library_identity, verified
from mgjit.compiler.toolchain import build, process
from mgjit.compiler.toolchain.compilers import Compiler
from tests.compiler.codegen.mathematics.lanes import vector_compiler

NATIVE = f"-O2 {build.native()}"


@pytest.fixture(autouse=True)
def nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "_outcomes", {})


@pytest.mark.parametrize("function", list(EXACT))
def test_01_an_outcome_is_found_once(function: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gcc = vector_compiler("gcc")
    outcome = verified(gcc, NATIVE, function, Store(tmp_path))
    before = process.compiler_runs
    assert verified(gcc, NATIVE, function, Store(tmp_path / "another")) == outcome  # this process remembers
    monkeypatch.setattr(verification, "_outcomes", {})
    assert verified(gcc, NATIVE, function, Store(tmp_path)) == outcome  # the disk does
    assert process.compiler_runs == before


@pytest.mark.parametrize(
    ("function", "digits", "others"),
    [
        ("exp", "0x1.ffffffffffdbdp-2", "0x1.0p-1"),
        ("log", "0x1.5555555555577p-2", "0x1.5555555555555p-2"),
        ("tanh", "0x1.11111111110f4p-5", "0x1.1111111111111p-5"),
        ("power", "0x1.ef35793c76730p-45", "0x1.ef358p-45"),
    ],
)
def test_02_another_coefficient_is_noticed(
    function: str, digits: str, others: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library with other coefficients than the vector functions have."""

    checker = comparison.checker

    def changed(name: str) -> str:
        assert checker(name).count(digits) == 3  # once for each width
        return checker(name).replace(digits, others)

    monkeypatch.setattr(comparison, "checker", changed)
    assert not verified(vector_compiler("gcc"), NATIVE, function, Store(tmp_path))


def test_03_what_does_not_compile_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "checker", lambda name: "this is no C")
    store = Store(memory_only=True)
    assert not verified(vector_compiler("gcc"), NATIVE, "exp", store)
    assert not store.keys()  # it may be the disk that is full: the next process tries again


def test_04_compilers_without_vectors_are_not_asked() -> None:
    tcc = Compiler("tcc", ("/no/such/tcc",), "/no/such/tcc")
    before = process.compiler_runs
    assert not verified(tcc, "-O2", "exp", Store(memory_only=True))
    assert not verified(vector_compiler("gcc"), NATIVE, "sin", Store(memory_only=True))
    assert process.compiler_runs == before


def test_05_the_identity_names_functions_and_library() -> None:
    """Nothing is compared for it: a step whose code is on disk needs no outcome."""
    gcc, before = vector_compiler("gcc"), process.compiler_runs
    assert identity(gcc, ["exp", "sin", "tanh"]) == f"exp tanh as in {library_identity()}"
    assert identity(gcc, ["sin"]) == identity(Compiler("tcc", ("/no/such/tcc",), "/no/such/tcc"), ["exp"]) == ""
    assert process.compiler_runs == before


def test_06_a_damaged_entry_is_compared_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gcc = vector_compiler("gcc")
    outcome = verified(gcc, NATIVE, "exp", Store(tmp_path))
    (entry,) = tmp_path.glob("*.so")
    entry.write_bytes(b"x" * 1000)
    monkeypatch.setattr(verification, "_outcomes", {})
    before = process.compiler_runs
    assert verified(gcc, NATIVE, "exp", Store(tmp_path)) == outcome
    assert process.compiler_runs > before


def test_07_a_power_that_is_not_the_library_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyPy's squares are products."""
    monkeypatch.setattr(verification, "SQUARE_IS_PRODUCT", True)
    assert not verified(vector_compiler("gcc"), NATIVE, "power", Store(memory_only=True))


def test_08_what_has_begun_is_waited_for(tmp_path: Path) -> None:
    gcc, store, before = vector_compiler("gcc"), Store(tmp_path), process.compiler_runs
    begin(gcc, NATIVE, ["exp", "log", "sin"], store)
    outcomes = [verified(gcc, NATIVE, name, store) for name in ("log", "exp")]
    assert process.compiler_runs == before + 2
    begin(gcc, NATIVE, ["exp", "log"], store)  # both are known
    assert [verified(gcc, NATIVE, name, Store(tmp_path)) for name in ("log", "exp")] == outcomes
    assert process.compiler_runs == before + 2


def test_09_the_functions_are_those_with_an_algorithm() -> None:
    assert set(FUNCTIONS) == set(EXACT)
