"""`celltrain reproduce` runs a paper's tables again, `celltrain study` a study, with the expectations of theory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from celltrain.cli import options, shell
from celltrain.drawing.words import left
from celltrain.errors import Fault, InputError
from celltrain.model.overrides import single
from celltrain.text import shown

if TYPE_CHECKING:
    from celltrain.papers import Progress, Reproduction
    from celltrain.papers.paper import Number, Paper

Runs = Annotated[int, {"parser": options.whole(1, options.MOST_RUNS)}]


@shell.command
def reproduce(
    output: shell.Document,
    paper: str | None = None,
    table: list[str] | None = None,
    network: list[str] | None = None,
    row: list[str] | None = None,
    choice: list[str] | None = None,
    settings: options.Set = None,
    seeds: Runs = 30,
    seed: options.FirstSeed = 1,
    wan_seeds: Annotated[int | None, {"parser": options.whole(1, options.MOST_RUNS)}] = None,
    jobs: options.Jobs = None,
    no_certificates: options.NoCertificates = False,
    dry_run: bool = False,
    resume: bool = False,
    strict: bool = False,
    brief: bool = False,
    toml: bool = False,
    out: Path | None = None,
    width: options.FiguresWidth = None,
    style: options.Style = None,
) -> int:
    """Run a paper's tables again and check, number by number, whether they agree. Ctrl-C keeps finished runs.

    Argument:
        paper (PAPER): Such as af-96-1269. Without it, list the papers.

    Scenario:
        table (N): Only this table. May be repeated; all by default.
        network (NAME): Only this network, such as LAN. May be repeated; all by default.
        row (VALUES): Only the row with these keys, such as 5,1000,epd. May be repeated; all by default.
        choice (ID=ANSWER): Use this answer to a question that the paper leaves open, such as A-03=event_list. May be
            repeated.
        settings (PATH=VALUE): Use this setting in every scenario of the paper. May be repeated.

    Ensemble:
        seeds (N): Runs of every scenario.
        wan_seeds (N): Runs of WAN scenarios, which take longer.
        dry_run: Print how many runs there are, and estimate their time.
        resume: With --out: run only what is not finished there.

    Output:
        strict: Exit with 1 unless every scored number agrees and every claim holds.
        brief: Print counts, and only numbers and claims that do not agree.
        toml: Print the scenario of a row, and run nothing.
        out (DIR): Write answer, page, tables and figures there, and the finished runs for --resume.

    Examples:
        celltrain reproduce af-96-1269 --table 2 --seeds 10
        celltrain reproduce af-96-1269 --out out/paper --wan-seeds 2
        celltrain reproduce af-96-1269 --network lan --row 5,1000,epd --toml > row.toml
    """
    from celltrain.cli.explain import entries_of
    from celltrain.papers import NAME as RUNS
    from celltrain.papers import reproduce as run
    from celltrain.papers.paper import load

    look = _look(width, style, out)
    if paper is None:
        entries_of("papers", output, "To run one: celltrain reproduce af-96-1269 --table 2")
        return shell.DONE
    if resume and out is None:
        raise InputError.of_option("--resume", "", "needs the folder with the finished runs: name it with --out")
    if out is not None and not resume and (out / RUNS).exists():
        shell.complain(f"{shown(out)} has finished runs, which this command repeats; --resume keeps them")
    changed = single(settings)
    loaded = load(paper, overrides=changed, choices=choice or ())
    numbers = loaded.numbers(tables=table, networks=network, rows=row)
    if toml:
        return _print_toml(loaded, numbers)
    networks = dict.fromkeys(number.network or "" for number in numbers)
    counts = {network: wan_seeds if network == "WAN" and wan_seeds else seeds for network in networks}
    if dry_run:
        return _estimate(loaded, numbers, counts, output, first=seed, jobs=jobs)

    def start(tell: Callable[[Progress], None]) -> Reproduction:
        kept: dict[str, Any] = {} if out is None else {"kept": out / RUNS, "resume": resume}
        chosen: dict[str, Any] = {"tables": table, "networks": network, "rows": row, "overrides": changed or None}
        where: dict[str, Any] = {"jobs": jobs, "certificates": not no_certificates}
        return run(paper, **chosen, choices=choice or (), seeds=counts, seed=seed, progress=tell, **where, **kept)

    return _answer(paper, start, output, look, out=out, brief=brief, strict=strict, resumable=True)


def _print_toml(paper: Paper, numbers: Sequence[Number]) -> int:
    """Prints the scenario of these numbers; raises `InputError` if they belong to several scenarios."""
    from celltrain.model.scenario import to_toml
    from celltrain.model.types import Scenario

    chosen = list(dict.fromkeys(number.configuration for number in numbers))
    if len(chosen) != 1:
        problem = f"prints one scenario, but {len(chosen)} are selected: select one with --table, --network and --row"
        raise InputError.of_option("--toml", "", problem)
    [number] = [one for one in numbers if one.configuration == chosen[0]][:1]
    row = ", ".join(f"{key} = {value}" for key, value in number.row.items())
    network = "" if number.network is None or "network" in number.row else f", {number.network}"
    head = f"{paper.title} ({paper.id}), table {number.table}{network}: {row}"
    typer.echo(to_toml(Scenario.model_validate(paper.configurations[chosen[0]].scenario), head=head), nl=False)
    return shell.DONE


def _estimate(
    paper: Paper,
    numbers: Sequence[Number],
    counts: Mapping[str, int],
    output: shell.Output,
    *,
    first: int,
    jobs: int | None,
) -> int:
    from celltrain.drawing.words import in_words
    from celltrain.papers import estimate
    from celltrain.running import Local

    with shell.waiting("running the beginning of a few scenarios to see how long they take"):
        expected = estimate(paper, numbers, counts, first=first, threads=Local(jobs).threads)
    output.tell(
        {paper.kind.word: paper.id, **expected},
        f"{paper.id}: {expected['scenarios']:,} scenarios, {expected['runs']:,} runs",
        f"about {in_words(expected['seconds'])} on {expected['threads']} threads: an estimate",
    )
    return shell.DONE


@shell.command
def study(
    output: shell.Document,
    study: str | None = None,
    table: list[str] | None = None,
    duration: str | None = None,
    seeds: Runs = 10,
    jobs: options.Jobs = None,
    no_certificates: options.NoCertificates = False,
    brief: bool = False,
    out: Path | None = None,
    width: options.FiguresWidth = None,
    style: options.Style = None,
) -> int:
    """Run a study: its tables, and whether the expectations of theory hold. Ctrl-C keeps finished runs.

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

    look = _look(width, style, out)
    if study is None:
        entries_of("studies", output, "To run one: celltrain study different-rtts --duration 1s")
        return shell.DONE
    load(study, kind=STUDY).numbers(tables=table)
    overrides = {} if duration is None else {"duration": duration}

    def start(tell: Callable[[Progress], None]) -> Reproduction:
        where: dict[str, Any] = {"jobs": jobs, "certificates": not no_certificates}
        return run(study, tables=table, seeds=seeds, progress=tell, overrides=overrides, **where)

    return _answer(study, start, output, look, out=out, brief=brief)


