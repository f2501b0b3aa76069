"""Diagrams of a run's events: a connection's time-sequence diagram, the anatomy of a buffer, the ladder of a frame."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from celltrain.drawing import figure as canvas
from celltrain.errors import InputError, NotTracedError
from celltrain.model.arguments import checked
from celltrain.model.files import writing
from celltrain.model.paths import seconds
from celltrain.text import described, nearest, shortened

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes


#: Maximum number of names in an error message.
_SHOWN = 12


def texts(table: pa.Table, column: str) -> Any:
    """Returns a text column as an array of Python strings, with None for null."""
    return table[column].cast("string").to_numpy(zero_copy_only=False)


def numbers(table: pa.Table, column: str) -> Any:
    """Returns a numeric column as floats, with NaN for null."""
    return table[column].to_numpy(zero_copy_only=False).astype(float)


def names(table: pa.Table, column: str) -> list[str]:
    """Returns the distinct texts of a column, in order of first appearance."""
    return [name for name in table[column].cast("string").unique().to_pylist() if name is not None]


def rows_of(table: pa.Table, **wanted: str) -> pa.Table:
    """Returns the rows whose columns, converted to text, have the given values."""
    import pyarrow.compute as pc

    for column, value in wanted.items():
        table = table.filter(pc.equal(table[column].cast("string"), value))
    return table


def within(table: pa.Table, span: tuple[float, float] | None) -> pa.Table:
    """Returns the rows in a time span."""
    import pyarrow.compute as pc

    if span is None:
        return table
    times = table["time_s"]
    return table.filter(pc.and_(pc.greater_equal(times, span[0]), pc.less(times, span[1])))


def span_of(window: str | None) -> tuple[float, float] | None:
    """Parses a window such as `1.2s:1.3s`; either end may be omitted.

    >>> span_of("1.2s:1.3s"), span_of(":5ms")
    ((1.2, 1.3), (0.0, 0.005))
    """
    if window is None:
        return None
    first, colon, last = window.partition(":")
    try:
        start = seconds(first) if first.strip() else 0.0
        end = seconds(last) if last.strip() else float("inf")
    except ValueError as error:
        raise InputError.of_option("window", window, f"has an end that is not {error}") from None
    if not colon or start >= end:
        raise InputError.of_option(
            "window", window, "is not a time window such as 1.2s:1.3s, with the earlier time first"
        )
    return start, end


def one_of(option: str, what: str, wanted: str, known: Sequence[str]) -> str:
    """Returns `wanted` if it is known; otherwise raises `InputError` with the nearest known name and the list."""
    known = list(dict.fromkeys(known))
    if wanted in known:
        return wanted
    guess = f"; did you mean {near}?" if (near := nearest(wanted, known, cutoff=0.4)) else ""
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    there = f" (choose from {', '.join(known[:_SHOWN])}{more})" if known else " (there are none)"
    raise InputError.of_option(option, shortened(wanted), f"is not {what}{guess}{there}")


def lost_frames(sent: Any, arrived: Any) -> Any:
    """Returns, as an array of booleans, which of the sent frames will never arrive.

    Frames of a VC stay in order, so a frame is lost if a later one has arrived and it has not.

    >>> import numpy as np
    >>> lost_frames(np.array([0, 1, 2, 3]), np.array([0, 2]))
    array([False,  True, False, False])
    """
    last = arrived.max() if len(arrived) else -1
    return ~np.isin(sent, arrived) & (sent < last)


#: Size of a diagram in inches: readable in a column of 8 cm as well as on a screen.
SIZE = (4.8, 3.9)
#: Above this number, marks are drawn as an image within the figure.
MOST_MARKS = 4000


@dataclass(frozen=True, kw_only=True)
class Events:
    """The events of a run, with information about the run."""

    log: Mapping[str, pa.Table]
    title: str
    facts: Mapping[str, Any]

    def rows(self, kind: str, span: tuple[float, float] | None = None, **wanted: str) -> pa.Table | None:
        """Returns the rows of a kind that have these texts and lie in a time span.

        None if there are none, or none were recorded.
        """
        try:
            table = rows_of(within(self.log[kind], span), **wanted)
        except NotTracedError:
            return None
        return table if len(table) else None

    def axes(self, ax: Axes | None, *what: str, size: tuple[float, float] = SIZE) -> Axes:
        """Adds a title to the axes, or to new axes if None: the quantity drawn, the run, and its TCP.

        Returns the axes.
        """
        ax = canvas.new_axes(figsize=size) if ax is None else ax
        tcp = self.facts.get("tcp")
        lines = [", ".join(what), self.title, f"TCP: {tcp}" if tcp else ""]
        text = "\n".join(canvas.brief(line, canvas.LONGEST_TITLE) for line in lines if line)
        ax.set_title(text, fontsize="medium", parse_math=False)
        return ax

    def flow_index(self, flows: Sequence[str]) -> dict[str, int]:
        """Returns the index of each flow in its scenario, which determines its colour.

        Without a list of flows, flows are numbered in natural order of their names.
        """
        natural = sorted(flows, key=lambda name: (name.rstrip("0123456789"), len(name), name))
        index = {name: place for place, name in enumerate(self.facts.get("flows") or natural)}
        return {name: index.get(name, len(index)) for name in flows}


def marks(ax: Axes, x: Any, y: Any, marker: str, colour: str, label: str | None, **style: Any) -> None:
    """Draws marks without a line. Draws many marks as an image."""
    style = {"markersize": 4, "markeredgewidth": 0.8, "rasterized": len(x) > MOST_MARKS} | style
    ax.plot(x, y, marker, color=colour, label=label, **style)


def nothing(window: str | None) -> InputError:
    """Creates the error for a diagram that would be empty."""
    return InputError.of_option("window", window or "", "has no recorded events to draw; choose another window")


def time_unit(end: float) -> tuple[float, str]:
    """Returns the number of time units per second, and the unit's name, for times up to `end`."""
    return (1e3, "ms") if end < 0.1 else (1.0, "s")


