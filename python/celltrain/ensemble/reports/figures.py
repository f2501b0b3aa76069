"""Figures of a report: prepares the data of each for `celltrain.drawing`, with a title and a caption.

With the same version of matplotlib, the same data give byte-identical SVG and PDF files.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from celltrain.drawing import lines, points, words
from celltrain.drawing.figure import ARROWS, BARS, Drawing, FigureStyle, direction, legible
from celltrain.drawing.lines import Scale, spread
from celltrain.drawing.points import Coordinate, Map
from celltrain.ensemble.cases import bounds
from celltrain.ensemble.reports.analysis import Baseline, Front, Layout, StoreComparison
from celltrain.ensemble.reports.data import Data, Effect, ReportAxis
from celltrain.running import statistics

#: Maximum number of panels in a figure, and of axes for which a map of each pair is drawn.
MOST_PANELS, MOST_PAIRED = 12, 4
#: Maximum length of the title of a panel of fronts, by the width of the figure, and of a panel of lines.
LONGEST_TITLE, LONGEST_LINES_TITLE = {"column": 44, "page": 34}, 30


def drawings(
    data: Data,
    trade: Front | None,
    compared: StoreComparison | None,
    layouts: Sequence[tuple[Layout | None, Baseline | None]],
    look: FigureStyle,
) -> Iterator[Drawing]:
    """Draws all figures, one at a time; `layouts` are the axes of lines, each with a baseline or none."""
    if compared is not None:
        # Two stores may differ in TCP and seeds, so the subtitle of this figure mentions neither of them.
        with look.applied():
            yield comparison(compared, look)
    look = replace(look, tcp=data.tcp_line(short=True), seeds=data.seeds_line)
    every = range(len(data.measures))
    grouped = [
        partial(lines_over, data, i, layout, against)
        for layout, against in layouts
        if layout is not None
        for i in every
    ]
    makers: list[Callable[[FigureStyle], Drawing | None]] = [
        partial(front, data, trade),
        partial(histogram, data),
        *grouped,
        *(partial(draw, data, i) for draw in (effects, heat_map, sample) for i in every),
    ]
    for make in makers:
        with look.applied():
            drawing = make(look)
        if drawing is not None:
            yield drawing


def front(data: Data, trade: Front | None, look: FigureStyle) -> Drawing | None:
    """Draws points by two measures, with the Pareto front of each configuration; None if there is no front."""
    if trade is None:
        return None
    x, y = (
        replace(at, label=direction(at.label, is_larger))
        for at, is_larger in zip((_coordinate(data, i) for i in trade.measures), trade.larger, strict=True)
    )
    shown, by, longest = spread(len(trade.parts), MOST_PANELS), trade.by, LONGEST_TITLE[look.layout]
    panels = [
        points.FrontPanel(
            title="" if by is None else legible(by.titled(level), longest),
            points=np.arange(len(data.points)) if by is None else np.flatnonzero(by.levels == level),
            order=trade.parts[level],
        )
        for level in shown
    ]
    colouring = None
    for axis in data.strongest([axis for axis in data.factors if axis not in trade.axes], 1):
        names = [axis.label(level) for level in range(len(axis.values))]
        colouring = points.Colouring(scale=_scale(axis), levels=axis.levels, names=names)
    figure = points.fronts(panels, x, y, colouring, look)
    all_barred = all(len(panel.barred) == len(panel.points) for panel in panels)
    whose = "the means" if all_barred else "the fronts' means"
    of_each = "" if by is None else f" A panel for each {by.worded}."
    some = "" if len(shown) == len(trade.parts) else " Some values have no panel."
    caption = (
        "Every dot is a point of the sweep: the mean over its seeds. Ringed and numbered: the Pareto front, points that no "
        f"other{' of its configuration' if by is not None else ''} beats in both measures.{of_each}{some}"
        f"{'' if np.isnan(x.half).all() else f' Grey bars: the 95 % intervals of {whose}.'}{_arrows(x.bounds, y.bounds)}"
    )
    across, up = (words.called(data.measures[i], unit=False) for i in trade.measures)
    return Drawing(name="front", title=f"{up} against {across}", caption=caption, figure=figure, look=look)


def histogram(data: Data, look: FigureStyle) -> Drawing | None:
    """If only the seed varies, draws a histogram of all runs. Returns None otherwise, or if there is a single seed."""
    if data.factors or data.seeds[1] < 2:
        return None
    measures = [(_coordinate(data, i), values[~np.isnan(values)]) for i, values in enumerate(data.values.T)]
    caption = "The runs, sorted by value. Line and band: the mean and the 95 % interval of the mean."
    figure = points.histograms(measures, look)
    return Drawing(name="spread", title="Values of the seeds", caption=caption, figure=figure, look=look)


def lines_over(data: Data, measure: int, layout: Layout, against: Baseline | None, look: FigureStyle) -> Drawing:
    """Draws a measure over an axis, or its differences from a baseline."""
    about = data.measures[measure]
    values = (data if against is None else against).values[:, measure]
    axes = (layout.panel, layout.by, layout.over)
    shape = tuple(1 if axis is None else len(axis.values) for axis in axes)
    levels = [np.zeros(len(data.points), np.int64) if axis is None else axis.levels for axis in axes]
    cells = (levels[0] * shape[1] + levels[1]) * shape[2] + levels[2]
    means = data.over(values, cells, math.prod(shape))
    mean, half = means.mean.reshape(shape), means.half.reshape(shape)
    bounds_of = np.zeros(math.prod(shape), np.bool_)
    if against is None:
        np.logical_or.at(bounds_of, cells, data.bounds[:, measure] > 0)
    is_bound = bounds_of.reshape(shape)
    label = words.called(about)
    left_out = against.level if against is not None and layout.by is against.axis else None
    rows = {
        row: about.name if layout.by is None else layout.by.label(row) for row in range(shape[1]) if row != left_out
    }
    panels = [
        lines.Panel(
            label=label if against is None else f"{label}\nmore than {legible(against.name, 24)}",
            limits=bounds(about.name) if against is None else (-math.inf, math.inf),
            title="" if layout.panel is None else legible(layout.panel.titled(place), LONGEST_LINES_TITLE),
            groups=[
                lines.Group(name=name, mean=mean[place, row], half=half[place, row], bounds=is_bound[place, row])
                for row, name in rows.items()
            ],
        )
        for place in range(shape[0])
    ]
    first = layout.over.first or layout.over
    across = _scale(layout.over if first.words else first)
    columns, marks = min(shape[0], 2), BARS if bool((half > 0).any()) else ""
    figure = lines.lines(panels, across, look, columns=columns, zero=against is not None, marks=marks)
    rest = _averaged_over(data, axes)
    kind, title = ("lines", "") if against is None else ("differences", f" more than {against.name}")
    what = "The mean over the seeds" if against is None else "The mean difference between runs with the same seed"
    title = f"{words.called(about, unit=False)}{title} over {layout.over.worded}"
    caption = f"{what}, with its 95 % interval.{rest}{_arrows(is_bound)}"
    return Drawing(name=f"{kind}-{data.slug(measure)}", title=title, caption=caption, figure=figure, look=look)


def effects(data: Data, measure: int, look: FigureStyle) -> Drawing | None:
    """Draws the effect of each axis on a measure, averaged over all other axes; None if nothing varies."""
    about, mine = data.measures[measure], data.effects[measure]
    if not mine:
        return None
    known = any(bool((effect.means.half > 0).any()) for effect in mine)
    marks = "bars or band: 95 % intervals" if known else ""
    figure = lines.effects(
        [_effect(one, is_one_of_several=len(mine) > 1) for one in mine],
        words.called(about),
        look,
        bounds(about.name),
        marks,
    )
    parts = ["The mean for each value of the axis, averaged over all other axes."]
    if len(mine) > 1:
        parts.append("Above each panel: share of the differences between points explained by the axis.")
    if known:
        parts.append("Bars or band: the 95 % interval of the mean, from the spread of the seeds only.")
    if any(effect.axis.sampled for effect in mine):
        parts.append("Sampled axes are divided into ranges with equal numbers of points (grey dots).")
    name, title = f"effects-{data.slug(measure)}", f"{words.called(about, unit=False)}: effect of each axis"
    return Drawing(name=name, title=title, caption=" ".join(parts), figure=figure, look=look)


def heat_map(data: Data, measure: int, look: FigureStyle) -> Drawing | None:
    """Draws a heat map of a measure, with a panel for each value of a third axis; None for fewer than two grid axes."""
    if data.maps is None:
        return None
    about, means = data.measures[measure], data.means[measure].mean
    across, up, third = data.maps
    panels = [0] if third is None else spread(len(third.values), MOST_PANELS)
    cells = []
    for panel in panels:
        known = means if third is None else np.where(third.levels == panel, means, np.nan)
        cells.append(_map(across, up, known, "" if third is None else _map_title(third, panel)))
    height = 4.2 if len(panels) == 1 and not look.narrow else 2.9
    figure = points.heat_maps(cells, words.called(about), look, height=height)
    over = f" A panel for each value of {third.worded}." if third is not None else ""
    some = "" if third is None or len(panels) == len(third.values) else " Some values have no panel."
    has_holes = any(bool(np.isnan(one.values).any()) for one in cells)
    holes = " Hatched: no values, or the same scenario as an earlier point." if has_holes else ""
    rest = _averaged_over(data, data.maps)
    both = f"{across.worded} and {up.worded}"
    caption = f"The mean over the seeds for each {both}.{over}{some}{rest}{holes}"
    name, title = f"map-{data.slug(measure)}", f"{words.called(about, unit=False)} over {both}"
    return Drawing(name=name, title=title, caption=caption, figure=figure, look=look)


def sample(data: Data, measure: int, look: FigureStyle) -> Drawing | None:
    """Draws a measure over pairs of sampled axes, with a dot for each random point; None for fewer than two."""
    about, means = data.measures[measure], data.means[measure].mean
    sampled = [axis for axis in data.factors if axis.sampled]
    both = list(itertools.combinations(data.strongest(sampled, MOST_PAIRED), 2))
    if not both:
        return None
    # Points that differ only in the remaining axes become one dot, which shows their mean.
    _, first, spot = np.unique(np.stack([f.levels for f in sampled]), axis=1, return_index=True, return_inverse=True)
    values = statistics.means(spot.reshape(-1), means, len(first)).mean
    dots = []
    for pair in both:
        scales = [(_scale(axis), axis.levels[first]) for axis in pair]
        at = [replace(scale, places=scale.places[levels]) for scale, levels in scales]
        dots.append(Map(across=at[0], up=at[1], values=values))
    height = 4.2 if len(both) == 1 and not look.narrow else 2.9
    figure = points.coloured_dots(dots, words.called(about), look, height=height)
    caption = f"A dot for each draw: the colour is the mean over its seeds.{_averaged_over(data, sampled)}"
    name, title = f"sample-{data.slug(measure)}", f"{words.called(about, unit=False)} over the sampled axes"
    return Drawing(name=name, title=title, caption=caption, figure=figure, look=look)


def comparison(compared: StoreComparison, look: FigureStyle) -> Drawing:
    """Plots every point's means in two stores against each other, with a panel for each measure."""
    pairs = []
    for moved in compared.measures:
        label, limits = words.called(moved.measure), bounds(moved.measure.name)
        one, other = (
            Coordinate(label=f"{label}\n{store}", mean=of.mean, half=of.half, limits=limits, bounds=lower)
            for store, of, lower in (
                (compared.first, moved.first, moved.bounds[0]),
                (compared.second, moved.second, moved.bounds[1]),
            )
        )
        pairs.append((one, other, moved.differences.beyond))
    figure = points.agreement(pairs, look, ("within the spread", "beyond it"))
    arrows = _arrows(*(moved.bounds for moved in compared.measures))
    caption = f"On the line, both stores agree. Bars: the 95 % intervals of the means.{arrows}"
    return Drawing(
        name="comparison", title="All points that both stores contain", caption=caption, figure=figure, look=look
    )


