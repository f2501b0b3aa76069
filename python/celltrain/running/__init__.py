"""Running: chunks of runs on the threads of this machine, in processes of their own, or on a cluster.

A `Worker` runs chunks. It knows neither plans nor stores: it takes canonical scenarios, seeds and measures, and returns rows.
Sweeps, comparisons, searches and reproductions all run on workers.
"""

from __future__ import annotations

from celltrain.model.arguments import cores
from celltrain.running.runner import Local, worker_of
from celltrain.running.subprocess_runner import run_chunk
from celltrain.running.work import Chunk, Recording, Rows, RunRecord, Task, Worker

__all__ = ["Chunk", "Local", "Recording", "Rows", "RunRecord", "Task", "Worker", "cores", "run_chunk", "worker_of"]
