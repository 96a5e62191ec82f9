"""What of Python and of libraries a step may use: a list of what is pure, and everything else is outside of the step.

A compiled call does again what the trace has recorded.  What a library, C code or the system answers is recorded
nowhere, so it may only be used if it depends on nothing but on what it is given:

1. Classes: their objects are numbers, texts and containers, or do not change, or are watched by the survey.
2. Functions, methods and classes that are called: they compute with such objects only.
3. Of some classes a few attributes are allowed: to take a lock, to write a line.

Names are those that a class or function gives itself, which are the same whether it is written in C or in Python.  What
is on no list is foreign, whatever it is; what is the user's, or mgjit's, is followed by the trace itself.
"""

from __future__ import annotations

import builtins
import functools
import re
import sys
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, GetSetDescriptorType, MethodType, ModuleType
from typing import Any, NamedTuple

from ...base.lookup import entries, has, module_of
from ...engine.leaks import Traced
from ...memory.live import original_class
from .ownership import is_of_user


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Modules of which everything depends on nothing but on what it is given.
_PURE = frozenset(
    [
        "math",
        "cmath",
        "_operator",
        "operator",
        "itertools",
        "functools",
        "_functools",
        "collections",
        "_collections",
        "collections.abc",
        "_collections_abc",
        "copy",
        "copyreg",
        "heapq",
        "_heapq",
        "bisect",
        "_bisect",
        "struct",
        "_struct",
        "statistics",
        "_statistics",
        "fractions",
        "numbers",
        "string",
        "_string",
        "textwrap",
        "re",
        "re._parser",
        "re._compiler",
        "re._constants",
        "re._casefix",
        "sre_compile",
        "sre_parse",
        "sre_constants",
        "_sre",
        "json",
        "json.encoder",
        "json.decoder",
        "json.scanner",
        "_json",
        "enum",
        "dataclasses",
        "abc",
        "_abc",
        "_py_abc",
        "typing",
        "types",
        "keyword",
        "colorsys",
        "pprint",
        "difflib",
        "array",
        "binascii",
        "unicodedata",
        "base64",
        "html",
        "ipaddress",
        "graphlib",
        "random",
        "_random",
        "typing_extensions",
        "__future__",
        "opcode",
        "token",
        "stringprep",
        "_pytest.assertion.rewrite",  # what pytest makes of an `assert` calls these for a text
        "_pytest.assertion.util",
    ]
)
#: Of other modules, what does.
_NAMES: dict[str, frozenset[str]] = {
    module: frozenset(names.split())
    for module, names in {
        "contextlib": """AbstractContextManager AbstractAsyncContextManager ContextDecorator contextmanager closing
            nullcontext suppress ExitStack _BaseExitStack _GeneratorContextManager _GeneratorContextManagerBase""",
        "datetime": "date time datetime timedelta timezone tzinfo",
        "reprlib": "recursive_repr",
        "uuid": "UUID SafeUUID",
        "_io": "StringIO BytesIO _TextIOBase _BufferedIOBase _IOBase",
        "io": "StringIO BytesIO TextIOBase BufferedIOBase IOBase",
        "zlib": "crc32 adler32 compress decompress",
        "posixpath": "join basename dirname split splitext splitdrive splitroot isabs normpath normcase commonprefix",
        "ntpath": "join basename dirname split splitext splitdrive splitroot isabs normpath normcase commonprefix",
        "genericpath": "commonprefix",
        "posix": "fspath",
        "os": "fspath PathLike",
        "sys": "intern",
        "argparse": "Namespace _AttributeHolder",
        "threading": "local",
        "_thread": "_local",
        "_threading_local": "local",
        "_contextvars": "ContextVar Token",
        "contextvars": "ContextVar Token",
        "warnings": "warn",
        "_warnings": "warn",
        "inspect": "isfunction ismethod isclass isbuiltin ismodule isgenerator Signature Parameter",
        "time": "struct_time",
        "pathlib": "PurePath PurePosixPath PureWindowsPath Path PosixPath WindowsPath",
        "pathlib._local": "PurePath PurePosixPath PureWindowsPath Path PosixPath WindowsPath",
        "_weakref": "ref proxy",
        "weakref": "ref proxy ReferenceType ProxyType CallableProxyType WeakMethod",
        "traceback": "",
        "ast": "literal_eval",
    }.items()
}
#: What of those is not allowed all the same, because it asks the system, the interpreter or a state of its own
#: (debugging.py looks after breakpoint()).
_ASKING = re.compile(
    r"""
      builtins\.(open|input|help|exit|quit|frame|traceback|coroutine|async_generator|__import__|compile)
    | datetime\.(date|datetime)\.(now|utcnow|today|fromtimestamp|utcfromtimestamp|timestamp|astimezone|ctime|timetuple
        |strftime|__format__|strptime)
    | datetime\.date\.(fromtimestamp|today)
    | pathlib(\._local)?\.\w*Path\.(?!(?:as_\w+|is_absolute|is_relative_to|is_reserved|joinpath|match|full_match
        |relative_to|with_\w+|name|stem|suffix|suffixes|parent|parents|parts|drive|root|anchor|__\w+__)$)\w+
    | functools\._?lru_cache_wrapper\.cache_\w+
    | random\.SystemRandom.*
    | builtins\.object\.__subclasses__ | copyreg\.\w+ | _thread\._local\.\w+
    | re\.purge | json\.(load|dump)
    """,
    re.VERBOSE,
)
#: Attributes that may be used of objects that are foreign otherwise: what they do has no result.
_EFFECTS: dict[str, frozenset[str]] = {
    kind: frozenset(names.split())
    for kind, names in {
        "_thread.lock": "__enter__ __exit__",
        "_thread.RLock": "__enter__ __exit__",
        "threading._RLock": "__enter__ __exit__",
        "threading.Condition": "__enter__ __exit__",
        "multiprocessing.synchronize.Lock": "__enter__ __exit__",
        "multiprocessing.synchronize.RLock": "__enter__ __exit__",
        "logging.Logger": "debug info warning warn error exception critical fatal log",
        "logging.RootLogger": "debug info warning warn error exception critical fatal log",
        "logging.LoggerAdapter": "debug info warning warn error exception critical log",
        "_io.TextIOWrapper": "write writelines flush",
        "_io.BufferedWriter": "write writelines flush",
        "_io.BufferedRandom": "write writelines flush",
        "_io.FileIO": "write writelines flush",
    }.items()
}
#: Functions that have effects only, and no result.
_EFFECT_FUNCTIONS = frozenset(
    f"logging.{name}" for name in ["debug", "info", "warning", "warn", "error", "exception", "critical", "fatal", "log"]
)
#: Functions of numpy that depend on nothing but on their arguments, its ufuncs aside.
_OF_NUMPY = _words("""
    abs absolute all allclose alltrue amax amin angle any append apply_along_axis apply_over_axes arange argmax
    argmin argpartition argsort argwhere around array array_equal array_equiv array_split asanyarray asarray
    ascontiguousarray asfarray asfortranarray asscalar atleast_1d atleast_2d atleast_3d average bincount block
    broadcast_arrays broadcast_shapes broadcast_to c_einsum choose clip column_stack compress concatenate
    convolve copy copyto corrcoef correlate count_nonzero cov cross cumprod cumsum delete diag diag_indices
    diagflat diagonal diff digitize dot dsplit dstack ediff1d einsum einsum_path empty empty_like expand_dims
    extract eye fill_diagonal finfo fix flatnonzero flip fliplr flipud frombuffer fromfunction fromiter full
    full_like geomspace gradient hamming hanning heaviside histogram histogram2d histogramdd hsplit hstack hypot
    i0 identity iinfo imag in1d indices inner insert interp intersect1d isclose iscomplex iscomplexobj isfortran
    isin isneginf isposinf isreal isrealobj isscalar issubdtype ix_ kaiser kron lexsort linspace logspace
    mask_indices max mean median meshgrid min moveaxis nan_to_num nanargmax nanargmin nancumprod nancumsum
    nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar ndim nonzero ones
    ones_like outer packbits pad partition percentile piecewise place poly polyadd polyder polydiv polyfit
    polyint polymul polysub polyval prod product ptp put put_along_axis putmask quantile ravel ravel_multi_index
    real real_if_close repeat require reshape resize result_type roll rollaxis roots rot90 round row_stack
    searchsorted select setdiff1d setxor1d shape sinc size sometrue sort sort_complex split squeeze stack std
    sum swapaxes take take_along_axis tensordot tile trace transpose trapezoid trapz tri tril tril_indices
    trim_zeros triu triu_indices union1d unique unpackbits unravel_index unwrap vander var vdot vectorize vsplit
    vstack where zeros zeros_like det inv solve norm pinv svd eig eigh eigvals eigvalsh qr cholesky matrix_power
    matrix_rank lstsq slogdet can_cast promote_types min_scalar_type broadcast dtype ndarray nditer ndenumerate
    ndindex _wrapfunc _wrapreduction
""")
#: Modules of Python that are functions and classes of another name.
_BUILTIN_CODE = type(getattr(len, "__code__", None))
_SIMPLE = frozenset({
    float, int, bool, str, bytes, complex, type(None), list, tuple, dict, set, frozenset, range, slice,
})  # fmt: skip
_IMMUTABLE = (int, float, complex, str, bytes, tuple, frozenset, BaseException)


