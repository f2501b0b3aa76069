"""Heat maps over two axes, Pareto fronts of two measures, plots of agreement, and histograms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from celltrain.drawing import figure as canvas
from celltrain.drawing.figure import GREY, INK, FigureStyle, bars, colour_of, legible, panelled
from celltrain.drawing.lines import LONGEST_VALUE, MOST_TICKS, Scale, ruled, spread, word_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Colours of a scale.
MAP = "viridis"
#: Maximum number of maps in a row, because the cells of maps need space.
MAPS_ACROSS = 2
#: Maximum number of cells with numbers, and the width of a digit relative to the font size.
MOST_CELLS, DIGIT = 90, 0.62
#: Below this number of dots, dots are drawn large.
FEW_DOTS = 400


@dataclass(frozen=True, kw_only=True)
class Map:
    """A measure over two axes."""

    across: Scale
    up: Scale
    values: NDArray[np.float64]
    """For a heat map, a row for each value of `up`, with NaN for missing values. For dots, one value for each."""
    title: str = ""


def heat_maps(maps: Sequence[Map], label: str, look: FigureStyle, *, height: float) -> Figure:
    """Draws maps with common axes, which are labelled at the edges, and a common colour scale."""
    figure, grid = panelled(len(maps), look, height=height, most=MAPS_ACROSS, sharex=True, sharey=True)
    columns = look.shape(len(maps), MAPS_ACROSS)[1]
    limits = _limits([one.values for one in maps])
    # Leave space next to the panels for row labels and the colour scale.
    room = 0.62 * look.inches / columns
    for place, (axes, one) in enumerate(zip(grid, maps, strict=True)):
        image = _cells(axes, one, limits, room)
        axes.set_title(one.title)
        axes.tick_params(labelleft=place % columns == 0, labelbottom=place + columns >= len(maps))
    canvas.label_outer(grid, columns, maps[0].across.label, maps[0].up.label)
    figure.colorbar(image, ax=grid, label=label, fraction=0.06, pad=0.02)
    return canvas.fitted(figure)


def coloured_dots(maps: Sequence[Map], label: str, look: FigureStyle, *, height: float) -> Figure:
    """Draws a dot for each value, at its position on both scales."""
    figure, grid = panelled(len(maps), look, height=height, most=MAPS_ACROSS)
    for axes, one in zip(grid, maps, strict=True):
        count = len(one.values)
        style: dict[str, Any] = {"s": 26 if count < FEW_DOTS else 10, "rasterized": count > canvas.MOST_MARKS}
        image = axes.scatter(one.across.places, one.up.places, c=one.values, cmap=MAP, linewidths=0, **style)
        ruled(axes, "x", one.across)
        ruled(axes, "y", one.up)
        axes.set(xlabel=one.across.label, ylabel=one.up.label)
    figure.colorbar(image, ax=grid, label=label, fraction=0.06, pad=0.02)
    return canvas.fitted(figure)


def _limits(values: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
    known = np.concatenate([one[~np.isnan(one)] for one in values])
    if not len(known):
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _cells(axes: Axes, one: Map, limits: tuple[float, float], room: float) -> Any:
    """Draws the cells of a map, with their values as text if there is room."""
    values = one.values
    rows, columns = values.shape
    edges = np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5
    style: dict[str, Any] = {"vmin": limits[0], "vmax": limits[1], "rasterized": values.size > canvas.MOST_MARKS}
    image = axes.pcolormesh(*edges, np.ma.masked_invalid(values), cmap=MAP, **style)
    axes.set_facecolor("#E4E7EB")
    if np.isnan(values).any():
        axes.patch.set(hatch="///", edgecolor="#AAB0B8")
    axes.grid(visible=False)
    texts = {place: _number(values[place], limits) for place in map(tuple, np.argwhere(~np.isnan(values)).tolist())}
    size = 7 if columns <= 6 else 6
    longest = max(map(len, texts.values()), default=0)
    if values.size <= MOST_CELLS and longest * size * DIGIT / 72 < room / columns:
        dark = sum(limits) / 2 + (limits[1] - limits[0]) * 0.1
        for (row, column), text in texts.items():
            colour = "white" if values[row, column] < dark else INK
            axes.text(column, row, text, ha="center", va="center", fontsize=size, color=colour)
    axes.set_xticks(**word_ticks(one.across.texts, "x"))
    axes.set_yticks(**word_ticks(one.up.texts, "y"))
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0)
    return image


def _number(value: float, limits: tuple[float, float]) -> str:
    """Formats a value with the number of digits that suits the largest value."""
    largest = max(map(abs, limits))
    if largest < 0.1:
        return f"{value:.2g}"
    return f"{value:.2f}" if largest < 10 else f"{value:,.0f}"


#: Directions from a point in which a label is tried, the upper right first, and distances in points (1/72 inch). At
#: longer distances a line connects the label to the point.
SIDES = ((0.7, 0.7), (-0.7, 0.7), (0.7, -0.7), (-0.7, -0.7), (0, 1), (1, 0), (-1, 0), (0, -1))
DISTANCES = (5.5, 9.0, 14.0, 20.0, 28.0, 38.0, 50.0)
LEAD = {"arrowstyle": "-", "linewidth": 0.5, "color": GREY, "shrinkA": 0, "shrinkB": 3}
#: Margins around a label and around a point, in points (1/72 inch).
MARGIN, DOT = 1.0, 5.0


def put(axes: Axes, points: Sequence[tuple[float, float]], texts: Sequence[str], hidden: NDArray[np.float64]) -> int:
    """Writes a text next to each point; returns the number of texts omitted for lack of space.

    Each text gets the first free position around its point, nearest first, so the labels of a figure are reproducible.

    Args:
        axes: Axes of a figure with a final layout, after `figure.draw_without_rendering()`.
        points: Positions, in the units of the axes.
        texts: One text for each point.
        hidden: More points, one per row, that texts should not cover if possible.
    """
    pixels = axes.figure.dpi / 72
    at, dots = axes.transData.transform(points), axes.transData.transform(hidden)
    room = axes.get_window_extent()
    taken: list[tuple[Any, Any]] = []
    left_out = 0
    style: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "center"}
    style |= {"fontsize": "small", "color": INK, "zorder": 6}
    for spot, point, text in zip(at, points, texts, strict=True):
        note = axes.annotate(text, point, (0, 0), **style)
        half = np.array(note.get_window_extent().size) / 2 + MARGIN * pixels
        note.remove()
        others = dots[(dots != spot).any(axis=1)]
        for spares, distance, side in product((True, False), DISTANCES, SIDES):
            centre = spot + np.multiply(side, distance * pixels) + np.sign(side) * half
            low, high = centre - half, centre + half
            is_inside = np.all(low >= room.min) and np.all(high <= room.max)
            covers = np.all((others > low - DOT * pixels) & (others < high + DOT * pixels), axis=1).any()
            overlaps = any(np.all(low < top) and np.all(bottom < high) for bottom, top in taken)
            if is_inside and not overlaps and not (spares and covers):
                taken.append((low, high))
                lead = LEAD if distance > DISTANCES[0] else None
                note = axes.annotate(text, point, tuple((centre - spot) / pixels), arrowprops=lead, **style)
                # The label is inside the axes, so the layout need not reserve space for it.
                note.set_in_layout(False)
                break
        else:
            left_out += 1
    return left_out


#: Height of a figure with one panel, relative to its width.
TALL = 0.7
MOST_COLOURS = len(canvas.COLOURS)
#: Maximum number of numbered points on a front, and of points with error bars in a panel.
MOST_NUMBERED, MOST_BARS = 12, 40
MOST_BINS = 30
#: Length of the arrow at a lower bound between many points, in points (1/72 inch).
SHORT = 13.0


@dataclass(frozen=True, kw_only=True)
class Coordinate:
    """A measure at all points: means, half the widths of their 95 % intervals, and the measure's limits."""

    label: str
    mean: NDArray[np.float64]
    half: NDArray[np.float64]
    limits: tuple[float, float] = (-math.inf, math.inf)
    bounds: NDArray[np.bool_] | None = None
    """True for means that are only lower bounds, which get an arrow; None if there are none."""

    @property
    def bars(self) -> NDArray[np.float64]:
        """Lengths of the error bars below and above the means."""
        return bars(self.mean, self.half, self.limits)


