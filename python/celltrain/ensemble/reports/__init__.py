"""Reports on stores: means with their intervals, main effects, maps, the Pareto front, and changes since another store.

>>> import celltrain as ct
>>> lan = ct.n_source(sources=3, link_delay="5us", buffer_cells=200, policy=ct.Epd(threshold=100), duration="20ms")
>>> store = ct.sweep(lan, over={"port.bottleneck.buffer": [150, 200]}, seeds=3)
>>> ct.report(store)
Report('', 2 points, 8 measures)

`docs/reports.md` describes the page, its figures and its tables.
"""

from __future__ import annotations

from celltrain.ensemble.reports.make import Report, report

__all__ = ["Report", "report"]