def time_axis(ax: Axes, span: tuple[float, float] | None, last: float) -> None:
    """Labels the time axis, and limits it to the window. A window without an end extends to the last event."""
    scale, unit = time_unit(last)
    ax.set_xlabel(f"time ({unit})")
    if span is not None:
        ax.set_xlim(span[0] * scale, (span[1] if span[1] < float("inf") else last) * scale)


def finish(ax: Axes, columns: int = 2, below: float = 0.19) -> Axes:
    """Adds a legend below the plot, with each label once, and disables offsets and powers of ten on the axes."""
    from matplotlib.ticker import MaxNLocator, ScalarFormatter

    for axis in (ax.xaxis, ax.yaxis):
        plain = axis.get_major_formatter()
        if isinstance(plain, ScalarFormatter):
            axis.set_major_locator(MaxNLocator(5))
            plain.set_useOffset(False)
            plain.set_scientific(False)
    layout: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.45, -below), "fontsize": "small"}
    canvas.legend_of(ax, columns, once=True, frameon=False, handlelength=1.4, columnspacing=1.2, **layout)
    return ax


class Diagrams:
    """The diagrams of one run's events. Every method draws on `ax`, or on new axes, and returns the axes.

    >>> import celltrain as ct
    >>> lan = ct.n_source(sources=3, link_delay="5us", buffer_cells=100, policy=ct.TailDrop(), duration="5ms")
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     axes = ct.run(lan, events=folder).plot.sequence("tcp1")
    >>> axes.get_ylabel()
    'place in the stream (kB)'
    """

    def __init__(self, log: Mapping[str, pa.Table], title: str, facts: Mapping[str, Any]) -> None:
        self._run = Events(log=log, title=title, facts=facts)
        #: Notes for the reader of the latest diagram, for example that some cells are missing.
        self.notes: list[str] = []

    @checked()
    def sequence(self, flow: str, *, window: str | None = None, ax: Axes | None = None) -> Axes:
        """Draws the time-sequence diagram of a connection, as tcptrace does.

        A bar shows a segment that was sent, from its first to its last byte. The colour of a retransmission shows its
        reason. A cross marks a lost segment; if frames were recorded, the legend names the port and the cause. The
        lower steps are the highest ACK at the sender, with a tick for each duplicate. The upper steps are the limit set
        by cwnd. A dotted line is a timeout, if timers were recorded.

        Args:
            flow: The connection.
            window: First and last time, such as `"1.2s:1.3s"`; all events when None.
            ax: Axes to draw on.
        """
        span = span_of(window)
        everything = self._run.log["segments"]
        flows = names(everything, "flow")
        one_of("flow", "a flow of these events", flow, flows)
        own = rows_of(everything, flow=flow)
        table = within(own, span)
        events, times = texts(table, "event"), numbers(table, "time_s")
        again = events == "retransmitted"
        is_sent = (events == "sent") | again
        if not is_sent.any():
            raise nothing(window)
        scale, _ = time_unit(times[-1])
        x, first = times * scale, numbers(table, "sequence")
        last = first + numbers(table, "length")
        by, per = (1e6, "MB") if last[is_sent].max() >= 1e7 else (1e3, "kB")
        low, high = first[is_sent].min() / by, last[is_sent].max() / by
        ax = self._run.axes(ax, canvas.legible(f"segments of {flow}"))

        def segments(rows: Any, colour: str, label: str, size: float, order: int) -> None:
            """Draws segments as bars, or as dots if bars would not be visible."""
            if not rows.any():
                return
            start, end = first[rows] / by, last[rows] / by
            if (end - start).max() < _BAR * (high - low):
                marks(ax, x[rows], end, "s", colour, None, markersize=size, markeredgewidth=0, zorder=order)
            else:
                style: dict[str, Any] = {"linewidth": 0.6 * size, "rasterized": len(end) > MOST_MARKS, "zorder": order}
                ax.vlines(x[rows], start, end, color=colour, **style)
            # The square in the legend has a fixed size, so it is visible even if the plotted segments are tiny.
            marks(ax, [], [], "s", colour, label, markersize=6)

        segments(events == "sent", canvas.colour_of_flow(self._run.flow_index(flows)[flow]), "sent", 2.4, 3)
        reasons = texts(table, "reason")
        for reason, shade in _COLOURS.items():
            # Retransmissions are drawn larger, so that they are visible on the line of ACKs.
            segments(again & (reasons == reason), shade, f"sent again: {reason}", 3.6, 4)
        _acks(ax, table, events, x, by, high)
        for label, lost in _lost_segments(self._run, own, table, is_sent).items():
            # Many large crosses side by side would be illegible.
            width, size = (1.5, 6) if len(lost) <= _FEW else (1, 3.5)
            cross = {"markeredgewidth": width, "markersize": size, "zorder": 5}
            middle = (first[lost] + last[lost]) / 2 / by
            marks(ax, x[lost], middle, "x", canvas.LOSS, f"{canvas.legible(label)}: {len(lost):,}", **cross)
        timers = self._run.rows("timers", span, flow=flow, timer="retransmission", event="expired")
        for time in [] if timers is None else numbers(timers, "time_s"):
            ax.axvline(time * scale, color=canvas.LOSS, linestyle=":", linewidth=1, zorder=0, label="timeout")
        room = 0.05 * (high - low) or 1.0
        ax.set_ylim(low - room, high + room)
        ax.set_ylabel(f"place in the stream ({per})")
        ax.margins(x=0.02)
        time_axis(ax, span, times[-1])
        return finish(ax)

    @checked()
    def anatomy(self, port: str | None = None, *, window: str | None = None, ax: Axes | None = None) -> Axes:
        """Draws the cells waiting at a port over time, stacked by VC, and the cells lost there.

        Crosses are frames that the policy refused; triangles are cells lost for lack of room, or pushed out. The dashed
        line is the policy's threshold, the dotted line the buffer's size. Frames and the threshold are drawn if frames
        were recorded.

        Args:
            port: The port. If None, the only one whose cells were recorded.
            window: First and last time, such as `"1.2s:1.3s"`; all events when None.
            ax: Axes to draw on.
        """
        self.notes = []
        span = span_of(window)
        everything = self._run.log["cells"]
        port = _port(port, names(everything, "port"))
        # Keep earlier events, because cells that wait when the window begins arrived earlier.
        table = within(rows_of(everything, port=port), None if span is None else (0.0, span[1]))
        vcs, times, waiting = _waiting(table)
        shown = np.ones(len(times), bool) if span is None else times >= span[0]
        if not shown.any():
            raise nothing(window)
        before = waiting[:, np.flatnonzero(~shown)[-1:]]
        times, waiting, table = times[shown], waiting[:, shown], table.filter(shown)
        total = waiting.sum(axis=0)
        scale, _ = time_unit(times[-1])
        judged = self._run.rows("frames", span, port=port)
        ax = self._run.axes(ax, canvas.legible(f"cells waiting at {port}"))
        points = _drawn(times, total)
        drawn, states = times[points], waiting[:, points]
        if span is not None:
            # The window begins with the queue length after the last event before it, and ends with the length after its
            # last event.
            if before.size:
                drawn, states = np.append(span[0], drawn), np.hstack([before, states])
            end = min(span[1], float(numbers(everything, "time_s").max()))
            drawn, states = np.append(drawn, max(end, drawn[-1])), np.hstack([states, states[:, -1:]])
        _areas(
            ax, drawn * scale, states, np.argsort(-waiting.max(axis=1), kind="stable"), vcs, _indices(self._run, vcs)
        )
        top = float(total.max(initial=0))
        if judged is not None:
            top = _judgements(ax, judged, scale, top)
        _cell_losses(ax, table, times * scale, total, with_refused="frames" not in self._run.log)
        top = float(np.ceil(top))
        size = self._run.facts.get("buffers", {}).get(port)
        if size is not None and size <= _VISIBLE * top:
            ax.axhline(size, color=canvas.INK, linestyle=":", linewidth=1, label=f"buffer: {size:,} cells")
            top = max(top, size)
        ax.set_ylim(0, 1.06 * max(top, 1))
        ax.set_ylabel(self._whose("cells waiting", names(everything, "flow")))
        ax.margins(x=0)
        time_axis(ax, span, times[-1])
        return finish(ax, 3)

    @checked()
    def ladder(self, flow: str, frame: int | None = None, *, ax: Axes | None = None) -> Axes:
        """Draws the path of one frame's cells: a line for each port whose cells were recorded, time running downwards.

        A thin line connects a cell's departure to its arrival at the next port. A thick line is a waiting cell, a cross
        a lost cell.

        Args:
            flow: The connection that sent the data; or a VC, such as `"tcp1-acks"`.
            frame: The frame's number within the VC. If None, the first one that lost only some of its cells, or else the
                one that took longest.
            ax: Axes to draw on.
        """
        self.notes = []
        table = self._run.log["cells"]
        flows, vcs = names(table, "flow"), names(table, "vc")
        vc = flow if flow in vcs else one_of("flow", "a flow or VC of these events", flow, [*flows, *vcs])
        if vc not in vcs:
            vc = names(rows_of(table, flow=flow), "vc")[0]
        own, judged = rows_of(table, vc=vc), self._run.rows("frames", vc=vc)
        number, note = _worth_seeing(vc, own, judged) if frame is None else (frame, "")
        self.notes += [note] if note else []
        # Frame numbers have 64 bits.
        ports = _ports(own, number) if 0 <= number < 1 << 64 else {}
        if not ports:
            problem = "has no recorded cells; name a frame that crossed a port whose cells were recorded"
            raise InputError.of_option("frame", described(number), problem)
        ends = [] if judged is None else rows_of(judged, frame=str(number)).to_pylist()
        end = next(((row["time_s"], row["event"]) for row in ends if row["event"] in ("delivered", "failed")), None)
        visits = [visit for at_port in ports.values() for visit in at_port]
        origin = min(visit.arrived for visit in visits if visit.arrived is not None)
        instants = [
            time for visit in visits for time in (visit.arrived, visit.departed, visit.lost) if time is not None
        ]
        length = max([*instants, *([] if end is None else [end[0]])]) - origin
        by, unit = (1e3, "ms") if length >= 5e-3 else (1e6, "µs")
        ax = self._run.axes(ax, canvas.legible(f"frame {number} of {vc}"), f"from {origin:.9g} s on", size=TALL)
        sender = names(own, "flow")
        _draw_cells(
            ax, ports, end, self._run.flow_index(flows)[sender[0]] if sender else 0, lambda time: (time - origin) * by
        )
        ax.set_ylabel(f"time since the first cell arrived ({unit})")
        ax.set_ylim(1.04 * length * by, -0.04 * length * by)
        return finish(ax, below=0.02)

    def _whose(self, what: str, recorded: Sequence[str]) -> str:
        """Adds to a label whose cells were recorded, if these are not the cells of all flows; also adds a note."""
        everyone = self._run.facts.get("flows") or recorded
        if not set(everyone) - set(recorded):
            return what
        whose = ", ".join(recorded) if len(recorded) <= _FEW_NAMES else f"{len(recorded)} of {len(everyone)} flows"
        self.notes.append(
            f"Only cells of {whose} were recorded: the queue also held other cells, and the policy counted them."
        )
        return f"{what}, of {canvas.legible(whose)} alone"

    def worst(self, kind: str) -> str:
        """Returns the connection with most retransmissions, or for a ladder the VC with most lost cells.

        Args:
            kind: `"sequence"` or `"ladder"`.
        """
        table, column, bad = ("cells", "vc", GONE) if kind == "ladder" else ("segments", "flow", ("retransmitted",))
        rows = self._run.log[table]
        counts = Counter(texts(rows, column)[np.isin(texts(rows, "event"), bad)].tolist())
        return max(names(rows, column), key=lambda name: counts[name], default="")

    @checked()
    def write(self, kind: str, path: str | os.PathLike[str], **options: Any) -> Path:
        """Draws a diagram to a file in the format of its suffix: svg, png or pdf. The same events give the same file.

        Args:
            kind: `"sequence"`, `"anatomy"` or `"ladder"`.
            path: The file.
            options: Arguments of the method named by `kind`.
        """
        canvas.require_matplotlib()
        from matplotlib.figure import Figure

        target = Path(path)
        canvas.refuse_other(target, "out")
        if kind not in ("sequence", "anatomy", "ladder"):
            raise InputError.of_option("kind", kind, "is not a diagram; choose from sequence, anatomy, ladder")
        # Do not use pyplot, which could open a window or keep the figure in memory.
        with canvas.styled():
            figure = Figure(figsize=TALL if kind == "ladder" else SIZE, layout="constrained")
            getattr(self, kind)(**options, ax=figure.add_subplot())
            with writing(target):
                canvas.save(figure, target)
        return target


