"""`celltrain study`: runs a study, with the expectations of theory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from celltrain.cli import options, progress, shell
from celltrain.cli.options import ENSEMBLE, SCENARIO, count, option
from celltrain.cli.reproduce import Brief, Out, bar, finish

if TYPE_CHECKING:
    from celltrain.papers import Progress


@shell.command(
    "celltrain study different-rtts --duration 1s",
    "celltrain study different-rtts --seeds 20 --out out/rtts",
    "celltrain study different-rtts --csv rtts.csv",
)
def study(
    study: Annotated[
        str | None, typer.Argument(metavar="STUDY", help="Such as different-rtts. Without it, list the studies.")
    ] = None,
    table: Annotated[
        list[str] | None, option("NAME", "Only this table. May be repeated; all by default.", panel=SCENARIO)
    ] = None,
    duration: Annotated[
        str | None, option("TIME", "Simulate each scenario this long, such as 1s, for a quick look.", panel=SCENARIO)
    ] = None,
    seeds: Annotated[int, count("Runs of every scenario.", most=options.MOST_RUNS, panel=ENSEMBLE)] = 10,
    jobs: options.Jobs = None,
    brief: Brief = False,
    out: Out = None,
    csv: options.Csv = None,
    as_json: options.Json = False,
    md: options.Markdown = False,
    tex: options.Latex = False,
) -> int:
    """Run a study: its tables, and whether the expectations of theory hold. Ctrl-C keeps what is done."""
    from celltrain.cli.list_ import entries_of
    from celltrain.papers.paper import STUDY, load
    from celltrain.papers.run import study as run

    output = shell.Output.of(as_json=as_json, csv=csv, md=md, tex=tex)
    if study is None:
        entries_of("studies", output, "To run one: celltrain study different-rtts --duration 1s")
        return shell.DONE
    load(study, kind=STUDY).numbers(tables=table)
    if out is not None:
        shell.folder(out)
    overrides = {} if duration is None else {"duration": duration}
    latest: list[Progress] = []
    with progress.runs(study, latest, bar) as tell:
        reproduction = run(study, tables=table, seeds=seeds, jobs=jobs, progress=tell, overrides=overrides)
    return finish(reproduction, output, out=out, is_brief=brief)


COMMANDS = {"study": study}