@dataclass(frozen=True, kw_only=True)
class FrontPanel:
    """A panel: its points, and the points on its Pareto front in order."""

    title: str
    points: NDArray[np.int64]
    order: NDArray[np.int64]

    @property
    def barred(self) -> NDArray[np.int64]:
        """Points with error bars: only those on the front if there are too many points for all bars."""
        return self.points if len(self.points) <= MOST_BARS else self.order


@dataclass(frozen=True, kw_only=True)
class Colouring:
    """An axis whose values colour the points."""

    scale: Scale
    levels: NDArray[np.int64]
    """Position of each point's value on the colour scale."""
    names: Sequence[str]
    """Values with their units."""

    @property
    def is_named(self) -> bool:
        """True if the legend lists the values. Otherwise there is a colour scale."""
        return not self.scale.sampled and len(self.names) <= MOST_COLOURS


def _bounds(axes: Axes, x: Coordinate, y: Coordinate, at: NDArray[Any]) -> bool:
    """Draws arrows at these points that are lower bounds in either measure. Returns whether there are any."""
    known = ~np.isnan(x.mean[at] + y.mean[at])
    none = np.zeros(len(known), np.bool_)
    across, up = (none if one.bounds is None else one.bounds[at] & known for one in (x, y))
    canvas.lower_bounds(axes, x.mean[at], y.mean[at], across, INK, along="x", length=SHORT)
    canvas.lower_bounds(axes, x.mean[at], y.mean[at], up, INK, along="y", length=SHORT)
    return bool(across.any() or up.any())


