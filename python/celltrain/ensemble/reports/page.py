"""The page of a report, for the template `report.html`, and its card."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from celltrain.drawing.pages import words
from celltrain.drawing.pages.html import Inlined, render
from celltrain.ensemble.reports.data import Axis, Data, Failure
from celltrain.ensemble.reports.findings import Findings
from celltrain.model.grids import Card, Grid

#: Prefixes of the figures' names.
FIGURES = ("comparison", "differences", "front", "spread", "lines", "effects", "map", "sample", "pairs")
#: Maximum number of rows of a table on the page; its CSV file has all rows.
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


def card(report: Findings) -> Card:
    """Creates the card of a report for `print` and notebooks: the strongest axis of each measure, and the front."""
    data, front = report.data, report.trade_off
    counted = f"{words.counted(len(data.points), 'point')} of {data.seed_count} seeds"
    failed = f", {words.counted(len(data.failures), 'run')} failed" if data.failures else ""
    missing = f", {words.counted(data.missing, 'run')} still to be run" if data.missing else ""
    grids = []
    if front is not None:
        measures = [(data.measures[i], data.means[i]) for i in (front.x, front.y)]
        heads = [axis.worded for axis in data.axes] + [words.measure(one.name, one.unit) for one, _ in measures]
        grids.append(Grid(heads=["on the front", *heads], left=range(1 + len(data.axes))))
        for place, point in zip(front.places.tolist(), front.order.tolist(), strict=True):
            settings = [axis.label(int(axis.levels[point])) for axis in data.axes]
            means = [words.estimated(float(own.mean[point]), float(own.half[point])) for _, own in measures]
            grids[0].add_row(str(place), *settings, *means)
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
    """Yields, for each measure, its range and the axis with the largest effect on it."""
    data = report.data
    for i, (measure, means) in enumerate(zip(data.measures, data.means, strict=True)):
        name, unit = words.measure(measure.name), "" if measure.unit in ("", "1") else f" {measure.unit}"
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


def _values(axis: Axis) -> str:
    texts = [axis.label(level) for level in range(len(axis.values))]
    if len(texts) <= MOST_VALUES:
        return ", ".join(texts)
    return f"{texts[0]} to {texts[-1]}" if not axis.words else f"{', '.join(texts[:MOST_VALUES])} and more"


def _failures(data: Data) -> list[dict[str, Any]]:
    """Returns the errors of failed runs, the most frequent first."""
    by_error: dict[str, list[Failure]] = {}
    for failure in data.failures:
        by_error.setdefault(failure.error, []).append(failure)
    return [
        {
            "error": error,
            "runs": len(failures),
            "points": len({failure.point for failure in failures}),
            "example": f"{data.named(failures[0].point)}, seed {failures[0].seed}",
        }
        for error, failures in sorted(by_error.items(), key=lambda item: -len(item[1]))
    ]
