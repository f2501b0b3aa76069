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
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from celltrain.drawing import words
from celltrain.drawing.figure import Drawing, FigureStyle, require_matplotlib
from celltrain.drawing.html import Inlined, render, write_figure
from celltrain.ensemble import plan_warnings
from celltrain.ensemble.reports import analysis, figures
from celltrain.ensemble.reports.data import Data, ReportAxis, of_store
from celltrain.ensemble.reports.findings import Findings
from celltrain.ensemble.store import Store
from celltrain.errors import StoreError
from celltrain.model.arguments import Answer, checked
from celltrain.model.files import inner, replace, writing
from celltrain.model.grids import Card, CardMixin
from celltrain.running.tables import write_csv
from celltrain.text import shown


class Report(CardMixin, Answer, Findings):
    """Results from a store's runs: tables, the front of two measures, main effects, and changes since another store."""

    _call = "celltrain.report"

    @checked()
    def drawings(self, *, width: str = "page") -> Iterator[Drawing]:
        """Yields the matplotlib figures, one at a time, each with a title and a caption.

        Args:
            width: `"page"` (7.2 inches), or `"column"` (3.5 inches).
        """
        require_matplotlib()
        yield from figures.drawings(self, FigureStyle.of(width, self.style))

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
    made = Report._made(
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
    """Returns names for two stores: their folders and, if these differ, their versions."""
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


def page(report: Findings, drawings: Sequence[Inlined]) -> str:
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


def lines(report: Findings) -> Iterator[str]:
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
        yield f"{words.called(moved.measure, unit=False)}: {moved.beyond:,} of {words.counted(len(moved.paired), 'point')} moved beyond the seeds' spread"


def glance(report: Findings) -> Iterator[str]:
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