# ---- 1: classes -------------------------------------------------------------------------------------------------


def is_foreign(kind: Any) -> bool:
    """Whether objects of a class may not be used by a step, except for what is on the list of effects."""
    if kind in _SIMPLE or issubclass(kind, Traced):  # whose classes are of one trace, and not to be kept
        return False
    return bool(foreign_bases(original_class(kind)))


@functools.lru_cache(maxsize=8192)
def foreign_bases(kind: Any) -> tuple[type, ...]:
    """Those of the classes that a class is derived from, itself included, which are on no list."""
    return tuple(base for base in kind.__mro__ if base is not object and not _is_known_class(base))


def _is_known_class(base: type) -> bool:
    if is_of_user(base) or _is_ours(base):
        return True
    if issubclass(base, _IMMUTABLE):  # what a library derives from them is a number or a record
        return True
    module, name = module_of(base), base.__qualname__
    if module == "builtins" and not _is_of_python(name):
        module = _module_with(name, lambda found: found is base)
    return _is_pure(module, name) or _is_class_of_numpy(base)


def _module_with(name: str, is_meant: Callable[[Any], bool]) -> str:
    """The module of a class in C that does not tell it, as PyPy's `_random.Random` and its methods do not."""
    for module in (*_PURE, *_NAMES):
        if module in sys.modules and is_meant(vars(sys.modules[module]).get(name)):
            return module
    return "builtins"


