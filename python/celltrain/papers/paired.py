"""Ratios of measured values, paired by seed.

Runs of different policies with the same seed have the same requests, so most of the variation between seeds cancels in
their ratio.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from celltrain.papers.paper import PaperError, Row, Table, Value
from celltrain.papers.score import Scored
from celltrain.running.statistics import half_width


@dataclass(frozen=True)
class Ratio:
    """A geometric mean of ratios, with its 95 % interval.

    Attributes:
        seeds: Number of seeds. With one seed, `low` and `high` are the ratio itself.
    """

    mean: float
    low: float
    high: float
    seeds: int

    def __str__(self) -> str:
        return f"{self.mean:.2f} ({self.low:.2f} to {self.high:.2f})"


def ratio(a: Sequence[Mapping[int, float]], b: Sequence[Mapping[int, float]]) -> Ratio:
    """Returns the ratio of `a` to `b` over the seeds that all rows have; the rows of a side are averaged geometrically.

    The interval is Student's for the mean of the logarithms.

    Args:
        a: Value by seed of each row.
        b: Value by seed of each row to compare with.

    Raises:
        PaperError: If the rows have no seed in common, or a value is not positive.
    """
    common = sorted(set.intersection(*(set(row) for row in (*a, *b))))
    if not common:
        raise PaperError("rows of a ratio have no seed in common")
    if min(row[seed] for row in (*a, *b) for seed in common) <= 0:
        raise PaperError("a ratio needs positive values")
    logs = [np.mean([[math.log(row[seed]) for seed in common] for row in side], axis=0) for side in (a, b)]
    differences = logs[0] - logs[1]
    mean = float(np.mean(differences))
    half = half_width(len(common), float(np.std(differences, ddof=1))) if len(common) > 1 else 0.0
    return Ratio(math.exp(mean), math.exp(mean - half), math.exp(mean + half), len(common))


def against(table: Table, scored: Sequence[Scored]) -> list[tuple[Scored, Ratio]]:
    """Returns the numbers of an experiment with their ratios to the row that its `against` selects.

    Numbers of this row itself are left out, and so are quantities with values that are not positive.
    """
    members = [one for one in scored if one.number.table == table.number] if table.against else []
    without = {one.number.quantity.name for one in members if min(one.values) <= 0}
    members = [one for one in members if one.number.quantity.name not in without]
    rows = {(one.number.quantity.name, _key(one.number.row)): one for one in members}
    found = []
    for one in members:
        base = rows.get((one.number.quantity.name, _key({**one.number.row, **table.against})))
        if base is not None and base is not one and {*one.seeds} & {*base.seeds}:
            found.append((one, ratio([one.by_seed], [base.by_seed])))
    return found


def _key(row: Row) -> tuple[tuple[str, Value], ...]:
    return tuple(sorted(row.items()))
