"""Findings of a report as tables: means, fronts, main effects, differences, and changes since another store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from celltrain.ensemble import plan_warnings
from celltrain.ensemble.reports.analysis import Analysis, Layout, layout, named
from celltrain.ensemble.reports.data import Data
from celltrain.ensemble.reports.differences import Baseline, Comparison
from celltrain.running.statistics import Means

if TYPE_CHECKING:
    import pyarrow as pa

#: Unit and meaning of the columns of `Findings.effects`.
EFFECTS = {
    "measure": ("", "what was measured"),
    "axis": ("", "what was varied"),
    "value": ("see the axis", "its value; the middle of a range of a sampled axis"),
    "shown": ("", "the same with a unit, for people"),
    "n": ("1", "independent values the interval rests on: seeds, or draws of a sample"),
    "mean": ("", "mean over everything else, in the unit of the measure"),
    "low": ("", "lower end of its 95 % interval"),
    "high": ("", "its upper end"),
    "share": ("1", "of the variance between points, what the axis makes up"),
}
#: Meaning of a column of `Findings.moved`.
INTERVAL = "paired by seed where both have the same seeds, else Welch's"


@dataclass(frozen=True, kw_only=True, eq=False)
class Findings:
    """Everything a report says about a store."""

    data: Data
    analysis: Analysis
    comparison: Comparison | None
    """Differences from another store."""
    layout: Layout | None
    """Axes of the figures of lines; None if there are none."""
    baseline: Baseline | None
    """Value of an axis with which all others are compared, seed by seed."""
    style: str | None
    """Name or file of a matplotlib style; celltrain's own when None."""
    warnings: tuple[str, ...]
    """Reasons to doubt the means, such as axes that changed nothing."""
    little: frozenset[int]
    """Numbers of the points that carry little traffic compared with others."""

    @property
    def layout_against(self) -> Layout | None:
        """Axes of the figures of differences from the baseline."""
        if self.baseline is None:
            return None
        factor = self.baseline.factor
        return layout(self.analysis, None, factor) or Layout(over=factor)

    @property
    def front_caution(self) -> str:
        """A sentence if points of the front carry little traffic compared with others, otherwise empty."""
        front = self.analysis.front
        count = 0 if front is None else int(np.isin(self.data.points[front.order], list(self.little)).sum())
        if not count:
            return ""
        carry, their = ("carries", "its") if count == 1 else ("carry", "their")
        best = f"{plan_warnings.percent(plan_warnings.LITTLE)} of what the best policy carries"
        return f"{count:,} of them {carry} less than {best}: ignore {their} other measures."

    @cached_property
    def summary(self) -> pa.Table:
        """One row for each point and measure: mean, standard deviation, number of values, 95 % interval."""
        columns = [
            ("n", "n", "1", "values"),
            ("mean", "mean", "", "their mean, in the unit of the measure"),
            ("sd", "sd", "", "their standard deviation; null below two"),
            ("low", "low", "", "lower end of the mean's 95 % interval (Student's t); null below two"),
            ("high", "high", "", "its upper end"),
        ]
        return self._by_measure(np.arange(len(self.data.points)), self.data.means, columns)

    @cached_property
    def front(self) -> pa.Table:
        """Points of each configuration's Pareto front, from the best in its first measure; no rows without a front."""
        data, front = self.data, self.analysis.front
        order = np.array([], dtype=np.int64) if front is None else front.order
        columns = []
        for i in [] if front is None else [front.x, front.y]:
            measure, means = data.measures[i], data.means[i].of(order)
            columns += [
                (measure.name, measure.unit, measure.meaning, means.mean),
                (f"{measure.name}.low", measure.unit, "lower end of its 95 % interval", means.low),
                (f"{measure.name}.high", measure.unit, "its upper end", means.high),
            ]
        return _table(*self._settings(order), *columns)

    @cached_property
    def effects(self) -> pa.Table:
        """One row for each measure, axis and value: the mean over everything else, and its 95 % interval."""
        every = [
            (effect, level)
            for of_measure in self.analysis.effects
            for effect in of_measure
            for level in range(len(effect.places))
        ]

        def numbers(name: str) -> Any:
            return np.array([getattr(effect.means, name)[level] for effect, level in every])

        values = {
            "measure": [effect.measure.name for effect, _ in every],
            "axis": [effect.factor.axis.name for effect, _ in every],
            "value": [effect.text(level) for effect, level in every],
            "shown": [effect.text(level, unit=True) for effect, level in every],
            "n": numbers("n").astype(np.int64),
            **{name: numbers(name) for name in ("mean", "low", "high")},
            "share": np.array([effect.share for effect, _ in every], float),
        }
        return _table(*((name, *EFFECTS[name], own) for name, own in values.items()))

    @cached_property
    def moved(self) -> pa.Table:
        """One row for each measure and point of both stores: means and difference; no rows without a comparison."""
        compared = self.comparison
        measures = () if compared is None else compared.measures
        points = np.array([], dtype=np.int64) if compared is None else compared.points

        def column(kind: type, *path: str) -> Any:
            values: list[Any] = [moved for _, moved in measures]
            for name in path:
                values = [getattr(value, name) for value in values]
            return np.concatenate([np.array([], kind), *values])

        return _table(
            *self._settings(np.tile(points, len(measures))),
            self._measures(np.repeat(np.arange(len(measures)), len(points)), [one.name for one, _ in measures]),
            ("n_first", "1", "values in the first store", column(np.int64, "first", "n")),
            ("mean_first", "", "their mean", column(float, "first", "mean")),
            ("n_second", "1", "values in the second store", column(np.int64, "second", "n")),
            ("mean_second", "", "their mean", column(float, "second", "mean")),
            ("difference", "", "second mean less first", column(float, "differences", "difference")),
            ("half", "", "half the width of its 95 % interval; null without one", column(float, "differences", "half")),
            ("beyond", "1", "whether the interval leaves zero out", column(bool, "differences", "beyond")),
            ("interval", "", INTERVAL, np.where(column(bool, "paired"), "paired", "Welch")),
        )

    @cached_property
    def differences(self) -> pa.Table:
        """One row for each point and measure: its difference from the baseline; no rows without a baseline."""
        columns = [
            ("n", "n", "1", "pairs of runs of one seed"),
            ("mean", "difference", "", "mean of what the point has more than the baseline"),
            ("low", "low", "", "lower end of its 95 % interval"),
            ("high", "high", "", "its upper end"),
        ]
        if (against := self.baseline) is None:
            return self._by_measure(np.array([], np.int64), self.data.means, columns)
        points = np.flatnonzero(against.factor.levels != against.level)
        return self._by_measure(points, against.of_points, columns)

    @cached_property
    def failures(self) -> pa.Table:
        """Runs without values, each with its error."""
        failures = self.data.failures
        return _table(
            *self._settings(np.array([failure.point for failure in failures], dtype=np.int64)),
            ("seed", "1", "seed of the run", np.array([failure.seed for failure in failures], np.uint64)),
            ("error", "", "why it has no values", [failure.error for failure in failures]),
        )

    def tables(self) -> dict[str, pa.Table]:
        """Returns the tables that have rows, by file name."""
        tables = {"summary": self.summary, "effects": self.effects}
        if self.analysis.front is not None:
            tables["front"] = self.front
        if self.baseline is not None:
            tables["baseline"] = self.differences
        if self.comparison is not None:
            tables["comparison"] = self.moved
        if self.data.failures:
            tables["failures"] = self.failures
        return tables

    def to_dict(self) -> dict[str, Any]:
        """The answer of `celltrain report --json`; the means of all points are in `summary` and in its CSV."""
        data, front = self.data, self.analysis.front
        fewest, most = data.seeds
        return {
            "name": data.name,
            "version": data.version,
            "profile": data.profile,
            "points": len(data.points),
            "runs": data.runs,
            "missing": data.missing,
            "failures": len(data.failures),
            "warnings": list(self.warnings),
            "seeds": {"fewest": fewest, "most": most},
            "axes": [
                {"name": axis.name, "unit": axis.unit, "values": len(axis.values), "sampled": axis.sampled}
                for axis in data.axes
            ],
            "measures": [{"name": one.name, "unit": one.unit, "meaning": one.meaning} for one in data.measures],
            "effects": self.effects.to_pylist(),
            "front": None
            if front is None
            else {
                "measures": [data.measures[i].name for i in (front.x, front.y)],
                "larger_is_better": [front.larger_x, front.larger_y],
                "by": [name for factor in front.axes for name in factor.axis.name.split(", ")],
                "points": self.front.to_pylist(),
                "doubtful": [int(data.points[point]) for point in front.doubtful],
            },
            "baseline": None if self.baseline is None else _baseline(self.baseline),
            "comparison": None if self.comparison is None else _comparison(self.comparison),
        }

    def _by_measure(
        self, points: Any, means: Sequence[Means], columns: Sequence[tuple[str, str, str, str]]
    ) -> pa.Table:
        """Creates a table with a row for each point and measure; columns are attribute, name, unit and meaning."""
        count = len(means)
        return _table(
            *self._settings(np.repeat(points, count)),
            self._measures(np.tile(np.arange(count), len(points))),
            *(
                (name, unit, meaning, np.stack([getattr(one, part)[points] for one in means], axis=1).reshape(-1))
                for part, name, unit, meaning in columns
            ),
        )

    def _settings(self, points: Any) -> list[tuple[str, str, str, Any]]:
        """Returns the columns that identify points: their number, and their value on each axis."""
        import pyarrow as pa

        data = self.data
        columns = [("point", "1", "index of the point in the plan", data.points[points].astype(np.int32))]
        for i, axis in enumerate(data.axes):
            levels = data.levels[points, i].astype(np.int32)
            if axis.words:
                values = pa.DictionaryArray.from_arrays(levels, pa.array(map(str, axis.values), pa.string()))
            else:
                values = axis.places[levels]
            columns.append((axis.name, axis.unit, axis.meaning, values))
        return columns

    def _measures(self, places: Any, names: list[str] | None = None) -> tuple[str, str, str, Any]:
        """Returns the column of measures."""
        import pyarrow as pa

        names = [measure.name for measure in self.data.measures] if names is None else names
        values = pa.DictionaryArray.from_arrays(places.astype(np.int32), pa.array(names, pa.string()))
        return ("measure", "", "what was measured", values)


