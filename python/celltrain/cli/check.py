"""`celltrain check`: what is wrong with a scenario file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from celltrain.cli import shell


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("check", epilog="For example: celltrain check scenarios/*.toml")(check)


@shell.command
def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Scenarios, TOML files.")],
    as_json: shell.Json = False,
) -> int:
    """Say everything that is wrong with scenario files, without running them; exit with 2 if anything is."""
    from celltrain.scenario import read, shown

    readings = {shown(file): read(file) for file in files}
    faults = [fault for reading in readings.values() for fault in reading.faults]
    if as_json:
        warnings = [
            {"file": file, "message": message} for file, reading in readings.items() for message in reading.warnings
        ]
        shell.answer({"faults": [fault.to_dict() for fault in faults], "warnings": warnings})
    else:
        shell.report(faults, as_json=False)
        for file, reading in readings.items():
            for message in reading.warnings:
                shell.complain(f"{file}: warning: {message}")
            if not reading.faults:
                typer.echo(f"{file}: nothing is wrong")
    return shell.BAD_INPUT if faults else shell.DONE
