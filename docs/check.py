"""Checks a built site: `python docs/check.py site`.

1. Every page is below 300 kB.
2. Nothing is loaded from elsewhere: the site works without a network.
3. Every link inside of the site leads to a file, and to a heading of it, that exist.
4. No page shows a folder of the machine that has built it.
5. Pages have no sentence of more than 30 words, and no cell of a table of more than 20.
"""

from __future__ import annotations

import os
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LARGEST = 300_000  # bytes
DOCS = Path(__file__).resolve().parent
_FOLDERS = (str(DOCS.parent), os.path.dirname(os.__file__))
#: Pages that are made from tables of tests, whose cells are whole situations.
_OTHERS = {f"{name}.md" for name in ("people", "robustness", "traps")}
#: What a browser fetches by itself.
_LOADED = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src"}


class Page(HTMLParser):
    """What a page loads, links to, and can be linked at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called for each tag."""
        found = {name: value or "" for name, value in attrs}
        self.anchors.update(found[name] for name in ("id", "name") if name in found)
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag in _LOADED and _LOADED[tag] in found and found.get("rel") not in ("canonical", "author"):
            self.loaded.append(found[_LOADED[tag]])


def _words(text: str) -> int:
    """Code counts as one word, and a link as what is shown of it."""
    text = re.sub(r"`[^`]*`", "code", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return sum(bool(re.search(r"\w", word)) for word in text.split())


def long_sentences(text: str) -> list[str]:
    """What is too long in a page of Markdown."""
    text = re.sub(r"^```.*?^```$", "\n", text, flags=re.DOTALL | re.MULTILINE)
    rows = re.findall(r"^\|.*$", text, re.MULTILINE)
    cells = [cell.strip() for row in rows for cell in re.split(r"(?<!\\)\|", row)]
    found = [f"a cell of {_words(cell)} words: {cell}" for cell in cells if _words(cell) > 20]
    prose = re.sub(r"^(\||#).*$", "\n", text, flags=re.MULTILINE)
    for block in re.split(r"\n\s*\n|^\s*(?:[-*]|\d+\.) ", prose, flags=re.MULTILINE):
        sentences = [" ".join(part.split()) for part in re.split(r"(?<=[.!?:])(?:\*\*)?\s+(?=[A-Z`*\[(])", block)]
        found += [f"a sentence of {_words(one)} words: {one}" for one in sentences if _words(one) > 30]
    return found


def problems(site: Path) -> list[str]:
    """What is wrong, in words."""
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    found = [] if pages else [f"{site} has no pages"]
    for path, page in pages.items():
        name = path.relative_to(site)
        if path.stat().st_size > LARGEST:
            found.append(f"{name}: {path.stat().st_size:,} bytes, more than {LARGEST:,}")
        text = path.read_text("utf-8")
        found += [f"{name}: shows {folder}" for folder in _FOLDERS if folder in text]
        found += [f"{name}: loads {url}" for url in page.loaded if urlsplit(url).netloc]
        for url in (*page.loaded, *page.links):
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
            if not target.is_file():
                found.append(f"{name}: {url} does not exist")
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{name}: {url} has no such heading")
    for source in [DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]:
        if source.name not in _OTHERS:
            found += [f"{source.name}: {problem}" for problem in long_sentences(source.read_text("utf-8"))]
    return found


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]).resolve())
    print("\n".join(wrong) or "all pages are small, whole, independent and brief")
    sys.exit(bool(wrong))
