"""The paper's figures, drawn again from our runs, and printed values against the range of the seeds.

Which figures a paper has stands in its `paper.toml`. Every figure is written as PNG and as SVG; the same numbers give the
same SVG, byte for byte.
"""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from celltrain import _core
from celltrain.drawing.axes import require_matplotlib
from celltrain.drawing.style import COLOURS, MARKERS, STYLE
from celltrain.model.expressions import named
from celltrain.model.writing import replacing
from celltrain.papers.paper import PaperError, Value, matches, seed_count
from celltrain.papers.score import Scored

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from celltrain.papers.run import Reproduction


def available() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def write(reproduction: Reproduction, folder: Path) -> list[Path]:
    """Draw every figure whose numbers were run; returns the files."""
    require_matplotlib()
    from matplotlib import rc_context

    written = []
    for spec in reproduction.paper.figures:
        if spec["kind"] not in KINDS:
            raise PaperError(f"figure {spec['id']!r} has the kind {spec['kind']!r}; there are {', '.join(KINDS)}")
        with rc_context({**STYLE, "svg.hashsalt": "celltrain"}):
            figure = KINDS[spec["kind"]](reproduction, spec)
            if figure is None:
                continue
            for ending, metadata in (("png", {}), ("svg", {"Date": None})):
                path = folder / f"{reproduction.paper.id}-{spec['id']}.{ending}"
                with replacing(path) as file:
                    figure.savefig(file, format=ending, dpi=150, metadata=metadata)
                written.append(path)
    return written


def cwnd(reproduction: Reproduction, spec: Mapping[str, Any]) -> Figure:
    """One source's congestion window and slow start threshold over time, from a run of the figure's own."""
    from matplotlib.figure import Figure

    scenario = _core.Scenario(json.dumps(reproduction.paper.scenarios[spec["scenario"]]))
    _, series = scenario.run(spec["seed"], ["cwnd"], spec["step"])
    assert series is not None, "a trace was asked for"
    column = list(series["flows"]).index(spec["flow"])
    figure = Figure(figsize=(7, 3.5), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(series["time_s"], series["cwnd_segments"][:, column], color=COLOURS[0], label="cwnd")
    axes.plot(
        series["time_s"],
        series["ssthresh_segments"][:, column],
        color=COLOURS[1],
        linestyle="--",
        linewidth=1,
        label="ssthresh",
    )
    axes.set(xlabel="time (s)", ylabel="window (segments)", title=spec["title"], xlim=(0, series["time_s"][-1]))
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper right")
    return figure


def windows(reproduction: Reproduction, spec: Mapping[str, Any]) -> Figure:
    """Congestion windows over time, a panel for each scenario, from runs of the figure's own."""
    from matplotlib.figure import Figure

    panels = spec["panels"]
    figure = Figure(figsize=(9, 3.1 * math.ceil(len(panels) / 2)), layout="constrained")
    figure.suptitle(spec["title"])
    grid = figure.subplots(math.ceil(len(panels) / 2), 2, squeeze=False).flat
    for axes, panel, scenario, letter in zip(
        grid, panels, reproduction.paper.panels[spec["id"]], "abcdefgh", strict=False
    ):
        _, series = _core.Scenario(json.dumps(scenario)).run(spec["seed"], ["cwnd"], spec["step"], [])
        assert series is not None, "a trace was asked for"
        for flow, colour in zip(spec["flows"], COLOURS, strict=False):
            window = series["cwnd_segments"][:, list(series["flows"]).index(flow)] * spec["mss_bytes"]
            axes.plot(series["time_s"], window / 1000, color=colour, linewidth=1, label=flow)
        settings = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in panel.items())
        axes.set(xlabel="time (s)", ylabel="cwnd (1000 bytes)", xlim=(0, series["time_s"][-1]))
        axes.set_title(f"({letter}) {settings}", fontsize="medium")
        axes.set_ylim(bottom=0)
    handles, labels = axes.get_legend_handles_labels()
    if len(labels) > 1:
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize="small")
    return figure


