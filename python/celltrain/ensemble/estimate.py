"""Estimates the number of runs of a plan, their time and their size on the disk."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from celltrain.ensemble.cases import trial_run
from celltrain.ensemble.plan import Plan, canonical, run_key
from celltrain.ensemble.store import Store
from celltrain.ensemble.store.database import size
from celltrain.ensemble.store.store import DATABASE
from celltrain.errors import ScenarioError
from celltrain.running import RunRecord

#: Seconds a probe may take; the time of an unfinished probe follows from the share that is done.
PROBE_SECONDS = 2.0
#: Points that are probed, spread over the plan.
PROBES = 5
#: Rows that are written to measure their size on the disk.
WRITTEN = 512


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The cost of a sweep, before it is started.

    Attributes:
        points: Points of the plan.
        runs: All runs; with `until`, the most there can be.
        least_runs: The least runs there can be.
        probes: Runs that the estimate is based on; 0 if none could be made.
        seconds_per_run: Time of a run on one core.
        seconds: Time of all runs on all threads.
        bytes_per_run: Bytes that a run takes on the disk.
        bytes: Bytes of all runs.
    """

    points: int
    runs: int
    least_runs: int
    probes: int
    seconds_per_run: float
    seconds: float
    bytes_per_run: float
    bytes: float


def estimate(plan: Plan, threads: int) -> Estimate:
    """Runs a few points, or their beginning, and extrapolates."""
    count = len(plan.points)
    chosen = (
        sorted({count * i // PROBES + count // (2 * PROBES) for i in range(PROBES)}) if count > PROBES else range(count)
    )
    seconds, texts = [], []
    for index in chosen:
        try:
            text = canonical(plan.points[index].scenario)
        except ScenarioError:
            continue
        seconds.append(trial_run(text, plan.seeds.first, PROBE_SECONDS)[1])
        texts.append(text)
    each = sum(seconds) / len(seconds) if seconds else 0.0
    size = _bytes_per_run(plan, texts) if texts else 0.0
    least = count * (plan.seeds.count if plan.seeds.until is None else plan.seeds.until.at_least)
    return Estimate(
        points=count,
        runs=plan.runs,
        least_runs=least,
        probes=len(seconds),
        seconds_per_run=each,
        seconds=each * plan.runs / min(threads, max(plan.runs, 1)),
        bytes_per_run=size,
        bytes=size * plan.runs,
    )


def _bytes_per_run(plan: Plan, texts: list[str]) -> float:
    """Returns the bytes of a run on the disk without series, measured with made-up values in a temporary store."""
    rows = []
    for seed in range(min(plan.runs, WRITTEN)):
        key = run_key(texts[0], seed)
        values = tuple(int(key[j % 18 : j % 18 + 6], 16) / 1e6 for j in range(len(plan.measures)))
        record = RunRecord(point=0, seed=seed, run_key=key, configuration="{}", values=values, fingerprint=key[:16])
        rows.append(replace(record, seconds=0.1))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store"
        with Store.create(path, plan) as store:
            empty = size(path / DATABASE)
            store.write(rows)
        each = (size(path / DATABASE) - empty) / len(rows)
    case = sum(map(len, texts)) / len(texts)
    return each + case * len(plan.points) / plan.runs
