"""The figure of a comparison: a panel for each measure, with a dot or a line for each name.

`figure.json` contains all data of the figure, so that it can be drawn again without new runs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from celltrain.drawing import figure as canvas
from celltrain.drawing import words
from celltrain.drawing.figure import FigureStyle
from celltrain.drawing.lines import Group, Panel, Scale, dots, lines
from celltrain.ensemble.cases import Measured, bounds, checked_labels
from celltrain.errors import Fault, InputError
from celltrain.model.files import writing
from celltrain.model.network import short_tcp
from celltrain.running.statistics import Means, means
from celltrain.text import among, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Name of the compared axis if scenarios are compared, or of the condition if policies are compared in each scenario.
SCENARIO = "scenario"
#: File with the content of the figure, in the folder of a comparison.
FILE = "figure.json"
#: Maximum number of measures in a figure if the user names none, and of panels for a measure.
MOST_DRAWN, MOST_PANELS = 12, 6
#: Ratio of largest to smallest value at which an axis becomes logarithmic.
WIDE = 20


@dataclass(frozen=True, kw_only=True)
class Condition:
    """An axis at whose values everything is compared."""

    name: str
    unit: str
    is_number: bool
    count: int
    """Number of values."""
    label: str = ""
    """The user's label; empty if the label is derived from the name."""


