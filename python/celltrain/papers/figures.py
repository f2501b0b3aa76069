"""The figures of a paper, drawn from simulated runs. They also show printed values against the range of the seeds.

A paper's `paper.toml` lists its figures. Every figure is written as PNG, SVG and PDF; the same numbers give the same
SVG.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from celltrain.drawing import figure as canvas
from celltrain.drawing import words
from celltrain.model.measures import named
from celltrain.model.scenario import Reading
from celltrain.papers.paper import Paper, PaperError, Value, matches
from celltrain.papers.score import Scored, against

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Formats of every figure.
ENDINGS = ("png", "svg", "pdf")
#: Number of characters of a title per inch.
TITLE_PER_INCH = 13


def write(
    paper: Paper, scored: Sequence[Scored], folder: Path, *, width: str | None = None, style: str | None = None
) -> list[Path]:
    """Draws every figure whose numbers were run; returns the files.

    A figure that needs additional runs is left out if no number of its network was run. If it shows a scenario exactly
    as in the paper, it is also left out if the settings were changed.

    Args:
        paper: The paper or study.
        scored: Its numbers.
        folder: Folder of the files.
        width: `page`, `column` or a length; as wide as the panels need when None.
        style: A matplotlib style; celltrain's own when None.
    """
    canvas.require_matplotlib()
    look = canvas.FigureStyle.of(width or "page", style)
    written = []
    networks = {one.number.network for one in scored}
    for spec in paper.figures:
        if spec["kind"] not in KINDS:
            raise PaperError(f"figure {spec['id']!r} has kind {spec['kind']!r}; choose from {', '.join(KINDS)}")
        is_changed = "scenario" in spec and paper.overrides
        if is_changed or ("network" in spec and spec["network"] not in networks):
            continue
        with look.applied():
            figure = KINDS[spec["kind"]](Source(paper=paper, scored=scored, spec=spec, look=look if width else None))
            if figure is None:
                continue
            for ending in ENDINGS:
                written.append(folder / f"{paper.id}-{spec['id']}.{ending}")
                canvas.save(figure, written[-1])
    return written


@dataclass(frozen=True, kw_only=True)
class Source:
    """A figure's entry in the paper's file, and the numbers available to it.

    Attributes:
        look: Width that the user requested; None if the figure is as wide as its panels need.
    """

    paper: Paper
    scored: Sequence[Scored]
    spec: Mapping[str, Any]
    look: canvas.FigureStyle | None = None

    @property
    def stacked(self) -> bool:
        """True if the figure has a single column of panels."""
        return self.look is not None and self.look.narrow

    def grid(
        self, rows: int, columns: int, width: float, height: float, title: str | None = None, **options: Any
    ) -> tuple[Figure, NDArray[Any]]:
        """Creates a figure with a title and a grid of axes. In a narrow figure, all axes are in one column."""
        from matplotlib.figure import Figure

        shape = (rows, columns)
        if self.look is not None:
            width = self.look.inches
        if self.stacked:
            height, shape = height * columns, (rows * columns, 1)
        figure = Figure(figsize=(width, height), layout="constrained")
        text = textwrap.fill(self.spec["title"] if title is None else title, int(width * TITLE_PER_INCH))
        figure.suptitle(text, fontsize=options.pop("size", "large" if width >= canvas.NARROW else "medium"))
        return figure, figure.subplots(*shape, squeeze=False, **options).reshape(rows, columns)

    def faceted(
        self, members: Sequence[Scored], width: float, height: float
    ) -> tuple[Figure, list[tuple[Axes, dict[str, Any]]]]:
        """Creates a panel for each value of `rows` and of `columns`, if the figure has them; returns each with its keys."""
        spec = self.spec
        across, down = (_values(members, spec[name]) if name in spec else [None] for name in ("columns", "rows"))
        title = f"{spec['title']} ({_seeds(members)}{'' if members[0].number.scored else ': mean and range'})"
        size = max(width * len(across), 7), 0.6 + height * len(down)
        figure, grid = self.grid(len(down), len(across), *size, title, size="medium", sharey="row")
        panels = []
        for (row, column), axes in np.ndenumerate(grid):
            both = {name: value for name, value in (("rows", down[row]), ("columns", across[column])) if name in spec}
            self.height(axes)
            axes.set(xlabel=self.label("x"), ylabel=self.label("y") if column == 0 or self.stacked else "")
            axes.set_title(", ".join(self.worded(name, value) for name, value in both.items()), fontsize="medium")
            panels.append((axes, {spec[name]: value for name, value in both.items()}))
        return figure, panels

    def members(self, tables: Sequence[str], quantity: str, where: Mapping[str, Any]) -> list[Scored]:
        """Returns the numbers of a quantity in the given tables whose rows match `where`."""
        return [
            one
            for table in tables
            for one in self.scored
            if one.number.table == table and one.number.quantity.name == quantity and matches(one.number.keys, where)
        ]

    def run(self, scenario: Mapping[str, Any], trace: str) -> tuple[dict[str, Any], Any]:
        """Runs a scenario of the figure; returns the answer and the series."""
        case = Reading.of_table(scenario, "scenario").accepted()
        answer, series = case.run(self.spec["seed"], [trace], self.spec["step"], [])
        assert series is not None, "a trace was requested"
        return json.loads(answer), series

    def panels(self) -> Iterator[tuple[str, Any]]:
        """Yields the title and the scenario of each panel."""
        for settings, scenario in zip(self.spec.get("panels", [{}]), self.paper.panels[self.spec["id"]], strict=True):
            yield ", ".join(_valued(key, value, "") for key, value in settings.items()), scenario

    def height(self, axes: Axes) -> None:
        """Draws a line at `level`, such as an equal share, and makes the y axis logarithmic if `y_scale` is `log`."""
        from matplotlib.ticker import LogLocator, NullLocator

        if "level" in self.spec:
            axes.axhline(self.spec["level"], color="black", linewidth=0.8, linestyle=":")
        if self.spec.get("y_scale") == "log":
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_minor_locator(NullLocator())
            axes.yaxis.set_major_formatter("{x:g}")

    def label(self, axis: str) -> str:
        """Returns an axis label: the label that the figure sets, or the quantity or key with its unit."""
        name = self.spec["quantity"] if axis == "y" and "quantity" in self.spec else self.spec[axis]
        about = self.paper.quantities.get(name) or self.paper.keys[name]
        return str(self.spec.get(f"{axis}_label") or words.label(about.name, about.unit))

    def worded(self, part: str, value: Value | None) -> str:
        """Returns the text for a panel or a line.

        The text comes from the template `<part>_label` if there is one, otherwise from the key and the value with its
        unit.
        """
        if template := self.spec.get(f"{part}_label"):
            return str(template).replace("{}", str(value))
        return (
            value
            if part == "colour" and isinstance(value, str)
            else _valued(self.spec[part], value, self.paper.keys[self.spec[part]].unit)
        )


def over_time(source: Source) -> Figure:
    """Draws congestion windows or goodputs over time from separate runs, with one panel per scenario.

    There is a line for each of the `flows`, or for each VC of the `groups`, a table that maps labels to names as in a
    measure. A goodput is the mean in each `step`; a dotted line shows the group's max-min fair goodput.
    """
    spec, panels = source.spec, list(source.panels())
    is_goodput, rows, columns = spec["kind"] == "goodput", math.ceil(len(panels) / 2), min(len(panels), 2)
    lines = spec.get("groups") or {flow: flow for flow in spec.get("flows", [spec.get("flow")])}
    figure, grid = source.grid(rows, columns, 2 + 3.5 * columns, 0.6 + 2.6 * rows, sharex=is_goodput, sharey=is_goodput)
    for axes, (title, scenario) in zip(grid.flat, panels, strict=False):
        answer, series = source.run(scenario, "delivered" if is_goodput else "cwnd")
        time, values = series["time_s"], series.get("cwnd_segments")
        names = series["flows" if is_goodput else "window_flows"]
        fair = {flow["name"]: flow["max_min_mbps"] for flow in answer["flows"]}
        if is_goodput:
            values = np.diff(series["delivered_bytes"].astype(float), axis=0) * 8e-6 / np.diff(time)[:, None]
            time = (time[1:] + time[:-1]) / 2
        elif "mss_bytes" in spec:
            values = values * (spec["mss_bytes"] / 1000)
        for index, (label, pattern) in enumerate(lines.items()):
            colour, dashes = canvas.colour_of(index), canvas.DASHES[index % len(canvas.DASHES)]
            members = named(pattern, names)
            for member in members:
                line = {"color": colour, "linestyle": dashes, "linewidth": 0.9, "alpha": 0.8}
                axes.plot(time, values[:, names.index(member)], **line)
            if is_goodput:
                axes.axhline(fair[members[0]], color=colour, linewidth=0.9, linestyle=":")
            axes.plot([], [], color=colour, linestyle=dashes, label=label)
        alone = "" if len(lines) > 1 or is_goodput else f"{next(iter(lines))}, seed {spec['seed']}"
        axes.set_title(", ".join(filter(None, (title, alone))), fontsize="medium")
        axes.set(xlim=(0, series["time_s"][-1]), ylim=(0, None))
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    unit = "goodput (Mb/s)" if is_goodput else "cwnd (1000 bytes)" if "mss_bytes" in spec else "cwnd (segments)"
    canvas.label_outer(list(grid.flat), 1 if source.stacked else columns, "time (s)", unit)
    if len(lines) > 1 or is_goodput:
        _legend(figure, figure.axes[0], 5)
    return figure


def along(source: Source) -> Figure | None:
    """Draws a quantity of an experiment along a key, one panel per value of another key, with printed values dashed.

    Without `columns` there is one panel. `where` selects rows of the experiment. `printed` names one or several tables,
    and `printed_where` selects their rows. Printed values are black, with the label `printed_label`, unless their table
    has the key of `colour`: then they have the colour of that line. Numeric keys use the `scale`, `linear` (the
    default) or `log`; words are evenly spaced. `columns_label` and `colour_label` are templates for the labels of
    panels and lines, with {} for the value.
    """
    spec = source.spec
    members = source.members([spec["table"]], spec["quantity"], spec.get("where", {}))
    if not members:
        return None
    tables = spec.get("printed", [])
    tables = tables if isinstance(tables, list) else [tables]
    printed = source.members(tables, spec["quantity"], spec.get("printed_where", {}))
    colouring, places, values = spec["colour"], _values(members, spec["x"]), _values(members, spec["colour"])
    in_colour = all(colouring in one.number.row for one in printed)
    marks, plain = {value: canvas.marked(index) for index, value in enumerate(values)}, ("black", "")
    figure, panels = source.faceted(members, 3.6, 3.2)
    for axes, panel in panels:
        for value, (colour, marker) in marks.items():
            line = [one for one in members if matches(one.number.keys, {colouring: value, **panel})]
            keys = [one.number.keys[spec["x"]] for one in line]
            at = [places.index(key) for key in keys] if _has_words(places) else keys
            style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 4, "linewidth": 1.2}
            axes.plot(at, [one.mean for one in line], label=source.worded("colour", value), **style)
            ends = [one.low for one in line], [one.high for one in line]
            axes.fill_between(at, *ends, color=colour, alpha=0.12, linewidth=0)
        for one in printed:
            if matches(one.number.keys, panel):
                colour, marker = marks.get(one.number.keys[colouring], plain) if in_colour else plain
                style = {"color": colour, "marker": marker, "markersize": 4, "clip_on": False}
                axes.axhline(one.printed, linewidth=1.1, linestyle="--", zorder=1, **style)
        if printed:
            label, colour = spec.get("printed_label", "printed"), "grey" if in_colour else "black"
            axes.plot([], [], color=colour, linestyle="--", label=label)
        _places(axes, places, spec.get("scale", "linear"))
    if panels[0][1]:
        _legend(figure, figure.axes[0], 6)
    else:
        _legend(figure, figure.axes[0], 1, loc="outside lower center" if source.stacked else "outside center right")
    return figure


def scatter(source: Source) -> Figure | None:
    """Draws two quantities of a table against each other: printed values, and our means with pale dots for each seed."""
    spec = source.spec
    x, y = (source.members([spec["table"]], spec[axis], {}) for axis in ("x", "y"))
    if not x:
        return None
    figure, [[left, right]] = source.grid(1, 2, 8.5, 4.2, sharex=True, sharey=True)
    for index, value in enumerate(_values(x, spec["colour"])):
        colour, marker = canvas.marked(index)
        both = [[one for one in members if one.number.keys[spec["colour"]] == value] for members in (x, y)]
        label = f"{spec['colour']} = {value}"
        style = {"color": colour, "marker": marker, "s": 22, "label": label}
        left.scatter(*([one.printed for one in own] for own in both), **style)
        values = ([value for one in own for value in one.values] for own in both)
        right.scatter(*values, color=colour, s=5, alpha=0.3, linewidths=0)
        right.scatter(*([one.mean for one in own] for own in both), **style)
    left.set(title="printed", ylabel=source.label("y"))
    right.set(title=f"ours: mean of {_seeds(x)} (pale: each seed)")
    for axes in (left, right):
        axes.set_xlabel(source.label("x"))
    if source.stacked:
        right.set(ylabel=source.label("y"))
        _legend(figure, left, 5)
    else:
        figure.legend(*left.get_legend_handles_labels(), loc="outside right upper")
    return figure


def ranges(source: Source) -> Figure | None:
    """Draws printed values over the range of the seeds, with one panel per value of `rows` and of `columns`.

    A study has no printed values. Without `rows` there is a single row, and without `columns` a single column.
    """
    spec = source.spec
    members = source.members([spec["table"]], spec["quantity"], {})
    if without := spec.get("without"):
        members = [one for one in members if not matches(one.number.keys, without)]
    if not members:
        return None
    figure, panels = source.faceted(members, 4.2, 2.6)
    for axes, wanted in panels:
        _ranges(axes, [one for one in members if matches(one.number.keys, wanted)], spec["x"], spec["colour"])
    count = len(figure.axes[0].get_legend_handles_labels()[1])
    _legend(figure, figure.axes[0], count if count <= 6 else math.ceil(count / 2))
    return figure


def ratios(source: Source) -> Figure | None:
    """Draws the ratios of an experiment's rows to the row of its `against`, with their intervals.

    There is a panel for each of the `quantities`, a line for each value of the key `y`, and a colour for each value of
    `colour`.
    """
    from matplotlib.ticker import LogLocator, NullFormatter

    spec = source.spec
    numbers = [one for one in source.scored if one.number.table == spec["table"]]
    if not numbers:
        return None
    found = [one for one in against(source.paper.table(spec["table"]), numbers) if spec["colour"] in one.row]
    names, values = (list(dict.fromkeys(one.row[spec[key]] for one in found)) for key in ("y", "colour"))
    title = f"{spec['title']} ({_seeds(numbers)}: 95 % intervals)"
    size = 1.6 + 2.3 * len(spec["quantities"]), 1.4 + 0.36 * len(names)
    figure, [panels] = source.grid(1, len(spec["quantities"]), *size, title, size="medium", sharey=True)
    for axes, quantity in zip(panels, spec["quantities"], strict=True):
        for index, value in enumerate(values):
            shift = (index - (len(values) - 1) / 2) * 0.7 / len(values)
            own = [
                (names.index(one.row[spec["y"]]) + shift, one.ratio)
                for one in found
                if one.quantity == quantity and one.row[spec["colour"]] == value
            ]
            places = [place for place, _ in own]
            colour, marker = canvas.marked(index)
            axes.hlines(places, [r.low for _, r in own], [r.high for _, r in own], color=colour, linewidth=1.6)
            style = {"color": colour, "marker": marker, "s": 16, "zorder": 3}
            axes.scatter([r.mean for _, r in own], places, label=source.worded("colour", value), **style)
        axes.axvline(1, color="black", linewidth=0.8, linestyle=":")
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel(str(spec.get("labels", {}).get(quantity, quantity.replace("_", " "))))
        axes.set_yticks(range(len(names)), [str(name).replace("_", " ") for name in names])
        axes.grid(visible=False, axis="y")
    panels[0].invert_yaxis()
    _legend(figure, figure.axes[0], 6)
    return figure


KINDS: dict[str, Callable[[Source], Figure | None]] = {
    **dict.fromkeys(("cwnd", "windows", "goodput"), over_time),
    **{kind.__name__: kind for kind in (along, scatter, ranges, ratios)},
}


def _ranges(axes: Axes, panel: Sequence[Scored], x: str, colouring: str) -> None:
    places, series = _values(panel, x), _values(panel, colouring)
    crosses: list[tuple[float, Scored]] = []
    for index, name in enumerate(series):
        chosen = [one for one in panel if one.number.keys[colouring] == name]
        shift = (index - (len(series) - 1) / 2) * 0.8 / len(series)
        at = [places.index(one.number.keys[x]) + shift for one in chosen]
        colour, marker = canvas.marked(index)
        ends = [one.low for one in chosen], [one.high for one in chosen]
        axes.vlines(at, *ends, color=colour, linewidth=6, alpha=0.35)
        both = zip(at, chosen, strict=True)
        printed = [(place, one) for place, one in both if one.number.published is not None]
        label = name if isinstance(name, str) else f"{colouring.replace('_', ' ')} {name}"
        crosses += printed
        label = f"{label}: range and mean" if printed else label
        axes.scatter(at, [one.mean for one in chosen], color=colour, marker=marker, s=16, label=label)
    # Printed values come last both in the plot and in the legend.
    for scored, colour, note in ((True, "black", ""), (False, canvas.GREY, ", not scored")):
        own = [(place, one.printed) for place, one in crosses if one.number.scored is scored]
        if own:
            cross: dict[str, Any] = {"color": colour, "marker": "x", "s": 22, "zorder": 3}
            axes.scatter(*zip(*own, strict=True), label=f"printed{note}", **cross)
    axes.set_xticks(range(len(places)), [str(place) for place in places])
    axes.grid(visible=False, axis="x")


def _legend(figure: Figure, axes: Axes, columns: int, *, loc: str = "outside lower center") -> None:
    """Adds the legend of all panels: each label once, row by row in as many columns as fit into the figure's width.

    Lines and groups are in the order of the table, followed by printed values.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    entries: dict[str, Any] = {}
    for panel in [axes, *figure.axes]:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    renderer = FigureCanvasAgg(figure).get_renderer()
    labels = sorted(entries, key=lambda label: label.startswith("printed"))
    for count in range(min(columns, len(labels)), 0, -1):
        shown = canvas.by_rows(labels, count)
        legend = figure.legend([entries[label] for label in shown], shown, loc=loc, ncols=count, fontsize="small")
        if count == 1 or legend.get_window_extent(renderer).width <= 0.98 * figure.bbox.width:
            return
        legend.remove()


