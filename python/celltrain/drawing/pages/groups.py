"""Figures of means with their intervals: a row of dots for each group, or lines over an axis. Panels by measure.

Their texts are laid out for the width that is asked for: no label lies on another, and error bars are whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from celltrain.drawing.axes import legible
from celltrain.drawing.pages.drawing import MOST_ACROSS, Look, bars, fit, marked, panelled
from celltrain.drawing.pages.words import UNDEFINED
from celltrain.drawing.style import INK, PALE, SOFT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Characters of a group's name beside its dot, by the width of the figure.
LONGEST_NAME = {"column": 22, "page": 30}
#: What lines are apart at one value of the axis, so that no error bar hides another: a part of the axis's length.
APART = 0.012
#: Of lines in a style that is not ours.
DASHES = ("-", "--", ":", "-.")
#: Inches of a row of dots, and of what is around the rows of a panel.
ROW, AROUND = 0.24, 0.75


@dataclass(frozen=True, kw_only=True)
class Group:
    """Means that are drawn alike: one dot, or a line."""

    name: str
    mean: NDArray[np.float64]
    half: NDArray[np.float64]
    """Half the width of the 95 % interval of each mean; NaN where there is none."""
    runs: Sequence[NDArray[np.float64]] = field(default=())
    """The values behind each mean, drawn pale; empty where they are not shown."""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One pair of axes: a measure, at one setting of what panels are made by."""

    label: str
    """Of the measure, with its unit."""
    groups: Sequence[Group]
    title: str = ""
    limits: tuple[float, float] = (-math.inf, math.inf)
    """The least and the largest possible value: intervals end there."""


@dataclass(frozen=True, kw_only=True)
class Across:
    """What lines go over."""

    label: str
    places: NDArray[np.float64]
    """Numbers in the unit of the label; 0, 1, ... where values are words."""
    words: Sequence[str] = ()
    """The values where they are words."""
    logarithmic: bool = False