def goodput(reproduction: Reproduction, spec: Mapping[str, Any]) -> Figure:
    """Each VC's goodput over time, its mean over every `step`, a panel for each scenario, from runs of the figure's own.

    `groups` are labels and what names their VCs, as in a measure: those of a group share a colour, and a dotted line at their max-min fair goodput.
    """
    from matplotlib.figure import Figure

    panels, groups = spec["panels"], spec["groups"]
    rows = math.ceil(len(panels) / 2)
    figure = Figure(figsize=(9, 0.6 + 2.4 * rows), layout="constrained")
    figure.suptitle(spec["title"], fontsize="large")
    grid = figure.subplots(rows, 2, sharex=True, sharey=True, squeeze=False)
    for axes, panel, scenario in zip(grid.flat, panels, reproduction.paper.panels[spec["id"]], strict=False):
        answer, series = _core.Scenario(json.dumps(scenario)).run(spec["seed"], ["delivered"], spec["step"], [])
        assert series is not None, "a trace was asked for"
        time, delivered = series["time_s"], series["delivered_bytes"].astype(float)
        mbps = np.diff(delivered, axis=0) * 8e-6 / np.diff(time)[:, None]
        fair = {flow["name"]: flow["max_min_mbps"] for flow in json.loads(answer)["flows"]}
        for (label, pattern), colour in zip(groups.items(), COLOURS, strict=False):
            members = named(pattern, series["flows"])
            for index in map(series["flows"].index, members):
                middle = (time[1:] + time[:-1]) / 2
                axes.plot(middle, mbps[:, index], color=colour, linewidth=0.9, alpha=0.7)
            axes.axhline(fair[members[0]], color=colour, linewidth=0.9, linestyle=":")
            axes.plot([], [], color=colour, label=label)
        axes.set_title(", ".join(_valued(key, value, "") for key, value in panel.items()), fontsize="medium")
        axes.set(xlim=(0, time[-1]), ylim=(0, None))
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes in grid[:, 0]:
        axes.set_ylabel("goodput (Mb/s)")
    for axes in grid[-1]:
        axes.set_xlabel("time (s)")
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize="small")
    return figure


def drop_probability(reproduction: Reproduction, spec: Mapping[str, Any]) -> Figure:
    """DFBA's probability of refusing a frame against what its VC holds, below the congestion threshold."""
    from matplotlib.figure import Figure

    panels = spec["panels"]
    figure = Figure(figsize=(3.4 * len(panels), 3.4), layout="constrained")
    figure.suptitle(spec["title"])
    for axes, panel, scenario in zip(
        figure.subplots(1, len(panels), sharey=True, squeeze=False).flat,
        panels,
        reproduction.paper.panels[spec["id"]],
        strict=True,
    ):
        policy = scenario["port"][spec["port"]]["policy"]["dfba"]
        for (vc, r_i), colour in zip(policy["thresholds"].items(), COLOURS, strict=False):
            weight = r_i / policy["congestion_threshold"]
            ceiling = policy["z"] * r_i
            axes.plot([0, r_i, ceiling], [0, 0, weight], color=colour, linewidth=1.2, label=vc)
            axes.plot([ceiling, ceiling, 1.6 * r_i], [weight, 1, 1], color=colour, linewidth=1.2)
        axes.set_yscale("symlog", linthresh=0.001)
        axes.set(xlabel="X_i, cells of the VC in the buffer", ylim=(0, 1.5), xlim=(0, None))
        axes.set_title(", ".join(f"{key} {value}" for key, value in panel.items()), fontsize="medium")
    figure.axes[0].set_ylabel("P(drop), logarithmic above 0.001")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize="small")
    return figure


