"""The result of a search as plain data, as JSON, as a figure and as a page."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, TypeAdapter

from celltrain.drawing import figure as canvas
from celltrain.drawing import words
from celltrain.drawing.figure import Drawing, FigureStyle, colour_of
from celltrain.drawing.html import Inlined, render, write_figure
from celltrain.ensemble.cases import bounds
from celltrain.model.arguments import checked
from celltrain.model.files import inner, replace, writing
from celltrain.model.grids import Block, Card, CardMixin, Grid, Line
from celltrain.running.tables import flat
from celltrain.text import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Margin around the confirmed settings in a panel, as a fraction of the measure.
MARGIN = 0.12
#: Markers for references, because a style may have too few colours.
MARKS = "D^vsPX"
#: Length of the arrow at a trial that is a lower bound, in points (1/72 inch).
SHORT = 10.0


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A mean and half the width of its 95 % interval. The half width is NaN for fewer than two values.

    If `censored` is true, the mean is a lower bound, because some of the values are.
    """

    mean: float
    half: Annotated[float, BeforeValidator(lambda half: math.nan if half is None else half)]
    censored: bool = False

    def text(self) -> str:
        """Formats the mean with its interval."""
        text = words.estimated(self.mean, self.half)
        return words.at_least(text) if self.censored else text

    @property
    def beyond(self) -> bool:
        """True if the interval excludes zero."""
        return abs(self.mean) > self.half


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A trial with the few seeds of the search. The best trials look better than they are.

    Attributes:
        generation: Number of the trial's generation, from 0.
        parameters: Values by name.
        means: Means of the objectives; None if the trial failed.
        error: The reason why the trial failed, or None.
        censored: For each objective, whether its mean is a lower bound, because some of the values are.
    """

    generation: int
    parameters: dict[str, float]
    means: tuple[float, float] | None
    error: str | None
    censored: tuple[bool, bool] = (False, False)

    def text(self, objective: int) -> str:
        """Formats the mean of an objective."""
        text = words.figure((self.means or (math.nan, math.nan))[objective])
        return words.at_least(text) if self.censored[objective] else text


@dataclass(frozen=True, kw_only=True)
class Confirmed:
    """A setting that ran with the confirmation seeds, which played no part in choosing the setting.

    Attributes:
        parameters: Values by name.
        estimates: Estimates of the objectives; None if a run failed.
        label: Label of the reference; None if the setting is not a reference.
        chosen: True if the setting was on the front in the selection.
        front: True if no other setting beats it in the confirmed means.
    """

    parameters: dict[str, float]
    estimates: tuple[Estimate, Estimate] | None
    label: str | None
    chosen: bool
    front: bool


@dataclass(frozen=True, kw_only=True)
class Left:
    """Gain over a reference: the best setting in one objective, among settings that are at least as good in the other.

    The setting is chosen with the selection seeds. The differences (setting minus reference) are from the confirmation
    seeds, paired by seed.

    Attributes:
        reference: Label of the reference.
        objective: 0 or 1: index of the objective that is optimised.
        parameters: Values of the setting by name.
        same: True if the setting is the reference itself, as nothing better was found.
        estimates: Estimates of the objectives.
        differences: Differences in the unit of the measure. Positive does not imply better.
    """

    reference: str
    objective: int
    parameters: dict[str, float]
    same: bool
    estimates: tuple[Estimate, Estimate]
    differences: tuple[Estimate, Estimate]


@dataclass(frozen=True, kw_only=True)
class Searched:
    """The result of one configuration.

    Attributes:
        values: Values by axis.
        title: Title in pages and figures.
        trials: Trials in order.
        confirmed: Settings from the best in the first objective.
        left: Gains over the references.
    """

    values: dict[str, float | str]
    title: str
    trials: tuple[Tried, ...]
    confirmed: tuple[Confirmed, ...]
    left: tuple[Left, ...]

    @property
    def is_bound(self) -> bool:
        """True if an estimate is only a lower bound."""
        every = [*(one.estimates or () for one in self.confirmed), *(one.estimates for one in self.left)]
        return any(estimate.censored for estimates in every for estimate in estimates)

    @property
    def has_bounds(self) -> bool:
        """True if an estimate or the mean of a trial is only a lower bound."""
        return self.is_bound or any(any(trial.censored) for trial in self.trials)

    def of_bounds(self, gain: Left, objective: int, difference: str) -> str:
        """Marks the formatted difference of a setting and a reference if one of them is a lower bound."""
        references = [one.estimates for one in self.confirmed if one.label == gain.reference]
        second = any(own is not None and own[objective].censored for own in references)
        first = gain.estimates[objective].censored
        return words.of_bounds(difference, first=first, second=second) if first or second else difference


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Tuned(CardMixin):
    """The result of a search.

    Attributes:
        facts: Name, versions, objectives, parameters, seeds of each stage, runs, failures and warnings.
        searches: The result of each configuration.
        keeper: The temporary folder of the search, which is deleted with this object.
    """

    facts: dict[str, Any]
    searches: tuple[Searched, ...]
    keeper: object = None

    @classmethod
    def _of_dict(cls, answer: Mapping[str, Any]) -> Tuned:
        """Returns the result from the output of `to_dict`."""
        facts = {key: value for key, value in answer.items() if key != "searches"}
        return cls(facts=facts, searches=TypeAdapter(tuple[Searched, ...]).validate_python(answer["searches"]))

    def to_dict(self) -> dict[str, Any]:
        """Returns the answer of `celltrain tune --json`."""
        # pydantic writes NaN as null.
        searches = json.loads(TypeAdapter(tuple[Searched, ...]).dump_json(self.searches), object_hook=_of_estimate)
        return {**self.facts, "searches": searches}

    def to_json(self) -> str:
        """Returns the answer as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=1) + "\n"

    def rows(self) -> list[dict[str, Any]]:
        """Returns the confirmed settings with the estimates of both objectives."""
        names = [one["measure"] for one in self.facts["objectives"]]
        return [
            {"configuration": search.title, "front": one.front, **one.parameters}
            | {name: _of_estimate(asdict(estimate)) for name, estimate in zip(names, one.estimates, strict=True)}
            for search in self.searches
            for one in search.confirmed
            if one.estimates is not None
        ]

    def to_pandas(self) -> Any:
        """Returns `rows` as a pandas DataFrame; needs `pip install celltrain[frames]`."""
        import pyarrow as pa

        return pa.Table.from_pylist(list(map(flat, self.rows()))).to_pandas()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about settings on a front that deliver less than half of tail drop's data."""
        return tuple(self.facts.get("warnings", ()))

    @checked()
    def drawing(self, *, width: str = "page", style: str | None = None) -> Drawing:
        """Draws the fronts, with a panel for each configuration.

        Args:
            width: `"page"` (7.2 inches), or `"column"` (3.5 inches).
            style: A matplotlib style, by name or file; celltrain's own when None.

        Raises:
            InputError: If the width or the style is unknown.
        """
        return _fronts(self.facts, self.searches, FigureStyle.of(width, style))

    def html(self) -> str:
        """Returns the report as one self-contained page."""
        return self._page(self.drawing(), self.drawing(width="column"))

    def _page(self, *drawings: Drawing) -> str:
        """Renders the page with the figure in both widths."""
        title, drawing = self.facts["name"] or "A search", Inlined.of(*drawings)
        content = {"title": title, "facts": self.facts, "searches": self.searches, "drawing": drawing}
        return render("ensemble/tuning/tune.html", "tune", **content)

    @checked()
    def write(
        self,
        folder: str | os.PathLike[str],
        *,
        style: str | None = None,
        progress: Callable[[float], object] | None = None,
    ) -> list[Path]:
        """Writes the page, the answer as JSON and the figure as SVG and PDF to a folder; returns the files.

        Args:
            folder: The folder, which is created if needed.
            style: A matplotlib style for the figure, by name or file; celltrain's own when None.
            progress: Called with the completed fraction, 0 to 1.

        Raises:
            InputError: If the style is unknown.
        """
        with writing(folder):
            drawings = self.drawing(style=style), self.drawing(width="column", style=style)
            written = write_figure(*drawings, inner(Path(folder) / "figures"))
            if progress is not None:
                progress(0.8)
            answer, html = Path(folder) / "tune.json", Path(folder) / "tune.html"
            replace(answer, self.to_json())
            # Write the page last, so that a folder with a page is complete.
            replace(html, self._page(*drawings))
        return [html, answer, *written]

    def blocks(self) -> Iterator[Block]:
        """Yields a table of gains over the references, or of the Pareto fronts if the plan has no references."""
        facts = self.facts
        for warning in self.warnings:
            yield Line(text=f"WARNING: {warning}", style="bold")
        names = [one["measure"] for one in facts["objectives"]]
        units = {one["name"]: one["unit"] for one in facts["parameters"]}
        searches = "1 search" if len(self.searches) == 1 else f"{len(self.searches):,} searches"
        runs = f"{facts['runs']:,} runs, {facts['failed']:,} failed"
        yield Line(text=f"{shown(facts['name'])}: {searches} of {facts['trials']:,} trials, {runs}")
        left = ("configuration", "reference", "best in") if facts["references"] else ("configuration",)
        gains = [f"{name}, gained" for name in names] if facts["references"] else []
        grid = Grid(heads=[*left, *units, *names, *gains], left=range(len(left)))
        for search in self.searches:
            for gain in search.left:
                gained = [
                    "nothing" if gain.same else search.of_bounds(gain, place, f"{d.mean:+.3g} ± {d.half:.2g}").strip()
                    for place, d in enumerate(gain.differences)
                ]
                cells = [one.text() for one in gain.estimates]
                values = [words.valued(gain.parameters[name], unit) for name, unit in units.items()]
                grid.add_row(search.title, gain.reference, names[gain.objective], *values, *cells, *gained)
            for one in search.confirmed if not facts["references"] else ():
                if one.front and one.estimates is not None:
                    values = [words.valued(one.parameters[name], unit) for name, unit in units.items()]
                    grid.add_row(search.title, *values, *(e.text() for e in one.estimates))
        yield grid
        if any(search.is_bound for search in self.searches):
            yield Line(text=words.BOUND, is_note=True)

    def _card(self) -> Card:
        return Card.of(repr(self), self.blocks(), [".write(folder) makes a page with all settings"])

    def __repr__(self) -> str:
        return f"Tuned({self.facts['name']!r}, {len(self.searches)} searches of {self.facts['trials']} trials)"


