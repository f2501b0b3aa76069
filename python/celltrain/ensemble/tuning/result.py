"""The result of a search, as JSON, as a figure and as a page."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from celltrain.ensemble.tuning.analysis import Searched
from celltrain.model.arguments import Answer, checked
from celltrain.model.files import inner, replace, writing

if TYPE_CHECKING:
    from celltrain.drawing.figure import Drawing


class Tuned(Answer):
    """The result of a search."""

    _call = "celltrain.tune"
    facts: dict[str, Any]
    """Name, versions, objectives, parameters, seeds of each stage, runs, failures and warnings."""
    searches: tuple[Searched, ...]
    keeper: object = None
    """The temporary folder of the search, which lives as long as this does."""

    @classmethod
    def _of(cls, facts: Mapping[str, Any], searches: Sequence[Searched]) -> Tuned:
        made = cls.__new__(cls)
        made.facts = dict(facts)
        made.searches = tuple(searches)
        return made

    @classmethod
    def _of_dict(cls, said: Mapping[str, Any]) -> Tuned:
        """Returns the result that `to_dict` gave."""
        facts = {key: value for key, value in said.items() if key != "searches"}
        return cls._of(facts, TypeAdapter(tuple[Searched, ...]).validate_python(said["searches"]))

    def to_dict(self) -> dict[str, Any]:
        """Returns the answer of `celltrain tune --json`."""
        return {**self.facts, "searches": _plain(self.searches)}

    def to_json(self) -> str:
        """Returns the answer as text, a line for each trial and setting."""
        said = self.to_dict()
        searches = said.pop("searches")
        lines = [f"{json.dumps(key)}: {_json(value)}" for key, value in said.items()]
        blocks = []
        for search in searches:
            parts = []
            for key, value in search.items():
                rows = isinstance(value, list) and value
                text = "[\n  " + ",\n  ".join(map(_json, value)) + "]" if rows else _json(value)
                parts.append(f"{json.dumps(key)}: {text}")
            blocks.append("{" + ",\n ".join(parts) + "}")
        lines.append('"searches": [' + ",\n".join(blocks) + "]")
        return "{" + ",\n".join(lines) + "}\n"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Settings on a front that carry less than half as much as tail drop."""
        return tuple(self.facts.get("warnings", ()))

    @checked()
    def drawing(self, *, width: str = "page", style: str | None = None) -> Drawing:
        """Draws the fronts: a panel for each configuration.

        Args:
            width: `"page"` (7.2 inches), or `"column"` (3.5 inches).
            style: A style of matplotlib, by its name or its file; ours when None.

        Raises:
            InputError: If there is no such width or style.
        """
        from celltrain.drawing.figure import FigureStyle
        from celltrain.ensemble.tuning.figure import fronts

        return fronts(self.facts, self.searches, FigureStyle.of(width, style))

    def html(self) -> str:
        """Returns the report as one page that needs nothing else."""
        from celltrain.ensemble.tuning.page import page

        return page(self.facts, self.searches, (self.drawing(), self.drawing(width="column")))

    @checked()
    def write(
        self,
        folder: str | os.PathLike[str],
        *,
        style: str | None = None,
        progress: Callable[[float], object] | None = None,
    ) -> list[Path]:
        """Writes the page, the answer as JSON and the figure as SVG and PDF into a folder; returns the files.

        Args:
            folder: The folder, which is made if it does not exist.
            style: Of the figure: a style of matplotlib, by its name or its file; ours when None.
            progress: Called with the share that is done, 0 to 1.

        Raises:
            InputError: If there is no such style.
        """
        from celltrain.drawing.pages.html import write_figure
        from celltrain.ensemble.tuning.page import page

        with writing(folder):
            drawings = self.drawing(style=style), self.drawing(width="column", style=style)
            written = write_figure(*drawings, inner(Path(folder) / "figures"))
            if progress is not None:
                progress(0.8)
            answer, html = Path(folder) / "tune.json", Path(folder) / "tune.html"
            replace(answer, self.to_json())
            # Last, so that a folder with a page has everything.
            replace(html, page(self.facts, self.searches, drawings))
        return [html, answer, *written]

    def __repr__(self) -> str:
        return f"Tuned({self.facts['name']!r}, {len(self.searches)} searches of {self.facts['trials']} trials)"


def _plain(value: Any) -> Any:
    """Returns a value as JSON has it."""
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
