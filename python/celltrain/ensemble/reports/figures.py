"""The figures of a report, on matplotlib figures that no window ever shows; every axis is labelled with its unit.

The same data give the same SVG and PDF, byte for byte, as long as matplotlib is the same.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from celltrain.drawing.axes import legible
from celltrain.drawing.pages import words
from celltrain.drawing.pages.drawing import (
    BARS,
    MAP,
    MOST_ACROSS,
    MOST_MARKS,
    Drawing,
    Look,
    bars,
    colour_of,
    direction,
    fit,
    headed,
    new_figure,
    panelled,
)
from celltrain.drawing.pages.labels import put, thinned
from celltrain.drawing.style import COLOURS, GREY, INK, MARKERS, PALE
from celltrain.ensemble.columns import bounds
from celltrain.ensemble.reports.analysis import Analysis, Comparison, Effect, Part, titled
from celltrain.ensemble.reports.data import Axis, Data, Factor, Measure
from celltrain.running import statistics

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# More of these than a figure can show with sense.
MOST_PANELS = 12
MOST_PAIRED = 4
#: Maps beside each other: their cells need room.
MAPS_ACROSS = 2
#: How tall a figure with one panel is, by its width; a digit, by the size of its letters.
TALL = 0.7
WIDE_DIGIT = 0.62
MOST_COLOURS = len(COLOURS)
MOST_TICKS = 12
MOST_FIGURES_IN_CELLS = 90
MOST_NUMBERED = 12
MOST_BARRED = 40
MOST_BINS = 30
#: Characters above a panel, by the width of the figure.
LONGEST_TITLE = {"column": 44, "page": 34}


def front(analysis: Analysis, look: Look) -> Drawing | None:
    """The points by two measures, with the Pareto front of each configuration; None where there are not two."""
    trade = analysis.front
    if trade is None:
        return None
    data = analysis.data
    across, up = (data.measures[i] for i in (trade.x, trade.y))
    colouring = analysis.colouring
    # Those of the legend: the front, and the values of an axis that is told by colours.
    named = colouring is not None and len(colouring.axis.values) <= MOST_COLOURS
    entries = 1 + (len(colouring.axis.values) if colouring is not None and named else 0)
    drawn = [trade.parts[place] for place in _spread(len(trade.parts), MOST_PANELS)]
    sure = np.isnan(data.means[trade.x].half).all()
    marks = "" if sure else f"grey {BARS}"
    if len(drawn) == 1:
        figure, axes = _single(look, entries, marks)
        grid = [axes]
    else:
        figure, grid = panelled(len(drawn), look, height=2.7, extra=0.3, most=MOST_ACROSS, marks=marks)
    image = None
    for panel, part in zip(grid, drawn, strict=True):
        chosen = np.ones(len(data.points), np.bool_) if trade.by is None else trade.by.levels == part.level
        image = _trade_off(panel, analysis, part, chosen)
        if trade.by is not None:
            panel.set_title(legible(titled(trade.by, part.level), LONGEST_TITLE[look.width]), fontsize="small")
    columns = look.shape(len(grid), MOST_ACROSS)[1] if len(grid) > 1 else 1
    for place, panel in enumerate(grid):
        if look.narrow or columns > 2:
            # Numbers of four digits need more room than a narrow panel has for five of them.
            panel.locator_params(axis="x", nbins=3)
        if place % columns == 0:
            panel.set_ylabel(direction(_measured(up), trade.larger_y))
        if place + columns >= len(grid):
            panel.set_xlabel(direction(_measured(across), trade.larger_x))
    if image is not None and colouring is not None:
        _coloured_bar(figure, grid, image, colouring.axis)
    _legend(figure, grid, look, "" if colouring is None else _axis_label(colouring.axis))
    # What stands where is known now.
    figure.draw_without_rendering()
    x, y = data.means[trade.x].mean, data.means[trade.y].mean
    for panel, part in zip(grid, drawn, strict=True):
        numbered = _spread(len(part.order), MOST_NUMBERED)
        beside = [(float(x[part.order[i]]), float(y[part.order[i]])) for i in numbered]
        own = np.ones(len(x), np.bool_) if trade.by is None else trade.by.levels == part.level
        put(panel, beside, [str(i + 1) for i in numbered], hidden=np.stack([x, y], axis=1)[own])
    whose = "the means" if all(_barred(data, trade.by, part) for part in drawn) else "the fronts' means"
    of_each = "" if trade.by is None else f" A panel for each {trade.by.axis.worded}."
    some = "" if len(drawn) == len(trade.parts) else " Not all have one."
    caption = (
        "Every dot is a point of the sweep: the mean over its seeds. Ringed and numbered: the Pareto front, points that no "
        f"other{' of its configuration' if trade.by is not None else ''} beats in both measures.{of_each}{some}"
        f"{'' if sure else f' Grey bars: the 95 % intervals of {whose}.'}"
    )
    title = f"{words.measure(up.name)} against {words.measure(across.name)}"
    return Drawing(name="front", title=title, caption=caption, figure=figure, look=look)


def _barred(data: Data, by: Factor | None, part: Part) -> bool:
    """Whether every point of a configuration shows its interval; of many the intervals would hide the points."""
    return (len(data.points) if by is None else int((by.levels == part.level).sum())) <= MOST_BARRED


def _trade_off(axes: Axes, analysis: Analysis, part: Part, chosen: NDArray[np.bool_]) -> Any:
    """The points of one configuration with their front; what its colours are scaled by, where they are."""
    data, trade = analysis.data, analysis.front
    assert trade is not None, "asked for where there is one"
    x, y = data.means[trade.x], data.means[trade.y]
    image = _coloured(axes, analysis.colouring, x.mean, y.mean, chosen)
    line = part.order
    barred = np.flatnonzero(chosen) if _barred(data, trade.by, part) else line
    across, up = data.measures[trade.x], data.measures[trade.y]
    style: dict[str, Any] = {"fmt": "none", "ecolor": GREY, "elinewidth": 0.7, "alpha": 0.7, "zorder": 1}
    axes.errorbar(
        x.mean[barred], y.mean[barred], xerr=_bars(x, across)[:, barred], yerr=_bars(y, up)[:, barred], **style
    )
    axes.plot(x.mean[line], y.mean[line], color=INK, linewidth=1, zorder=2, drawstyle="steps-post")
    axes.scatter(x.mean[line], y.mean[line], s=70, facecolors="none", edgecolors=INK, zorder=4, label="Pareto front")
    axes.locator_params(nbins=5)
    return image


def effects(analysis: Analysis, measure: int, look: Look) -> Drawing | None:
    """What each axis does to a measure, all else averaged over; None where nothing varies."""
    data = analysis.data
    mine = [analysis.effects[measure][i] for i in range(len(data.factors))]
    if not mine:
        return None
    about = data.measures[measure]
    known = any(bool((effect.means.half > 0).any()) for effect in mine)
    marks = "bars or band: 95 % intervals" if known else ""
    figure, grid = panelled(len(mine), look, height=2.6, marks=marks, sharey=True)
    for axes, effect in zip(grid, mine, strict=True):
        _effect(axes, effect, about)
        axes.set_title(f"{effect.share:.0%} of the differences", fontsize="small", color="#555555")
    for axes in grid[:: look.shape(len(grid), MOST_ACROSS)[1]]:
        axes.set_ylabel(_measured(about))
    parts = [
        "The mean over all points with a value of the axis, everything else averaged over. Above each panel: how much of the "
        "differences between points the axis makes up."
    ]
    if known:
        parts.append("Bars or band: its 95 % interval, the seeds' spread alone.")
    if any(effect.factor.axis.sampled for effect in mine):
        parts.append("Axes that were sampled are cut into ranges of equally many points (grey dots: the points).")
    return Drawing(
        name=f"effects-{analysis.slug(measure)}",
        title=f"{words.measure(about.name)}: what each axis does",
        caption=" ".join(parts),
        figure=figure,
        look=look,
    )


def heat_map(analysis: Analysis, measure: int, look: Look) -> Drawing | None:
    """A measure over two axes, a panel for each value of a third; None below two axes with a grid."""
    layout = analysis.layout
    if layout is None:
        return None
    data = analysis.data
    about, means = data.measures[measure], data.means[measure].mean
    across, up, third = layout
    panels: Sequence[int | None] = [None]
    if third is not None:
        panels = _spread(len(third.axis.values), MOST_PANELS)
    maps = []
    for panel in panels:
        chosen = np.ones(len(means), np.bool_) if third is None else third.levels == panel
        maps.append(_averaged(across, up, np.where(chosen, means, np.nan)))
    height = 4.2 if len(panels) == 1 and not look.narrow else 2.9
    figure, grid = panelled(len(panels), look, height=height, most=MAPS_ACROSS, sharex=True, sharey=True)
    for place, (axes, panel, values) in enumerate(zip(grid, panels, maps, strict=True)):
        image = _cells(axes, look, len(maps), (across.axis, up.axis), values, limits=_limits(maps))
        if third is not None and panel is not None:
            axes.set_title(_titled(third.axis, panel))
        _outer(axes, place, len(panels), look)
    figure.colorbar(image, ax=list(grid), label=_measured(about), fraction=0.06, pad=0.02)
    thinned(figure)
    rest = [f.axis.worded for f in data.factors if f not in (across, up, third)]
    over = f" A panel for each value of {third.axis.worded}." if third is not None else ""
    some = "" if third is None or len(panels) == len(third.axis.values) else " Not all values have one."
    holes = " Hatched: no values, or the same scenario as an earlier point." if _holes(maps) else ""
    also = f" Averaged over {', '.join(rest)}." if rest else ""
    caption = f"The mean over the seeds for each {across.axis.worded} and {up.axis.worded}.{over}{some}{also}{holes}"
    title = f"{words.measure(about.name)} over {across.axis.worded} and {up.axis.worded}"
    return Drawing(name=f"map-{analysis.slug(measure)}", title=title, caption=caption, figure=figure, look=look)


def pairs(analysis: Analysis, measure: int, look: Look) -> Drawing | None:
    """A measure over every pair of axes that have a grid, the others averaged over; None below three of them."""
    data = analysis.data
    grids = analysis.strongest([f for f in data.factors if not f.axis.sampled], MOST_PAIRED)
    if len(grids) < 3:
        return None
    about, means = data.measures[measure], data.means[measure].mean
    both = list(itertools.combinations(grids, 2))
    both = [_oriented(*pair) for pair in both]
    maps = [_averaged(across, up, means) for across, up in both]
    figure, grid = panelled(len(both), look, height=3.0, most=MAPS_ACROSS)
    for axes, (across, up), values in zip(grid, both, maps, strict=True):
        image = _cells(axes, look, len(maps), (across.axis, up.axis), values, limits=_limits(maps))
        axes.set_xlabel(_axis_label(across.axis))
        axes.set_ylabel(_axis_label(up.axis))
    figure.colorbar(image, ax=list(grid), label=_measured(about), fraction=0.06, pad=0.02)
    thinned(figure)
    few = f" Of {len(data.factors)} axes the {MOST_PAIRED} that matter most." if len(data.factors) > MOST_PAIRED else ""
    return Drawing(
        name=f"pairs-{analysis.slug(measure)}",
        title=f"{words.measure(about.name)} over every pair of axes",
        caption=f"In each panel the mean over the seeds and over all axes that are not in it.{few}",
        figure=figure,
        look=look,
    )


def sample(analysis: Analysis, measure: int, look: Look) -> Drawing | None:
    """A measure over pairs of sampled axes, a dot for each draw; None below two of them."""
    data = analysis.data
    drawn = analysis.strongest([f for f in data.factors if f.axis.sampled], MOST_PAIRED)
    if len(drawn) < 2:
        return None
    about, means = data.measures[measure], data.means[measure].mean
    both = list(itertools.combinations(drawn, 2))
    # Points of one draw that differ in other axes stand in one place.
    spots, spot = np.unique(np.stack([f.levels for f in data.factors if f.axis.sampled]), axis=1, return_inverse=True)
    spot = spot.reshape(-1)
    good = ~np.isnan(means)
    values = statistics.means(spot[good], means[good], spots.shape[1]).mean
    _, first = np.unique(spot, return_index=True)
    tall = 4.2 if len(both) == 1 and not look.narrow else 2.9
    figure, grid = panelled(len(both), look, height=tall, most=MAPS_ACROSS)
    for axes, (across, up) in zip(grid, both, strict=True):
        at, height = (_places(f.axis)[f.levels[first]] for f in (across, up))
        size_of_dots, rasterized = (26 if len(values) < 400 else 10), len(values) > MOST_MARKS
        image = axes.scatter(at, height, c=values, cmap=MAP, s=size_of_dots, linewidths=0, rasterized=rasterized)
        _scale(axes, "x", across.axis)
        _scale(axes, "y", up.axis)
    figure.colorbar(image, ax=list(grid), label=_measured(about), fraction=0.06, pad=0.02)
    rest = [f.axis.worded for f in data.factors if not f.axis.sampled]
    also = f" Averaged over {', '.join(rest)}." if rest else ""
    return Drawing(
        name=f"sample-{analysis.slug(measure)}",
        title=f"{words.measure(about.name)} over the sampled axes",
        caption=f"A dot for each draw: the colour is the mean over its seeds.{also}",
        figure=figure,
        look=look,
    )


def spread(analysis: Analysis, look: Look) -> Drawing | None:
    """What the seeds gave, where nothing but the seed varies; None where something does, or there is one seed."""
    data = analysis.data
    if data.factors or data.seeds[1] < 2:
        return None
    figure, grid = panelled(len(data.measures), look, height=2.6, marks="line and band: the mean and its 95 % interval")
    for i, (axes, about) in enumerate(zip(grid, data.measures, strict=True)):
        values = data.values[:, i][~np.isnan(data.values[:, i])]
        mean, half = data.means[i].mean[0], data.means[i].half[0]
        if len(values):
            # What differs by no more than rounding is one value.
            same = np.ptp(values) <= 1e-9 * np.abs(values).max()
            bins = 1 if same else min(MOST_BINS, math.ceil(math.sqrt(len(values))))
            axes.hist(values, bins=bins, color=colour_of(0), alpha=0.5, edgecolor="white")
            axes.axvline(mean, color=INK, linewidth=1)
            below, above = bars(mean, half, bounds(about.name))
            axes.axvspan(mean - below, mean + above, color=colour_of(1), alpha=0.25, linewidth=0)
        axes.set(xlabel=_measured(about), ylabel="runs")
    return Drawing(
        name="spread",
        title="What the seeds gave",
        caption="Runs by their value. Line and band: the mean and its 95 % interval.",
        figure=figure,
        look=look,
    )


def comparison(compared: Comparison, look: Look) -> Drawing:
    """Every point's means in two stores against each other, a panel for each measure."""
    figure, grid = panelled(len(compared.measures), look, height=3.2, most=MAPS_ACROSS, marks=BARS)
    for axes, (about, moved) in zip(grid, compared.measures, strict=True):
        first, second, beyond = moved.first, moved.second, moved.differences.beyond
        rasterized = len(first.mean) > MOST_MARKS
        ends = np.concatenate([first.mean, second.mean])
        ends = ends[~np.isnan(ends)]
        if len(ends):
            axes.axline((ends[0], ends[0]), slope=1, color=PALE, linewidth=1, zorder=1)
        for chosen, colour, label in ((~beyond, GREY, "within the spread"), (beyond, colour_of(1), "beyond it")):
            if chosen.any():
                style: dict[str, Any] = {"fmt": "none", "ecolor": colour, "elinewidth": 0.6, "alpha": 0.5}
                if not rasterized:
                    axes.errorbar(
                        first.mean[chosen],
                        second.mean[chosen],
                        xerr=_bars(first, about)[:, chosen],
                        yerr=_bars(second, about)[:, chosen],
                        **style,
                    )
                axes.scatter(
                    first.mean[chosen], second.mean[chosen], color=colour, s=16, label=label, rasterized=rasterized
                )
        name = _measured(about)
        axes.set_xlabel(f"{name}\n{compared.first}")
        axes.set_ylabel(f"{name}\n{compared.second}")
    handles = {label: handle for axes in grid for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(
        handles.values(), handles, loc="outside lower center", ncols=look.columns(list(handles)), fontsize="small"
    )
    return Drawing(
        name="comparison",
        title="Every point in both stores",
        caption="On the line nothing has moved. Bars: the 95 % intervals of the means.",
        figure=figure,
        look=look,
    )


def _effect(axes: Axes, effect: Effect, about: Measure) -> None:
    axis, means = effect.factor.axis, effect.means
    if axis.sampled:
        axes.scatter(
            _places(axis)[effect.factor.levels],
            effect.of_points,
            color=PALE,
            s=6,
            linewidths=0,
            rasterized=len(effect.of_points) > MOST_MARKS,
        )
    _, size = _ruler(axis)
    at = np.arange(len(axis.values), dtype=np.float64) if axis.words else effect.places / size
    ends = _bars(means, about)
    line = 0 if axis.words else 1.2
    if len(at) > MOST_BARRED:
        rasterized = len(at) > MOST_MARKS
        axes.plot(at, means.mean, color=colour_of(0), linewidth=line or 0.6, rasterized=rasterized)
        band: dict[str, Any] = {"color": colour_of(0), "alpha": 0.2, "linewidth": 0, "rasterized": rasterized}
        axes.fill_between(at, means.mean - ends[0], means.mean + ends[1], **band)
    else:
        style: dict[str, Any] = {"marker": "o", "markersize": 4, "elinewidth": 1.2, "capsize": 2}
        axes.errorbar(at, means.mean, yerr=ends, color=colour_of(0), linewidth=line, **style)
    if axis.words:
        _ticks(axes, "x", axis)
        axes.set_xlim(-0.5, len(axis.values) - 0.5)
        axes.grid(visible=False, axis="x")
        axes.set_xlabel(_axis_label(axis))
    else:
        _scale(axes, "x", axis)


def _coloured(axes: Axes, factor: Factor | None, x: NDArray[Any], y: NDArray[Any], chosen: NDArray[np.bool_]) -> Any:
    """Dots coloured by an axis: by name where there are few values, by a scale, which is returned, where they are many."""
    common: dict[str, Any] = {"s": 20, "linewidths": 0, "zorder": 3, "rasterized": int(chosen.sum()) > MOST_MARKS}
    if factor is None:
        axes.scatter(x[chosen], y[chosen], color=colour_of(0), **common)
        return None
    axis = factor.axis
    if axis.sampled or len(axis.values) > MOST_COLOURS:
        from matplotlib.colors import LogNorm, Normalize

        places = _places(axis)
        # The same colours in all panels.
        norm = (LogNorm if axis.logarithmic else Normalize)(float(places.min()), float(places.max()))
        return axes.scatter(x[chosen], y[chosen], c=places[factor.levels[chosen]], cmap=MAP, norm=norm, **common)
    from matplotlib import colormaps

    ordered = not axis.words
    for level in range(len(axis.values)):
        own = chosen & (factor.levels == level)
        colour = colormaps[MAP](level / max(len(axis.values) - 1, 1) * 0.92) if ordered else colour_of(level)
        marker = "o" if ordered else MARKERS[level]
        text = _shortened(words.valued(axis.values[level], axis.unit))
        axes.scatter(x[own], y[own], color=[colour], marker=marker, label=text, **common)
    return None


def _coloured_bar(figure: Figure, grid: Sequence[Axes], image: Any, axis: Axis) -> None:
    bar = figure.colorbar(image, ax=list(grid), label=_axis_label(axis), pad=0.02, format="{x:g}")
    if axis.words:
        chosen = _spread(len(axis.values), MOST_TICKS)
        bar.set_ticks(chosen, labels=[_shortened(str(axis.values[i])) for i in chosen])


def _cells(
    axes: Axes,
    look: Look,
    panels: int,
    both: tuple[Axis, Axis],
    values: NDArray[np.float64],
    limits: tuple[float, float],
) -> Any:
    """A map of the values, rows up and columns across, with their figures where there is room."""
    across, up = both
    rows, columns = values.shape
    image = axes.pcolormesh(
        np.arange(columns + 1) - 0.5,
        np.arange(rows + 1) - 0.5,
        np.ma.masked_invalid(values),
        cmap=MAP,
        vmin=limits[0],
        vmax=limits[1],
        rasterized=values.size > MOST_MARKS,
    )
    axes.set_facecolor("#E4E7EB")
    if np.isnan(values).any():
        axes.patch.set(hatch="///", edgecolor="#AAB0B8")
    axes.grid(visible=False)
    texts = {place: _in_cell(values[place], limits) for place in map(tuple, np.argwhere(~np.isnan(values)).tolist())}
    size = 7 if columns <= 6 else 6
    # Beside the panels stand the labels of rows and the scale.
    room = 0.62 * look.inches / look.shape(panels, MAPS_ACROSS)[1] / columns
    longest = max((len(text) for text in texts.values()), default=0)
    if values.size <= MOST_FIGURES_IN_CELLS and longest * size * WIDE_DIGIT / 72 < room:
        dark = sum(limits) / 2 + (limits[1] - limits[0]) * 0.1
        for (row, column), text in texts.items():
            colour = "white" if values[row, column] < dark else INK
            axes.text(column, row, text, ha="center", va="center", fontsize=size, color=colour)
    _ticks(axes, "x", across)
    _ticks(axes, "y", up)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0)
    axes.set_xlabel(_axis_label(across))
    axes.set_ylabel(_axis_label(up))
    return image


