"""Thresholds of switches whose ports share their packet memory, in cells, from the switch's buffer configuration.

`thresholds` calculates them, `check` compares them with a test file, `load` reads a configuration.
"""

from __future__ import annotations

from celltrain.mmu.arithmetic import Thresholds, thresholds
from celltrain.mmu.configuration import load
from celltrain.mmu.expected import Checked, check

__all__ = ["Checked", "Thresholds", "check", "load", "thresholds"]
