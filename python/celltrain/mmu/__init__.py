"""Thresholds of switches whose ports share their packet memory, in cells, from the switch's buffer configuration.

`thresholds` calculates them, `check` compares them with a test file, `load` reads a configuration, and `incast` simulates
senders that send to one port at once.
"""

from __future__ import annotations

from celltrain.mmu.arithmetic import Thresholds, thresholds
from celltrain.mmu.configuration import load
from celltrain.mmu.expected import Checked, check
from celltrain.mmu.incast import Incast, incast

__all__ = ["Checked", "Incast", "Thresholds", "check", "incast", "load", "thresholds"]
