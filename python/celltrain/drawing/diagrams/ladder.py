"""The ladder of a frame: its cells on their way through the network, time from top to bottom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from celltrain.drawing.axes import brief, legible
from celltrain.drawing.diagrams.common import axes, finish, flow_index
from celltrain.drawing.event_rows import kept, names, numbers, one_of, rows_of, texts
from celltrain.drawing.style import INK, LOSS, PALE, colour_of_flow, tint_of_flow
from celltrain.errors import Fault, InputError
from celltrain.text import described

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes


#: How a cell ends at a port.
GONE = ("lost", "pushed_out", "dropped")


@dataclass(frozen=True, kw_only=True)
class _Visit:
    """A cell at a port: when it came, when it left, and when it was lost; None where that was not so, or not kept."""

    arrived: float | None
    departed: float | None
    lost: float | None
    how: str
    waits: bool
    """Whether it was admitted, and so waited until it left or was lost."""

    @property
    def left(self) -> float | None:
        """Until when it waited."""
        return self.lost if self.departed is None and self.waits else self.departed


def draw(
    log: Mapping[str, pa.Table],
    flow: str,
    frame: int | None,
    *,
    title: str,
    facts: Mapping[str, Any],
    notes: list[str],
    ax: Axes | None,
    size: tuple[float, float],
) -> Axes:
    """Draws it of the events that were kept; adds to `notes` what the reader should know about the frame."""
    table = log["cells"]
    flows, vcs = names(table, "flow"), names(table, "vc")
    vc = flow if flow in vcs else one_of("flow", "a flow or VC of these events", flow, [*flows, *vcs])
    if vc not in vcs:
        vc = names(rows_of(table, flow=flow), "vc")[0]
    own = rows_of(table, vc=vc)
    told = kept(log, "frames", None)
    told = None if told is None else rows_of(told, vc=vc)
    if frame is not None and not 0 <= frame < 1 << 32:
        raise InputError([Fault.of_option("frame", described(frame), "is not a frame's number, from 0 to 2^32 - 1")])
    number, note = _worth_seeing(vc, own, told) if frame is None else (frame, "")
    if note:
        notes.append(note)
    ports = _ports(_cells(own, number))
    if not ports:
        problem = "has no cells among the events: name one that crossed a port whose cells were kept"
        raise InputError([Fault.of_option("frame", number, problem)])
    end = _end(told, number)
    origin = min(visit.arrived for visits in ports.values() for visit in visits if visit.arrived is not None)
    ax = axes(ax, size, title, legible(f"frame {number} of {vc}"), f"from {origin:.9g} s on", tcp=facts.get("tcp"))
    last = _last_instant(ports, end)
    by, unit = (1e3, "ms") if last - origin >= 5e-3 else (1e6, "µs")
    sender = names(own, "flow")
    index = flow_index(flows, facts)[sender[0]] if sender else 0
    _Ladder(ax, origin, by, index).draw(list(ports.values()), end)
    _label(ax, list(ports), end)
    ax.set_ylabel(f"time since the first cell arrived ({unit})")
    ax.set_ylim(1.04 * (last - origin) * by, -0.04 * (last - origin) * by)
    return finish(ax, below=0.02)


def _worth_seeing(vc: str, own: pa.Table, told: pa.Table | None) -> tuple[int, str]:
    """The first frame that lost some of its cells; else the first that waited and arrived whole, or is the first of all.

    The second value says what is missing, if no frame lost only some of its cells.
    """
    import numpy as np

    cells = own.filter(own["frame"].is_valid())
    if not len(cells):
        return 0, ""
    events, times = texts(cells, "event"), numbers(cells, "time_s")
    frames, cell = numbers(cells, "frame").astype(int), np.nan_to_num(numbers(cells, "index"), nan=-1)
    lost = np.isin(events, GONE)
    passed = events == "departed"
    ports = texts(cells, "port")
    # Frames of which one port lost cells and sent others.
    cut = np.concatenate(
        [np.intersect1d(frames[lost & (ports == port)], frames[passed & (ports == port)]) for port in set(ports)]
    )
    if told is not None:
        cut = np.union1d(cut, numbers(rows_of(told, event="cut"), "frame").astype(int))
    if len(cut := np.intersect1d(cut, frames)):
        return int(cut[0]), ""
    # A cell that departs later than it was admitted has waited.
    admitted: dict[tuple[Any, ...], float] = {}
    incomplete = set(frames[lost])
    for row in np.flatnonzero((events == "admitted") | passed):
        key = (ports[row], frames[row], cell[row])
        if events[row] == "admitted":
            admitted[key] = times[row]
        elif times[row] > admitted.get(key, np.inf) and frames[row] not in incomplete:
            return int(frames[row]), f"No frame of {vc} lost only some of its cells: this is the first that waited."
    number = int(frames[0])
    what = "waited or lost only some of its cells" if lost.any() else "waited or was lost"
    return number, f"Nothing to see: no frame of {vc} {what} at these ports. This is the first one."


def _cells(own: pa.Table, number: int) -> list[dict[str, Any]]:
    """What happened to the frame's cells; those of RM have numbers of their own."""
    import pyarrow as pa
    import pyarrow.compute

    of_frame = pa.compute.and_(pa.compute.equal(own["frame"], number), pa.compute.is_null(own["rm"].cast(pa.string())))
    rows: list[dict[str, Any]] = own.filter(of_frame).to_pylist()
    return rows


