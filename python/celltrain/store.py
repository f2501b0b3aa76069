"""Deprecated: use `celltrain.Store`, or `celltrain.ensemble.store` for other names."""

from __future__ import annotations

from celltrain.ensemble.store import FORMAT, Measured, RunRecord, Store, measured
from celltrain.errors import warn

__all__ = ["FORMAT", "Measured", "RunRecord", "Store", "measured"]

warn(["celltrain.store is deprecated: use celltrain.Store"])