def _of_estimate(table: dict[str, Any]) -> dict[str, Any]:
    """Removes `censored` where it is false, as answers name only lower bounds."""
    return {key: value for key, value in table.items() if key != "censored" or value not in (False, [False, False])}


def _fronts(facts: Mapping[str, Any], searches: Sequence[Searched], look: FigureStyle) -> Drawing:
    """Draws a panel for each configuration of a search."""
    canvas.require_matplotlib()
    about = facts["objectives"]
    x, y = (canvas.direction(words.label(one["measure"], one["unit"]), one["better"] == "larger") for one in about)
    with look.applied():
        figure, grid = canvas.panelled(len(searches), look, height=2.7, extra=0.1)
        for axes, searched in zip(grid, searches, strict=True):
            _panel(axes, searched, about, [one["label"] for one in facts["references"]])
            axes.set_title(shown(searched.title or facts["name"]), fontsize="small")
        canvas.label_outer(grid, look.shape(len(grid), canvas.MOST_ACROSS)[1], x, y)
        canvas.legend_below(figure, grid, look)
        canvas.fitted(figure)
    few, fresh = (facts["seeds"][stage]["count"] for stage in ("search", "confirmation"))
    caption = (
        f"Pale dots: the trials of the search, means of {few} seeds each. Full dots: the settings chosen among them, "
        f"run again with {fresh} fresh seeds, with 95 % intervals; the line joins the settings that no other beats. "
        "Trials far below are outside the panels."
    )
    if any(one.has_bounds for one in searches):
        caption += f" {canvas.ARROWS[0].upper()}{canvas.ARROWS[1:]}."
    name = " and ".join(one["measure"] for one in about)
    return Drawing(name="fronts", title=f"The fronts of {name}", caption=caption, figure=figure, look=look)


