"""A buffer's anatomy: what waits at a port over time, one VC upon the other, and what is lost there."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from celltrain.axes import legible
from celltrain.diagrams.common import BLACK, MOST_MARKS, axes, finish, nothing, time_unit
from celltrain.errors import Fault, InputError
from celltrain.event_rows import kept, names, numbers, one_of, rows_of, span_of, texts

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

#: Tints of `common`'s colours: areas are not to outshine marks.
_TINTS = ("#7FB8DA", "#F3CF80", "#80CFB9", "#E6BBD2", "#ABDAF4", "#EAAE80", "#F7F1A0", "#B3B3B3")
_REST = "#DDDDDD"
#: Instants of a figure: each is that of the fullest buffer around it.
_POINTS = 1200
_LEAVING = ("departed", "pushed_out", "dropped")


def draw(
    log: Mapping[str, pa.Table],
    port: str | None,
    *,
    window: str | None,
    title: str,
    buffers: Mapping[str, int | None],
    ax: Axes | None,
    size: tuple[float, float],
) -> Axes:
    """Draws it of the events that were kept."""
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
    times, waiting, table = times[shown], waiting[:, shown], table.filter(shown)
    total = waiting.sum(axis=0)
    scale, unit = time_unit(times[-1])
    ax = axes(ax, size, title, legible(f"cells waiting at {port}"))
    points = _fullest(total)
    # Its last state, as a step needs an end.
    order = np.argsort(-waiting.max(axis=1), kind="stable")
    top = sorted(order[: len(_TINTS)])
    layers, labels, colours = [waiting[vc] for vc in top], [vcs[vc] for vc in top], list(_TINTS[: len(top)])
    if len(order) > len(top):
        layers.append(waiting[order[len(_TINTS) :]].sum(axis=0))
        labels.append(f"{len(order) - len(top)} other VCs")
        colours.append(_REST)
    ax.stackplot(
        times[points] * scale,
        [layer[points] for layer in layers],
        labels=[legible(label, 20) for label in labels],
        colors=colours,
        step="post",
        linewidth=0,
    )
    top_of_plot = _marks(ax, log, table, port, times, total, span, scale)
    if (size_of_buffer := buffers.get(port)) is not None and size_of_buffer <= 1.6 * top_of_plot:
        ax.axhline(size_of_buffer, color=BLACK, linestyle=":", linewidth=1, label=f"buffer: {size_of_buffer:,} cells")
        top_of_plot = max(top_of_plot, size_of_buffer)
    ax.set_ylim(0, 1.06 * max(top_of_plot, 1))
    ax.set_xlabel(f"time ({unit})")
    ax.set_ylabel("cells waiting")
    ax.margins(x=0)
    return finish(ax, 3)


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


def _fullest(total: Any) -> Any:
    """The instants that are drawn: of each of so many parts the first and the fullest, and the last of all."""
    import numpy as np

    if len(total) <= _POINTS:
        return np.arange(len(total))
    edges = np.linspace(0, len(total), _POINTS // 2 + 1).astype(int)
    chosen = [(first, first + int(np.argmax(total[first:end]))) for first, end in pairwise(edges)]
    return np.unique([*(row for pair in chosen for row in pair), len(total) - 1])


def _marks(
    ax: Axes,
    log: Mapping[str, pa.Table],
    table: pa.Table,
    port: str,
    times: Any,
    total: Any,
    span: tuple[float, float] | None,
    scale: float,
) -> float:
    """Refused frames, lost cells, and the threshold; answers how high the plot must be."""
    import numpy as np

    events, reasons = texts(table, "event"), texts(table, "reason")
    rest = (events == "lost") & (reasons == "its frame had lost a cell")
    # Those of which there are most lie below.
    marks = {
        "cell lost: its frame had lost one": (rest, "1", "#E07B00"),
        "cell lost: no room": ((events == "lost") & (reasons == "no room"), "v", "#B00000"),
        "cell pushed out": (events == "pushed_out", "^", "#6A3D9A"),
        "cell dropped: the rate fell": (events == "dropped", "s", "#6A3D9A"),
    }
    top = float(total.max(initial=0))
    frames = kept(log, "frames", span)
    if frames is None:
        marks["cell lost: its frame was refused"] = (
            (events == "lost") & (reasons == "its frame was refused"),
            "x",
            BLACK,
        )
    else:
        frames = rows_of(frames, port=port)
        refused = rows_of(frames, event="refused")
        x, y = numbers(refused, "time_s") * scale, numbers(refused, "occupancy")
        if len(x):
            style: dict[str, Any] = {"marker": "x", "markersize": 3.5, "linestyle": "none", "markeredgewidth": 0.8}
            label = f"frame refused ({len(x):,})"
            ax.plot(x, y, color=BLACK, rasterized=len(x) > MOST_MARKS, label=label, **style)
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
    dashed: dict[str, Any] = {"color": BLACK, "linestyle": "--", "linewidth": 1}
    if levels.min() == levels.max():
        ax.axhline(levels[0], label=f"threshold: {levels[0]:,.6g} cells", **dashed)
    else:
        ax.plot(times * scale, levels, drawstyle="steps-post", label="threshold", **dashed)
    return float(levels.max())
