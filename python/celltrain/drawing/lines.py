"""Figures of means with intervals: a row of dots for each group, or lines over an axis, with a panel per measure.

Texts are laid out for the width of the figure: no label covers another, and no error bar is cut off.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from celltrain.drawing import figure as canvas
from celltrain.drawing.figure import INK, MOST_MARKS, PALE, SOFT, FigureStyle, bars, legible, panelled
from celltrain.drawing.words import UNDEFINED, axis_label, labelled, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Maximum length of a group's name next to its dot, by the width of the figure.
LONGEST_NAME = {"column": 22, "page": 30}
#: Maximum length of a value below an axis.
LONGEST_VALUE = 24
#: Horizontal distance between lines, as a fraction of the axis, so that no error bar hides another.
SHIFT = 0.012
#: Line styles if the matplotlib style is not celltrain's.
DASHES = ("-", "--", ":", "-.")
#: Height of a row of dots, and of the space around the rows of a panel, in inches.
ROW, AROUND = 0.24, 0.75
#: Minimum number of rows of dots for which a panel reserves space, because two rows alone would touch.
FEWEST = 4
#: Maximum number of numeric values with a tick each, and of ticks at words.
MOST_NUMBERS, MOST_TICKS = 6, 12
#: Maximum number of means with error bars in a line.
MOST_BARS = 40


@dataclass(frozen=True, kw_only=True)
class Group:
    """Means drawn in one colour: a dot or a line."""

    name: str
    mean: NDArray[np.float64]
    half: NDArray[np.float64]
    """Half the width of the 95 % interval of each mean; NaN if there is none."""
    runs: Sequence[NDArray[np.float64]] = field(default=())
    """Values that each mean is computed from, drawn in a pale colour; empty if not shown."""
    bounds: NDArray[np.bool_] | None = None
    """True for means that are only lower bounds, which get an arrow; None if there are none."""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One panel: a measure at one combination of the parameters that have a panel for each value."""

    label: str
    """Measure with its unit."""
    groups: Sequence[Group]
    title: str = ""
    limits: tuple[float, float] = (-math.inf, math.inf)
    """Smallest and largest possible value; intervals are clipped there."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """An axis of a figure, with the values on the axis."""

    label: str
    """Name with its unit."""
    places: NDArray[np.float64]
    """Positions: numbers in the unit of the label, or 0, 1, ... for words."""
    words: Sequence[str] = ()
    """The axis values if they are words."""
    logarithmic: bool = False
    sampled: bool = False
    """True if the values were drawn at random, so that they do not need a tick each."""
    size: float = 1.0
    """Size of the label's unit in the base unit."""

    @classmethod
    def of(cls, name: str, unit: str, values: Sequence[float | str], **options: Any) -> Scale:
        """Creates a scale of words, or of numbers in the multiple of their unit that is easiest to read."""
        if any(isinstance(value, str) for value in values):
            places = np.arange(len(values), dtype=np.float64)
            return cls(label=labelled(name, ""), places=places, words=list(map(str, values)), **options)
        numbers = np.array(values, dtype=np.float64)
        label, size = axis_label(name, unit, numbers.tolist())
        return cls(label=label, places=numbers / size, size=size, **options)

    @property
    def texts(self) -> list[str]:
        """The values as texts."""
        return list(self.words) or [plain(place) for place in self.places.tolist()]


@dataclass(frozen=True, kw_only=True)
class Effect:
    """Means over one axis, averaged over all other axes."""

    across: Scale
    places: NDArray[np.float64]
    """Positions of the means. They differ from those in `across` if means are over ranges of values."""
    means: Group
    behind: tuple[NDArray[np.float64], NDArray[np.float64]] | None
    """Points from which the means are computed, drawn in a pale colour."""


