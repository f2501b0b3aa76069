"""`celltrain reproduce` and `celltrain study`: a paper's tables, run again, and studies of our own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from celltrain.cli import shell
from celltrain.drawing.pages.words import left
from celltrain.model.arguments import MOST_JOBS
from celltrain.text import shown

if TYPE_CHECKING:
    from celltrain.papers import Progress, Reproduction


Brief = Annotated[
    bool, typer.Option("--brief", help="Print counts, and only the numbers and claims that do not agree.")
]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("reproduce", epilog="For example: celltrain reproduce af-96-1269 --table 2 --seeds 10 --out out/t2")(
        reproduce
    )
    app.command("study", epilog="For example: celltrain study different-rtts --out out/rtts")(study)


@shell.command
def reproduce(
    paper: Annotated[
        str | None, typer.Argument(metavar="PAPER", help="Such as af-96-1269. Without it, list the papers.")
    ] = None,
    table: Annotated[
        list[str] | None, typer.Option(metavar="N", help="Only this table. May be repeated; all when absent.")
    ] = None,
    network: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this network, such as LAN. May be repeated; all when absent."),
    ] = None,
    seeds: Annotated[
        int, typer.Option(parser=shell.whole(1, 1_000_000), metavar="N", help="Runs of every scenario.")
    ] = 30,
    wan_seeds: Annotated[
        int | None,
        typer.Option(parser=shell.whole(1, 1_000_000), metavar="N", help="Runs of WAN scenarios, which take longer."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(parser=shell.whole(1, MOST_JOBS), metavar="N", help="Threads; one for each core when absent."),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Write answer, tables and figures there.")] = None,
    brief: Brief = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 unless every scored number is inside and every claim holds.")
    ] = False,
    as_json: shell.Json = False,
    md: shell.Markdown = False,
    tex: shell.Latex = False,
) -> int:
    """Run a paper's tables again and say, number by number, whether they agree. Ctrl-C keeps what is done."""
    from celltrain.papers.expansion import load
    from celltrain.papers.run import reproduce as run

    form = shell.form(as_json=as_json, md=md, tex=tex)
    if paper is None:
        return _list("papers", "celltrain reproduce af-96-1269 --table 2", as_json=as_json)
    if out is not None:
        shell.folder(out)
    networks = dict.fromkeys(number.network or "" for number in load(paper).numbers(tables=table, networks=network))
    counts = {network: wan_seeds if network == "WAN" and wan_seeds else seeds for network in networks}
    with _progress(paper) as progress:
        reproduction = run(paper, tables=table, networks=network, seeds=counts, jobs=jobs, progress=progress)
    code = _tell(reproduction, out=out, as_json=as_json, brief=brief, form=form)
    return shell.NO if code == shell.DONE and strict and not _all_agree(reproduction) else code


@shell.command
def study(
    study: Annotated[
        str | None, typer.Argument(metavar="STUDY", help="Such as different-rtts. Without it, list the studies.")
    ] = None,
    table: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this table. May be repeated; all when absent.")
    ] = None,
    seeds: Annotated[
        int, typer.Option(parser=shell.whole(1, 1_000_000), metavar="N", help="Runs of every scenario.")
    ] = 10,
    duration: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Simulate every scenario this long, such as 1s: a quick look, not the study."
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(parser=shell.whole(1, MOST_JOBS), metavar="N", help="Threads; one for each core when absent."),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Write answer, tables and figures there.")] = None,
    brief: Brief = False,
    as_json: shell.Json = False,
    md: shell.Markdown = False,
    tex: shell.Latex = False,
) -> int:
    """Run a study of ours: its tables, and whether what theory made us expect holds. Ctrl-C keeps what is done."""
    from celltrain.papers.expansion import load
    from celltrain.papers.paper import STUDY
    from celltrain.papers.run import study as run

    form = shell.form(as_json=as_json, md=md, tex=tex)
    if study is None:
        return _list("studies", "celltrain study different-rtts --duration 1s", as_json=as_json)
    load(study, kind=STUDY).numbers(tables=table)
    if out is not None:
        shell.folder(out)
    overrides = {} if duration is None else {"duration": duration}
    with _progress(study) as progress:
        reproduction = run(study, tables=table, seeds=seeds, jobs=jobs, progress=progress, overrides=overrides)
    return _tell(reproduction, out=out, as_json=as_json, brief=brief, form=form)


def _tell(reproduction: Reproduction, *, out: Path | None, as_json: bool, brief: bool, form: shell.Form) -> int:
    written: list[Path] = []
    if out is not None:
        with shell.writing(out):
            written = reproduction.write(out)
    if as_json:
        typer.echo(reproduction.to_json())
    else:
        from celltrain.papers.report import blocks

        shell.show(blocks(reproduction, brief=brief), form)
        for path in written:
            shell.note(f"wrote {shown(path)}", form)
    if reproduction.interrupted:
        shell.complain("interrupted")
        return shell.INTERRUPTED
    return shell.DONE


def _all_agree(reproduction: Reproduction) -> bool:
    inside = all(number.inside for number in reproduction.numbers if number.number.scored)
    return inside and all(claim.holds for claim in reproduction.claims)


@contextmanager
def _progress(paper: str) -> Iterator[Callable[[Progress], object] | None]:
    """A bar on a terminal: what, how far, how long still. Nothing in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs, {task.fields[left]}"),
    )
    with Bar(*columns, console=shell.console(stderr=True), transient=True) as bar:
        task = bar.add_task(shown(paper), total=None, left="")

        def show(progress: Progress) -> None:
            bar.update(task, completed=progress.done, total=progress.total, left=left(progress.remaining_seconds))

        yield show


def _list(kind: str, example: str, *, as_json: bool) -> int:
    """Prints the papers or the studies, and a command that runs one."""
    from celltrain.cli.describe import entries_of

    entries_of(kind, as_json=as_json)
    if not as_json:
        shell.say(f"\nTo run one: {example}")
    return shell.DONE
