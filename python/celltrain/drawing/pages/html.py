"""What the pages of reports and searches have in common: tables, inlined figures, and the templates."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from celltrain.errors import MissingExtraError
from celltrain.text import lines, shown

if TYPE_CHECKING:
    from celltrain.drawing.pages.drawing import Drawing

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What a table holds in one place."""

    text: str
    key: float | None = None
    """What it is sorted by, where it is a number."""
    mark: bool = False


@dataclass(frozen=True, kw_only=True)
class Head:
    """The head of a column."""

    text: str
    meaning: str = ""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of the page."""

    title: str
    heads: Sequence[Head]
    rows: Sequence[Sequence[Cell]]
    left_out: str = ""
    """What to say where rows were left out."""
    open: bool = True


@dataclass(frozen=True, kw_only=True)
class Inlined:
    """A figure as a part of the page."""

    name: str
    title: str
    caption: str
    svg: str
    narrow: str
    """The same for narrow screens, where its texts would become too small to read."""

    @classmethod
    def of(cls, drawing: Drawing, narrow: Drawing) -> Inlined:
        """A figure in both widths."""
        parts = {"name": drawing.name, "title": drawing.title, "caption": drawing.caption}
        return cls(**parts, svg=cls._svg(drawing, drawing.name), narrow=cls._svg(narrow, f"{drawing.name}-narrow"))

    @staticmethod
    def _svg(drawing: Drawing, name: str) -> str:
        """A figure's SVG with identifiers of its own, its texts there for readers of screens too."""
        ET.register_namespace("", _SVG)
        ET.register_namespace("xlink", _XLINK)
        root = ET.fromstring(drawing.save("svg"))
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
        root.set("aria-label", shown(f"{drawing.title}. {drawing.caption}"))
        return ET.tostring(root, encoding="unicode")


def environment(extra: str) -> Any:
    """What fills templates: texts are escaped for HTML, and what is not to be seen in them so that it is.

    Args:
        extra: What to install where Jinja2 is missing, which raises `MissingExtraError`.
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
