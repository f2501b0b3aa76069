"""`celltrain store` shows, verifies and exports stores; `celltrain report` writes a page about a store."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from celltrain.cli import options, shell
from celltrain.cli.options import listed
from celltrain.drawing import words
from celltrain.drawing.figure import require_matplotlib
from celltrain.errors import InputError
from celltrain.model.files import check_target, inner, writing
from celltrain.model.grids import Block, Line
from celltrain.running.tables import write_csv, write_parquet
from celltrain.text import shown

if TYPE_CHECKING:
    from celltrain.ensemble.reports import Report

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The store.")]


@shell.command
def show(output: shell.Table, folder: Folder) -> None:
    """Show the contents of a store: plan, versions, runs, and the mean of every measure with its 95 % interval.

    Examples:
        celltrain store show out/sd
        celltrain store show out/sd --json
        celltrain store show out/sd --csv means.csv
    """
    from celltrain.cli.sweep import blocks
    from celltrain.ensemble.store import Store

    store = Store.open(folder)
    facts = store.to_dict()
    most = "at most " if store.plan.seeds.until is not None else ""
    head = [
        f"{shown(store.plan.name or folder)}, by celltrain {store.version}",
        f"{facts['runs']:,} of {most}{facts['runs_planned']:,} runs of {facts['points']:,} points",
    ]
    lines = (Line(text=line) for line in head)
    output.show(facts, itertools.chain(lines, blocks(store)), lambda: store.summary().to_pylist())


@shell.command
def verify(output: shell.Answer, folder: Folder) -> int:
    """Check that every run is stored once and unchanged; exit with 1 if not.

    Examples:
        celltrain store verify out/sd
        celltrain store verify out/sd --json
        celltrain store verify out/sd && echo sound
    """
    from celltrain.ensemble.store import Store

    store = Store.open(folder, changed=True)
    faults = store.verify()
    shell.report(faults, as_json=output.form == "json")
    if not faults and output.form != "json":
        shell.say(f"{shown(folder)}: no fault found; {store.totals().runs:,} runs, each stored once")
    return shell.NO if faults else shell.DONE


@shell.command
def export(
    output: shell.Answer,
    folder: Folder,
    parquet: bool = False,
    csv: bool = False,
    out: Path | None = None,
    wide: bool = False,
) -> None:
    """Write the rows of a store to a file: one row per run and measure.

    Options:
        parquet: Write a Parquet file.
        csv: Write a CSV file.
        out (FILE): The file to write.
        wide: One row per run, one column per measure.

    Examples:
        celltrain store export out/sd --csv --out rows.csv
        celltrain store export out/sd --parquet --out rows.parquet
        celltrain store export out/sd --csv --wide --out runs.csv
    """
    from celltrain.ensemble.store import Store

    if parquet == csv:
        raise InputError.saying("choose a format for the rows: --parquet or --csv")
    if out is None:
        raise InputError.of_option("--out", "", "is missing: name the file to write")
    check_target(out)
    store = Store.open(folder)
    table = store.wide() if wide else store.table()
    with writing(out):
        (write_parquet if parquet else write_csv)(table, out)
    answer = {"store": shown(folder), "file": shown(out), "rows": len(table)}
    output.tell(answer, f"{len(table):,} rows of {shown(folder)} are in {shown(out)}")


@shell.command
def report(
    output: shell.Document,
    folder: Annotated[Path | None, typer.Argument(metavar="STORE", help="The store of a sweep.")] = None,
    store: Path | None = None,
    measures: list[str] | None = None,
    front: str | None = None,
    front_by: str | None = None,
    compare: Path | None = None,
    lines: str | None = None,
    baseline: str | None = None,
    out: Path | None = None,
    style: options.Style = None,
    labels: options.Labels = None,
) -> None:
    """Write a page about a store: plan, means with intervals, effects of axes, maps and the Pareto front.

    Ensemble:
        store (STORE): The store, as for celltrain sweep.
        measures (NAMES): Only these, such as efficiency,fairness; all by default.
        front (TWO): Measures of the Pareto front; put - before one if smaller is better.
        front_by (AXES): A front for each combination of these axes, or none. By default one for each network and TCP.
        compare (STORE2): Show the change from STORE to this store.
        lines (AXES): Draw measures over the first axis, with colours for the second and panels for the third.
        baseline (AXIS=VALUE): Show differences from this value, paired by seed.

    Output:
        out (DIR): Folder for page, tables and figures. [default: STORE/report]

    Examples:
        celltrain report out/sd
        celltrain report out/sd --front efficiency,-cells.lost
        celltrain report out/sd --measures efficiency --baseline Z=0.5 --tex > table.tex
    """
    from celltrain.ensemble import reports

    if (folder is None) == (store is None):
        problem = (
            "names the store of a sweep"
            if store is None
            else "names the store, but the argument does so, too: give only one of them"
        )
        raise InputError.of_option("--store", "" if store is None else shown(store), problem)
    store = store or folder
    assert store is not None, "either the folder or the option --store is given"
    chosen = listed(measures)
    if chosen == []:
        raise InputError.of_option("--measures", "", "is empty; name measures, such as efficiency,fairness")
    require_matplotlib()
    report = reports.report(
        store,
        measures=chosen,
        front=None if front is None else listed([front]),
        front_by=None if front_by is None else [] if front_by == "none" else listed([front_by]),
        compare_with=compare,
        style=style,
        lines=None if lines is None else listed([lines]),
        baseline=baseline,
        labels=options.labelled(labels),
    )
    target = shell.folder(inner(store / "report") if out is None else out)
    with shell.waiting(f"drawing {shown(store)}") as tell, shell.writing(target):
        written = report.write(target, progress=tell)
    files = {"files": [shown(path) for path in written]}
    answer = {"store": shown(store), **report.to_dict(), **files}
    blocks = (Line(text=line) for line in reports.lines(report)) if output.form == "text" else _table(report)
    output.show(answer, blocks, report.summary.to_pylist)
    if output.form != "json":
        for warning in report.warnings:
            shell.complain(f"warning: {warning}")
    output.note(f"wrote {shown(written[0])} and {len(written) - 1} more files in the same folder")


def _table(report: Report) -> Iterator[Block]:
    """Yields a row for each point: means and, with a baseline, differences from it, with half their 95 % intervals."""
    from celltrain.ensemble.comparing.data import BEYOND, HALF
    from celltrain.ensemble.reports import MOST_ROWS

    data, against = report.data, report.baseline
    yield Line(text=f"{shown(data.name or 'a sweep')}: {data.seeds_line}", is_note=True)
    if fixed := [axis for axis in data.axes if len(axis.values) == 1]:
        said = ", ".join(f"{shown(axis.name)} = {words.valued(axis.values[0], axis.unit)}" for axis in fixed)
        yield Line(text=f"set: {said}", is_note=True)
    if tcp := data.tcp_line():
        yield Line(text=tcp, is_note=True)
    points = list(range(len(data.points)))
    yield data.grid(data.means, points[:MOST_ROWS])
    yield from _left_out(len(points), "summary.csv")
    if against is not None:
        points = [one for one in points if against.axis.levels[one] != against.level]
        what = f"differences from {shown(against.axis.worded)} = {shown(against.name)}"
        yield Line(text=f"The means come first, followed by the {what}", is_note=True)
        yield data.grid(against.of_points, points[:MOST_ROWS], words.difference)
        yield from _left_out(len(points), "baseline.csv")
    if data.seeds[1] > 1:
        if against is not None:
            yield Line(text=BEYOND, is_note=True)
        yield Line(text=HALF, is_note=True)


def _left_out(points: int, file: str) -> Iterator[Block]:
    """Yields a note on the points that a table leaves out."""
    from celltrain.ensemble.reports import MOST_ROWS

    if points > MOST_ROWS:
        yield Line(text=f"{words.counted(points - MOST_ROWS, 'more point')} in {file} next to the page.", is_note=True)


COMMANDS = {"report": report, "store": {"show": show, "verify": verify, "export": export}}
