"""What `print` and notebooks show of an answer: a title, a few sentences, small tables. HTML and text say the same.

Colours are those of the page around it, so that it can be read on light and on dark. Names that others chose are escaped.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from celltrain.model.grids import Grid as Table
from celltrain.text import shown

#: Rows of a table; what is left out is counted below it.
MOST_ROWS = 12
#: Characters of a cell.
MOST_TEXT = 80
# Notebooks of every kind keep the style of an element, and few keep style sheets.
_CARD = "font-size:.9em;line-height:1.45;max-width:62em"
_CELL = "padding:.1em .8em .1em 0;border:0;border-bottom:1px solid rgba(128,128,128,.35);background:none"
_TABLE = "border-collapse:collapse;margin:.4em 0;width:auto;font-variant-numeric:tabular-nums"
_SOFT = "opacity:.75"


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A small table."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: Sequence[int] = (0,)
    """Columns of words, which stand at the left; numbers stand at the right."""
    more: int = 0
    """Rows that were left out before."""

    @property
    def shown(self) -> Sequence[Sequence[str]]:
        """The rows that there is room for, their texts as they may be shown."""
        return [[_text(cell) for cell in row] for row in self.rows[:MOST_ROWS]]

    @property
    def left_out(self) -> str:
        """What is said below where rows were left out."""
        more = self.more + max(0, len(self.rows) - MOST_ROWS)
        return f"and {more:,} more" if more else ""


@dataclass(frozen=True, kw_only=True)
class Card:
    """What is shown of an answer."""

    title: str
    lines: Sequence[str] = ()
    grids: Sequence[Grid] = ()
    notes: Sequence[str] = ()
    """What stands below, smaller."""

    def text(self) -> str:
        """For `print` and for notebooks without HTML."""
        parts = ["\n".join([_text(self.title, None), *(_text(line, None) for line in self.lines)])]
        parts += ["\n".join(_lines(grid)) for grid in self.grids if grid.rows]
        if self.notes:
            parts.append("\n".join(_text(note, None) for note in self.notes))
        return "\n\n".join(parts)

    def html(self) -> str:
        """For notebooks: one element that needs nothing else."""
        parts = [f'<div class="celltrain" style="{_CARD}">', f"<strong>{_escaped(self.title)}</strong>"]
        parts += [f"<div>{_escaped(line)}</div>" for line in self.lines]
        parts += [_html(grid) for grid in self.grids if grid.rows]
        parts += [f'<div style="{_SOFT}"><small>{_escaped(note)}</small></div>' for note in self.notes]
        return "\n".join([*parts, "</div>"])


class Carded:
    """An answer that is shown as a card: by `print`, and where a cell of a notebook ends in it."""

    @abstractmethod
    def _card(self) -> Card:
        """The card of this answer."""

    def __str__(self) -> str:
        return self._card().text()

    def _repr_html_(self) -> str:
        return self._card().html()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self) if cycle else self._card().text())


def _text(words: str, most: int | None = MOST_TEXT) -> str:
    """Words in one line, without their end where they are too long."""
    return shown(words if most is None or len(words) <= most else f"{words[: most - 1]}\u2026")


def _escaped(words: str) -> str:
    return escape(_text(words, None))


def _lines(grid: Grid) -> list[str]:
    table = Table(heads=[_text(head) for head in grid.heads], left=grid.left)
    for row in grid.shown:
        table.add_row(*row)
    return [*table.text().splitlines(), *([grid.left_out] if grid.left_out else [])]


def _html(grid: Grid) -> str:
    aligned = [f"{_CELL};text-align:{'left' if column in grid.left else 'right'}" for column in range(len(grid.heads))]
    heads = _cells("th", [_text(head) for head in grid.heads], aligned)
    rows = "".join(f"<tr>{_cells('td', row, aligned)}</tr>" for row in grid.shown)
    below = f'<div style="{_SOFT}"><small>{escape(grid.left_out)}</small></div>' if grid.left_out else ""
    return (
        f'<div style="overflow-x:auto"><table style="{_TABLE}"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{below}"
    )


def _cells(tag: str, texts: Sequence[str], styles: Sequence[str]) -> str:
    return "".join(f'<{tag} style="{style}">{escape(text)}</{tag}>' for text, style in zip(texts, styles, strict=True))
