"""Heat maps of a measure over two axes, and dots coloured by a measure for sampled axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from celltrain.drawing.figure import MOST_MARKS, FigureStyle, panelled
from celltrain.drawing.labels import thinned
from celltrain.drawing.lines import Scale, ruled, word_ticks
from celltrain.drawing.style import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colours of a scale.
MAP = "viridis"
#: Most maps in a row: their cells need room.
MAPS_ACROSS = 2
#: Most cells with numbers, and the width of a digit by the size of its font.
MOST_NUMBERED, DIGIT = 90, 0.62
#: Dots up to which they are large.
FEW_DOTS = 400


@dataclass(frozen=True, kw_only=True)
class Map:
    """A measure over two axes."""

    across: Scale
    up: Scale
    values: NDArray[np.float64]
    """For a heat map a row for each value of `up`, with NaN for no value; for dots one value for each."""
    title: str = ""


def heat_maps(maps: Sequence[Map], label: str, look: FigureStyle, *, height: float, shared: bool = False) -> Figure:
    """Draws maps with a common scale; with `shared` their axes are the same, and labelled only at the edges."""
    share: dict[str, Any] = {"sharex": True, "sharey": True} if shared else {}
    figure, grid = panelled(len(maps), look, height=height, most=MAPS_ACROSS, **share)
    columns = look.shape(len(maps), MAPS_ACROSS)[1]
    limits = _limits([one.values for one in maps])
    # Row labels and the scale are next to the panels.
    room = 0.62 * look.inches / columns
    for place, (axes, one) in enumerate(zip(grid, maps, strict=True)):
        image = _cells(axes, one, limits, room)
        axes.set_title(one.title)
        if shared and place % columns:
            axes.set_ylabel("")
            axes.tick_params(labelleft=False)
        if shared:
            is_inner = place + columns < len(maps)
            axes.tick_params(labelbottom=not is_inner)
            axes.set_xlabel("" if is_inner else one.across.label)
    figure.colorbar(image, ax=grid, label=label, fraction=0.06, pad=0.02)
    thinned(figure)
    return figure


def coloured_dots(maps: Sequence[Map], label: str, look: FigureStyle, *, height: float) -> Figure:
    """Draws a dot for each value, at the places of both scales."""
    figure, grid = panelled(len(maps), look, height=height, most=MAPS_ACROSS)
    for axes, one in zip(grid, maps, strict=True):
        count = len(one.values)
        style: dict[str, Any] = {"s": 26 if count < FEW_DOTS else 10, "rasterized": count > MOST_MARKS, "linewidths": 0}
        image = axes.scatter(one.across.places, one.up.places, c=one.values, cmap=MAP, **style)
        ruled(axes, "x", one.across)
        ruled(axes, "y", one.up)
        axes.set(xlabel=one.across.label, ylabel=one.up.label)
    figure.colorbar(image, ax=grid, label=label, fraction=0.06, pad=0.02)
    return figure


def _limits(values: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
    known = np.concatenate([one[~np.isnan(one)] for one in values])
    if not len(known):
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _cells(axes: Axes, one: Map, limits: tuple[float, float], room: float) -> Any:
    """Draws the cells of a map, with their numbers if there is room."""
    values = one.values
    rows, columns = values.shape
    edges = np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5
    style: dict[str, Any] = {"vmin": limits[0], "vmax": limits[1], "rasterized": values.size > MOST_MARKS}
    image = axes.pcolormesh(*edges, np.ma.masked_invalid(values), cmap=MAP, **style)
    axes.set_facecolor("#E4E7EB")
    if np.isnan(values).any():
        axes.patch.set(hatch="///", edgecolor="#AAB0B8")
    axes.grid(visible=False)
    texts = {place: _number(values[place], limits) for place in map(tuple, np.argwhere(~np.isnan(values)).tolist())}
    size = 7 if columns <= 6 else 6
    longest = max(map(len, texts.values()), default=0)
    if values.size <= MOST_NUMBERED and longest * size * DIGIT / 72 < room / columns:
        dark = sum(limits) / 2 + (limits[1] - limits[0]) * 0.1
        for (row, column), text in texts.items():
            colour = "white" if values[row, column] < dark else INK
            axes.text(column, row, text, ha="center", va="center", fontsize=size, color=colour)
    axes.set_xticks(**word_ticks(one.across.texts, "x"))
    axes.set_yticks(**word_ticks(one.up.texts, "y"))
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0)
    axes.set(xlabel=one.across.label, ylabel=one.up.label)
    return image


def _number(value: float, limits: tuple[float, float]) -> str:
    """Formats a value with the digits that the largest one needs."""
    largest = max(map(abs, limits))
    if largest < 0.1:
        return f"{value:.2g}"
    return f"{value:.2f}" if largest < 10 else f"{value:,.0f}"
