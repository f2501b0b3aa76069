"""The figure of a comparison: a panel for each measure, a dot or a line for each of what is compared."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from celltrain.drawing.axes import LONGEST_TITLE, brief, refuse_other, require_matplotlib, save
from celltrain.drawing.pages import words
from celltrain.drawing.pages.drawing import Look
from celltrain.drawing.pages.groups import Across, Group, Panel, dots, lines
from celltrain.drawing.style import SOFT
from celltrain.ensemble.columns import bounds
from celltrain.ensemble.comparing.rows import fixed
from celltrain.ensemble.comparing.settings import SCENARIO
from celltrain.ensemble.plan import Axis
from celltrain.errors import Fault, InputError
from celltrain.model.writing import writing
from celltrain.running.summary import short_tcp
from celltrain.text import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from celltrain.ensemble.comparing.data import Comparison

#: Measures that are drawn where nothing is said.
MOST_MEASURES = 3
#: Values of a second condition that get panels.
MOST_PANELS = 6


def check(file: str | os.PathLike[str] | None, width: str, style: str | None) -> Look:
    """Whether a figure can be drawn so, before anything is run; raises `InputError`, `MissingExtraError`."""
    if file is not None:
        refuse_other(file)
    require_matplotlib()
    return Look.of(width, style)


def draw(
    compared: Comparison,
    file: str | os.PathLike[str] | None,
    *,
    measures: Sequence[str] | None,
    width: str,
    style: str | None,
) -> Figure:
    """Draws a comparison, and writes it where a file is named."""
    look = check(file, width, style)
    chosen = _chosen(compared, measures)
    with look.applied():
        figure = _drawn(compared, chosen, look)
        if said := _subtitle(compared, chosen, look):
            figure.suptitle(said, x=0.01, ha="left", fontsize="small", color=SOFT)
        if file is not None:
            with writing(file):
                save(figure, Path(file))
    return figure


def _subtitle(compared: Comparison, measures: Sequence[int], look: Look) -> str:
    """Returns the texts that a figure needs on a slide: the TCP, unless panels or names say it, and the meaning of the bars."""
    tcps = {tcp for own in compared.tcp for tcp in own}
    lines = []
    if len(tcps) == 1 and (tcp := tcps.pop()):
        lines = textwrap.wrap(f"TCP: {brief(tcp, LONGEST_TITLE)}", 52 if look.narrow else 100)
    elif all(len(set(own)) == 1 for own in compared.tcp):
        named = {name: own[0] for name, own in zip(compared.names, compared.tcp, strict=True)}
        distinct = len({short_tcp(tcp) for tcp in named.values()}) == len(tcps)
        said = [f"{shown(name)}: {short_tcp(tcp) if distinct else tcp}" for name, tcp in named.items()]
        if any(name != short_tcp(tcp) for name, tcp in named.items()):
            lines = textwrap.wrap(f"TCP of {'; '.join(said)}", 52 if look.narrow else 100)
    if compared.fixed:
        lines += textwrap.wrap(fixed(compared), 52 if look.narrow else 100)
    if len(compared.seeds) > 1:
        cut = ", cut at impossible values" if any(_is_cut(compared, one) for one in measures) else ""
        within = f"{shown(compared.scenario)}: " if compared.scenario else ""
        lines.append(f"{within}means of {len(compared.seeds):,} seeds; bars: 95 % intervals{cut}")
    return "\n".join(lines)


def _is_tcp(path: str) -> bool:
    """Returns whether a setting is the TCP or one of its settings."""
    return path.partition(".")[0] == "tcp"


def _with_tcp(compared: Comparison, title: str, places: Sequence[int]) -> str:
    """Returns the title of a panel, with its TCP if other panels have another one."""
    everywhere = {tcp for own in compared.tcp for tcp in own}
    here = {short_tcp(own[place]) for own in compared.tcp for place in places}
    return f"{title}\nTCP: {here.pop()}" if len(everywhere) > 1 and len(here) == 1 else title


def _is_cut(compared: Comparison, measure: int) -> bool:
    """Whether an interval of a measure reaches beyond its possible values."""
    low, high = bounds(compared.measures[measure].name)
    means = compared.means[measure]
    return bool((means.low < low).any() or (means.high > high).any())


def _chosen(compared: Comparison, measures: Sequence[str] | None) -> list[int]:
    known = [measure.name for measure in compared.measures]
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


def _drawn(compared: Comparison, measures: Sequence[int], look: Look) -> Figure:
    names, settings = compared.names, compared.settings
    if not compared.conditions:
        panels = [
            Panel(
                label=_label(compared, measure),
                limits=bounds(compared.measures[measure].name),
                groups=[_group(compared, measure, name, [0], runs=True) for name in range(len(names))],
            )
            for measure in measures
        ]
        return dots(panels, look)
    # Lines go over the numbers with most values; what is left makes panels, scenarios first of all.
    across, *others = sorted(
        compared.conditions, key=lambda axis: (axis.name == SCENARIO, not axis.is_number, -len(axis))
    )
    if across.name == SCENARIO:
        return _in_each(compared, measures, look)
    cells: dict[tuple[float | str, ...], list[int]] = {}
    for place, one in enumerate(settings):
        cells.setdefault(tuple(one[axis.name] for axis in others), []).append(place)
    if len(cells) > MOST_PANELS:
        drawn = ", ".join(axis.name for axis in others)
        problem = f"would have {len(cells)} panels for each measure ({drawn}); at most {MOST_PANELS} are drawn"
        raise InputError([Fault.of_option("plot", shown(drawn), f"{problem}: vary less, or draw from the table")])
    values = list(dict.fromkeys(one[across.name] for one in settings))
    order = np.argsort(values) if across.is_number else np.arange(len(values))
    panels = [
        Panel(
            label=_label(compared, measure),
            limits=bounds(compared.measures[measure].name),
            title=_with_tcp(
                compared,
                ", ".join(_titled(axis, value) for axis, value in zip(others, cell, strict=True)),
                () if any(_is_tcp(axis.name) for axis in others) else places,
            ),
            groups=[
                _group(compared, measure, name, [places[i] for i in order], runs=False) for name in range(len(names))
            ],
        )
        for measure in measures
        for cell, places in cells.items()
    ]
    return lines(panels, _across(across, [values[i] for i in order]), look, columns=min(len(cells), 3))


def _in_each(compared: Comparison, measures: Sequence[int], look: Look) -> Figure:
    """A row of panels for each measure, a panel for each scenario that policies were compared in."""
    panels = [
        Panel(
            label=_label(compared, measure),
            title=_with_tcp(compared, shown(str(own[SCENARIO])), [place]),
            limits=bounds(compared.measures[measure].name),
            groups=[_group(compared, measure, name, [place], runs=True) for name in range(len(compared.names))],
        )
        for measure in measures
        for place, own in enumerate(compared.settings)
    ]
    return dots(panels, look, columns=len(compared.settings))


def _group(compared: Comparison, measure: int, name: int, places: Sequence[int], *, runs: bool) -> Group:
    cases = [name * len(compared.settings) + place for place in places]
    means, found = compared.means[measure], []
    for place in places if runs else ():
        values = compared.values[name, place, :, measure]
        found.append(values[~np.isnan(values)])
    return Group(name=compared.names[name], mean=means.mean[cases], half=means.half[cases], runs=found)


def _label(compared: Comparison, measure: int) -> str:
    about = compared.measures[measure]
    return words.labelled(words.measure(about.name, about.unit), "")


def _titled(axis: Axis, value: float | str) -> str:
    return (
        shown(str(value)) if axis.name == SCENARIO else f"{words.setting(axis.name)} {words.valued(value, axis.unit)}"
    )


def _across(axis: Axis, values: Sequence[float | str]) -> Across:
    if not axis.is_number:
        return Across(
            label=words.labelled(words.setting(axis.name), ""),
            places=np.arange(len(values), dtype=np.float64),
            words=[str(one) for one in values],
        )
    numbers = np.array(values, dtype=np.float64)
    unit, size = words.ruler(axis.unit, numbers.tolist())
    wide = bool(len(numbers) > 2 and numbers[0] > 0 and numbers[-1] >= 20 * numbers[0])
    return Across(label=words.labelled(words.setting(axis.name), unit), places=numbers / size, logarithmic=wide)
