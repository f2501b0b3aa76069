"""Which points of a store may hinge on lock-step; what the question is, `celltrain.lockstep` says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from celltrain.errors import CelltrainError
from celltrain.lockstep import LEAST, TIMEOUTS, Hinge, hinge

if TYPE_CHECKING:
    from celltrain.store.store import Store

#: Points that are judged: those in which a flow has least. Each takes about a millisecond.
MOST_JUDGED = 1000


def hinging(store: Store) -> dict[int, Hinge]:
    """The points of a store, by number, whose results may hinge on lock-step.

    None where least goodput and timeouts of the flows were not measured, or where this celltrain cannot read the plan of
    another version. Of more than a thousand points those are judged in which a flow has least.
    """
    measured = {measure.name for measure in store.measures}
    if not {LEAST, TIMEOUTS} <= measured:
        return {}
    try:
        points = store.plan.points
    except CelltrainError:
        return {}
    runs: dict[int, dict[int, tuple[float, float]]] = {}
    for row in store.wide([LEAST, TIMEOUTS]).select(["point", "seed", LEAST, TIMEOUTS]).to_pylist():
        if row[LEAST] is not None and row[TIMEOUTS] is not None:
            runs.setdefault(row["point"], {})[row["seed"]] = (row[LEAST], row[TIMEOUTS])
    order = sorted(runs, key=lambda point: min(least for least, _ in runs[point].values()))[:MOST_JUDGED]
    found = {point: hinge(points[point].scenario, runs[point]) for point in order}
    return {point: what for point, what in sorted(found.items()) if what is not None}


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
