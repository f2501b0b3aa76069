"""Parses documentation pages, for tests that compare pages with the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"(`{3,}|~{3,})\s*(\w*|\{[\w-]+\}(?: \S+)?)\s*$")
COMMENT = re.compile(r"<!--\s*(.*?)\s*-->\s*$")


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str
    comment: str
    """Text of the HTML comment on the line before the block, if any."""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Returns every documentation page."""
    return [*sorted(ROOT.glob("docs/**/*.md")), *(ROOT / f"{name}.md" for name in ("CHANGELOG", "CONTRIBUTING"))]


def blocks(page: Path) -> Iterator[Block]:
    """Yields the fenced blocks of a page; a block inside a longer fence is part of the text of the outer block."""
    lines = page.read_text().splitlines()
    number = 0
    while number < len(lines):
        opened = FENCE.match(lines[number])
        number += 1
        if opened is None:
            continue
        first, comment = number, COMMENT.match(lines[number - 2]) if number > 1 else None
        while lines[number] != opened[1]:
            number += 1
        yield Block(
            page=page,
            line=first + 1,
            language=opened[2],
            text="".join(f"{line}\n" for line in lines[first:number]),
            comment=comment[1] if comment else "",
        )
        number += 1


def included(block: Block) -> str:
    """Returns the text of a block, or of the file that it includes."""
    _, is_included, name = block.language.partition("{literalinclude} ")
    if not is_included:
        return block.text
    path = (block.page.parent / name).resolve()
    assert path.is_file(), f"{block}: includes {name}, which does not exist"
    text = path.read_text(encoding="utf-8")
    for option, part in (("start-after", -1), ("end-before", 0)):
        for mark in re.findall(rf'^:{option}: "(.+)"$', block.text, re.MULTILINE):
            found = re.split(rf"^ *{re.escape(mark)}\n", text, flags=re.MULTILINE)
            assert len(found) == 2, f"{block}: {name} has no single line {mark}"
            text = found[part]
    return text


def prose(page: Path) -> str:
    """Returns a page without its fenced blocks."""
    text = page.read_text()
    for block in blocks(page):
        text = text.replace(block.text, "")
    return text


def flowing(page: Path) -> str:
    """Returns a page's text without line breaks."""
    return " ".join(page.read_text().split())


def headings(text: str) -> list[str]:
    return re.findall(r"^## (.+)$", text, re.MULTILINE)


def section(text: str, heading: str) -> str:
    """Returns the text below a level-2 heading."""
    return text.split(f"\n## {heading}\n")[1].split("\n## ")[0]


# Headings of every model's page, in this order.
MODEL_HEADINGS = [
    "What it does",
    "Source",
    "Symbols",
    "Parameters",
    "Differences from the source",
    "Validation",
    "Limits",
]
