"""The figure of a comparison: a panel for each measure, with a dot or a line for each name."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from celltrain.drawing.axes import LONGEST_TITLE, brief, refuse_other, require_matplotlib, save
from celltrain.drawing.figure import FigureStyle, subtitled
from celltrain.drawing.lines import Group, Panel, Scale, dots, lines
from celltrain.drawing.pages import words
from celltrain.ensemble.comparing.settings import SCENARIO
from celltrain.ensemble.plan import Axis
from celltrain.ensemble.store.columns import Measured, bounds
from celltrain.errors import Fault, InputError
from celltrain.model.writing import writing
from celltrain.running.statistics import Means
from celltrain.running.summary import short_tcp
from celltrain.text import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Number of measures that are drawn by default.
MOST_MEASURES = 3
#: Most panels of a measure.
MOST_PANELS = 6
#: Ratio of largest to smallest value from which an axis is logarithmic.
WIDE = 20


@dataclass(frozen=True, kw_only=True)
class FigureData:
    """Data of the figure, with the meaning that `Compared` gives these fields."""

    scenario: str
    names: Sequence[str]
    conditions: Sequence[Axis]
    settings: Sequence[Mapping[str, float | str]]
    fixed: str
    """Settings of all names, in words."""
    tcp: Sequence[Sequence[str]]
    measures: Sequence[Measured]
    seeds: int
    """Number of seeds."""
    values: NDArray[np.float64]
    means: Sequence[Means]

    def groups(self, measure: int, places: Sequence[int], *, runs: bool) -> list[Group]:
        """Returns a group for each name: its means at some settings, and with `runs` the values behind them."""
        means, groups = self.means[measure], []
        for row, name in enumerate(self.names):
            cases = [row * len(self.settings) + place for place in places]
            values = [self.values[row, place, :, measure] for place in places] if runs else []
            known = [of_place[~np.isnan(of_place)] for of_place in values]
            groups.append(Group(name=name, mean=means.mean[cases], half=means.half[cases], runs=known))
        return groups

    def panel(self, measure: int, places: Sequence[int], *, title: str = "", runs: bool = True) -> Panel:
        """Returns the panel of a measure at some settings."""
        about = self.measures[measure]
        label = words.labelled(words.measure(about.name, about.unit), "")
        groups = self.groups(measure, places, runs=runs)
        return Panel(label=label, limits=bounds(about.name), title=title, groups=groups)

    def with_tcp(self, title: str, places: Sequence[int]) -> str:
        """Returns the title of a panel, with its TCP if other panels have another one."""
        everywhere = {tcp for own in self.tcp for tcp in own}
        here = {short_tcp(own[place]) for own in self.tcp for place in places}
        return f"{title}\nTCP: {here.pop()}" if len(everywhere) > 1 and len(here) == 1 else title


def check(file: str | os.PathLike[str] | None, width: str, style: str | None) -> FigureStyle:
    """Checks before any run that a figure can be drawn; raises `InputError` or `MissingExtraError`."""
    if file is not None:
        refuse_other(file)
    require_matplotlib()
    return FigureStyle.of(width, style)


def draw(
    data: FigureData,
    file: str | os.PathLike[str] | None,
    *,
    measures: Sequence[str] | None,
    width: str,
    style: str | None,
) -> Figure:
    """Draws a comparison, and writes it to a file if one is named."""
    look = check(file, width, style)
    chosen = _chosen(data, measures)
    with look.applied():
        figure = _drawn(data, chosen, look)
        if subtitle := _subtitle(data, chosen, look):
            subtitled(figure, subtitle)
        if file is not None:
            with writing(file):
                save(figure, Path(file))
    return figure


def _subtitle(data: FigureData, measures: Sequence[int], look: FigureStyle) -> list[str]:
    """Returns the lines that a figure needs on a slide: TCP, unless panels or names say it, and the meaning of bars."""
    tcps = {tcp for own in data.tcp for tcp in own}
    lines = []
    if len(tcps) == 1 and (tcp := tcps.pop()):
        lines = textwrap.wrap(f"TCP: {brief(tcp, LONGEST_TITLE)}", look.characters)
    elif all(len(set(own)) == 1 for own in data.tcp):
        named = {name: own[0] for name, own in zip(data.names, data.tcp, strict=True)}
        distinct = len({short_tcp(tcp) for tcp in named.values()}) == len(tcps)
        texts = [f"{shown(name)}: {short_tcp(tcp) if distinct else tcp}" for name, tcp in named.items()]
        if any(name != short_tcp(tcp) for name, tcp in named.items()):
            lines = textwrap.wrap(f"TCP of {'; '.join(texts)}", look.characters)
    lines += textwrap.wrap(data.fixed, look.characters)
    if data.seeds > 1:
        limits = [(data.means[i], *bounds(data.measures[i].name)) for i in measures]
        is_cut = any(bool((own.low < low).any() or (own.high > high).any()) for own, low, high in limits)
        within = f"{shown(data.scenario)}: " if data.scenario else ""
        cut = ", cut at impossible values" if is_cut else ""
        lines.append(f"{within}means of {data.seeds:,} seeds; bars: 95 % intervals{cut}")
    return lines


def _chosen(data: FigureData, measures: Sequence[str] | None) -> list[int]:
    known = [measure.name for measure in data.measures]
    if measures is None:
        return list(range(min(len(known), MOST_MEASURES)))
    faults = [
        Fault.of_option("measures", name, f"was not measured; there are {', '.join(known)}")
        for name in measures
        if name not in known
    ]
    if faults or not measures:
        raise InputError(faults or [Fault.of_option("measures", "[]", "names nothing to draw")])
    return [known.index(name) for name in dict.fromkeys(measures)]


def _drawn(data: FigureData, measures: Sequence[int], look: FigureStyle) -> Figure:
    if not data.conditions:
        return dots([data.panel(measure, [0]) for measure in measures], look)
    # Lines go over the numbers with most values; the other axes give panels, scenarios first of all.
    conditions = sorted(data.conditions, key=lambda axis: (axis.name == SCENARIO, not axis.is_number, -len(axis)))
    across, *others = conditions
    if across.name == SCENARIO:
        titles = [data.with_tcp(shown(str(own[SCENARIO])), [place]) for place, own in enumerate(data.settings)]
        panels = [data.panel(one, [place], title=title) for one in measures for place, title in enumerate(titles)]
        return dots(panels, look, columns=len(data.settings))
    cells: dict[tuple[float | str, ...], list[int]] = {}
    for place, own in enumerate(data.settings):
        cells.setdefault(tuple(own[axis.name] for axis in others), []).append(place)
    if len(cells) > MOST_PANELS:
        drawn = ", ".join(axis.name for axis in others)
        problem = f"would have {len(cells)} panels for each measure ({drawn}); at most {MOST_PANELS} are drawn"
        raise InputError([Fault.of_option("plot", shown(drawn), f"{problem}: vary less, or draw from the table")])
    values = list(dict.fromkeys(own[across.name] for own in data.settings))
    order = np.argsort(values) if across.is_number else np.arange(len(values))
    by_tcp = any(axis.name.partition(".")[0] == "tcp" for axis in others)
    panels = []
    for measure in measures:
        for cell, places in cells.items():
            title = ", ".join(_titled(axis, value) for axis, value in zip(others, cell, strict=True))
            title = title if by_tcp else data.with_tcp(title, places)
            panels.append(data.panel(measure, [places[i] for i in order], title=title, runs=False))
    return lines(panels, _scale(across, [values[i] for i in order]), look, columns=min(len(cells), 3))


def _titled(axis: Axis, value: float | str) -> str:
    if axis.name == SCENARIO:
        return shown(str(value))
    return f"{words.setting(axis.name)} {words.valued(value, axis.unit)}"


def _scale(axis: Axis, values: Sequence[float | str]) -> Scale:
    name = words.setting(axis.name)
    if not axis.is_number:
        places = np.arange(len(values), dtype=np.float64)
        return Scale(label=words.labelled(name, ""), places=places, words=[str(one) for one in values])
    numbers = np.array(values, dtype=np.float64)
    unit, size = words.ruler(axis.unit, numbers.tolist())
    wide = bool(len(numbers) > 2 and numbers[0] > 0 and numbers[-1] >= WIDE * numbers[0])
    return Scale(label=words.labelled(name, unit), places=numbers / size, logarithmic=wide)