def _effect(effect: Effect, *, is_one_of_several: bool) -> lines.Effect:
    scale = _scale(effect.axis)
    behind = (scale.places[effect.axis.levels], effect.of_points) if scale.sampled else None
    name = f"{effect.share:.0%} of the differences" if is_one_of_several else ""
    means = lines.Group(name=name, mean=effect.means.mean, half=effect.means.half)
    return lines.Effect(across=scale, places=effect.places / scale.size, means=means, behind=behind)


def _map(across: ReportAxis, up: ReportAxis, means: NDArray[np.float64], title: str) -> Map:
    """Returns a map with the average of the points in each cell."""
    rows, columns = len(up.values), len(across.values)
    cell = up.levels * columns + across.levels
    values = statistics.means(cell, means, rows * columns).mean.reshape(rows, columns)
    return Map(across=_scale(across), up=_scale(up), values=values, title=title)


def _map_title(axis: ReportAxis, level: int) -> str:
    return legible(axis.label(level), lines.LONGEST_VALUE) if axis.words else axis.titled(level)


def _scale(axis: ReportAxis) -> Scale:
    # For an axis without a name, the whole path is clearer than its last step.
    path = axis.meaning.partition(":")[0]
    return Scale.of(
        axis.called or (words.axis(path) if axis.name == path else axis.worded),
        axis.unit,
        axis.values,
        logarithmic=axis.logarithmic,
        sampled=axis.sampled,
    )


def _coordinate(data: Data, measure: int) -> Coordinate:
    about, means, lower = data.measures[measure], data.means[measure], data.bounds[:, measure] > 0
    return Coordinate(
        label=words.called(about), mean=means.mean, half=means.half, limits=bounds(about.name), bounds=lower
    )


def _arrows(*bounds: NDArray[np.bool_] | None) -> str:
    """Explains the arrows of a figure at the end of its caption, if any of its means is a lower bound."""
    return f" {ARROWS[0].upper()}{ARROWS[1:]}." if any(one is not None and one.any() for one in bounds) else ""


def _averaged_over(data: Data, used: Sequence[ReportAxis | None]) -> str:
    rest = [axis.worded for axis in data.factors if axis not in used]
    return f" Averaged over {', '.join(rest)}." if rest else ""