def _is_ours(thing: Any) -> bool:
    return module_of(thing).partition(".")[0] == "mgjit"


def _is_class_of_numpy(base: type) -> bool:
    module = module_of(base)
    if module.startswith("numpy.random"):
        return base.__name__ in _GENERATORS
    is_number = any(kind.__module__ == "numpy" and kind.__name__ == "generic" for kind in base.__mro__)
    return module.partition(".")[0] == "numpy" and (is_number or base.__name__ in _NUMPY_CLASSES)


_DISPATCHER = "_ArrayFunctionDispatcher"  # what functions of numpy's are
_GENERATORS = frozenset({"Generator", "RandomState"})
_NUMPY_CLASSES = frozenset({"ndarray", "dtype", "ufunc", "flatiter", "finfo", "iinfo", _DISPATCHER})


def _is_pure(module: str, name: str) -> bool:
    """Whether what calls itself by this name in this module depends on nothing but on what it is given."""
    first = name.partition(".")[0]
    is_listed = first in _NAMES.get(module, ()) or (module == "builtins" and _is_of_python(first))
    if is_listed or module in _PURE:
        return not _ASKING.fullmatch(f"{module}.{name}")
    return False


def _is_of_python(name: str) -> bool:
    """Whether a name is that of a function or class of Python's own; modules in C may give others the same module."""
    return name in vars(builtins) or bool(_WITHOUT_NAME.fullmatch(name))


#: Classes of Python that have no name in `builtins`.
_WITHOUT_NAME = re.compile(
    r"function|method|method-wrapper|builtin_function(_or_method)?|builtin-code|generator|module|cell|code|mappingproxy"
    r"|\w*iterator|\w*descriptor|dict_\w+|odict_\w+|NoneType|ellipsis|NotImplementedType|weakref\w*|weak\w*proxy"
    r"|ContextVar|Token"  # before Python 3.10
    r"|deque|builtin_method|instancemethod|TypeAliasType|Union|GenericAlias|classmethod_descriptor|managedbuffer"
)


