"""Runs that fill priority groups and queues of a switch cell by cell. The results are compared with the arithmetic.

A source sends packets of one cell to an output port that does not drain. The memory's events contain the cell at which
the group pauses, and the cell at which it is full.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from celltrain.errors import CelltrainWarning
from celltrain.mmu.arithmetic import Limits, Row, Thresholds
from celltrain.model.grids import Card, CardMixin, Grid
from celltrain.model.types import Scenario
from celltrain.running.events import Events
from celltrain.running.results import run

#: Rate of the sources: a cell each 10 ns.
SOURCE = "42.4Gbps"
#: Rate of the output port. Its first cell takes a second, which is longer than any run, and the other cells wait in the
#: memory.
SINK = "424bps"
#: Number of cells that a source sends after its group is full.
BEYOND = 100
#: Priority of the groups.
PRIORITY = 3


@dataclass(frozen=True, kw_only=True)
class Fill:
    """A group or queue that a run filled, with the numbers of cells from the arithmetic and from the run."""

    port: str
    """The first of the ports with these settings."""
    group: str | None
    queue: str | None
    turn: int
    """Position of the group in the order of filling."""
    pause: int | None
    pause_simulated: int | None
    full: int
    """Number of cells in the group or queue when its first cell is lost."""
    full_simulated: int | None
    engines_agree: bool
    """True if both engines gave the same result."""

    @property
    def agrees(self) -> bool:
        """True if the runs and the arithmetic give the same numbers of cells."""
        return self.engines_agree and (self.pause, self.full) == (self.pause_simulated, self.full_simulated)


@dataclass(frozen=True, kw_only=True, repr=False)
class Simulated(CardMixin):
    """The groups and queues of a switch, each filled in a run."""

    switch: str
    fills: tuple[Fill, ...]

    @property
    def agrees(self) -> bool:
        """True if the runs and the arithmetic give the same numbers of cells."""
        return all(fill.agrees for fill in self.fills)

    def to_dict(self) -> dict[str, Any]:
        """Returns the answer of `celltrain mmu thresholds --simulate --json`."""
        fills = [{**asdict(fill), "agrees": fill.agrees} for fill in self.fills]
        return {"switch": self.switch, "fills": fills, "agrees": self.agrees}

    def to_pandas(self) -> Any:
        """Returns a DataFrame with a row for each group and queue; needs pandas."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.to_dict()["fills"]).to_pandas()

    def grid(self) -> Grid:
        """Returns the table to print."""
        heads = ["port", "group or queue", "turn", "pause", "simulated", "full", "simulated", "agrees"]
        grid = Grid(heads=heads, left=(0, 1, 7), keys=3)
        for fill in self.fills:
            kind = f"group {fill.group}" if fill.group is not None else f"queue {fill.queue}"
            cells = (fill.turn, fill.pause, fill.pause_simulated, fill.full, fill.full_simulated)
            texts = ("-" if one is None else str(one) for one in cells)
            grid.add_row(fill.port, kind, *texts, "yes" if fill.agrees else "NO")
        return grid

    def _card(self) -> Card:
        return Card(title=f"{self.switch}, simulated", grids=[self.grid()])

    def __repr__(self) -> str:
        return f"Simulated(switch={self.switch!r}, {len(self.fills)} groups and queues, agrees={self.agrees})"


def simulate(found: Thresholds, *, progress: Callable[[float], object] | None = None) -> Simulated:
    """Fills each lossless group and lossy queue of an answer in a run.

    If the answer says so, fills groups one after another.

    Groups and queues with the same profile are simulated once.
    """
    rows = {row.limits.profile: row for row in reversed(found.rows) if is_filled(row)}
    fills: list[Fill] = []
    for number, row in enumerate(reversed(rows.values())):
        fills += filled(row)
        if progress is not None:
            progress((number + 1) / len(rows))
    return Simulated(switch=found.switch, fills=tuple(fills))


def is_filled(row: Row) -> bool:
    """Returns whether a row describes a lossless group, or a queue that loses cells at its threshold."""
    return row.limits.pause is not None or (row.queue is not None and row.limits.is_limited)


