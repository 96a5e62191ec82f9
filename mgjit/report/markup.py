"""Small things that both tabs of a page are made of: escaped text, numbers in words, coloured source."""

from __future__ import annotations

import keyword
import re
from html import escape

_PYTHON = re.compile(
    r"(?P<c>#.*)"
    r"|(?P<s>\b[rbfuRBFU]{0,2}(?:\"\"\".*?(?:\"\"\"|$)|'''.*?(?:'''|$)|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'))"
    r"|(?P<n>\b\d[\d_.]*(?:e[-+]?\d+)?\b)"
    rf"|(?P<k>\b(?:{'|'.join(keyword.kwlist)})\b)"
)


def element(tag: str, content: str = "", /, **attributes: object) -> str:
    """An element; names of attributes may end in an underscore, and False means that there is none."""
    named = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items() if value is not False}
    words = "".join(f' {name}="{escape(name if value is True else str(value))}"' for name, value in named.items())
    return f"<{tag}{words}/>" if tag in ("input", "meta") else f"<{tag}{words}>{content}</{tag}>"


def radio(group: str, identity: str, is_chosen: bool) -> str:
    """A radio button that is not seen: its label is."""
    return element("input", type="radio", class_="pick", name=group, id=identity, checked=is_chosen)


def text(content: object) -> str:
    """Escaped text, without what XML does not allow."""
    return escape("".join(c if c >= " " or c in "\n\t" else "\ufffd" for c in str(content)), quote=False)


def python(line: str) -> str:
    """A line of Python, coloured."""
    done, parts = 0, []
    for found in _PYTHON.finditer(line):
        parts += [text(line[done : found.start()]), element("span", text(found.group()), class_=found.lastgroup)]
        done = found.end()
    return "".join([*parts, text(line[done:])])


def percent(share: float) -> str:
    """A share of the time, such as 12.3 %."""
    return f"{100 * share:.1f} %"


def seconds(number: float) -> str:
    """A time, in the unit that fits."""
    if number <= 0.0:
        return "0 s"
    for limit, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if number >= limit:
            return f"{number / limit:.3g} {unit}"
    return f"{number / 1e-9:.0f} ns"


def size(number: int) -> str:
    """A number of bytes, in the unit that fits."""
    for limit, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if number >= limit:
            return f"{number / limit:.3g} {unit}"
    return f"{number} bytes"


def plural(number: int, word: str) -> str:
    """A number of things."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"