def allowed_attributes(kind: Any) -> frozenset[str]:
    """The attributes of objects of a foreign class that may be used, because they only have effects."""
    found: frozenset[str] = frozenset()
    for base in kind.__mro__:
        found |= _EFFECTS.get(f"{base.__module__}.{base.__qualname__}", frozenset())
    return found


def foreign_names(kind: Any) -> set[str]:
    """The names to which the foreign ones among the bases of a class give a meaning, and fields that C computes."""
    kind = original_class(kind)
    found = {name for base in foreign_bases(kind) for name in entries(base)}
    if found:
        parts = [part for base in kind.__mro__ for part in entries(base).items()]
        found |= {name for name, member in parts if is_foreign_field(member)}
    return found


def is_foreign_field(member: Any) -> bool:
    """Whether what lies in a class computes an attribute in its own way, as the fields of `ctypes.Structure` do."""
    if type(member) is GetSetDescriptorType:
        return member.__name__ not in ("__dict__", "__weakref__")
    return has(member, "__get__") and is_foreign(type(member))


@functools.lru_cache(maxsize=4096)
def has_operators(kind: Any) -> bool:
    """Whether the foreign ones among the bases of a class give a meaning to operators, loops or functions of Python."""
    return any(not _OPERATORS.isdisjoint(entries(base)) for base in foreign_bases(original_class(kind)))


_OPERATORS = frozenset(
    f"__{name}__"
    for name in _words("""
    bool len iter next getitem setitem delitem contains reversed call int float index complex round trunc floor
    ceil abs neg pos invert add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod divmod pow
    rpow matmul lshift rshift and or xor iadd isub imul itruediv eq lt le gt ge bytes length_hint
""")
)


class Outside(NamedTuple):
    """Where the code of a step may meet something that is on no list, as the survey has found.

    Attributes:
        attributes: names under which foreign objects have something, or that nothing known has.
        watched: those of them under which foreign objects only keep what the survey has seen and watches.
        functions: names of variables and attributes that hold functions and classes that are not allowed.
        has_foreign: whether there are foreign objects at all.
        has_operators: whether operators and loops have a meaning for them.
        everywhere: whether functions may be called that no name leads to.
        identities: of objects that are foreign although others of their classes are not.
        in_texts: whether text that the code evaluates may use any of that.
        builtins: names of variables and attributes that hold functions of math, or Python's own.
        has_builtins_anywhere: whether containers hold such functions.
    """

    attributes: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()
    has_foreign: bool = False
    has_operators: bool = False
    everywhere: bool = False
    identities: frozenset[int] = frozenset()
    in_texts: bool = False
    watched: frozenset[str] = frozenset()
    builtins: frozenset[str] = frozenset()
    has_builtins_anywhere: bool = False

    @property
    def names(self) -> frozenset[str]:
        """The names that lead there."""
        return self.attributes | self.functions


NOTHING = Outside()


# ---- 2: what is called ------------------------------------------------------------------------------------------


def is_allowed(thing: Any) -> bool:
    """Whether a step may call this, or take it as a function to be called; True for anything that is no function."""
    kind = type(thing)
    if kind in _SIMPLE:
        return True
    if issubclass(kind, type):
        return _is_allowed_class(original_class(thing))
    if kind is FunctionType:
        return _is_allowed_function(thing)
    if kind is MethodType:
        return _is_allowed_method(thing)
    if issubclass(kind, BuiltinFunctionType):
        return _is_allowed_builtin(thing)
    if kind is functools.partial:
        return is_allowed(thing.func) and all(map(is_allowed, thing.args))
    if kind.__name__ == _DISPATCHER:
        return thing.__name__ in _OF_NUMPY
    if kind in _UNBOUND:
        return not is_foreign(thing.__objclass__) or thing.__name__ in allowed_attributes(thing.__objclass__)
    if kind in _BOUND:
        return not is_foreign(type(thing.__self__)) or thing.__name__ in allowed_attributes(type(thing.__self__))
    return True  # an object: what it is decides where it is used


_UNBOUND = {type(list.append), type(list.__len__), type(vars(dict)["fromkeys"])} - {FunctionType, classmethod}  # PyPy's
_BOUND = {type([].__len__)} - {MethodType}


def _is_allowed_class(kind: type) -> bool:
    return not foreign_bases(kind)


