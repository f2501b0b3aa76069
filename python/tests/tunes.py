"""A short search for tests."""

from __future__ import annotations

from celltrain.ensemble.tuning import TunePlan

PLAN = """
name = "tiny"
[scenario]
duration = "4ms"
[scenario.topology.n_source]
sources = 3
link_delay = "5us"
[scenario.port.bottleneck]
buffer = 100
policy = { selective_drop = {} }
[axes]
buffer = { path = "port.bottleneck.buffer", values = [60, 100] }
[tune]
objectives = { efficiency = "maximize", "cells.lost" = "minimize" }
trials = 10
batch = 4
finalists = 3
[tune.parameters]
R = { path = "port.bottleneck.policy.selective_drop.threshold", from = 0.3, to = 1.0 }
Z = { path = "port.bottleneck.policy.selective_drop.z", from = 0.2, to = 2.0, step = 0.05 }
[tune.references]
"the paper's" = { R = 0.9, Z = 0.8 }
[tune.seeds]
search = 2
selection = 3
confirmation = 5
"""


def plan(text=PLAN):
    return TunePlan.of_toml(text)
