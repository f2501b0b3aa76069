"""The time-sequence diagram of a connection, as tcptrace draws it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from celltrain.drawing import event_rows
from celltrain.drawing.event_rows import MOST_MARKS, Events, marks, names, numbers, rows_of, texts
from celltrain.drawing.figure import GREY, INK, LOSS, SOFT, colour_of_flow, legible

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

#: Colours by the reason for a retransmission, different from all colours of flows.
_COLOURS = {"timeout": LOSS, "third duplicate ACK": INK, "partial ACK": "#6A3D9A", "SACK hole": "#E07B00"}
#: A segment shorter than this fraction of the axis is drawn as a dot.
_BAR = 0.012
#: Maximum number of losses drawn as large crosses.
_FEW = 40
_LOST = ("refused", "cut", "joined", "dropped")


def draw(run: Events, flow: str, *, window: str | None, ax: Axes | None) -> Axes:
    """Draws the diagram from the recorded events."""
    span = event_rows.span_of(window)
    everything = run.log["segments"]
    flows = names(everything, "flow")
    event_rows.one_of("flow", "a flow of these events", flow, flows)
    own = rows_of(everything, flow=flow)
    table = event_rows.within(own, span)
    events, times = texts(table, "event"), numbers(table, "time_s")
    again = events == "retransmitted"
    is_sent = (events == "sent") | again
    if not is_sent.any():
        raise event_rows.nothing(window)
    scale, _ = event_rows.time_unit(times[-1])
    x, first = times * scale, numbers(table, "sequence")
    last = first + numbers(table, "length")
    by, per = (1e6, "MB") if last[is_sent].max() >= 1e7 else (1e3, "kB")
    low, high = first[is_sent].min() / by, last[is_sent].max() / by
    ax = run.axes(ax, legible(f"segments of {flow}"))

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
        # The square in the legend has a fixed size, so it is visible even if the segments are tiny.
        marks(ax, [], [], "s", colour, label, markersize=6)

    segments(events == "sent", colour_of_flow(run.flow_index(flows)[flow]), "sent", 2.4, 3)
    reasons = texts(table, "reason")
    for reason, shade in _COLOURS.items():
        # Retransmissions are drawn larger, to be visible where the line of ACKs crosses them.
        segments(again & (reasons == reason), shade, f"sent again: {reason}", 3.6, 4)
    _acks(ax, table, events, x, by, high)
    for label, lost in _losses(run, own, table, is_sent).items():
        # Many large crosses side by side would be illegible.
        width, size = (1.5, 6) if len(lost) <= _FEW else (1, 3.5)
        cross = {"markeredgewidth": width, "markersize": size, "zorder": 5}
        middle = (first[lost] + last[lost]) / 2 / by
        marks(ax, x[lost], middle, "x", LOSS, f"{legible(label)}: {len(lost):,}", **cross)
    timers = run.rows("timers", span, flow=flow, timer="retransmission", event="expired")
    for time in [] if timers is None else numbers(timers, "time_s"):
        ax.axvline(time * scale, color=LOSS, linestyle=":", linewidth=1, zorder=0, label="timeout")
    room = 0.05 * (high - low) or 1.0
    ax.set_ylim(low - room, high + room)
    ax.set_ylabel(f"place in the stream ({per})")
    ax.margins(x=0.02)
    event_rows.time_axis(ax, span, times[-1])
    return event_rows.finish(ax)


def _acks(ax: Axes, table: pa.Table, events: Any, x: Any, by: float, high: float) -> None:
    """Draws the highest ACK at the sender, a tick for each duplicate, and the limit set by cwnd."""
    acked = events == "acknowledged"
    if not acked.any():
        return
    highest = np.maximum.accumulate(np.where(acked, numbers(table, "acknowledgement"), -1))
    style: dict[str, Any] = {"drawstyle": "steps-post"}
    ax.plot(x[acked], highest[acked] / by, color=SOFT, linewidth=1.2, label="ACK", zorder=2, **style)
    duplicate = acked & (texts(table, "reason") == "duplicate")
    if duplicate.any():
        marks(ax, x[duplicate], highest[duplicate] / by, "|", SOFT, "duplicate ACK", zorder=2)
    cwnd = numbers(table, "cwnd") * np.nanmax(numbers(table, "length"))
    of_sender = (acked | (events == "retransmitted")) & (highest >= 0) & ~np.isnan(cwnd)
    # Cap a limit far above the sent data: it is outside the plot anyway.
    allowed = np.minimum((highest + cwnd)[of_sender] / by, 2 * high + 1)
    style |= {"color": GREY, "linewidth": 0.9, "linestyle": (0, (4, 1.5)), "zorder": 1}
    ax.plot(x[of_sender], allowed, label="ACK + cwnd", **style)


def _losses(run: Events, own: pa.Table, table: pa.Table, is_sent: Any) -> dict[str, Any]:
    """Returns the rows of lost segments, by cause if frames were recorded."""
    frames = numbers(table, "frame")
    # Data segments and ACKs have different VCs.
    vc = str(texts(table, "vc")[is_sent][0])
    is_lost = is_sent & event_rows.lost_frames(frames, numbers(rows_of(own, vc=vc, event="arrived"), "frame"))
    causes: dict[float, str] = {}
    if (judged := run.rows("frames", vc=vc)) is not None:
        outcomes, ports, judged_frames = texts(judged, "event"), texts(judged, "port"), numbers(judged, "frame")
        for row in np.flatnonzero(np.isin(outcomes, _LOST)):
            causes.setdefault(judged_frames[row], f"lost at {ports[row]} ({outcomes[row]})")
    rows: dict[str, Any] = {}
    for row in np.flatnonzero(is_sent & (is_lost | np.isin(frames, list(causes)))):
        rows.setdefault(causes.get(frames[row], "lost"), []).append(row)
    return rows
