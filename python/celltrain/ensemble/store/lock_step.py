"""Which points of a store may hinge on lock-step; what the question is, `celltrain.ensemble.lockstep` says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from celltrain.ensemble.lockstep import LEAST, TIMEOUTS, Hinge, hinge
from celltrain.errors import CelltrainError

if TYPE_CHECKING:
    from celltrain.ensemble.store.store import Store

#: Points that are judged: those in which a flow has least. Each takes about a millisecond.
MOST_JUDGED = 1000
#: Runs of a store that is judged: of more the rows would take much memory.
MOST_RUNS = 1_000_000


def hinging(store: Store) -> dict[int, Hinge]:
    """The points of a store, by number, whose results may hinge on lock-step.

    Empty where least goodput and timeouts of the flows were not measured, or where this celltrain cannot read the plan of
    another version, or where there are more than a million runs. Of more than a thousand points those are judged in which a
    flow has least.
    """
    measured = {measure.name for measure in store.measures}
    if not {LEAST, TIMEOUTS} <= measured:
        return {}
    try:
        points = store.plan.points
    except CelltrainError:
        return {}
    if store.plan.runs > MOST_RUNS:
        return {}
    runs = _runs(store)
    order = sorted(runs, key=lambda point: min(least for least, _ in runs[point].values()))[:MOST_JUDGED]
    found = {point: hinge(points[point].scenario, runs[point]) for point in order}
    return {point: what for point, what in sorted(found.items()) if what is not None}


def _runs(store: Store) -> dict[int, dict[int, tuple[float, float]]]:
    """By point and seed the least goodput and the timeouts; of points without any timeout nothing."""
    names, every = store.manifest["measures"], store.runs()
    least, timeouts = (every.values[:, names.index(name)] for name in (LEAST, TIMEOUTS))
    known = ~np.isnan(least) & ~np.isnan(timeouts)
    lost = np.unique(every.point[known & (timeouts > 0)])
    runs: dict[int, dict[int, tuple[float, float]]] = {}
    for place in np.flatnonzero(known & np.isin(every.point, lost)).tolist():
        pair = float(least[place]), float(timeouts[place])
        runs.setdefault(int(every.point[place]), {})[int(every.seed[place])] = pair
    return runs


def warnings(store: Store) -> list[str]:
    """What to say of them at the end of a sweep, and in a report: one sentence for all, or none."""
    found = hinging(store)
    if not found:
        return []
    plan = store.plan
    first, what = next(iter(found.items()))
    setting = ", ".join(
        f"{axis.name} {value}" for axis, value in zip(plan.axes, plan.points.values(first), strict=True)
    )
    where = f"at point {first} ({setting}), the first of them, " if setting else ""
    return [f"{len(found):,} of {len(plan.points):,} points may hinge on lock-step: {where}{what}"]
