"""What the documentation pages are made of, for the tests that hold them to the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"(`{3,}|~{3,})\s*(\w*|\{[\w-]+\})\s*$")
COMMENT = re.compile(r"<!--\s*(.*?)\s*-->\s*$")


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str
    comment: str
    """What the HTML comment on the line before it says, if there is one."""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Every page for people."""
    return [*sorted(ROOT.glob("docs/**/*.md")), *(ROOT / f"{name}.md" for name in ("CHANGELOG", "CONTRIBUTING"))]


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page; a block inside a longer fence is part of that one's text."""
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


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    text = page.read_text()
    for block in blocks(page):
        text = text.replace(block.text, "")
    return text


def flowing(page: Path) -> str:
    """A page's text with its lines broken nowhere."""
    return " ".join(page.read_text().split())


def headings(text: str) -> list[str]:
    """The level-2 headings of a page's text."""
    return re.findall(r"^## (.+)$", text, re.MULTILINE)


def section(text: str, heading: str) -> str:
    """What stands under a level-2 heading."""
    return text.split(f"\n## {heading}\n")[1].split("\n## ")[0]


# The headings of a model's page, always these, always in this order.
MODEL_HEADINGS = [
    "What it does",
    "Source",
    "Symbols",
    "Parameters",
    "Departures",
    "Validation",
    "Limits",
]
