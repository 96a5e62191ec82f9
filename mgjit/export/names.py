"""C identifiers: the name of an export, and names made from the paths of arguments."""

from __future__ import annotations

import re
from collections.abc import Collection

from ..errors import ArgumentValueError, user_location

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
#: C++ as well, because C++ includes the header.
_KEYWORDS = frozenset("""
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class
    co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default
    delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int linux long
    main mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename typeof union unix unsigned using virtual void
    volatile wchar_t while xor xor_eq
""".split())  # noqa: SIM905  # fmt: skip
#: Headers of the C library: where the directory of an export is searched first, its header would be found instead.
_HEADERS = frozenset("""
    assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic
    stdbool stddef stdint stdio stdlib stdnoreturn string strings tgmath threads time uchar unistd wchar wctype
""".split())  # noqa: SIM905  # fmt: skip
#: Macros and types of the C library that an argument could be called, and the names in exported functions.
_RESERVED = re.compile(r"(NULL|EOF|NAN|INFINITY|I|assert|errno|u?int\d+_t|memory|result|weights|call|k|x\d+)\Z")


def require_identifier(name: object) -> str:
    """The name of an export.

    Raises:
        ArgumentValueError: it is no C identifier, or no name for a header.
    """
    if isinstance(name, str) and _is_name(name):
        return name
    why = "is no C identifier"
    if name in _KEYWORDS:
        why = "is a keyword of C or C++"
    elif isinstance(name, str) and name.lower() in _HEADERS:
        why = f"would make a header {name}.h, as the C library has one"
    raise ArgumentValueError(
        f"{user_location()}: name={name!r} {why}, and all names in the exported C begin with it. Use letters a to z, "
        f"digits and underscores, and begin with a letter, e.g. name={_suggested(str(name))!r}."
    )


def _is_name(name: str) -> bool:
    return bool(_IDENTIFIER.match(name)) and name not in _KEYWORDS and name.lower() not in _HEADERS


def _suggested(name: str) -> str:
    text = identifier(name)
    return text if _is_name(text) else f"step_{text}".rstrip("_")


def identifier(path: str) -> str:
    """A C identifier that resembles a path such as `config['rate']`: `config_rate`."""
    text = re.sub(r"[^A-Za-z0-9]+", "_", path).strip("_")
    return f"x{text}" if not text or text[0].isdigit() else text


def unique(path: str, taken: Collection[str], prefix: str) -> str:
    """An identifier like a path that is neither taken nor means something else, such as what begins with the prefix."""
    text = identifier(path)
    if text in _KEYWORDS or _RESERVED.match(text) or text.startswith(f"{prefix}_"):
        text = f"the_{text}"
    return next(
        name for name in (text, *(f"{text}_{number}" for number in range(2, len(taken) + 3))) if name not in taken
    )
