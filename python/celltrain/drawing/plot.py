"""Plots of a run's series and diagrams of its events, on matplotlib axes with units."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.drawing import figure as canvas
from celltrain.drawing import memory
from celltrain.drawing.figure import INK, brief, colour_of_flow, legible, new_axes
from celltrain.drawing.words import valued
from celltrain.errors import InputError
from celltrain.model.arguments import checked
from celltrain.model.files import writing
from celltrain.text import among

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from celltrain.drawing.diagrams import Diagrams


#: Height of a panel by its width, and its least height in inches.
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
        """Draws the goodput of each connection over time: the mean between two samples, at the first of them."""
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
        """Draws a memory that ports share over time: one block, divided by queue.

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
        block = memory.of(self._answer, labels, held, thresholds, name, side)
        ax = new_axes() if ax is None else ax
        memory.draw(ax, times, block, *(array[:, block.queues] for array in (held, shared, thresholds)))
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
    handles, labels = ax.get_legend_handles_labels()
    legend.remove()
    under = ax.transAxes + ScaledTranslation(0, -BELOW, ax.figure.dpi_scale_trans)
    place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "bbox_transform": under}
    columns = look.columns(labels)
    handles, labels = (canvas.by_rows(entries, columns) for entries in (handles, labels))
    moved = ax.legend(handles, labels, ncols=columns, fontsize="x-small", columnspacing=1.2, **place)
    for text in moved.get_texts():
        text.set_parse_math(False)


def _beside(ax: Axes) -> Axes:
    """Adds a legend next to the plot."""
    legend = ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0, fontsize="small")
    for text in legend.get_texts():
        # A dollar sign in a name does not start a formula.
        text.set_parse_math(False)
    return ax
