"""Descriptions of a scenario: its nodes, links, flows and fair shares, and its TCP in one line."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from celltrain import _core
from celltrain.errors import ScenarioError, warn
from celltrain.model.arguments import Cancel, checked, current
from celltrain.model.paths import QUANTITIES
from celltrain.model.scenario import Reading, read, table
from celltrain.text import shortened, shown

if TYPE_CHECKING:
    from celltrain.model.types import Scenario


@dataclass(frozen=True, kw_only=True)
class Node:
    """A host, a switch or an edge device."""

    name: str
    kind: str
    """`host`, `switch` or `edge_device`."""


@dataclass(frozen=True, kw_only=True)
class OneWayLink:
    """One direction of a link, and the port at its start."""

    name: str
    """Such as `sw1->sw2`."""
    start: int
    """Start of the link, as an index into the list of nodes."""
    end: int
    rate: str
    """Such as `155.52Mbps`."""
    delay: str
    rate_mbps: float
    delay_s: float


@dataclass(frozen=True, kw_only=True)
class Route:
    """A flow and the path of its data."""

    name: str
    links: tuple[int, ...]
    """The links that the flow crosses, as indices into the list of links."""
    max_min_mbps: float
    """The flow's max-min fair goodput."""
    stack: str
    """The flow's real transport stack: `smoltcp`, `quic` or a Python class; empty if the simulation sends its data."""
    retransmits: bool
    """True if the flow's ends send lost data again."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """The network the engines run."""

    name: str
    """Name of the scenario."""
    nodes: tuple[Node, ...]
    links: tuple[OneWayLink, ...]
    """The links in pairs. A pair has one link for each direction."""
    flows: tuple[Route, ...]
    bottleneck: int
    """The link to which `efficiency` refers, as an index into the list of links."""

    @classmethod
    def of_core(cls, case: _core.Case) -> Network:
        """Reads the network of a valid scenario; raises `ScenarioError` if it does not fit into free memory."""
        answer = json.loads(case.network(current()))
        return cls(
            name=answer["name"],
            nodes=tuple(Node(**node) for node in answer["nodes"]),
            links=tuple(OneWayLink(start=link.pop("from"), end=link.pop("to"), **link) for link in answer["links"]),
            flows=tuple(Route(**{**flow, "links": tuple(flow["links"])}) for flow in answer["flows"]),
            bottleneck=answer["bottleneck"],
        )

    @cached_property
    def kinds(self) -> dict[str, int]:
        """Number of nodes of each kind."""
        kinds = [node.kind for node in self.nodes]
        return {kind: kinds.count(kind) for kind in ("host", "switch", "edge_device") if kind in kinds}

    def to_dict(self) -> dict[str, Any]:
        """Returns the network as `celltrain check --json` prints it."""
        names = [link.name for link in self.links]
        flows = [
            {"name": flow.name, "links": [names[link] for link in flow.links], "max_min_mbps": flow.max_min_mbps}
            for flow in self.flows
        ]
        counts = {"nodes": len(self.nodes), "links": len(self.links) // 2}
        return {**counts, "bottleneck": names[self.bottleneck], "flows": flows}


@checked(ScenarioError)
def network(scenario: Scenario | str | os.PathLike[str]) -> Network:
    """Returns the network of a scenario; raises `ScenarioError` with all faults."""
    case = read(scenario).accepted()
    warn(case.warnings)
    return Network.of_core(case)


@checked(ScenarioError)
def max_min_shares(scenario: Scenario | str | os.PathLike[str], *, cancel: Cancel | None = None) -> dict[str, float]:
    """Returns the max-min fair goodput of each flow in megabits per second.

    No flow can gain rate without taking it from a flow with an equal or smaller rate. Shares include only application
    data. Traffic without TCP needs at most its mean rate. A share is the largest goodput of the flow's application over
    its part of the link, and `efficiency` divides by this share.

    Args:
        scenario: A scenario, the path of a TOML file, or the name of a shipped one.
        cancel: A handle that cancels the call from another thread; see `celltrain.Cancel`.

    Raises:
        ScenarioError: With every fault of the scenario.
        CancelledError: If `cancel` ended the call.

    >>> import celltrain as ct
    >>> lot = ct.Scenario(
    ...     duration="1s",
    ...     topology=ct.Chain(hops=2, cross=3, link_delay="1ms"),
    ...     port={"default": ct.Port(buffer_cells=1000, policy=ct.Epd(threshold=800))},
    ... )
    >>> {flow: round(share, 1) for flow, share in ct.max_min_shares(lot).items()}
    {'long1': 31.3, 'cross1': 31.3, 'cross2': 31.3, 'cross3': 31.3, 'cross4': 31.3, 'cross5': 31.3, 'cross6': 31.3}
    """
    return {flow.name: flow.max_min_mbps for flow in network(scenario).flows}


#: The recovery from losses of each TCP variant, in a phrase short enough for a heading.
RECOVERY = {
    "vanilla": "no fast retransmit",
    "tahoe": "fast retransmit, then slow start",
    "reno": "fast retransmit and recovery",
    "newreno": "fast recovery of several losses",
    "newreno_hoe": "fast recovery of several losses, Hoe 1996",
    "sack": "selective acknowledgements",
    "sack_pipe": "selective acknowledgements, Fall and Floyd 1996",
}
#: Kinds of traffic that do not use TCP.
WITHOUT_TCP = ("constant_rate", "on_off")
#: Default sizes of a TCP. A summary shows only sizes that differ.
MSS, MTU, WINDOW = "512B", "1500B", "65535B"
#: Descriptions of profiles of behaviours, other than the default profile.
RULES = {"paper": "rules of the papers", "bsd": "rules of BSD", "ns2": "rules of ns-2"}
#: Phases of timer ticks, other than the default.
PHASES = {"random": "random phases", "drifting": "drifting ticks"}
#: Default congestion control of stacks.
CONGESTION = {"smoltcp": "reno", "quic": "cubic"}
#: Maximum length of the description of a TCP with its sizes, for a line of 80 characters.
MOST_WORDS = 75
#: Maximum number of TCPs that a line names.
MOST_TCPS = 8
#: Maximum number of flows with their own TCP that a summary lists.
MOST_FLOWS = 3


def tcp_summary(scenario: Scenario | str | os.PathLike[str] | Mapping[str, Any]) -> str:
    """Describes the TCP of a scenario in one line, including flows and groups of requests with their own TCP.

    Args:
        scenario: A scenario, the path of a TOML file, the name of a shipped one, or a scenario as a table.

    Raises:
        ScenarioError: If the scenario has faults.

    >>> tcp_summary("lan-epd")
    'vanilla (no fast retransmit, rules of the papers, 100 ms ticks)'
    >>> tcp_summary("wan-cubic")
    'sack with cubic (mss 1460 B, window 600 kB, 10 ms ticks)'
    >>> tcp_summary("lan-unresponsive")
    'reno (fast retransmit and recovery, rules of the papers, 100 ms ticks); tcp5 without TCP'
    >>> tcp_summary("lan-smoltcp")
    'smoltcp 0.14.0 with reno'
    """
    settings = scenario if isinstance(scenario, Mapping) else table(read(scenario).accepted())
    common = _transport(settings) or _variant({"vanilla": {}})
    own = {}
    for flow, options in settings.get("flow", {}).items():
        if any(kind in WITHOUT_TCP for kind in options.get("traffic") or {}):
            own[flow] = f"{shown(shortened(flow))} without TCP"
        elif (transport := _transport(options)) and transport != common:
            own[flow] = f"{shown(shortened(flow))}: {transport}"
    for group, options in ((settings.get("requests") or {}) | (settings.get("incast") or {})).items():
        if (transport := _transport(options)) and transport != common:
            own[f"requests {group}"] = f"requests {shown(shortened(group))}: {transport}"
    parts = [common, *list(own.values())[:MOST_FLOWS]]
    if len(own) > MOST_FLOWS:
        what = "flows and groups of requests" if settings.get("requests") or settings.get("incast") else "flows"
        parts.append(f"{len(own) - MOST_FLOWS} more {what} with settings of their own")
    return "; ".join(parts)


def short_tcp(summary: str) -> str:
    """Returns the names in the summary of a TCP, without the details.

    >>> short_tcp("reno (fast retransmit and recovery, 100 ms ticks); tcp5 without TCP")
    'reno; tcp5 without TCP'
    """
    return re.sub(r" \([^)]*\)", "", summary)


def tcp_line(tcps: Sequence[str]) -> str:
    """Returns a line that names the TCPs of several runs."""
    more = f"; {len(tcps) - MOST_TCPS:,} more" if len(tcps) > MOST_TCPS else ""
    return f"TCP: {'; '.join(tcps[:MOST_TCPS])}{more}"


def tcp_lines(named: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yields a line for each TCP. Unless all cases have the same TCP, it names the cases."""
    cases: dict[str, dict[str, None]] = {}
    for name, tcp in named:
        cases.setdefault(tcp, {})[shown(name)] = None
    for tcp, names in cases.items():
        yield f"TCP: {tcp}" if len(cases) == 1 else f"TCP of {', '.join(names)}: {tcp}"


