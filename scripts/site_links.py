"""Looks whether every link of a site on disk leads to a file, and to a place in it that exists.

    python scripts/site_links.py out/site

Addresses of other machines are left alone. Exits with 1 where a link leads nowhere, and says which page has it.
"""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The places of a page, and what it refers to."""

    def __init__(self, text: str) -> None:
        """Reads it."""
        super().__init__()
        self.places: set[str] = set()
        self.references: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element with what it is called and what it refers to."""
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (name == "name" and tag == "a"):
                self.places.add(value)
            elif name in ("href", "src"):
                self.references.append(value)


@cache
def page(path: Path) -> Page:
    """A page that is read once."""
    return Page(path.read_text(encoding="utf-8"))


def broken(site: Path) -> list[str]:
    """What leads nowhere, each with its page."""
    return [
        f"{path.relative_to(site)}: {reference}"
        for path in sorted(site.rglob("*.html"))
        for reference in dict.fromkeys(page(path).references)
        if not leads(path, reference)
    ]


def leads(path: Path, reference: str) -> bool:
    """Whether a reference of a page leads somewhere."""
    parts = urlsplit(reference)
    if parts.scheme or parts.netloc:
        return True
    file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not file.is_file():
        return False
    if not parts.fragment or file.suffix != ".html":
        return True
    return unquote(parts.fragment) in page(file).places


def main() -> int:
    """Prints what leads nowhere."""
    site = Path(sys.argv[1]).resolve()
    found = broken(site)
    for line in found:
        print(line)
    pages = len(list(site.rglob("*.html")))
    print(
        f"{pages} pages, {sum(len(page(path).references) for path in site.rglob('*.html'))} links, {len(found)} broken"
    )
    return int(bool(found) or not pages)


if __name__ == "__main__":
    sys.exit(main())