def along(reproduction: Reproduction, spec: Mapping[str, Any]) -> Figure | None:
    """A quantity of an experiment along a key, a panel for each value of another, with what tables print as dashed lines.

    Only the figure of a paper has such lines, and one without `columns` has one panel. `printed` is a table or several;
    `printed_where` says which of their rows, where it is not all. A printed value is black, with the label `printed_label`,
    unless its table tells apart what `colour` does: then it has the colour of that line. `where` says which rows of the
    experiment. Numbers stand at their places on the `scale`, `linear` (as when absent) or `log`, words evenly.
    `columns_label` and `colour_label` are texts for panels and lines with {} for the value.
    """
    from matplotlib.figure import Figure

    members = _of(_members(reproduction, spec["table"]), spec["quantity"])
    members = [s for s in members if matches(s.number.keys, spec.get("where", {}))]
    if not members:
        return None
    tables = spec.get("printed", [])
    tables = tables if isinstance(tables, list) else [tables]
    printed = _of([s for table in tables for s in _members(reproduction, table)], spec["quantity"])
    printed = [s for s in printed if matches(s.number.keys, spec.get("printed_where", {}))]
    columns = spec.get("columns")
    across = _values(members, columns) if columns else [None]
    places = _values(members, spec["x"])
    numeric = not any(isinstance(place, str) for place in places)
    scale = spec.get("scale", "linear")
    ticks = _apart(places) if numeric and scale == "linear" else places
    told_apart = all(spec["colour"] in s.number.row for s in printed)
    figure = Figure(figsize=(3.6 * len(across) if columns else 7, 3.6 if columns else 4.2), layout="constrained")
    figure.suptitle(f"{spec['title']} ({_seeds(members)}: mean and range)", fontsize="medium")
    for axes, column in zip(figure.subplots(1, len(across), sharey=True, squeeze=False).flat, across, strict=True):
        _height(axes, spec)
        for index, value in enumerate(_values(members, spec["colour"])):
            colour, marker = COLOURS[index % len(COLOURS)], "." if columns else MARKERS[index % len(MARKERS)]
            wanted = {spec["colour"]: value} | ({columns: column} if columns else {})
            line = [s for s in members if matches(s.number.keys, wanted)]
            at = [s.number.keys[spec["x"]] if numeric else places.index(s.number.keys[spec["x"]]) for s in line]
            label = _named(spec, "colour", value, reproduction)
            axes.plot(at, [s.mean for s in line], color=colour, marker=marker, markersize=5, linewidth=1.2, label=label)
            axes.fill_between(at, [s.low for s in line], [s.high for s in line], color=colour, alpha=0.12, linewidth=0)
            if told_apart:
                for s in (s for s in printed if matches(s.number.keys, wanted)):
                    axes.axhline(s.printed, color=colour, linewidth=1, linestyle="--", zorder=1)
        if not told_apart:
            for s in (s for s in printed if columns is None or s.number.keys[columns] == column):
                axes.axhline(s.printed, color="black", linewidth=1.2, linestyle="--", zorder=1)
        if printed:
            colour = "grey" if told_apart else "black"
            axes.plot([], [], color=colour, linestyle="--", label=spec.get("printed_label", "printed"))
        if numeric:
            axes.set_xscale(scale)
        axes.set_xticks(
            ticks if numeric else range(len(ticks)),
            [str(place) for place in ticks],
            rotation=60 if len(places) > 6 else 0,
        )
        axes.minorticks_off()
        axes.set_xlabel(spec.get("x_label") or _label(spec["x"], reproduction.paper.keys[spec["x"]].unit))
        if columns:
            axes.set_title(_named(spec, "columns", column, reproduction), fontsize="medium")
    quantity = reproduction.paper.quantities[spec["quantity"]]
    figure.axes[0].set_ylabel(spec.get("y_label") or _label(quantity.name, quantity.unit))
    handles, labels = figure.axes[0].get_legend_handles_labels()
    if columns:
        figure.legend(handles, labels, loc="outside lower center", ncols=6, fontsize="small")
    else:
        figure.legend(handles, labels, loc="outside center right", fontsize="small")
    return figure