def _transport(options: Mapping[str, Any]) -> str:
    """Describes the real stack or the TCP of a scenario or a flow; empty if a flow uses that of its scenario."""
    if options.get("stack"):
        [(name, settings)] = options["stack"].items()
        if name == "python":
            return str(settings["class"]) + _in_brackets(_written(settings.get("settings") or {}))
        sizes = _sizes(settings)
        if (mtu := _bytes(settings.get("mtu", MTU))) != _bytes(MTU):
            sizes.insert(0, f"MTU {mtu} B")
        known = _stack_defaults(name)
        others = {one: value for one, value in settings.items() if one not in _NAMED and value != known.get(one)}
        congestion = settings.get("congestion", CONGESTION[name])
        of = f"{name} {dict(_core.stacks()).get(name, '')} with {congestion}"
        return of + _in_brackets([*sizes, *_written(others)])
    return _variant(options["tcp"]) if options.get("tcp") else ""


#: Settings of a stack that its description names in words.
_NAMED = ("congestion", "mss", "mtu", "receive_window")


@cache
def _stack_defaults(name: str) -> Mapping[str, Any]:
    """Returns the settings of a stack that a scenario does not set."""
    network = {"n_source": {"sources": 1, "link_delay": "5us"}}
    port = {"default": {"buffer": 100, "policy": {"tail_drop": {}}}}
    scenario = {"name": name, "duration": "1s", "topology": network, "port": port, "stack": {name: {}}}
    return dict(table(Reading.of_table(scenario, name).accepted())["stack"][name])


