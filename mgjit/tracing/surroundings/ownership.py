"""Decide what is the user's code: anything but the standard library, compiled code, a known library, or mgjit.

The user's code is what a trace looks into and rewrites.  Pure-Python packages count as the user's, wherever they are
installed: an autograd engine in site-packages is part of the program.

1. A function belongs to the file that it was compiled from.  Code without a file (a cell of a notebook, a line of the
   REPL, a string given to `exec`) belongs to the module whose variables it sees, and without one it is the user's.
2. A class that a module holds under its own name belongs to that module.
3. Any other class belongs to whoever wrote its functions; and one that has only data, to the module that it names.
   `__module__` alone says little: a class made by `exec` calls itself one of `builtins`, and a class may have an
   attribute of that name that is no string.

Nothing here runs the user's code: attributes are looked up as `inspect.getattr_static` does.
"""

from __future__ import annotations

import functools
import importlib.machinery
import os
import sys
import sysconfig
from abc import ABCMeta
from collections.abc import Iterator, Mapping
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    FunctionType,
    MethodDescriptorType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any
from weakref import WeakKeyDictionary

from ...base.lookup import entries, module_of
from ...errors import PACKAGE

#: Libraries whose Python code never computes with the individual numbers of a step.
_FOREIGN = frozenset(
    {
        "mgjit", "numpy", "scipy", "torch", "jax", "jaxlib", "tensorflow", "cupy", "numba", "pandas", "sklearn",
        "matplotlib", "tqdm", "pytest", "_pytest", "IPython", "ipykernel", "traitlets",
    }
)  # fmt: skip
_LAYERS = "mgjit.nn."
_INSTALLED = ("site-packages", "dist-packages")
_LIBRARY_PATHS = sorted({os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")})
#: Where the standard library is: folders, and the archive that stands for the first of them.
_LIBRARY = tuple(
    place + os.sep
    for path in _LIBRARY_PATHS
    for place in (path, os.path.join(os.path.dirname(path), "python{}{}.zip".format(*sys.version_info)))
)
_FILES = PACKAGE + os.sep
#: The parts of this package that are written as a user would write them, and count as the user's.
_AS_BY_USERS = ("optim",)
_FILES_AS_BY_USERS = tuple(os.path.join(PACKAGE, name) + os.sep for name in _AS_BY_USERS)
_MODULES_AS_BY_USERS = tuple(f"mgjit.{name}" for name in _AS_BY_USERS)
_COMPILED = tuple(importlib.machinery.EXTENSION_SUFFIXES)
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: neither a static type of C, nor built into PyPy


def is_of_user(thing: Any) -> bool:
    """Whether a function or class is the user's; False for everything that is neither."""
    if issubclass(type(thing), FunctionType):  # `isinstance` would believe what is in `__class__`, as of `list[int]`
        return _owner(thing) is True
    return issubclass(type(thing), type) and _is_class_of_user(thing)


def is_of_layers(thing: Any) -> bool:
    """Whether a function or class is one of `mgjit.nn`: its code reaches attributes only by names that it mentions."""
    return module_of(thing).startswith(_LAYERS)


def is_module_of_user(module: ModuleType) -> bool:
    """Whether the functions and classes that a module makes are the user's."""
    names = vars(module)
    name = names.get("__name__")
    if name == "__main__":  # whatever has been started: a script, a notebook, a REPL
        return True
    if _is_foreign(name):
        return False
    file = names.get("__file__")
    if isinstance(file, str):
        return not file.endswith(_COMPILED) and is_file_of_user(file)
    origin = getattr(names.get("__spec__"), "origin", None)
    return origin not in ("built-in", "frozen") and name not in sys.builtin_module_names


def is_module_of_python(module: ModuleType) -> bool:
    """Whether a module is one of the standard library."""
    file = vars(module).get("__file__")
    return is_in_library(file) if isinstance(file, str) else not is_module_of_user(module)


@functools.lru_cache(maxsize=4096)
def is_file_of_user(filename: str) -> bool:
    """Whether code from this file is the user's."""
    path = os.path.abspath(filename)
    if path.startswith(_FILES_AS_BY_USERS):
        return True
    if filename.startswith("<frozen ") or path.startswith(_FILES) or is_in_library(filename):
        return False
    parts = os.path.realpath(filename).split(os.sep)
    folders = [k for k, part in enumerate(parts) if part in _INSTALLED]
    return not folders or os.path.splitext(parts[folders[-1] + 1])[0] not in _FOREIGN


@functools.lru_cache(maxsize=4096)
def is_in_library(filename: str) -> bool:
    """Whether a file is one of the standard library."""
    path = os.path.realpath(filename)
    return path.startswith(_LIBRARY) and not any(part in path.split(os.sep) for part in _INSTALLED)


@functools.lru_cache(maxsize=8192)
def is_called_by_library(kind: Any) -> bool:
    """Whether a class may be read by a base or metaclass that is not the user's, under names of its own."""
    if type(kind) not in (type, ABCMeta) and not is_of_user(type(kind)):  # such as that of enums
        return True
    return any(base.__module__ not in _CALLING_NOTHING and not is_of_layers(base) for base in library_bases(kind))


#: Modules with bases that call no method of a derived class by a name of their own.
_CALLING_NOTHING = frozenset({"abc", "builtins", "typing", "enum", "dataclasses", "collections"})


# ---- 1: functions ---------------------------------------------------------------------------------------------


def library_bases(kind: type) -> Iterator[type]:
    """The classes among the bases of a class that a library has made when it was imported."""
    return (base for base in kind.__mro__ if base.__flags__ & _HEAP_TYPE and not is_of_user(base))


def _owner(function: FunctionType) -> bool | None:
    """Whether a function is the user's; None when nothing says so but the module that its code was generated for."""
    code, names = function.__code__, function.__globals__
    if not hasattr(code, "co_names") or not is_file_of_user(code.co_filename):  # PyPy's own have code without names
        return False
    name = names.get("__name__")
    module = sys.modules.get(name) if isinstance(name, str) else None
    if code.co_filename.startswith("<") and module is not None and _variables(module) is names:
        return True if is_module_of_user(module) else None  # such as the methods of a dataclass
    return not _is_foreign(name)


def _is_foreign(module: Any) -> bool:
    """Whether a name is that of a module of a library whose code never computes with the numbers of a step."""
    if not isinstance(module, str) or module.partition(".")[0] not in _FOREIGN:
        return False
    return ".".join(module.split(".")[:2]) not in _MODULES_AS_BY_USERS


# ---- 2 and 3: classes -----------------------------------------------------------------------------------------


#: By class, held weakly: each trace has classes of its own.
_known_classes: WeakKeyDictionary[type, bool] = WeakKeyDictionary()


def _is_class_of_user(kind: type) -> bool:
    known = _known_classes.get(kind)
    if known is None:
        known = _known_classes[kind] = _found_out(kind)
    return known


def _found_out(kind: type) -> bool:
    members = entries(kind)
    if not kind.__flags__ & _HEAP_TYPE or _is_made_in_c(kind, members):
        return False
    name = members.get("__module__")
    module = sys.modules.get(name) if isinstance(name, str) else None
    if module is not None and _found_at(module, kind.__qualname__) is kind:
        return is_module_of_user(module)
    owners = {_owner(function) for function in _functions(members)}
    if True in owners:
        return True
    if not isinstance(module, ModuleType):
        return not _is_foreign(name)
    if name == "builtins":  # which it is not: code without a name has made it
        return True
    if False not in owners and "<locals>" not in kind.__qualname__ and is_module_of_python(module):
        return True  # it is not where it says: `exec`, `type(...)` and `make_dataclass` name whatever made it
    return is_module_of_user(module)


def _is_made_in_c(kind: type, entries: Mapping[str, Any]) -> bool:
    """Whether a class has a method, or a constructor, that is its own and written in C."""
    for member in entries.values():
        if type(member) is BuiltinFunctionType and member.__self__ is kind:
            return True
        if type(member) in _METHODS_IN_C and member.__objclass__ is kind:
            return True
    return False


#: On PyPy they are functions like any other, and the flag of heap types says enough.
_METHODS_IN_C = frozenset({WrapperDescriptorType, MethodDescriptorType, ClassMethodDescriptorType}) - {
    FunctionType,
    classmethod,
}


def _functions(entries: Mapping[str, Any]) -> Iterator[FunctionType]:
    """The functions in a class, also those in descriptors and under decorators."""
    pending = list(entries.values())
    seen: set[int] = set()
    while pending:
        thing = pending.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, FunctionType):
            if "__wrapped__" in vars(thing):  # a decorator's, such as that of the `__repr__` of a dataclass
                pending.append(vars(thing)["__wrapped__"])
            else:
                yield thing
        elif type(thing) in (staticmethod, classmethod):
            pending.append(thing.__func__)
        elif type(thing) is property:
            pending += [thing.fget, thing.fset, thing.fdel]
        elif type(thing) is functools.cached_property or type(thing) is functools.partialmethod:
            pending.append(thing.func)


def _variables(module: Any) -> Any:
    """The variables of what is in `sys.modules`, which may be an object of any class."""
    return _VARIABLES.__get__(module) if isinstance(module, ModuleType) else None


_VARIABLES: Any = vars(ModuleType)["__dict__"]


def _found_at(module: Any, path: str) -> Any:
    """What is in a module under a path such as `Outer.Inner`."""
    found: Any = module
    names = _variables(module) or {}
    for part in path.split("."):
        found = names.get(part)
        names = entries(found) if issubclass(type(found), type) else {}
    return found
