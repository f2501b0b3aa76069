"""A buffer's anatomy: what waits at a port over time, one VC upon the other, and what is lost there."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from celltrain.drawing.axes import legible
from celltrain.drawing.diagrams.common import MOST_MARKS, axes, finish, flow_index, nothing, spanned, time_unit
from celltrain.drawing.event_rows import kept, names, numbers, one_of, rows_of, span_of, texts
from celltrain.drawing.style import COLOURS, GREY, INK, LOSS, tint_of_flow
from celltrain.errors import Fault, InputError

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

#: VCs that have an area of their own, and the colour of the others together.
_MOST_VCS = len(COLOURS)
_REST = "#DDDDDD"
#: VCs that a note names.
_MOST_NAMED = 4
#: Colours of marks that no flow has.
_REMAINDER, _REMOVED = "#E07B00", "#6A3D9A"
#: Columns of a figure. Of the instants in a column those of the fullest and the emptiest buffer are drawn.
_COLUMNS = 600
_LEAVING = ("departed", "pushed_out", "dropped")


def draw(
    log: Mapping[str, pa.Table],
    port: str | None,
    *,
    window: str | None,
    title: str,
    facts: Mapping[str, Any],
    notes: list[str],
    ax: Axes | None,
    size: tuple[float, float],
) -> Axes:
    """Draws it of the events that were kept; adds to `notes` what the reader should know about them."""
    import numpy as np

    span = span_of(window)
    everything = log["cells"]
    port = _port(port, names(everything, "port"))
    # What waits when the window begins has come before.
    table = kept({"cells": rows_of(everything, port=port)}, "cells", None if span is None else (0.0, span[1]))
    assert table is not None
    vcs, times, waiting = _waiting(table)
    shown = np.ones(len(times), bool) if span is None else times >= span[0]
    if not shown.any():
        raise nothing(window)
    before = waiting[:, np.flatnonzero(~shown)[-1:]]
    times, waiting, table = times[shown], waiting[:, shown], table.filter(shown)
    total = waiting.sum(axis=0)
    scale, unit = time_unit(times[-1])
    judged = _judged(log, port, span)
    # A judgement counts the VCs with cells in the buffer: more of them than the table has were not kept.
    partial = judged is not None and float(np.nanmax(numbers(judged, "active_vcs"), initial=0)) > len(vcs)
    own = _listed(vcs)
    if partial:
        notes.append(
            f"Only the cells of {own} were kept at {port}. The grey dots are all cells, at each judgement. "
            "Keep the events without --flow or --vc to draw the whole buffer."
        )
    ax = axes(
        ax, size, title, legible(f"cells {f'of {own} ' if partial else ''}waiting at {port}"), tcp=facts.get("tcp")
    )
    points = _drawn(times, total)
    drawn, states = times[points], waiting[:, points]
    if span is not None:
        # The window begins with the queue of the last event before it, and ends with the queue of its own last event.
        if before.size:
            drawn, states = np.append(span[0], drawn), np.hstack([before, states])
        end = min(span[1], float(numbers(everything, "time_s").max()))
        drawn, states = np.append(drawn, max(end, drawn[-1])), np.hstack([states, states[:, -1:]])
    order = np.argsort(-waiting.max(axis=1), kind="stable")
    index = _indices(everything, vcs, facts)
    top = sorted(order[:_MOST_VCS], key=lambda vc: index[vcs[vc]])
    layers, labels = [states[vc] for vc in top], [vcs[vc] for vc in top]
    colours = [tint_of_flow(index[label]) for label in labels]
    if len(order) > len(top):
        layers.append(states[order[_MOST_VCS:]].sum(axis=0))
        labels.append(f"{len(order) - len(top)} other VCs")
        colours.append(_REST)
    ax.stackplot(
        drawn * scale,
        layers,
        labels=[legible(label, 20) for label in labels],
        colors=colours,
        step="post",
        linewidth=0,
    )
    top_of_plot = _marks(ax, log, table, judged, port, times, total, scale)
    if partial:
        assert judged is not None, "it is known from the judgements"
        x, y = numbers(judged, "time_s") * scale, numbers(judged, "occupancy")
        known = ~np.isnan(y)
        many = bool(known.sum() > MOST_MARKS)
        # Dots, as nothing is known between two judgements.
        dots: dict[str, Any] = {"color": GREY, "marker": ".", "markersize": 2, "linestyle": "none", "zorder": 1.5}
        ax.plot(x[known], y[known], label="X: all cells", rasterized=many, **dots)
        top_of_plot = max(top_of_plot, float(y[known].max(initial=0)))
    size_of_buffer = facts.get("buffers", {}).get(port)
    if size_of_buffer is not None and size_of_buffer <= 1.6 * top_of_plot:
        ax.axhline(size_of_buffer, color=INK, linestyle=":", linewidth=1, label=f"buffer: {size_of_buffer:,} cells")
        top_of_plot = max(top_of_plot, size_of_buffer)
    ax.set_ylim(0, 1.06 * max(top_of_plot, 1))
    ax.set_xlabel(f"time ({unit})")
    ax.set_ylabel(legible(f"cells of {own} waiting") if partial else "all cells waiting")
    ax.margins(x=0)
    spanned(ax, span, scale, times[-1])
    return finish(ax, 3)


def _judged(log: Mapping[str, pa.Table], port: str, span: tuple[float, float] | None) -> pa.Table | None:
    """The rows of frames at this port; None if no frames were kept, or none at this port."""
    frames = kept(log, "frames", span)
    frames = None if frames is None else rows_of(frames, port=port)
    return frames if frames is not None and len(frames) else None


def _indices(cells: pa.Table, vcs: list[str], facts: Mapping[str, Any]) -> dict[str, int]:
    """The index of the flow of each VC; merged VCs go by the first flow among them."""
    pairs = cells.select(["port_vc", "flow"]).group_by(["port_vc", "flow"]).aggregate([]).to_pylist()
    index = flow_index(names(cells, "flow"), facts)
    flows: dict[str, int] = {}
    for pair in pairs:
        if pair["flow"] is not None:
            place = index[pair["flow"]]
            flows[pair["port_vc"]] = min(place, flows.get(pair["port_vc"], place))
    return {vc: flows.get(vc, place) for place, vc in enumerate(vcs)}


def _listed(vcs: list[str]) -> str:
    return ", ".join(vcs) if len(vcs) <= _MOST_NAMED else f"{len(vcs)} VCs"


def _port(port: str | None, known: list[str]) -> str:
    """The port that is asked for, or the only one there is."""
    if port is None and len(known) != 1:
        problem = f"is needed: cells were kept of {', '.join(known[:12]) or 'no port'}"
        raise InputError([Fault.of_option("port", "", problem)])
    return known[0] if port is None else one_of("port", "a port of these events", port, known)


def _waiting(table: pa.Table) -> tuple[list[str], Any, Any]:
    """The VCs as the port has them, the instants, and the cells waiting of each after every event."""
    import numpy as np

    vcs = names(table, "port_vc")
    events, times, of = texts(table, "event"), numbers(table, "time_s"), texts(table, "vc")
    port_vcs = texts(table, "port_vc")
    keys = np.nan_to_num(numbers(table, "frame")) * 4096 + np.nan_to_num(numbers(table, "index"), nan=4095)
    is_rm = np.array([word is not None for word in texts(table, "rm")], bool)
    entered = events == "admitted"
    left = np.isin(events, _LEAVING)
    waiting = np.zeros((len(vcs), len(times)))
    for vc in names(table, "vc"):
        own = of == vc
        place = vcs.index(port_vcs[int(own.argmax())])
        known = keys[own & entered & ~is_rm]
        change = (own & entered).astype(int) - (own & left).astype(int)
        count = np.cumsum(change)
        # Cells that were there before the first event leave without having come. They leave first.
        unseen = int((own & left & ~is_rm & ~np.isin(keys, known)).sum())
        waiting[place] += count + max(unseen, -int(count.min(initial=0)))
    return vcs, times, waiting


def _drawn(times: Any, total: Any) -> Any:
    """Selects the rows to draw: in each column of the figure the first, the emptiest, the fullest and the last.

    The last state of a column holds until the next event, so a pause of any length shows what really waits in it.
    """
    import numpy as np

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


def _marks(
    ax: Axes,
    log: Mapping[str, pa.Table],
    table: pa.Table,
    frames: pa.Table | None,
    port: str,
    times: Any,
    total: Any,
    scale: float,
) -> float:
    """Refused frames, lost cells, and the threshold; answers how high the plot must be."""
    import numpy as np

    events, reasons = texts(table, "event"), texts(table, "reason")
    rest = (events == "lost") & (reasons == "its frame had lost a cell")
    # Those of which there are most lie below.
    marks = {
        "cell lost: its frame had lost one": (rest, "1", _REMAINDER),
        "cell lost: no room": ((events == "lost") & (reasons == "no room"), "v", LOSS),
        "cell pushed out": (events == "pushed_out", "^", _REMOVED),
        "cell dropped: the rate fell": (events == "dropped", "s", _REMOVED),
    }
    top = float(total.max(initial=0))
    if "frames" not in log:
        marks["cell lost: its frame was refused"] = (
            (events == "lost") & (reasons == "its frame was refused"),
            "x",
            INK,
        )
    elif frames is not None:
        refused = rows_of(frames, event="refused")
        x, y = numbers(refused, "time_s") * scale, numbers(refused, "occupancy")
        if len(x):
            style: dict[str, Any] = {"marker": "x", "markersize": 3.5, "linestyle": "none", "markeredgewidth": 0.8}
            label = f"frame refused ({len(x):,})"
            ax.plot(x, y, color=INK, rasterized=len(x) > MOST_MARKS, label=label, **style)
            top = max(top, y.max())
        top = max(top, _threshold(ax, frames, scale, top))
    for label, (rows, marker, colour) in marks.items():
        if rows.any():
            style = {"marker": marker, "markersize": 4, "linestyle": "none", "markeredgewidth": 0.8}
            many = bool(rows.sum() > MOST_MARKS)
            label = f"{label} ({rows.sum():,})"
            ax.plot(times[rows] * scale, total[rows], color=colour, rasterized=many, label=label, **style)
    return float(np.ceil(top))


def _threshold(ax: Axes, frames: pa.Table, scale: float, top: float) -> float:
    """The policy's threshold, where it has one for the buffer."""
    import numpy as np

    levels, times = numbers(frames, "threshold_cells"), numbers(frames, "time_s")
    times, levels = times[~np.isnan(levels)], levels[~np.isnan(levels)]
    if not len(levels) or levels.min() > 1.6 * max(top, 1):
        return 0.0
    dashed: dict[str, Any] = {"color": INK, "linestyle": "--", "linewidth": 1}
    if levels.min() == levels.max():
        ax.axhline(levels[0], label=f"threshold: {levels[0]:,.6g} cells", **dashed)
    else:
        ax.plot(times * scale, levels, drawstyle="steps-post", label="threshold", **dashed)
    return float(levels.max())
