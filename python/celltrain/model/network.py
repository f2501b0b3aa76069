"""The network of a scenario: its nodes, links and flows, and their fair shares."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from celltrain import _core
from celltrain.errors import ScenarioError, warn
from celltrain.model.arguments import checked
from celltrain.model.cancel import Cancel, current, endable
from celltrain.model.scenario import read

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
    """The links it crosses, as indices into the list of links."""
    max_min_mbps: float
    """Its max-min fair goodput."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """The network the engines run."""

    name: str
    """The scenario's."""
    nodes: tuple[Node, ...]
    links: tuple[OneWayLink, ...]
    """The links in pairs, one for each direction."""
    flows: tuple[Route, ...]
    bottleneck: int
    """The link to which `efficiency` refers, as an index into the list of links."""

    @classmethod
    def of_core(cls, scenario: _core.Scenario) -> Network:
        """Reads the network of a valid scenario; raises `ScenarioError` if it does not fit into free memory."""
        try:
            answer = json.loads(scenario.network(current()))
        except ValueError as error:
            raise ScenarioError.of_refusal(error) from None
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
        return {
            "nodes": len(self.nodes),
            "links": len(self.links) // 2,
            "bottleneck": self.links[self.bottleneck].name,
            "flows": [
                {
                    "name": flow.name,
                    "links": [self.links[link].name for link in flow.links],
                    "max_min_mbps": flow.max_min_mbps,
                }
                for flow in self.flows
            ],
        }


@checked(ScenarioError)
def network(scenario: Scenario | str | os.PathLike[str]) -> Network:
    """Returns the network of a scenario; raises `ScenarioError` with all faults."""
    reading = read(scenario)
    accepted = reading.accepted()
    warn(reading.warnings)
    return Network.of_core(accepted)


@checked(ScenarioError)
@endable
def max_min_shares(scenario: Scenario | str | os.PathLike[str], *, cancel: Cancel | None = None) -> dict[str, float]:
    """Returns the max-min fair goodput of each flow in megabits per second.

    No flow can gain rate without taking it from a flow with an equal or smaller rate. Shares count application data
    only; traffic without TCP needs at most its mean rate. A share is the most that the flow's application can receive
    over its part of the link; `efficiency` divides by it.

    Args:
        scenario: A scenario, the path of a TOML file, or the name of a shipped one.
        cancel: A handle that cancels the call from another thread; see `celltrain.Cancel`.

    Raises:
        ScenarioError: With every fault of the scenario.
        CancelledError: When `cancel` ended it.

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
