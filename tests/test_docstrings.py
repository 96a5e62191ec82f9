"""Docstrings of public names: there, with examples that run."""

from __future__ import annotations

import doctest
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import mgjit
import mgjit.distributed
import mgjit.distributions

PACKAGE = Path(mgjit.__file__).parent
PUBLIC = (
    mgjit, mgjit.nn, mgjit.nn.functional, mgjit.nn.init, mgjit.optim, mgjit.optim.lr_scheduler, mgjit.tensor,
    mgjit.data, mgjit.distributed, mgjit.distributions, mgjit.errors,
)  # fmt: skip
#: Modules with examples in their docstrings.
WITH_EXAMPLES = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).replace(".__init__", "")
    for path in PACKAGE.rglob("*.py")
    if "    >>> " in path.read_text("utf-8")
)


def _public(module: ModuleType) -> Iterator[tuple[str, object]]:
    """The names of a module, and the methods and properties of its classes."""
    names = getattr(module, "__all__", None)
    for name in names or [each for each, thing in vars(module).items() if _is_own(module, each, thing)]:
        thing = getattr(module, name)
        if name.startswith("__"):
            continue
        yield f"{module.__name__}.{name}", thing
        if inspect.isclass(thing):
            for each in dir(thing):
                method = getattr(thing, each)
                if not each.startswith("_") and str(getattr(method, "__module__", "")).startswith("mgjit"):
                    yield f"{module.__name__}.{name}.{each}", method


def _is_own(module: ModuleType, name: str, thing: object) -> bool:
    return not name.startswith("_") and getattr(thing, "__module__", "") == module.__name__


@pytest.mark.parametrize("module", PUBLIC, ids=lambda module: module.__name__)
def test_01_every_public_name_has_a_docstring(module: ModuleType) -> None:
    named = dict(_public(module))
    assert named
    assert [name for name, thing in named.items() if not inspect.getdoc(thing)] == []


@pytest.mark.once
@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_02_examples_print_what_they_say(name: str) -> None:
    module = importlib.import_module(name)
    # Not in the globals of the module: what is defined there would be taken for a part of mgjit.
    failed, tried = doctest.testmod(module, globs={"mgjit": mgjit, "__name__": "examples"})
    assert tried
    assert not failed


def test_03_there_are_examples() -> None:
    for name in ("compile", "freeze", "ensemble", "Value", "Tensor", "grad", "where", "one_hot", "take", "zeros"):
        assert ">>> " in (inspect.getdoc(getattr(mgjit, name)) or ""), name