def filled(row: Row) -> Iterator[Fill]:
    """Runs the scenario that fills the groups or the queue of a row, and yields the result for each."""
    limits, groups = row.limits, max(len(row.in_turn), 1)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        # The run delivers no data on purpose.
        warnings.simplefilter("ignore", CelltrainWarning)
        model = Scenario.model_validate(scenario(limits, groups=groups))
        # Events of memories come from the reference engine.
        reference = run(model, events=Events(folder, kinds=["memories"]))
        events = reference.events["memories"].to_pylist()
        is_same = run(model).fingerprint == reference.fingerprint
    headroom_left = limits.shared.headroom or groups * (limits.headroom or 0)
    for number, cells in enumerate(limits.in_turn(groups)):
        headroom = min(limits.headroom or 0, headroom_left)
        headroom_left -= headroom
        link = f"source{number + 1}->switch" if limits.pause is not None else "switch->sink"
        of_link = [event for event in events if event["port"] == link and event["priority"] == PRIORITY]
        first = {
            kind: next((one["held"] for one in of_link if one["event"] == kind), None) for kind in ("paused", "refused")
        }
        yield Fill(
            port=row.ports[0] if row.ports else "",
            group=row.group,
            queue=row.queue,
            turn=number + 1,
            pause=None if limits.pause is None else cells,
            pause_simulated=first["paused"],
            full=cells + headroom,
            full_simulated=first["refused"],
            engines_agree=is_same,
        )


def scenario(limits: Limits, *, groups: int = 1) -> dict[str, Any]:
    """Returns the tables of a scenario in which sources fill groups, or queues, one after the other.

    The source of each group starts when the previous group has taken all the cells that it can. Pauses are counted, but
    do not stop the sources.

    Args:
        limits: The thresholds that the arithmetic gives.
        groups: Number of priority groups; 1 for a queue.
    """
    names = [f"source{number}" for number in range(1, groups + 1)]
    flows = [f"tcp{number}" for number in range(1, groups + 1)]
    is_group = limits.pause is not None
    headroom = limits.headroom or 0
    takes = [cells + headroom + BEYOND for cells in limits.in_turn(groups)]
    starts = [sum(takes[:number]) for number in range(groups)]
    bursts = [{"rate": SOURCE, "packet": "1B", "on": f"{10 * cells}ns", "off": "1s"} for cells in takes]
    links = [{"between": [name, "switch"], "rate": SOURCE, "delay": "0s"} for name in names]
    links.append({"between": ["switch", "sink"], "rate": SINK, "delay": "0s"})
    return {
        "name": f"{limits.profile}, {groups} filled in turn",
        "duration": f"{10 * sum(takes)}ns",
        "topology": {
            "network": {
                "hosts": [*names, "sink"],
                "switches": ["switch"],
                "links": links,
                "flows": [{"from": name, "to": "sink"} for name in names],
            }
        },
        "flow": {
            flow: {"start": f"{10 * start}ns", "traffic": {"on_off": burst}}
            for flow, start, burst in zip(flows, starts, bursts, strict=True)
        },
        "vc": {flow: {"priority": PRIORITY} for flow in flows},
        "port": {
            "switch->sink": {"buffer": "shared", "policy": {"tail_drop": {}}},
            "default": {"buffer": BEYOND, "policy": {"tail_drop": {}}},
        },
        "switch": {"switch": {"memory": _memory(limits, groups, is_group=is_group)}},
    }


def _memory(limits: Limits, groups: int, *, is_group: bool) -> dict[str, Any]:
    """Returns the table of the memory: a pool of B cells, and groups or queues of the priority."""
    shared, headroom = limits.shared, limits.headroom or 0
    beyond = (shared.headroom or groups * headroom) + groups * limits.reserve
    queue: dict[str, Any] = {"priorities": [PRIORITY], "reserve": limits.reserve}
    pool: dict[str, Any] = {"side": "ingress" if is_group else "egress", "cells": shared.cells}
    if is_group:
        queue |= {"lossless": True, "headroom": headroom, "pause_at": "threshold"}
        pool |= {"headroom": shared.headroom} if shared.headroom else {}
        links = [f"source{number}->switch" for number in range(1, groups + 1)]
    else:
        links = ["switch->sink"]
    if limits.alpha is None:
        queue["threshold"] = limits.share
        pool["policy"] = {"static_thresholds": {}}
    else:
        counted = "counted" if limits.counts_arriving_cell else "not_counted"
        pool["policy"] = {"dynamic_threshold": {"alpha": float(limits.alpha), "arriving_cell": counted}}
    ports = ["switch->sink"]
    return {
        "cells": shared.cells + beyond,
        "ports": ports,
        "queue": [{"ports": links, **queue}],
        "pool": {"shared": pool},
    }
