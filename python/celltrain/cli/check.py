"""`celltrain check`: what is wrong with a scenario file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from celltrain.cli import completing, shell


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(
        "check",
        epilog="For example: celltrain check mine.toml; celltrain check chain-epd --plot chain.png",
    )(check)


@shell.command
def check(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Scenarios: TOML files, or names of shipped ones.",
            autocompletion=completing.scenarios,
        ),
    ],
    plot: Annotated[
        Path | None, typer.Option(metavar="PICTURE", help="Draw the network of the one FILE there: .png, .svg or .pdf.")
    ] = None,
    as_json: shell.Json = False,
) -> int:
    """Say everything that is wrong with scenario files, without running them; exit with 2 if anything is."""
    from celltrain.scenario import read
    from celltrain.text import shown

    if plot is not None:
        _can_draw(files, plot)
    readings = {shown(file): read(file) for file in files}
    faults = [fault for reading in readings.values() for fault in reading.faults]
    if plot is not None and not faults:
        from celltrain.drawing import save
        from celltrain.network import Network

        [reading] = readings.values()
        net = Network.of_core(reading.accepted())
        with shell.writing(plot):
            save(net, plot)
    if as_json:
        from celltrain.network import Network

        warnings = [
            {"file": file, "message": message} for file, reading in readings.items() for message in reading.warnings
        ]
        networks = [
            {"file": file, **Network.of_core(reading.accepted()).to_dict(), "memory_bytes": reading.memory_bytes}
            for file, reading in readings.items()
            if not reading.faults
        ]
        shell.answer({"faults": [fault.to_dict() for fault in faults], "warnings": warnings, "networks": networks})
    else:
        shell.report(faults, as_json=False)
        for file, reading in readings.items():
            for message in reading.warnings:
                shell.complain(f"{file}: warning: {message}")
            if not reading.faults:
                count = len(reading.warnings)
                warned = f"valid, with {count} warning{'' if count == 1 else 's'}"
                shell.say(f"{file}: {warned if count else 'nothing is wrong'}")
        if plot is not None and not faults:
            shell.say(f"wrote {shown(plot)}")
    return shell.BAD_INPUT if faults else shell.DONE


def _can_draw(files: list[Path], plot: Path) -> None:
    """Refuses what cannot be drawn before any file is read."""
    from celltrain.axes import require_matplotlib
    from celltrain.drawing import FORMATS
    from celltrain.errors import Fault, InputError
    from celltrain.text import shown

    if len(files) != 1:
        raise InputError([Fault.of_option("--plot", shown(plot), f"draws one scenario; {len(files)} are given")])
    if plot.suffix.removeprefix(".") not in FORMATS:
        endings = ", ".join(f".{name}" for name in FORMATS)
        raise InputError([Fault.of_option("--plot", shown(plot), f"is no picture; its name ends in one of {endings}")])
    require_matplotlib()
