"""The anatomy of a buffer: cells waiting at a port over time, stacked by VC, and cells lost there."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from celltrain.drawing import event_rows
from celltrain.drawing.event_rows import Events, marks, names, numbers, rows_of, texts
from celltrain.drawing.figure import COLOURS, GREY, INK, LOSS, legible, tint_of_flow
from celltrain.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

#: Maximum number of VCs with an area of their own, and the colour of the area for the rest.
_MOST_VCS = len(COLOURS)
_REST = "#DDDDDD"
#: Maximum number of VCs named in a note.
_MOST_NAMED = 4
#: Colours of marks, different from all colours of flows.
_REMAINDER, _REMOVED = "#E07B00", "#6A3D9A"
#: Columns of a figure. In each column, the instants with the fullest and the emptiest buffer are drawn.
_COLUMNS = 600
_LEAVING = ("departed", "pushed_out", "dropped")
#: Lines higher than this multiple of everything else are not drawn, as they would stretch the axis.
_VISIBLE = 1.6


def draw(run: Events, port: str | None, *, window: str | None, notes: list[str], ax: Axes | None) -> Axes:
    """Draws the diagram from the recorded events; adds notes about them for the reader."""
    span = event_rows.span_of(window)
    everything = run.log["cells"]
    port = _port(port, names(everything, "port"))
    # Keep earlier events: cells waiting when the window begins arrived before it.
    table = event_rows.within(rows_of(everything, port=port), None if span is None else (0.0, span[1]))
    vcs, times, waiting = _waiting(table)
    shown = np.ones(len(times), bool) if span is None else times >= span[0]
    if not shown.any():
        raise event_rows.nothing(window)
    before = waiting[:, np.flatnonzero(~shown)[-1:]]
    times, waiting, table = times[shown], waiting[:, shown], table.filter(shown)
    total = waiting.sum(axis=0)
    scale, _ = event_rows.time_unit(times[-1])
    judged = run.rows("frames", span, port=port)
    # A decision records the number of VCs with cells in the buffer. If the table has fewer, some were not recorded.
    partial = judged is not None and float(np.nanmax(numbers(judged, "active_vcs"), initial=0)) > len(vcs)
    own = ", ".join(vcs) if len(vcs) <= _MOST_NAMED else f"{len(vcs)} VCs"
    if partial:
        notes.append(
            f"Only the cells of {own} were kept at {port}. The grey dots are all cells, at each judgement. "
            "Keep the events without --flow or --vc to draw the whole buffer."
        )
    ax = run.axes(ax, legible(f"cells {f'of {own} ' if partial else ''}waiting at {port}"))
    points = _drawn(times, total)
    drawn, states = times[points], waiting[:, points]
    if span is not None:
        # The window begins with the queue after the last event before it, and ends with the queue after its last event.
        if before.size:
            drawn, states = np.append(span[0], drawn), np.hstack([before, states])
        end = min(span[1], float(numbers(everything, "time_s").max()))
        drawn, states = np.append(drawn, max(end, drawn[-1])), np.hstack([states, states[:, -1:]])
    _areas(ax, drawn * scale, states, np.argsort(-waiting.max(axis=1), kind="stable"), vcs, _indices(run, vcs))
    top = float(total.max(initial=0))
    if judged is not None:
        top = _judgements(ax, judged, scale, top)
    _losses(ax, table, times * scale, total, with_refused="frames" not in run.log)
    top = float(np.ceil(top))
    if partial and judged is not None:
        known = judged.filter(judged["occupancy"].is_valid())
        y = numbers(known, "occupancy")
        # Draw dots, as the queue is unknown between two decisions.
        marks(ax, numbers(known, "time_s") * scale, y, ".", GREY, "X: all cells", markersize=2, zorder=1.5)
        top = max(top, float(y.max(initial=0)))
    size = run.facts.get("buffers", {}).get(port)
    if size is not None and size <= _VISIBLE * top:
        ax.axhline(size, color=INK, linestyle=":", linewidth=1, label=f"buffer: {size:,} cells")
        top = max(top, size)
    ax.set_ylim(0, 1.06 * max(top, 1))
    ax.set_ylabel(legible(f"cells of {own} waiting") if partial else "all cells waiting")
    ax.margins(x=0)
    event_rows.time_axis(ax, span, times[-1])
    return event_rows.finish(ax, 3)


def _port(port: str | None, known: list[str]) -> str:
    """Returns the port if it is known, or the only one there is."""
    if port is None and len(known) != 1:
        problem = f"is missing; cells were recorded at {', '.join(known[:12]) or 'no port'}"
        raise InputError.of_option("port", "", problem)
    return known[0] if port is None else event_rows.one_of("port", "a port of these events", port, known)


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
        # Cells that were waiting before the first event have no arrival, and leave first.
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
    """Stacks the VCs with most cells in the order of their flows, and the sum of the others on top."""
    top = sorted(order[:_MOST_VCS], key=lambda vc: index[vcs[vc]])
    layers, labels = [states[vc] for vc in top], [vcs[vc] for vc in top]
    colours = [tint_of_flow(index[label]) for label in labels]
    if len(order) > len(top):
        layers.append(states[order[_MOST_VCS:]].sum(axis=0))
        labels.append(f"{len(order) - len(top)} other VCs")
        colours.append(_REST)
    ax.stackplot(x, layers, labels=[legible(label, 20) for label in labels], colors=colours, step="post", linewidth=0)


def _judgements(ax: Axes, judged: pa.Table, scale: float, top: float) -> float:
    """Draws refused frames and the policy's threshold; returns the height that the plot needs."""
    refused = rows_of(judged, event="refused")
    x, y = numbers(refused, "time_s") * scale, numbers(refused, "occupancy")
    if len(x):
        marks(ax, x, y, "x", INK, f"frame refused ({len(x):,})", markersize=3.5)
        top = max(top, y.max())
    levels, times = numbers(judged, "threshold_cells"), numbers(judged, "time_s")
    times, levels = times[~np.isnan(levels)], levels[~np.isnan(levels)]
    if not len(levels) or levels.min() > _VISIBLE * max(top, 1):
        return top
    dashed: dict[str, Any] = {"color": INK, "linestyle": "--", "linewidth": 1}
    if levels.min() == levels.max():
        ax.axhline(levels[0], label=f"threshold: {levels[0]:,.6g} cells", **dashed)
    else:
        ax.plot(times * scale, levels, drawstyle="steps-post", label="threshold", **dashed)
    return max(top, float(levels.max()))


def _losses(ax: Axes, table: pa.Table, x: Any, total: Any, *, with_refused: bool) -> None:
    """Marks lost cells by cause, usually the most frequent first, so that its marks do not cover the others."""
    events, reasons = texts(table, "event"), texts(table, "reason")
    lost = events == "lost"
    causes = {
        "cell lost: its frame had lost one": (lost & (reasons == "its frame had lost a cell"), "1", _REMAINDER),
        "cell lost: no room": (lost & (reasons == "no room"), "v", LOSS),
        "cell pushed out": (events == "pushed_out", "^", _REMOVED),
        "cell dropped: the rate fell": (events == "dropped", "s", _REMOVED),
    }
    if with_refused:
        causes["cell lost: its frame was refused"] = (lost & (reasons == "its frame was refused"), "x", INK)
    for label, (rows, marker, colour) in causes.items():
        if rows.any():
            marks(ax, x[rows], total[rows], marker, colour, f"{label} ({rows.sum():,})")
