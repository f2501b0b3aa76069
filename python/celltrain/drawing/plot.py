"""Plots of a run's series and diagrams of its events, on matplotlib axes with units."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.drawing import figure as canvas
from celltrain.drawing.diagrams import one_of
from celltrain.drawing.figure import COLOURS, INK, brief, colour_of_flow, legible, new_axes, tint_of_flow
from celltrain.drawing.words import counted, valued
from celltrain.errors import InputError
from celltrain.model.arguments import checked
from celltrain.model.files import writing
from celltrain.text import among, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from celltrain.drawing.diagrams import Diagrams


#: Height of a panel by its width, and its minimum height in inches.
RATIO, LEAST_HEIGHT = 9 / 16, 2.8
#: Maximum number of powers of two with a tick.
MOST_DOUBLINGS = 24
#: Distance of a legend below its axes in inches: the ticks and the label of the x axis.
BELOW = 0.42


class Plot:
    """The plots of one run. Every method draws on `ax`, or on new axes, and returns the axes.

    >>> import celltrain as ct
    >>> lan = ct.n_source(sources=5, link_delay="5us", buffer_cells=1000, policy=ct.TailDrop(), duration="50ms")
    >>> axes = ct.run(lan, trace=["queue"], step="100us").plot.queue()
    >>> axes.get_ylabel()
    'cells waiting'
    """

    def __init__(
        self, series: Any, answer: Mapping[str, Any], title: Sequence[str], diagrams: Callable[[], Diagrams]
    ) -> None:
        self._series = series
        self._answer = answer
        self._title = title
        self._diagrams = diagrams

    def __repr__(self) -> str:
        recorded = (
            ", ".join(f"{name}()" for name in self._series) or "none was recorded, because the run recorded no series"
        )
        return f"<plots of a run: {recorded}>"

    @checked()
    def queue(self, *, ax: Axes | None = None) -> Axes:
        """Draws the cells waiting at each recorded port over time.

        A line shows the samples, and the band around it the smallest and the largest queue between two samples. Dashed
        lines are the thresholds of the ports' policies, dotted lines the sizes of their buffers.
        """
        times, labels, [cells, least, largest] = self._series.raw("queue")
        port = brief(labels[0], canvas.LONGEST_LABEL) if len(labels) == 1 else f"{len(labels)} ports"
        ax = self._steps("queue", times, labels, cells, f"Queue at {port}", "cells waiting", ax)
        for index, (low, high) in enumerate(zip(least.T, largest.T, strict=True)):
            # A sample contains the range of the queue during the previous step.
            ends = ([*low[1:], low[-1]], [*high[1:], high[-1]])
            is_first = index == 0 and len(times) > 1
            step = valued(float(times[1] - times[0]), "s", 4) if is_first else ""
            label = f"smallest to largest value in each {step}" if is_first else None
            # A burst of one step may be narrower than a pixel; outlining the band keeps it visible.
            band: dict[str, Any] = {"alpha": 0.4, "linewidth": 0.8, "step": "post", "label": label}
            ax.fill_between(times, *ends, color=colour_of_flow(index), **band)
        ports = [row for row in self._answer["ports"] if row["name"] in labels]
        thresholds = {(row["threshold_cells"], row["policy"]) for row in ports if row["threshold_cells"] is not None}
        for threshold, policy in sorted(thresholds):
            label = f"threshold of {policy}: {threshold:,} cells"
            ax.axhline(threshold, color=INK, linestyle="--", linewidth=1, label=label)
        for size in sorted({row["buffer_cells"] for row in ports if row["buffer_cells"] is not None}):
            ax.axhline(size, color=INK, linestyle=":", linewidth=1, label=f"buffer: {size:,} cells")
        return _finished(ax, labels)

    @checked()
    def occupancy(self, *, ax: Axes | None = None) -> Axes:
        """Draws the cells of each connection waiting at each recorded port over time."""
        times, labels, [cells] = self._series.raw("occupancy")
        what = "Cells of each connection in the queue"
        return _finished(self._steps("occupancy", times, labels, cells, what, "cells waiting", ax), labels)

    @checked()
    def cwnd(self, *, ax: Axes | None = None, ssthresh: bool = False, log: bool = False) -> Axes:
        """Draws the congestion window of each connection over time.

        Args:
            ax: Axes to draw on.
            ssthresh: Adds a dashed line for the slow start threshold.
            log: Makes the axis of windows logarithmic to the base 2, on which slow start is a straight line.
        """
        times, labels, [cwnd, thresholds] = self._series.raw("cwnd")
        ax = self._steps("cwnd", times, labels, cwnd, "Congestion windows", "congestion window (segments)", ax)
        if ssthresh:
            for line, column in zip(ax.get_lines()[-len(labels) :], thresholds.T, strict=True):
                ax.plot(times, column, color=line.get_color(), linestyle="--", linewidth=0.8, drawstyle="steps-post")
        ax = _finished(ax, labels)
        if log:
            from matplotlib.ticker import LogLocator

            ax.set_yscale("log", base=2)
            ax.yaxis.set_major_locator(LogLocator(base=2, numticks=MOST_DOUBLINGS))
            ax.yaxis.set_major_formatter("{x:.0f}")
        return ax

    @checked()
    def delivered(self, *, ax: Axes | None = None) -> Axes:
        """Draws the goodput of each connection over time: each point is the mean from one sample to the next."""
        times, labels, [delivered] = self._series.raw("delivered")
        mbps = (delivered[1:] - delivered[:-1]) * 8e-6 / (times[1:] - times[:-1])[:, None]
        return _finished(self._steps("delivered", times[:-1], labels, mbps, "Goodput", "goodput (Mb/s)", ax), labels)

    @checked()
    def acr(self, *, ax: Axes | None = None) -> Axes:
        """Draws the ACR of each connection's data over time."""
        times, labels, [rates] = self._series.raw("acr")
        return _finished(self._steps("acr", times, labels, rates, "Allowed cell rates (ACR)", "ACR (Mb/s)", ax), labels)

    @checked()
    def edge(self, *, ax: Axes | None = None) -> Axes:
        """Draws the packets of each connection at its edge device. Dots mark phase 1 of adaptive discard."""
        times, labels, [packets, phases, _, _] = self._series.raw("edge")
        what, ylabel = "Packets at the edge devices", "packets at the edge device"
        ax = self._steps("edge", times, labels, packets, what, ylabel, ax)
        for line, queue, phase in zip(ax.get_lines()[-len(labels) :], packets.T, phases.T, strict=True):
            ax.plot(times[phase == 1], queue[phase == 1], ".", color=line.get_color(), markersize=5)
        if phases.any():
            ax.plot([], [], ".", color="black", markersize=5, label="dots: phase 1")
        return _finished(ax, labels)

    @checked()
    def memory(self, name: str | None = None, *, side: str | None = None, ax: Axes | None = None) -> Axes:
        """Draws the occupancy of a shared memory over time, as one block divided by queue.

        The stacked areas are the cells in each queue or group. A dashed line is the threshold of one: the cells of the
        shared part that it may hold. A dotted line is the size of the memory. Bars above the areas show when groups
        that paused their links were at their thresholds.

        Args:
            name: The memory, which has the name of its switch; the one that was fullest when None.
            side: `"egress"` for queues or `"ingress"` for priority groups. When None, groups if they paused links, and
                otherwise the side with the smallest threshold.
            ax: Axes to draw on.
        """
        times, labels, [held, shared, thresholds] = self._series.raw("memory")
        block = memory_block(self._answer, labels, held, thresholds, name, side)
        ax = new_axes() if ax is None else ax
        draw_memory(ax, times, block, *(array[:, block.queues] for array in (held, shared, thresholds)))
        what = f"Memory of {brief(block.name, canvas.LONGEST_LABEL)}"
        ax.set_title("\n".join([what, *self._title]), parse_math=False)
        return _beside(ax)

    @checked()
    def write(
        self,
        file: str | os.PathLike[str],
        *,
        width: str = "page",
        style: str | None = None,
        labels: Mapping[str, str] | None = None,
        log: bool = False,
    ) -> Path:
        """Draws the recorded series to a file, with a panel for each.

        Args:
            file: The file, with a suffix for its format: `.svg`, `.pdf` or `.png`.
            width: `"page"` (7.2 inches), `"column"` (3.5 inches) for a paper's column, or a length such as `"8.5cm"`.
            style: A matplotlib style: a name such as `"grayscale"`, or a file. Celltrain's own when None.
            labels: Labels of the vertical axes, by series, such as `{"cwnd": "window (segments)"}`.
            log: Makes the axis of congestion windows logarithmic to the base 2.

        Raises:
            InputError: If the file's suffix, the width, the style or a series in `labels` is unknown.
        """
        canvas.refuse_other(file)
        canvas.require_matplotlib()
        look = canvas.FigureStyle.of(width, style)
        from matplotlib.figure import Figure

        names = list(self._series)
        if not names:
            raise InputError.saying("No series was recorded: name some in trace, such as queue.", key="plot")
        labels = labels or {}
        if wrong := [name for name in labels if name not in names]:
            raise InputError.of_option("labels", wrong[0], f"is not drawn; {among(wrong[0], names)}")
        # Do not use pyplot, which could open a window or keep the figure in memory.
        with look.applied():
            height = max(RATIO * look.inches, LEAST_HEIGHT)
            figure = Figure(figsize=(look.inches, height * len(names)), layout="constrained")
            for name, panel in zip(names, figure.subplots(len(names), squeeze=False)[:, 0], strict=True):
                getattr(self, name)(ax=panel, **({"log": True} if log and name == "cwnd" else {}))
                if name in labels:
                    panel.set_ylabel(labels[name])
                if look.narrow:
                    _below(panel, look)
                    if name != names[0]:
                        # The lines about the run are long, so they are placed above the first panel.
                        panel.set_title(panel.get_title().split("\n")[0])
            if look.narrow:
                canvas.fitted(figure)
            with writing(file):
                canvas.save(figure, Path(file))
        return Path(file)

    @checked()
    def sequence(self, flow: str, *, window: str | None = None, ax: Axes | None = None) -> Axes:
        """Draws the time-sequence diagram of a connection; see `celltrain.drawing.diagrams.Diagrams.sequence`."""
        return self._diagrams().sequence(flow, window=window, ax=ax)

    @checked()
    def anatomy(self, port: str | None = None, *, window: str | None = None, ax: Axes | None = None) -> Axes:
        """Draws the queue at a port over time, by VC; see `celltrain.drawing.diagrams.Diagrams.anatomy`."""
        return self._diagrams().anatomy(port, window=window, ax=ax)

    @checked()
    def ladder(self, flow: str, frame: int | None = None, *, ax: Axes | None = None) -> Axes:
        """Draws the path of one frame's cells; see `celltrain.drawing.diagrams.Diagrams.ladder`."""
        return self._diagrams().ladder(flow, frame, ax=ax)

    def _steps(
        self, series: str, times: Any, labels: Sequence[str], values: Any, what: str, ylabel: str, ax: Axes | None
    ) -> Axes:
        """Draws a line for each column, in the colour of its flow, or by the position of its recorded port."""
        ax = new_axes() if ax is None else ax
        places = {flow["name"]: place for place, flow in enumerate(self._answer["flows"])}
        flows = self._series.flows(series) or labels
        for place, (flow, label, column) in enumerate(zip(flows, labels, values.T, strict=True)):
            index = places.get(flow, place)
            # Colours and line styles repeat after different numbers of lines, so that pairs of them stay distinct.
            dashes = canvas.DASHES[index % len(canvas.DASHES)]
            line: dict[str, Any] = {"color": colour_of_flow(index), "linestyle": dashes, "linewidth": 1}
            ax.plot(times, column, label=legible(label), drawstyle="steps-post", **line)
        ax.set(xlabel="time (s)", ylabel=ylabel)
        ax.set_title("\n".join([what, *self._title]), parse_math=False)
        ax.margins(x=0)
        return ax


