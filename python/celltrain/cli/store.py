"""`celltrain store`: what a store holds, whether it is whole, and its rows as Parquet or CSV."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from celltrain.cli import shell

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The store.")]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    store = typer.Typer(no_args_is_help=True, help="Look at a sweep's store, verify it, export its rows.")
    store.command("show", epilog="For example: celltrain store show out/sd")(show)
    store.command("verify", epilog="For example: celltrain store verify out/sd")(verify)
    store.command("export", epilog="For example: celltrain store export out/sd --csv --out rows.csv")(export)
    store.command("import", epilog="For example: celltrain store import out/old --store out/new")(import_)
    store.command("repair", hidden=True)(repair)
    app.add_typer(store, name="store")


@shell.command
def show(folder: Folder, as_json: shell.Json = False) -> None:
    """Say what a store holds: plan, versions, runs, and the mean of every measure with its 95 % interval."""
    from celltrain.cli.sweep import show as show_points
    from celltrain.ensemble.store import Store
    from celltrain.ensemble.store.database import size
    from celltrain.ensemble.store.store import DATABASE
    from celltrain.text import shown

    store = Store.open(folder)
    runs = len(store.runs())
    if as_json:
        shell.answer(
            {
                "store": shown(folder),
                **{key: store.manifest[key] for key in ("name", "version", "profile", "digest", "columns", "measures")},
                "points": len(store.plan.points),
                "runs": runs,
                "runs_planned": store.plan.runs,
                # One file of rows since 0.3.
                "parts": 1,
                "bytes": size(store.path / DATABASE),
            }
        )
        return
    most = "at most " if store.plan.seeds.until is not None else ""
    shell.say(f"{shown(store.plan.name or folder)}, by celltrain {store.version}")
    shell.say(f"{runs:,} of {most}{store.plan.runs:,} runs of {len(store.plan.points):,} points")
    show_points(store)


@shell.command
def verify(folder: Folder, as_json: shell.Json = False) -> int:
    """Check that every run is there once and is what was written; exit with 1 if not."""
    from celltrain.ensemble.store import Store
    from celltrain.text import shown

    store = Store.open(folder, changed=True)
    faults = store.verify()
    shell.report(faults, as_json=as_json)
    if not faults and not as_json:
        shell.say(f"{shown(folder)}: nothing is wrong; {store.totals().runs:,} runs, each once")
    return shell.NO if faults else shell.DONE


@shell.command
def export(
    folder: Folder,
    parquet: Annotated[bool, typer.Option("--parquet", help="Write a Parquet file.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Write a CSV file.")] = False,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="The file to write.")] = None,
    wide: Annotated[bool, typer.Option("--wide", help="One row per run, one column per measure.")] = False,
    as_json: shell.Json = False,
) -> None:
    """Write the rows of a store to a file: one row per run and measure."""
    from celltrain.ensemble.store import Store
    from celltrain.errors import Fault, InputError
    from celltrain.model.writing import writing
    from celltrain.running.tables import write_csv, write_parquet
    from celltrain.text import shown

    if parquet == csv:
        raise InputError([Fault.saying("say how the rows are written: --parquet or --csv")])
    if out is None:
        raise InputError([Fault.of_option("--out", "", "is missing: name the file to write")])
    store = Store.open(folder)
    table = store.wide() if wide else store.table()
    with writing(out):
        (write_parquet if parquet else write_csv)(table, out)
    if as_json:
        shell.answer({"store": shown(folder), "file": shown(out), "rows": len(table)})
    else:
        shell.say(f"{len(table):,} rows of {shown(folder)} are in {shown(out)}")


@shell.command
def import_(
    folder: Annotated[Path, typer.Argument(metavar="OLD", help="The store of celltrain 0.2.")],
    store: Annotated[Path, typer.Option(metavar="DIR", help="The new store: a folder that is new or empty.")],
    as_json: shell.Json = False,
) -> None:
    """Make a store from one of celltrain 0.2, which stays as it is."""
    from celltrain.ensemble.store.import_old import import_store
    from celltrain.text import shown

    runs = import_store(folder, store).totals().runs
    if as_json:
        shell.answer({"store": shown(store), "runs": runs})
    else:
        shell.say(f"{runs:,} runs of {shown(folder)} are in {shown(store)}")


@shell.command
def repair(folder: Folder, as_json: shell.Json = False) -> None:
    """Say that there is nothing to repair: SQLite undoes what a killed process has left."""
    from celltrain.ensemble.store import Store
    from celltrain.ensemble.store.database import MEND
    from celltrain.errors import StoreError
    from celltrain.text import shown

    store = Store.open(folder, changed=True)
    if faults := store.verify():
        raise StoreError(faults)
    if as_json:
        shell.answer({"store": shown(folder), "done": []})
        return
    shell.complain(f"warning: celltrain store repair is no longer needed, and will go; if a store is damaged, {MEND}")
    shell.say(f"{shown(folder)}: there was nothing to mend")
