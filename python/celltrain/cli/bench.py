"""`celltrain bench`: how fast it is here."""

from __future__ import annotations

from typing import Annotated

import typer

from celltrain.cli import shell


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("bench", epilog="For example: celltrain bench --quick")(bench)


@shell.command
def bench(
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of the simulated time.")] = False,
    as_json: shell.Json = False,
) -> None:
    """Measure the engines on fixed scenarios, each in a process of its own: the best of three runs."""
    from celltrain import _core
    from celltrain.bench import measure_all
    from celltrain.errors import Fault, InputError

    profile = _core.build()["profile"]
    if profile != "release":
        problem = "is not measured: its speed says nothing. Install an optimised build with: pip install ."
        raise InputError([Fault.of_option("build", profile, problem)])
    with shell.waiting("measuring"):
        measured = list(measure_all(quick=quick))
    if as_json:
        shell.answer(measured)
        return
    grid = shell.grid(
        "scenario", "engine", "cell-hops", "seconds", "cell-hops/s", "peak memory MiB", left=("scenario", "engine")
    )
    for case in measured:
        memory = case["peak_rss_mib"]
        grid.add_row(
            case["scenario"],
            case["engine"],
            f"{case['cell_hops']:,}",
            f"{case['engine_seconds']:.3g}",
            shell.counted(case["cell_hops_per_second"]),
            "" if memory is None else f"{memory:.0f}",
        )
    shell.console().print(grid)
