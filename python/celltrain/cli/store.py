"""`celltrain store`: what a store holds, whether it is whole, and mending it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from celltrain.cli import shell

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The store.")]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    store = typer.Typer(no_args_is_help=True, help="Look at a sweep's store, prove that it is whole, mend it.")
    store.command("show", epilog="For example: celltrain store show out/sd")(show)
    store.command("verify", epilog="For example: celltrain store verify out/sd")(verify)
    store.command("repair", epilog="For example: celltrain store repair out/sd")(repair)
    app.add_typer(store, name="store")


@shell.command
def show(folder: Folder, as_json: shell.Json = False) -> None:
    """Say what a store holds: plan, versions, runs, and the mean of every measure with its 95 % interval."""
    from celltrain.cli.sweep import show as show_points
    from celltrain.store import Store
    from celltrain.store.parts import read
    from celltrain.text import shown

    store = Store.open(folder)
    runs = sum(len(read(path, ["run_key"])["run_key"].unique()) for path in store.parts())
    if as_json:
        shell.answer(
            {
                "store": shown(folder),
                **{key: store.manifest[key] for key in ("name", "version", "profile", "digest", "columns", "measures")},
                "points": len(store.plan.points),
                "runs": runs,
                "runs_planned": store.plan.runs,
                "parts": len(store.parts()),
                "bytes": sum(path.stat().st_size for path in store.parts()),
            }
        )
        return
    most = "at most " if store.plan.seeds.until is not None else ""
    shell.say(f"{shown(store.plan.name or folder)}, by celltrain {store.version}")
    shell.say(f"{runs:,} of {most}{store.plan.runs:,} runs of {len(store.plan.points):,} points")
    show_points(store)


@shell.command
def verify(folder: Folder, as_json: shell.Json = False) -> int:
    """Prove that every run is there once, every part is what was written, and the ledger agrees; exit with 1 if not."""
    from celltrain.store import Store
    from celltrain.text import shown

    store = Store.open(folder, changed=True)
    faults = store.verify()
    if as_json:
        shell.report(faults, as_json=True)
    else:
        shell.report(faults, as_json=False)
        if not faults:
            shell.say(f"{shown(folder)}: nothing is wrong; {len(store.parts()):,} parts, every run once")
    return shell.NO if faults else shell.DONE


@shell.command
def repair(folder: Folder, as_json: shell.Json = False) -> None:
    """Set aside what cannot be read, drop what is there twice, make the ledger agree; --resume then runs what is missing."""
    from celltrain.store.repair import repair as mend
    from celltrain.text import shown

    done = mend(folder)
    if as_json:
        shell.answer({"store": shown(folder), "done": done})
        return
    for line in done or ["there was nothing to mend"]:
        shell.say(f"{shown(folder)}: {line}")