def scatter(reproduction: Reproduction, spec: Mapping[str, Any]) -> Figure | None:
    """Two quantities of a table against each other: as printed on the left, ours (means, and pale each seed) on the right."""
    from matplotlib.figure import Figure

    members = _members(reproduction, spec["table"])
    if not members:
        return None
    pairs = list(zip(_of(members, spec["x"]), _of(members, spec["y"]), strict=True))
    quantities = reproduction.paper.quantities
    figure = Figure(figsize=(8.5, 4.2), layout="constrained")
    figure.suptitle(spec["title"])
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    for colour, value in zip(COLOURS, _values(members, spec["colour"]), strict=False):
        chosen = [pair for pair in pairs if pair[0].number.keys[spec["colour"]] == value]
        label = f"{spec['colour']} = {value}"
        left.scatter(
            [x.printed for x, _ in chosen],
            [y.printed for _, y in chosen],
            color=colour,
            s=22,
            label=label,
        )
        right.scatter(
            [value for x, _ in chosen for value in x.values],
            [value for _, y in chosen for value in y.values],
            color=colour,
            s=5,
            alpha=0.3,
            linewidths=0,
        )
        right.scatter([x.mean for x, _ in chosen], [y.mean for _, y in chosen], color=colour, s=22, label=label)
    left.set(title="printed", ylabel=_label(quantities[spec["y"]].name, quantities[spec["y"]].unit))
    right.set(title=f"ours: mean of {_seeds(members)} (pale: each seed)")
    for axes in (left, right):
        axes.set_xlabel(_label(quantities[spec["x"]].name, quantities[spec["x"]].unit))
    figure.legend(*left.get_legend_handles_labels(), loc="outside right upper")
    return figure


def ranges(reproduction: Reproduction, spec: Mapping[str, Any]) -> Figure | None:
    """Printed values against the range of the seeds: a panel for each network and number of sources, say.

    A study's have no printed values. Without `rows` there is one row, without `columns` one column.
    """
    from matplotlib.figure import Figure

    members = _of(_members(reproduction, spec["table"]), spec["quantity"])
    without = spec.get("without")
    members = [s for s in members if without is None or not matches(s.number.keys, without)]
    if not members:
        return None
    across, down = (_values(members, spec[name]) if name in spec else [None] for name in ("columns", "rows"))
    quantity = reproduction.paper.quantities[spec["quantity"]]
    figure = Figure(figsize=(max(4.2 * len(across), 7), 0.6 + 2.6 * len(down)), layout="constrained")
    figure.suptitle(f"{spec['title']} ({_seeds(members)}{'' if members[0].number.scored else ': mean and range'})")
    grid = figure.subplots(len(down), len(across), sharey="row", squeeze=False)
    for row, first in enumerate(down):
        for column, second in enumerate(across):
            wanted = {spec[n]: value for n, value in (("rows", first), ("columns", second)) if n in spec}
            panel = [s for s in members if matches(s.number.keys, wanted)]
            axes = grid[row, column]
            _height(axes, spec)
            _panel(axes, panel, x=spec["x"], colour=spec["colour"], unit=reproduction.paper.keys[spec["x"]].unit)
            titles = [_valued(key, value, reproduction.paper.keys[key].unit) for key, value in wanted.items()]
            axes.set_title(", ".join(titles), fontsize="medium")
            if column == 0:
                axes.set_ylabel(spec.get("y_label") or _label(quantity.name, quantity.unit))
    handles, labels = grid[0, 0].get_legend_handles_labels()
    ncols = len(labels) if len(labels) <= 6 else math.ceil(len(labels) / 2)
    figure.legend(handles, labels, loc="outside lower center", ncols=ncols, fontsize="small")
    return figure


