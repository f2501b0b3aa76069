"""`celltrain vet`: tests a policy for correctness, and compares it with the classics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from celltrain.cli import options, progress, shell
from celltrain.cli.options import listed


@shell.command(
    "celltrain vet mine.toml --brief",
    "celltrain vet fba:z=0.5 --json",
    "celltrain vet mine.toml --scenarios lan-5,wan-5 --seeds 20 --beside fba",
)
def vet(
    policy: Annotated[
        Path,
        typer.Argument(
            metavar="POLICY",
            help="A TOML file with a table policy, a scenario with one policy, a policy such as fba:z=0.5, or mine.py:Mine.",
        ),
    ],
    settings: Annotated[
        list[str] | None, options.setting("Use this setting instead of that of POLICY. May be repeated.")
    ] = None,
    scenarios: list[str] | None = None,
    beside: list[str] | None = None,
    seeds: Annotated[int, {"parser": options.whole(1, options.MOST_RUNS)}] = 10,
    seed: options.FirstSeed = 1,
    jobs: options.Jobs = None,
    brief: bool = False,
    html: Path | None = None,
    csv: options.Csv = None,
    as_json: options.Json = False,
    md: options.Markdown = False,
    tex: options.Latex = False,
) -> int:
    """Check a policy's invariants, and compare it with EPD, Selective Drop and FBA in standard scenarios.

    Ensemble:
        scenarios (NAMES): Of the standard set, separated by commas: lan-5, lan-15, wan-5, lan-5-sack, wan-5-sack,
            lan-5-random, unequal-rtt. [default: all]
        beside (NAMES): Policies to compare it with, separated by commas. [default: epd,selective_drop,fba]
        seeds (N): Runs in each scenario.

    Output:
        brief: Print failed checks and the means over all scenarios only.
        html (FILE): Write a page there, with everything.
    """
    from celltrain.drawing.pages.html import environment
    from celltrain.ensemble import vetting
    from celltrain.ensemble.vetting.standard import policy_of
    from celltrain.model.files import named
    from celltrain.model.overrides import single

    output = shell.Output.of(as_json=as_json, csv=csv, md=md, tex=tex)
    if html is not None:
        environment("report")
    mine = policy_of(policy, single(settings))
    with progress.waiting("vetting") as tell:
        answer = vetting.vet(
            mine,
            scenarios=listed(scenarios),
            beside=listed(beside),
            seeds=seeds,
            first_seed=seed,
            jobs=jobs,
            progress=tell,
        )
    output.show(
        answer=lambda: answer,
        rows=lambda: [{"metric": name, **values} for name, values in answer["metrics"].items()],
        blocks=lambda: vetting.blocks(answer, brief=brief),
    )
    if html is not None:
        with named(html) as file:
            file.write(vetting.page(answer).encode())
    output.wrote([] if html is None else [html])
    return shell.DONE if all(check["holds"] for check in answer["conformance"]) else shell.NO


COMMANDS = {"vet": vet}
