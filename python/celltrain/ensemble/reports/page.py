"""The page of a report: its tables, for the template `report.html`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from celltrain.drawing.pages import words
from celltrain.drawing.pages.html import Cell, Head, Inlined, Table, bold, count, estimate, render, table, value
from celltrain.ensemble.reports.analysis import Baseline, Comparison
from celltrain.ensemble.reports.data import Axis, Data
from celltrain.ensemble.reports.findings import Findings
from celltrain.ensemble.table import Measured
from celltrain.model.grids import Card, Grid

#: Beginnings of the figures' names.
FIGURES = ("comparison", "differences", "front", "spread", "lines", "effects", "map", "sample", "pairs")
#: Most rows of a table on the page; its CSV file has all of them.
MOST_ROWS = 200
MOST_FAILURES, MOST_VALUES = 50, 12


def page(report: Findings, drawings: Sequence[Inlined]) -> str:
    """Renders a report as one HTML page."""
    compared, against = report.comparison, report.baseline
    return render(
        "ensemble/reports/report.html",
        "report",
        title=report.data.name or "A sweep",
        report=report,
        data=report.data,
        figures={prefix: [one for one in drawings if one.name.startswith(prefix)] for prefix in FIGURES},
        glance=list(glance(report)),
        axes=_axes(report.data),
        measures=_measures(report.data),
        plan=json.dumps(report.data.plan, indent=2, ensure_ascii=False),
        failures=_failures(report.data) if report.data.failures else None,
        compared=compared,
        moves=[] if compared is None else [_moves(compared, i) for i in range(len(compared.measures))],
        most_names=MOST_ROWS,
        baseline=None if against is None else _baseline(against),
        front=_front(report),
        points=_numbered(report.data),
    )


def card(report: Findings) -> Card:
    """Creates the card of a report for `print` and notebooks: the strongest axis of each measure, and the front."""
    data = report.data
    counted = f"{words.counted(len(data.points), 'point')} of {data.seed_count} seeds"
    failed = f", {words.counted(len(data.failures), 'run')} failed" if data.failures else ""
    missing = f", {words.counted(data.missing, 'run')} still to be run" if data.missing else ""
    front = _front(report, most=None)
    grids = []
    if front is not None:
        rows = [[cell.text for cell in row] for row in front.rows]
        grids.append(Grid(heads=[head.text for head in front.heads], rows=rows, left=range(1 + len(data.axes))))
    return Card(
        title=f"Report of {data.name or 'a sweep'}",
        lines=[
            f"{counted}{failed}{missing}",
            *([data.tcp_line()] if data.tcp else []),
            *glance(report),
            *report.warnings,
        ],
        grids=grids,
        notes=[".write(folder) makes a page with figures; .summary, .effects and .front are tables"],
    )


def glance(report: Findings) -> Iterator[str]:
    """Yields for each measure its range, and the axis with the largest effect on it."""
    data = report.data
    for i, (measure, means) in enumerate(zip(data.measures, data.means, strict=True)):
        name, unit = words.measure(measure.name), _unit(measure, " ")
        known = means.mean[~np.isnan(means.mean)]
        if not len(known):
            yield f"{name}: no values"
            continue
        low, high = words.figure(float(known.min())), words.figure(float(known.max()))
        if len(data.points) == 1:
            yield f"{name}: {words.estimated(float(known[0]), float(means.half[0]))}{unit}"
        elif low == high:
            yield f"{name}: {low}{unit} at every point"
        else:
            strongest = max(data.effects[i], key=lambda effect: effect.share)
            most = f"{strongest.axis.worded} ({strongest.share:.0%} of the differences)"
            yield f"{name}: means from {low} to {high}{unit}; it moves most with {most}"


def _axes(data: Data) -> Table:
    rows = [
        [
            bold(axis.name),
            count(len(axis.values)),
            _values(axis),
            axis.unit,
            "sampled" if axis.sampled else "the same everywhere" if len(axis.values) == 1 else "",
            axis.meaning,
        ]
        for axis in data.axes
    ]
    return table("axes", ["axis", "values", "which", "unit", "", "what it sets"], rows)


def _values(axis: Axis) -> str:
    texts = [axis.label(level) for level in range(len(axis.values))]
    if len(texts) <= MOST_VALUES:
        return ", ".join(texts)
    return f"{texts[0]} to {texts[-1]}" if not axis.words else f"{', '.join(texts[:MOST_VALUES])} and more"


def _measures(data: Data) -> Table:
    known = (~np.isnan(data.values)).sum(axis=0).tolist()
    rows = [[bold(one.name), one.unit, one.meaning, count(n)] for one, n in zip(data.measures, known, strict=True)]
    return table("measures", ["measure", "unit", "meaning", "values"], rows)


def _failures(data: Data) -> Table:
    """Failures by their error, the most frequent first."""
    by_error: dict[str, list[int]] = {}
    for place, failure in enumerate(data.failures):
        by_error.setdefault(failure.error, []).append(place)
    errors = sorted(by_error.items(), key=lambda item: -len(item[1]))
    rows = []
    for error, places in errors[:MOST_FAILURES]:
        failures = [data.failures[place] for place in places]
        example = f"{data.named(failures[0].point)}, seed {failures[0].seed}"
        rows.append([count(len(places)), count(len({failure.point for failure in failures})), error, example])
    left_out = _left_out(len(errors) - len(rows), "error", "failures.csv")
    return table("failures", ["runs", "points", "error", "for example"], rows, left_out=left_out)


def _front(report: Findings, most: int | None = MOST_ROWS) -> Table | None:
    data, front = report.data, report.trade_off
    if front is None:
        return None
    two = (front.x, front.y)
    rows = [
        [Cell(str(place), place), *_settings(data.axes, point), *_estimates(data, point, two)]
        for place, point in zip(front.places.tolist(), front.order[:most].tolist(), strict=False)
    ]
    heads = ["on the front", *_axis_heads(data.axes), *(_head(data.measures[i]) for i in two)]
    return table("front", heads, rows, left_out=_left_out(len(front.order) - len(rows), "point", "front.csv"))


def points(data: Data, axes: Sequence[Axis], against: Baseline | None = None) -> Table:
    """Returns a row for each point: its values on some axes, and the means of the measures, or what they differ by."""
    every = np.arange(len(data.points)) if against is None else np.flatnonzero(against.axis.levels != against.level)
    means, signed = data.means if against is None else against.of_points, against is not None
    rows = []
    for point in every[:MOST_ROWS].tolist():
        both = [(float(own.mean[point]), float(own.half[point])) for own in means]
        cells = [estimate(mean, half, mark=signed and abs(mean) > half, signed=signed) for mean, half in both]
        rows.append([*_settings(axes, point), *cells])
    left = len(every) - len(rows)
    title = f"Means of {words.counted(len(rows), 'point')}" if not left else f"The first {len(rows):,} points"
    heads = [*_axis_heads(axes), *map(_head, data.measures)]
    file = "summary.csv" if against is None else "baseline.csv"
    return table(title, heads, rows, left_out=_left_out(left, "point", file))


def _numbered(data: Data) -> Table:
    """Returns the means of all points, which have a number each."""
    means = points(data, data.axes)
    numbers = [Cell(str(number), float(number)) for number in data.points.tolist()]
    rows = [[number, *row] for number, row in zip(numbers, means.rows, strict=False)]
    return replace(means, heads=[Head("point"), *means.heads], rows=rows)


def _baseline(against: Baseline) -> Table:
    """Differences of every value of an axis from one of them."""
    rows = []
    for i, level, above, below, known in against.counts():
        measure, means = against.data.measures[i], against.of_levels[i]
        counts = [Cell(f"{one:,} of {known:,}", float(one)) for one in (above, below)]
        mean, half = means.mean[level], means.half[level]
        more = estimate(mean, half, mark=bool(abs(mean) > half), signed=True)
        rows.append([bold(words.measure(measure.name, measure.unit)), against.axis.label(level), more, *counts])
    heads = ["measure", against.axis.worded, "more on the mean", "points above", "points below"]
    return table("differences", heads, rows)


def _moves(compared: Comparison, place: int) -> Table:
    """Differences of one measure, the most significant first."""
    data, moved = compared.data, compared.measures[place]
    measure = moved.measure
    differences, beyond = moved.differences, moved.differences.beyond
    with np.errstate(invalid="ignore", divide="ignore"):
        sureness = np.abs(differences.difference) / differences.half
    sureness = np.where(differences.difference == 0, 0.0, np.nan_to_num(sureness, nan=-1.0, posinf=np.inf))
    rows = [
        [
            *_settings(data.axes, int(compared.points[i])),
            estimate(moved.first.mean[i], moved.first.half[i]),
            estimate(moved.second.mean[i], moved.second.half[i]),
            estimate(differences.difference[i], differences.half[i], mark=bool(beyond[i]), signed=True),
            bold("beyond") if beyond[i] else "no interval" if np.isnan(differences.half[i]) else "within",
            "paired" if moved.paired[i] else "Welch",
        ]
        for i in np.lexsort((compared.points, -sureness))[:MOST_ROWS].tolist()
    ]
    total, many = len(compared.points), moved.beyond
    name, label = words.measure(measure.name), words.labelled(measure.name, measure.unit)
    return table(
        f"{name}: {words.counted(many, 'point')} of {total:,} moved beyond the seeds' spread",
        [
            *_axis_heads(data.axes),
            Head(compared.first, label),
            Head(compared.second, label),
            f"difference{_unit(measure, ', ')}",
            "spread",
            "interval",
        ],
        rows,
        left_out=_left_out(total - len(rows), "point", "comparison.csv"),
        is_open=many > 0,
    )


def _left_out(left: int, what: str, file: str) -> str:
    return f"{words.counted(left, f'more {what}')} in {file} beside this page." if left else ""


def _unit(measure: Measured, before: str) -> str:
    return "" if measure.unit in ("", "1") else f"{before}{measure.unit}"


def _axis_heads(axes: Sequence[Axis]) -> list[Head]:
    return [Head(axis.worded, axis.meaning) for axis in axes]


def _head(measure: Measured) -> Head:
    return Head(words.measure(measure.name, measure.unit), f"{measure.name}: {measure.meaning}")


def _settings(axes: Sequence[Axis], point: int) -> Iterator[Cell]:
    for axis in axes:
        level = int(axis.levels[point])
        yield value(axis.values[level], axis.label(level))


def _estimates(data: Data, point: int, measures: Sequence[int]) -> Iterator[Cell]:
    for i in measures:
        yield estimate(data.means[i].mean[point], data.means[i].half[point])