#: Colours by the reason for a retransmission, different from all colours of flows.
_COLOURS = {
    "timeout": canvas.LOSS,
    "third duplicate ACK": canvas.INK,
    "partial ACK": "#6A3D9A",
    "SACK hole": "#E07B00",
    "tail loss probe": "#7A4FBF",
    "not reported by the stack": "#8C564B",
}
#: A segment shorter than this fraction of the axis is drawn as a dot.
_BAR = 0.012
#: Maximum number of losses drawn as large crosses.
_FEW = 40
_LOST = ("refused", "cut", "joined", "dropped", "lost")


def _acks(ax: Axes, table: pa.Table, events: Any, x: Any, by: float, high: float) -> None:
    """Draws the highest ACK at the sender, a tick for each duplicate, and the limit set by cwnd."""
    acked = events == "acknowledged"
    if not acked.any():
        return
    highest = np.maximum.accumulate(np.where(acked, numbers(table, "acknowledgement"), -1))
    style: dict[str, Any] = {"drawstyle": "steps-post"}
    ax.plot(x[acked], highest[acked] / by, color=canvas.SOFT, linewidth=1.2, label="ACK", zorder=2, **style)
    duplicate = acked & (texts(table, "reason") == "duplicate")
    if duplicate.any():
        marks(ax, x[duplicate], highest[duplicate] / by, "|", canvas.SOFT, "duplicate ACK", zorder=2)
    cwnd = numbers(table, "cwnd") * np.nanmax(numbers(table, "length"))
    of_sender = (acked | (events == "retransmitted")) & (highest >= 0) & ~np.isnan(cwnd)
    # Limits far above the sent data would be outside the plot, so they are cut off.
    allowed = np.minimum((highest + cwnd)[of_sender] / by, 2 * high + 1)
    style |= {"color": canvas.GREY, "linewidth": 0.9, "linestyle": (0, (4, 1.5)), "zorder": 1}
    ax.plot(x[of_sender], allowed, label="ACK + cwnd", **style)


