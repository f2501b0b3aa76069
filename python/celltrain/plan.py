"""Deprecated: use `celltrain.Plan`, or `celltrain.ensemble.plan` for other names."""

from __future__ import annotations

from celltrain.ensemble.plan import MAX_RUNS, Axis, Key, Plan, Point, Seeds, Until, canonical, follow, run_key
from celltrain.errors import warn

__all__ = ["MAX_RUNS", "Axis", "Key", "Plan", "Point", "Seeds", "Until", "canonical", "follow", "run_key"]

warn(["celltrain.plan is deprecated: use celltrain.Plan"])
