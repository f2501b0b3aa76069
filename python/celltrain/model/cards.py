"""Cards of answers for `print` and notebooks: a title, a few sentences, small tables, with the same content in HTML.

Colours follow the page, so that a card can be read on light and on dark. Names that others chose are escaped.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from celltrain.model.grids import Grid
from celltrain.text import shown

__all__ = ["Card", "Carded", "Grid"]

#: Rows of a table; a line below counts the others.
MOST_ROWS = 12
#: Characters of a cell.
MOST_TEXT = 80
# Notebooks of every kind keep the style of an element, and few keep style sheets.
_CARD = "font-size:.9em;line-height:1.45;max-width:62em"
_CELL = "padding:.1em .8em .1em 0;border:0;border-bottom:1px solid rgba(128,128,128,.35);background:none"
_TABLE = "border-collapse:collapse;margin:.4em 0;width:auto;font-variant-numeric:tabular-nums"
_SOFT = "opacity:.75"


@dataclass(frozen=True, kw_only=True)
class Card:
    """The content of a card."""

    title: str
    lines: Sequence[str] = ()
    grids: Sequence[Grid] = ()
    notes: Sequence[str] = ()
    """Lines at the bottom, in smaller type."""

    def text(self) -> str:
        """Writes the card for `print` and for notebooks without HTML."""
        parts = ["\n".join(map(shown, [self.title, *self.lines]))]
        for grid in (_short(grid) for grid in self.grids if grid.rows):
            parts.append("\n".join([*grid.text().splitlines(), *_left_out(grid)]))
        if self.notes:
            parts.append("\n".join(map(shown, self.notes)))
        return "\n\n".join(parts)

    def html(self) -> str:
        """Writes the card for notebooks, as one element without outside styles."""
        parts = [f'<div class="celltrain" style="{_CARD}">', f"<strong>{escape(shown(self.title))}</strong>"]
        parts += [f"<div>{escape(shown(line))}</div>" for line in self.lines]
        parts += [_html(_short(grid)) for grid in self.grids if grid.rows]
        parts += [_small(note) for note in self.notes]
        return "\n".join([*parts, "</div>"])


class Carded:
    """An answer that `print` and the cells of a notebook show as a card."""

    @abstractmethod
    def _card(self) -> Card:
        """The card of this answer."""

    def __str__(self) -> str:
        return self._card().text()

    def _repr_html_(self) -> str:
        return self._card().html()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self) if cycle else self._card().text())


def _short(grid: Grid) -> Grid:
    """Returns the first rows of a table, its texts without their ends if they are too long."""
    heads, *rows = ([_text(cell) for cell in row] for row in (grid.heads, *grid.rows[:MOST_ROWS]))
    return Grid(heads=heads, rows=rows, left=grid.left, more=grid.more + max(0, len(grid.rows) - MOST_ROWS))


def _text(words: str) -> str:
    return shown(words if len(words) <= MOST_TEXT else f"{words[: MOST_TEXT - 1]}\u2026")


def _left_out(grid: Grid) -> list[str]:
    return [f"and {grid.more:,} more"] if grid.more else []


def _small(text: str) -> str:
    return f'<div style="{_SOFT}"><small>{escape(shown(text))}</small></div>'


def _html(grid: Grid) -> str:
    aligned = [f"{_CELL};text-align:{'left' if column in grid.left else 'right'}" for column in range(len(grid.heads))]
    rows = "".join(f"<tr>{_cells('td', row, aligned)}</tr>" for row in grid.rows)
    return (
        f'<div style="overflow-x:auto"><table style="{_TABLE}"><thead><tr>{_cells("th", grid.heads, aligned)}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{''.join(map(_small, _left_out(grid)))}"
    )


def _cells(tag: str, texts: Sequence[str], styles: Sequence[str]) -> str:
    return "".join(f'<{tag} style="{style}">{escape(text)}</{tag}>' for text, style in zip(texts, styles, strict=True))