def fronts(
    panels: Sequence[FrontPanel], x: Coordinate, y: Coordinate, colouring: Colouring | None, look: FigureStyle
) -> Figure:
    """Draws points by two measures, with rings and numbers on their Pareto fronts."""
    entries = 1 + (len(colouring.names) if colouring is not None and colouring.is_named else 0)
    entries += any(one.bounds is not None and bool(one.bounds.any()) for one in (x, y))
    marks = "" if np.isnan(x.half).all() else f"grey {canvas.BARS}"
    if len(panels) > 1:
        figure, grid = panelled(len(panels), look, height=2.7, extra=0.3, marks=marks)
    else:
        height = look.inches - 0.3 + 0.16 * entries if look.narrow else look.inches * TALL
        figure, grid = panelled(1, look, height=height, marks=marks)
    image, columns = None, look.shape(len(grid), canvas.MOST_ACROSS)[1]
    for axes, panel in zip(grid, panels, strict=True):
        image = _coloured(axes, colouring, x.mean, y.mean, panel.points)
        at, line = panel.barred, panel.order
        style: dict[str, Any] = {"fmt": "none", "ecolor": GREY, "elinewidth": 0.7, "alpha": 0.7, "zorder": 1}
        axes.errorbar(x.mean[at], y.mean[at], xerr=x.bars[:, at], yerr=y.bars[:, at], **style)
        axes.plot(x.mean[line], y.mean[line], color=INK, linewidth=1, zorder=2, drawstyle="steps-post")
        ring: dict[str, Any] = {"s": 70, "facecolors": "none", "edgecolors": INK, "zorder": 4}
        axes.scatter(x.mean[line], y.mean[line], label="Pareto front", **ring)
        if _bounds(axes, x, y, panel.points):
            canvas.bounds_entry(axes)
        axes.locator_params(axis="y", nbins=5)
        # A narrow panel has no room for five numbers with four digits.
        axes.locator_params(axis="x", nbins=3 if look.narrow or columns > 2 else 5)
        axes.set_title(panel.title, fontsize="small")
    canvas.label_outer(grid, columns, x.label, y.label)
    if image is not None and colouring is not None:
        bar = figure.colorbar(image, ax=grid, label=colouring.scale.label, pad=0.02, format="{x:g}")
        if colouring.scale.words:
            ticks = spread(len(colouring.names), MOST_TICKS)
            bar.set_ticks(ticks, labels=[legible(colouring.names[tick], LONGEST_VALUE) for tick in ticks])
    canvas.legend_below(figure, grid, look, "" if colouring is None else colouring.scale.label)
    # Numbers can be placed only after the layout is final.
    canvas.fitted(figure).draw_without_rendering()
    every = np.stack([x.mean, y.mean], axis=1)
    for axes, panel in zip(grid, panels, strict=True):
        numbered = spread(len(panel.order), MOST_NUMBERED)
        spots = [tuple(spot) for spot in every[panel.order[numbered]].tolist()]
        put(axes, spots, [str(place + 1) for place in numbered], every[panel.points])
    return figure


