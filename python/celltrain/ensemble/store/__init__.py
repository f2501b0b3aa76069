"""The store of a sweep: a SQLite file with its plan and its runs.

>>> import celltrain as ct
>>> lan = ct.n_source(sources=3, link_delay="5us", buffer_cells=100, policy=ct.TailDrop(), duration="20ms")
>>> store = ct.sweep(lan, over={"port.bottleneck.buffer": [100, 200]}, seeds=3)
>>> store.table().num_rows
48
>>> store.summary(["efficiency"]).column_names
['point', 'port.bottleneck.buffer', 'measure', 'n', 'mean', 'sd', 'low', 'high']

`docs/sweeps.md` describes its tables, and how to query them in SQL.
"""

from __future__ import annotations

from celltrain.ensemble.store.store import FORMAT, Store
from celltrain.ensemble.table import Measured, measured
from celltrain.running import RunRecord

__all__ = ["FORMAT", "Measured", "RunRecord", "Store", "measured"]
