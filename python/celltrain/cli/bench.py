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
    quick: Annotated[bool, typer.Option("--quick", help="Four of the scenarios, one run each.")] = False,
    as_json: shell.Json = False,
) -> None:
    """Measure both engines on fixed scenarios, each in a process of its own: the fastest of three runs."""
    from celltrain import _core
    from celltrain.cli.benchmark import cases, measure_all
    from celltrain.errors import Fault, InputError
    from celltrain.model.grids import Line
    from celltrain.running.results import ENGINES

    profile = _core.build()["profile"]
    if profile != "release":
        problem = "is not measured: its speed says nothing. Install an optimised build with: pip install ."
        raise InputError([Fault.of_option("build", profile, problem)])
    chosen = cases(quick=quick)
    measured = []
    with shell.waiting(f"measuring {len(chosen)} scenarios on both engines") as progress:
        for row in measure_all(quick=quick):
            measured.append(row)
            if progress is not None:
                progress(len(measured) / (len(chosen) * len(ENGINES)))
    if as_json:
        shell.answer(measured)
        return
    titles = {case["scenario"]: case["title"] for case in chosen}
    grid = shell.grid(
        "scenario",
        "cell-hops",
        "engine",
        "seconds",
        "M cell-hops/s",
        "memory (MiB)",
        "times faster",
        left=("scenario", "engine"),
    )
    for row in measured:
        # A scenario's rows follow each other.
        first = row["engine"] == measured[0]["engine"]
        memory, ratio = row["peak_rss_mib"], row.get("ratio_to_reference")
        grid.add_row(
            titles[row["scenario"]] if first else "",
            f"{row['cell_hops']:,}" if first else "",
            row["engine"],
            f"{row['engine_seconds']:.4f}",
            f"{row['cell_hops_per_second'] / 1e6:.1f}",
            "" if memory is None else f"{memory:.0f}",
            "" if ratio is None else f"{ratio:.1f}",
        )
    note = "Seconds of wall-clock time. Memory is the most the process ever had, Python's included."
    shell.show([grid, Line(text=note)])