def _is_allowed_function(function: FunctionType) -> bool:
    if is_of_user(function) or _is_ours(function):
        return True
    code = function.__code__
    module, name = _written_in(function)
    if f"{module}.{name}" in _EFFECT_FUNCTIONS or _is_pure(module, name):
        return True
    if module.partition(".")[0] == "mgjit":  # one that has the name and module of what it wraps, as that of mgjit.grad
        return True
    if module.partition(".")[0] == "numpy":
        return function.__name__ in _OF_NUMPY or module.startswith("numpy.random")
    is_generated = type(code) is not _BUILTIN_CODE and code.co_filename.startswith("<")
    if is_generated and module.partition(".")[0] not in _KNOWN_LIBRARIES:
        return _is_generated_for_user(function)
    return _has_effects_only(module, name)


def _written_in(function: FunctionType) -> tuple[str, str]:
    """The module in which a function was written, and its name there, whatever `functools.wraps` has copied to it."""
    code = function.__code__
    if type(code) is _BUILTIN_CODE:
        return module_of(function) or _module_of_method(function), function.__qualname__
    module = function.__globals__.get("__name__")
    name = function.__qualname__
    if "__wrapped__" in vars(function):
        name = getattr(code, "co_qualname", _DECORATING.get(code.co_name, code.co_name))
    return module if isinstance(module, str) else "", name


def _module_of_method(function: FunctionType) -> str:
    """The module of the class that has a method in C, of which PyPy tells only the names."""
    kind, _, name = function.__qualname__.partition(".")
    return _module_with(kind, lambda found: isinstance(found, type) and entries(found).get(name) is function)


#: Functions that the decorators of `contextlib` make, before Python 3.11, whose code knows its full name.
_DECORATING = {"helper": "contextmanager", "inner": "ContextDecorator"}
_KNOWN_LIBRARIES = frozenset({"multiprocessing", "ctypes", "numpy"})


def _is_generated_for_user(function: FunctionType) -> bool:
    """Whether a function is one that a library has generated for a class of the user's, as `dataclass` does."""
    return function.__name__.startswith("__") and "." in function.__qualname__


def _has_effects_only(module: str, name: str) -> bool:
    owner, _, method = name.rpartition(".")
    return method in _EFFECTS.get(f"{module}.{owner}", ())


def _is_allowed_method(method: Any) -> bool:
    function, owner = method.__func__, method.__self__
    if type(function) is FunctionType and type(function.__code__) is not _BUILTIN_CODE:
        is_other_array = module_of(function).partition(".")[0] == "numpy" and is_foreign(type(owner))  # of `numpy.ma`
        if _is_allowed_function(function) and not is_other_array:
            return True
        return function.__name__ in allowed_attributes(type(owner)) and not is_of_user(type(owner))
    return _is_allowed_of(owner, getattr(function, "__name__", ""))


def _is_allowed_builtin(function: Any) -> bool:
    owner = function.__self__ if hasattr(function, "__self__") else None
    if owner is None or isinstance(owner, ModuleType):
        module = module_of(function)
        if _is_pure(module, function.__name__):
            return True
        return module.partition(".")[0] == "numpy" and function.__name__ in _OF_NUMPY
    return _is_allowed_of(owner, function.__name__)


def _is_allowed_of(owner: Any, name: str) -> bool:
    """Whether a method in C may be called: of an object, or of a class."""
    kind = owner if isinstance(owner, type) else type(owner)
    if name in allowed_attributes(kind):
        return True
    if is_foreign(kind):
        return False
    return not any(_ASKING.fullmatch(f"{base.__module__}.{base.__qualname__}.{name}") for base in kind.__mro__)


def name_of(thing: Any) -> str:
    """What a function, class or object is called in messages."""
    owner = getattr(thing, "__self__", None)
    if owner is not None and not isinstance(owner, ModuleType):
        kind = owner if isinstance(owner, type) else type(owner)
        return f"{kind.__name__}.{getattr(thing, '__name__', '?')}()"
    if isinstance(thing, (FunctionType, BuiltinFunctionType, type)):
        is_builtin = vars(builtins).get(thing.__name__) is thing  # `open` is, which tells another module
        module = "" if is_builtin else module_of(thing)
        return f"{module + '.' if module not in ('', 'builtins') else ''}{thing.__qualname__}()"
    if type(thing).__name__ == _DISPATCHER:
        return f"{module_of(thing)}.{thing.__name__}()"
    return f"a {type(thing).__module__}.{type(thing).__qualname__}"
