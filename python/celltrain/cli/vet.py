"""`celltrain vet`: what holds for a policy, and what it does beside the classics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from celltrain.cli import shell, workers
from celltrain.cli.compare import listed
from celltrain.text import shown


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(
        "vet",
        epilog="For example: celltrain vet mine.toml; celltrain vet mine.toml --scenarios lan-5,wan-5 --seeds 20 --beside fba",
    )(vet)


@shell.command
def vet(
    policy: Annotated[
        Path,
        typer.Argument(
            metavar="POLICY", help="A TOML file with a table policy, as a port has it, or a scenario with one policy."
        ),
    ],
    scenarios: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Of the standard set, with commas: lan-5,lan-15,wan-5,unequal-rtt."),
    ] = None,
    beside: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Policies it is put beside, with commas: epd,selective_drop,fba."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=1_000_000, metavar="N", help="Runs in each scenario.")] = 10,
    seed: Annotated[int, typer.Option(min=0, metavar="K", help="The first seed; the others follow.")] = 1,
    jobs: workers.Jobs = None,
    as_json: shell.Json = False,
) -> int:
    """Hold a policy against what must hold of any, and run it in standard scenarios beside EPD, Selective Drop and FBA."""
    from celltrain.vetting import vet as vetted

    with shell.waiting("vetting") as progress:
        answer = vetted(
            policy,
            scenarios=listed(scenarios),
            beside=listed(beside),
            seeds=seeds,
            first_seed=seed,
            jobs=jobs,
            progress=progress,
        )
    if as_json:
        shell.answer(answer)
    else:
        _show(answer)
    return shell.DONE if all(check["holds"] for check in answer["conformance"]) else shell.NO


def _show(answer: dict[str, Any]) -> None:
    from celltrain.vetting.run import heads, rows

    console = shell.console()
    checks = shell.grid("check", "holds", "evidence", left=("check", "holds", "evidence"))
    for check in answer["conformance"]:
        checks.add_row(check["check"].replace("_", " "), "yes" if check["holds"] else "NO", check["evidence"])
    console.print(checks)
    last = answer["first_seed"] + answer["seeds"] - 1
    seeds = f"seeds {answer['first_seed']} to {last}" if answer["seeds"] > 1 else f"seed {last}"
    console.print(f"{shown(answer['policy'])}: {seeds} in {', '.join(answer['scenarios'])}")
    mine, *others = heads(answer)
    grid = shell.grid("", "metric", mine, *others, left=("", "metric"))
    before = None
    for name, *cells in rows(answer):
        scenario, _, metric = name.rpartition(".")
        if scenario != before and before is not None:
            grid.add_section()
        grid.add_row((scenario or "all") if scenario != before else "", metric, *cells)
        before = scenario
    console.print(grid)
    if answer["seeds"] > 1:
        console.print("±: half the 95 % interval of the mean (Student's t over the seeds)")
        if others:
            console.print(
                f"*: {mine} has more, or less, than that beyond the seeds' spread: the 95 % interval of the "
                "differences, paired by seed, leaves zero out; --json has them"
            )
    for warning in answer["artifacts"]["warnings"]:
        shell.complain(f"warning: {warning}")