def _ports(rows: list[dict[str, Any]]) -> dict[str, list[_Visit]]:
    """The visits of the cells at each port, in the order in which the frame came to the ports."""
    found: dict[str, dict[int, dict[str, tuple[float, str]]]] = {}
    for row in rows:
        if row["index"] is not None:
            instants = found.setdefault(row["port"], {}).setdefault(row["index"], {})
            instants[row["event"]] = (row["time_s"], row["reason"] or "")
    ports: dict[str, list[_Visit]] = {}
    for port, cells in found.items():
        visits = []
        for _, instants in sorted(cells.items()):
            lost = next((instants[name] for name in GONE if name in instants), None)
            how = "" if lost is None else lost[1] or "pushed out"
            waits = "admitted" in instants
            came, left = (instants[name][0] if name in instants else None for name in ("arrived", "departed"))
            visits.append(
                _Visit(arrived=came, departed=left, lost=None if lost is None else lost[0], how=how, waits=waits)
            )
        ports[port] = visits
    return ports


def _end(told: pa.Table | None, number: int) -> tuple[float, str] | None:
    """When the frame's last cell came to its host, and what became of the frame."""
    if told is None:
        return None
    import pyarrow as pa
    import pyarrow.compute

    rows = told.filter(pa.compute.equal(told["frame"], number)).to_pylist()
    ends = [(row["time_s"], row["event"]) for row in rows if row["event"] in ("delivered", "failed")]
    return ends[0] if ends else None


def _last_instant(ports: Mapping[str, list[_Visit]], end: tuple[float, str] | None) -> float:
    instants = [
        instant
        for visits in ports.values()
        for visit in visits
        for instant in (visit.arrived, visit.departed, visit.lost)
        if instant is not None
    ]
    return max([*instants, *([] if end is None else [end[0]])])


class _Ladder:
    """Draws the cells, each label once."""

    def __init__(self, ax: Axes, origin: float, by: float, index: int) -> None:
        self._ax = ax
        self._origin = origin
        self._by = by
        self._colour, self._tint = colour_of_flow(index), tint_of_flow(index)
        self._labels: set[str] = set()
        self._cells = 0
        self._lost: Counter[str] = Counter()

    def draw(self, ports: list[list[_Visit]], end: tuple[float, str] | None) -> None:
        self._cells = max(map(len, ports))
        self._lost = Counter(visit.how for visits in ports for visit in visits if visit.lost is not None)
        lines = len(ports) + (end is not None)
        for place in range(lines):
            self._ax.axvline(place, color=PALE, linewidth=0.8, zorder=0)
        for place, visits in enumerate(ports):
            for visit in visits:
                self._visit(place, visit)
            following = ports[place + 1] if place + 1 < len(ports) else None
            self._way(place, visits, following, end)
        self._ax.set_xlim(-0.35, lines - 0.65)

    def _visit(self, place: int, visit: _Visit) -> None:
        if visit.arrived is not None and visit.left is not None and visit.left > visit.arrived:
            style: dict[str, Any] = {"color": self._tint, "linewidth": 4, "solid_capstyle": "butt"}
            self._line(place, visit.arrived, place, visit.left, "waits", **style)
        if visit.lost is not None:
            label = f"lost: {visit.how} ({self._lost[visit.how]:,} of {self._cells:,})"
            self._ax.plot(
                *([place], [self._y(visit.lost)], "x"),
                color=LOSS,
                markersize=6,
                markeredgewidth=1.5,
                zorder=4,
                label=self._once(label),
            )

    def _way(
        self, place: int, visits: list[_Visit], following: list[_Visit] | None, end: tuple[float, str] | None
    ) -> None:
        """From here to the next port: cells of a VC come in the order in which they left."""
        left = [visit.departed for visit in visits if visit.departed is not None]
        if following is not None:
            came = [visit.arrived for visit in following]
        elif end is not None and left:
            # What comes to the host is told of the last cell alone; all take as long.
            came = [instant + end[0] - left[-1] for instant in left]
        else:
            came = []
        for first, last in zip(left, came, strict=False):
            if last is not None:
                self._line(place, first, place + 1, last, "on the link", color=self._colour, linewidth=0.8)
        if following is None and end is not None and left:
            colour, label = (INK, "delivered") if end[1] == "delivered" else (LOSS, "failed: the frame is not whole")
            self._ax.plot(
                *([place + 1], [self._y(end[0])], "o"), color=colour, markersize=5, zorder=4, label=self._once(label)
            )

    def _line(self, x: int, first: float, other: int, last: float, label: str, **style: Any) -> None:
        self._ax.plot([x, other], [self._y(first), self._y(last)], label=self._once(label), **style)

    def _y(self, instant: float) -> float:
        return (instant - self._origin) * self._by

    def _once(self, label: str) -> str | None:
        if label in self._labels:
            return None
        self._labels.add(label)
        return label


def _label(ax: Axes, ports: list[str], end: tuple[float, str] | None) -> None:
    """Each line under the name of the node whose port it is."""
    nodes = [port.split("->")[0] for port in ports]
    if end is not None:
        nodes.append(ports[-1].split("->")[-1])
    rotated: dict[str, Any] = {"rotation": 20, "ha": "left"} if len(nodes) > 4 or max(map(len, nodes)) > 12 else {}
    ax.set_xticks(range(len(nodes)), [legible(brief(node, 16)) for node in nodes], fontsize="small", **rotated)
    ax.xaxis.tick_top()
    for text in ax.get_xticklabels():
        text.set_parse_math(False)
