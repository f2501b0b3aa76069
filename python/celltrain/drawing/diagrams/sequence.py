"""The time-sequence diagram of a connection, as tcptrace draws it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from celltrain.drawing.axes import legible
from celltrain.drawing.diagrams.common import MOST_MARKS, axes, finish, flow_index, nothing, spanned, time_unit
from celltrain.drawing.event_rows import kept, lost_frames, names, numbers, one_of, rows_of, span_of, texts
from celltrain.drawing.style import GREY, INK, LOSS, SOFT, colour_of_flow

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

#: By the reason for which a segment was sent again: colours that no flow has.
_COLOURS = {"timeout": LOSS, "third duplicate ACK": INK, "partial ACK": "#6A3D9A", "SACK hole": "#E07B00"}
#: A segment that is a smaller part of the axis is a dot.
_BAR = 0.012
#: Losses up to which a cross is large.
_FEW = 40
_LOST = ("refused", "cut", "joined", "dropped")


def draw(
    log: Mapping[str, pa.Table],
    flow: str,
    *,
    window: str | None,
    title: str,
    facts: Mapping[str, Any],
    ax: Axes | None,
    size: tuple[float, float],
) -> Axes:
    """Draws it of the events that were kept."""
    import numpy as np

    span = span_of(window)
    everything = log["segments"]
    flows = names(everything, "flow")
    one_of("flow", "a flow of these events", flow, flows)
    colour = colour_of_flow(flow_index(flows, facts)[flow])
    own = rows_of(everything, flow=flow)
    table = kept({"segments": own}, "segments", span)
    assert table is not None
    events, times = texts(table, "event"), numbers(table, "time_s")
    is_sent = np.isin(events, ["sent", "retransmitted"])
    if not is_sent.any():
        raise nothing(window)
    scale, unit = time_unit(times[-1])
    x = times * scale
    first = numbers(table, "sequence")
    last = first + numbers(table, "length")
    # Segments that are sent are of the data's VC; the ACKs have another.
    vc, frames = texts(table, "vc")[is_sent][0], numbers(table, "frame")
    by, per = (1e6, "MB") if last[is_sent].max() >= 1e7 else (1e3, "kB")
    low, high = first[is_sent].min() / by, last[is_sent].max() / by
    ax = axes(ax, size, title, legible(f"segments of {flow}"), tcp=facts.get("tcp"))
    bars = _Bars(ax, low, high)
    bars.add(
        x[events == "sent"], first[events == "sent"] / by, last[events == "sent"] / by, colour, "sent", is_again=False
    )
    again, reasons = events == "retransmitted", texts(table, "reason")
    for reason, shade in _COLOURS.items():
        rows = again & (reasons == reason)
        bars.add(x[rows], first[rows] / by, last[rows] / by, shade, f"sent again: {reason}", is_again=True)
    _acks(ax, table, events, x, by, high)
    for label, rows in _losses(log, own, str(vc), events, frames).items():
        middle = (first[rows] + last[rows]) / 2 / by
        # Many of them side by side would be a blot.
        width, size_of_cross = (1.5, 6) if len(rows) <= _FEW else (1, 3.5)
        cross: dict[str, Any] = {"markersize": size_of_cross, "markeredgewidth": width}
        ax.plot(x[rows], middle, "x", color=LOSS, zorder=5, label=f"{legible(label)}: {len(rows):,}", **cross)
    timers = kept(log, "timers", span)
    if timers is not None:
        timers = rows_of(timers, flow=flow, timer="retransmission", event="expired")
        for number, time in enumerate(numbers(timers, "time_s")):
            ax.axvline(
                time * scale, color=LOSS, linestyle=":", linewidth=1, zorder=0, label=None if number else "timeout"
            )
    room = 0.05 * (high - low) or 1.0
    ax.set_ylim(low - room, high + room)
    ax.set_xlabel(f"time ({unit})")
    ax.set_ylabel(f"place in the stream ({per})")
    ax.margins(x=0.02)
    spanned(ax, span, scale, times[-1])
    return finish(ax)


class _Bars:
    """Draws segments: as bars, or as dots where bars would not be seen."""

    def __init__(self, ax: Axes, low: float, high: float) -> None:
        self._ax = ax
        self._least = _BAR * (high - low)

    def add(self, x: Any, first: Any, last: Any, colour: str, label: str, *, is_again: bool) -> None:
        if not len(x):
            return
        is_many = len(x) > MOST_MARKS
        # What was sent again is large enough to be seen upon the line of ACKs, which runs through it.
        size, order = (3.6, 4) if is_again else (2.4, 3)
        if (last - first).max() < self._least:
            ends: dict[str, Any] = {"marker": "s", "linestyle": "none", "markeredgewidth": 0}
            self._ax.plot(x, last, color=colour, zorder=order, rasterized=is_many, markersize=size, **ends)
        else:
            self._ax.vlines(x, first, last, color=colour, linewidth=0.6 * size, zorder=order, rasterized=is_many)
        # The legend has a square that is seen, however small the segments are.
        self._ax.plot([], [], "s", color=colour, markersize=6, label=label)


def _acks(ax: Axes, table: pa.Table, events: Any, x: Any, by: float, high: float) -> None:
    """The highest ACK at the sender, a tick for each duplicate, and how far cwnd lets it send."""
    import numpy as np

    acked = events == "acknowledged"
    if not acked.any():
        return
    is_many = bool(acked.sum() > MOST_MARKS)
    numbers_ = numbers(table, "acknowledgement")
    highest = np.maximum.accumulate(np.where(acked, numbers_, -1))
    ax.plot(x[acked], highest[acked] / by, color=SOFT, drawstyle="steps-post", linewidth=1.2, label="ACK", zorder=2)
    duplicate = acked & (texts(table, "reason") == "duplicate")
    if duplicate.any():
        ticks: dict[str, Any] = {"marker": "|", "markersize": 4, "linestyle": "none", "markeredgewidth": 0.8}
        label = "duplicate ACK"
        ax.plot(x[duplicate], highest[duplicate] / by, color=SOFT, rasterized=is_many, label=label, zorder=2, **ticks)
    length = numbers(table, "length")
    cwnd = numbers(table, "cwnd") * np.nanmax(length)
    of_sender = np.isin(events, ["acknowledged", "retransmitted"]) & (highest >= 0) & ~np.isnan(cwnd)
    # What is far above all that was sent is not seen, and an axis up to there would hide the rest.
    allowed = np.minimum((highest + cwnd)[of_sender] / by, 2 * high + 1)
    ax.plot(
        *(x[of_sender], allowed),
        color=GREY,
        drawstyle="steps-post",
        linewidth=0.9,
        linestyle=(0, (4, 1.5)),
        label="ACK + cwnd",
        zorder=1,
    )


def _losses(log: Mapping[str, pa.Table], own: pa.Table, vc: str, events: Any, frames: Any) -> dict[str, Any]:
    """The rows of segments that were lost, by what became of them."""
    import numpy as np

    of_vc = rows_of(own, vc=vc, event="arrived")
    arrived = numbers(of_vc, "frame")
    is_sent = np.isin(events, ["sent", "retransmitted"])
    is_lost = is_sent & lost_frames(frames, arrived)
    told = kept(log, "frames", None)
    if told is None:
        return {"lost": np.flatnonzero(is_lost)} if is_lost.any() else {}
    told = rows_of(told, vc=vc)
    what, ports, numbers_ = texts(told, "event"), texts(told, "port"), numbers(told, "frame")
    fates: dict[float, str] = {}
    for row in np.flatnonzero(np.isin(what, _LOST)):
        fates.setdefault(numbers_[row], f"lost at {ports[row]} ({what[row]})")
    found: dict[str, Any] = {}
    for row in np.flatnonzero(is_sent & (is_lost | np.isin(frames, list(fates)))):
        found.setdefault(fates.get(frames[row], "lost"), []).append(row)
    return found