def _panel(axes: Axes, searched: Searched, about: Sequence[Mapping[str, Any]], references: Sequence[str]) -> None:
    done = [trial for trial in searched.trials if trial.means is not None]
    tried = np.array([trial.means for trial in done]).reshape(-1, 2)
    style: dict[str, Any] = {"s": 12, "color": canvas.PALE, "linewidths": 0, "zorder": 1}
    axes.scatter(*tried.T, label="trials", rasterized=len(tried) > canvas.MOST_MARKS, **style)
    lower = np.array([trial.censored for trial in done], np.bool_).reshape(-1, 2)
    _arrows(axes, tried, lower, canvas.PALE, length=SHORT, clip=True)
    known = [one for one in searched.confirmed if one.estimates is not None]
    mean = np.array([[one.mean for one in each.estimates or ()] for each in known]).reshape(-1, 2)
    half = np.array([[one.half for one in each.estimates or ()] for each in known]).reshape(-1, 2)
    barred = [canvas.bars(mean[:, i], half[:, i], bounds(one["measure"])) for i, one in enumerate(about)]
    ends = np.stack(barred, axis=-1)
    bounded = np.array([[one.censored for one in each.estimates or ()] for each in known], np.bool_).reshape(-1, 2)

    def draw(wanted: Sequence[bool], **style: Any) -> None:
        own = np.flatnonzero(wanted)
        if len(own):
            x, y = mean[own].T
            axes.errorbar(x, y, xerr=ends[:, own, 0], yerr=ends[:, own, 1], elinewidth=0.8, linewidth=0, **style)
            _arrows(axes, mean[own], bounded[own], style["color"])

    chosen = [one.chosen for one in known]
    draw(chosen, color=colour_of(0), fmt="o", markersize=4, zorder=3, label="confirmed")
    line = mean[np.flatnonzero([one.front for one in known])]
    if len(line):
        # Draw the front as steps through the worse corners, because points there would be worse than both neighbours.
        steps = "steps-pre" if about[0]["better"] == "larger" else "steps-post"
        axes.plot(*line[np.lexsort(line.T[::-1])].T, color=canvas.INK, linewidth=0.9, zorder=2, drawstyle=steps)
    for place, label in enumerate(references):
        mark = {"color": colour_of(1 + place % 6), "fmt": MARKS[place % len(MARKS)], "markersize": 6}
        draw([one.label == label for one in known], zorder=4, label=canvas.legible(label), **mark)
    if lower.any() or bounded.any():
        canvas.bounds_entry(axes)
    _zoom(axes, np.concatenate([mean - ends[0], mean + ends[1]]), tried)
    axes.locator_params(nbins=5)
    axes.ticklabel_format(useOffset=False)


