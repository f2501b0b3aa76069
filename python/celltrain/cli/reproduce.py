"""`celltrain reproduce` runs a paper's tables again, `celltrain study` a study, with the expectations of theory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from celltrain.cli import options, shell
from celltrain.drawing.words import left

if TYPE_CHECKING:
    from celltrain.papers import Progress, Reproduction

Runs = Annotated[int, {"parser": options.whole(1, options.MOST_RUNS)}]


@shell.command
def reproduce(
    output: shell.Document,
    paper: str | None = None,
    table: list[str] | None = None,
    network: list[str] | None = None,
    seeds: Runs = 30,
    wan_seeds: Annotated[int | None, {"parser": options.whole(1, options.MOST_RUNS)}] = None,
    jobs: options.Jobs = None,
    strict: bool = False,
    brief: bool = False,
    out: Path | None = None,
) -> int:
    """Run a paper's tables again and check, number by number, whether they agree. Ctrl-C keeps what is done.

    Argument:
        paper (PAPER): Such as af-96-1269. Without it, list the papers.

    Scenario:
        table (N): Only this table. May be repeated; all by default.
        network (NAME): Only this network, such as LAN. May be repeated; all by default.

    Ensemble:
        seeds (N): Runs of every scenario.
        wan_seeds (N): Runs of WAN scenarios, which take longer.

    Output:
        strict: Exit with 1 unless every scored number is inside and every claim holds.
        brief: Print counts, and only numbers and claims that do not agree.
        out (DIR): Write answer, page, tables and figures there.

    Examples:
        celltrain reproduce af-96-1269 --table 2 --seeds 10
        celltrain reproduce af-96-1269 --out out/paper --wan-seeds 2
        celltrain reproduce comcom-1998 --brief --strict
    """
    from celltrain.cli.explain import entries_of
    from celltrain.papers import reproduce as run
    from celltrain.papers.paper import load

    if paper is None:
        entries_of("papers", output, "To run one: celltrain reproduce af-96-1269 --table 2")
        return shell.DONE
    networks = dict.fromkeys(number.network or "" for number in load(paper).numbers(tables=table, networks=network))
    counts = {network: wan_seeds if network == "WAN" and wan_seeds else seeds for network in networks}

    def start(tell: Callable[[Progress], None]) -> Reproduction:
        return run(paper, tables=table, networks=network, seeds=counts, jobs=jobs, progress=tell)

    return _answer(paper, start, output, out=out, brief=brief, strict=strict)


@shell.command
def study(
    output: shell.Document,
    study: str | None = None,
    table: list[str] | None = None,
    duration: str | None = None,
    seeds: Runs = 10,
    jobs: options.Jobs = None,
    brief: bool = False,
    out: Path | None = None,
) -> int:
    """Run a study: its tables, and whether the expectations of theory hold. Ctrl-C keeps what is done.

    Argument:
        study (STUDY): Such as different-rtts. Without it, list the studies.

    Scenario:
        table (NAME): Only this table. May be repeated; all by default.
        duration (TIME): Simulate each scenario this long, such as 1s, for a quick look.

    Ensemble:
        seeds (N): Runs of every scenario.

    Output:
        brief: Print counts, and only numbers and claims that do not agree.
        out (DIR): Write answer, page, tables and figures there.

    Examples:
        celltrain study different-rtts --duration 1s
        celltrain study different-rtts --seeds 20 --out out/rtts
        celltrain study different-rtts --csv rtts.csv
    """
    from celltrain.cli.explain import entries_of
    from celltrain.papers import study as run
    from celltrain.papers.paper import STUDY, load

    if study is None:
        entries_of("studies", output, "To run one: celltrain study different-rtts --duration 1s")
        return shell.DONE
    load(study, kind=STUDY).numbers(tables=table)
    overrides = {} if duration is None else {"duration": duration}

    def start(tell: Callable[[Progress], None]) -> Reproduction:
        return run(study, tables=table, seeds=seeds, jobs=jobs, progress=tell, overrides=overrides)

    return _answer(study, start, output, out=out, brief=brief)


def _answer(
    name: str,
    start: Callable[[Callable[[Progress], None]], Reproduction],
    output: shell.Output,
    *,
    out: Path | None,
    brief: bool,
    strict: bool = False,
) -> int:
    """Runs the paper or study, writes the files, prints the rest, and returns the exit code."""
    from celltrain.papers.report import blocks

    if out is not None:
        shell.folder(out)
    latest: list[Progress] = []
    with shell.counting(name, latest, _bar) as tell:
        reproduction = start(tell)
    written: list[Path] = []
    if out is not None:
        with shell.writing(out):
            written = reproduction.write(out)
    answer = reproduction.to_dict()
    output.show(answer, blocks(reproduction, brief=brief), lambda: answer["numbers"])
    output.wrote(written)
    if reproduction.interrupted:
        shell.complain("interrupted")
        return shell.INTERRUPTED
    return shell.NO if strict and not reproduction.agrees else shell.DONE


def _bar(now: Progress) -> tuple[int, int, str]:

    return now.done, now.total, left(now.remaining_seconds)


COMMANDS = {"reproduce": reproduce, "study": study}
