"""Checks a built site: `python docs/check.py site`.

1. Every page is below 300 kB.
2. Nothing is loaded from elsewhere: the site works without a network.
3. Every link inside of the site leads to a file, and to a heading of it, that exist.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LARGEST = 300_000  # bytes
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


def problems(site: Path) -> list[str]:
    """What is wrong, in words."""
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    found = [] if pages else [f"{site} has no pages"]
    for path, page in pages.items():
        name = path.relative_to(site)
        if path.stat().st_size > LARGEST:
            found.append(f"{name}: {path.stat().st_size:,} bytes, more than {LARGEST:,}")
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
    return found


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]).resolve())
    print("\n".join(wrong) or "all pages are small, whole and independent")
    sys.exit(bool(wrong))
