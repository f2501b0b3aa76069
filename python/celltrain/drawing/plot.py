"""Plots of a run's series and diagrams of its events, on matplotlib axes with units."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from celltrain.drawing.axes import (
    LONGEST_LABEL,
    LONGEST_TITLE,
    MAX_LEGEND,
    brief,
    legible,
    new_axes,
    refuse_other,
    require_matplotlib,
    save,
    styled,
)
from celltrain.drawing.style import COLOURS, INK, colour_of_flow
from celltrain.errors import Fault, InputError
from celltrain.model.arguments import checked
from celltrain.model.writing import writing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from celltrain.running.results import RunResult


#: Lines of flows beyond the last colour.
_DASHES = ("-", (0, (4, 1.5)), (0, (1, 1)))


class Plot:
    """The plots of one run. Every method draws on `ax`, or on new axes, and returns the axes.

    >>> import celltrain as ct
    >>> lan = ct.n_source(sources=5, link_delay="5us", buffer_cells=1000, policy=ct.TailDrop(), duration="50ms")
    >>> axes = ct.run(lan, trace=["queue"], step="100us").plot.queue()
    >>> axes.get_ylabel()
    'cells waiting'
    """

    def __init__(self, result: RunResult) -> None:
        self._result = result

    def __repr__(self) -> str:
        recorded = ", ".join(f"{name}()" for name in self._result.series) or "none, as the run recorded no series"
        return f"<plots of a run: {recorded}>"

    @checked()
    def queue(self, *, ax: Axes | None = None) -> Axes:
        """Cells waiting at each recorded port over time.

        A line has the samples, the band around it the least and the largest queue between two of them. Dashed and dotted
        lines are the thresholds of the ports' policies and the sizes of their buffers.
        """
        times, labels, [cells, least, largest] = self._result.series.raw("queue")
        ax = self._steps(
            "queue", times, labels, cells, what=f"Queue at {_listed(labels)}", ylabel="cells waiting", ax=ax
        )
        for index, (low, high) in enumerate(zip(least.T, largest.T, strict=True)):
            # The range of a sample is that of the step before it.
            ends = ([*low[1:], low[-1]], [*high[1:], high[-1]])
            label = f"least to largest in each {_step(times)}" if index == 0 and len(times) > 1 else None
            # A burst of one step is narrower than a pixel; its edges are not.
            band: dict[str, Any] = {"alpha": 0.4, "linewidth": 0.8, "step": "post", "label": label}
            ax.fill_between(times, *ends, color=colour_of_flow(index), **band)
        self._levels(ax, labels)
        return _finished(ax, len(labels))

    def _levels(self, ax: Axes, labels: Sequence[str]) -> None:
        """The thresholds and the buffers of these ports."""
        ports = [row for row in self._result.to_dict()["ports"] if row["name"] in labels]
        thresholds = {(row["threshold_cells"], row["policy"]) for row in ports if row["threshold_cells"] is not None}
        for cells, policy in sorted(thresholds):
            label = f"threshold of {policy}: {cells:,} cells"
            ax.axhline(cells, color=INK, linestyle="--", linewidth=1, label=label)
        for size in sorted({row["buffer_cells"] for row in ports if row["buffer_cells"] is not None}):
            ax.axhline(size, color=INK, linestyle=":", linewidth=1, label=f"buffer: {size:,} cells")

    @checked()
    def occupancy(self, *, ax: Axes | None = None) -> Axes:
        """Cells of each connection waiting at each recorded port over time."""
        times, labels, [cells] = self._result.series.raw("occupancy")
        what = "Cells of each connection in the queue"
        return _finished(
            self._steps("occupancy", times, labels, cells, what=what, ylabel="cells waiting", ax=ax), len(labels)
        )

    @checked()
    def cwnd(self, *, ax: Axes | None = None, ssthresh: bool = False) -> Axes:
        """Congestion window of each connection over time, and its slow start threshold, dashed, if asked for."""
        times, labels, [cwnd, thresholds] = self._result.series.raw("cwnd")
        ax = self._steps(
            "cwnd", times, labels, cwnd, what="Congestion windows", ylabel="congestion window (segments)", ax=ax
        )
        if ssthresh:
            for line, column in zip(ax.get_lines()[-len(labels) :], thresholds.T, strict=True):
                ax.plot(times, column, color=line.get_color(), linestyle="--", linewidth=0.8, drawstyle="steps-post")
        return _finished(ax, len(labels))

    @checked()
    def delivered(self, *, ax: Axes | None = None) -> Axes:
        """Goodput of each connection over time: its mean between two samples, drawn from the first of them on."""
        times, labels, [delivered] = self._result.series.raw("delivered")
        megabits = (delivered[1:] - delivered[:-1]) * 8e-6
        mbps = megabits / (times[1:] - times[:-1])[:, None]
        return _finished(
            self._steps("delivered", times[:-1], labels, mbps, what="Goodput", ylabel="goodput (Mb/s)", ax=ax),
            len(labels),
        )

    @checked()
    def acr(self, *, ax: Axes | None = None) -> Axes:
        """ACR of each connection's data over time."""
        times, labels, [rates] = self._result.series.raw("acr")
        return _finished(
            self._steps("acr", times, labels, rates, what="Allowed cell rates (ACR)", ylabel="ACR (Mb/s)", ax=ax),
            len(labels),
        )

    @checked()
    def edge(self, *, ax: Axes | None = None) -> Axes:
        """Packets of each connection at its edge device over time, with a dot at each sample in phase 1 of adaptive discard."""
        times, labels, [packets, phases, _, _] = self._result.series.raw("edge")
        ax = self._steps(
            "edge",
            times,
            labels,
            packets,
            what="Packets at the edge devices",
            ylabel="packets at the edge device",
            ax=ax,
        )
        for line, queue, phase in zip(ax.get_lines()[-len(labels) :], packets.T, phases.T, strict=True):
            ax.plot(times[phase == 1], queue[phase == 1], ".", color=line.get_color(), markersize=5)
        if phases.any():
            ax.plot([], [], ".", color="black", markersize=5, label="dots: phase 1")
        return _finished(ax, len(labels))

    @checked()
    def write(self, file: str | os.PathLike[str]) -> Path:
        """Draws the recorded series into a file, a panel each.

        Args:
            file: The file; its ending names its form: `.svg`, `.pdf` or `.png`.
        """
        refuse_other(file)
        require_matplotlib()
        from matplotlib.figure import Figure

        names = list(self._result.series)
        if not names:
            raise InputError([Fault.saying("No series was recorded: name some in trace, such as queue.", key="plot")])
        # Without pyplot: nothing here may open a window or leave a figure behind.
        with styled():
            figure = Figure(figsize=(8, 4.5 * len(names)), layout="constrained")
            for name, panel in zip(names, figure.subplots(len(names), squeeze=False)[:, 0], strict=True):
                getattr(self, name)(ax=panel)
            with writing(file):
                save(figure, Path(file))
        return Path(file)

    @checked()
    def sequence(self, flow: str, *, window: str | None = None, ax: Axes | None = None) -> Axes:
        """The time-sequence diagram of a connection's events; see `celltrain.drawing.diagrams.Diagrams.sequence`."""
        return self._result.events.plot.sequence(flow, window=window, ax=ax)

    @checked()
    def anatomy(self, port: str | None = None, *, window: str | None = None, ax: Axes | None = None) -> Axes:
        """What waits at a port over time, by VC, of its events; see `celltrain.drawing.diagrams.Diagrams.anatomy`."""
        return self._result.events.plot.anatomy(port, window=window, ax=ax)

    @checked()
    def ladder(self, flow: str, frame: int | None = None, *, ax: Axes | None = None) -> Axes:
        """One frame's cells on their way through the network, of its events; see `celltrain.drawing.diagrams.Diagrams.ladder`."""
        return self._result.events.plot.ladder(flow, frame, ax=ax)

    def _indices(self, series: str, labels: Sequence[str]) -> list[int]:
        """The index of each column's flow in the scenario, or of its port among those recorded."""
        index = {flow["name"]: place for place, flow in enumerate(self._result.to_dict()["flows"])}
        flows = self._result.series.flows(series) or labels
        return [index.get(flow, place) for place, flow in enumerate(flows)]

    def _steps(
        self, series: str, times: Any, labels: Sequence[str], values: Any, *, what: str, ylabel: str, ax: Axes | None
    ) -> Axes:
        ax = new_axes() if ax is None else ax
        for index, label, column in zip(self._indices(series, labels), labels, values.T, strict=True):
            dashes = _DASHES[index // len(COLOURS) % len(_DASHES)]
            line: dict[str, Any] = {"color": colour_of_flow(index), "linestyle": dashes, "linewidth": 1}
            ax.plot(times, column, label=legible(label), drawstyle="steps-post", **line)
        ax.set_xlabel("time (s)")
        ax.set_ylabel(ylabel)
        name = brief(self._result.scenario or "scenario", LONGEST_TITLE)
        lines = [what, f"{name}, seed {self._result.seed}", brief(f"TCP: {self._result.tcp}", LONGEST_TITLE)]
        ax.set_title("\n".join(lines), parse_math=False)
        ax.margins(x=0)
        return ax


def _step(times: Any) -> str:
    """The time between two samples, in words."""
    seconds = float(times[1] - times[0])
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"


def _listed(ports: Sequence[str]) -> str:
    """One port by its name, and how many where there are several."""
    return brief(ports[0], LONGEST_LABEL) if len(ports) == 1 else f"{len(ports)} ports"


def _finished(ax: Axes, series: int) -> Axes:
    """With a legend beside the plot, and an axis from zero to above everything drawn."""
    ax.set_ylim(bottom=0)
    if series <= MAX_LEGEND:
        legend = ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0, fontsize="small")
        for text in legend.get_texts():
            # A dollar in a name is a dollar.
            text.set_parse_math(False)
    return ax