def dots(panels: Sequence[Panel], look: FigureStyle, *, columns: int = canvas.MOST_ACROSS) -> Figure:
    """Draws a row for each group, with its name on the left."""
    rows = len(panels[0].groups)
    _, across = look.shape(len(panels), columns)
    figure, grid = panelled(len(panels), look, height=max(rows, FEWEST) * ROW + AROUND, extra=-0.3, most=columns)
    names = [legible(group.name, LONGEST_NAME[look.layout]) for group in panels[0].groups]
    _share(panels, grid, "x")
    for place, (axes, panel) in enumerate(zip(grid, panels, strict=True)):
        for row, group in enumerate(panel.groups):
            colour, marker = canvas.marked(row)
            for values in group.runs:
                axes.plot(values, np.full(len(values), row), "|", color=colour, alpha=0.35, markersize=7, zorder=1)
            style: dict[str, Any] = {"fmt": marker, "capsize": 3, "elinewidth": 1.4, "markersize": 5, "zorder": 3}
            axes.errorbar(group.mean, [row], xerr=bars(group.mean, group.half, panel.limits), color=colour, **style)
            canvas.lower_bounds(axes, group.mean, np.full(len(group.mean), row), group.bounds, colour, along="x")
            if np.isnan(group.mean).all():
                at = axes.get_yaxis_transform()
                axes.text(0.03, row, UNDEFINED, transform=at, va="center", fontsize="small", color=SOFT)
        axes.set_yticks(range(rows), names if place % across == 0 else [""] * rows)
        axes.set_ylim(rows - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(panel.label)
        axes.set_title(panel.title)
        axes.locator_params(axis="x", nbins=4)
    return canvas.fitted(figure, max(rows, FEWEST) * 0.8 * ROW)


def lines(
    panels: Sequence[Panel], across: Scale, look: FigureStyle, *, columns: int = 1, zero: bool = False, marks: str = ""
) -> Figure:
    """Draws a line for each group over an axis; `zero` adds a thin line at zero."""
    # Panels of one measure share a row; measures with one panel fill their rows.
    columns = look.shape(len(panels), canvas.MOST_ACROSS if columns == 1 else columns)[1]
    names = [legible(group.name, LONGEST_NAME[look.layout]) for group in panels[0].groups]
    extra = 0.2 * math.ceil(len(names) / look.columns(names)) - 0.2
    height = 2.3 if look.narrow else 2.5
    figure, grid = panelled(len(panels), look, height=height, extra=extra, most=columns, marks=marks)
    turned = sum(map(len, across.words)) * columns > look.inches * 9
    canvas.label_outer(grid, columns, across.label, "")
    _share(panels, grid, "y")
    for axes, panel in zip(grid, panels, strict=True):
        for row, group in enumerate(panel.groups):
            colour, marker = canvas.marked(row)
            at = _shifted(across, row, len(panel.groups))
            style: dict[str, Any] = {"marker": marker, "capsize": 2, "markersize": 4, "zorder": 3}
            style |= {"linewidth": 0 if across.words else 1.2, "elinewidth": 1.1}
            if look.style is not None:
                # A style may use only greys, which look alike on a photocopy.
                style["linestyle"] = DASHES[row % len(DASHES)]
            ends = bars(group.mean, group.half, panel.limits)
            axes.errorbar(at, group.mean, yerr=ends, color=colour, label=names[row], **style)
            canvas.lower_bounds(axes, at, group.mean, group.bounds, colour, along="y")
        if zero:
            axes.axhline(0, color=PALE, linewidth=1, zorder=1)
        ruled(axes, "x", across, turned=turned)
        axes.set(title=panel.title, ylabel=panel.label)
    if len(names) > 1:
        canvas.legend_below(figure, grid[:1], look)
    return canvas.fitted(figure)


def effects(panels: Sequence[Effect], label: str, look: FigureStyle, limits: tuple[float, float], marks: str) -> Figure:
    """Draws a panel for each axis, with a band instead of error bars for many means. Group names are titles."""
    figure, grid = panelled(len(panels), look, height=2.6, marks=marks, sharey=True)
    for axes, panel in zip(grid, panels, strict=True):
        if panel.behind is not None:
            many = len(panel.behind[0]) > MOST_MARKS
            axes.scatter(*panel.behind, color=PALE, s=6, linewidths=0, rasterized=many)
        at, mean, is_words = panel.places, panel.means.mean, bool(panel.across.words)
        below, above = bars(mean, panel.means.half, limits)
        style: dict[str, Any] = {"color": canvas.colour_of(0)}
        if len(at) > MOST_BARS:
            style["rasterized"] = len(at) > MOST_MARKS
            axes.plot(at, mean, linewidth=0.6 if is_words else 1.2, **style)
            axes.fill_between(at, mean - below, mean + above, alpha=0.2, linewidth=0, **style)
        else:
            style |= {"marker": "o", "markersize": 4, "elinewidth": 1.2, "capsize": 2}
            axes.errorbar(at, mean, yerr=[below, above], linewidth=0 if is_words else 1.2, **style)
        ruled(axes, "x", panel.across)
        axes.set_xlabel(panel.across.label)
        axes.set_title(panel.means.name, fontsize="small", color=SOFT)
    for axes in grid[:: look.shape(len(grid), canvas.MOST_ACROSS)[1]]:
        axes.set_ylabel(label)
    return canvas.fitted(figure)


def ruled(axes: Axes, side: Literal["x", "y"], scale: Scale, *, turned: bool | None = None) -> None:
    """Sets the scale and ticks of an axis, with a tick at each value if there are few.

    Args:
        axes: The axes.
        side: Which axis.
        scale: The values.
        turned: Rotates words; only long ones when None.
    """
    axis, set_ticks = getattr(axes, f"{side}axis"), getattr(axes, f"set_{side}ticks")
    if scale.words:
        set_ticks(**word_ticks(scale.words, side, turned))
        axes.set(**{f"{side}lim": (-0.5, len(scale.words) - 0.5)})
        axes.grid(visible=False, axis=side)
        return
    if scale.logarithmic:
        from matplotlib.ticker import LogLocator, NullFormatter

        getattr(axes, f"set_{side}scale")("log")
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
        axis.set_minor_locator(LogLocator(subs="all"))
    places = np.sort(scale.places)
    if len(places) <= MOST_NUMBERS and not scale.sampled:
        # Do not place ticks at values that were not run.
        set_ticks(places, [plain(place) for place in places.tolist()], color=INK)
        axes.minorticks_off()
    elif not scale.logarithmic:
        axes.locator_params(axis=side, nbins=4)


def word_ticks(texts: Sequence[str], side: str, turned: bool | None = None) -> dict[str, Any]:
    """Returns arguments of `set_xticks` or `set_yticks` for ticks at 0, 1, ..., or at a few of them if many."""
    ticks = spread(len(texts), MOST_TICKS)
    labels = [legible(texts[tick], LONGEST_VALUE) for tick in ticks]
    if turned is None:
        turned = side == "x" and sum(map(len, labels)) > 26
    rotation = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"} if turned else {}
    return {"ticks": ticks, "labels": labels, **rotation}


def spread(count: int, most: int) -> list[int]:
    """Returns at most `most` of the numbers 0 to count - 1, evenly spread, including both ends."""
    if count <= most:
        return list(range(count))
    return [round(i * (count - 1) / (most - 1)) for i in range(most)]


def _share(panels: Sequence[Panel], grid: Sequence[Axes], which: Literal["x", "y"]) -> None:
    """Gives all panels of a measure the same axis, so that equal differences have equal lengths."""
    first: dict[str, Axes] = {}
    for axes, panel in zip(grid, panels, strict=True):
        if first.setdefault(panel.label, axes) is not axes:
            getattr(axes, f"share{which}")(first[panel.label])


def _shifted(across: Scale, row: int, rows: int) -> NDArray[np.float64]:
    """Returns the positions of a group's means, slightly offset from the means of other groups."""
    places = across.places
    shift = (row - (rows - 1) / 2) * SHIFT
    if across.words:
        return places + shift * 10
    if across.logarithmic:
        return np.asarray(places * (places.max() / places.min()) ** shift)
    return places + shift * float(np.ptp(places) if len(places) > 1 else 1.0)