KINDS: dict[str, Callable[[Reproduction, Mapping[str, Any]], Figure | None]] = {
    "cwnd": cwnd,
    "windows": windows,
    "goodput": goodput,
    "drop_probability": drop_probability,
    "along": along,
    "scatter": scatter,
    "ranges": ranges,
}


def _panel(axes: Axes, panel: Sequence[Scored], *, x: str, colour: str, unit: str) -> None:
    places = _values(panel, x)
    series = _values(panel, colour)
    for index, name in enumerate(series):
        chosen = [s for s in panel if s.number.keys[colour] == name]
        at = [places.index(s.number.keys[x]) + (index - (len(series) - 1) / 2) * 0.8 / len(series) for s in chosen]
        colour_of_name = COLOURS[index % len(COLOURS)]
        low, high = [s.low for s in chosen], [s.high for s in chosen]
        axes.vlines(at, low, high, color=colour_of_name, linewidth=6, alpha=0.35)
        means = [s.mean for s in chosen]
        crosses = [(place, s.printed) for place, s in zip(at, chosen, strict=True) if s.number.published is not None]
        label = name if isinstance(name, str) else f"{colour.replace('_', ' ')} {name}"
        label = f"{label}: range and mean" if crosses else label
        axes.scatter(at, means, color=colour_of_name, marker="_", s=60, label=label)
        if crosses:
            axes.scatter(
                [place for place, _ in crosses],
                [printed for _, printed in crosses],
                color="black",
                marker="x",
                s=22,
                zorder=3,
                label="printed" if index == len(series) - 1 else None,
            )
    axes.set_xticks(range(len(places)), [str(place) for place in places])
    axes.set_xlabel(_label(x, unit))
    axes.grid(visible=False, axis="x")


def _valued(key: str, value: Value | None, unit: str) -> str:
    """A key and its value with its unit: "rtt 6 ms"."""
    name = key.replace("_", " ")
    return f"{name} {value}" if unit in ("", "1") else f"{name.removesuffix(f' {unit}')} {value} {unit}"


def _named(spec: Mapping[str, Any], part: str, value: Value | None, reproduction: Reproduction) -> str:
    """A panel's or a line's value as the figure's `<part>_label` words it, else with key and unit; a line's word by itself."""
    if template := spec.get(f"{part}_label"):
        return str(template).replace("{}", str(value))
    key = spec[part]
    if part == "colour" and isinstance(value, str):
        return value
    return _valued(key, value, reproduction.paper.keys[key].unit)


def _apart(places: Sequence[Any]) -> list[Any]:
    """The places whose labels do not run into the one before."""
    apart: list[Any] = []
    for place in sorted(places):
        if not apart or place - apart[-1] >= 0.03 * (max(places) - min(places)):
            apart.append(place)
    return apart


def _height(axes: Axes, spec: Mapping[str, Any]) -> None:
    """A line at a `level` of its own, such as an equal share, and a logarithmic height where `y_scale` is `log`."""
    from matplotlib.ticker import LogLocator, NullLocator

    if "level" in spec:
        axes.axhline(spec["level"], color="black", linewidth=0.8, linestyle=":")
    if spec.get("y_scale") == "log":
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter("{x:g}")


def _members(reproduction: Reproduction, table: str) -> list[Scored]:
    return [s for s in reproduction.scored if s.number.table == table]


def _of(members: Sequence[Scored], quantity: str) -> list[Scored]:
    return [s for s in members if s.number.quantity.name == quantity]


def _values(members: Sequence[Scored], key: str) -> list[Value]:
    return list(dict.fromkeys(s.number.keys[key] for s in members))


def _seeds(members: Sequence[Scored]) -> str:
    counts = sorted({len(s.seeds) for s in members})
    return seed_count(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"


def _label(name: str, unit: str) -> str:
    words = name.replace("_", " ")
    if unit in ("", "1"):
        return words
    for ending in (unit, unit.replace("/", "p").lower()):
        words = words.removesuffix(f" {ending}")
    return f"{words} ({unit})"