def _places(axes: Axes, places: Sequence[Any], scale: str) -> None:
    """Sets the ticks of the x axis: words at equal distances, numbers to scale.

    Omits ticks too close to the previous one.
    """
    ticks = list(places)
    if not _has_words(places):
        axes.set_xscale(scale)
        if scale == "linear":
            ticks = []
            for place in sorted(places):
                if not ticks or place - ticks[-1] >= 0.03 * (max(places) - min(places)):
                    ticks.append(place)
    at = range(len(ticks)) if _has_words(places) else ticks
    axes.set_xticks(at, [str(place) for place in ticks], rotation=60 if len(places) > 6 else 0)
    axes.minorticks_off()


def _has_words(places: Sequence[Any]) -> bool:
    return any(isinstance(place, str) for place in places)


def _values(members: Sequence[Scored], key: str) -> list[Value]:
    return list(dict.fromkeys(one.number.keys[key] for one in members))


def _seeds(members: Sequence[Scored]) -> str:
    counts = sorted({len(one.seeds) for one in members})
    return words.counted(counts[0], "seed") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"


def _valued(key: str, value: Value | None, unit: str) -> str:
    """Returns a key and its value with its unit, such as "rtt 6 ms"."""
    name = key.replace("_", " ")
    return f"{name} {value}" if unit in ("", "1") else f"{name.removesuffix(f' {unit}')} {value} {unit}"
