"""Compares what the best settings of a search carry with what tail drop carries in the same networks.

An objective such as fairness can be met by a policy that carries next to nothing. A front with such a setting on it gets
a warning at the head of the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from celltrain.drawing.pages.words import valued
from celltrain.ensemble.plan.plan import canonical_with_memory
from celltrain.ensemble.plan_warnings import DELIVERED
from celltrain.errors import ScenarioError
from celltrain.running.work import Chunk, Rows, Task
from celltrain.text import shown

if TYPE_CHECKING:
    from celltrain.ensemble.tuning.plan import Numbers, TunePlan
    from celltrain.running import Worker

#: Seeds with which tail drop is run, of those of confirmation.
MOST_SEEDS = 3
#: A setting that carries less than this share of what tail drop carries gets a warning.
LEAST_SHARE = 0.5


def delivered(plan: TunePlan, worker: Worker, settings: Sequence[Numbers]) -> list[float | None]:
    """Bytes that a run delivers on average under tail drop, by configuration; None if it cannot be run.

    Args:
        plan: The plan of the search.
        worker: Runs the scenarios.
        settings: For each configuration the values of the other parameters, such as those of a TCP.
    """
    seeds = range(plan.confirmation.first, plan.confirmation.first + min(plan.confirmation.count, MOST_SEEDS))
    values: list[dict[int, float]] = [{} for _ in settings]

    def take(rows: Rows) -> None:
        for record in rows.runs:
            if record.values and record.values[0] is not None:
                values[record.point][record.seed] = record.values[0]

    worker.work(_chunks(plan, settings, seeds, worker.chunk_runs), take)
    return [float(np.mean(list(one.values()))) if one else None for one in values]


def _chunks(plan: TunePlan, settings: Sequence[Numbers], seeds: range, most: int) -> Iterator[Chunk]:
    for configuration, numbers in enumerate(settings):
        try:
            text, memory = canonical_with_memory(_under_tail_drop(plan.scenario(configuration, numbers)))
        except ScenarioError:
            # A port that needs its policy, such as one of a GFR service: nothing to compare with.
            continue
        for begin in range(0, len(seeds), max(most, 1)):
            yield Chunk(
                configurations=(text,),
                tasks=tuple(
                    Task(run_key=f"{configuration}/{seed}", point=configuration, seed=seed, configuration=0)
                    for seed in seeds[begin : begin + max(most, 1)]
                ),
                measures=(DELIVERED,),
                limit_s=plan.configurations.limit_s,
                recording=None,
                memory=(memory,),
            )


def _under_tail_drop(scenario: dict[str, Any]) -> dict[str, Any]:
    """The scenario with tail drop at every port that it has a policy for."""
    ports = {
        name: {**port, "policy": {"tail_drop": {}}} if isinstance(port, dict) and "policy" in port else port
        for name, port in scenario.get("port", {}).items()
    }
    return {**scenario, "port": ports}


def warning(plan: TunePlan, title: str, numbers: Numbers, own: float, tail_drop: float) -> str | None:
    """What to say of a setting that delivers `own` bytes where tail drop delivers `tail_drop`."""
    if own >= LEAST_SHARE * tail_drop:
        return None
    setting = ", ".join(
        f"{shown(parameter.name)} = {valued(float(number), parameter.unit)}"
        for parameter, number in zip(plan.parameters, numbers, strict=True)
    )
    where = f"{shown(title)}: " if title else ""
    return (
        f"{where}{setting} is on the front and carries {own / tail_drop:.0%} of what tail drop carries; ignore its "
        "other measures"
    )