def _finished(ax: Axes, labels: Sequence[str]) -> Axes:
    """Adds a legend next to the plot, unless it would be too long, and starts the value axis at zero.

    Fixed limits would be wrong on a logarithmic scale, which a caller may set later.
    """
    for line in ax.get_lines():
        line.sticky_edges.y.append(0)
    start = ax.get_xlim()[0]
    ax.update_datalim([(start, 0.0)], updatex=False)
    ax.autoscale_view()
    return _beside(ax) if len(labels) <= canvas.MAX_LEGEND else ax


def _below(ax: Axes, look: canvas.FigureStyle) -> None:
    """Moves the legend of a narrow plot below the plot."""
    from matplotlib.transforms import ScaledTranslation

    if (legend := ax.get_legend()) is None:
        return
    legend.remove()
    under = ax.transAxes + ScaledTranslation(0, -BELOW, ax.figure.dpi_scale_trans)
    place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "bbox_transform": under}
    columns = look.columns(ax.get_legend_handles_labels()[1])
    canvas.legend_of(ax, columns, fontsize="x-small", columnspacing=1.2, **place)


def _beside(ax: Axes) -> Axes:
    """Adds a legend next to the plot."""
    canvas.legend_of(ax, loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0, fontsize="small")
    return ax


# Draws a memory shared by ports over time, as one block divided by queue.


