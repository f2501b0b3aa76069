"""Running a plan into a store, on this machine or on many.

The package can be called, as `celltrain.sweep(...)`:

>>> import celltrain as ct
>>> lan = ct.n_source(sources=3, link_delay="5us", buffer_cells=200, policy=ct.SelectiveDrop(), duration="20ms")
>>> store = ct.sweep(lan, over={"port.bottleneck.policy.selective_drop.z": [0.5, 0.8, 1.1]}, seeds=4)
>>> store.summary(["fairness"])["n"].to_pylist()
[4, 4, 4]
"""

from __future__ import annotations

import inspect
import sys
from types import ModuleType

from celltrain.sweep.coordinator import Coordinator, Progress
from celltrain.sweep.estimate import Estimate, estimate
from celltrain.sweep.local import Local
from celltrain.sweep.run import run_plan, sweep
from celltrain.sweep.work import Chunk, Rows, Task, Worker, run_chunk

__all__ = [
    "Chunk",
    "Coordinator",
    "Estimate",
    "Local",
    "Progress",
    "Rows",
    "Task",
    "Worker",
    "estimate",
    "run_chunk",
    "run_plan",
    "sweep",
]


class _CallableModule(ModuleType):
    __call__ = staticmethod(sweep)


sys.modules[__name__].__class__ = _CallableModule
# What help() and editors show for the call.
__signature__ = inspect.signature(sweep)