def _coloured(
    axes: Axes, colouring: Colouring | None, x: NDArray[Any], y: NDArray[Any], points: NDArray[np.int64]
) -> Any:
    """Draws dots coloured by an axis. Returns the image for a colour scale if a legend would have too many values."""
    common: dict[str, Any] = {"s": 20, "linewidths": 0, "zorder": 3, "rasterized": len(points) > canvas.MOST_MARKS}
    if colouring is None:
        axes.scatter(x[points], y[points], color=colour_of(0), **common)
        return None
    levels, places, count = colouring.levels, colouring.scale.places, len(colouring.names)
    if not colouring.is_named:
        from matplotlib.colors import LogNorm, Normalize

        # Use the same colours in all panels.
        norm = (LogNorm if colouring.scale.logarithmic else Normalize)(float(places.min()), float(places.max()))
        return axes.scatter(x[points], y[points], c=places[levels[points]], cmap=MAP, norm=norm, **common)
    from matplotlib import colormaps

    ordered = not colouring.scale.words
    for level, name in enumerate(colouring.names):
        own = points[levels[points] == level]
        colour = colormaps[MAP](level / max(count - 1, 1) * 0.92) if ordered else colour_of(level)
        text, marker = legible(name, LONGEST_VALUE), "o" if ordered else canvas.MARKERS[level]
        axes.scatter(x[own], y[own], color=[colour], marker=marker, label=text, **common)
    return None


def agreement(
    pairs: Sequence[tuple[Coordinate, Coordinate, NDArray[np.bool_]]], look: FigureStyle, names: Sequence[str]
) -> Figure:
    """Plots measures from two sources against each other.

    Each measure has a panel, with a line where both sources are equal.

    Args:
        pairs: Each measure from both sources, and which of its points differ.
        look: The figure's style.
        names: Legend entries of points that do not differ, and of points that do.
    """
    figure, grid = panelled(len(pairs), look, height=3.2, most=MAPS_ACROSS, marks=canvas.BARS)
    for axes, (x, y, differs) in zip(grid, pairs, strict=True):
        ends = np.concatenate([x.mean, y.mean])
        ends = ends[~np.isnan(ends)]
        if len(ends):
            axes.axline((ends[0], ends[0]), slope=1, color=canvas.PALE, linewidth=1, zorder=1)
        many = len(x.mean) > canvas.MOST_MARKS
        for at, colour, name in zip((~differs, differs), (GREY, colour_of(1)), names, strict=True):
            if not at.any():
                continue
            if not many:
                style: dict[str, Any] = {"fmt": "none", "ecolor": colour, "elinewidth": 0.6, "alpha": 0.5}
                axes.errorbar(x.mean[at], y.mean[at], xerr=x.bars[:, at], yerr=y.bars[:, at], **style)
            axes.scatter(x.mean[at], y.mean[at], color=colour, s=16, label=name, rasterized=many)
        if _bounds(axes, x, y, np.arange(len(x.mean))):
            canvas.bounds_entry(axes)
        axes.set(xlabel=x.label, ylabel=y.label)
        axes.locator_params(nbins=4)
    canvas.legend_below(figure, grid, look)
    return canvas.fitted(figure)


def histograms(measures: Sequence[tuple[Coordinate, NDArray[np.float64]]], look: FigureStyle) -> Figure:
    """Draws histograms of the values of runs, with a panel for each measure, and the mean with its interval."""
    marks = "line and band: the mean and its 95 % interval"
    figure, grid = panelled(len(measures), look, height=2.6, marks=marks)
    for axes, (mean, values) in zip(grid, measures, strict=True):
        if len(values):
            # Treat values that differ only by rounding as one value.
            is_one = np.ptp(values) <= 1e-9 * np.abs(values).max()
            bins = 1 if is_one else min(MOST_BINS, math.ceil(math.sqrt(len(values))))
            axes.hist(values, bins=bins, color=colour_of(0), alpha=0.5, edgecolor="white")
            centre, (below, above) = float(mean.mean[0]), mean.bars[:, 0]
            axes.axvline(centre, color=INK, linewidth=1)
            axes.axvspan(centre - below, centre + above, color=colour_of(1), alpha=0.25, linewidth=0)
        axes.set(xlabel=mean.label, ylabel="runs")
    return canvas.fitted(figure)