def _in_cell(value: float, limits: tuple[float, float]) -> str:
    """A value as a map writes it: with as many digits as the largest needs."""
    largest = max(map(abs, limits))
    if largest < 0.1:
        return f"{value:.2g}"
    return f"{value:.2f}" if largest < 10 else f"{value:,.0f}"


def _averaged(across: Factor, up: Factor, means: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of the points in each cell of two axes; NaN where there is none."""
    rows, columns = len(up.axis.values), len(across.axis.values)
    cell = up.levels * columns + across.levels
    good = ~np.isnan(means)
    return statistics.means(cell[good], means[good], rows * columns).mean.reshape(rows, columns)


def _oriented(first: Factor, second: Factor) -> tuple[Factor, Factor]:
    """Which of two axes lies across: numbers rather than words, whose names need room; else the longer."""
    key = [(not f.axis.words, len(f.axis.values)) for f in (first, second)]
    return (first, second) if key[0] >= key[1] else (second, first)


def _limits(maps: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
    values = np.concatenate([one[~np.isnan(one)] for one in maps])
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _holes(maps: Sequence[NDArray[np.float64]]) -> bool:
    return any(bool(np.isnan(one).any()) for one in maps)


def _outer(axes: Axes, place: int, count: int, look: Look) -> None:
    """Labels only at the figure's edges, where panels share their axes."""
    across = look.shape(count, MAPS_ACROSS)[1]
    if place % across:
        axes.set_ylabel("")
        axes.tick_params(labelleft=False)
    if place + across < count:
        axes.set_xlabel("")
        axes.tick_params(labelbottom=False)
    else:
        axes.tick_params(labelbottom=True)


def _scale(axes: Axes, side: Literal["x", "y"], axis: Axis) -> None:
    """A numeric axis: linear or logarithmic, ticks at its values where these are few."""
    getattr(axes, f"set_{side}label")(_axis_label(axis))
    if axis.logarithmic:
        from matplotlib.ticker import LogLocator, NullFormatter

        getattr(axes, f"set_{side}scale")("log")
        ruler = getattr(axes, f"{side}axis")
        ruler.set_major_formatter("{x:g}")
        ruler.set_minor_formatter(NullFormatter())
        ruler.set_minor_locator(LogLocator(subs="all"))
    elif axis.sampled:
        axes.locator_params(axis=side, nbins=5)
    places = _places(axis)
    texts = [words.plain(float(place)) for place in places]
    few = not axis.sampled and len(texts) <= 6
    if few and (side == "y" or fit(axes, places.tolist(), texts, logarithmic=axis.logarithmic)):
        getattr(axes, f"set_{side}ticks")(places, texts)
        axes.minorticks_off()
    elif not axis.logarithmic:
        axes.locator_params(axis=side, nbins=4)


def _ticks(axes: Axes, side: str, axis: Axis) -> None:
    """A tick at every value, evenly spaced, or at some of them where they are many."""
    places = _spread(len(axis.values), MOST_TICKS)
    texts = [_shortened(str(axis.values[i])) if axis.words else words.plain(_places(axis)[i]) for i in places]
    long = sum(map(len, texts)) > 26 and side == "x"
    turned: dict[str, Any] = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"} if long else {}
    getattr(axes, f"set_{side}ticks")(places, texts, **turned)


def _shortened(text: str) -> str:
    return legible(text, 24)


def _places(axis: Axis) -> NDArray[np.float64]:
    """Where the values stand: numbers in the unit shown, words one after the other."""
    if axis.words:
        return np.arange(len(axis.values), dtype=np.float64)
    return np.array(axis.values, dtype=np.float64) / _ruler(axis)[1]


def _ruler(axis: Axis) -> tuple[str, float]:
    return ("", 1.0) if axis.words else words.ruler(axis.unit, [float(value) for value in axis.values])


def _axis_label(axis: Axis) -> str:
    return words.labelled(axis.worded, _ruler(axis)[0])


def _measured(measure: Measure) -> str:
    """A measure as the label of an axis, with its unit."""
    return words.labelled(words.measure(measure.name, measure.unit), "")


def _titled(axis: Axis, level: int) -> str:
    if axis.words:
        return _shortened(str(axis.values[level]))
    return f"{axis.worded} {words.valued(axis.values[level], axis.unit)}"


def _spread(count: int, most: int) -> list[int]:
    """At most so many of 0 to count - 1, both ends among them."""
    if count <= most:
        return list(range(count))
    return [round(i * (count - 1) / (most - 1)) for i in range(most)]


def _bars(means: statistics.Means, about: Measure) -> NDArray[np.float64]:
    return bars(means.mean, means.half, bounds(about.name))


def _single(look: Look, entries: int, marks: str) -> tuple[Figure, Axes]:
    # A narrow figure has its legend in a column of its own.
    height = look.inches * TALL + 0.3 if not look.narrow else look.inches + 0.16 * entries
    figure = new_figure(figsize=(look.inches, height + 0.16 * len(look.subtitle(marks))), layout="constrained")
    headed(figure, look, marks)
    return figure, figure.add_subplot()


def _legend(figure: Figure, grid: Sequence[Axes], look: Look, name: str) -> None:
    handles = {text: handle for axes in grid for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    labels = list(handles)
    # Without values there is a scale beside the axes, which says what it is.
    title = name if len(labels) > 1 else None
    figure.legend(
        handles.values(),
        labels,
        title=title,
        loc="outside lower center",
        ncols=look.columns(labels),
        fontsize="small",
        title_fontsize="small",
    )
