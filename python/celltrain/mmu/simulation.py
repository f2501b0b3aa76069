"""Scenarios that fill priority groups or a queue of a switch cell by cell, to compare a run with the arithmetic."""

from __future__ import annotations

from typing import Any

from celltrain.mmu.arithmetic import Limits

#: Rate of the sources: a cell each 10 ns.
SOURCE = "42.4Gbps"
#: Rate of the output port: its first cell takes a second, longer than any run, and the others wait in the memory.
SINK = "424bps"
#: Cells that a source sends beyond the last one that its group takes.
BEYOND = 10
#: Priority of the groups.
PRIORITY = 3


def scenario(limits: Limits, *, groups: int = 1) -> dict[str, Any]:
    """Returns the tables of a scenario in which sources fill groups, or queues, one after the other.

    Each source sends packets of one cell to an output port that does not drain. The source of the next group starts when
    the group has taken all cells that it can.

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
            flow: {"start": f"{10 * start}ns", "traffic": {"constant_rate": {"rate": SOURCE, "packet": "1B"}}}
            for flow, start in zip(flows, starts, strict=True)
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