#: Maximum number of queues with an area of their own, and the colour of the area for the others.
_MOST_QUEUES = len(COLOURS)
_REST = "#DDDDDD"
#: A queue gets its own area if it once held this fraction of the memory. Thinner areas could not be seen.
_THIN = 0.01
#: Maximum number of thresholds with lines of their own.
_MOST_THRESHOLDS = 4
#: Maximum length of a queue's name in the legend.
_LONGEST = 24
#: A memory larger than this multiple of its largest content is not drawn completely.
_VISIBLE = 4
#: Height of the bar of a group that paused its link, as a share of the figure.
_BAR = 0.04
#: Words in the legend about a line that is not visible.
_ABOVE = " (above)"


@dataclass(frozen=True, kw_only=True)
class Block:
    """A memory, and the positions of its queues among the recorded queues."""

    name: str
    cells: int
    queues: Sequence[int]
    """Positions of the memory's queues on this side."""
    labels: Sequence[str]
    pauses: Sequence[str]
    """For each queue, describes how often the link that feeds it was paused; empty if it never was."""
    side: str

    @property
    def kind(self) -> str:
        """Word for an area: a queue, or a priority group."""
        return "queue" if self.side == "egress" else "group"


def memory_block(
    answer: Mapping[str, Any],
    recorded: Sequence[str],
    held: Any,
    thresholds: Any,
    name: str | None,
    side: str | None = None,
) -> Block:
    """Finds a memory in the answer of a run.

    Args:
        answer: The answer of the run.
        recorded: Names of the recorded queues.
        held: Cells in each recorded queue, by instant.
        thresholds: Thresholds of these queues, by instant.
        name: The memory; the one that was fullest when None.
        side: The side whose queues are drawn; when None, ingress if links paused, otherwise the side with the smallest
            threshold.
    """
    names = [row["name"] for row in answer["memories"]]
    if name is not None:
        one_of("name", "a packet memory of a switch in this network", name, names)
    blocks = [
        _block(row, _queues_of(row["name"], names, answer["queues"]), recorded, thresholds, side)
        for row in answer["memories"]
        if name in (None, row["name"])
    ]
    return max(blocks, key=lambda block: held[:, block.queues].sum(axis=1).max(initial=0) / block.cells)


