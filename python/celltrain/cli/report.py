"""`celltrain report`: a page about a store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from celltrain.cli import shell

if TYPE_CHECKING:
    from celltrain.reports import Report


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
) -> None:
    """Write a page about a store: what was run, means with intervals, main effects, maps, the Pareto front."""
    from celltrain.axes import require_matplotlib
    from celltrain.errors import Fault, InputError
    from celltrain.reports import report as look
    from celltrain.text import shown
    from celltrain.writing import inner

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
    for line in _said(made):
        shell.say(line)
    for warning in made.warnings:
        shell.complain(f"warning: {warning}")
    shell.say(f"wrote {shown(written[0])}, and {len(written) - 1} files beside it")


def _listed(texts: list[str]) -> list[str]:
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def _said(report: Report) -> Iterator[str]:
    """The report in a few lines."""
    from celltrain.pages.words import counted
    from celltrain.pages.words import measure as worded
    from celltrain.reports.analysis import label
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
                    beyond, known = against.beyond(i, level)
                    yield (
                        f"{measure.name}: {label(against.factor, level)} differs from {against.name} beyond the seeds' "
                        f"spread at {beyond:,} of {counted(known, 'point')}"
                    )
    for measure, moved in () if compared is None else compared.measures:
        beyond = int(moved.differences.beyond.sum())
        yield f"{measure.name}: {beyond:,} of {counted(len(moved.paired), 'point')} moved beyond the seeds' spread"
