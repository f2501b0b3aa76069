"""Findings of a report as tables: means, fronts, main effects, differences, and changes since another store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from celltrain.ensemble import plan_warnings
from celltrain.ensemble.cases import CENSORED, SUMMARY, Measured, arrow, by_measure, number, texts
from celltrain.ensemble.reports.analysis import Baseline, Front, Layout, StoreComparison, layout
from celltrain.ensemble.reports.data import Data
from celltrain.running.statistics import Means
from celltrain.running.tables import Column

if TYPE_CHECKING:
    import pyarrow as pa

#: Columns of several tables.
POINT = Column("point", "int32", "1", "index of the point in the plan")
MEASURE = Column("measure", "name", "", "name of the measure")
EFFECTS = (
    Column("measure", "string", "", "name of the measure"),
    Column("axis", "string", "", "axis"),
    Column("value", "string", "see the axis", "value of the axis; for a sampled axis the middle of its range"),
    Column("shown", "string", "", "value with its unit, for display"),
    Column("n", "int64", "1", "number of independent values behind the interval: seeds, or draws of a sample"),
    Column("mean", "float64", "", "mean over all other axes, in the unit of the measure"),
    Column("low", "float64", "", "lower end of the mean's 95 % interval"),
    Column("high", "float64", "", "its upper end"),
    Column("share", "float64", "1", "share of the variance between points explained by the axis"),
)
#: Columns of the differences from the baseline, by statistic.
DIFFERENCES = {
    "n": Column("n", "int64", "1", "number of pairs of runs with equal seeds"),
    "mean": Column("difference", "float64", "", "mean excess of the point over the baseline"),
    "low": Column("low", "float64", "", "lower end of the mean's 95 % interval"),
    "high": Column("high", "float64", "", "its upper end"),
}
#: Columns of the differences between two stores, by attribute of `Moved`.
MOVED = {
    "first.n": Column("n_first", "int64", "1", "values in the first store"),
    "first.mean": Column("mean_first", "float64", "", "their mean"),
    "second.n": Column("n_second", "int64", "1", "values in the second store"),
    "second.mean": Column("mean_second", "float64", "", "their mean"),
    "differences.mean": Column("difference", "float64", "", "mean in the second store minus mean in the first"),
    "differences.half": Column("half", "float64", "", "half the 95 % interval of the difference; null if undefined"),
    "differences.beyond": Column("beyond", "bool", "1", "true if the interval excludes zero"),
    "interval": Column(
        "interval", "string", "", "method of comparison: paired by seed, or Welch's if the seeds differ"
    ),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Findings:
    """All results of a report on a store.

    Attributes:
        data: Runs of the store.
        trade_off: Pareto fronts of two measures; None if there are none.
        comparison: Differences from another store.
        layout: Axes of the line plots; None if there are none.
        baseline: Differences from a baseline value of an axis, paired by seed; None without a baseline.
        style: Name or file of a matplotlib style; celltrain's own when None.
        warnings: Reasons to doubt the means, such as axes that changed nothing.
        little: Numbers of the points that carry much less traffic than others.
    """

    data: Data
    trade_off: Front | None
    comparison: StoreComparison | None
    layout: Layout | None
    baseline: Baseline | None
    style: str | None
    warnings: tuple[str, ...]
    little: frozenset[int]

    @property
    def layout_against(self) -> Layout | None:
        """Axes of the plots of differences from the baseline."""
        if self.baseline is None:
            return None
        axis = self.baseline.axis
        return layout(self.data, None, axis) or Layout(over=axis)

    @property
    def front_caution(self) -> str:
        """A warning if points on the front deliver much less data than other points. Otherwise empty."""
        front = self.trade_off
        count = 0 if front is None else int(np.isin(self.data.points[front.order], list(self.little)).sum())
        if not count:
            return ""
        carry, their = ("carries", "its") if count == 1 else ("carry", "their")
        best = f"{plan_warnings.percent(plan_warnings.LITTLE)} of the goodput of the best policy"
        return f"{count:,} of them {carry} less than {best}: ignore {their} other measures."

    @cached_property
    def summary(self) -> pa.Table:
        """One row for each point and measure: mean, standard deviation, numbers of values and of bounds, 95 % interval."""
        bounds = (CENSORED, self.data.bounds.reshape(-1))
        return self._by_measure(np.arange(len(self.data.points)), self.data.means, SUMMARY, bounds)

    @cached_property
    def front(self) -> pa.Table:
        """Points of each configuration's Pareto front, from the best in its first measure; no rows without a front."""
        data, front = self.data, self.trade_off
        if front is None:
            return arrow(self._settings(np.array([], np.int64)))
        columns = self._settings(front.order)
        for i in front.measures:
            measure, means = data.measures[i], data.means[i].of(front.order)
            columns += [
                (measure, means.mean),
                (
                    Column(f"{measure.name}.low", "float64", measure.unit, "lower end of the mean's 95 % interval"),
                    means.low,
                ),
                (Column(f"{measure.name}.high", "float64", measure.unit, "its upper end"), means.high),
            ]
        return arrow(columns)

    @cached_property
    def effects(self) -> pa.Table:
        """One row for each measure, axis and value: the mean over all other axes, and its 95 % interval."""
        rows = []
        for effect in (effect for of_measure in self.data.effects for effect in of_measure):
            names, means = (effect.measure.name, effect.axis.name), effect.means
            for level in range(len(effect.places)):
                numbers = [number(values[level]) for values in (means.mean, means.low, means.high)]
                value = (effect.text(level), effect.text(level, unit=True))
                rows.append((*names, *value, int(means.n[level]), *numbers, effect.share))
        return arrow((column, [row[place] for row in rows]) for place, column in enumerate(EFFECTS))

    @cached_property
    def moved(self) -> pa.Table:
        """One row for each measure and point in both stores: means and difference; no rows without a comparison."""
        compared = self.comparison
        measures = () if compared is None else compared.measures
        points = np.array([], np.int64) if compared is None else compared.points
        names = texts(np.repeat(np.arange(len(measures)), len(points)), [moved.measure.name for moved in measures])
        settings = self._settings(np.tile(points, len(measures)))
        values = [
            (column, [value for moved in measures for value in attrgetter(path)(moved).tolist()])
            for path, column in MOVED.items()
        ]
        return arrow([*settings, (MEASURE, names), *values])

    @cached_property
    def differences(self) -> pa.Table:
        """One row for each point and measure: its difference from the baseline; no rows without a baseline."""
        against = self.baseline
        if against is None:
            return self._by_measure(np.array([], np.int64), self.data.means, DIFFERENCES)
        points = np.flatnonzero(against.axis.levels != against.level)
        return self._by_measure(points, against.of_points, DIFFERENCES)

    @cached_property
    def failures(self) -> pa.Table:
        """Runs without values, each with its error."""
        failures = self.data.failures
        return arrow(
            [
                *self._settings(np.array([failure.point for failure in failures], np.int64)),
                (Column("seed", "uint64", "1", "seed of the run"), [failure.seed for failure in failures]),
                (
                    Column("error", "string", "", "reason for which the run has no values"),
                    [failure.error for failure in failures],
                ),
            ]
        )

    def tables(self) -> dict[str, pa.Table]:
        """Returns the tables to write, by file name."""
        tables = {"summary": self.summary, "effects": self.effects}
        if self.trade_off is not None:
            tables["front"] = self.front
        if self.baseline is not None:
            tables["baseline"] = self.differences
        if self.comparison is not None:
            tables["comparison"] = self.moved
        if self.data.failures:
            tables["failures"] = self.failures
        return tables

    def to_dict(self) -> dict[str, Any]:
        """Returns the answer of `celltrain report --json`, without the means of all points, which `summary` has."""
        data = self.data
        fewest, most = data.seeds
        counts = {
            "points": len(data.points),
            "runs": data.runs,
            "missing": data.missing,
            "failures": len(data.failures),
        }
        return {
            **{name: getattr(data, name) for name in ("name", "version", "profile")},
            **counts,
            "warnings": list(self.warnings),
            "seeds": {"fewest": fewest, "most": most},
            "axes": [
                {"name": axis.name, "unit": axis.unit, "values": len(axis.values), "sampled": axis.sampled}
                for axis in data.axes
            ],
            "measures": [{"name": one.name, "unit": one.unit, "meaning": one.meaning} for one in data.measures],
            "effects": self.effects.to_pylist(),
            "front": None if self.trade_off is None else self._front(self.trade_off),
            "baseline": None if self.baseline is None else _baseline(self.baseline),
            "comparison": None if self.comparison is None else _comparison(self.comparison),
        }

    def to_pandas(self) -> Any:
        """Returns `summary` as a pandas DataFrame; needs `pip install celltrain[frames]`."""
        return self.summary.to_pandas()

    def _front(self, front: Front) -> dict[str, Any]:
        return {
            "measures": [self.data.measures[i].name for i in front.measures],
            "larger_is_better": list(front.larger),
            "by": [name for axis in front.axes for name in axis.names],
            "points": self.front.to_pylist(),
            "doubtful": self.data.points[front.doubtful].tolist(),
        }

    def _by_measure(
        self, points: Any, means: Sequence[Means], columns: Mapping[str, Column], *more: tuple[Column, Any]
    ) -> pa.Table:
        """Returns a table with a row for each point and measure."""
        names = [measure.name for measure in self.data.measures]
        measures = texts(np.tile(np.arange(len(means)), len(points)), names)
        settings = self._settings(np.repeat(points, len(means)))
        return arrow([*settings, (MEASURE, measures), *by_measure(columns, means, points), *more])

    def _settings(self, points: Any) -> list[tuple[Measured, Any]]:
        """Returns the columns that identify points: the number, and the value on each axis."""
        columns: list[tuple[Measured, Any]] = [(POINT, self.data.points[points])]
        for axis in self.data.axes:
            levels = axis.levels[points]
            values = texts(levels, axis.values) if axis.words else axis.places[levels]
            columns.append((Column(axis.name, "name" if axis.words else "float64", axis.unit, axis.meaning), values))
        return columns


