"""Reports on stores: means with their intervals, main effects, maps, the Pareto front, and changes since another store.

>>> import celltrain as ct
>>> lan = ct.n_source(sources=3, link_delay="5us", buffer_cells=200, policy=ct.Epd(threshold=100), duration="20ms")
>>> store = ct.sweep(lan, over={"port.bottleneck.buffer": [150, 200]}, seeds=3)
>>> ct.report(store)
Report('', 2 points, 8 measures)

`docs/reports.md` describes the page, its figures and its tables.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from celltrain.drawing import words
from celltrain.drawing.figure import Drawing, FigureStyle, require_matplotlib
from celltrain.drawing.html import Inlined, render, write_figure
from celltrain.ensemble import plan_warnings
from celltrain.ensemble.cases import CENSORED, SUMMARY, Measured, arrow, by_measure, number, texts
from celltrain.ensemble.reports import analysis, figures
from celltrain.ensemble.reports.analysis import Baseline, Front, Layout, StoreComparison, layout
from celltrain.ensemble.reports.data import Data, ReportAxis, of_store
from celltrain.ensemble.store import Store
from celltrain.errors import StoreError
from celltrain.model.arguments import checked
from celltrain.model.files import inner, replace, writing
from celltrain.model.grids import Card, CardMixin
from celltrain.running.statistics import Means
from celltrain.running.tables import Column, write_csv
from celltrain.text import shown

if TYPE_CHECKING:
    import pyarrow as pa


#: Columns of several tables.
POINT = Column("point", "int32", "1", "index of the point in the plan")
MEASURE = Column("measure", "name", "", "name of the measure")
EFFECTS = (
    Column("measure", "string", "", "name of the measure"),
    Column("axis", "string", "", "axis"),
    Column("value", "string", "see the axis", "value of the axis; middle of the range if the axis is sampled"),
    Column("shown", "string", "", "value with its unit, for display"),
    Column("n", "int64", "1", "number of independent values behind the interval: seeds, or draws of a sample"),
    Column("mean", "float64", "", "mean over all other axes, in the unit of the measure"),
    Column("low", "float64", "", "lower end of the mean's 95 % interval"),
    Column("high", "float64", "", "upper end of the 95 % interval of the mean"),
    Column("share", "float64", "1", "share of the variance between points explained by the axis"),
)
#: Columns of the differences from the baseline, by statistic.
DIFFERENCES = {
    "n": Column("n", "int64", "1", "number of pairs of runs with equal seeds"),
    "mean": Column("difference", "float64", "", "mean excess of the point over the baseline"),
    "low": Column("low", "float64", "", "lower end of the mean's 95 % interval"),
    "high": Column("high", "float64", "", "upper end of the 95 % interval of the mean"),
}
#: Columns of the differences between two stores, by attribute of `Moved`.
MOVED = {
    "first.n": Column("n_first", "int64", "1", "values in the first store"),
    "first.mean": Column("mean_first", "float64", "", "mean in the first store"),
    "second.n": Column("n_second", "int64", "1", "values in the second store"),
    "second.mean": Column("mean_second", "float64", "", "mean in the second store"),
    "differences.mean": Column("difference", "float64", "", "mean in the second store minus mean in the first"),
    "differences.half": Column("half", "float64", "", "half the 95 % interval of the difference; null if undefined"),
    "differences.beyond": Column("beyond", "bool", "1", "true if the difference's 95 % interval excludes zero"),
    "interval": Column(
        "interval", "string", "", "method of comparison: paired by seed, or Welch's if the seeds differ"
    ),
}


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Report(CardMixin):
    """Results from a store's runs: tables, the front of two measures, main effects, and changes since another store.

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
                (
                    Column(
                        f"{measure.name}.high", "float64", measure.unit, "upper end of the 95 % interval of the mean"
                    ),
                    means.high,
                ),
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
                    Column("error", "string", "", "why the run has no values"),
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

    @checked()
    def drawings(self, *, width: str = "page") -> Iterator[Drawing]:
        """Yields the matplotlib figures, one at a time, each with a title and a caption.

        Args:
            width: `"page"` (7.2 inches), or `"column"` (3.5 inches).
        """
        require_matplotlib()
        layouts = (self.layout_against, self.baseline), (self.layout, None)
        look = FigureStyle.of(width, self.style)
        yield from figures.drawings(self.data, self.trade_off, self.comparison, layouts, look)

    def html(self) -> str:
        """Returns the report as one self-contained page."""
        return page(self, [Inlined.of(*pair) for pair in self._pairs()])

    @checked()
    def write(self, folder: str | os.PathLike[str], *, progress: Callable[[float], object] | None = None) -> list[Path]:
        """Writes the page, its tables as CSV and its figures as SVG and PDF to a folder; returns the files.

        Args:
            folder: The folder, which is created if needed. Files of an earlier report are replaced.
            progress: Called with the completed fraction, 0 to 1.
        """
        target, inlined = Path(folder), []
        # Write the page last, so that a folder that contains a page is complete.
        written = [target / "report.html"]
        expected = 1 + 4 * len(self.data.measures)
        with writing(folder):
            plots = inner(target / "figures")
            # Write each figure before drawing the next, because all figures together would need hundreds of megabytes.
            for place, (drawing, narrow) in enumerate(self._pairs(), 1):
                written += write_figure(drawing, narrow, plots)
                inlined.append(Inlined.of(drawing, narrow))
                if progress is not None:
                    progress(min(place / expected, 0.99))
            for name, table in self.tables().items():
                written.append(target / f"{name}.csv")
                write_csv(table, written[-1])
            replace(written[0], page(self, inlined))
        return written

    def _pairs(self) -> Iterator[tuple[Drawing, Drawing]]:
        yield from zip(self.drawings(), self.drawings(width="column"), strict=True)

    def to_json(self) -> str:
        """Returns `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), allow_nan=False, indent=1)

    def _card(self) -> Card:
        tcp = [self.data.tcp_line()] if self.data.tcp else []
        texts = [*lines(self), *tcp, *glance(self), *self.warnings]
        notes = [".write(folder) writes a page with figures; .summary, .effects and .front are tables"]
        return Card(title=f"Report of {self.data.name or 'a sweep'}", lines=texts, notes=notes)

    def __repr__(self) -> str:
        data = self.data
        return f"Report({data.name!r}, {len(data.points):,} points, {len(data.measures)} measures)"


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


@checked(StoreError)
def report(
    store: Store | str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    measures: Sequence[str] | None = None,
    front: Sequence[str] | None = None,
    front_by: Sequence[str] | None = None,
    compare_with: Store | str | os.PathLike[str] | None = None,
    style: str | None = None,
    lines: Sequence[str] | None = None,
    baseline: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> Report:
    """Analyses the runs of a store, and presents them as tables, figures and a page.

    Args:
        store: A store, or its folder. It may be of another version, or still being written by a sweep.
        out: Folder for the page, its tables and figures. Nothing is written when None.
        measures: Measures, in this order; all when None.
        front: The two measures of the Pareto front, with a leading `-` if smaller is better; efficiency and fairness
            when None.
        front_by: Axes; each combination of their values has its own front. When None, the axes that change the network;
            when empty, one front for all points.
        compare_with: Another store with the same axes and measures, to show the differences from it.
        style: A matplotlib style for the figures, by name or file; celltrain's own when None.
        lines: Up to three axes of the line plots: the x axis, and those for colours and panels; chosen automatically
            when None.
        baseline: A value of an axis, such as `"policy=tail_drop"`, with which all others are compared, seed by seed.
        labels: Labels of measures by path, and of axes by name, in tables and figures; otherwise the plan's, or words.

    Raises:
        StoreError: If a store cannot be read or has no runs, or a measure was not measured.

    >>> import celltrain as ct
    >>> lan = ct.n_source(sources=3, link_delay="5us", buffer_cells=200, policy=ct.SelectiveDrop(), duration="20ms")
    >>> store = ct.sweep(lan, over={"z": {"path": "port.bottleneck.policy.selective_drop.z", "values": [0.5, 1.0]}}, seeds=4)
    >>> report = ct.report(store, measures=["efficiency", "fairness"])
    >>> report.summary.num_rows, report.front.column_names[:2]
    (4, ['point', 'z'])
    """
    if style is not None:
        require_matplotlib()
        FigureStyle.of("page", style)
    first = store if isinstance(store, Store) else Store.open(store)
    data = of_store(first, measures, labels=labels)
    comparison = None
    if compare_with is not None:
        second = compare_with if isinstance(compare_with, Store) else Store.open(compare_with)
        comparison = analysis.compare(data, of_store(second, measures, labels=labels), _names(first, second))
    against = None if baseline is None else analysis.baseline(data, baseline)
    made = Report(
        data=data,
        trade_off=analysis.front(data, front, front_by),
        comparison=comparison,
        layout=analysis.layout(data, lines),
        baseline=against,
        style=style,
        warnings=(*plan_warnings.of_store(first), *(() if against is None else against.warnings())),
        little=frozenset(plan_warnings.little_points(first)),
    )
    if out is not None:
        made.write(out)
    return made


def _names(first: Store, second: Store) -> tuple[str, str]:
    """Returns names for two stores: their folders and, if the folders differ, their versions."""
    one, other = shown(first.path.resolve().name), shown(second.path.resolve().name)
    if first.path.resolve() == second.path.resolve():
        raise StoreError.of_option("--compare", shown(second.path), "is the same store; name another")
    if one == other:
        one, other = shown(first.path), shown(second.path)
    if first.version != second.version:
        return f"{one} (celltrain {first.version})", f"{other} (celltrain {second.version})"
    return one, other


#: Prefixes of the figures' names.
FIGURES = ("comparison", "differences", "front", "spread", "lines", "effects", "map", "sample")
#: Maximum number of rows of a table on the page. Its CSV file has all rows.
MOST_ROWS = 200
MOST_FAILURES, MOST_VALUES = 50, 12


def page(report: Report, drawings: Sequence[Inlined]) -> str:
    """Renders a report as one HTML page."""
    data = report.data
    return render(
        "ensemble/reports/report.html",
        "report",
        title=data.name or "A sweep",
        report=report,
        data=data,
        figures={prefix: [one for one in drawings if one.name.startswith(prefix)] for prefix in FIGURES},
        glance=list(glance(report)),
        values=[_values(axis) for axis in data.axes],
        known=(~np.isnan(data.values)).sum(axis=0).tolist(),
        plan=json.dumps(data.plan, indent=2, ensure_ascii=False),
        failures=_failures(data),
        compared=report.comparison,
        most=MOST_ROWS,
        most_failures=MOST_FAILURES,
    )


def lines(report: Report) -> Iterator[str]:
    """Yields a summary of the report in a few lines."""
    data, front, compared = report.data, report.trade_off, report.comparison
    failed = f", {len(data.failures):,} of them failed" if data.failures else ""
    missing = f", and {words.counted(data.missing, 'run')} missing" if data.missing else ""
    points = words.counted(len(data.points), "point")
    yield f"{shown(data.name or 'a sweep')}, by celltrain {data.version}: {points}, {words.counted(data.runs, 'run')}{failed}{missing}"
    if front is not None:
        two = " vs ".join(words.called(data.measures[i], unit=False) for i in front.measures)
        each = "" if front.by is None else f", one front per {shown(front.by.worded)}"
        yield f"{words.counted(len(front.order), 'Pareto-optimal point')} ({two}){each}{report.front_caution and f'. {report.front_caution}'}"
    if (against := report.baseline) is not None:
        for i, level, above, below, known in against.counts():
            yield (
                f"{words.called(data.measures[i], unit=False)}: {against.axis.label(level)} is above {against.name} at {above:,} of "
                f"{words.counted(known, 'point')} and below it at {below:,} (95 % intervals of paired differences)"
            )
    for moved in () if compared is None else compared.measures:
        yield f"{words.called(moved.measure, unit=False)}: {moved.beyond:,} of {words.counted(len(moved.paired), 'point')} changed by more than the spread of the seeds"


def glance(report: Report) -> Iterator[str]:
    """For each measure, yields its range and the axis with the largest effect on it."""
    data = report.data
    for i, (measure, means) in enumerate(zip(data.measures, data.means, strict=True)):
        name, unit = words.called(measure, unit=False), "" if measure.unit in ("", "1") else f" {measure.unit}"
        known = means.mean[~np.isnan(means.mean)]
        if not len(known):
            yield f"{name}: no values"
            continue
        low, high = words.figure(float(known.min())), words.figure(float(known.max()))
        is_bound = bool(data.bounds[:, i].any())
        if len(data.points) == 1:
            mean = words.estimated(float(known[0]), float(means.half[0]))
            yield f"{name}: {words.at_least(mean) if is_bound else mean}{unit}"
        elif low == high:
            yield f"{name}: {words.at_least(low) if is_bound else low}{unit} at every point"
        else:
            strongest = max(data.effects[i], key=lambda effect: effect.share)
            share = f"{strongest.axis.worded} ({strongest.share:.0%} of the differences)"
            bounds = ", some of them lower bounds" if is_bound else ""
            text = f"{name}: means from {low} to {high}{unit}{bounds}"
            yield f"{text}; the measure depends most on {share}" if len(data.effects[i]) > 1 else text


def _values(axis: ReportAxis) -> str:
    texts = [axis.label(level) for level in range(len(axis.values))]
    if len(texts) <= MOST_VALUES:
        return ", ".join(texts)
    return f"{texts[0]} to {texts[-1]}" if not axis.words else f"{', '.join(texts[:MOST_VALUES])} and more"


def _failures(data: Data) -> list[dict[str, Any]]:
    """Returns the errors of failed runs, the most frequent first."""
    ordered = sorted(data.failures, key=attrgetter("error"))
    by_error = [list(failures) for _, failures in itertools.groupby(ordered, attrgetter("error"))]
    return [
        {
            "error": first.error,
            "runs": 1 + len(others),
            "points": len({first.point, *(failure.point for failure in others)}),
            "example": f"{data.named(first.point)}, seed {first.seed}",
        }
        for first, *others in sorted(by_error, key=len, reverse=True)
    ]