def _arrows(axes: Axes, means: NDArray[np.float64], bounds: NDArray[np.bool_], colour: str, **style: Any) -> None:
    """Draws arrows at means that are lower bounds, along the axis of each objective."""
    x, y = means.T
    canvas.lower_bounds(axes, x, y, bounds[:, 0], colour, along="x", **style)
    canvas.lower_bounds(axes, x, y, bounds[:, 1], colour, along="y", **style)


def _zoom(axes: Axes, confirmed: NDArray[np.float64], tried: NDArray[np.float64]) -> None:
    """Zooms to the intervals of confirmed settings and trials nearby, as distant trials would squeeze the front."""
    if not len(confirmed):
        return
    low, high = confirmed.min(axis=0), confirmed.max(axis=0)
    span = np.maximum(high - low, MARGIN * np.maximum(np.abs(high), 1e-9))
    near = tried[((tried > low - span) & (tried < high + span)).all(axis=1)]
    every = np.concatenate([confirmed, near])
    low, high = every.min(axis=0), every.max(axis=0)
    pad = MARGIN * np.maximum(high - low, 1e-9 + 0.01 * np.abs(high))
    axes.set(xlim=(low[0] - pad[0], high[0] + pad[0]), ylim=(low[1] - pad[1], high[1] + pad[1]))