def _lost_segments(run: Events, own: pa.Table, table: pa.Table, is_sent: Any) -> dict[str, Any]:
    """Returns the rows of lost segments, by cause if frames were recorded."""
    frames = numbers(table, "frame")
    # Data segments and ACKs have different VCs.
    vc = str(texts(table, "vc")[is_sent][0])
    is_lost = is_sent & lost_frames(frames, numbers(rows_of(own, vc=vc, event="arrived"), "frame"))
    causes: dict[float, str] = {}
    if (judged := run.rows("frames", vc=vc)) is not None:
        outcomes, ports, judged_frames = texts(judged, "event"), texts(judged, "port"), numbers(judged, "frame")
        for row in np.flatnonzero(np.isin(outcomes, _LOST)):
            causes.setdefault(judged_frames[row], f"lost at {ports[row]} ({outcomes[row]})")
    rows: dict[str, Any] = {}
    for row in np.flatnonzero(is_sent & (is_lost | np.isin(frames, list(causes)))):
        rows.setdefault(causes.get(frames[row], "lost"), []).append(row)
    return rows


#: Maximum number of VCs with an area of their own, and the colour of the area for the rest.
_MOST_VCS = len(canvas.COLOURS)
_REST = "#DDDDDD"
#: Colours of marks, different from all colours of flows.
_REMAINDER, _REMOVED = "#E07B00", "#6A3D9A"
#: Number of columns of a figure. In each column, the instants with the fullest and the emptiest buffer are drawn.
_COLUMNS = 600
#: Maximum number of flows that a label names.
_FEW_NAMES = 3
_LEAVING = ("departed", "pushed_out", "dropped")
#: Lines higher than this multiple of everything else are not drawn, as they would stretch the axis.
_VISIBLE = 1.6


