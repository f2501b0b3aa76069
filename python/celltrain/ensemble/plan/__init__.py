"""Plans of sweeps: a scenario, the axes that vary it, and the seeds of each point.

>>> import celltrain as ct
>>> from celltrain.ensemble.plan import Plan
>>> plan = Plan.of_toml('''
... scenario = "lan-selective-drop"
... seeds = 3
... [axes]
... buffer = { path = "port.bottleneck.buffer", from = 1000, to = 3000, step = 1000 }
... policy = { path = "port.bottleneck.policy", values = { epd = { epd = { threshold = 800 } }, fba = { fba = {} } } }
... ''')
>>> len(plan.points), plan.runs
(6, 18)
>>> plan.points[3].values
{'buffer': 2000.0, 'policy': 'fba'}

`docs/sweeps.md` describes the form.
"""

from __future__ import annotations

from celltrain.ensemble.plan.axes import MAX_RUNS, Axis, Point, Seeds, Until
from celltrain.ensemble.plan.plan import Plan, canonical, run_key
from celltrain.model.paths import Key, follow

__all__ = ["MAX_RUNS", "Axis", "Key", "Plan", "Point", "Seeds", "Until", "canonical", "follow", "run_key"]
