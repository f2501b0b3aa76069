"""`celltrain bench`: measures the speed of both engines."""

from __future__ import annotations

from typing import Annotated

from celltrain.cli import options, progress, shell
from celltrain.cli.options import flag


@shell.command("celltrain bench", "celltrain bench --quick", "celltrain bench --csv speed.csv")
def bench(
    quick: Annotated[bool, flag("--quick", "Four of the scenarios, one run each.")] = False,
    csv: options.Csv = None,
    as_json: options.Json = False,
) -> None:
    """Measure both engines on fixed scenarios, each in a process of its own: the fastest of three runs."""
    from celltrain import _core
    from celltrain.cli.benchmark import cases, measure_all
    from celltrain.errors import Fault, InputError
    from celltrain.model.grids import Line
    from celltrain.running.results import ENGINES

    output = shell.Output.of(as_json=as_json, csv=csv)
    profile = _core.build()["profile"]
    if profile != "release":
        problem = "is not measured: its speed says nothing. Install an optimised build with: pip install ."
        raise InputError([Fault.of_option("build", profile, problem)])
    chosen = cases(quick=quick)
    measured = []
    with progress.waiting(f"measuring {len(chosen)} scenarios on both engines") as tell:
        for row in measure_all(quick=quick):
            measured.append(row)
            if tell is not None:
                tell(len(measured) / (len(chosen) * len(ENGINES)))
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
    output.show(answer=lambda: measured, rows=lambda: measured, blocks=lambda: [grid, Line(text=note)])
    output.wrote()


COMMANDS = {"bench": bench}
