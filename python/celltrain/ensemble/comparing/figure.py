"""The figure of a comparison: a panel for each measure, with a dot or a line for each name."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from celltrain.drawing import figure as canvas
from celltrain.drawing import words
from celltrain.drawing.figure import FigureStyle, brief, subtitled
from celltrain.drawing.lines import Group, Panel, Scale, dots, lines
from celltrain.ensemble.cases import bounds
from celltrain.ensemble.comparing.data import SCENARIO, Comparison
from celltrain.ensemble.plan import Axis
from celltrain.errors import Fault, InputError
from celltrain.model.files import writing
from celltrain.model.network import short_tcp
from celltrain.text import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Number of measures drawn by default.
MOST_MEASURES = 3
#: Maximum number of panels for a measure.
MOST_PANELS = 6
#: Ratio of largest to smallest value at which an axis becomes logarithmic.
WIDE = 20


def check(file: str | os.PathLike[str] | None, width: str, style: str | None) -> FigureStyle:
    """Checks before any run that a figure can be drawn; raises `InputError` or `MissingExtraError`."""
    if file is not None:
        canvas.refuse_other(file)
    canvas.require_matplotlib()
    return FigureStyle.of(width, style)


def draw(
    compared: Comparison,
    file: str | os.PathLike[str] | None,
    *,
    measures: Sequence[str] | None,
    width: str,
    style: str | None,
) -> Figure:
    """Draws a comparison, and writes it to `file` if given."""
    look = check(file, width, style)
    chosen = _chosen(compared, measures)
    with look.applied():
        figure = _drawn(compared, chosen, look)
        if subtitle := _subtitle(compared, chosen, look):
            subtitled(figure, subtitle)
        if file is not None:
            with writing(file):
                canvas.save(figure, Path(file))
    return figure


def _subtitle(compared: Comparison, measures: Sequence[int], look: FigureStyle) -> list[str]:
    """Returns the lines above the figure: the TCP, unless panels or names show it, and the meaning of bars."""
    tcps = {tcp for own in compared.tcp for tcp in own}
    lines = []
    if len(tcps) == 1 and (tcp := tcps.pop()):
        lines = textwrap.wrap(f"TCP: {brief(tcp, canvas.LONGEST_TITLE)}", look.characters)
    elif all(len(set(own)) == 1 for own in compared.tcp):
        named = {name: own[0] for name, own in zip(compared.names, compared.tcp, strict=True)}
        distinct = len({short_tcp(tcp) for tcp in named.values()}) == len(tcps)
        texts = [f"{shown(name)}: {short_tcp(tcp) if distinct else tcp}" for name, tcp in named.items()]
        if any(name != short_tcp(tcp) for name, tcp in named.items()):
            lines = textwrap.wrap(f"TCP of {'; '.join(texts)}", look.characters)
    lines += textwrap.wrap(compared.fixed_line, look.characters)
    if len(compared.seeds) > 1:
        limits = [(compared.means[i], *bounds(compared.measures[i].name)) for i in measures]
        is_cut = any(bool((own.low < low).any() or (own.high > high).any()) for own, low, high in limits)
        within = f"{shown(compared.scenario)}: " if compared.scenario else ""
        cut = ", cut at impossible values" if is_cut else ""
        lines.append(f"{within}means of {len(compared.seeds):,} seeds; bars: 95 % intervals{cut}")
    return lines


def _chosen(compared: Comparison, measures: Sequence[str] | None) -> list[int]:
    known = [measure.name for measure in compared.measures]
    if measures is None:
        return list(range(min(len(known), MOST_MEASURES)))
    faults = [
        Fault.of_option("measures", name, f"was not measured; choose from {', '.join(known)}")
        for name in measures
        if name not in known
    ]
    if faults or not measures:
        raise InputError(faults or [Fault.of_option("measures", "[]", "is empty; name at least one measure")])
    return [known.index(name) for name in dict.fromkeys(measures)]


def _drawn(compared: Comparison, measures: Sequence[int], look: FigureStyle) -> Figure:
    if not compared.conditions:
        return dots([_panel(compared, measure, [0]) for measure in measures], look)
    # The x axis is the numeric axis with most values, and the other axes have a panel for each value.
    conditions = sorted(compared.conditions, key=lambda axis: (axis.name == SCENARIO, not axis.is_number, -len(axis)))
    across, *others = conditions
    if across.name == SCENARIO:
        titles = [
            _with_tcp(compared, shown(str(own[SCENARIO])), [place]) for place, own in enumerate(compared.settings)
        ]
        panels = [_panel(compared, one, [place], title=title) for one in measures for place, title in enumerate(titles)]
        return dots(panels, look, columns=len(compared.settings))
    cells: dict[tuple[float | str, ...], list[int]] = {}
    for place, own in enumerate(compared.settings):
        cells.setdefault(tuple(own[axis.name] for axis in others), []).append(place)
    if len(cells) > MOST_PANELS:
        drawn = ", ".join(axis.name for axis in others)
        problem = f"would have {len(cells)} panels for each measure ({drawn}); at most {MOST_PANELS} can be drawn"
        raise InputError.of_option("plot", shown(drawn), f"{problem}: vary less, or plot the table")
    values = list(dict.fromkeys(own[across.name] for own in compared.settings))
    order = np.argsort(values) if across.is_number else np.arange(len(values))
    by_tcp = any(axis.name.partition(".")[0] == "tcp" for axis in others)
    panels = []
    for measure in measures:
        for cell, places in cells.items():
            title = ", ".join(_titled(axis, value) for axis, value in zip(others, cell, strict=True))
            title = title if by_tcp else _with_tcp(compared, title, places)
            panels.append(_panel(compared, measure, [places[i] for i in order], title=title, runs=False))
    return lines(panels, _scale(across, [values[i] for i in order]), look, columns=min(len(cells), 3))


def _panel(compared: Comparison, measure: int, places: Sequence[int], *, title: str = "", runs: bool = True) -> Panel:
    """Returns the panel of a measure at some settings; `runs` adds the values that the means are computed from."""
    about, means, groups = compared.measures[measure], compared.means[measure], []
    for row, name in enumerate(compared.names):
        cases = [row * len(compared.settings) + place for place in places]
        values = [compared.values[row, place, :, measure] for place in places] if runs else []
        known = [of_place[~np.isnan(of_place)] for of_place in values]
        groups.append(Group(name=name, mean=means.mean[cases], half=means.half[cases], runs=known))
    label = words.labelled(words.measure(about.name, about.unit), "")
    return Panel(label=label, limits=bounds(about.name), title=title, groups=groups)


def _with_tcp(compared: Comparison, title: str, places: Sequence[int]) -> str:
    """Returns the title of a panel, with its TCP if panels differ in their TCP."""
    everywhere = {tcp for own in compared.tcp for tcp in own}
    here = {short_tcp(own[place]) for own in compared.tcp for place in places}
    return f"{title}\nTCP: {here.pop()}" if len(everywhere) > 1 and len(here) == 1 else title


def _titled(axis: Axis, value: float | str) -> str:
    if axis.name == SCENARIO:
        return shown(str(value))
    return f"{words.setting(axis.name)} {words.valued(value, axis.unit)}"


def _scale(axis: Axis, values: Sequence[Any]) -> Scale:
    wide = axis.is_number and len(values) > 2 and values[0] > 0 and values[-1] >= WIDE * values[0]
    return Scale.of(words.setting(axis.name), axis.unit, values, logarithmic=wide)
