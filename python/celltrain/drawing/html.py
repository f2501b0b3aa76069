"""Common parts of HTML pages: sections, inlined figures, and the templates."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.drawing import words
from celltrain.errors import needed
from celltrain.model.files import replace
from celltrain.model.grids import Block, Grid, Line
from celltrain.text import lines, shown

if TYPE_CHECKING:
    from celltrain.drawing.figure import Drawing

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"


@dataclass(frozen=True, kw_only=True)
class Inlined:
    """A figure embedded in a page."""

    name: str
    title: str
    caption: str
    svg: str
    narrow: str
    """The SVG for narrow screens, on which the text of the wide figure would be too small; empty if there is none."""

    @classmethod
    def of(cls, drawing: Drawing, narrow: Drawing) -> Inlined:
        """Creates the figure from its drawings in both widths."""
        parts = {"name": drawing.name, "title": drawing.title, "caption": drawing.caption}
        svg, below = drawing.save("svg"), narrow.save("svg")
        label = f"{drawing.title}. {drawing.caption}"
        return cls(**parts, svg=_svg(svg, drawing.name, label), narrow=_svg(below, f"{drawing.name}-narrow", label))

    @classmethod
    def of_svg(cls, name: str, title: str, content: bytes) -> Inlined:
        """Creates a figure with a single width."""
        return cls(name=name, title=title, caption="", svg=_svg(content, name, title), narrow="")


def _svg(content: bytes, name: str, label: str) -> str:
    """Returns a figure's SVG with unique identifiers, and with a label for screen readers."""
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
class Rows:
    """A group of rows, which has its own table. A click on a heading sorts all rows of the group."""

    title: str
    grid: Grid
    rows: list[list[tuple[str, float | None]]]
    """Cell texts, each with the number to sort by, if it has one."""

    @property
    def numbers(self) -> list[str]:
        """Headings of numeric columns."""
        return [head for place, head in enumerate(self.grid.heads) if place not in self.grid.left]


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of a page with a heading: paragraphs, tables and figures, in order."""

    id: str
    title: str
    parts: list[Line | Rows | Inlined]


def sections(blocks: Iterable[Block], first: str) -> list[Section]:
    """Divides printed lines and tables into sections. A bold line begins a section; `first` is the first title."""
    found = [Section(id="section-1", title=first, parts=[])]
    for place, block in enumerate(blocks):
        if isinstance(block, Grid):
            found[-1].parts.extend(_groups(block))
        elif block.style == "bold" and place:
            title, _, rest = block.text.partition(". ")
            found.append(Section(id=f"section-{len(found) + 1}", title=title, parts=[Line(text=rest)] if rest else []))
        elif block.style != "bold" and block.text:
            found[-1].parts.append(block)
    return found


def _groups(grid: Grid) -> Iterator[Rows]:
    starts = sorted({0, *grid.groups})
    for start, end in zip(starts, [*starts[1:], len(grid.rows)], strict=True):
        rows = [
            [(text.strip(), None if place in grid.left else _number(text)) for place, text in enumerate(row)]
            for row in grid.rows[start:end]
        ]
        yield Rows(title=grid.groups.get(start, ""), grid=grid, rows=rows)


def _number(text: str) -> float | None:
    found = re.match(r"[+-]?[\d,]*\.?\d+", text.strip())
    return None if found is None else float(found[0].replace(",", ""))


def render(template: str, extra: str, **content: Any) -> str:
    """Renders a page template, with the module `words` for formatting numbers."""
    page: str = environment(extra).get_template(template).render(words=words, **content)
    return page


def render_answer(
    title: str, subtitle: str, facts: Sequence[tuple[str, str]], warnings: Sequence[str], parts: Sequence[Section]
) -> str:
    """Renders the page of a command's answer."""
    about = {"title": title, "subtitle": subtitle, "facts": facts, "warnings": warnings}
    return render("drawing/pages/answer.html", "report", **about, sections=parts)


def environment(extra: str) -> Any:
    """Creates the template environment, which escapes texts for HTML and makes invisible characters visible.

    Args:
        extra: Extra that installs Jinja2, named in the `MissingExtraError` if it is missing.
    """
    jinja2 = needed("jinja2", f"pages need jinja2: pip install 'celltrain[{extra}]'")
    from markupsafe import Markup

    return jinja2.Environment(
        loader=jinja2.PackageLoader("celltrain", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: lines(value) if isinstance(value, str) and not isinstance(value, Markup) else value,
    )
