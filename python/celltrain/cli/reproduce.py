"""`celltrain reproduce`: runs a paper's tables again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from celltrain.cli import options, progress, shell
from celltrain.cli.options import ENSEMBLE, OUTPUT, SCENARIO, count, flag, option

if TYPE_CHECKING:
    from celltrain.papers import Progress, Reproduction

Out = Annotated[Path | None, option("DIR", "Write answer, tables and figures there.", panel=OUTPUT)]
Brief = Annotated[bool, flag("--brief", "Print counts, and only numbers and claims that do not agree.", OUTPUT)]


@shell.command(
    "celltrain reproduce af-96-1269 --table 2 --seeds 10",
    "celltrain reproduce af-96-1269 --out out/paper --wan-seeds 2",
    "celltrain reproduce comcom-1998 --brief --strict",
)
def reproduce(
    paper: Annotated[
        str | None, typer.Argument(metavar="PAPER", help="Such as af-96-1269. Without it, list the papers.")
    ] = None,
    table: Annotated[
        list[str] | None, option("N", "Only this table. May be repeated; all by default.", panel=SCENARIO)
    ] = None,
    network: Annotated[
        list[str] | None,
        option("NAME", "Only this network, such as LAN. May be repeated; all by default.", panel=SCENARIO),
    ] = None,
    seeds: Annotated[int, count("Runs of every scenario.", most=options.MOST_RUNS, panel=ENSEMBLE)] = 30,
    wan_seeds: Annotated[
        int | None, count("Runs of WAN scenarios, which take longer.", most=options.MOST_RUNS, panel=ENSEMBLE)
    ] = None,
    jobs: options.Jobs = None,
    strict: Annotated[
        bool, flag("--strict", "Exit with 1 unless every scored number is inside and every claim holds.", OUTPUT)
    ] = False,
    brief: Brief = False,
    out: Out = None,
    csv: options.Csv = None,
    as_json: options.Json = False,
    md: options.Markdown = False,
    tex: options.Latex = False,
) -> int:
    """Run a paper's tables again and check, number by number, whether they agree. Ctrl-C keeps what is done."""
    from celltrain.cli.list_ import entries_of
    from celltrain.papers.paper import load
    from celltrain.papers.run import reproduce as run

    output = shell.Output.of(as_json=as_json, csv=csv, md=md, tex=tex)
    if paper is None:
        entries_of("papers", output, "To run one: celltrain reproduce af-96-1269 --table 2")
        return shell.DONE
    if out is not None:
        shell.folder(out)
    networks = dict.fromkeys(number.network or "" for number in load(paper).numbers(tables=table, networks=network))
    counts = {network: wan_seeds if network == "WAN" and wan_seeds else seeds for network in networks}
    latest: list[Progress] = []
    with progress.runs(paper, latest, bar) as tell:
        reproduction = run(paper, tables=table, networks=network, seeds=counts, jobs=jobs, progress=tell)
    code = finish(reproduction, output, out=out, is_brief=brief)
    agrees = all(number.inside for number in reproduction.numbers if number.number.scored)
    agrees = agrees and all(claim.holds for claim in reproduction.claims)
    return shell.NO if code == shell.DONE and strict and not agrees else code


def bar(now: Progress) -> tuple[int, int, str]:
    """Returns the runs done, of how many, and the time left."""
    from celltrain.drawing.pages.words import left

    return now.done, now.total, left(now.remaining_seconds)


def finish(reproduction: Reproduction, output: shell.Output, *, out: Path | None, is_brief: bool) -> int:
    """Writes the files, prints the rest, and returns the exit code."""
    from celltrain.papers.report import blocks

    written: list[Path] = []
    if out is not None:
        with shell.writing(out):
            written = reproduction.write(out)
    output.show(
        answer=reproduction.to_dict,
        rows=lambda: reproduction.to_dict()["numbers"],
        blocks=lambda: blocks(reproduction, brief=is_brief),
    )
    output.wrote(written)
    if reproduction.interrupted:
        shell.complain("interrupted")
        return shell.INTERRUPTED
    return shell.DONE


COMMANDS = {"reproduce": reproduce}
