"""`celltrain store`: shows, verifies, exports and converts stores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from celltrain.cli import options, shell
from celltrain.text import shown

HELP = "Look at a sweep's store, verify it, export its rows."

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The store.")]


@shell.command(
    "celltrain store show out/sd",
    "celltrain store show out/sd --json",
    "celltrain store show out/sd --csv means.csv",
)
def show(folder: Folder, csv: options.Csv = None, as_json: options.Json = False) -> None:
    """Show what a store holds: plan, versions, runs, and the mean of every measure with its 95 % interval."""
    from celltrain.cli.sweep import blocks
    from celltrain.ensemble.store import Store
    from celltrain.model.grids import Line

    output = shell.Output.of(as_json=as_json, csv=csv)
    store = Store.open(folder)
    facts = store.to_dict()
    most = "at most " if store.plan.seeds.until is not None else ""
    head = [
        f"{shown(store.plan.name or folder)}, by celltrain {store.version}",
        f"{facts['runs']:,} of {most}{facts['runs_planned']:,} runs of {facts['points']:,} points",
    ]
    output.show(
        answer=lambda: facts,
        rows=lambda: store.summary().to_pylist(),
        blocks=lambda: [*(Line(text=line) for line in head), *blocks(store)],
    )
    output.wrote()


@shell.command(
    "celltrain store verify out/sd",
    "celltrain store verify out/sd --json",
    "celltrain store verify out/sd && echo sound",
)
def verify(folder: Folder, as_json: options.Json = False) -> int:
    """Check that every run is there once and is what was written; exit with 1 if not."""
    from celltrain.ensemble.store import Store

    store = Store.open(folder, changed=True)
    faults = store.verify()
    shell.report(faults, as_json=as_json)
    if not faults and not as_json:
        shell.say(f"{shown(folder)}: nothing is wrong; {store.totals().runs:,} runs, each once")
    return shell.NO if faults else shell.DONE


@shell.command(
    "celltrain store export out/sd --csv --out rows.csv",
    "celltrain store export out/sd --parquet --out rows.parquet",
    "celltrain store export out/sd --csv --wide --out runs.csv",
)
def export(
    folder: Folder,
    parquet: bool = False,
    csv: bool = False,
    out: Path | None = None,
    wide: bool = False,
    as_json: options.Json = False,
) -> None:
    """Write the rows of a store to a file: one row per run and measure.

    Options:
        parquet: Write a Parquet file.
        csv: Write a CSV file.
        out (FILE): The file to write.
        wide: One row per run, one column per measure.
    """
    from celltrain.ensemble.store import Store
    from celltrain.errors import Fault, InputError
    from celltrain.model.files import writing
    from celltrain.running.tables import write_csv, write_parquet

    if parquet == csv:
        raise InputError([Fault.saying("say how the rows are written: --parquet or --csv")])
    if out is None:
        raise InputError([Fault.of_option("--out", "", "is missing: name the file to write")])
    store = Store.open(folder)
    table = store.wide() if wide else store.table()
    with writing(out):
        (write_parquet if parquet else write_csv)(table, out)
    answer = {"store": shown(folder), "file": shown(out), "rows": len(table)}
    output = shell.Output.of(as_json=as_json)
    output.tell(answer, f"{len(table):,} rows of {shown(folder)} are in {shown(out)}")


@shell.command(
    "celltrain store import out/old --store out/new",
    "celltrain store import out/old --store out/new --json",
    "celltrain store show out/new",
)
def import_(
    folder: Annotated[Path, typer.Argument(metavar="OLD", help="The store of celltrain 0.2.")],
    store: Path,
    as_json: options.Json = False,
) -> None:
    """Make a store from one of celltrain 0.2, which stays as it is.

    Options:
        store (DIR): The new store: a folder that is new or empty.
    """
    from celltrain.ensemble.store.import_old import import_store

    runs = import_store(folder, store).totals().runs
    output = shell.Output.of(as_json=as_json)
    output.tell({"store": shown(store), "runs": runs}, f"{runs:,} runs of {shown(folder)} are in {shown(store)}")


COMMANDS = {"show": show, "verify": verify, "export": export, "import": import_}
