"""Runs a plan into a store: missing runs are handed to workers, and their rows are written part by part."""

from __future__ import annotations

from celltrain.ensemble.coordination.coordinator import Coordinator, Progress
from celltrain.ensemble.coordination.estimate import Estimate, estimate
from celltrain.ensemble.coordination.run import run_plan

__all__ = ["Coordinator", "Estimate", "Progress", "estimate", "run_plan"]
