"""The ladder of a frame: the path of its cells through the network, with time running downwards."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from celltrain.drawing.event_rows import SIZE, Events, finish, marks, names, numbers, one_of, rows_of, texts
from celltrain.drawing.figure import INK, LOSS, PALE, brief, colour_of_flow, legible, tint_of_flow
from celltrain.errors import InputError
from celltrain.text import described

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

#: Events in which a cell is lost at a port.
GONE = ("lost", "pushed_out", "dropped")
#: Size of the diagram in inches.
TALL = (SIZE[0], 1.25 * SIZE[1])


@dataclass
class _Visit:
    """Times of a cell at a port; None for events that did not happen or were not recorded."""

    arrived: float | None = None
    admitted: float | None = None
    departed: float | None = None
    lost: float | None = None
    cause: str = ""
    """Cause of the loss."""

    @property
    def left(self) -> float | None:
        """Time until which the cell waited."""
        return self.lost if self.departed is None and self.admitted is not None else self.departed


def draw(run: Events, flow: str, frame: int | None, *, notes: list[str], ax: Axes | None) -> Axes:
    """Draws the diagram from the recorded events; adds notes about the frame for the reader."""
    table = run.log["cells"]
    flows, vcs = names(table, "flow"), names(table, "vc")
    vc = flow if flow in vcs else one_of("flow", "a flow or VC of these events", flow, [*flows, *vcs])
    if vc not in vcs:
        vc = names(rows_of(table, flow=flow), "vc")[0]
    own, judged = rows_of(table, vc=vc), run.rows("frames", vc=vc)
    number, note = _worth_seeing(vc, own, judged) if frame is None else (frame, "")
    notes += [note] if note else []
    # Frame numbers have 64 bits.
    ports = _ports(own, number) if 0 <= number < 1 << 64 else {}
    if not ports:
        problem = "has no recorded cells; name a frame that crossed a port whose cells were recorded"
        raise InputError.of_option("frame", described(number), problem)
    ends = [] if judged is None else rows_of(judged, frame=str(number)).to_pylist()
    end = next(((row["time_s"], row["event"]) for row in ends if row["event"] in ("delivered", "failed")), None)
    visits = [visit for at_port in ports.values() for visit in at_port]
    origin = min(visit.arrived for visit in visits if visit.arrived is not None)
    instants = [time for visit in visits for time in (visit.arrived, visit.departed, visit.lost) if time is not None]
    length = max([*instants, *([] if end is None else [end[0]])]) - origin
    by, unit = (1e3, "ms") if length >= 5e-3 else (1e6, "µs")
    ax = run.axes(ax, legible(f"frame {number} of {vc}"), f"from {origin:.9g} s on", size=TALL)
    sender = names(own, "flow")
    _draw_cells(ax, ports, end, run.flow_index(flows)[sender[0]] if sender else 0, lambda time: (time - origin) * by)
    ax.set_ylabel(f"time since the first cell arrived ({unit})")
    ax.set_ylim(1.04 * length * by, -0.04 * length * by)
    return finish(ax, below=0.02)


def _worth_seeing(vc: str, own: pa.Table, judged: pa.Table | None) -> tuple[int, str]:
    """Returns the first frame that lost only some cells, else the first that waited and arrived, else the first of all.

    The second value is a note, unless the frame lost only some of its cells.
    """
    cells = own.filter(own["frame"].is_valid())
    if not len(cells):
        return 0, ""
    events, times, ports = texts(cells, "event"), numbers(cells, "time_s"), texts(cells, "port")
    frames, cell = numbers(cells, "frame").astype(int), np.nan_to_num(numbers(cells, "index"), nan=-1)
    lost, passed = np.isin(events, GONE), events == "departed"
    # Find frames from which a port lost some cells and sent others.
    at_ports = [ports == port for port in set(ports)]
    cut = np.concatenate([np.intersect1d(frames[lost & at], frames[passed & at]) for at in at_ports])
    if judged is not None:
        cut = np.union1d(cut, numbers(rows_of(judged, event="cut"), "frame").astype(int))
    if len(cut := np.intersect1d(cut, frames)):
        return int(cut[0]), ""
    # A cell has waited if it departed later than it was admitted.
    admitted: dict[tuple[Any, ...], float] = {}
    incomplete = set(frames[lost])
    for row in np.flatnonzero((events == "admitted") | passed):
        key = (ports[row], frames[row], cell[row])
        if events[row] == "admitted":
            admitted[key] = times[row]
        elif times[row] > admitted.get(key, np.inf) and frames[row] not in incomplete:
            return int(frames[row]), f"No frame of {vc} lost only some of its cells: this is the first that waited."
    what = "waited or lost only some of its cells" if lost.any() else "waited or was lost"
    return int(frames[0]), f"Nothing to see: no frame of {vc} {what} at these ports. This is the first one."


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
        ax.axvline(place, color=PALE, linewidth=0.8, zorder=0)
    waits: dict[str, Any] = {"color": tint_of_flow(index), "linewidth": 4, "solid_capstyle": "butt", "label": "waits"}
    link: dict[str, Any] = {"color": colour_of_flow(index), "linewidth": 0.8, "label": "on the link"}
    for place, (visits, following) in enumerate(zip_longest(at_ports, at_ports[1:])):
        for visit in visits:
            if visit.arrived is not None and visit.left is not None and visit.left > visit.arrived:
                ax.plot([place, place], [y(visit.arrived), y(visit.left)], **waits)
            if visit.lost is not None:
                label = f"lost: {visit.cause} ({causes[visit.cause]:,} of {count:,})"
                marks(ax, [place], [y(visit.lost)], "x", LOSS, label, markersize=6, markeredgewidth=1.5, zorder=4)
        # Cells of a VC arrive in the order in which they were sent.
        left = [visit.departed for visit in visits if visit.departed is not None]
        arrivals = [visit.arrived for visit in following or []]
        if following is None and end is not None and left:
            # The host only records the arrival of the last cell, but all cells take the same time.
            arrivals = [time + end[0] - left[-1] for time in left]
        for first, last in zip(left, arrivals, strict=False):
            if last is not None:
                ax.plot([place, place + 1], [y(first), y(last)], **link)
    if end is not None and any(visit.departed is not None for visit in at_ports[-1]):
        colour, label = (INK, "delivered") if end[1] == "delivered" else (LOSS, "failed: the frame is not whole")
        marks(ax, [len(at_ports)], [y(end[0])], "o", colour, label, markersize=5, zorder=4)
    ax.set_xlim(-0.35, len(nodes) - 0.65)
    rotated: dict[str, Any] = {"rotation": 20, "ha": "left"} if len(nodes) > 4 or max(map(len, nodes)) > 12 else {}
    ax.set_xticks(range(len(nodes)), [legible(brief(node, 16)) for node in nodes], fontsize="small", **rotated)
    ax.xaxis.tick_top()
    for text in ax.get_xticklabels():
        text.set_parse_math(False)