def _written(settings: Mapping[str, Any]) -> list[str]:
    """Writes settings as scenarios do, without quotes: `nagle=false`."""
    return [f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in settings.items()]


def _in_brackets(details: Sequence[str]) -> str:
    return f" ({', '.join(details)})" if details else ""


def _sizes(options: Mapping[str, Any]) -> list[str]:
    """Describes the sizes of a TCP or a stack that are not defaults."""
    sizes = []
    if (mss := _bytes(options.get("mss", MSS))) != _bytes(MSS):
        sizes.append(f"mss {mss} B")
    if _bytes(window := options.get("receive_window", WINDOW)) != _bytes(WINDOW):
        sizes.append(f"window {_spaced(window)}")
    return sizes


def _variant(tcp: Mapping[str, Any]) -> str:
    """Describes a TCP variant: congestion control, rules and sizes unless they are defaults, recovery, and clock."""
    [(name, options)] = tcp.items()
    control = options.get("congestion", "jacobson")
    by = {"jacobson": "", "formula": " with formulas"}.get(control, f" with {control}")
    rules, sizes = RULES.get(options.get("rules", ""), ""), _sizes(options)
    # Put the facts that affect results most first, because figures truncate long lines.
    details = [
        RECOVERY[name],
        *([rules] if rules else []),
        *sizes,
        f"{_spaced(options.get('timer_granularity', '100ms'))} ticks",
    ]
    if phase := PHASES.get((options.get("timer") or {}).get("tick_phase", "")):
        details.append(phase)
    if rate := options.get("pacing_rate"):
        details.append(f"paced at {_spaced(rate)}")
    if (options.get("windows") or {}).get("pacing") == "window":
        details.append("paced by the window")
    if (options.get("start") or {}).get("hystart") == "on":
        details.append("HyStart++")
    words = f"{name}{by} ({', '.join(details)})"
    # The name implies the method of recovery, so long lines omit the method.
    return words if len(words) <= MOST_WORDS or not (rules or sizes) else f"{name}{by} ({', '.join(details[1:])})"


def _bytes(quantity: str) -> Fraction:
    return QUANTITIES["size"].read(quantity)


def _spaced(quantity: str) -> str:
    """Writes a quantity with a space before its unit: `100 ms`."""
    number = quantity.rstrip("GMTkbitpsmunB/ ")
    return f"{number} {quantity[len(number) :].strip()}"