def _port(port: str | None, known: list[str]) -> str:
    """Returns the port with this name, or the only port if no name is given."""
    if port is None and len(known) != 1:
        problem = f"is missing; cells were recorded at {', '.join(known[:12]) or 'no port'}"
        raise InputError.of_option("port", "", problem)
    return known[0] if port is None else one_of("port", "a port of these events", port, known)


def _waiting(table: pa.Table) -> tuple[list[str], Any, Any]:
    """Returns the VCs in the port's order, the times of events, and the waiting cells of each VC after every event."""
    vcs = names(table, "port_vc")
    events, times, of = texts(table, "event"), numbers(table, "time_s"), texts(table, "vc")
    port_vcs = texts(table, "port_vc")
    keys = np.nan_to_num(numbers(table, "frame")) * 4096 + np.nan_to_num(numbers(table, "index"), nan=4095)
    is_rm = np.array([word is not None for word in texts(table, "rm")], bool)
    entered, left = events == "admitted", np.isin(events, _LEAVING)
    waiting = np.zeros((len(vcs), len(times)))
    for vc in names(table, "vc"):
        own = of == vc
        known = keys[own & entered & ~is_rm]
        count = np.cumsum((own & entered).astype(int) - (own & left).astype(int))
        # Cells that were already waiting at the first event have no recorded arrival, and they leave first.
        unseen = int((own & left & ~is_rm & ~np.isin(keys, known)).sum())
        waiting[vcs.index(port_vcs[int(own.argmax())])] += count + max(unseen, -int(count.min(initial=0)))
    return vcs, times, waiting


