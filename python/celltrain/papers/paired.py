"""Ratios of measured values, paired by seed.

Runs of different policies with the same seed have the same requests, so most of the variation between seeds cancels in
the ratio of their values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from celltrain.papers.paper import PaperError, Row, Table, Value, grouped
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
        raise PaperError("the rows of a ratio have no seed in common")
    if min(row[seed] for row in (*a, *b) for seed in common) <= 0:
        raise PaperError("a ratio needs positive values")
    logs = [np.mean([[math.log(row[seed]) for seed in common] for row in side], axis=0) for side in (a, b)]
    differences = logs[0] - logs[1]
    mean = float(np.mean(differences))
    half = half_width(len(common), float(np.std(differences, ddof=1))) if len(common) > 1 else 0.0
    return Ratio(math.exp(mean), math.exp(mean - half), math.exp(mean + half), len(common))


@dataclass(frozen=True, kw_only=True)
class PairedRatio:
    """A ratio between a row of an experiment and the row that its `against` selects.

    Attributes:
        row: Values of the keys, without that of `across` if the ratio is for all its values together.
    """

    table: str
    row: Row
    quantity: str
    ratio: Ratio

    def to_dict(self) -> dict[str, Any]:
        """Returns the ratio as `celltrain study --json` prints it."""
        return {"table": self.table, "row": self.row, "quantity": self.quantity, **asdict(self.ratio)}


def against(table: Table, scored: Sequence[Scored]) -> list[PairedRatio]:
    """Returns the ratios of an experiment to the row that its `against` selects, row by row and for all columns.

    The row itself is left out, and so are quantities with values that are not positive.
    """
    members = [one for one in scored if one.number.table == table.number] if table.against else []
    without = {one.number.quantity.name for one in members if min(one.values) <= 0}
    members = [one for one in members if one.number.quantity.name not in without]
    rows = {(one.number.quantity.name, _key(one.number.row)): one.by_seed for one in members}
    pairs = []
    for one in members:
        name, row = one.number.quantity.name, one.number.row
        base = rows.get((name, _key({**row, **table.against})))
        if base is not None and base is not rows[name, _key(row)] and {*one.by_seed} & {*base}:
            pairs.append((name, row, one.by_seed, base))
    found = [
        PairedRatio(table=table.number, row=row, quantity=name, ratio=ratio([a], [b])) for name, row, a, b in pairs
    ]
    if table.across is None or table.across in table.against:
        return found
    together = grouped(pairs, lambda pair: (pair[0], _key({k: v for k, v in pair[1].items() if k != table.across})))
    for (name, key), some in together.items():
        if set.intersection(*({*a} & {*b} for _, _, a, b in some)):
            pooled = ratio([a for _, _, a, _ in some], [b for _, _, _, b in some])
            found.append(PairedRatio(table=table.number, row=dict(key), quantity=name, ratio=pooled))
    return found


def _key(row: Row) -> tuple[tuple[str, Value], ...]:
    return tuple(sorted(row.items()))
