"""Searches a policy's parameters for the Pareto front of two measures, over ensembles of seeds.

>>> import celltrain as ct
>>> lan = ct.n_source(sources=3, link_delay="5us", buffer_cells=200, policy=ct.SelectiveDrop(), duration="10ms")
>>> z = {"path": "port.bottleneck.policy.selective_drop.z", "from": 0.5, "to": 1.5}
>>> tuned = ct.tune(
...     lan,
...     parameters={"Z": z},
...     references={"the paper's": {"Z": 0.8}},
...     trials=8,
...     seeds={"search": 2, "selection": 2, "confirmation": 4},
... )
>>> [left.reference for left in tuned.searches[0].left]
["the paper's", "the paper's"]

`docs/tuning.md` describes the plan, the stages and the answer.
"""

from __future__ import annotations

from celltrain.ensemble.tuning.plan import TunePlan
from celltrain.ensemble.tuning.result import Estimate, Tuned
from celltrain.ensemble.tuning.search import TuneProgress, run_tune, tune

__all__ = ["Estimate", "TunePlan", "TuneProgress", "Tuned", "run_tune", "tune"]