@dataclass(frozen=True, kw_only=True)
class Pictured:
    """Data for the figure of a comparison, with the attributes of `celltrain.Compared`."""

    scenario: str
    names: Sequence[str]
    conditions: Sequence[Condition]
    settings: Sequence[Mapping[str, float | str]]
    fixed: str
    """The settings for all cases, in words."""
    tcp: Sequence[Sequence[str]]
    measures: Sequence[Measured]
    seeds: int
    """Number of seeds."""
    values: NDArray[np.float64]
    censored: NDArray[np.bool_] | None = None
    """True for values that are only lower bounds."""

    @classmethod
    def read(
        cls, folder: str | os.PathLike[str], labels: Mapping[str, str] | None = None, names: Sequence[str] | None = None
    ) -> Pictured:
        """Reads the figure in the folder of a comparison.

        Args:
            folder: The folder that `celltrain compare --out` wrote.
            labels: Labels of measures by path and of axes by name, instead of those in the folder.
            names: Names of the cases, instead of those in the folder.

        Raises:
            InputError: If the folder has no figure, labels name other measures, or the number of names is wrong.
        """
        path = Path(folder) / FILE
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
            conditions = [Condition(**one) for one in told.pop("conditions")]
            measures = [Measured(**one) for one in told.pop("measures")]
            values = np.array(told.pop("values"), np.float64)
            censored = told.pop("censored", None)
            bounds = None if censored is None else np.array(censored, np.bool_)
            found = cls(**told, conditions=conditions, measures=measures, values=values, censored=bounds)
        except (OSError, ValueError, TypeError, KeyError):
            problem = f"contains no readable {FILE}; name a folder that celltrain compare --out wrote"
            raise InputError.of_option("DIR", shown(folder), problem) from None
        known = [*(one.name for one in measures), *(axis.name for axis in conditions)]
        own = checked_labels(labels or {}, known)
        return replace(
            found,
            measures=[replace(one, label=own.get(one.name, one.label)) for one in measures],
            conditions=[replace(one, label=own.get(one.name, one.label)) for one in conditions],
            names=found.names if names is None else checked_names(names, len(found.names), cases_of(found.names)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns the content of `figure.json`. Missing values are None."""
        values = self.values.astype(object)
        values[np.isnan(self.values)] = None
        told = {**asdict(self), "values": values.tolist(), "censored": self.censored}
        if self.censored is None:
            del told["censored"]
        else:
            told["censored"] = self.censored.tolist()
        return told

    def plot(
        self,
        file: str | os.PathLike[str] | None = None,
        *,
        measures: Sequence[str] | None = None,
        width: str = "page",
        style: str | None = None,
    ) -> Figure:
        """Draws the figure; `celltrain.Compared.plot` describes the arguments."""
        look = check(file, width, style)
        chosen = self._chosen(measures)
        with look.applied():
            figure = self._drawn(chosen, look)
            # A caller who names measures does not need a list of the other measures.
            left_out = self._not_drawn(chosen) if measures is None else []
            canvas.subtitled(figure, [*self._subtitle(chosen), *left_out])
            if file is not None:
                with writing(file):
                    canvas.save(figure, Path(file))
        return figure

    @cached_property
    def means(self) -> Sequence[Means]:
        """For each measure, the means of all cases: for each name, one case per combination."""
        cases = len(self.names) * len(self.settings)
        number = np.repeat(np.arange(cases), self.seeds)
        return [means(number, self.values[..., i].reshape(-1), cases) for i in range(len(self.measures))]

    def _subtitle(self, measures: Sequence[int]) -> list[str]:
        """Returns the lines above the figure: the TCP, unless panels or names show it, and the meaning of bars."""
        tcps = {tcp for own in self.tcp for tcp in own}
        lines = []
        if len(tcps) == 1 and (tcp := tcps.pop()):
            lines = [f"TCP: {canvas.brief(tcp, canvas.LONGEST_TITLE)}"]
        elif all(len(set(own)) == 1 for own in self.tcp):
            named = {name: own[0] for name, own in zip(self.names, self.tcp, strict=True)}
            distinct = len({short_tcp(tcp) for tcp in named.values()}) == len(tcps)
            texts = [f"{shown(name)}: {short_tcp(tcp) if distinct else tcp}" for name, tcp in named.items()]
            if any(name != short_tcp(tcp) for name, tcp in named.items()):
                lines = [f"TCP of {'; '.join(texts)}"]
        lines += [self.fixed] if self.fixed else []
        if self.seeds > 1:
            limits = [(self.means[i], *bounds(self.measures[i].name)) for i in measures]
            is_cut = any(bool((own.low < low).any() or (own.high > high).any()) for own, low, high in limits)
            within = f"{shown(self.scenario)}: " if self.scenario else ""
            bars = "bars: 95 % intervals, cut at impossible values" if is_cut else "bars: 95 % intervals"
            lines.append(f"{within}means of {self.seeds:,} seeds; {bars}")
        if self.censored is not None and self.censored[..., measures].any():
            lines.append(canvas.ARROWS)
        return lines

    def _not_drawn(self, measures: Sequence[int]) -> list[str]:
        """Returns a line that names the other measures, if there are any."""
        others = [words.called(one, unit=False) for i, one in enumerate(self.measures) if i not in measures]
        return [f"not drawn: {', '.join(others)}"] if others else []

    def _chosen(self, measures: Sequence[str] | None) -> list[int]:
        known = [measure.name for measure in self.measures]
        if measures is None:
            return list(range(min(len(known), MOST_DRAWN)))
        faults = [
            Fault.of_option("measures", name, f"was not measured; {among(name, known)}")
            for name in measures
            if name not in known
        ]
        if faults or not measures:
            raise InputError(faults or [Fault.of_option("measures", "[]", "is empty; name at least one measure")])
        return [known.index(name) for name in dict.fromkeys(measures)]

    def _drawn(self, measures: Sequence[int], look: FigureStyle) -> Figure:
        if not self.conditions:
            return dots([self._panel(measure, [0]) for measure in measures], look)
        # The x axis is the numeric axis with the most values. Other axes have a panel for each value.
        conditions = sorted(self.conditions, key=lambda axis: (axis.name == SCENARIO, not axis.is_number, -axis.count))
        across, *others = conditions
        if across.name == SCENARIO:
            titles = [self._with_tcp(shown(str(own[SCENARIO])), [place]) for place, own in enumerate(self.settings)]
            panels = [self._panel(one, [place], title=title) for one in measures for place, title in enumerate(titles)]
            return dots(panels, look, columns=len(self.settings))
        cells: dict[tuple[float | str, ...], list[int]] = {}
        for place, own in enumerate(self.settings):
            cells.setdefault(tuple(own[axis.name] for axis in others), []).append(place)
        if len(cells) > MOST_PANELS:
            drawn = ", ".join(axis.name for axis in others)
            problem = f"would have {len(cells)} panels for each measure ({drawn}); at most {MOST_PANELS} can be drawn"
            raise InputError.of_option("plot", shown(drawn), f"{problem}: vary fewer settings, or plot the table")
        values = list(dict.fromkeys(own[across.name] for own in self.settings))
        order = np.argsort(values) if across.is_number else np.arange(len(values))
        by_tcp = any(axis.name.partition(".")[0] == "tcp" for axis in others)
        panels = []
        for measure in measures:
            for cell, places in cells.items():
                title = ", ".join(_titled(axis, value) for axis, value in zip(others, cell, strict=True))
                title = title if by_tcp else self._with_tcp(title, places)
                panels.append(self._panel(measure, [places[i] for i in order], title=title, runs=False))
        return lines(panels, _scale(across, [values[i] for i in order]), look, columns=min(len(cells), 3))

    def _panel(self, measure: int, places: Sequence[int], *, title: str = "", runs: bool = True) -> Panel:
        """Returns the panel of a measure at some settings; `runs` adds the values that the means are computed from."""
        about, own, groups = self.measures[measure], self.means[measure], []
        for row, name in enumerate(self.names):
            cases = [row * len(self.settings) + place for place in places]
            values = [self.values[row, place, :, measure] for place in places] if runs else []
            known = [of_place[~np.isnan(of_place)] for of_place in values]
            lower = None if self.censored is None else np.asarray(self.censored[row, places, :, measure].any(axis=1))
            groups.append(Group(name=name, mean=own.mean[cases], half=own.half[cases], runs=known, bounds=lower))
        return Panel(label=words.called(about), limits=bounds(about.name), title=title, groups=groups)

    def _with_tcp(self, title: str, places: Sequence[int]) -> str:
        """Returns the title of a panel, with its TCP if panels differ in their TCP."""
        everywhere = {tcp for own in self.tcp for tcp in own}
        here = {short_tcp(own[place]) for own in self.tcp for place in places}
        return f"{title}\nTCP: {here.pop()}" if len(everywhere) > 1 and len(here) == 1 else title


def cases_of(names: Sequence[str]) -> str:
    """Names the cases of a comparison in a message."""
    return f"each of the {len(names)} cases: {', '.join(map(shown, names))}"


def checked_names(names: Sequence[str], count: int, what: str) -> tuple[str, ...]:
    """Returns the user's names of the cases; raises `InputError` if their number is wrong or a name occurs twice."""
    if len(names) != count:
        raise InputError.of_option("names", ", ".join(names), f"must contain one name for {what}")
    if again := next((name for name in names if list(names).count(name) > 1), None):
        raise InputError.of_option("names", again, "appears twice; names must differ")
    return tuple(names)


def check(file: str | os.PathLike[str] | None, width: str, style: str | None, *made: Path | None) -> FigureStyle:
    """Checks before any run that a figure can be drawn; raises `InputError` or `MissingExtraError`.

    `made` are folders that the run makes.
    """
    if file is not None:
        canvas.refuse_other(file, "plot", *made)
    canvas.require_matplotlib()
    return FigureStyle.of(width, style)


def _titled(axis: Condition, value: float | str) -> str:
    if axis.name == SCENARIO:
        return shown(str(value))
    called = words.heading(axis.label) if axis.label else words.setting(axis.name)
    return f"{called} {words.valued(value, axis.unit)}"


def _scale(axis: Condition, values: Sequence[Any]) -> Scale:
    wide = axis.is_number and len(values) > 2 and values[0] > 0 and values[-1] >= WIDE * values[0]
    return Scale.of(axis.label or words.axis(axis.name), axis.unit, values, logarithmic=wide)
