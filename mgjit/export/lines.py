"""Where each part of exported C comes from: comments with the user's lines."""

from __future__ import annotations

import linecache
import os
from collections import Counter

from ..errors import is_package_file
from ..ir.program import Node, statements
from ..tracing.tracer.sites import Sites

#: The longest line of a comment.
_LENGTH = 100


def line_of(node: Node, sites: Sites) -> str:
    """The line that most of a node comes from, as `step.py:7: loss = (y - t) ** 2`; empty if it is not known."""
    counts: Counter[tuple[int, bool]] = Counter()
    for statement in statements([node]):
        for site, count in statement.origin.sites.items():
            counts[site, statement.origin.is_gradient] += count
    if not counts:
        return ""
    number, is_gradient = max(counts, key=counts.__getitem__)
    stack = sites.stack(number)
    of_user = [site for site in stack if not is_package_file(site.code.co_filename)]
    if not of_user:
        return ""
    code, line = of_user[-1].code, of_user[-1].line
    text = linecache.getline(code.co_filename, line).strip()
    inner = stack[-1].code
    within = "" if inner is code else f" in {getattr(inner, 'co_qualname', inner.co_name)}"
    prefix = "gradient of " if is_gradient else ""
    return f"{prefix}{os.path.basename(code.co_filename)}:{line}{within}: {text}"[:_LENGTH].rstrip(": ")


def as_comment(text: str) -> str:
    """A C comment, whatever is in the text."""
    for ends, harmless in (("*/", "* /"), ("/*", "/ *"), ("??", "? ?")):
        text = text.replace(ends, harmless)
    return f"/* {text} */"
