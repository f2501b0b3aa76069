"""`celltrain vet`: checks of a policy, and a comparison with the classics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from celltrain.cli import completing, shell, workers
from celltrain.cli.compare import listed


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command(
        "vet",
        epilog=shell.examples(
            "celltrain vet mine.toml --brief",
            "celltrain vet mine.toml --scenarios lan-5,wan-5 --seeds 20 --beside fba",
        ),
    )(vet)


@shell.command
def vet(
    policy: Annotated[
        Path,
        typer.Argument(
            metavar="POLICY",
            help="A TOML file with a table policy, a scenario with one policy, a policy such as fba:z=0.5, or mine.py:Mine.",
        ),
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PATH=VALUE",
            autocompletion=completing.paths,
            help="Use this setting instead of that of POLICY. May be repeated.",
        ),
    ] = None,
    scenarios: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="Of the standard set, separated by commas: lan-5, lan-15, wan-5, lan-5-sack, wan-5-sack, lan-5-random, "
            "unequal-rtt.",
            show_default="all",
        ),
    ] = None,
    beside: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="Policies to compare it with, separated by commas.",
            show_default="epd,selective_drop,fba",
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(parser=shell.whole(1, 1_000_000), metavar="N", help="Runs in each scenario.")
    ] = 10,
    seed: Annotated[
        int, typer.Option(parser=shell.whole(0), metavar="N", help="The first seed; the others follow.")
    ] = 1,
    brief: Annotated[
        bool, typer.Option("--brief", help="Print failed checks and the means over all scenarios only.")
    ] = False,
    jobs: workers.Jobs = None,
    as_json: shell.Json = False,
    md: shell.Markdown = False,
    tex: shell.Latex = False,
) -> int:
    """Check a policy's invariants, and compare it with EPD, Selective Drop and FBA in standard scenarios."""
    from celltrain.ensemble.vetting import vet as vetted
    from celltrain.ensemble.vetting.policy import policy_of
    from celltrain.model.overrides import single

    form = shell.form(as_json=as_json, md=md, tex=tex)
    mine = policy_of(policy, single(settings))
    with shell.waiting("vetting") as progress:
        answer = vetted(
            mine,
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
        from celltrain.ensemble.vetting.table import blocks

        shell.show(blocks(answer, brief=brief), form)
    return shell.DONE if all(check["holds"] for check in answer["conformance"]) else shell.NO
