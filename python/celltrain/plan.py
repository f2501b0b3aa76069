"""Deprecated: use `celltrain.Plan`. For other names, use `celltrain.ensemble.plan`."""

from __future__ import annotations

from celltrain.ensemble.plan import MAX_RUNS, Axis, Key, Plan, Point, Seeds, Until, canonical, follow, run_key
from celltrain.errors import warn

__all__ = ["MAX_RUNS", "Axis", "Key", "Plan", "Point", "Seeds", "Until", "canonical", "follow", "run_key"]

warn(["celltrain.plan is deprecated: use celltrain.Plan"])