def dots(panels: Sequence[Panel], look: Look, *, columns: int = MOST_ACROSS) -> Figure:
    """A row for each group, its name at the left; panels beside each other as the width allows."""
    rows = len(panels[0].groups)
    _, across = look.shape(len(panels), columns)
    figure, grid = panelled(len(panels), look, height=rows * ROW + AROUND, extra=-0.3, most=columns)
    names = [legible(group.name, LONGEST_NAME[look.width]) for group in panels[0].groups]
    for place, (axes, panel) in enumerate(zip(grid, panels, strict=True)):
        for row, group in enumerate(panel.groups):
            colour, marker = marked(row)
            for values in group.runs:
                axes.plot(values, np.full(len(values), row), "|", color=colour, alpha=0.35, markersize=7, zorder=1)
            look_of: dict[str, Any] = {"fmt": marker, "capsize": 3, "elinewidth": 1.4, "markersize": 5, "zorder": 3}
            axes.errorbar(group.mean, [row], xerr=bars(group.mean, group.half, panel.limits), color=colour, **look_of)
        axes.set_yticks(range(rows), names if place % across == 0 else [""] * rows)
        axes.set_ylim(rows - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(panel.label)
        axes.set_title(panel.title)
        axes.locator_params(axis="x", nbins=4)
    _share(panels, grid, "x")
    for axes, panel in zip(grid, panels, strict=True):
        for row, group in enumerate(panel.groups):
            if np.isnan(group.mean).all():
                at = axes.get_yaxis_transform()
                axes.text(0.03, row, UNDEFINED, transform=at, va="center", fontsize="small", color=SOFT)
    return figure


def lines(
    panels: Sequence[Panel], across: Across, look: Look, *, columns: int = 1, zero: bool = False, marks: str = ""
) -> Figure:
    """A line for each group over an axis; panels row by row, so many in each where the width allows.

    With `zero` a thin line stands where nothing differs.
    """
    # Panels of one measure stand in one row; measures alone fill theirs.
    columns = look.shape(len(panels), MOST_ACROSS if columns == 1 else columns)[1]
    names = [legible(group.name, LONGEST_NAME[look.width]) for group in panels[0].groups]
    beside = look.columns(names)
    extra = 0.2 * math.ceil(len(names) / beside) - 0.2
    figure, grid = panelled(
        len(panels), look, height=2.3 if look.narrow else 2.5, extra=extra, most=columns, marks=marks
    )
    turned = sum(map(len, across.words)) * columns > look.inches * 9
    for place, (axes, panel) in enumerate(zip(grid, panels, strict=True)):
        for row, group in enumerate(panel.groups):
            colour, marker = marked(row)
            at = _beside(across, row, len(panel.groups))
            look_of: dict[str, Any] = {"marker": marker, "capsize": 2, "elinewidth": 1.1, "markersize": 4, "zorder": 3}
            look_of |= {"linewidth": 0 if across.words else 1.2, "elinewidth": 1.1}
            if look.style is not None:
                # A style may have greys alone, which a copier makes one.
                look_of["linestyle"] = DASHES[row % len(DASHES)]
            ends = bars(group.mean, group.half, panel.limits)
            axes.errorbar(at, group.mean, yerr=ends, color=colour, label=names[row], **look_of)
        if zero:
            axes.axhline(0, color=PALE, linewidth=1, zorder=1)
        _ruled(axes, across, turned=turned)
        axes.set_title(panel.title)
        axes.set_ylabel(panel.label)
        if place + columns >= len(panels):
            axes.set_xlabel(across.label)
    _share(panels, grid, "y")
    if len(names) > 1:
        handles, _ = grid[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=beside, fontsize="small")
    return figure


def _share(panels: Sequence[Panel], grid: Sequence[Axes], which: Literal["x", "y"]) -> None:
    """Gives all panels of a measure the same axis, so that equal lengths are equal differences."""
    for label in {panel.label for panel in panels}:
        own = [axes for axes, panel in zip(grid, panels, strict=True) if panel.label == label]
        drawn = [getattr(axes, f"get_{which}lim")() for axes in own if axes.has_data()]
        if len(drawn) < 2:
            continue
        low, high = min(low for low, _ in drawn), max(high for _, high in drawn)
        # The margin of a panel with close values is too small for the common axis.
        room = 0.04 * (high - low)
        for axes in own:
            axes.set(**{f"{which}lim": (low - room, high + room)})


def _beside(across: Across, row: int, rows: int) -> NDArray[np.float64]:
    """Where a group's means stand: a trifle beside those of the others."""
    places = across.places
    shift = (row - (rows - 1) / 2) * APART
    if across.words:
        return places + shift * 10
    if across.logarithmic:
        return np.asarray(places * (places.max() / places.min()) ** shift)
    return places + shift * float(np.ptp(places) if len(places) > 1 else 1.0)


def _ruled(axes: Axes, across: Across, *, turned: bool) -> None:
    """The axis that lines go over: a tick at each value where these are few."""
    if across.words:
        rotation: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if turned else {}
        axes.set_xticks(range(len(across.words)), [legible(word, 22) for word in across.words], **rotation)
        axes.set_xlim(-0.5, len(across.words) - 0.5)
        axes.grid(visible=False, axis="x")
        return
    if across.logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    places = np.sort(across.places).tolist()
    if len(places) <= 6:
        # From the largest on, those that have room: no tick stands where nothing was run.
        shown: list[float] = []
        for place in reversed(places):
            some = [place, *shown]
            if fit(
                axes, some, [f"{one:g}" for one in some], logarithmic=across.logarithmic, span=(places[0], places[-1])
            ):
                shown = some
        axes.set_xticks(shown, [f"{one:g}" for one in shown], color=INK)
        axes.minorticks_off()
    elif not across.logarithmic:
        axes.locator_params(axis="x", nbins=4)
