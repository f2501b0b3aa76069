"""Compares scenarios run with the same seeds: means with intervals, and paired differences.

>>> import celltrain as ct
>>> lan = ct.n_source(sources=3, link_delay="5us", buffer_cells=200, policy=ct.TailDrop(), duration="20ms")
>>> ct.compare(lan, vary={"port.bottleneck.policy": [ct.TailDrop(), ct.Epd(threshold=100)]}, seeds=3)
Compared(tail_drop, epd: 3 seeds)

`docs/design/compare.md` has the design.
"""

from __future__ import annotations

from celltrain.ensemble.comparing.compared import Compared
from celltrain.ensemble.comparing.run import compare

__all__ = ["Compared", "compare"]
