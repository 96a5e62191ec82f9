"""What the user's functions can do, read from their bytecode.

`read(code)` says once for each code object, functions inside it included: which names it mentions, which variables it
looks up, and what it assigns.  Names are attributes, variables and constants that are strings, because a string may
become an attribute (`getattr(p, "m")`).
"""

from __future__ import annotations

import dis
import functools
import importlib.util
import re
import sys
from collections.abc import Iterable, Iterator
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from .ownership import is_module_of_python
from .places import Entry, Place, Root, Variable

#: Functions with which code reaches attributes that it does not name.
COMPUTED = frozenset({
    "getattr", "setattr", "delattr", "vars", "__dict__", "attrgetter", "asdict", "astuple", "__getattribute__",
    "__setattr__", "__slots__", "deepcopy", "getmembers",
})  # fmt: skip
#: Functions with which code reaches variables that it does not name.
SEARCHING = frozenset({"globals", "eval", "exec"})
#: Those that evaluate text.
EVALUATING = frozenset({"eval", "exec"})
#: Ways in which code reaches its own module as an object, whose attributes are then its variables.
_MODULE_AS_OBJECT = frozenset({"modules", "import_module", "__import__", "getmodule", "__globals__", "f_globals"})
#: Instructions that look up a variable of the module.
_LOADS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
#: Instructions that look up an attribute.
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD", "LOOKUP_METHOD", "LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD"})


class Reading(NamedTuple):
    """What a code object, and those inside it, can do.

    Attributes:
        names: that it mentions.
        variables: that it looks up by name, in the order in which they are first named.
        loaded_attributes, stored_attributes: the attributes that it uses, and those that it assigns.
        only_stored: the names that it mentions for nothing but to assign attributes.
        stored_variables: the variables of a module, or of an enclosing function, that it assigns.
        beside_stores: the names in those of the code objects that assign an element of something.
        imports: what `import` statements ask for: level, module, and the names that are taken from it.
    """

    names: frozenset[str]
    variables: tuple[str, ...]
    loaded_attributes: frozenset[str]
    stored_attributes: frozenset[str]
    only_stored: frozenset[str]
    stored_variables: tuple[str, ...]
    beside_stores: frozenset[str]
    imports: tuple[tuple[int, str, tuple[str, ...]], ...]


def codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and those of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


@functools.lru_cache(maxsize=8192)
def read(code: CodeType) -> Reading:
    """What a code object can do."""
    names: set[str] = set()
    variables: dict[str, None] = {}
    loaded: set[str] = set()
    attributes: set[str] = set()
    otherwise: set[str] = set()
    stored: dict[str, None] = {}
    beside: set[str] = set()
    imports: list[tuple[int, str, tuple[str, ...]]] = []
    for inner in codes(code):
        names.update(inner.co_names, _strings(inner.co_consts))
        otherwise.update(_strings(inner.co_consts))
        has_element_store = False
        constants: list[Any] = []
        for instruction in dis.get_instructions(inner):
            operation, argument = instruction.opname, instruction.argval
            if operation != "STORE_ATTR" and isinstance(argument, str):
                otherwise.add(argument)
            if operation in _LOADS:
                variables[argument] = None
            elif operation in _ATTRIBUTES:
                loaded.add(argument)
            elif operation == "STORE_ATTR":
                attributes.add(argument)
            elif operation in ("STORE_GLOBAL", "STORE_DEREF"):
                stored[argument] = None
            elif operation == "STORE_SUBSCR":
                has_element_store = True
            elif operation == "IMPORT_NAME":
                level, taken = constants[-2:] if len(constants) > 1 else (0, None)
                imports.append((level if type(level) is int else 0, argument, tuple(taken or ())))
            if operation in ("LOAD_CONST", "LOAD_SMALL_INT"):
                constants.append(argument)
        if has_element_store:
            beside.update(inner.co_names, inner.co_varnames, inner.co_freevars, inner.co_cellvars)
    return Reading(
        frozenset(names), tuple(variables), frozenset(loaded), frozenset(attributes), frozenset(attributes - otherwise),
        tuple(stored), frozenset(beside), tuple(imports),
    )  # fmt: skip


def _strings(constants: Iterable[Any]) -> Iterator[str]:
    for constant in constants:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, (tuple, frozenset)):
            yield from _strings(constant)


def is_empty(cell: CellType) -> bool:
    """Whether a variable of an enclosing function has no value yet."""
    try:
        cell.cell_contents  # noqa: B018 - asked for the error
    except ValueError:
        return True
    return False