def _table(*columns: tuple[str, str, str, Any]) -> pa.Table:
    """Creates a table of columns: name, unit, meaning, and values: texts as a list, numbers as an array.

    NaN becomes null.
    """
    import pyarrow as pa

    arrays, fields = [], []
    for name, unit, meaning, values in columns:
        if isinstance(values, list):
            array = pa.array(values, pa.string())
        elif isinstance(values, np.ndarray):
            array = pa.array(values, mask=np.isnan(values) if values.dtype.kind == "f" else None)
        else:
            array = values
        arrays.append(array)
        fields.append(pa.field(name, array.type, metadata={"unit": unit, "meaning": meaning}))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _baseline(baseline: Baseline) -> dict[str, Any]:
    """Counts at how many points each value of the axis is above the baseline, and below it."""
    counts = [
        {
            "measure": measure.name,
            "value": baseline.factor.label(level),
            **dict(zip(("above", "below", "points"), baseline.beyond(i, level), strict=True)),
        }
        for i, measure in enumerate(baseline.data.measures)
        for level in baseline.others
    ]
    return {"axis": baseline.factor.axis.name, "value": baseline.name, "counts": counts}


def _comparison(compared: Comparison) -> dict[str, Any]:
    return {
        "first": compared.first,
        "second": compared.second,
        "points": len(compared.points),
        "only_first": list(compared.only_first),
        "only_second": list(compared.only_second),
        "measures": [
            {
                "name": measure.name,
                "beyond": int(moved.differences.beyond.sum()),
                "paired": int(moved.paired.sum()),
                "moved": [
                    {
                        "point": int(compared.data.points[compared.points[i]]),
                        "where": named(compared.data, int(compared.points[i])),
                        "first": _number(moved.first.mean[i]),
                        "second": _number(moved.second.mean[i]),
                        "difference": _number(moved.differences.difference[i]),
                        "half": _number(moved.differences.half[i]),
                        "interval": "paired" if moved.paired[i] else "Welch",
                    }
                    for i in np.flatnonzero(moved.differences.beyond).tolist()
                ],
            }
            for measure, moved in compared.measures
        ],
    }


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