def _drawn(times: Any, total: Any) -> Any:
    """Selects the rows to draw: in each column of the figure the first, the emptiest, the fullest and the last.

    The last state of a column applies until the next event, so the queue is also correct during a pause.
    """
    if len(times) <= _COLUMNS:
        return np.arange(len(times))
    edges = np.searchsorted(times, np.linspace(times[0], times[-1], _COLUMNS + 1))
    edges[-1] = len(times)
    rows = [
        (first, first + int(total[first:end].argmin()), first + int(total[first:end].argmax()), end - 1)
        for first, end in pairwise(edges)
        if first < end
    ]
    return np.unique(rows)


def _indices(run: Events, vcs: list[str]) -> dict[str, int]:
    """Returns the index of each VC's flow; for a merged VC, the index of its first flow."""
    cells = run.log["cells"]
    index = run.flow_index(names(cells, "flow"))
    pairs = cells.select(["port_vc", "flow"]).group_by(["port_vc", "flow"]).aggregate([]).to_pylist()
    flows: dict[str, list[int]] = {vc: [] for vc in vcs}
    for pair in pairs:
        if pair["flow"] is not None and pair["port_vc"] in flows:
            flows[pair["port_vc"]].append(index[pair["flow"]])
    return {vc: min(flows[vc], default=place) for place, vc in enumerate(vcs)}


