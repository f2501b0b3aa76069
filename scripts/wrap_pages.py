"""Wraps the prose of the pages at 120 columns.

    python scripts/wrap_pages.py             # rewrites the pages that need it
    python scripts/wrap_pages.py --check     # names them, and ends with 1 if there are any

Only a paragraph with a line beyond the width is set anew; a list's item is a paragraph of its own. Tables, headings, code
blocks and HTML comments stay as they are, and neither a link nor a code span is broken. The scripts that fill marked
blocks of pages set what they write with `wrapped`, so the blocks need no exception here.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 120

PARSER = MarkdownIt("commonmark").enable("table")
# A word with the code spans, links and images it contains.
WORD = re.compile(r"(?:`+[^`]+`+|!?\[[^\]]*\]\([^)\s]*\)|\S)+")
# What begins a list, a heading, a quotation or an HTML block where it stands first in a line, or underlines a heading.
BLOCK_START = re.compile(r"[-+*]$|\d{1,9}[.)]$|#{1,6}$|>|<[A-Za-z!/?]|=+$|-+$|`{3}|~{3}")
HARD_BREAK = re.compile(r"(?<=\\)\n|(?<=  )\n")


def main() -> int:
    """Wrap the pages, or say which are not wrapped."""
    parser = argparse.ArgumentParser(description="Wrap the prose of the pages.")
    parser.add_argument("--check", action="store_true", help="change nothing; end with 1 if a page is not wrapped")
    check: bool = parser.parse_args().check
    found = [(page, text, wrapped(text)) for page in pages() for text in [page.read_text(encoding="utf-8")]]
    changed = [(page, new) for page, old, new in found if new != old]
    for page, new in changed:
        print(f"{page.relative_to(ROOT)}: {'not wrapped' if check else 'wrapped'}")
        if not check:
            page.write_text(new, encoding="utf-8")
    return 1 if check and changed else 0


def pages() -> Iterator[Path]:
    """Every page for people."""
    for name in ("README", "CONTRIBUTING", "CHANGELOG"):
        yield ROOT / f"{name}.md"
    for folder in ("docs", "papers", "studies"):
        yield from sorted((ROOT / folder).rglob("*.md"))


def wrapped(text: str) -> str:
    """A Markdown text whose paragraphs have no line beyond the width that could be broken.

    Raises:
        ValueError: A paragraph would read otherwise with its lines broken anew.
    """
    lines = text.split("\n")
    tokens = PARSER.parse(text)
    # From the end, so that the lines of the paragraphs before keep their numbers.
    for opened, inline in reversed(list(itertools.pairwise(tokens))):
        if opened.type != "paragraph_open" or opened.map is None:
            continue
        first, end = opened.map
        if max(map(len, lines[first:end])) > WIDTH:
            start = lines[first].rstrip().removesuffix(inline.content.split("\n")[0].rstrip())
            lines[first:end] = filled(inline.content, start)
    result = "\n".join(lines)
    if rendered(result) != rendered(text):
        raise ValueError(f"broken anew, this text would read otherwise: {text[:80]!r}")
    return result


def filled(paragraph: str, start: str) -> list[str]:
    """The lines of a paragraph, the first after `start`: its indentation and the marks of the lists it is in."""
    margin = re.sub(r"[^>]", " ", start)
    lines: list[str] = []
    for part in HARD_BREAK.split(paragraph):
        line = margin if lines else start
        empty = True
        for word in words(part, WIDTH - len(margin)):
            if not empty and len(line) + 1 + len(word) > WIDTH:
                lines.append(line)
                line, empty = margin, True
            line += word if empty else f" {word}"
            empty = False
        # Two spaces at the end of a line are a break.
        lines.append(line + ("  " if part.endswith("  ") else ""))
    return lines


def words(text: str, room: int) -> Iterator[str]:
    """What a text may be broken between: words with whole links and code spans, as far as there is room for them."""
    joined = ""
    for found in WORD.findall(" ".join(text.split())):
        for word in [found] if len(found) <= room else found.split():
            if joined and not BLOCK_START.match(word):
                yield joined
                joined = word
            else:
                joined = f"{joined} {word}".lstrip()
    if joined:
        yield joined


def rendered(text: str) -> str:
    """What a reader sees of a text: its HTML, with lines broken nowhere."""
    return " ".join(str(PARSER.render(text)).split())


if __name__ == "__main__":
    sys.exit(main())
