"""How many runs a plan has, and about how long they take and how much they leave on the disk."""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from celltrain import _core
from celltrain.ensemble.plan import Plan, canonical, run_key
from celltrain.errors import ScenarioError
from celltrain.model.cancel import current
from celltrain.running import RunRecord

#: Seconds a probe may take; the time of an unfinished probe follows from the share that is done.
PROBE_SECONDS = 2.0
#: Points that are probed, spread over the plan.
PROBES = 5
#: Rows that are written to see how much a run leaves on the disk.
WRITTEN = 512


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Of a sweep, before it is begun."""

    points: int
    runs: int
    """With `until`, the most there can be."""
    least_runs: int
    probes: int
    """Runs it goes by; none could be made where this is 0."""
    seconds_per_run: float
    """Of one core."""
    seconds: float
    """On all threads, with the most runs there can be."""
    bytes_per_run: float
    bytes: float


class _Enough(Exception):  # noqa: N818, no error
    """A probe has taken long enough."""


def estimate(plan: Plan, threads: int) -> Estimate:
    """Runs a few points, or the beginning of them, and works out the rest."""
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
        seconds.append(_probe(text, plan.seeds.first))
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


def _probe(text: str, seed: int) -> float:
    """Seconds a run takes."""
    begun, share = time.monotonic(), 0.0

    def enough(done: float) -> None:
        nonlocal share
        share = done
        if share > 0 and time.monotonic() - begun > PROBE_SECONDS:
            raise _Enough

    try:
        answer, _ = _core.Scenario(text).run(seed, on_progress=enough, cancel=current())
    except _Enough:
        return (time.monotonic() - begun) / share
    return float(json.loads(answer)["timing"]["engine_seconds"])


def _bytes_per_run(plan: Plan, texts: list[str]) -> float:
    """Bytes that a run takes on the disk, series not counted: runs with made-up values are written to a temporary store."""
    from celltrain.ensemble.store import Store
    from celltrain.ensemble.store.database import size
    from celltrain.ensemble.store.layout import DATABASE

    rows = []
    for i in range(min(plan.runs, WRITTEN)):
        key = run_key(texts[0], i)
        values = tuple(int(key[j % 18 : j % 18 + 6], 16) / 1e6 for j in range(len(plan.measures)))
        rows.append(
            RunRecord(
                point=0, seed=i, run_key=key, configuration="{}", values=values, fingerprint=key[:16], seconds=0.1
            )
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store"
        with Store.create(path, plan) as store:
            empty = size(path / DATABASE)
            store.write(rows)
        each = (size(path / DATABASE) - empty) / len(rows)
    case = sum(map(len, texts)) / len(texts)
    return each + case * len(plan.points) / plan.runs
