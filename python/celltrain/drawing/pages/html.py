"""Common parts of pages: sections, tables, inlined figures, and the templates."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.drawing.pages import words
from celltrain.errors import MissingExtraError
from celltrain.model.files import replace
from celltrain.model.grids import Block, Grid, Line
from celltrain.text import lines, shown

if TYPE_CHECKING:
    from celltrain.drawing.figure import Drawing

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"


@dataclass(frozen=True)
class Cell:
    """A cell of a table."""

    text: str
    key: float | None = None
    """Number by which rows are sorted, if it is one."""
    mark: bool = False
    """True for bold text."""


@dataclass(frozen=True)
class Head:
    """The head of a column."""

    text: str
    meaning: str = ""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of a page."""

    title: str
    heads: Sequence[Head]
    rows: Sequence[Sequence[Cell]]
    left_out: str = ""
    """A note if rows were left out."""
    open: bool = True


def table(
    title: str, heads: Sequence[Any], rows: Iterable[Iterable[Any]], *, left_out: str = "", is_open: bool = True
) -> Table:
    """Creates a table; texts become cells and heads."""
    cells = [[Cell(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    named = [Head(head) if isinstance(head, str) else head for head in heads]
    return Table(title=title, heads=named, rows=cells, left_out=left_out, open=is_open)


def bold(text: str) -> Cell:
    """Creates a cell with a bold text."""
    return Cell(text, mark=True)


def count(number: int) -> Cell:
    """Creates a cell with a whole number."""
    return Cell(f"{number:,}", float(number))


def estimate(mean: float, half: float, *, mark: bool = False, signed: bool = False) -> Cell:
    """Creates a cell with a mean and half its 95 % interval."""
    text = words.estimated(float(mean), float(half))
    return Cell(f"+{text}" if signed and mean > 0 else text, float(mean), mark)


def value(number: float | str, text: str) -> Cell:
    """Creates a cell with a value of an axis."""
    return Cell(text, None if isinstance(number, str) else number)


@dataclass(frozen=True, kw_only=True)
class Inlined:
    """A figure as a part of the page."""

    name: str
    title: str
    caption: str
    svg: str
    narrow: str
    """The figure for narrow screens, where its texts would become too small to read; empty if it has one width."""

    @classmethod
    def of(cls, drawing: Drawing, narrow: Drawing) -> Inlined:
        """Creates the page's figure from its drawings in both widths."""
        parts = {"name": drawing.name, "title": drawing.title, "caption": drawing.caption}
        svg, below = drawing.save("svg"), narrow.save("svg")
        label = f"{drawing.title}. {drawing.caption}"
        return cls(**parts, svg=_svg(svg, drawing.name, label), narrow=_svg(below, f"{drawing.name}-narrow", label))

    @classmethod
    def of_svg(cls, name: str, title: str, content: bytes) -> Inlined:
        """Creates a figure that has one width."""
        return cls(name=name, title=title, caption="", svg=_svg(content, name, title), narrow="")


def _svg(content: bytes, name: str, label: str) -> str:
    """Returns a figure's SVG with unique identifiers, and its texts for screen readers."""
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", _XLINK)
    root = ET.fromstring(content)
    for metadata in root.findall(f"{{{_SVG}}}metadata"):
        root.remove(metadata)
    for element in root.iter():
        for key, value in element.attrib.items():
            if key == "id":
                element.set(key, f"{name}-{value}")
            elif key == f"{{{_XLINK}}}href" and value.startswith("#"):
                element.set(key, f"#{name}-{value[1:]}")
            elif "url(#" in value:
                element.set(key, value.replace("url(#", f"url(#{name}-"))
    root.set("role", "img")
    root.set("aria-label", shown(label))
    return ET.tostring(root, encoding="unicode")


def write_figure(drawing: Drawing, narrow: Drawing, folder: Path) -> list[Path]:
    """Writes a figure in both widths as SVG and PDF into a folder; returns the files."""
    written = []
    for one, suffix in ((drawing, ""), (narrow, "-column")):
        for kind in ("svg", "pdf"):
            written.append(folder / f"{one.name}{suffix}.{kind}")
            replace(written[-1], one.save(kind))
    return written


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of a page under a heading: paragraphs, tables and figures, one below the other."""

    id: str
    title: str
    parts: list[Line | Table | Inlined]


def sections(blocks: Iterable[Block], first: str) -> list[Section]:
    """Divides lines and tables for a screen into sections: a bold line begins one, and `first` stands for the first."""
    found = [Section(id="section-1", title=first, parts=[])]
    for place, block in enumerate(blocks):
        if isinstance(block, Grid):
            found[-1].parts.extend(_tables(block, found[-1].title))
        elif block.style == "bold" and place:
            title, _, rest = block.text.partition(". ")
            parts: list[Line | Table | Inlined] = [Line(text=rest)] if rest else []
            found.append(Section(id=f"section-{len(found) + 1}", title=title, parts=parts))
        elif block.style != "bold" and block.text:
            found[-1].parts.append(block)
    return found


def _tables(grid: Grid, title: str) -> Iterator[Table]:
    """Yields a table for each group of rows, as a click on a heading sorts all rows of a table."""
    starts = sorted({0, *grid.groups})
    for start, end in zip(starts, [*starts[1:], len(grid.rows)], strict=True):
        rows = [[_cell(text, place in grid.left) for place, text in enumerate(row)] for row in grid.rows[start:end]]
        yield table(grid.groups.get(start, title), grid.heads, rows)


def _cell(text: str, is_words: bool) -> Cell:
    number = None if is_words else re.match(r"[+-]?[\d,]*\.?\d+", text.strip())
    return Cell(text.strip(), None if number is None else float(number[0].replace(",", "")))


def render(template: str, extra: str, **content: Any) -> str:
    """Fills a template of a page; `words` has the functions that format numbers."""
    page: str = environment(extra).get_template(template).render(words=words, **content)
    return page


def environment(extra: str) -> Any:
    """Creates the template environment, which escapes texts for HTML and makes invisible characters visible.

    Args:
        extra: Extra of the package that contains Jinja2, for the `MissingExtraError` without it.
    """
    try:
        import jinja2
        from markupsafe import Markup
    except ImportError as error:
        raise MissingExtraError(f"pages need jinja2: pip install 'celltrain[{extra}]'") from error
    return jinja2.Environment(
        loader=jinja2.PackageLoader("celltrain", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: lines(value) if isinstance(value, str) and not isinstance(value, Markup) else value,
    )