def captured(function: FunctionType) -> Iterator[Place]:
    """Where the names in the code of a function lie: globals, attributes of modules, closure variables, defaults.

    Names of modules of the standard library are left out; what is not there (yet) is, too.  An attribute or a string
    that is spelled like a global variable does not mean it.
    """
    found = read(function.__code__)
    namespace = function.__globals__
    names = {*found.variables, *(name for name in found.stored_variables if _is_global(function.__code__, name))}
    if not _MODULE_AS_OBJECT.isdisjoint(found.names):
        names |= found.names
    for name in sorted(names & namespace.keys()):
        meant = namespace[name]
        if not isinstance(meant, ModuleType):
            yield Entry(namespace, name, f"the variable {name}")
        elif not is_module_of_python(meant):
            yield from module_entries(meant, found.names, name)
    for module, taken in imported(function):
        yield from module_entries(module, {*found.names, *taken}, module.__name__)
    for name in searched(function):
        if name not in names:
            yield Entry(namespace, name, f"the variable {name}")
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        if not is_empty(cell):
            yield Variable(cell, name)
    yield from (Root(default, "a default") for default in function.__defaults__ or ())
    yield from (Root(default, name) for name, default in (function.__kwdefaults__ or {}).items())


def asked_for(function: FunctionType) -> set[str]:
    """Names of attributes that a function may ask for although there may be none: `hasattr(module, "name")`."""
    if _ASKING.isdisjoint(read(function.__code__).names):
        return set()
    return {text for inner in codes(function.__code__) for text in _strings(inner.co_consts) if text.isidentifier()}


_ASKING = frozenset({"getattr", "hasattr"})


def searched(function: FunctionType) -> list[str]:
    """The global variables that a function may reach by `globals()`, `eval` or `exec`, judging by its strings.

    They are named in a string, or their names begin or end as one does, as those of `globals()[f"w{k}"]`.
    """
    found = read(function.__code__)
    if SEARCHING.isdisjoint(found.names):
        return []
    namespace = function.__globals__
    words = {word for text in found.names for word in re.findall(r"\w+", text)}
    texts = {text for inner in codes(function.__code__) for text in _strings(inner.co_consts) if text.isidentifier()}
    ends = tuple(texts - {function.__name__, function.__qualname__})
    named = {name for name in namespace if name in words or name.startswith(ends) or name.endswith(ends)}
    return sorted(name for name in named if not name.startswith("__"))


def module_entries(module: ModuleType, names: Iterable[str], text: str) -> Iterator[Place]:
    """The variables of a module that are named."""
    entries = vars(module)
    yield from (Entry(entries, name, f"{text}.{name}") for name in sorted(set(names) & entries.keys()))


def imported(function: FunctionType) -> Iterator[tuple[ModuleType, tuple[str, ...]]]:
    """The modules of the user's that `import` statements in a function name and that are loaded, with what is taken."""
    for loaded, taken in import_names(function):
        module = sys.modules.get(loaded)
        if isinstance(module, ModuleType) and not is_module_of_python(module):
            yield module, taken


def loaded_modules(names: Iterable[str]) -> Iterator[ModuleType]:
    """The modules of the user's that code which mentions these names may take out of `sys.modules`."""
    found: Iterator[Any] = map(sys.modules.get, names)
    return (module for module in found if isinstance(module, ModuleType) and not is_module_of_python(module))


def import_names(function: FunctionType) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The full names of the modules that `import` statements in a function ask for, with what is taken from each."""
    for level, name, taken in read(function.__code__).imports:
        package = function.__globals__.get("__package__") or ""
        try:
            full = importlib.util.resolve_name("." * level + name, package) if level else name
        except (ImportError, ValueError):
            continue
        for loaded in sorted({full, full.partition(".")[0]}):
            yield loaded, taken


def stored_variables(functions: Iterable[FunctionType]) -> list[Place]:
    """The global variables, and those of enclosing functions, that the functions assign and that have a value."""
    found: dict[tuple[Any, Any], Place] = {}
    for function in functions:
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        for name in read(function.__code__).stored_variables:
            place: Place | None = None
            if name in cells:
                place = None if is_empty(cells[name]) else Variable(cells[name], name)
            elif name in function.__globals__ and _is_global(function.__code__, name):
                place = Entry(function.__globals__, name, f"the variable {name}")
            if place is not None:
                found.setdefault(place.key, place)
    return list(found.values())


@functools.lru_cache(maxsize=8192)
def _is_global(code: CodeType, name: str) -> bool:
    """Whether a variable is one of the module, and not of a function inside this one."""
    return all(name not in inner.co_cellvars for inner in codes(code))
