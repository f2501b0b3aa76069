"""What is to be run: a scenario, what is varied in it, and how often each setting is repeated.

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

from celltrain.ensemble.plan.axis import Axis, Interval
from celltrain.ensemble.plan.contents import MAX_RUNS, Point, Seeds, Until
from celltrain.ensemble.plan.plan import Plan, canonical, run_key
from celltrain.model.paths import Key, UnknownKeyError, follow
from celltrain.running import Recording

__all__ = [
    "MAX_RUNS",
    "Axis",
    "Interval",
    "Key",
    "Plan",
    "Point",
    "Recording",
    "Seeds",
    "UnknownKeyError",
    "Until",
    "canonical",
    "follow",
    "run_key",
]
