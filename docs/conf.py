"""The site: `python -m sphinx -W -b html docs site` from the root, after `pip install '.[docs]'`.

Pages are Markdown that reads well where it lies, too.  Two things are done to it before it is read:

1. `{include}` of a file outside of docs/, such as the README, is replaced by its text, with links as seen from here.
2. Links to a file outside that has a page (`OUTSIDE`) lead to this page.  Programs in `examples` and `bench` can be
   downloaded; links to other files of the repository are dropped, and their text stays.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
sys.path.insert(0, str(ROOT))

from mgjit import __version__  # noqa: E402 - found through the line above

project = "mgjit"
author = "The mgjit authors"
copyright = author
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["ISSUE_TEMPLATE.md"]  # for the forms of a code host
html_theme = "furo"
html_title = "mgjit"
html_static_path = ["static"]
html_css_files = ["style.css"]
html_copy_source = html_show_sourcelink = False
html_show_search_summary = False  # it is fetched page by page, which browsers forbid without a server
myst_heading_anchors = 4
myst_links_external_new_tab = False
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True  # as they are written: `generator=random`
autodoc_inherit_docstrings = False  # what says nothing of its own is where it was first defined
autodoc_typehints = "none"  # signatures have them already
autodoc_typehints_format = "short"
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
pygments_style, pygments_dark_style = "friendly", "github-dark"
suppress_warnings = ["misc.highlighting_failure", "ref.python"]  # extracts of C; errors have short names

#: Files outside of docs/, and the pages that include them.
OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    "examples/README.md": "examples.md",
    "bench/RESULTS.md": "results.md",
    "bench/README.md": "measuring.md",
}
_INCLUDE = re.compile(r"^```\{include\} (\S+)\n```$", re.MULTILINE)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def _seen_from(file: Path, page: Path) -> str:
    return os.path.relpath(file, page.parent).replace(os.sep, "/")


def as_page(text: str, source: Path, page: Path) -> str:
    """The text of a file as it is to be read on a page: includes replaced, links as seen from the page."""

    def included(match: re.Match[str]) -> str:
        path = (source.parent / match[1]).resolve()
        return as_page(path.read_text("utf-8"), path, page)

    def linked(match: re.Match[str]) -> str:
        is_picture, shown, target = match.groups()
        path, hash_, anchor = target.partition("#")
        if not path or "://" in target or target.startswith("mailto:"):
            return match[0]
        file = (source.parent / path).resolve()
        known = OUTSIDE.get(file.relative_to(ROOT).as_posix()) if file.is_relative_to(ROOT) else None
        if known is not None:
            file = DOCS / known
        elif not file.is_relative_to(DOCS) and not is_picture:
            is_program = file.suffix in (".py", ".ipynb") and file.parent.name in ("examples", "bench")
            return f"{{download}}`{shown} <{_seen_from(file, page)}>`" if is_program else shown
        return f"{is_picture}[{shown}]({_seen_from(file, page)}{hash_}{anchor})"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    for k, part in enumerate(parts):
        parts[k] = _INCLUDE.sub(included, part) if k % 2 else _LINK.sub(linked, part)
    return "".join(parts)


def _read(app: Any, name: str, content: list[str]) -> None:
    page = DOCS / f"{name}.md"
    content[0] = as_page(content[0], page, page)


def _as_rst(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Docstrings have single backticks for code, and stars of their own."""
    for k, line in enumerate(lines):
        if line.lstrip().startswith((">>>", "... ")):
            continue
        parts = re.split(r"`+([^`]+)`+", line)
        parts[::2] = [part.replace("*", r"\*") for part in parts[::2]]
        for at in range(1, len(parts), 2):
            parts[at] = f"``{parts[at]}``" + ("\\ " if parts[at + 1][:1].isalnum() else "")
        lines[k] = "".join(parts)


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", _as_rst, priority=400)  # before napoleon
    app.connect("source-read", _read)