def _baseline(baseline: Baseline) -> dict[str, Any]:
    """Counts, for each value of the axis, the points significantly above and below the baseline."""
    measures, axis = baseline.data.measures, baseline.axis
    counts = [
        {"measure": measures[i].name, "value": axis.label(level), "above": above, "below": below, "points": known}
        for i, level, above, below, known in baseline.counts()
    ]
    return {"axis": axis.name, "value": baseline.name, "counts": counts}


def _comparison(compared: StoreComparison) -> dict[str, Any]:
    return {
        "first": compared.first,
        "second": compared.second,
        "points": len(compared.points),
        "only_first": list(compared.only_first),
        "only_second": list(compared.only_second),
        "measures": [
            {
                "name": moved.measure.name,
                "beyond": moved.beyond,
                "paired": int(moved.paired.sum()),
                "moved": [
                    {
                        "point": int(compared.data.points[compared.points[i]]),
                        "where": compared.data.named(int(compared.points[i])),
                        "first": number(moved.first.mean[i]),
                        "second": number(moved.second.mean[i]),
                        "difference": number(moved.differences.mean[i]),
                        "half": number(moved.differences.half[i]),
                        "interval": str(moved.interval[i]),
                    }
                    for i in np.flatnonzero(moved.differences.beyond).tolist()
                ],
            }
            for moved in compared.measures
        ],
    }