def _areas(ax: Axes, x: Any, states: Any, order: Any, vcs: Sequence[str], index: dict[str, int]) -> None:
    """Stacks the VCs with the most cells in the order of their flows, with the sum of all other VCs on top."""
    top = sorted(order[:_MOST_VCS], key=lambda vc: index[vcs[vc]])
    layers, labels = [states[vc] for vc in top], [vcs[vc] for vc in top]
    colours = [canvas.tint_of_flow(index[label]) for label in labels]
    if len(order) > len(top):
        layers.append(states[order[_MOST_VCS:]].sum(axis=0))
        labels.append(f"{len(order) - len(top)} other VCs")
        colours.append(_REST)
    ax.stackplot(
        x, layers, labels=[canvas.legible(label, 20) for label in labels], colors=colours, step="post", linewidth=0
    )


def _judgements(ax: Axes, judged: pa.Table, scale: float, top: float) -> float:
    """Draws refused frames and the policy's threshold. Returns the height that the plot needs for them."""
    refused = rows_of(judged, event="refused")
    x, y = numbers(refused, "time_s") * scale, numbers(refused, "occupancy")
    if len(x):
        marks(ax, x, y, "x", canvas.INK, f"frame refused ({len(x):,})", markersize=3.5)
        top = max(top, y.max())
    levels, times = numbers(judged, "threshold_cells"), numbers(judged, "time_s")
    times, levels = times[~np.isnan(levels)], levels[~np.isnan(levels)]
    if not len(levels) or levels.min() > _VISIBLE * max(top, 1):
        return top
    dashed: dict[str, Any] = {"color": canvas.INK, "linestyle": "--", "linewidth": 1}
    if levels.min() == levels.max():
        ax.axhline(levels[0], label=f"threshold: {levels[0]:,.6g} cells", **dashed)
    else:
        ax.plot(times * scale, levels, drawstyle="steps-post", label="threshold", **dashed)
    return max(top, float(levels.max()))


def _cell_losses(ax: Axes, table: pa.Table, x: Any, total: Any, *, with_refused: bool) -> None:
    """Marks lost cells by cause.

    The most frequent cause is usually drawn first, so that its marks do not cover the others.
    """
    events, reasons = texts(table, "event"), texts(table, "reason")
    lost = events == "lost"
    causes = {
        "cell lost: its frame had already lost a cell": (
            lost & (reasons == "its frame had lost a cell"),
            "1",
            _REMAINDER,
        ),
        "cell lost: no room": (lost & (reasons == "no room"), "v", canvas.LOSS),
        "cell pushed out": (events == "pushed_out", "^", _REMOVED),
        "cell dropped: the rate fell": (events == "dropped", "s", _REMOVED),
    }
    if with_refused:
        causes["cell lost: its frame was refused"] = (lost & (reasons == "its frame was refused"), "x", canvas.INK)
    for label, (rows, marker, colour) in causes.items():
        if rows.any():
            marks(ax, x[rows], total[rows], marker, colour, f"{label} ({rows.sum():,})")


#: Events in which a cell is lost at a port.
GONE = ("lost", "pushed_out", "dropped")
#: Size of the diagram in inches.
TALL = (SIZE[0], 1.25 * SIZE[1])


@dataclass
class _Visit:
    """Times of events of a cell at a port; None for events that did not happen or were not recorded."""

    arrived: float | None = None
    admitted: float | None = None
    departed: float | None = None
    lost: float | None = None
    cause: str = ""
    """Cause of the loss."""

    @property
    def left(self) -> float | None:
        """Time at which the cell stopped waiting."""
        return self.lost if self.departed is None and self.admitted is not None else self.departed


def _worth_seeing(vc: str, own: pa.Table, judged: pa.Table | None) -> tuple[int, str]:
    """Returns the first frame that lost only some of its cells; if there is none, the frame that took longest.

    The second value is a note; it is empty if the frame lost only some of its cells.
    """
    cells = own.filter(own["frame"].is_valid())
    if not len(cells):
        return 0, ""
    events, ports, frames = texts(cells, "event"), texts(cells, "port"), numbers(cells, "frame").astype(int)
    lost, passed = np.isin(events, GONE), events == "departed"
    # Find frames from which a port lost some cells and sent others.
    at_ports = [ports == port for port in set(ports)]
    cut = np.concatenate([np.intersect1d(frames[lost & at], frames[passed & at]) for at in at_ports])
    if judged is not None:
        cut = np.union1d(cut, numbers(rows_of(judged, event="cut"), "frame").astype(int))
    if len(cut := np.intersect1d(cut, frames)):
        return int(cut[0]), ""
    known, place = np.unique(frames, return_inverse=True)
    start, end = np.full(len(known), np.inf), np.zeros(len(known))
    np.minimum.at(start, place, numbers(cells, "time_s"))
    np.maximum.at(end, place, numbers(cells, "time_s"))
    note = f"No frame of {vc} lost only some of its cells at these ports: this is the slowest frame."
    return int(known[(end - start).argmax()]), note


