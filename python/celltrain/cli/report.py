"""`celltrain report`: a page about a store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from celltrain.cli import shell

if TYPE_CHECKING:
    from celltrain.ensemble.reports import Report
    from celltrain.model.grids import Block

#: Rows of a table on standard output.
MOST_ROWS = 200


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("report", epilog="For example: celltrain report out/sd --front efficiency,-cells.lost")(report)


@shell.command
def report(
    folder: Annotated[Path | None, typer.Argument(metavar="STORE", help="The store of a sweep.")] = None,
    store: Annotated[Path | None, typer.Option(metavar="STORE", help="The store, as for celltrain sweep.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where page, tables and figures go; STORE/report when absent.")
    ] = None,
    measures: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Only these, such as efficiency,fairness; all when absent."),
    ] = None,
    front: Annotated[
        str | None,
        typer.Option(metavar="TWO", help="Measures of the Pareto front; - before one of which smaller is better."),
    ] = None,
    front_by: Annotated[
        str | None,
        typer.Option(
            metavar="AXES",
            help="A front for each of their combinations; for each network and TCP when absent, or none.",
        ),
    ] = None,
    compare: Annotated[
        Path | None, typer.Option(metavar="STORE2", help="Say what moved from STORE to this one.")
    ] = None,
    lines: Annotated[
        str | None,
        typer.Option(metavar="AXES", help="Draw measures over the first, coloured by the second, panels by the third."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="AXIS=VALUE", help="Say what all have more than this value, paired by seed."),
    ] = None,
    style: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of the figures: a style of matplotlib, such as grayscale, or its file."),
    ] = None,
    as_json: shell.Json = False,
    md: shell.Markdown = False,
    tex: shell.Latex = False,
) -> None:
    """Write a page about a store: what was run, means with intervals, main effects, maps, the Pareto front."""
    from celltrain.drawing.axes import require_matplotlib
    from celltrain.ensemble.reports import report as look
    from celltrain.errors import Fault, InputError
    from celltrain.model.writing import inner
    from celltrain.text import shown

    form = shell.form(as_json=as_json, md=md, tex=tex)
    if (folder is None) == (store is None):
        problem = (
            "names the store of a sweep" if store is None else "names the store, and so does the argument: give one"
        )
        raise InputError([Fault.of_option("--store", "" if store is None else shown(store), problem)])
    store = store or folder
    assert store is not None, "one of them is given"
    if (said := measures) is not None and not (said := _listed(said)):
        raise InputError([Fault.of_option("--measures", "", "names no measure; for example efficiency,fairness")])
    two = None if front is None else _listed([front])
    each = None if front_by is None else [] if front_by == "none" else _listed([front_by])
    over = None if lines is None else _listed([lines])
    require_matplotlib()
    made = look(
        store,
        measures=said,
        front=two,
        front_by=each,
        compare_with=compare,
        style=style,
        lines=over,
        baseline=baseline,
    )
    target = shell.folder(inner(store / "report") if out is None else out)
    with shell.waiting(f"drawing {shown(store)}") as progress, shell.writing(target):
        written = made.write(target, progress=progress)
    if as_json:
        shell.answer({"store": shown(store), **made.to_dict(), "files": [shown(path) for path in written]})
        return
    if form == "text":
        for line in _said(made):
            shell.say(line)
    else:
        shell.show(_table(made), form)
    for warning in made.warnings:
        shell.complain(f"warning: {warning}")
    shell.note(f"wrote {shown(written[0])}, and {len(written) - 1} files beside it", form)


def _listed(texts: list[str]) -> list[str]:
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def _table(report: Report) -> Iterator[Block]:
    """A row for each point: means or differences from the baseline, with half of their 95 % intervals."""
    from celltrain.drawing.pages import words
    from celltrain.ensemble.comparing.rows import BEYOND, HALF
    from celltrain.model.grids import Line
    from celltrain.text import shown

    data, against = report.data, report.baseline
    yield Line(text=f"{shown(data.name or 'a sweep')}: {data.seeds_line}", is_note=True)
    varied = [place for place, axis in enumerate(data.axes) if len(axis.values) > 1]
    if fixed := [axis for axis in data.axes if len(axis.values) == 1]:
        said = ", ".join(f"{shown(axis.name)} = {words.valued(axis.values[0], axis.unit)}" for axis in fixed)
        yield Line(text=f"set: {said}", is_note=True)
    if tcp := data.tcp_line():
        yield Line(text=tcp, is_note=True)
    points, means = list(range(len(data.points))), data.means
    if against is not None:
        points, means = [one for one in points if against.factor.levels[one] != against.level], against.of_points
        yield Line(text=f"Differences from {shown(against.factor.axis.worded)} = {shown(against.name)}", is_note=True)
    heads = [data.axes[place].worded for place in varied]
    left = tuple(data.axes[place].worded for place in varied if data.axes[place].words)
    measured = [words.measure(measure.name, measure.unit) for measure in data.measures]
    grid = shell.grid(*heads, *measured, left=left, keys=len(heads))
    for point in points[:MOST_ROWS]:
        cells = [data.axes[place].label(int(data.levels[point, place])) for place in varied]
        for own in means:
            mean, half = float(own.mean[point]), float(own.half[point])
            text = words.estimated(mean, half)
            if against is not None:
                text = f"{'+' if mean > 0 else ''}{text}{' *' if abs(mean) > half else '  '}"
            cells.append(text)
        grid.add_row(*cells)
    yield grid
    if len(points) > MOST_ROWS:
        file = "summary.csv" if against is None else "baseline.csv"
        text = f"The first {MOST_ROWS:,} of {len(points):,} points; {file} next to the page has all of them."
        yield Line(text=text, is_note=True)
    if data.seeds[1] > 1:
        if against is not None:
            yield Line(text=BEYOND, is_note=True)
        yield Line(text=HALF, is_note=True)


def _said(report: Report) -> Iterator[str]:
    """The report in a few lines."""
    from celltrain.drawing.pages.words import counted
    from celltrain.drawing.pages.words import measure as worded
    from celltrain.text import shown

    data, front, compared = report.data, report.analysis.front, report.comparison
    failed = f", {len(data.failures):,} of them failed" if data.failures else ""
    missing = f", {data.missing:,} still to be run" if data.missing else ""
    points = counted(len(data.points), "point")
    yield f"{shown(data.name or 'a sweep')}, by celltrain {data.version}: {points}, {counted(data.runs, 'run')}{failed}{missing}"
    if front is not None:
        two = " vs ".join(worded(data.measures[i].name) for i in (front.x, front.y))
        each = "" if front.by is None else f", one front per {shown(front.by.axis.worded)}"
        yield f"{counted(len(front.order), 'Pareto-optimal point')} ({two}){each}{report.front_caution and f'. {report.front_caution}'}"
    if (against := report.baseline) is not None:
        for i, measure in enumerate(data.measures):
            for level in range(len(against.factor.axis.values)):
                if level != against.level:
                    above, below, known = against.beyond(i, level)
                    yield (
                        f"{measure.name}: {against.factor.label(level)} is above {against.name} at {above:,} of "
                        f"{counted(known, 'point')} and below it at {below:,} (95 % intervals of paired differences)"
                    )
    for measure, moved in () if compared is None else compared.measures:
        beyond = int(moved.differences.beyond.sum())
        yield f"{measure.name}: {beyond:,} of {counted(len(moved.paired), 'point')} moved beyond the seeds' spread"
