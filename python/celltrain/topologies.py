"""Networks: `ct.topologies.Chain(...)`, or any graph with `ct.topologies.GeneralNetwork(...)`."""

from __future__ import annotations

from celltrain.model.types import (
    Chain,
    Flow,
    GeneralNetwork,
    Internetwork,
    Link,
    NSource,
    Star,
    StarPattern,
    Topology,
    VcMerge,
)

__all__ = [
    "Chain",
    "Flow",
    "GeneralNetwork",
    "Internetwork",
    "Link",
    "NSource",
    "Star",
    "StarPattern",
    "Topology",
    "VcMerge",
]