def _ports(own: pa.Table, number: int) -> dict[str, list[_Visit]]:
    """Returns the visits of the frame's cells by port, in the order of the ports, without RM cells."""
    ports: dict[str, dict[int, _Visit]] = {}
    for row in rows_of(own, frame=str(number)).to_pylist():
        if row["index"] is None or row["rm"] is not None:
            continue
        visit = ports.setdefault(row["port"], {}).setdefault(row["index"], _Visit())
        if row["event"] in GONE:
            visit.lost, visit.cause = row["time_s"], row["reason"] or "pushed out"
        else:
            setattr(visit, row["event"], row["time_s"])
    return {port: [visit for _, visit in sorted(visits.items())] for port, visits in ports.items()}


def _draw_cells(ax: Axes, ports: dict[str, list[_Visit]], end: tuple[float, str] | None, index: int, y: Any) -> None:
    """Draws a vertical line for each port, and the cells between them; `y` converts times to positions."""
    at_ports = list(ports.values())
    causes = Counter(visit.cause for visits in at_ports for visit in visits if visit.lost is not None)
    count = max(map(len, at_ports))
    nodes = [port.split("->")[0] for port in ports]
    nodes += [] if end is None else [list(ports)[-1].split("->")[-1]]
    for place in range(len(nodes)):
        ax.axvline(place, color=canvas.PALE, linewidth=0.8, zorder=0)
    waits: dict[str, Any] = {
        "color": canvas.tint_of_flow(index),
        "linewidth": 4,
        "solid_capstyle": "butt",
        "label": "waits",
    }
    link: dict[str, Any] = {"color": canvas.colour_of_flow(index), "linewidth": 0.8, "label": "on the link"}
    for place, (visits, following) in enumerate(zip_longest(at_ports, at_ports[1:])):
        for visit in visits:
            if visit.arrived is not None and visit.left is not None and visit.left > visit.arrived:
                ax.plot([place, place], [y(visit.arrived), y(visit.left)], **waits)
            if visit.lost is not None:
                label = f"lost: {visit.cause} ({causes[visit.cause]:,} of {count:,})"
                marks(
                    ax, [place], [y(visit.lost)], "x", canvas.LOSS, label, markersize=6, markeredgewidth=1.5, zorder=4
                )
        # Cells of a VC arrive in the order in which the cells were sent.
        left = [visit.departed for visit in visits if visit.departed is not None]
        arrivals = [visit.arrived for visit in following or []]
        if following is None and end is not None and left:
            # The host records only the arrival of the last cell, but all cells take the same time to reach it.
            arrivals = [time + end[0] - left[-1] for time in left]
        for first, last in zip(left, arrivals, strict=False):
            if last is not None:
                ax.plot([place, place + 1], [y(first), y(last)], **link)
    if end is not None and any(visit.departed is not None for visit in at_ports[-1]):
        colour, label = (
            (canvas.INK, "delivered") if end[1] == "delivered" else (canvas.LOSS, "failed: the frame is incomplete")
        )
        marks(ax, [len(at_ports)], [y(end[0])], "o", colour, label, markersize=5, zorder=4)
    ax.set_xlim(-0.35, len(nodes) - 0.65)
    rotated: dict[str, Any] = {"rotation": 20, "ha": "left"} if len(nodes) > 4 or max(map(len, nodes)) > 12 else {}
    ax.set_xticks(
        range(len(nodes)), [canvas.legible(canvas.brief(node, 16)) for node in nodes], fontsize="small", **rotated
    )
    ax.xaxis.tick_top()
    for text in ax.get_xticklabels():
        text.set_parse_math(False)
