"""Tables for human readers: rendered for a terminal of any width, as Markdown, as LaTeX, and as cards.

Tables never truncate text. Columns of words wrap; columns of numbers keep their width. If a table is wider than the
screen, its columns continue in a second block below, which repeats the key columns.

A card shows an answer in `print` and in notebooks: a title, a few sentences and small tables, with the same content in
HTML. Colours follow the page, so that a card is readable on light and dark backgrounds. Names from scenarios are
escaped.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from celltrain.text import MOST_CLAUSE, shortened, shown

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text


#: Space between two columns of a table.
GAP = "  "
#: Longer words may be broken in headings and in columns of words.
LONGEST_WORD = 24
#: Indentation of the rows of a group.
INDENT = "  "
#: Terminal styles of cells with the given texts.
STYLES = {"yes": "green", "no": "bold red", "NO": "bold red", "WRONG": "bold red"}

#: Pieces of a line, each with its style.
Pieces = list[tuple[str, str]]


@dataclass(kw_only=True)
class Grid:
    """A table: headings, rows, and labels above groups of rows."""

    heads: Sequence[str]
    rows: list[list[str]] = field(default_factory=list)
    left: Sequence[int] = (0,)
    """Columns that contain words. They are aligned left, and wrapped if the screen is narrow. All other columns
    contain numbers."""
    keys: int = 1
    """Number of leading columns that are repeated if the table continues in a second block."""
    groups: dict[int, str] = field(default_factory=dict)
    """Label of each group, by the index of its first row."""
    more: int = 0
    """Number of rows that the table leaves out."""

    def __post_init__(self) -> None:
        self.heads = [_line(head) for head in self.heads]
        self.rows = [[_line(cell) for cell in row] for row in self.rows]

    def add_row(self, *cells: str) -> None:
        """Appends a row."""
        self.rows.append([_line(cell) for cell in cells])

    def add_group(self, label: str) -> None:
        """Starts a group of rows below a label."""
        self.groups[len(self.rows)] = _line(label)

    def parts(self) -> Iterator[Grid]:
        """Yields a table for each group of rows, with its label as the first heading."""
        starts = sorted({0, *self.groups})
        for start, end in zip(starts, [*starts[1:], len(self.rows)], strict=True):
            heads = [self.groups.get(start, self.heads[0]), *self.heads[1:]]
            yield Grid(heads=heads, rows=self.rows[start:end], left=self.left, more=self.more)

    def lines(self, width: int | None = None) -> Iterator[Pieces]:
        """Yields the lines of the table for a terminal of this width; without a limit if None."""
        for number, columns in enumerate(self._blocks(width)):
            if number:
                yield []
            yield from self._block(columns, width)
        if self.more:
            yield [(f"and {self.more:,} more", "")]

    def text(self, width: int | None = None) -> str:
        """Returns the table as plain text."""
        return "\n".join("".join(piece for piece, _ in line).rstrip() for line in self.lines(width))

    def markdown(self) -> str:
        """Returns the table in Markdown for GitHub and pandoc."""
        rules = ["---" if column in self.left else "---:" for column in range(len(self.heads))]
        lines = [[_for_markdown(head) or " " for head in self.heads], rules]
        for number, row in enumerate(self.rows):
            if label := self.groups.get(number):
                lines.append([f"**{_for_markdown(label)}**", *[""] * (len(self.heads) - 1)])
            lines.append([_for_markdown(cell.strip()) for cell in row])
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)

    def latex(self) -> str:
        r"""Returns the table in LaTeX with `booktabs`, to put into your own `table` environment."""
        kinds = "".join("l" if column in self.left else "r" for column in range(len(self.heads)))
        count = len(self.heads)
        lines = [rf"\begin{{tabular}}{{{kinds}}}", r"\toprule", _row(self.heads), r"\midrule"]
        for number, row in enumerate(self.rows):
            if label := self.groups.get(number):
                lines += [r"\addlinespace"] if number else []
                lines.append(rf"\multicolumn{{{count}}}{{l}}{{\textit{{{_for_latex(label)}}}}} \\")
            lines.append(_row(row))
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        from rich.text import Text

        for line in self.lines(options.max_width):
            text = Text.assemble(*line, no_wrap=True, overflow="ignore")
            text.rstrip()
            yield text

    def _blocks(self, width: int | None) -> list[list[int]]:
        """Splits the columns into blocks that fit the width."""
        every = list(range(len(self.heads)))
        if width is None or self._least(every) <= width:
            return [every]
        keys = every[: self.keys]
        blocks: list[list[int]] = []
        for column in every[self.keys :]:
            if blocks and self._least([*blocks[-1], column]) <= width:
                blocks[-1].append(column)
            else:
                blocks.append([*keys, column])
        return blocks or [every]

    def _least(self, columns: Sequence[int]) -> int:
        return sum(self._bounds(column)[0] for column in columns) + self._between(columns)

    def _between(self, columns: Sequence[int]) -> int:
        """Returns the width of gaps and indentation in a line."""
        return len(GAP) * (len(columns) - 1) + (len(INDENT) if self.groups else 0)

    def _bounds(self, column: int) -> tuple[int, int]:
        """Returns the minimum width of a column if only very long words are broken, and its full width."""
        cells = [row[column] for row in self.rows]
        words = self.heads[column].split()
        words += [word for cell in cells for word in cell.split()] if column in self.left else []
        least = min(max(map(_width, words), default=0), LONGEST_WORD)
        widest = max(map(_width, cells), default=0)
        return least if column in self.left else max(least, widest), max(widest, _width(self.heads[column]))

    def _widths(self, columns: Sequence[int], width: int | None) -> list[int]:
        """Computes the widths of columns: as wide as their content if the screen allows."""
        bounds = [self._bounds(column) for column in columns]
        wanted = [widest for _, widest in bounds]
        if width is None or sum(wanted) + self._between(columns) <= width:
            return wanted
        widths = [least for least, _ in bounds]
        room = max(width - self._between(columns) - sum(widths), 0)
        # Start with the columns that need least width, so that a column of prose gets the rest.
        for left, place in enumerate(sorted(range(len(columns)), key=lambda place: wanted[place] - widths[place])):
            more = min(wanted[place] - widths[place], room // (len(columns) - left))
            widths[place] += more
            room -= more
        return widths

    def _block(self, columns: Sequence[int], width: int | None) -> Iterator[Pieces]:
        widths = self._widths(columns, width)
        indent = INDENT if self.groups else ""
        # Headings are aligned at the bottom, directly above the rule.
        yield from self._row([self.heads[column] for column in columns], columns, widths, indent, head=True)
        yield [("\u2500" * (sum(widths) + self._between(columns)), "")]
        for number, row in enumerate(self.rows):
            if number in self.groups:
                if number:
                    yield []
                yield [(self.groups[number], "bold")]
            yield from self._row([row[column] for column in columns], columns, widths, indent)

    def _row(
        self, cells: Sequence[str], columns: Sequence[int], widths: Sequence[int], indent: str, *, head: bool = False
    ) -> Iterator[Pieces]:
        wrapped = [_wrapped(cell, width) for cell, width in zip(cells, widths, strict=True)]
        height = max(map(len, wrapped), default=1)
        for line in range(height):
            pieces: Pieces = [(indent, "")] if indent else []
            for column, texts, width in zip(columns, wrapped, widths, strict=True):
                at = line - (height - len(texts)) if head else line
                text = texts[at] if 0 <= at < len(texts) else ""
                cell, space = (
                    (text, "bold" if head else STYLES.get(text.strip(), "")),
                    (" " * (width - _width(text)), ""),
                )
                pieces += [cell, space] if column in self.left else [space, cell]
                pieces.append((GAP, ""))
            yield pieces[:-1]


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of text between tables."""

    text: str
    style: str = ""
    is_note: bool = False
    """True for a note that also belongs in print. LaTeX output has it below the tables."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        from rich.text import Text

        yield Text(shown(self.text), style=self.style, overflow="fold")


#: A part of an answer.
Block = Grid | Line


def markdown(blocks: Iterable[Block]) -> str:
    """Writes an answer in Markdown: lines as paragraphs, and tables."""
    parts = [block.markdown() if isinstance(block, Grid) else _for_markdown(block.text) for block in blocks]
    return "\n\n".join(part for part in parts if part)


def latex(blocks: Iterable[Block]) -> str:
    r"""Writes an answer in LaTeX: its tables, each followed by its notes, and other lines as comments.

    Notes before the first table are placed below that table.
    """
    parts, notes, has_table = [r"% Needs \usepackage{booktabs} in the preamble."], list[str](), False
    for block in blocks:
        if isinstance(block, Line) and block.is_note:
            notes.append(_for_latex(block.text))
            continue
        if notes and has_table and (isinstance(block, Grid) or block.text):
            parts.append(_footnotes(notes))
            notes, has_table = [], False
        if isinstance(block, Grid):
            parts.append(block.latex())
            has_table = True
        elif block.text:
            parts.append(f"% {shown(block.text)}".rstrip())
    return "\n".join([*parts, *([_footnotes(notes)] if notes else [])])


def _footnotes(notes: Sequence[str]) -> str:
    lines = " \\\\\n".join(notes)
    return f"\n\\smallskip\n{{\\footnotesize\n{lines}\\par}}"


def _line(words: str) -> str:
    return shown(shortened(words, MOST_CLAUSE))


def _width(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def _wrapped(text: str, width: int) -> list[str]:
    """Wraps a cell at the given width, between words if possible."""
    if _width(text) <= width:
        return [text]
    lines = [""]
    for word in text.split():
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if _width(joined) <= width:
            lines[-1] = joined
            continue
        lines += [] if not lines[-1] else [""]
        for part in _folded(word, width):
            lines[-1] = part
            lines.append("")
        lines.pop()
    return lines


def _folded(word: str, width: int) -> Iterator[str]:
    """Folds a long word; a path is broken at its dots and commas if possible."""
    while _width(word) > width:
        end = width
        while _width(word[:end]) > width:
            end -= 1
        at = max(word.rfind(mark, 0, end) for mark in ".,:/=|") + 1
        end = at if at > end // 2 else max(end, 1)
        yield word[:end]
        word = word[end:]
    yield word


_MARKDOWN = re.compile(r"(^>|[\\`*_{}\[\]<#|~&])")


def _for_markdown(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", shown(text))


_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "\u00b1": r"$\pm$",
    "\u00b5": r"\textmu{}",
    "\u2013": "--",
    "\u00a0": "~",
    "*": r"\textasteriskcentered{}",
    **{mark: f"\\{mark}" for mark in "&%$#_"},
}


def _for_latex(text: str) -> str:
    """Escapes LaTeX special characters in a text; a hyphen before a number becomes a minus sign."""
    escaped = "".join(_LATEX.get(character, character) for character in shown(text))
    return re.sub(r"(^|[\s(])([-+])(?=[\d.])", r"\1$\2$", escaped)


def _row(cells: Iterable[str]) -> str:
    return f"{' & '.join(_for_latex(cell.strip()) for cell in cells)} \\\\"


__all__ = ["Card", "CardMixin", "Grid"]

#: Maximum number of rows of a table on a card. A line below states the number of other rows.
MOST_ROWS = 12
#: Maximum length of a cell on a card.
MOST_TEXT = 80
# All notebooks keep inline styles, but few notebooks keep style sheets.
_CARD = "font-size:.9em;line-height:1.45;max-width:62em"
_CELL = (
    '<{tag} style="padding:.1em .8em .1em 0;border:0;border-bottom:1px solid rgba(128,128,128,.35);background:none;'
    'text-align:{side}">{text}</{tag}>'
)
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

    @classmethod
    def of(cls, title: str, blocks: Iterable[Block], notes: Iterable[str] = ()) -> Card:
        """Creates a card from printed lines and tables.

        Each group of rows becomes a separate table. Lines after the tables become notes.
        """
        lines, grids, below = list[str](), list[Grid](), list[str]()
        for block in blocks:
            if isinstance(block, Grid):
                grids.extend(block.parts())
            elif block.text:
                (below if grids else lines).append(block.text)
        return cls(title=title, lines=lines, grids=grids, notes=[*below, *notes])

    def text(self) -> str:
        """Writes the card for `print` and for notebooks without HTML."""
        parts = ["\n".join(map(shown, [self.title, *self.lines]))]
        parts += [_short(grid).text() for grid in self.grids if grid.rows]
        if self.notes:
            parts.append("\n".join(map(shown, self.notes)))
        return "\n\n".join(parts)

    def html(self) -> str:
        """Writes the card for notebooks, as one element with inline styles."""
        parts = [f'<div class="celltrain" style="{_CARD}">', f"<strong>{escape(shown(self.title))}</strong>"]
        parts += [f"<div>{escape(shown(line))}</div>" for line in self.lines]
        parts += [_html(_short(grid)) for grid in self.grids if grid.rows]
        parts += [_small(note) for note in self.notes]
        return "\n".join([*parts, "</div>"])


class CardMixin:
    """An answer that `print` and notebook cells show as a card."""

    @abstractmethod
    def _card(self) -> Card:
        """Returns the card of this answer."""

    def __str__(self) -> str:
        return self._card().text()

    def _repr_html_(self) -> str:
        return self._card().html()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self) if cycle else self._card().text())


def _short(grid: Grid) -> Grid:
    """Returns the first rows of a table, with long texts truncated."""
    heads, *rows = ([_text(cell) for cell in row] for row in (grid.heads, *grid.rows[:MOST_ROWS]))
    return Grid(heads=heads, rows=rows, left=grid.left, more=grid.more + max(0, len(grid.rows) - MOST_ROWS))


def _text(words: str) -> str:
    return shown(words if len(words) <= MOST_TEXT else f"{words[: MOST_TEXT - 1]}\u2026")


def _small(text: str) -> str:
    return f'<div style="{_SOFT}"><small>{escape(shown(text))}</small></div>'


def _html(grid: Grid) -> str:
    def row(tag: str, texts: Sequence[str]) -> str:
        sides = ["left" if column in grid.left else "right" for column in range(len(texts))]
        cells = zip(sides, map(escape, texts), strict=True)
        return f"<tr>{''.join(_CELL.format(tag=tag, side=side, text=text) for side, text in cells)}</tr>"

    head, body = row("th", grid.heads), "".join(row("td", texts) for texts in grid.rows)
    table = f'<table style="{_TABLE}"><thead>{head}</thead><tbody>{body}</tbody></table>'
    more = _small(f"and {grid.more:,} more") if grid.more else ""
    return f'<div style="overflow-x:auto">{table}</div>{more}'