def _queues_of(name: str, memories: Sequence[str], queues: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the queues of a memory. The name of one memory may be the beginning of another's.

    Schedulers' queues belong to no memory.
    """

    def memory_of(queue: Mapping[str, Any]) -> str:
        return max((one for one in memories if queue["name"].startswith(f"{one}/")), key=len, default="")

    return [queue for queue in queues if memory_of(queue) == name]


def _block(
    row: Mapping[str, Any],
    queues: Sequence[Mapping[str, Any]],
    recorded: Sequence[str],
    thresholds: Any,
    side: str | None,
) -> Block:
    places = {name: place for place, name in enumerate(recorded)}
    sides = sorted({queue["side"] for queue in queues})
    if side is not None:
        one_of("side", f"a side of the memory {shown(row['name'])}", side, sides)
    else:
        # The priority groups of the ingress side decide about pauses, and the smallest threshold about drops.
        smallest = {
            one: min(thresholds[:, places[queue["name"]]].min() for queue in queues if queue["side"] == one)
            for one in sides
        }
        side = "ingress" if any(queue["pauses"] for queue in queues) else min(sides, key=smallest.__getitem__)
    chosen = [queue for queue in queues if queue["side"] == side]
    names = [queue["name"] for queue in chosen]
    parts = [name.removeprefix(f"{row['name']}/").rpartition("/") for name in names]
    has_priorities = len({priority for _, _, priority in parts}) > 1
    labels = [f"{link}, priority {priority}" if has_priorities else link for link, _, priority in parts]
    pauses = [counted(queue["pauses"], "pause") if queue["pauses"] else "" for queue in chosen]
    queues_of_side = [places[name] for name in names]
    return Block(name=row["name"], cells=row["cells"], side=side, queues=queues_of_side, labels=labels, pauses=pauses)


def draw_memory(ax: Axes, times: Any, block: Block, held: Any, shared: Any, thresholds: Any) -> None:
    """Draws the areas of a memory's queues, their thresholds and pauses, and its size."""
    import numpy as np

    top = max(int(held.sum(axis=1).max(initial=0)), 1)
    if block.cells <= _VISIBLE * top:
        top = block.cells
    peaks = held.max(axis=0)
    longest = [queue for queue in np.argsort(-peaks, kind="stable") if peaks[queue] >= _THIN * top]
    drawn = sorted(map(int, longest[:_MOST_QUEUES])) or [int(peaks.argmax())]
    others = [queue for queue in range(len(peaks)) if queue not in drawn]
    layers = [held[:, queue] for queue in drawn]
    labels = [
        ", ".join(text for text in (legible(block.labels[queue], _LONGEST), block.pauses[queue]) if text)
        for queue in drawn
    ]
    colours = [tint_of_flow(place) for place in range(len(drawn))]
    if others:
        layers.append(held[:, others].sum(axis=1))
        labels.append(counted(len(others), f"other {block.kind}"))
        colours.append(_REST)
    ax.stackplot(times, layers, labels=labels, colors=colours, step="post", linewidth=0)
    of_queues = [(labels[place].partition(",")[0], thresholds[:, queue]) for place, queue in enumerate(drawn)]
    _thresholds(ax, times, block, top, of_queues)
    is_above = "" if top == block.cells else _ABOVE
    label = f"memory: {block.cells:,} cells{is_above}"
    ax.axhline(block.cells, color=INK, linestyle=":", linewidth=1, label=label)
    paused = [(place, queue) for place, queue in enumerate(drawn) if block.pauses[queue]]
    for row, (place, queue) in enumerate(paused):
        bottom = top * (1.06 + _BAR * row)
        # Cells outside the shared part are in the reserve, which fills first, or in the headroom.
        outside, is_shared = held[:, queue] - shared[:, queue], shared[:, queue] > 0
        in_headroom = is_shared & (outside > outside.min(initial=block.cells, where=is_shared))
        at_threshold = in_headroom | (shared[:, queue] + 1 > thresholds[:, queue])
        ax.fill_between(
            times,
            bottom,
            bottom + 0.7 * _BAR * top,
            where=at_threshold,
            step="post",
            color=colour_of_flow(place),
            linewidth=0,
            label="" if row else "bars: groups at their thresholds",
        )
    ax.set_ylim(0, top * (1.06 + _BAR * len(paused) if paused else 1.04))
    ax.set(xlabel="time (s)", ylabel=f"cells in the memory{', by input' if block.side == 'ingress' else ''}")
    ax.margins(x=0)


def _thresholds(ax: Axes, times: Any, block: Block, top: int, of_queues: Sequence[tuple[str, Any]]) -> None:
    """Draws each different threshold once: in black if all queues have the same, or else in the colours of queues.

    A queue that may always hold all cells of the memory has no threshold line. The legend has the smallest value of a
    threshold that is always above the figure, which ends at `top`.
    """
    import numpy as np

    different: list[tuple[int, str, Any]] = []
    for place, (label, values) in enumerate(of_queues):
        known = any(np.allclose(values, other, equal_nan=True) for _, _, other in different)
        if not known and (values < block.cells).any():
            different.append((place, label, values))
    line: dict[str, Any] = {"linestyle": "--", "linewidth": 1, "drawstyle": "steps-post"}
    for place, label, values in different[:_MOST_THRESHOLDS]:
        colour, text = (
            (INK, f"threshold of a {block.kind}")
            if len(different) == 1
            else (colour_of_flow(place), f"its threshold: {label}")
        )
        if values.min() > 1.04 * top:
            text += f" ≥ {values.min():,.0f}{_ABOVE}"
        ax.plot(times, values, color=colour, label=text, **line)
