"""The page of a report: what its template is filled with."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from celltrain.drawing.pages import words
from celltrain.drawing.pages.html import Cell, Head, Inlined, Table, environment
from celltrain.ensemble.reports.analysis import Comparison, label, named
from celltrain.ensemble.reports.data import Axis, Data, Measure
from celltrain.ensemble.reports.groups import Baseline
from celltrain.model.cards import Card, Grid

if TYPE_CHECKING:
    from celltrain.ensemble.reports.make import Report

#: Rows of a table on the page; the CSV beside it has them all.
MOST_ROWS = 200
MOST_FAILURES = 50
MOST_VALUES = 12
MOST_FIGURES_SHOWN = 4


def page(report: Report, drawings: Sequence[Inlined]) -> str:
    """The report as one HTML page."""
    by_name = {drawing.name: drawing for drawing in drawings}
    text: str = environment("report").get_template("ensemble/reports/report.html").render(_content(report, by_name))
    return text


def card(report: Report) -> Card:
    """The report as `print` and notebooks show it: what moves what, and the front."""
    data, front = report.data, report.analysis.front
    fewest, most = data.seeds
    seeds = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
    counted = f"{words.counted(len(data.points), 'point')} of {seeds} seeds"
    failed = f", {words.counted(len(data.failures), 'run')} failed" if data.failures else ""
    missing = f", {words.counted(data.missing, 'run')} still to be run" if data.missing else ""
    grids = []
    if front is not None:
        two = [data.measures[i] for i in (front.x, front.y)]
        heads = [
            "on the front",
            *(axis.worded for axis in data.axes),
            *(words.measure(one.name, one.unit) for one in two),
        ]
        cells = [
            [str(place), *(cell.text for cell in (*_settings(data, point), *_figures(data, point, (front.x, front.y))))]
            for place, point in zip(front.places.tolist(), front.order.tolist(), strict=True)
        ]
        grids.append(Grid(heads=heads, rows=cells, left=tuple(range(1 + len(data.axes)))))
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


def _content(report: Report, drawings: Mapping[str, Inlined]) -> dict[str, Any]:
    data, analysis = report.data, report.analysis
    sections = list(_sections(report, drawings))
    comparison = _comparison(report.comparison, drawings["comparison"]) if report.comparison else None
    front = _front(report, drawings["front"]) if analysis.front else None
    failures = _failures(data) if data.failures else None
    contents = [
        ("run", "What was run"),
        *([("failures", "Runs that failed")] if failures else []),
        *([("comparison", "Comparison")] if comparison else []),
        *([("baseline", f"Against {report.baseline.name}")] if report.baseline else []),
        *([("trade-off", "The trade-off")] if front else []),
        *((section["id"], section["title"]) for section in sections),
        ("points", "Every point"),
        ("reading", "How to read this"),
    ]
    build = "" if data.profile == "release" else f", a {data.profile} build"
    return {
        "title": data.name or "A sweep",
        "subtitle": f"Report of a sweep by celltrain {data.version}{build}",
        "contents": contents,
        "facts": list(_facts(data)),
        "tcp": data.tcp_line(),
        "glance": list(glance(report)),
        "warnings": report.warnings,
        "axes": _axes(data) if data.axes else None,
        "measures": _measures(data),
        "plan": json.dumps(data.plan, indent=2, ensure_ascii=False),
        "failures": failures,
        "comparison": comparison,
        "baseline": _baseline(report, report.baseline, drawings) if report.baseline else None,
        "front": front,
        "sections": sections,
        "points": _points(report),
    }


def _facts(data: Data) -> Iterator[dict[str, str]]:
    fewest, most = data.seeds
    yield {"number": f"{len(data.points):,}", "text": "point" if len(data.points) == 1 else "points"}
    yield {"number": f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}", "text": "seeds a point"}
    yield {"number": f"{data.runs:,}", "text": "run" if data.runs == 1 else "runs"}
    if data.missing:
        yield {"number": f"{data.missing:,}", "text": "still to be run"}
    yield {"number": f"{len(data.failures):,}", "text": "failed"}
    yield {"number": data.version, "text": "version of celltrain"}


def glance(report: Report) -> Iterator[str]:
    """For each measure its range, and the axis it moves most with."""
    data = report.data
    for i, measure in enumerate(data.measures):
        name = words.measure(measure.name)
        known = data.means[i].mean[~np.isnan(data.means[i].mean)]
        if not len(known):
            yield f"{name}: no values"
            continue
        unit = "" if measure.unit in ("", "1") else f" {measure.unit}"
        if len(data.points) == 1:
            yield f"{name}: {words.estimated(float(known[0]), float(data.means[i].half[0]))}{unit}"
            continue
        low, high = words.figure(float(known.min())), words.figure(float(known.max()))
        if low == high:
            yield f"{name}: {low}{unit} at every point"
            continue
        line = f"{name}: means from {low} to {high}{unit}"
        strongest = max(report.analysis.effects[i], key=lambda effect: effect.share)
        yield f"{line}; it moves most with {strongest.factor.axis.worded} ({strongest.share:.0%} of the differences)"


def _axes(data: Data) -> Table:
    rows = []
    for axis in data.axes:
        kind = "sampled" if axis.sampled else "the same everywhere" if len(axis.values) == 1 else ""
        rows.append(
            [
                Cell(text=axis.name, mark=True),
                Cell(text=f"{len(axis.values):,}", key=len(axis.values)),
                Cell(text=_values(axis)),
                Cell(text=axis.unit),
                Cell(text=kind),
                Cell(text=axis.meaning),
            ]
        )
    heads = [Head(text=text) for text in ("axis", "values", "which", "unit", "", "what it sets")]
    return Table(title="axes", heads=heads, rows=rows)


def _values(axis: Axis) -> str:
    texts = [words.valued(value, axis.unit, axis.digits) for value in axis.values]
    if len(texts) <= MOST_VALUES:
        return ", ".join(texts)
    return f"{texts[0]} to {texts[-1]}" if not axis.words else f"{', '.join(texts[:MOST_VALUES])} and more"


def _measures(data: Data) -> Table:
    heads = [Head(text=text) for text in ("measure", "unit", "meaning", "values")]
    counts = (~np.isnan(data.values)).sum(axis=0)
    rows = [
        [
            Cell(text=measure.name, mark=True),
            Cell(text=measure.unit),
            Cell(text=measure.meaning),
            Cell(text=f"{count:,}", key=float(count)),
        ]
        for measure, count in zip(data.measures, counts, strict=True)
    ]
    return Table(title="measures", heads=heads, rows=rows)


def _failures(data: Data) -> dict[str, Any]:
    """Failures by what went wrong, the commonest first."""
    by_error: dict[str, list[int]] = {}
    for place, failure in enumerate(data.failures):
        by_error.setdefault(failure.error, []).append(place)
    errors = sorted(by_error.items(), key=lambda item: -len(item[1]))
    rows = []
    for error, places in errors[:MOST_FAILURES]:
        first = data.failures[places[0]]
        points = len({data.failures[place].point for place in places})
        rows.append(
            [
                Cell(text=f"{len(places):,}", key=len(places)),
                Cell(text=f"{points:,}", key=points),
                Cell(text=error),
                Cell(text=f"{named(data, first.point)}, seed {first.seed}"),
            ]
        )
    heads = [Head(text=text) for text in ("runs", "points", "error", "for example")]
    left = len(errors) - len(rows)
    return {
        "text": f"{len(data.failures):,} of {words.counted(data.runs, 'run')} failed and count nowhere below.",
        "table": Table(
            title="failures",
            heads=heads,
            rows=rows,
            left_out=f"{words.counted(left, 'more error')} in failures.csv beside this page." if left else "",
        ),
    }


def _front(report: Report, drawing: Inlined) -> dict[str, Any]:
    data, front = report.data, report.analysis.front
    assert front is not None, "asked for where there is one"
    shown = front.order[:MOST_ROWS]
    rows = [
        [Cell(text=str(place), key=place), *_settings(data, point), *_figures(data, point, (front.x, front.y))]
        for place, point in zip(front.places.tolist(), shown.tolist(), strict=False)
    ]
    heads = [Head(text="on the front"), *_axis_heads(data), *(_head(data.measures[i]) for i in (front.x, front.y))]
    doubtful = len(front.doubtful)
    on = "on the front" if front.by is None else f"on the fronts, one for each {front.by.axis.worded}"
    text = f"{words.counted(len(front.order), 'point')} of {len(data.points):,} {on}. "
    if report.front_caution:
        text += f"{report.front_caution} "
    if doubtful:
        be = "is" if doubtful == 1 else "are"
        text += (
            f"{words.counted(doubtful, 'more point')} {be} beaten by less than the seeds' spread: more seeds might put "
            f"{'it' if doubtful == 1 else 'them'} there."
        )
    elif data.seeds[0] > 1:
        text += "All others are beaten by more than the seeds' spread."
    left = len(front.order) - len(shown)
    left_out = f"{words.counted(left, 'more point')} in front.csv beside this page." if left else ""
    return {"drawing": drawing, "text": text, "table": Table(title="front", heads=heads, rows=rows, left_out=left_out)}


def _sections(report: Report, drawings: Mapping[str, Inlined]) -> Iterator[dict[str, Any]]:
    for ident, title, prefixes, more in (
        ("spread", "What the seeds gave", ("spread",), ()),
        ("lines", "With intervals", ("lines-",), ()),
        ("effects", "What each axis does", ("effects-",), ()),
        ("maps", "Over two axes", ("map-", "sample-"), ("pairs-",)),
    ):
        chosen = [d for name, d in drawings.items() if name.startswith(prefixes)]
        folded = [d for name, d in drawings.items() if more and name.startswith(more)]
        if chosen or folded:
            yield {
                "id": ident,
                "title": title,
                "drawings": chosen,
                "more": folded,
                "more_title": "Every pair of axes",
            }


def _points(report: Report) -> dict[str, Any]:
    data = report.data
    every = tuple(range(len(data.measures)))
    shown = range(min(len(data.points), MOST_ROWS))
    rows = [
        [
            Cell(text=str(data.points[point]), key=float(data.points[point])),
            *_settings(data, point),
            *_figures(data, point, every),
        ]
        for point in shown
    ]
    heads = [Head(text="point"), *_axis_heads(data), *map(_head, data.measures)]
    left = len(data.points) - len(rows)
    title = f"Means of {words.counted(len(rows), 'point')}" if not left else f"The first {len(rows):,} points"
    left_out = f"{words.counted(left, 'more point')} in summary.csv beside this page." if left else ""
    return {
        "text": "Mean ± half the 95 % interval of the mean. The file summary.csv beside this page has the same with all digits.",
        "table": Table(title=title, heads=heads, rows=rows, left_out=left_out),
    }


def _baseline(report: Report, against: Baseline, drawings: Mapping[str, Inlined]) -> dict[str, Any]:
    """What every value of an axis has more than one of them."""
    data = report.data
    rows = []
    for i, measure in enumerate(data.measures):
        for level in range(len(against.factor.axis.values)):
            if level == against.level:
                continue
            above, below, known = against.beyond(i, level)
            means = against.of_levels[i]
            sure = bool(abs(means.mean[level]) > means.half[level])
            rows.append(
                [
                    Cell(text=words.measure(measure.name, measure.unit), mark=True),
                    Cell(text=label(against.factor, level)),
                    _estimate(means.mean[level], means.half[level], mark=sure, signed=True),
                    *(Cell(text=f"{count:,} of {known:,}", key=float(count)) for count in (above, below)),
                ]
            )
    heads = [
        Head(text=text)
        for text in ("measure", against.factor.axis.worded, "more on the mean", "points above", "points below")
    ]
    return {
        "title": f"Against {against.factor.axis.worded} = {against.name}",
        "text": f"What each {against.factor.axis.worded} has more than {against.name}, in runs that have all other axes and the seed "
        "in common. The mean is over all points; bold if its 95 % interval excludes zero. A point is above or below "
        f"{against.name} if the interval of its own differences excludes zero. The file baseline.csv beside this page has every "
        "point.",
        "table": Table(title="differences", heads=heads, rows=rows),
        "drawings": [drawing for name, drawing in drawings.items() if name.startswith("differences-")],
    }


def _comparison(compared: Comparison, drawing: Inlined) -> dict[str, Any]:
    count = len(compared.points)
    lines = [
        f"Differences are {compared.second} less {compared.first}, for each of the "
        f"{words.counted(count, 'point')} both have. A difference is beyond the seeds' spread where its 95 % interval "
        "leaves zero out."
    ]
    paired = int(compared.measures[0][1].paired.sum()) if compared.measures else 0
    if paired:
        lines.append(
            f"At {words.counted(paired, 'point')} both stores have the same seeds: there the interval is that of the pairs' "
            "differences (paired by seed, Student's t)."
        )
    if paired < count:
        lines.append(
            f"At {words.counted(count - paired, 'point')} the seeds are not the same: there the interval is Welch's, of two independent means."
        )
    total = sum(int(moved.differences.beyond.sum()) for _, moved in compared.measures)
    tried = sum(int((~np.isnan(moved.differences.half)).sum()) for _, moved in compared.measures)
    lines.append(
        f"{total:,} of {words.counted(tried, 'difference')} with an interval are beyond the spread; if nothing had moved, "
        f"about {0.05 * tried:,.0f} would seem so by chance."
    )
    tables = [_moves(compared, i) for i in range(len(compared.measures))]
    alone = [
        {
            "title": f"{words.counted(len(names), 'point')} only in {store}",
            "names": names[:MOST_ROWS],
            "left_out": f"and {len(names) - MOST_ROWS:,} more" if len(names) > MOST_ROWS else "",
        }
        for store, names in ((compared.first, compared.only_first), (compared.second, compared.only_second))
        if names
    ]
    return {
        "title": f"{compared.second} against {compared.first}",
        "lines": lines,
        "drawing": drawing,
        "tables": tables,
        "alone": alone,
    }


def _moves(compared: Comparison, place: int) -> Table:
    """What moved in one measure, the surest first."""
    data, (measure, moved) = compared.data, compared.measures[place]
    differences = moved.differences
    with np.errstate(invalid="ignore", divide="ignore"):
        sureness = np.abs(differences.difference) / differences.half
    sureness = np.where(differences.difference == 0, 0.0, np.nan_to_num(sureness, nan=-1.0, posinf=np.inf))
    order = np.lexsort((compared.points, -sureness))
    beyond = differences.beyond
    rows = []
    for i in order[:MOST_ROWS].tolist():
        difference, half = float(differences.difference[i]), float(differences.half[i])
        verdict = "no interval" if math.isnan(half) else "beyond" if beyond[i] else "within"
        rows.append(
            [
                *_settings(data, int(compared.points[i])),
                _estimate(moved.first.mean[i], moved.first.half[i]),
                _estimate(moved.second.mean[i], moved.second.half[i]),
                _estimate(difference, half, mark=bool(beyond[i]), signed=True),
                Cell(text=verdict, mark=bool(beyond[i])),
                Cell(text="paired" if moved.paired[i] else "Welch"),
            ]
        )
    left = len(compared.points) - len(rows)
    count = int(beyond.sum())
    return Table(
        title=f"{words.measure(measure.name)}: {words.counted(count, 'point')} of {len(compared.points):,} moved beyond the seeds' spread",
        heads=[
            *_axis_heads(data),
            Head(text=compared.first, meaning=words.labelled(measure.name, measure.unit)),
            Head(text=compared.second, meaning=words.labelled(measure.name, measure.unit)),
            Head(text=f"difference{_in(measure.unit)}"),
            Head(text="spread"),
            Head(text="interval"),
        ],
        rows=rows,
        left_out=f"{words.counted(left, 'more point')} in comparison.csv beside this page." if left else "",
        open=count > 0,
    )


def _axis_heads(data: Data) -> Iterable[Head]:
    return [Head(text=axis.worded, meaning=axis.meaning) for axis in data.axes]


def _head(measure: Measure) -> Head:
    return Head(text=words.measure(measure.name, measure.unit), meaning=f"{measure.name}: {measure.meaning}")


def _in(unit: str) -> str:
    return "" if unit in ("", "1") else f", {unit}"


def _settings(data: Data, point: int) -> Iterator[Cell]:
    for i, axis in enumerate(data.axes):
        value = data.value(point, i)
        yield Cell(text=words.valued(value, axis.unit, axis.digits), key=None if isinstance(value, str) else value)


def _figures(data: Data, point: int, measures: Sequence[int]) -> Iterator[Cell]:
    for i in measures:
        yield _estimate(data.means[i].mean[point], data.means[i].half[point])


def _estimate(mean: float, half: float, *, mark: bool = False, signed: bool = False) -> Cell:
    text = words.estimated(float(mean), float(half))
    return Cell(text=f"+{text}" if signed and mean > 0 else text, key=float(mean), mark=mark)
