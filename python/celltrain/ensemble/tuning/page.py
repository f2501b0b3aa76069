"""The page of a search, and its figure: the front of both measures for each configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from celltrain.drawing.axes import INK, PALE, legible, require_matplotlib
from celltrain.drawing.figure import (
    MOST_ACROSS,
    MOST_MARKS,
    Drawing,
    FigureStyle,
    bars,
    colour_of,
    direction,
    label_outer,
    legend_below,
    panelled,
)
from celltrain.drawing.pages import words
from celltrain.drawing.pages.html import Inlined, render
from celltrain.ensemble.table import bounds
from celltrain.ensemble.tuning.result import Searched
from celltrain.text import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Margin of a panel around what was confirmed, as a share of the measure.
MARGIN = 0.12
#: Markers of references, as a style with few colours cannot distinguish them by colour.
MARKS = "D^vsPX"


def page(facts: Mapping[str, Any], searches: Sequence[Searched], drawings: tuple[Drawing, Drawing]) -> str:
    """Renders a search as one HTML page, with its figure in both widths."""
    title = facts["name"] or "A search"
    drawing = Inlined.of(*drawings)
    return render("ensemble/tuning/tune.html", "tune", title=title, facts=facts, searches=searches, drawing=drawing)


def fronts(facts: Mapping[str, Any], searches: Sequence[Searched], look: FigureStyle) -> Drawing:
    """Draws a panel for each configuration of a search."""
    require_matplotlib()
    about = facts["objectives"]
    x, y = (
        direction(words.labelled(words.measure(one["measure"], one["unit"]), ""), one["better"] == "larger")
        for one in about
    )
    with look.applied():
        figure, grid = panelled(len(searches), look, height=2.7, extra=0.1)
        for axes, searched in zip(grid, searches, strict=True):
            _panel(axes, searched, about, [one["label"] for one in facts["references"]])
            axes.set_title(shown(searched.title or facts["name"]), fontsize="small")
        label_outer(grid, look.shape(len(grid), MOST_ACROSS)[1], x, y)
        legend_below(figure, grid, look)
    few, fresh = (facts["seeds"][stage]["count"] for stage in ("search", "confirmation"))
    caption = (
        f"Pale dots: the trials of the search, means of {few} seeds each. Full dots: what was chosen among them, run again "
        f"with {fresh} fresh seeds, with 95 % intervals; the line joins those that no other beats. Trials far below are "
        "outside the panels."
    )
    name = " and ".join(one["measure"] for one in about)
    return Drawing(name="fronts", title=f"The fronts of {name}", caption=caption, figure=figure, look=look)


def _panel(axes: Axes, searched: Searched, about: Sequence[Mapping[str, Any]], references: Sequence[str]) -> None:
    tried = np.array([trial.means for trial in searched.trials if trial.means is not None]).reshape(-1, 2)
    style: dict[str, Any] = {"s": 12, "color": PALE, "linewidths": 0, "rasterized": len(tried) > MOST_MARKS}
    axes.scatter(*tried.T, zorder=1, label="trials", **style)
    known = [one for one in searched.confirmed if one.estimates is not None]
    mean = np.array([[one.mean for one in each.estimates or ()] for each in known]).reshape(-1, 2)
    half = np.array([[one.half for one in each.estimates or ()] for each in known]).reshape(-1, 2)
    ends = np.stack([bars(mean[:, i], half[:, i], bounds(one["measure"])) for i, one in enumerate(about)], axis=-1)

    def draw(wanted: Sequence[bool], **style: Any) -> None:
        own = np.flatnonzero(wanted)
        if len(own):
            x, y = mean[own].T
            axes.errorbar(x, y, xerr=ends[:, own, 0], yerr=ends[:, own, 1], elinewidth=0.8, linewidth=0, **style)

    chosen = [one.chosen for one in known]
    draw(chosen, color=colour_of(0), fmt="o", markersize=4, zorder=3, label="confirmed")
    line = mean[np.flatnonzero([one.front for one in known])]
    if len(line):
        # The corners of the steps are points that both neighbours beat.
        steps = "steps-pre" if about[0]["better"] == "larger" else "steps-post"
        axes.plot(*line[np.lexsort(line.T[::-1])].T, color=INK, linewidth=0.9, zorder=2, drawstyle=steps)
    for place, label in enumerate(references):
        mark = {"color": colour_of(1 + place % 6), "fmt": MARKS[place % len(MARKS)], "markersize": 6}
        draw([one.label == label for one in known], zorder=4, label=legible(label), **mark)
    _zoom(axes, np.concatenate([mean - ends[0], mean + ends[1]]), tried)
    axes.locator_params(nbins=5)
    axes.ticklabel_format(useOffset=False)


def _zoom(axes: Axes, confirmed: NDArray[np.float64], tried: NDArray[np.float64]) -> None:
    """Shows the intervals of confirmed settings and the trials near them; a distant trial would squeeze the front."""
    if not len(confirmed):
        return
    low, high = confirmed.min(axis=0), confirmed.max(axis=0)
    span = np.maximum(high - low, MARGIN * np.maximum(np.abs(high), 1e-9))
    near = tried[((tried > low - span) & (tried < high + span)).all(axis=1)]
    every = np.concatenate([confirmed, near])
    low, high = every.min(axis=0), every.max(axis=0)
    pad = MARGIN * np.maximum(high - low, 1e-9 + 0.01 * np.abs(high))
    axes.set(xlim=(low[0] - pad[0], high[0] + pad[0]), ylim=(low[1] - pad[1], high[1] + pad[1]))
