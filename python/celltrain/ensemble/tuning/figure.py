"""The figure of a search: the front of both measures for each configuration, the references marked, the trials pale."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from celltrain.drawing.axes import legible, require_matplotlib
from celltrain.drawing.pages import drawing, words
from celltrain.drawing.style import INK, PALE
from celltrain.ensemble.columns import bounds
from celltrain.text import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from celltrain.drawing.pages.drawing import Drawing, Look
    from celltrain.ensemble.tuning.analysis import Confirmed, Searched
    from celltrain.ensemble.tuning.result import Tuned

MOST_ACROSS = 3
#: Widest and narrowest a panel is, in the unit of the measure, around what matters.
MARGIN = 0.12


def fronts(tuned: Tuned, look: Look) -> Drawing:
    """A panel for each configuration."""
    require_matplotlib()
    about = tuned.facts["objectives"]
    labels = [
        drawing.direction(words.labelled(words.measure(one["measure"], one["unit"]), ""), one["better"] == "larger")
        for one in about
    ]
    with look.applied():
        # Diamonds first; a style of few colours tells references apart by their marks.
        marks = "D^vsPX"
        references = {
            one["label"]: (drawing.colour_of(1 + place % 6), marks[place % len(marks)])
            for place, one in enumerate(tuned.facts["references"])
        }
        figure, grid = drawing.panelled(len(tuned.searches), look, height=2.7, extra=0.1, most=MOST_ACROSS)
        across = look.shape(len(grid), MOST_ACROSS)[1]
        for place, (axes, searched) in enumerate(zip(grid, tuned.searches, strict=True)):
            _panel(axes, searched, about, references)
            axes.set_title(shown(searched.title or tuned.facts["name"]), fontsize="small")
            if place % across == 0:
                axes.set_ylabel(labels[1])
            if place + across >= len(grid):
                axes.set_xlabel(labels[0])
        handles = {
            text: handle for axes in grid for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(
            handles.values(), handles, loc="outside lower center", ncols=look.columns(list(handles)), fontsize="small"
        )
    seeds = tuned.facts["seeds"]
    caption = (
        f"Pale dots: the trials of the search, means of {seeds['search']['count']} seeds each. Full dots: what was chosen among them, run "
        f"again with {seeds['confirmation']['count']} fresh seeds, with 95 % intervals; the line joins those that no other "
        "beats. Trials far below are outside the panels."
    )
    name = " and ".join(one["measure"] for one in about)
    return drawing.Drawing(name="fronts", title=f"The fronts of {name}", caption=caption, figure=figure, look=look)


def _panel(axes: Axes, searched: Searched, about: list[dict[str, Any]], references: dict[str, tuple[str, str]]) -> None:
    tried = np.array([t.means for t in searched.trials if t.means is not None]).reshape(-1, 2)
    rasterized = len(tried) > drawing.MOST_MARKS
    axes.scatter(
        tried[:, 0],
        tried[:, 1],
        s=12,
        color=PALE,
        linewidths=0,
        zorder=1,
        label="trials",
        rasterized=rasterized,
    )
    chosen = [c for c in searched.confirmed if c.chosen and c.estimates is not None]
    limits = [bounds(one["measure"]) for one in about]
    _bars(axes, chosen, limits, color=drawing.colour_of(0), fmt="o", markersize=4, zorder=3, label="confirmed")
    line = sorted(_means(c) for c in searched.confirmed if c.front)
    if line:
        x, y = zip(*line, strict=True)
        # Where it steps, the corner is what both neighbours beat.
        axes.plot(
            x,
            y,
            color=INK,
            linewidth=0.9,
            zorder=2,
            drawstyle="steps-pre" if about[0]["better"] == "larger" else "steps-post",
        )
    for label, (colour, mark) in references.items():
        own = [c for c in searched.confirmed if c.label == label and c.estimates is not None]
        _bars(axes, own, limits, color=colour, fmt=mark, markersize=6, zorder=4, label=legible(label))
    known = [c.estimates for c in searched.confirmed if c.estimates is not None]
    means = np.array([[one.mean for one in both] for both in known]).reshape(-1, 2)
    half = np.array([[one.half for one in both] for both in known], dtype=np.float64).reshape(-1, 2)
    ends = np.stack([drawing.bars(means[:, i], half[:, i], limits[i]) for i in (0, 1)], axis=-1)
    _limits(axes, np.concatenate([means - ends[0], means + ends[1]]), tried)
    axes.locator_params(nbins=5)
    axes.ticklabel_format(useOffset=False)


def _bars(axes: Axes, settings: list[Confirmed], limits: list[tuple[float, float]], **look: Any) -> None:
    estimates = [c.estimates for c in settings if c.estimates is not None]
    if not estimates:
        return
    (x, y), halves = (
        [np.array([getattr(e[i], name) for e in estimates], dtype=np.float64) for i in (0, 1)]
        for name in ("mean", "half")
    )
    dx, dy = (drawing.bars(mean, half, of) for mean, half, of in zip((x, y), halves, limits, strict=True))
    axes.errorbar(x, y, xerr=dx, yerr=dy, elinewidth=0.8, linewidth=0, **look)


def _means(confirmed: Confirmed) -> tuple[float, float]:
    assert confirmed.estimates is not None, "only what has values is on a front"
    return confirmed.estimates[0].mean, confirmed.estimates[1].mean


def _limits(axes: Axes, confirmed: Any, tried: Any) -> None:
    """Room for the intervals of what was confirmed, and for the trials near it: one that collapsed would squeeze the front into a corner."""
    if not len(confirmed):
        return
    low, high = confirmed.min(axis=0), confirmed.max(axis=0)
    span = np.maximum(high - low, MARGIN * np.maximum(np.abs(high), 1e-9))
    near = tried[((tried > low - span) & (tried < high + span)).all(axis=1)]
    every = np.concatenate([confirmed, near])
    low, high = every.min(axis=0), every.max(axis=0)
    pad = 0.12 * np.maximum(high - low, 1e-9 + 0.01 * np.abs(high))
    axes.set_xlim(low[0] - pad[0], high[0] + pad[0])
    axes.set_ylim(low[1] - pad[1], high[1] + pad[1])