def _look(width: str | None, style: str | None, out: Path | None) -> dict[str, str | None]:
    """Returns width and style of the figures; raises `InputError` before any run if they are wrong, or without `--out`."""
    from celltrain.drawing.figure import FigureStyle, require_matplotlib

    given = {name: text for name, text in (("--width", width), ("--style", style)) if text is not None}
    if given and out is None:
        raise InputError(
            Fault.of_option(name, text, "changes the figures; write the figures with --out DIR")
            for name, text in given.items()
        )
    if given:
        require_matplotlib()
        FigureStyle.of(width or "page", style)
    return {"width": width, "style": style}


def _answer(
    name: str,
    start: Callable[[Callable[[Progress], None]], Reproduction],
    output: shell.Output,
    look: Mapping[str, str | None],
    *,
    out: Path | None,
    brief: bool,
    strict: bool = False,
    resumable: bool = False,
) -> int:
    """Runs the paper or study, writes the files, prints the rest, and returns the exit code."""
    from celltrain.papers.report import blocks, numbers_table

    if out is not None:
        shell.folder(out)
    latest: list[Progress] = []
    with shell.counting(name, latest, lambda now: (now.done, now.total, left(now.remaining_seconds))) as tell:
        reproduction = start(tell)
    written: list[Path] = []
    if out is not None:
        with shell.writing(out):
            written = reproduction.write(out, **look)
    answer = reproduction.to_dict()
    output.show(answer, blocks(reproduction, brief=brief), lambda: numbers_table(reproduction))
    output.wrote(written)
    if reproduction.interrupted:
        keeps = f": finished runs are kept in {shown(out)}; continue with --resume" if resumable and out else ""
        shell.complain(f"interrupted{keeps}")
        return shell.INTERRUPTED
    return shell.NO if strict and not reproduction.agrees else shell.DONE


COMMANDS = {"reproduce": reproduce, "study": study}
